// Sends searches, batches and status requests to the search child.
#include "retrieval/child/search/search_client.hpp"

#include <algorithm>
#include <mutex>

#include "base/limits.hpp"

#include "retrieval/child/search/channel_pool.hpp"
#include "retrieval/child/search/search_child.hpp"
#include "retrieval/child/search/search_supervisor.hpp"

namespace muniment::retrieval {

using Reply = SearchProcess::Reply;

namespace {

Status check_size(std::string_view what, const std::string& payload) {
  if (payload.size() <= limits::search_request_bytes_max) return success();
  Error error(Errc::too_large, std::string(what) + " of " + std::to_string(payload.size()) + " bytes");
  error.limit = static_cast<std::int64_t>(limits::search_request_bytes_max);
  return error;
}

bool is_the_callers(Errc code) { return !is_transient(code) && !is_halting(code); }

}  // namespace

struct SearchClient::Parts {
  explicit Parts(SearchClientOptions given) : options(std::move(given)) {}

  Result<std::string> write(MessageKind kind, const std::string& payload);
  Reply ask_status(SearchProcess& process, Deadline deadline);

  const SearchClientOptions options;
  ChannelPool pool;
  SearchSupervisor supervisor{options, pool};
  std::mutex writing;          // one call at a time on the index channel
  std::mutex asking;           // and on the control channel
  pid_t asked_late = 0;        // the child that has an answer pending there, if any
  Monotonic asked_hangs_at{};  // time at which that child counts as hung
  std::mutex knowing;
  std::weak_ptr<SearchProcess> status_known;  // the child whose status was requested
};

SearchClient::SearchClient(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

SearchClient::~SearchClient() { stop(); }

Result<std::unique_ptr<SearchClient>> SearchClient::start(SearchClientOptions options) {
  auto parts = std::make_unique<Parts>(std::move(options));
  RETURN_IF_ERROR(parts->supervisor.start());
  return std::unique_ptr<SearchClient>(new SearchClient(std::move(parts)));
}

Result<LaneAnswer> SearchClient::search(const LaneQuery& query, Deadline deadline) {
  const std::string payload = to_wire(query);
  RETURN_IF_ERROR(check_size("a query", payload));
  Error last(Errc::unavailable, "");
  for (const bool again : {false, true}) {
    ASSIGN_OR_RETURN(auto lease, parts_->pool.take(deadline, again));
    const Monotonic hangs_at = steady_now() + parts_->options.search_hang;
    const Reply reply =
        lease.process->call(lease.channel, MessageKind::search, payload, deadline, parts_->options.search_hang);
    if (reply.state == Reply::State::late) {
      parts_->pool.leave_late(std::move(lease), hangs_at);
      parts_->supervisor.wake();
      return reply.payload.error();
    }
    if (reply.state == Reply::State::answered && reply.payload) {
      auto found = from_wire<LaneAnswer>(*reply.payload);
      if (found) parts_->pool.give_back(lease);
      if (found) return found;
      last = std::move(found).error();
    } else if (reply.state == Reply::State::answered && reply.payload.error().code != Errc::corrupt) {
      parts_->pool.give_back(lease);
      return reply.payload.error();
    } else {
      last = reply.payload.error();
    }
    parts_->supervisor.lost(lease.process, last);
  }
  return Error(Errc::unavailable, "the search child was lost twice during this query: " + last.message);
}

Result<EngineStatus> SearchClient::status(Deadline deadline) {
  const std::lock_guard lock(parts_->asking);
  ASSIGN_OR_RETURN(const auto process, parts_->supervisor.serving(deadline));
  const Reply reply = parts_->ask_status(*process, deadline);
  if (reply.state == Reply::State::late) return reply.payload.error();
  Error why;
  if (reply.payload) {
    auto status = from_wire<EngineStatus>(*reply.payload);
    if (status) {
      const std::lock_guard known(parts_->knowing);
      parts_->status_known = process;
      return status;
    }
    why = std::move(status).error();
  } else {
    why = reply.payload.error();
  }
  parts_->supervisor.lost(process, why);
  return Error(Errc::unavailable, "asking the search child: " + why.message);
}

// First receives the answer that an earlier caller did not wait for.
Reply SearchClient::Parts::ask_status(SearchProcess& process, Deadline deadline) {
  if (asked_late == process.pid()) {
    const Monotonic now = steady_now();
    if (!await_readable(process.socket_of(control_channel), std::min(deadline, std::max(asked_hangs_at, now)))) {
      if (now < asked_hangs_at)
        return {Reply::State::late, Error(Errc::deadline_exceeded, "the search child does not answer")};
      return {Reply::State::lost, Error(Errc::unavailable, "the search child hangs")};
    }
    if (Reply earlier = process.take_late(control_channel); earlier.state == Reply::State::lost) return earlier;
  }
  asked_hangs_at = steady_now() + options.search_hang;
  Reply reply = process.call(control_channel, MessageKind::status, {}, deadline, options.search_hang);
  asked_late = reply.state == Reply::State::late ? process.pid() : 0;
  return reply;
}

Result<std::string> SearchClient::Parts::write(MessageKind kind, const std::string& payload) {
  const std::lock_guard lock(writing);
  std::shared_ptr<SearchProcess> process;
  {
    const std::lock_guard known(knowing);
    process = status_known.lock();
  }
  const auto current = supervisor.serving(steady_now());
  if (!current || *current != process) {
    return Error(Errc::unavailable, "the search child was restarted: ask for its status and continue from there");
  }
  RETURN_IF_ERROR(check_size("a batch", payload));
  Reply reply = process->call(index_channel, kind, payload, no_deadline, options.write_hang);
  if (reply.state == Reply::State::answered && (reply.payload || is_the_callers(reply.payload.error().code))) {
    return std::move(reply.payload);
  }
  // After a failed write, the state of an index in memory is unknown; a new child reads it from disk.
  supervisor.lost(process, reply.payload.error());
  return Error(Errc::unavailable, "the search child was lost: " + reply.payload.error().message);
}

Status SearchClient::index(const EngineBatch& batch) {
  RETURN_IF_ERROR(parts_->write(MessageKind::index, to_wire(batch)));
  return success();
}

Status SearchClient::set_model(const EngineModel& model) {
  RETURN_IF_ERROR(parts_->write(MessageKind::set_model, to_wire(model)));
  return success();
}

Status SearchClient::embed_again(const std::string& corpus, const std::vector<EngineChunk>& chunks, bool last) {
  WireWriter writer;
  writer(corpus, chunks, last);
  RETURN_IF_ERROR(parts_->write(MessageKind::embed_again, std::move(writer).take()));
  return success();
}

SearchHealth SearchClient::health() const { return parts_->supervisor.health(); }

void SearchClient::stop() { parts_->supervisor.stop(); }

}  // namespace muniment::retrieval
