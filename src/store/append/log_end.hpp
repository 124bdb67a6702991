// The end of a log, as a writer finds it when it takes the log over.
#pragma once

#include <map>
#include <optional>

#include "events/merkle.hpp"
#include "store/append/append_connection.hpp"
#include "store/read/reader.hpp"

namespace muniment::store {

// Which sizes of a log are of interest, and the roots of those that it has.
using RootsBySize = std::map<std::int64_t, std::optional<Hash>>;

struct FoundTree {
  events::MerkleEdge edge;
  std::int64_t stored_size = 0;  // of the newest checkpoint in the database
};

// The tree up to the event `last_seq`, from a checkpoint below all `roots`, which are filled in on the way; every event
// from there on is held against its own hash: a log whose end was changed is not appended to. Errors: corrupt;
// system_error when the log ends before its newest checkpoint.
Result<FoundTree> find_tree(AppendConnection& connection, Reader& reader, const Uuid& log_id, std::int64_t last_seq,
                            RootsBySize& roots);

}  // namespace muniment::store
