// The search child's own side: it owns Xapian, RocksDB and the embedders, in a sandbox, and answers on
// the channels that it was started with. Each channel has a thread of its own, so that a slow search
// holds up nobody else's and indexing holds up none.
#pragma once

#include <functional>
#include <memory>

#include "retrieval/engine/engine.hpp"

namespace muniment::retrieval {

// The places of the channels among those that are handed over.
inline constexpr std::size_t index_channel = 0;
inline constexpr std::size_t control_channel = 1;  // setup, then status
inline constexpr std::size_t first_search_channel = 2;

struct SearchChildOptions {
  // A test's engine crashes, hangs or lies.
  std::function<Result<std::unique_ptr<Engine>>(const Engine::Options&)> open_engine = Engine::open;
};

// Serves from descriptor `first_channel` on until the daemon closes the channels. Its answer is the exit status of
// the process, which should end at once then: 0 after an orderly stop.
int serve_search(const SearchChildOptions& options, int first_channel);

}  // namespace muniment::retrieval
