// Creates readers; lexical_index.hpp declares LexicalReader.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "retrieval/lexical/chunk_table.hpp"
#include "retrieval/lexical/lexical_index.hpp"

namespace muniment::retrieval {

// Counts the changes of the index since it was opened: after a commit a reader refreshes, and after a rewrite it opens
// the databases again. Readers must not open them while they are replaced.
struct IndexChanges {
  std::atomic<std::uint64_t> commits = 0;
  std::atomic<std::uint64_t> rewritten = 0;
  std::mutex places;
  ChunkTables tables;
  std::mutex learning;
  ChunkId learned = 0;  // the last live chunk in the tables; guarded by `learning`
};

Result<std::unique_ptr<LexicalReader>> open_lexical_reader(const std::string& folder,
                                                           std::shared_ptr<IndexChanges> changes);

}  // namespace muniment::retrieval
