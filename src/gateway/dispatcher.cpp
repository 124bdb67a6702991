#include "gateway/dispatcher.hpp"

#include <algorithm>

#include "base/limits.hpp"
#include "base/log.hpp"
#include "base/metrics.hpp"

namespace muniment::gateway {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t body_buffer_bytes_max = 4 << 20;

Error late(const Exchange& exchange) {
  Error error(Errc::deadline_exceeded, "no answer within the deadline.");
  error.retry_after_ms = 0;
  if (exchange.append_queued) {
    error.outcome = "unknown";
    error.message = "no answer within the deadline; it may be recorded or not: send the same ids again.";
    for (const Uuid& id : exchange.event_ids) error.event_ids.push_back(id.text());
  }
  return error;
}

}  // namespace

Dispatcher::Dispatcher(Services& services, WorkerPool& workers, const SchemaSet& schemas, std::function<void()> wake_loop)
    : services_(services), workers_(workers), schemas_(schemas), wake_loop_(std::move(wake_loop)) {}

// ---- admission ----------------------------------------------------------------------------------

Dispatcher::Admitted Dispatcher::admit(std::string line, const Caller& caller, std::function<void(std::string)> reply) {
  RequestHead head;
  Result<ExchangePtr> parsed = parse(std::move(line), caller, head);
  Admitted admitted;
  admitted.body_bytes = head.body_bytes;
  admitted.close = head.close;
  if (!parsed) {
    reply(error_line(head.id, parsed.error()));
    return admitted;
  }
  admitted.exchange = *std::move(parsed);
  admitted.exchange->reply = std::move(reply);
  admitted.subscription = admitted.exchange->method->function == nullptr;
  if (admitted.subscription) return admitted;
  if (admitted.exchange->method->open_body && admitted.exchange->params["body_bytes"]) {
    admitted.exchange->body = std::make_unique<Body>();
    admitted.exchange->body->expected = admitted.body_bytes;
  }
  return admitted;
}

Result<ExchangePtr> Dispatcher::parse(std::string line, const Caller& caller, RequestHead& head) {
  auto exchange = std::make_shared<Exchange>();
  exchange->line = std::move(line);
  exchange->caller = caller;
  exchange->began = services_.clock.monotonic();
  const Result<milliseconds> patience = read_request_line(*exchange, schemas_, head);
  if (!patience) {
    const Errc code = patience.error().code;
    exchange->method ? services_.requests.note(*exchange->method, code, {}) : services_.requests.note_malformed(code);
    return patience.error();
  }
  exchange->deadline = exchange->began + *patience;
  return exchange;
}

// ---- running ------------------------------------------------------------------------------------

Call Dispatcher::call_for(const Exchange& exchange, store::Reader* reader) {
  return Call{exchange.caller, exchange.params, services_, reader, exchange.deadline, exchange.idempotency_key, exchange.checked_ids};
}

void Dispatcher::run(const ExchangePtr& exchange) {
  exchange->listed_at = waiting_.insert(waiting_.end(), exchange);
  exchange->listed = true;
  if (waiting_.size() == 1 && on_waiting) on_waiting();
  if (exchange->body) return;  // its bytes bring it to a worker
  if (exchange->method->runs == Runs::on_worker || exchange->checked_ids) return run_on_worker(exchange);
  Call call = call_for(*exchange, nullptr);
  Result<Answer> answer = exchange->method->function(call);
  if (answer && std::holds_alternative<NeedsWorker>(*answer)) return run_on_worker(exchange);
  proceed(exchange, std::move(answer));
}

void Dispatcher::run_on_worker(const ExchangePtr& exchange) {
  Status posted = workers_.post(exchange->deadline, [this, exchange](store::Reader& reader) {
    Call call = call_for(*exchange, &reader);
    auto answer = std::make_shared<Result<Answer>>(exchange->method->function(call));
    post_to_loop([this, exchange, answer] { proceed(exchange, std::move(*answer)); });
  });
  if (!posted) answer(exchange, std::move(posted).error());
}

