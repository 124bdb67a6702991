// The table of test runners: how a command line shows that one runs, the arguments by which it runs only a part of its
// tests, and how it shows the counts of a run.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace muniment::evidence::completion {

struct Runner {
  // Operands that select tests: every one; a path below a folder, a file or a node id; none.
  enum class Operands : std::uint8_t { any, nested, none };

  std::string_view programs;     // base names or Python modules, separated by spaces
  std::string_view subcommands;  // one of them must follow the name; empty: the program only runs tests
  std::string_view selecting;    // options by which it runs a part of the tests, or reads another configuration
  Operands operands = Operands::none;
  bool ends_with_counts = false;  // each run that reaches its end prints counts that the readers of reports know
  std::string_view counts{};      // how it shows its counts, as an imperative; empty: by JUnit XML
};

// Returns the row of a program or Python module with this base name; nullptr: it is no runner.
const Runner* runner_of(std::string_view name);

// Returns whether the program runs tests if it has this argument.
bool is_subcommand(const Runner& runner, std::string_view argument);

// How to make the runner show its counts, as a sentence.
std::string counts_advice(const Runner* runner);

// The argument by which a runner runs only a part of the tests, or others: `-k login`, a node id, `-run=TestA`.
struct Selection {
  std::string argument;  // empty: the runner runs what its configuration says
  std::string names;     // the part that it names; empty if it leaves tests out or changes the configuration
};
Selection selection_in(std::string_view name, const std::vector<std::string>& arguments);

bool holds_word(std::string_view list, std::string_view word);  // `list`: words, separated by spaces

}  // namespace muniment::evidence::completion
