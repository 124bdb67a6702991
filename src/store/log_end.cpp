#include "store/log_end.hpp"

#include <unordered_map>

#include "events/entry.hpp"

namespace muniment::store {

Status follow_tree(Reader& reader, const Uuid& log_id, std::int64_t last_seq, events::MerkleEdge& edge) {
  std::unordered_map<std::int64_t, Hash> chains;
  EventFilter newer;
  newer.archived_bodies = false;
  while (edge.size() <= last_seq) {
    newer.from_seq = edge.size();
    ASSIGN_OR_RETURN(const auto events, reader.events(newer, 1'000));
    for (const events::Event& event : events) {
      auto chain = chains.find(event.run_no);
      if (chain == chains.end()) {
        ASSIGN_OR_RETURN(const Hash before, reader.previous_run_hash(event));
        chain = chains.emplace(event.run_no, before).first;
      }
      const events::EntryHashes hashes = events::hash_entry(log_id, event, chain->second);
      if (event.seq != edge.size() || hashes.run_hash != event.run_hash) {
        return Error(Errc::corrupt, "event " + std::to_string(edge.size()) +
                                        " does not fit its hash: the log was changed. Run muniment-verify");
      }
      chain->second = hashes.run_hash;
      edge.add(hashes.leaf_hash);
    }
    if (events.empty()) return Error(Errc::corrupt, "event " + std::to_string(edge.size()) + " is missing. Run muniment-verify");
  }
  return success();
}

}  // namespace muniment::store
