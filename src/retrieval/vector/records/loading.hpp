// A start: one scan of a shard's records into memory, and the proof that all of them are there.
//
// RocksDB opens without a word when records are missing, after a manifest or a log lost its end. So
// every space's header has its counts and digests, and the shard's header one of all of those.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "base/result.hpp"
#include "retrieval/vector/records/record_store.hpp"
#include "retrieval/vector/records/records.hpp"
#include "retrieval/vector/space.hpp"

namespace muniment::retrieval::vec {

using Spaces = std::map<std::string, std::shared_ptr<Space>, std::less<>>;

struct Loaded {
  ShardHeader header;
  Spaces spaces;
};

// Errors: corrupt.
Result<Loaded> load(const RecordStore& store);

}  // namespace muniment::retrieval::vec
