// Loads a shard at the start: scans its records into memory and proves that none is missing.
//
// RocksDB opens without an error if records are missing because a manifest or a log was truncated. Therefore every
// space's header has counts and digests, and the shard's header has a digest of all headers.
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

// Loads all records. Errors: corrupt.
Result<Loaded> load(const RecordStore& store);

}  // namespace muniment::retrieval::vec
