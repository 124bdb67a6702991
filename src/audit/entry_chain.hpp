// Appends the entries of a log to its tree, each chained to the previous event of its run (docs/format.md, Entries).
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

// Returns the error for a log that lacks the event after the tree's end.
Error missing_event(const TreeWriter& writer, const store::Reader& reader);

class EntryChain {
 public:
  explicit EntryChain(const Uuid& log_id) : log_id_(log_id) {}

  // Appends the next event of the log. Errors: corrupt if it is not the next one, or the previous event of its run is
  // missing; those of reading and of writing.
  Status add(const events::Event& event, store::Reader& reader, TreeWriter& writer);
  // Call this after leaves were added by other means: the remembered hashes are outdated.
  void forget() { last_.clear(); }

 private:
  const Uuid log_id_;
  std::unordered_map<std::int64_t, Hash> last_;  // run_no → its last run_hash
};

}  // namespace muniment::audit
