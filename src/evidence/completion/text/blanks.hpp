// Finds unfilled places of a text: TODO, TBD, [PENDING], <<REPLACE>>, ___, ???, "XX passed", and placeholders in the
// value of a field "name: value".
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace muniment::evidence::completion {

enum class Blank : std::uint8_t {
  no,
  soft,  // none, null, n/a: values that many tools print
  hard,
};

// Classifies the value of a field, or a whole text.
Blank blank_kind(std::string_view value);

// The field of a line; `name` is empty if the line has no field.
struct Field {
  std::string_view name, value;
  bool promises_result = false;  // the name announces a result: "Test results"
};
Field field_of(std::string_view line);

// Number of blanks inside a line: words in capitals, template slots, letters in place of a count.
std::size_t blanks_inside(std::string_view line);

}  // namespace muniment::evidence::completion
