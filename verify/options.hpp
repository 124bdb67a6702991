// Parses the command line of muniment-verify.
#pragma once

#include <string>
#include <variant>

#include "verify/portable/bundle.hpp"
#include "verify/portable/capsule.hpp"
#include "verify/portable/proof.hpp"
#include "verify/verify.hpp"

namespace muniment::verify {

inline constexpr int usage_exit_code = 3;

struct CommandLine {
  Options options;         // for a log
  ProofOptions proof;      // for a proof, if its path is not empty
  BundleOptions bundle;    // for a bundle, if its path is not empty
  CapsuleOptions capsule;  // for a capsule, if its path is not empty
  bool unsigned_ok = false;
  bool json = false;
  std::string report;  // additional report file (JSON); empty: none
};

// Returns the exit code instead if help was requested or the usage is wrong.
std::variant<CommandLine, int> parse_command_line(int argc, char** argv);

}  // namespace muniment::verify
