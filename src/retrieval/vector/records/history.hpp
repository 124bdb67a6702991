// The closed vectors: on disk only, sorted by their closing. Therefore memory does not grow over the years, and a
// search as of a position reads only the vectors that were closed after it.
#pragma once

#include "base/result.hpp"
#include "retrieval/vector/compiled_filter.hpp"
#include "retrieval/vector/live_search.hpp"
#include "retrieval/vector/records/record_store.hpp"
#include "retrieval/vector/space.hpp"

namespace muniment::retrieval::vec {

// Adds the best vectors that were valid at the filter's as_of. Errors: corrupt.
Status search_history(const RecordStore& store, const RecordStore::Moment& at, const Space& space, const Probe& probe,
                      const CompiledFilter& filter, BestChunks& best);

// Checks that no record of the history is missing or stale: once per open, before its first use. Errors: corrupt.
Status check_history(const RecordStore& store, const RecordStore::Moment* at, Space& space);

}  // namespace muniment::retrieval::vec
