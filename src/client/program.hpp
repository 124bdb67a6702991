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
  void (*add)(CLI::App& app, Session& session) = nullptr;
  std::string_view program{};  // program in the same folder that has the one command and takes the place of this one
  std::string_view text{};     // what that command does, as that program says
  std::string_view with_capsule{};  // program that has the command if --capsule is given; empty: the same
  bool hidden = false;              // declared only if the command line names it
};
constexpr Family in_program(std::string_view program, std::string_view name, std::string_view text,
                            std::string_view with_capsule = {}) {
  return {name, nullptr, program, text, with_capsule};
}

struct Program {
  std::span<const Family> families;
  std::string_view footer{};
  bool has_capsules = true;  // accepts --capsule
};

// Runs the command of a command line. Returns an exit code.
int run_program(const Program& program, int argc, char** argv, Execution execution);

// Becomes a program in the same folder. Returns an exit code only if it cannot be started.
int become(std::string_view program, char** argv);

// Returns the command tree (base/config/command_tree.hpp) of a program in the same folder; empty if it cannot be
// started.
std::string tree_of(std::string_view program);

// Reserves the descriptors of standard streams that the caller closed, so that no file opened later gets their numbers.
void open_standard_streams();

}  // namespace muniment::cli
