// Reads the words of a command line before and beside its program: wrappers, options and their values.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace muniment::evidence::shell {

// The options of a program. Each member is a list of names, separated by spaces.
struct Options {
  std::string_view switches{};   // change neither what runs nor where, and need no value
  std::string_view values{};     // the same with a value; an option that is also a switch may lack it
  std::string_view words{};      // the same with a value that is a plain word: a format of the program's own, no file
  std::string_view folders{};    // the program runs in the folder that is the value
  std::string_view paths{};      // the value is an operand
  std::string_view selecting{};  // the program runs a part of what it would run, or reads another configuration
};

// The option at the beginning of `words`.
struct Option {
  enum class Effect : std::uint8_t { none, folder, path, selects, unknown };
  Effect effect = Effect::unknown;
  std::string flag, value;
  std::size_t words = 1;  // number of words that belong to it
};
Option read_option(const Options& options, std::span<const std::string> words);

// The statements of a command line about the run of its program.
struct Reading {
  std::string unknown;                // the first word that is not understood; empty: every word is
  std::string folder;                 // where the program runs, relative to the command's folder; empty: there
  std::vector<std::string> programs;  // the words that name programs, from the first wrapper on

  void enter(std::string_view path);         // the program runs in this folder
  void note_unknown(std::string_view word);  // keeps the first one
};

// Reads options until `end` or the first word that is none, and removes them.
void skip_options(const Options& options, std::string_view end, std::span<const std::string>& words, Reading& reading);

// Removes a wrapper (env, timeout 60, poetry run) with its arguments. Returns false if the words do not begin with one.
bool unwrap(std::span<const std::string>& words, Reading& reading);

// Notes NAME=value of a command line unless the variable belongs to the program under test.
void note_setting(std::string_view setting, Reading& reading);

std::string_view base_name(std::string_view path);
bool is_python(std::string_view program);  // by its base name

bool holds_word(std::string_view list, std::string_view word);  // `list`: words, separated by spaces
// Returns whether the word has only letters, digits and the characters of `also`.
bool is_plain(std::string_view word, std::string_view also);

// Calls `use` with each word of a list whose words are separated by `separator`.
template <typename Use>
void each_listed(std::string_view list, char separator, Use use) {
  while (!list.empty()) {
    const std::size_t end = list.find(separator) == std::string_view::npos ? list.size() : list.find(separator);
    if (end > 0) use(list.substr(0, end));
    list.remove_prefix(end + (end < list.size() ? 1 : 0));
  }
}

}  // namespace muniment::evidence::shell
