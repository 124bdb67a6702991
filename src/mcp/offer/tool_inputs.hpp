// Inputs of the tools whose arguments differ from the parameters of their native method.
#pragma once

#include <string>
#include <string_view>

#include "base/json/json.hpp"
#include "base/result.hpp"
#include "mcp/offer/tools.hpp"

namespace muniment::mcp {

// {corpus, wait?} and the fields of one document, whose id is also called subject.
std::string remember_input();
Result<std::string> remember_params(const json::Value& arguments, const Setting& setting);
// Parameters of context.build, whose query is called question.
std::string recall_input();
Result<std::string> recall_params(const json::Value& arguments, const Setting& setting);
// Parameters of document.retract, document.list and document.history, whose document is called subject. The corpus is
// optional.
std::string forget_input();
Result<std::string> forget_params(const json::Value& arguments, const Setting& setting);
std::string memories_input();
std::string history_input();
Result<std::string> memories_params(const json::Value& arguments, const Setting& setting);
Result<std::string> history_params(const json::Value& arguments, const Setting& setting);
Result<std::string> retrieve_params(const json::Value& arguments, const Setting& setting);
// Content parts may be a string, {type: "text", text} or {type: "text", content}; the last form is stored. The body of
// a message or a thought may be its text alone.
Result<std::string> event_params(const json::Value& arguments, const Setting& setting);
std::string status_input();

// Returns the arguments without _meta, and adds the session's run if the method takes a run and none is named.
std::string plain_params(std::string_view method, const json::Value& arguments, std::string_view run_id);

}  // namespace muniment::mcp
