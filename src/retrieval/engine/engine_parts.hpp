// The engine's two indexes and their state: for engine.cpp, which writes and repairs, and engine_search.cpp, which
// searches.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "retrieval/engine/engine.hpp"
#include "retrieval/engine/vector_lanes.hpp"
#include "retrieval/lexical/lexical_index.hpp"

namespace muniment::retrieval {

// A folder below the engine's own that holds one index. Damage is marked by a file beside it; the next open empties the
// folder.
class IndexFolder {
 public:
  IndexFolder(const std::string& root, std::string name);

  const std::string& path() const { return path_; }
  const std::string& name() const { return name_; }
  bool noted_damaged() const;
  // Returns false if the folder was emptied recently, so that the damage must have another cause.
  bool note_damaged() const;
  Status empty() const;
  void opened();                // records which folder it is
  bool is_still_there() const;  // whether it is the same folder

 private:
  const std::string path_, name_;
  std::uint64_t device_ = 0, inode_ = 0;
};

struct EngineParts {
  explicit EngineParts(const std::string& root) : lexical_folder(root, "lexical"), vector_folder(root, "vector") {}

  explicit EngineParts(std::unique_ptr<LexicalIndex> words, std::unique_ptr<VectorLanes> lanes)
      : lexical_folder({}, {}),
        vector_folder({}, {}),
        lexical(std::move(words)),
        vectors(std::move(lanes)),
        in_folders(false),
        reached(std::max(lexical->watermark(), vectors->watermark())) {}

  IndexFolder lexical_folder, vector_folder;
  std::unique_ptr<LexicalIndex> lexical;
  std::unique_ptr<VectorLanes> vectors;
  std::vector<std::string> rebuilt;
  const bool in_folders = true;  // otherwise the indexes have an owner, who repairs them
  // Highest position that both indexes have reached: a lane that is below it is behind and is left out of answers.
  std::atomic<std::int64_t> reached = 0;

  // Passes an error of an index on to the caller; marks the folder if it is corrupt, so that the next start repairs it.
  Error judged(Error error, const IndexFolder& folder) const;
  Status check_folders() const;  // corrupt if a folder was removed
};

std::unique_ptr<Engine::Searcher> make_searcher(const EngineParts& parts, std::unique_ptr<LexicalReader> reader);

}  // namespace muniment::retrieval
