// Finds the program that a command finally runs.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace muniment::evidence::run_judge {

inline constexpr std::size_t shell_bytes_max = 64 << 10;  // the rest of a longer line is ignored

// Returns the words of the program that finally runs: without variables, sudo, timeout 10, poetry run, python -m …
std::vector<std::string> bare_words(const std::vector<std::string>& words);

}  // namespace muniment::evidence::run_judge