void Dispatcher::proceed(const ExchangePtr& exchange, Result<Answer> answered) {
  if (!answered) return answer(exchange, std::move(answered).error());
  if (auto* reply = std::get_if<Reply>(&*answered)) return answer(exchange, std::move(*reply));
  if (auto* append = std::get_if<PendingAppend>(&*answered)) return submit(exchange, std::move(*append));
  answer(exchange, Error(Errc::system_error, "a worker asked for a worker"));
}

void Dispatcher::submit(const ExchangePtr& exchange, PendingAppend append) {
  for (const store::Addressed& item : append.request.events) exchange->event_ids.push_back(item.event.event_id);
  exchange->append_queued = true;
  auto pending = std::make_shared<PendingAppend>(std::move(append));
  store::AppendRequest request = std::move(pending->request);
  request.done = [this, exchange, pending](Result<std::vector<events::Receipt>> result) {
    complete(Committed{exchange, pending, std::move(result)});
  };
  Status submitted = services_.appender.submit(std::move(request));
  if (submitted) return;
  exchange->append_queued = false;
  finish({exchange, pending, std::move(submitted).error()});
}

// The append is decided. What the method says then may have to touch files: on a worker.
void Dispatcher::finish(Committed committed) {
  const ExchangePtr exchange = committed.exchange;
  exchange->append_queued = false;
  if (!committed.result && store::is_maybe_duplicate(committed.result.error()) && !exchange->body) {
    if (exchange->answered) return;
    exchange->checked_ids = true;
    exchange->event_ids.clear();
    return run_on_worker(exchange);
  }
  if (!committed.append->finish_on_worker) return answer(exchange, conclude(committed));
  auto held = std::make_shared<Committed>(std::move(committed));
  Status posted = workers_.post(exchange->deadline, [this, exchange, held](store::Reader&) {
    auto reply = std::make_shared<Result<Reply>>(conclude(*held));
    post_to_loop([this, exchange, reply] { answer(exchange, std::move(*reply)); });
  });
  if (!posted) answer(exchange, conclude(*held));
}

Result<Reply> Dispatcher::conclude(Committed& committed) {
  if (committed.result) return committed.append->finish(services_, *committed.result);
  if (committed.append->refused) return committed.append->refused(services_, std::move(committed.result).error());
  return std::move(committed.result).error();
}

void Dispatcher::answer(ExchangePtr exchange, Result<Reply> result) {
  if (exchange->answered) return;
  exchange->answered = true;
  if (std::exchange(exchange->listed, false)) waiting_.erase(exchange->listed_at);
  if (!result) services_.refusals.note(exchange->caller.actor, exchange->method->name, result.error(), services_.clock.now());
  if (!exchange->reply) return services_.requests.note_gone(*exchange->method);
  const auto took = services_.clock.monotonic() - exchange->began;
  services_.requests.note(*exchange->method, result ? std::nullopt : std::optional(result.error().code), took);
  // What has ids was given to the append thread.
  if (result && !exchange->event_ids.empty()) metrics::process().append_seconds.record(took);
  if (!result) {
    exchange->reply(error_line(exchange->id, result.error()));
  } else {
    std::string line = result_line(exchange->id, result->result);
    line.append(result->raw);
    exchange->reply(std::move(line));
  }
  exchange->reply = nullptr;
}

// ---- raw bytes ----------------------------------------------------------------------------------

bool Dispatcher::body_full(const Exchange& exchange) {
  Body& body = *exchange.body;
  std::lock_guard lock(body.mutex);
  return body.buffered >= body_buffer_bytes_max;
}

void Dispatcher::body_arrived(const ExchangePtr& exchange, std::string chunk) {
  Body& body = *exchange->body;
  bool post = false;
  {
    std::lock_guard lock(body.mutex);
    body.received += static_cast<std::int64_t>(chunk.size());
    if (body.given_up) return;
    body.buffered += chunk.size();
    if (!chunk.empty()) body.chunks.push_back(std::move(chunk));
    // A worker is asked for once a good piece is there, so that a slow client does not cost one.
    const bool enough = body.buffered >= (1u << 20) || body.received >= body.expected;
    post = enough && !body.served;
    body.served = body.served || post;
  }
  if (!post) return;
  if (Status posted = post_body(exchange); !posted) answer(exchange, std::move(posted).error());
}

