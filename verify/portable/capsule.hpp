// Verifies a capsule (docs/format.md, Capsule) with code of its own: every frame, the chain, the documents against the
// hashes in their descriptions, the newest commit, and the signatures. The search indexes are derived from the frames
// and are not signed: their bytes are held against the commit alone.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/crypto/sha256.hpp"
#include "base/crypto/signed_note.hpp"
#include "base/files/file.hpp"
#include "verify/finding.hpp"
#include "verify/signed/signatures.hpp"
#include "verify/verdict.hpp"

namespace muniment::verify {

struct CapsuleReport {
  Verdict verdict = Verdict::unreadable;
  std::string problem;  // reason why it is unreadable
  std::string id;       // hexadecimal
  std::int64_t frames = 0, documents = 0;
  std::int64_t unsigned_frames = 0;  // data frames after the last trusted signature, without signatures
  std::int64_t torn_bytes = 0;       // after the newest complete state
  Hash chain{};
  Signatures signatures;  // `upto` is the number of the last frame that is covered
  std::vector<Finding> findings;
  Time started, ended;
};

struct CapsuleOptions {
  std::string capsule;
  std::vector<std::string> keys;  // files of vkeys
};

CapsuleReport verify_capsule(const CapsuleOptions& options);

// Judges an open file of `size` bytes.
CapsuleReport judge_capsule(const Fd& file, std::int64_t size, const std::vector<VerifierKey>& keys);

std::string text_of(const CapsuleReport& report);
std::string json_of(const CapsuleReport& report);

}  // namespace muniment::verify
