// Runs muniment-verify, the program installed beside this one, which gives the verdict on a log, a bundle or a proof.
// It reads, encodes, folds and compares with its own code (verify). With the daemon it shares only src/base:
// hashes, signed notes, JSON, files and archives, the encodings of archived bodies and tile paths, ids, times and
// limits.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/crypto/signed_note.hpp"
#include "base/result.hpp"

namespace muniment::cli {

inline constexpr std::size_t verifier_report_bytes_max = 16 << 20;  // the rest of a longer report is not read

// Runs it with these arguments and writes its standard output to `output`, or to this process' standard output if
// `output` is nullptr. Returns its exit code (docs/protocol.md, The verdict). Errors: unavailable if it cannot be run.
Result<int> run_verifier(std::vector<std::string> arguments, std::string* output);

// Reads the keys in a file that will be passed to muniment-verify, so that a mistyped name is reported before any work.
// Errors: those of reading the file; invalid_argument if it holds no key.
Result<std::vector<VerifierKey>> trusted_keys(const std::string& path);

struct BundleVerdict {
  int exit_code = -1;
  std::string report;  // its JSON, or its output if that is not JSON

  bool verified() const { return exit_code == 0; }
  bool is_unsigned() const { return exit_code == 2; }
};

// Verifies a bundle. `key` is the path of a file of trusted vkeys, or empty.
Result<BundleVerdict> verify_bundle(const std::string& bundle, const std::string& key);

// Summarizes the report: "tampered: seq 5 (body_hash): …".
std::string verdict_words(const BundleVerdict& verdict);

}  // namespace muniment::cli
