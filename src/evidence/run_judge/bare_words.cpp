#include "evidence/run_judge/bare_words.hpp"

#include <span>
#include <string_view>

#include "evidence/shell/command_words.hpp"
#include "evidence/shell/script.hpp"

namespace muniment::evidence::run_judge {
namespace {

using shell::base_name;

// /usr/bin/pytest, node_modules/.bin/jest; not bin/test, which is a script of the project and not the shell builtin.
bool is_installed(std::string_view program) {
  const bool in_bin = program.starts_with("/") || program.starts_with("bin/") ||
                      program.find("/bin/") != std::string_view::npos ||
                      program.find("/.bin/") != std::string_view::npos;
  return in_bin && base_name(program) != "test";
}

// Removes `python … -m` before a module; false: there is none.
bool enter_module(std::span<const std::string>& words) {
  if (words.size() < 3 || !shell::is_python(base_name(words[0]))) return false;
  std::size_t at = 1;
  while (at < words.size() && words[at].starts_with("-") && words[at] != "-m" && words[at] != "-c") ++at;
  if (at + 1 >= words.size() || words[at] != "-m") return false;
  words = words.subspan(at + 1);
  return true;
}

// Removes a word of the shell before a command, or `coverage run`.
bool enter_command(std::span<const std::string>& words) {
  if (shell::holds_word("if then do ! while", words[0])) {
    words = words.subspan(1);
    return true;
  }
  if (base_name(words[0]) != "coverage" || words.size() < 2 || words[1] != "run") return false;
  words = words.subspan(2);
  while (!words.empty() && words[0].starts_with("-")) words = words.subspan(1);
  return true;
}

}  // namespace

std::vector<std::string> bare_words(const std::vector<std::string>& all) {
  std::span<const std::string> words = all;
  shell::Reading reading;
  for (bool changed = true; changed && !words.empty();) {
    while (!words.empty() && shell::is_assignment(words[0])) words = words.subspan(1);
    changed = !words.empty() && (enter_command(words) || shell::unwrap(words, reading) || enter_module(words));
  }
  std::vector<std::string> bare(words.begin(), words.end());
  if (!bare.empty() && is_installed(bare.front())) bare.front() = std::string(base_name(bare.front()));
  return bare;
}

}  // namespace muniment::evidence::run_judge
