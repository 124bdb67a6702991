// Checks whether every JSON parser reads a line as the relay does, so that the relay records exactly the data that the
// other side receives.
#pragma once

#include <string>
#include <string_view>

namespace muniment::cli {

// Returns the reason why a line, including its line feed, might be read differently than by messages_of and
// skim_message; empty if it is blank or exactly one JSON-RPC message or batch. One reason is a carriage return, which
// many servers treat as the end of a line. A second one is a duplicate member, of which some parsers use the first.
std::string doubt_about(std::string_view line);

// Returns whether the value is a string or a number, as required for the id of a request.
bool is_request_id(std::string_view value);

}  // namespace muniment::cli
