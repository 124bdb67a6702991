// Derives the limits of an HTTP embedding server for the search child.
#include "retrieval/child/remote_options.hpp"

#include <algorithm>

namespace muniment::retrieval {

namespace {

// A query waits for its vector and has other lanes; documents may take longer.
constexpr std::int64_t query_ms_max = 2'000;
constexpr std::int64_t query_ms_more = 500;  // for both directions

}  // namespace

Result<RemoteOptions> http_remote(const HttpEmbedderOptions& options) {
  HttpEmbedderOptions checked = options;
  // The value is irrelevant but prevents a request to the server.
  checked.dimension = std::max<std::size_t>(options.dimension, 1);
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
