#include "retrieval/child/remote_options.hpp"

#include <algorithm>

namespace muniment::retrieval {

namespace {

// Whoever asks a question waits for its vector, and has other lanes; documents have time.
constexpr std::int64_t query_ms_max = 2'000;
constexpr std::int64_t query_ms_more = 500;  // for the way there and back

}  // namespace

Result<RemoteOptions> http_remote(const HttpEmbedderOptions& options) {
  HttpEmbedderOptions checked = options;
  checked.dimension = std::max<std::size_t>(options.dimension, 1);  // of no matter, but then it is not asked
  RETURN_IF_ERROR(open_http(checked));
  const std::int64_t query_ms = std::min(options.timeout_ms, query_ms_max);
  RemoteOptions remote;
  remote.query_patience = std::chrono::milliseconds(query_ms + query_ms_more);
  remote.open = [options, query_ms](const WantedEmbedder& wanted) {
    HttpEmbedderOptions chosen = options;
    if (wanted.dimension > 0) chosen.dimension = wanted.dimension;
    if (wanted.kind == TextKind::query) chosen.timeout_ms = query_ms;
    chosen.given_up = wanted.given_up;
    return open_http(chosen);
  };
  return remote;
}

}  // namespace muniment::retrieval
