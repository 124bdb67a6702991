// Reads and checks the end of a log when a writer takes it over.
#pragma once

#include <map>
#include <optional>

#include "events/merkle.hpp"
#include "store/append/append_connection.hpp"
#include "store/read/reader.hpp"

namespace muniment::store {

// Sizes of a log, each with the root of the tree of that size if the log reaches it.
using RootsBySize = std::map<std::int64_t, std::optional<Hash>>;

struct FoundTree {
  events::MerkleEdge edge;
  std::int64_t stored_size = 0;  // size of the newest checkpoint in the database
};

// Computes the tree up to the event `last_seq`, from a checkpoint below all sizes in `roots`, and fills in their roots.
// It checks every event from there on against its hash, because the daemon must not append to a log whose end was
// changed. Errors: corrupt; system_error if the log ends before its newest checkpoint.
Result<FoundTree> find_tree(AppendConnection& connection, Reader& reader, const Uuid& log_id, std::int64_t last_seq,
                            RootsBySize& roots);

}  // namespace muniment::store
