// The end of a log, as a writer finds it when it takes the log over.
#pragma once

#include "events/merkle.hpp"
#include "store/reader.hpp"

namespace muniment::store {

// Brings the tree from a checkpoint to the event `last_seq`, and holds every event on the way
// against its own hash: a log whose end was changed is not appended to. Errors: corrupt.
Status follow_tree(Reader& reader, const Uuid& log_id, std::int64_t last_seq, events::MerkleEdge& edge);

}  // namespace muniment::store
