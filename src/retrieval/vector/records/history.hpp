// The closed vectors: on disk only, sorted by when they were closed, so that memory does not grow with
// the years and a search as of a moment reads those alone that were closed after it.
#pragma once

#include "base/result.hpp"
#include "retrieval/vector/compiled_filter.hpp"
#include "retrieval/vector/live_search.hpp"
#include "retrieval/vector/records/record_store.hpp"
#include "retrieval/vector/space.hpp"

namespace muniment::retrieval::vec {

// Adds the best of those that were valid at the filter's as_of. Errors: corrupt.
Status search_history(const RecordStore& store, const RecordStore::Moment& at, const Space& space, const Probe& probe,
                      const CompiledFilter& filter, BestChunks& best);

// That no record of the history is missing or stale: once for each open, before it is first relied on. Errors: corrupt.
Status check_history(const RecordStore& store, const RecordStore::Moment* at, Space& space);

}  // namespace muniment::retrieval::vec
