// Tells whether the program that runs tests is a program of the machine, or the agent's own.
#pragma once

#include <string>
#include <vector>

#include "cli/exec/git.hpp"

namespace muniment::cli {

struct TestProgram {
  std::string path;  // resolved path of the command's program; empty: not found
  std::string own;   // the reason why the agent wrote what runs, with the file or variable; empty: none was found
};

// Examines the command as it would start in the folder with the environment of this process. A file of the tree is not
// the agent's own if it equals that of the commit; one elsewhere, if it is older than the task.
TestProgram test_program(const std::vector<std::string>& argv, const std::string& folder, const TaskBase& base);

}  // namespace muniment::cli
