// The cursor of a page: the position of the next page and a hash of the question, so that a cursor of a different list
// is refused. It is opaque to clients but not secret, because access is checked for each page.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/json/json.hpp"
#include "base/result.hpp"

namespace muniment::gateway {

// Returns the text that identifies a question: the method and its parameters, without those that only set the page
// size.
std::string question_of(std::string_view method, const json::Value& params);

std::string make_cursor(std::int64_t position, std::string_view question);
// Returns the position. Errors: invalid_argument.
Result<std::int64_t> read_cursor(std::string_view cursor, std::string_view question);

}  // namespace muniment::gateway
