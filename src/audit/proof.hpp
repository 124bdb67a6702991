// Proofs that can be checked with a key alone: an event is in the log (a C2SP tlog-proof with the hashed entry), or the
// log only grew (docs/format.md, Proof files).
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
  std::string file;          // empty if the log has no key, since an unsigned proof is no evidence for others
};

// A tree whose tiles exist up to the published size. The objects that it refers to outlive it.
struct TreeToProve {
  const Uuid& log_id;
  const Fd& tiles;
  Published published;
};

// Proves an event of the reader's log within the published size. Errors: corrupt, unavailable.
Result<InclusionProof> prove_inclusion(const TreeToProve& tree, store::Reader& reader, const events::Event& event);
// Proves an event of the current log. Waits until a checkpoint covers it. Errors: also deadline_exceeded.
Result<InclusionProof> prove_inclusion(const Publisher& publisher, store::Reader& reader, const events::Event& event,
                                       Deadline deadline);

// Errors: invalid_argument if the sizes are not in order or exceed the published size.
Result<std::vector<Hash>> prove_consistency(const TreeToProve& tree, std::int64_t first, std::int64_t second);

// Writes a C2SP tlog-proof.
std::string proof_file(std::string_view entry, std::int64_t seq, const std::vector<Hash>& hashes,
                       std::string_view note);

}  // namespace muniment::audit
