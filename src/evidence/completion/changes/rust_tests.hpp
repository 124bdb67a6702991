// Finds the tests within a Rust program: items of `#[cfg(test)]` and `#[test]`, and examples in documentation.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace muniment::evidence::completion {

enum class RustLine : std::uint8_t { program, test, example };

// Returns the kind of each line. An item has the attributes and comments before it; an example has its fences. Examples
// that are no Rust (```text, ```ignore) belong to the program.
std::vector<RustLine> rust_lines(std::string_view text);

// Returns whether the diff of one program, with all lines as context, changes its tests: it removes or changes a line
// of a test or an example, makes tests part of the program, or adds lines to tests that are no tests of their own
// (only_adds_tests). New examples and the first tests of a program are no changes.
bool changes_rust_tests(std::string_view diff, std::string_view old_text, std::string_view new_text);

}  // namespace muniment::evidence::completion
