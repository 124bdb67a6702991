// Reads a tool's arguments by its input schema, because hosts and models often send a value as text.
#pragma once

#include <string>
#include <string_view>

#include "base/json/json.hpp"

namespace muniment::mcp {

// Returns `arguments` as a JSON object whose members have the types of the schema, as far as they are meant:
//   array, object         from the text of its JSON
//   integer, number       from text; 3.0 is the integer 3
//   boolean               from "true" and "false"
//   array                 from one of its items; an object with one required text from that text
//   an optional member    omitted if it is null
// A member that the schema calls text is never parsed. A value without such a reading remains, and the method refuses
// it. Absent arguments are an empty object.
std::string typed_arguments(const json::Value& schema, const json::Value& arguments);

}  // namespace muniment::mcp
