// What the command line of muniment-verify says.
#pragma once

#include <string>
#include <variant>

#include "verify/portable/bundle.hpp"
#include "verify/portable/proof.hpp"
#include "verify/verify.hpp"

namespace muniment::verify {

inline constexpr int usage_exit_code = 3;

struct CommandLine {
  Options options;       // of a log
  ProofOptions proof;    // of a proof, if its path is not empty
  BundleOptions bundle;  // of a bundle, if its path is not empty
  bool unsigned_ok = false;
  bool json = false;
  std::string report;  // a file for the report as JSON, besides; empty: none
};

// The exit code instead, when there is nothing to verify: help was asked for, or the usage is wrong.
std::variant<CommandLine, int> parse_command_line(int argc, char** argv);

}  // namespace muniment::verify
