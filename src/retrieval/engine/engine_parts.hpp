// The engine's two indexes and what is known of both: for engine.cpp, which writes and repairs, and
// engine_search.cpp, which asks.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "retrieval/engine/engine.hpp"
#include "retrieval/engine/vector_lanes.hpp"
#include "retrieval/lexical/lexical_index.hpp"

namespace muniment::retrieval {

// A folder below the engine's own that holds one index. What is damaged is noted in a file beside it, and emptied
// by whoever opens it next.
class IndexFolder {
 public:
  IndexFolder(const std::string& root, std::string name);

  const std::string& path() const { return path_; }
  const std::string& name() const { return name_; }
  bool noted_damaged() const;
  // False: it was emptied only just now, and what seems damaged is something else.
  bool note_damaged() const;
  Status empty() const;
  void opened();                // remembers which folder it is
  bool is_still_there() const;  // the same one

 private:
  const std::string path_, name_;
  std::uint64_t device_ = 0, inode_ = 0;
};

struct EngineParts {
  explicit EngineParts(const std::string& root) : lexical_folder(root, "lexical"), vector_folder(root, "vector") {}

  IndexFolder lexical_folder, vector_folder;
  std::unique_ptr<LexicalIndex> lexical;
  std::unique_ptr<VectorLanes> vectors;
  std::vector<std::string> rebuilt;
  // Up to here both have been, at some time: a lane that is not is behind, and stays out of answers.
  std::atomic<std::int64_t> reached = 0;

  // An error of one of them on its way to the caller: what is corrupt is noted, so that the next start repairs it.
  Error judged(Error error, const IndexFolder& folder) const;
  Status check_folders() const;  // corrupt where somebody took one away
};

std::unique_ptr<Engine::Searcher> make_searcher(const EngineParts& parts, std::unique_ptr<LexicalReader> reader);

}  // namespace muniment::retrieval
