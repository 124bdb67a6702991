// The embedding server that the daemon asks on behalf of its search child.
#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "base/result.hpp"
#include "retrieval/embed/embedder.hpp"

namespace muniment::retrieval {

struct WantedEmbedder {
  TextKind kind = TextKind::document;
  std::size_t dimension = 0;       // 0: ask the server
  std::function<bool()> given_up;  // returns true once the result is not needed any more
};

struct RemoteOptions {
  std::function<Result<std::unique_ptr<Embedder>>(const WantedEmbedder& wanted)> open;  // empty: there is no server
  // After this time a query continues without the lane; far below search_hang.
  std::chrono::milliseconds query_patience{2'500};
  std::chrono::milliseconds pause{2'000};  // between two attempts to open it
};

// Returns the options for an HTTP server. Checks everything that can be checked without a request. Errors:
// invalid_argument, and those of reading the key.
Result<RemoteOptions> http_remote(const HttpEmbedderOptions& options);

}  // namespace muniment::retrieval
