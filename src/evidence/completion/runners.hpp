// The table of test runners: how a command line shows that one runs, what each of its arguments does, and how the
// runner shows the counts of a run. An argument that the row does not name is not understood.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "evidence/shell/command_words.hpp"

namespace muniment::evidence::completion {

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
  shell::Options options{};
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

// The statements of a command line about the tests that it runs.
struct Arguments : shell::Reading {
  Selection selection;                // the first argument that selects tests
  std::vector<std::string> operands;  // folders and files of tests, or targets
};
void read_arguments(const Runner& row, std::span<const std::string> words, Arguments& found);

}  // namespace muniment::evidence::completion
