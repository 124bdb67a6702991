// Proofs that anyone can check with nothing but a key: that an event is in the log (a C2SP
// tlog-proof with the hashed entry), that the log only grew (docs/format.md, Proof files).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "audit/publisher.hpp"
#include "base/result.hpp"
#include "events/event.hpp"
#include "store/read/reader.hpp"

namespace muniment::audit {

struct InclusionProof {
  std::int64_t seq = 0;
  Checkpoint checkpoint;
  Hash leaf{};
  std::vector<Hash> hashes;  // the leaf's sibling first
  std::string file;          // empty: the log has no key, and an unsigned proof proves nothing to anyone else
};

// A tree whose tiles are there up to the size that is published. What it refers to outlives it.
struct TreeToProve {
  const Uuid& log_id;
  const Fd& tiles;
  Published published;
};

// Of an event of the reader's log, within the published size. Errors: corrupt, unavailable.
Result<InclusionProof> prove_inclusion(const TreeToProve& tree, store::Reader& reader, const events::Event& event);
// The same of the log that is written: waits until a checkpoint covers the event. Errors: deadline_exceeded, too.
Result<InclusionProof> prove_inclusion(const Publisher& publisher, store::Reader& reader, const events::Event& event,
                                       Deadline deadline);

// Errors: invalid_argument when the sizes are not published ones in order.
Result<std::vector<Hash>> prove_consistency(const TreeToProve& tree, std::int64_t first, std::int64_t second);

// The C2SP tlog-proof.
std::string proof_file(std::string_view entry, std::int64_t seq, const std::vector<Hash>& hashes,
                       std::string_view note);

}  // namespace muniment::audit
