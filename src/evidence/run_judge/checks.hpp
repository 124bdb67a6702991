// The effects of a command that can support a claim: it runs tests, builds, deploys, or changes files.
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
  std::string command;               // the command line, for display
  std::vector<std::string> targets;  // files and test names to which the run is limited; empty: all
  bool status_speaks = false;        // the exit status of the whole line is the exit status of this command
  bool output_speaks = true;         // a test summary in the output of the whole line comes from this command
};

struct FileEffect {
  std::string path;
  bool deleted = false;
};

// The effects of a command line, or of an argument vector.
struct CommandEffects {
  std::vector<CheckRun> checks;
  std::vector<FileEffect> files;  // written or deleted according to the command line
  bool changes_tree = false;      // changes files that the command line does not name: git checkout, patch, black .
};

CommandEffects effects_of_line(std::string_view line);
CommandEffects effects_of_argv(const std::vector<std::string>& argv);

// Returns the effects of a notebook cell in Python: create_file("x.py"), edit_file_by_replace("x.py", …).
CommandEffects effects_of_python(std::string_view code);

// Returns whether the file is outside of the working tree: /tmp, /dev.
bool is_scratch(std::string_view path);

}  // namespace muniment::evidence::run_judge
