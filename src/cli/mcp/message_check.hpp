// Judges whether every JSON parser reads a line as the relay does: only then is what the relay records what the other
// side gets.
#pragma once

#include <string>
#include <string_view>

namespace muniment::cli {

// Why a line, its line feed included, might be read otherwise than messages_of and skim_message read it; empty: it is
// blank, or exactly one JSON-RPC message or batch. A carriage return inside it is a reason, because many servers take
// it for the end of a line; so is a member that occurs twice, of which some parsers take the first.
std::string doubt_about(std::string_view line);

// Is the value a text or a number, as the id of a request has to be?
bool is_request_id(std::string_view value);

}  // namespace muniment::cli