// Asks for a worker; without one the body is dropped, and what still comes of it.
Status Dispatcher::post_body(const ExchangePtr& exchange) {
  Status posted = workers_.post(exchange->deadline, [this, exchange](store::Reader& reader) { serve_body(exchange, reader); });
  if (!posted) exchange->body->drop();
  return posted;
}

// On a worker: writes what has arrived, and finishes when all of it has.
void Dispatcher::serve_body(const ExchangePtr& exchange, store::Reader& reader) {
  Body& body = *exchange->body;
  Call call = call_for(*exchange, &reader);
  const auto refuse = [&](Error error) {
    body.drop();
    auto held = std::make_shared<Error>(std::move(error));
    post_to_loop([this, exchange, held] { answer(exchange, std::move(*held)); });
  };
  if (!body.sink) {
    auto sink = exchange->method->open_body(call, body.expected);
    if (!sink) return refuse(std::move(sink).error());
    body.sink = *std::move(sink);
  }
  for (;;) {
    std::string chunk;
    bool resume = false;
    {
      std::lock_guard lock(body.mutex);
      if (body.given_up && (body.chunks.empty() || !body.sink->keeps_pieces())) return body.sink.reset();
      if (body.chunks.empty()) {
        if (body.received == body.expected) break;
        body.served = false;
        return post_to_loop([] {});  // the session may read again
      }
      chunk = std::move(body.chunks.front());
      body.chunks.pop_front();
      const bool was_high = body.buffered >= body_buffer_bytes_max / 2;
      body.buffered -= chunk.size();
      resume = was_high && body.buffered < body_buffer_bytes_max / 2;
    }
    if (resume) post_to_loop([] {});  // the session may read again, while this is written
    if (Status written = body.sink->write(chunk); !written) return refuse(std::move(written).error());
  }
  auto answer = std::make_shared<Result<Answer>>(body.sink->finish(call));
  body.sink.reset();
  post_to_loop([this, exchange, answer] { proceed(exchange, std::move(*answer)); });
}

void Dispatcher::give_up(const ExchangePtr& exchange) {
  exchange->reply = nullptr;
  if (!exchange->body) return;
  Body& body = *exchange->body;
  bool save = false;
  bool idle = false;
  {
    std::lock_guard lock(body.mutex);
    body.given_up = true;
    idle = !body.served;
    save = idle && !body.chunks.empty();
    body.served = body.served || save;
  }
  // A resumable upload keeps what came. Otherwise the half-written file goes: here, if nobody is on it.
  if (save) {
    (void)post_body(exchange);
  } else if (idle) {
    body.drop();
  }
  answer(exchange, Error(Errc::unavailable, "the client is gone"));
}

// ---- completions and deadlines ------------------------------------------------------------------

void Dispatcher::complete(Completion completion) {
  std::lock_guard lock(completions_mutex_);
  completions_.push_back(std::move(completion));
}

void Dispatcher::post_to_loop(std::function<void()> work) {
  complete(std::move(work));
  wake_loop_();
}

void Dispatcher::run_completions() {
  std::vector<Completion> done;
  {
    std::lock_guard lock(completions_mutex_);
    done.swap(completions_);
  }
  for (Completion& completion : done) {
    if (auto* committed = std::get_if<Committed>(&completion)) {
      finish(std::move(*committed));
    } else {
      std::get<std::function<void()>>(completion)();
    }
  }
}

bool Dispatcher::expire(Monotonic now) {
  std::vector<ExchangePtr> expired;
  for (const ExchangePtr& exchange : waiting_) {
    if (exchange->deadline <= now) expired.push_back(exchange);
  }
  for (const ExchangePtr& exchange : expired) answer(exchange, late(*exchange));
  if (!expired.empty()) workers_.interrupt_late(now);
  return !waiting_.empty();
}

}  // namespace muniment::gateway
