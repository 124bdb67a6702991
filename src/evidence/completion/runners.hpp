// The table of test runners: how a command line shows that one runs, what each of its arguments does, and how the
// runner shows the counts of a run. An argument that the row does not name is not understood.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace muniment::evidence::completion {

// The options of a program. Each member is a list of names, separated by spaces.
struct Options {
  std::string_view switches{};   // change neither what runs nor where, and need no value
  std::string_view values{};     // the same with a value; an option that is also a switch may lack it
  std::string_view words{};      // the same with a value that is a plain word: a format of the program's own, no file
  std::string_view folders{};    // the program runs in the folder that is the value
  std::string_view paths{};      // the value is an operand
  std::string_view selecting{};  // the program runs a part of the tests, or reads another configuration
};

struct Runner {
  enum class Operands : std::uint8_t {
    none,      // the runner takes no operands
    targets,   // names of targets in a file of the project
    any,       // each operand selects tests
    paths,     // folders and files of tests; without an operand the runner takes all below its folder
    packages,  // the same of Go: only `/...` includes the folders below
  };

  std::string_view programs{};     // base names or Python modules, separated by spaces
  std::string_view subcommands{};  // one of them must follow the name; empty: the program only runs tests
  Options options{};
  Operands operands = Operands::none;
  std::string_view test_files{};  // patterns of the names of test files, separated by spaces; empty: they have none
  std::string_view settings{};    // files from which it takes settings also above the working tree
  bool ends_with_counts = false;  // each run that reaches its end prints counts that the readers of reports know
  std::string_view counts{};      // how it shows its counts, as an imperative; empty: by JUnit XML
};

// Returns the row of a program or Python module with this base name; nullptr: it is no runner.
const Runner* runner_of(std::string_view name);

// The row of a program of GoogleTest, which may have any name.
const Runner& googletest();

// Returns whether the program runs tests if it has this argument.
bool is_subcommand(const Runner& runner, std::string_view argument);

// How to make the runner show its counts, as a sentence.
std::string counts_advice(const Runner* runner);

// The argument by which a runner runs only a part of the tests, or others: `-k login`, a node id, `-run=TestA`.
struct Selection {
  std::string argument;  // empty: the runner runs what its configuration says
  std::string names;     // the part that it names; empty if it leaves tests out or changes the configuration
};

// The option at the beginning of `words`.
struct Option {
  enum class Effect : std::uint8_t { none, folder, path, selects, unknown };
  Effect effect = Effect::unknown;
  std::string flag, value;
  std::size_t words = 1;  // number of words that belong to it
};
Option read_option(const Options& options, std::span<const std::string> words);

// The statements of a command line about the run, beside its program.
struct Arguments {
  Selection selection;             // the first argument that selects tests
  std::string unknown;             // the first word that is not understood; empty: every word is
  std::string folder;              // where the runner runs, relative to the command's folder; empty: there
  std::vector<std::string> paths;  // operands: folders and files of tests

  void enter(std::string_view path);         // the runner runs in this folder
  void note_unknown(std::string_view word);  // keeps the first one
};
void read_arguments(const Runner& row, std::span<const std::string> words, Arguments& found);

bool holds_word(std::string_view list, std::string_view word);  // `list`: words, separated by spaces

// Calls `use` with each word of a list whose words are separated by `separator`.
template <typename Use>
void each_listed(std::string_view list, char separator, Use use) {
  while (!list.empty()) {
    const std::size_t end = list.find(separator) == std::string_view::npos ? list.size() : list.find(separator);
    if (end > 0) use(list.substr(0, end));
    list.remove_prefix(end + (end < list.size() ? 1 : 0));
  }
}

}  // namespace muniment::evidence::completion
