// What a command does that a claim may rest on: it runs tests, builds, deploys, changes files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace muniment::evidence::run_judge {

enum class Check : std::uint8_t { test, build, lint, types, deploy, commit, push, install, run };
inline constexpr std::size_t checks = 9;

struct CheckRun {
  Check check = Check::run;
  std::string command;               // as it was run, for people
  std::vector<std::string> targets;  // files and names of tests that it is limited to; empty: all
  bool status_speaks = false;        // the exit status of the whole line is this command's
  bool output_speaks = true;         // a summary of tests in the output of the whole line is this command's
};

struct FileEffect {
  std::string path;
  bool deleted = false;
};

// Of a command line, or of an argv.
struct CommandEffects {
  std::vector<CheckRun> checks;
  std::vector<FileEffect> files;  // written or deleted, as the command line says
  bool changes_tree = false;      // it changes files that it does not name: git checkout, patch, black .
};

CommandEffects effects_of_line(std::string_view line);
CommandEffects effects_of_argv(const std::vector<std::string>& argv);

// Python of a notebook cell: create_file("x.py"), edit_file_by_replace("x.py", …).
CommandEffects effects_of_python(std::string_view code);

// A file that is no part of the tree that is worked on: /tmp, /dev.
bool is_scratch(std::string_view path);

}  // namespace muniment::evidence::run_judge
