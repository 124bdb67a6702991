// Which embedding server the daemon asks for its search child, and how.
#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "base/result.hpp"
#include "retrieval/embed/embedder.hpp"

namespace muniment::retrieval {

struct WantedEmbedder {
  TextKind kind = TextKind::document;
  std::size_t dimension = 0;       // 0: it asks the server
  std::function<bool()> given_up;  // what it waits for is not wanted any more
};

struct RemoteOptions {
  std::function<Result<std::unique_ptr<Embedder>>(const WantedEmbedder& wanted)> open;  // none: there is no server
  std::chrono::milliseconds query_patience{2'500};  // a query goes on without it after that: well below search_hang
  std::chrono::milliseconds pause{2'000};           // between two attempts to open it
};

// An HTTP server. What can be wrong without asking it is found now. Errors: invalid_argument, and those of reading the
// key.
Result<RemoteOptions> http_remote(const HttpEmbedderOptions& options);

}  // namespace muniment::retrieval
