// The search child's own side: owns Xapian, RocksDB and the embedders in a sandbox, and answers on the channels that it
// was started with. Each channel has a thread, so that neither a slow search nor indexing delays another search.
#pragma once

#include <functional>
#include <memory>

#include "retrieval/engine/engine.hpp"

namespace muniment::retrieval {

// Indices of the channels among the inherited descriptors.
inline constexpr std::size_t index_channel = 0;
inline constexpr std::size_t control_channel = 1;  // setup, then status
inline constexpr std::size_t first_search_channel = 2;

struct SearchChildOptions {
  // Tests replace the engine with one that crashes, hangs or returns invalid data.
  std::function<Result<std::unique_ptr<Engine>>(const Engine::Options&)> open_engine = Engine::open;
};

// Serves from descriptor `first_channel` on until the daemon closes the channels. Returns the exit status, 0 after an
// orderly stop; the process should then exit at once.
int serve_search(const SearchChildOptions& options, int first_channel);

}  // namespace muniment::retrieval
