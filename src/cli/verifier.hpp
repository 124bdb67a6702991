// muniment-verify, the program beside this one: code of its own, which shares nothing with what wrote
// the log, gives the verdict.
#pragma once

#include <string>
#include <vector>

#include "base/crypto/signed_note.hpp"
#include "base/result.hpp"

namespace muniment::cli {

// Runs it with these arguments; its standard output goes to `output`, or to ours where that is
// nullptr. Its exit code (docs/protocol.md, The verdict). Errors: unavailable when it cannot be run.
Result<int> run_verifier(std::vector<std::string> arguments, std::string* output);

// The keys in a file that muniment-verify is to be given: whoever mistyped its name is told before anything is done.
// Errors: as of reading it, and invalid_argument where it holds no key.
Result<std::vector<VerifierKey>> trusted_keys(const std::string& path);

struct BundleVerdict {
  int exit_code = -1;
  std::string report;  // its JSON, or what it said instead

  bool verified() const { return exit_code == 0; }
  bool is_unsigned() const { return exit_code == 2; }
};

// `key`: a file of trusted vkeys, or empty.
Result<BundleVerdict> verify_bundle(const std::string& bundle, const std::string& key);

// "tampered: seq 5 (body_hash): …", from its report.
std::string verdict_words(const BundleVerdict& verdict);

}  // namespace muniment::cli
