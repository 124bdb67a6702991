// Detects that a unified diff weakens tests: skips them, empties their assertions, or removes them.
#pragma once

#include <string_view>

namespace muniment::evidence::completion {

bool weakens_tests(std::string_view text);

}  // namespace muniment::evidence::completion
