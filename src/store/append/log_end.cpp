#include "store/append/log_end.hpp"

#include <unordered_map>

#include "events/entry.hpp"

namespace muniment::store {
namespace {

Status follow_tree(Reader& reader, const Uuid& log_id, std::int64_t last_seq, events::MerkleEdge& edge,
                   RootsBySize& roots) {
  std::unordered_map<std::int64_t, Hash> chains;
  const auto note_root = [&] {
    const auto wanted = roots.find(edge.size());
    if (wanted != roots.end()) wanted->second = edge.root();
  };
  note_root();
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
      note_root();
    }
    if (events.empty())
      return Error(Errc::corrupt, "event " + std::to_string(edge.size()) + " is missing. Run muniment-verify");
  }
  return success();
}

}  // namespace

Result<FoundTree> find_tree(AppendConnection& connection, Reader& reader, const Uuid& log_id, std::int64_t last_seq,
                            RootsBySize& roots) {
  FoundTree tree;
  ASSIGN_OR_RETURN(const events::MerkleEdge stored, connection.last_checkpoint());
  tree.stored_size = stored.size();
  if (last_seq + 1 < stored.size()) {
    return Error(Errc::system_error, "log_rolled_back: the log has " + std::to_string(last_seq + 1) +
                                         " events, its last checkpoint " + std::to_string(stored.size()) +
                                         ". Run muniment-verify, and see docs/runbook.md#log_rolled_back");
  }
  tree.edge = stored;
  roots.emplace(stored.size(), std::nullopt);
  if (const std::int64_t least = roots.begin()->first; least < stored.size()) {
    ASSIGN_OR_RETURN(tree.edge, connection.last_checkpoint(least));
  }
  RETURN_IF_ERROR(follow_tree(reader, log_id, last_seq, tree.edge, roots));
  if (roots.at(stored.size()) == stored.root()) return tree;
  return Error(Errc::corrupt,
               "the last checkpoint is not the root of the events before it: the log was changed. Run muniment-verify");
}

}  // namespace muniment::store
