// Explains why a query or a context has no passages, and what to do.
#pragma once

#include <string>

#include "base/json/json.hpp"
#include "base/result.hpp"

namespace muniment::cli {

// `result`: a reply with a member reason. `corpus`: the corpus of the question; empty: none was given beside it.
// Errors: not_found for a corpus or run that does not exist.
Result<std::string> empty_answer(const json::Value& result, const std::string& question, const std::string& corpus);

}  // namespace muniment::cli
