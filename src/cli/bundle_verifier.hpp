// Asks muniment-verify, the program beside this one, for its verdict on a bundle: code of its own,
// which shares nothing with what wrote the bundle.
#pragma once

#include <string>

#include "base/result.hpp"

namespace muniment::cli {

struct BundleVerdict {
  int exit_code = -1;      // 0 verified, 2 consistent but unsigned; interfaces.md, The verdict
  std::string report;      // its JSON, or what it said instead

  bool verified() const { return exit_code == 0; }
  bool is_unsigned() const { return exit_code == 2; }
};

// `key`: a file of trusted vkeys, or empty. Errors: unavailable when the program cannot be run.
Result<BundleVerdict> verify_bundle(const std::string& bundle, const std::string& key);

// "tampered: seq 5 (body_hash): …", from its report.
std::string verdict_words(const BundleVerdict& verdict);

}  // namespace muniment::cli
