// A page's cursor: where the next page begins, and a hash of the question, so that a cursor is not
// taken to another list. Opaque to clients; no secret, since every page is admitted anew.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/json/json.hpp"
#include "base/result.hpp"

namespace muniment::gateway {

// What identifies a question: the method and its parameters, but for those that only cut the page.
std::string question_of(std::string_view method, const json::Value& params);

std::string make_cursor(std::int64_t position, std::string_view question);
// Errors: invalid_argument.
Result<std::int64_t> read_cursor(std::string_view cursor, std::string_view question);

}  // namespace muniment::gateway
