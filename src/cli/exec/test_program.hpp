// Tells what of a command only its machine knows: whether the program that runs tests is the agent's own, and whether
// the command line leaves tests of the working tree out.
#pragma once

#include <string>
#include <vector>

#include "cli/exec/git.hpp"

namespace muniment::cli {

struct TestProgram {
  std::string path;  // resolved path of the command's program; empty: not found
  std::string own;   // the reason why the agent wrote what runs, with the file or variable; empty: none was found
  std::string
      left_out;  // a file of tests that the command line leaves out, relative to the tree; empty: none was found
};

// Examines the command as it would start in the folder with the environment of this process. A file of the tree is not
// the agent's own if it equals that of the commit; one elsewhere, if it is older than the task.
TestProgram test_program(const std::vector<std::string>& argv, const std::string& folder, const TaskBase& base);

}  // namespace muniment::cli
