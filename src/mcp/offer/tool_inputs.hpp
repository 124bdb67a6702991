// Inputs of the tools whose arguments differ from the parameters of their native method.
#pragma once

#include <string>
#include <string_view>

#include "base/json/json.hpp"
#include "base/result.hpp"

namespace muniment::mcp {

// {corpus, wait?} and the fields of one document.
std::string remember_input();
Result<std::string> remember_params(const json::Value& arguments, std::string_view run_id);
Result<std::string> retrieve_params(const json::Value& arguments, std::string_view run_id);
// Content parts may be a string, {type: "text", text} or {type: "text", content}; the last form is stored.
Result<std::string> event_params(const json::Value& arguments, std::string_view run_id);
std::string status_input();

// Returns the arguments without _meta, and adds the session's run if the method takes a run and none is named.
std::string plain_params(std::string_view method, const json::Value& arguments, std::string_view run_id);

}  // namespace muniment::mcp
