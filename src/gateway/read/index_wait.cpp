// Blocks a worker until the search indexes have reached a position.
#include "gateway/read/index_wait.hpp"

#include <algorithm>
#include <chrono>
#include <functional>

#include "gateway/call.hpp"
#include "gateway/services.hpp"
#include "retrieval/service.hpp"

namespace muniment::gateway {
namespace {

constexpr std::chrono::milliseconds look_every{100};

// `gone` returns true once the client has stopped waiting.
Status wait_for(Services& services, std::int64_t seq, Deadline deadline, const std::function<bool()>& gone) {
  retrieval::Retriever& retriever = services.retrieval.retriever();
  if (retriever.wait_for(seq, Deadline())) return success();
  const WorkerSlot waiting(services.index_waits);
  RETURN_IF_ERROR(waiting.admitted("requests already wait for the search indexes"));
  for (;;) {
    const Monotonic now = std::chrono::steady_clock::now();
    Status waited = retriever.wait_for(seq, std::min(deadline, Deadline(now + look_every)));
    const bool behind = !waited && waited.error().code == Errc::deadline_exceeded;
    if (!behind || std::chrono::steady_clock::now() >= deadline || gone()) return waited;
  }
}

}  // namespace

Status wait_for_min_seq(Call& call) {
  const auto min_seq = call.params["min_seq"].as_int();
  if (!min_seq) return success();
  std::int64_t size = call.services.tail.next_seq();
  // The caller may have read a commit of which the append thread is not informed yet.
  if (*min_seq >= size) {
    ASSIGN_OR_RETURN(size, call.reader->log_size());
  }
  if (*min_seq >= size) {
    return Error(Errc::invalid_argument, "min_seq: " + std::to_string(*min_seq) + " is not in the log, which has " +
                                             std::to_string(size) + " events so far. Pass a seq from a reply.");
  }
  return wait_for(call.services, *min_seq, call.deadline,
                  [&] { return call.write_state != nullptr && call.write_state->is_answered(); });
}

Status wait_until_searchable(Services& services, std::int64_t seq, Deadline deadline) {
  return wait_for(services, seq, deadline, [] { return false; });
}

}  // namespace muniment::gateway
