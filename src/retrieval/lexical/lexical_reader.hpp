// Creates readers; lexical_index.hpp declares LexicalReader.
#pragma once

#include <xapian.h>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

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

// Opens the databases of an index. May throw Xapian's exceptions.
using OpenDatabases = std::function<std::pair<Xapian::Database, Xapian::Database>()>;  // live, history

Result<std::unique_ptr<LexicalReader>> open_lexical_reader(OpenDatabases databases,
                                                           std::shared_ptr<IndexChanges> changes);

}  // namespace muniment::retrieval
