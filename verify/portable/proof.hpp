// Verifies a proof file (docs/format.md, Proof files), which shows that one event is in the log, without access to the
// log.
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
  std::string entry;  // encoded entry
  std::int64_t index = 0;
  std::vector<Hash> hashes;  // starts with the leaf's sibling
  CheckpointFile checkpoint;
};

// Errors: corrupt.
Result<ProofFile> parse_proof(std::string_view text);

struct ProofReport {
  Verdict verdict = Verdict::unreadable;
  std::string problem;         // reason why it is unreadable
  std::optional<Entry> entry;  // the proven event
  Hash run_hash{}, leaf_hash{}, root{};
  std::string origin;  // the origin line
  std::int64_t size = 0;
  bool receipt_fits = false;  // a receipt was given and belongs to this entry
  bool body_fits = false;     // its body matches the hash
  Signatures signatures;
  std::vector<Finding> findings;
  Time started, ended;
};

struct ProofOptions {
  std::string proof;
  std::vector<std::string> keys;  // files of vkeys
  std::string receipt;            // file with a receipt, or with an event, its salt and its body; empty: none
};

ProofReport verify_proof(const ProofOptions& options);

// Judges texts instead of files. `receipt`: nullopt if none was given.
ProofReport judge_proof(std::string_view proof, const std::vector<VerifierKey>& keys,
                        const std::optional<std::string>& receipt);

std::string text_of(const ProofReport& report);
std::string json_of(const ProofReport& report);

}  // namespace muniment::verify
