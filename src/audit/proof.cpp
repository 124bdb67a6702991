// Makes inclusion and consistency proofs from tiles.
#include "audit/proof.hpp"

#include <fmt/format.h>

#include "base/crypto/base64.hpp"
#include "events/entry.hpp"
#include "events/merkle_proof.hpp"

namespace muniment::audit {

std::string proof_file(std::string_view entry, std::int64_t seq, const std::vector<Hash>& hashes,
                       std::string_view note) {
  std::string file = fmt::format("c2sp.org/tlog-proof@v1\nextra {}\nindex {}\n", to_base64(entry), seq);
  for (const Hash& hash : hashes) file += to_base64(view(hash)) + "\n";
  return file.append("\n").append(note);
}

Result<InclusionProof> prove_inclusion(const Publisher& publisher, store::Reader& reader, const events::Event& event,
                                       Deadline deadline) {
  ASSIGN_OR_RETURN(const Published published, publisher.covering(event.seq, deadline));
  return prove_inclusion(TreeToProve{publisher.log_id(), publisher.tiles(), published}, reader, event);
}

Result<InclusionProof> prove_inclusion(const TreeToProve& of, store::Reader& reader, const events::Event& event) {
  ASSIGN_OR_RETURN(const Hash previous, reader.previous_run_hash(event));
  const Published& published = of.published;
  InclusionProof proof{event.seq, published.checkpoint, {}, {}, {}};
  std::string entry;
  events::encode_entry(of.log_id, event, previous, entry);
  proof.leaf = sha256({std::string_view("\0", 1), entry});
  TreeReader tree(of.tiles, published.checkpoint.size);
  ASSIGN_OR_RETURN(proof.hashes, events::inclusion_proof(event.seq, published.checkpoint.size, tree.reader()));
  // Verified before it is returned, because a proof that fails elsewhere would look like an attack.
  if (!events::proves_inclusion(proof.leaf, event.seq, published.checkpoint.size, published.checkpoint.root,
                                proof.hashes)) {
    return Error(Errc::corrupt,
                 fmt::format("event {} or the tree was changed since it was signed. Run muniment-verify", event.seq));
  }
  if (!published.note.empty()) proof.file = proof_file(entry, event.seq, proof.hashes, published.note);
  return proof;
}

Result<std::vector<Hash>> prove_consistency(const TreeToProve& of, std::int64_t first, std::int64_t second) {
  const std::int64_t size = of.published.checkpoint.size;
  if (first > second || second > size) {
    return Error(Errc::invalid_argument,
                 fmt::format("expected first <= second <= {}, the newest checkpoint's size; got {} and {}.", size,
                             first, second));
  }
  TreeReader tree(of.tiles, size);
  return events::consistency_proof(first, second, tree.reader());
}

}  // namespace muniment::audit
