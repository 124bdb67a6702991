// Short texts of tool results for the model: a few lines each. The full result is added as structured content.
#pragma once

#include <string>

#include "base/json/json.hpp"

namespace muniment::mcp {

std::string say_cards(const json::Value& result);
std::string say_rendered(const json::Value& result);
std::string say_resolved(const json::Value& result);
std::string say_answer(const json::Value& result);
std::string say_context(const json::Value& result);
std::string say_remembered(const json::Value& result);
std::string say_forgotten(const json::Value& result);
std::string say_memories(const json::Value& result);
std::string say_history(const json::Value& result);
std::string say_started(const json::Value& result);
std::string say_ended(const json::Value& result);
std::string say_recorded(const json::Value& result);
std::string say_claimed(const json::Value& result);
std::string say_state(const json::Value& result);
std::string say_feedback(const json::Value& result);
std::string say_status(const json::Value& result);
std::string say_runs(const json::Value& result);
std::string say_events(const json::Value& result);
std::string say_opened(const json::Value& result);
std::string say_validated(const json::Value& result);
std::string say_completed(const json::Value& result);
std::string say_json(const json::Value& result);

}  // namespace muniment::mcp
