// The entries of a log's tree, event by event: each is chained to its run's event before it (docs/format.md, Entries).
#pragma once

#include <cstdint>
#include <unordered_map>

#include "audit/tree_files.hpp"
#include "base/crypto/sha256.hpp"
#include "base/ids.hpp"
#include "base/result.hpp"
#include "events/event.hpp"
#include "store/read/reader.hpp"

namespace muniment::audit {

// What is said where the log does not go on behind the tree.
Error missing_event(const TreeWriter& writer, const store::Reader& reader);

class EntryChain {
 public:
  explicit EntryChain(const Uuid& log_id) : log_id_(log_id) {}

  // Puts the next event of the log behind the others. Errors: corrupt when it is not the next one, or the event before
  // it in its run is missing; those of reading and of writing.
  Status add(const events::Event& event, store::Reader& reader, TreeWriter& writer);
  // Others than `add` went on with the tree: what was remembered of its runs is old.
  void forget() { last_.clear(); }

 private:
  const Uuid log_id_;
  std::unordered_map<std::int64_t, Hash> last_;  // run_no → its last run_hash
};

}  // namespace muniment::audit
