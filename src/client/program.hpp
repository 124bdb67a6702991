// The frame of a program with commands: global options, help, mistakes in a command line, exit codes, and the commands
// that another program has.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "client/command.hpp"

namespace muniment::cli {

// Commands by the words that follow "muniment", separated by spaces. Only those of the word in the command line are
// declared, because declaring all of them takes longer than most commands.
struct Family {
  std::string_view names;
  void (*add)(CLI::App& app, Session& session);
};

// A command of another program in the same folder, which takes the place of this process.
struct Elsewhere {
  std::string_view name, text, program;
};

struct Program {
  std::span<const Family> families;
  std::span<const Elsewhere> elsewhere{};  // all of one program
  std::string_view footer{};
};

// Runs the command of a command line. Returns an exit code.
int run_program(const Program& program, int argc, char** argv, Execution execution);

// Returns the command tree (base/config/command_tree.hpp) of a program in the same folder; empty if it cannot be
// started.
std::string tree_of(std::string_view program);

// Reserves the descriptors of standard streams that the caller closed, so that no file opened later gets their numbers.
void open_standard_streams();

}  // namespace muniment::cli
