// Places of a text that are still to be filled: TODO, TBD, [PENDING], <<REPLACE>>, ___, ???, "XX passed", and what
// stands for a value in a field "name: value".
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace muniment::evidence::completion {

enum class Blank : std::uint8_t {
  no,
  soft,  // none, null, n/a: many tools print it
  hard,
};

// Classifies the value of a field, or a whole text.
Blank blank_kind(std::string_view value);

// A line's field; `name` is empty where the line has none.
struct Field {
  std::string_view name, value;
  bool promises_result = false;  // the name is one of a result: "Test results"
};
Field field_of(std::string_view line);

// Blanks inside a line: words in capitals, template slots, letters where a count belongs.
std::size_t blanks_inside(std::string_view line);

}  // namespace muniment::evidence::completion
