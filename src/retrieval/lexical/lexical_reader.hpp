// How a reader is made; the rest of it is lexical_index.hpp's LexicalReader.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "retrieval/lexical/chunk_table.hpp"
#include "retrieval/lexical/lexical_index.hpp"

namespace muniment::retrieval {

// What happened to the index since it was opened: after a commit a reader looks for the newer state, and after the
// databases were written anew it opens them again. Nobody opens them while they change places.
struct IndexChanges {
  std::atomic<std::uint64_t> commits = 0;
  std::atomic<std::uint64_t> rewritten = 0;
  std::mutex places;
  ChunkTables tables;
  std::mutex learning;
  ChunkId learned = 0;  // the last live chunk that is in the tables, under `learning`
};

Result<std::unique_ptr<LexicalReader>> open_lexical_reader(const std::string& folder,
                                                           std::shared_ptr<IndexChanges> changes);

}  // namespace muniment::retrieval
