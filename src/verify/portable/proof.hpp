// A proof file (docs/format.md, Proof files): that one event is in the log, checked without the log.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "verify/finding.hpp"
#include "verify/log/entry.hpp"
#include "verify/signed/checkpoint_file.hpp"
#include "verify/verdict.hpp"

namespace muniment::verify {

struct ProofFile {
  std::string entry;  // its bytes
  std::int64_t index = 0;
  std::vector<Hash> hashes;  // the leaf's sibling first
  CheckpointFile checkpoint;
};

// Errors: corrupt.
Result<ProofFile> parse_proof(std::string_view text);

struct ProofReport {
  Verdict verdict = Verdict::unreadable;
  std::string problem;         // why it is unreadable
  std::optional<Entry> entry;  // what the log says
  Hash run_hash{}, leaf_hash{}, root{};
  std::string origin;  // the origin line
  std::int64_t size = 0;
  bool receipt_fits = false;  // a receipt was given, and is of this entry
  bool body_fits = false;     // its body is the one that was hashed
  Signatures signatures;
  std::vector<Finding> findings;
  Time started, ended;
};

struct ProofOptions {
  std::string proof;
  std::vector<std::string> keys;  // files of vkeys
  std::string receipt;            // a file: a receipt, or an event with its salt and body; empty: none
};

ProofReport verify_proof(const ProofOptions& options);

// The same on texts; `receipt`: nullopt when there is none.
ProofReport judge_proof(std::string_view proof, const std::vector<VerifierKey>& keys,
                        const std::optional<std::string>& receipt);

std::string text_of(const ProofReport& report);
std::string json_of(const ProofReport& report);

}  // namespace muniment::verify
