// Drives a request from its line to its reply, on the loop thread and the workers.
#include "gateway/request/dispatcher.hpp"

#include <algorithm>

#include "base/limits.hpp"
#include "base/log.hpp"
#include "base/metrics.hpp"
#include "base/process/failpoint.hpp"

namespace muniment::gateway {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t body_buffer_bytes_max = 4 << 20;
constexpr int repeats_max = 3;  // retries of an append that was returned for a duplicate id
constexpr milliseconds database_patience{limits::status_database_ms_max};

void name_ids(Error& error, const Exchange& exchange) {
  error.outcome = "unknown";
  if (!error.event_ids.empty()) return;
  for (const Uuid& id : exchange.event_ids) error.event_ids.push_back(id.text());
}

Error late(const Exchange& exchange, bool may_land) {
  Error error(Errc::deadline_exceeded, "no answer within the deadline.");
  error.retry_after_ms = 0;
  if (may_land) {
    name_ids(error, exchange);
    error.message = error.event_ids.empty()
                        ? "no answer within the deadline; the outcome is unknown."
                        : "no answer within the deadline; the outcome is unknown. Retry with the same ids.";
  }
  return error;
}

// Each attempt collided with a concurrent request that has the same ids. A retry by the client shows whether they were
// recorded.
Error raced(const Exchange& exchange) {
  Error error(Errc::unavailable,
              "other requests with the same ids are being recorded; the outcome is unknown. Retry with the same ids.");
  error.retry_after_ms = 100;
  name_ids(error, exchange);
  return error;
}

// Returns whether the error, of a method that writes outside of its append, means that nothing was written.
bool says_nothing_done(Errc code) {
  return code == Errc::invalid_argument || code == Errc::not_found || code == Errc::conflict ||
         code == Errc::too_large || code == Errc::run_halted;
}

// Returns whether the connection may get another reply of any size.
bool may_reply(const Exchange& exchange) {
  const auto& unread = exchange.caller.unread;
  return unread == nullptr || unread->bytes <= limits::unread_bytes_per_connection_max ||
         exchange.method->always_answers;
}

// Counts a reply as unread until the loop sends it.
std::shared_ptr<HeldBytes> count_made(const Exchange& exchange, const Result<Answer>& answer) {
  const auto& unread = exchange.caller.unread;
  const auto* reply = answer ? std::get_if<Reply>(&*answer) : nullptr;
  if (unread == nullptr || reply == nullptr) return std::make_shared<HeldBytes>();
  return std::make_shared<HeldBytes>(std::shared_ptr<std::atomic<std::size_t>>(unread, &unread->bytes),
                                     reply->result.size() + reply->raw.size());
}

void carry_erasures_seen(const Call& call, Result<Answer>& answer) {
  auto* append = answer ? std::get_if<PendingAppend>(&*answer) : nullptr;
  if (append != nullptr && call.erasures_seen) append->request.erasures_seen = call.erasures_seen;
}

}  // namespace

Dispatcher::Dispatcher(Services& services, WorkerPool& workers, const SchemaSet& schemas,
                       std::function<void()> wake_loop)
    : services_(services),
      workers_(workers),
      schemas_(schemas),
      wake_loop_(std::move(wake_loop)),
      send_order_([this](const ExchangePtr& exchange) { begin(exchange); },
                  [this](const ExchangePtr& exchange) { submit(exchange); }) {}

Dispatcher::Admitted Dispatcher::admit(std::string line, const Caller& caller, std::function<void(std::string)> reply) {
  RequestHead head;
  Result<ExchangePtr> parsed = parse(std::move(line), caller, head);
  if (parsed) {
    if (Status held = hold(**parsed, head.body_bytes); !held) {
      services_.requests.note(*(*parsed)->method, held.error().code, {});
      parsed = std::move(held).error();
    }
  }
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
  Result<milliseconds> patience = read_request_line(*exchange, schemas_, head);
  if (patience && exchange->method->open_body) {
    if (Status fits = services_.files.check_size(head.body_bytes); !fits) patience = std::move(fits).error();
  }
  if (!patience) {
    const Errc code = patience.error().code;
    exchange->method ? services_.requests.note(*exchange->method, code, {}) : services_.requests.note_malformed(code);
    return patience.error();
  }
  exchange->deadline = exchange->began + *patience;
  return exchange;
}

// Reserves the request's share of the memory limit: its line, and the buffered part of its raw bytes.
Status Dispatcher::hold(Exchange& exchange, std::int64_t body_bytes) {
  const std::size_t bytes =
      exchange.line.size() + std::min(static_cast<std::size_t>(body_bytes), body_buffer_bytes_max);
  if (held_bytes() + bytes > limits::request_bytes_in_flight_max && !exchange.method->always_answers) {
    Error error(Errc::over_budget, "the requests in flight hold " + std::to_string(held_bytes()) + " bytes, limit " +
                                       std::to_string(limits::request_bytes_in_flight_max) + ". Retry in 100 ms.");
    error.limit = static_cast<std::int64_t>(limits::request_bytes_in_flight_max);
    error.retry_after_ms = 100;
    return error;
  }
  exchange.held = HeldBytes(held_bytes_, bytes);
  return success();
}

Call Dispatcher::call_for(Exchange& exchange, store::Reader* reader) {
  return Call{
      exchange.caller,      exchange.params,      services_, reader, exchange.deadline, exchange.idempotency_key,
      exchange.checked_ids, &exchange.write_state};
}

void Dispatcher::watch(const ExchangePtr& exchange) {
  exchange->listed_at = waiting_.insert(waiting_.end(), exchange);
  exchange->listed = true;
  if (waiting_.size() == 1 && on_waiting) on_waiting();
}

void Dispatcher::run(const ExchangePtr& exchange) {
  watch(exchange);
  if (send_order_.join(exchange)) begin(exchange);
}

// Also begins a request that waited or was returned for retry.
void Dispatcher::begin(const ExchangePtr& exchange) {
  if (exchange->body) return serve_arrived(exchange);
  if (exchange->method->runs == Runs::on_worker || exchange->checked_ids) return run_on_worker(exchange);
  Call call = call_for(*exchange, nullptr);
  Result<Answer> answer = exchange->method->function(call);
  const auto* needs = answer ? std::get_if<NeedsWorker>(&*answer) : nullptr;
  if (needs == nullptr) return proceed(exchange, std::move(answer));
  if (!needs->after_earlier || send_order_.wait_for_earlier(exchange)) run_on_worker(exchange);
}

// Skips a request that was answered meanwhile.
void Dispatcher::run_on_worker(const ExchangePtr& exchange) {
  const Deadline until = exchange->method->always_answers
                             ? std::min(exchange->deadline, exchange->began + database_patience)
                             : exchange->deadline;
  Status posted = workers_.post(until, [this, exchange](store::Reader& reader) {
    if (exchange->write_state.over()) return;
    if (!may_reply(*exchange)) return post_to_loop([this, exchange] { pause(exchange); });
    FAILPOINT("work." + std::string(exchange->method->name));
    Call call = call_for(*exchange, &reader);
    auto answer = std::make_shared<Result<Answer>>(exchange->method->function(call));
    if (*answer) say_log(**answer, call.read_log);
    carry_erasures_seen(call, *answer);
    post_to_loop([this, exchange, answer, made = count_made(*exchange, *answer)] {
      *made = HeldBytes();
      proceed(exchange, std::move(*answer));
      if (exchange->caller.unread) resume(*exchange->caller.unread);
    });
  });
  if (!posted) answer(exchange, std::move(posted).error());
}

// Called if the client does not read its replies: the request waits without a worker, and its deadline still applies.
void Dispatcher::pause(const ExchangePtr& exchange) {
  exchange->caller.unread->paused.push_back(exchange);
  resume(*exchange->caller.unread);  // the client may have read them meanwhile
}

void Dispatcher::resume(Unread& unread) {
  for (const ExchangePtr& exchange : std::exchange(unread.paused, {})) {
    may_reply(*exchange) ? run_on_worker(exchange) : unread.paused.push_back(exchange);
  }
}

void Dispatcher::proceed(const ExchangePtr& exchange, Result<Answer> answered) {
  if (!answered) {
    Error error = std::move(answered).error();
    return answer(exchange, std::move(error));
  }
  if (auto* reply = std::get_if<Reply>(&*answered)) return answer(exchange, std::move(*reply));
  auto* append = std::get_if<PendingAppend>(&*answered);
  if (append == nullptr) return answer(exchange, Error(Errc::system_error, "the method requested a second worker"));
  exchange->prepared = std::make_unique<PendingAppend>(std::move(*append));
  // The client has got a reply that nothing is written, so nothing is submitted.
  const bool submits = !exchange->answered || exchange->prepared->even_if_answered;
  submits ? send_order_.prepared(exchange) : withdraw(exchange);
}

// Undoes what was prepared.
void Dispatcher::withdraw(const ExchangePtr& exchange) {
  send_order_.returned(exchange);
  const std::shared_ptr<PendingAppend> append = std::move(exchange->prepared);
  conclude_and_answer(Committed{
      exchange, append, Error(Errc::deadline_exceeded, "the request was answered before its append was submitted.")});
}

void Dispatcher::submit(const ExchangePtr& exchange) {
  const std::shared_ptr<PendingAppend> pending = std::move(exchange->prepared);
  store::AppendRequest request = std::move(pending->request);
  exchange->event_ids.clear();
  for (std::size_t i = pending->leading_events; i < request.events.size(); ++i)
    exchange->event_ids.push_back(request.events[i].event.event_id);
  exchange->write_state.begin_writing();
  if (exchange->place.queue != nullptr) request.order = exchange->place.queue->requeued;
  request.done = [this, exchange, pending](Result<std::vector<events::Receipt>> result) {
    complete(Committed{exchange, pending, std::move(result)});
  };
  Status submitted = services_.appender.submit(std::move(request));
  if (!submitted) finish({exchange, pending, std::move(submitted).error()});
}

// Handles an append that was decided or returned for retry.
void Dispatcher::finish(Committed committed) {
  const ExchangePtr exchange = committed.exchange;
  send_order_.returned(exchange);
  if (!committed.result && store::is_requeued(committed.result.error())) {
    // A return caused by concurrent requests or by batch mates does not count against the limit of retries.
    const bool repeated = committed.result.error().conflict != AppendConflict::out_of_turn &&
                          committed.result.error().conflict != AppendConflict::moved_on;
    const bool again = !repeated || ++exchange->repeats <= repeats_max;
    if (again && !exchange->answered) return prepare_again(committed);
    clean_up(committed);
    return answer(exchange, raced(*exchange));
  }
  conclude_and_answer(std::move(committed));
}

// Removes files written for an append that was returned for retry.
void Dispatcher::clean_up(const Committed& committed) {
  if (committed.append->refused) committed.append->refused(services_, committed.result.error()).ok();
}

void Dispatcher::prepare_again(const Committed& committed) {
  const ExchangePtr exchange = committed.exchange;
  const std::shared_ptr<PendingAppend> append = committed.append;
  if (append->again) {
    return workers_.post_admitted(exchange->deadline, [this, exchange, append](store::Reader& reader) {
      Call call = call_for(*exchange, &reader);
      auto answer = std::make_shared<Result<Answer>>(append->again(call));
      carry_erasures_seen(call, *answer);
      post_to_loop([this, exchange, answer] { proceed(exchange, std::move(*answer)); });
    });
  }
  clean_up(committed);
  exchange->checked_ids = exchange->checked_ids || committed.result.error().conflict == AppendConflict::maybe_duplicate;
  begin(exchange);
}

// The method's `finish` or `refused` may access files; then it runs on a worker.
void Dispatcher::conclude_and_answer(Committed committed) {
  const ExchangePtr exchange = committed.exchange;
  if (!committed.append->finish_on_worker) return answer(exchange, conclude(committed));
  auto held = std::make_shared<Committed>(std::move(committed));
  workers_.post_admitted(exchange->deadline, [this, exchange, held](store::Reader&) {
    FAILPOINT("finish." + std::string(exchange->method->name));
    auto reply = std::make_shared<Result<Reply>>(conclude(*held));
    post_to_loop([this, exchange, reply] { answer(exchange, std::move(*reply)); });
  });
}

Result<Reply> Dispatcher::conclude(Committed& committed) {
  if (committed.result) {
    Result<Reply> reply = committed.append->finish(services_, *committed.result);
    // The append is recorded, but its reply failed. Only a run that stopped for its pointer gets this error without
    // ids.
    if (!reply && reply.error().code != Errc::run_halted) name_ids(reply.error(), *committed.exchange);
    return reply;
  }
  if (committed.append->refused && committed.result.error().outcome.empty()) {
    return committed.append->refused(services_, std::move(committed.result).error());
  }
  return std::move(committed.result).error();
}

// Answers a request whose work is done.
void Dispatcher::answer(const ExchangePtr& exchange, Result<Reply> result) {
  exchange->write_state.answer();
  const bool nothing_done = !result && !exchange->write_state.is_written() && says_nothing_done(result.error().code);
  if (!result && exchange->write_state.wrote_itself() && !nothing_done) result.error().outcome = "unknown";
  tell(exchange, result);
  send_order_.leave(exchange);
}

// Answers while the work continues. An append that may still be recorded keeps its place, and later requests wait for
// it.
void Dispatcher::answer_early(const ExchangePtr& exchange, const std::function<Error(bool)>& why) {
  if (exchange->answered) return;
  const bool may_land = exchange->write_state.answer();
  tell(exchange, why(may_land));
  if (exchange->prepared && !exchange->prepared->even_if_answered) return withdraw(exchange);
  const bool submitted = exchange->place.stage == SendPlace::Stage::submitted;
  const bool ends = exchange->body && !submitted && !exchange->prepared && end_body(exchange);
  if (!may_land || ends) send_order_.leave(exchange);
}

void Dispatcher::tell(const ExchangePtr& exchange, const Result<Reply>& result) {
  if (std::exchange(exchange->answered, true)) return;
  if (std::exchange(exchange->listed, false)) waiting_.erase(exchange->listed_at);
  if (!result)
    services_.refusals.note(exchange->caller.actor, exchange->method->name, result.error(), services_.clock.now());
  if (!exchange->reply) return services_.requests.note_gone(*exchange->method);
  const auto took = services_.clock.monotonic() - exchange->began;
  services_.requests.note(*exchange->method, result ? std::nullopt : std::optional(result.error().code), took);
  // Only requests that went to the append thread have ids.
  if (result && !exchange->event_ids.empty()) metrics::process().append_seconds.record(took);
  const auto reply = std::exchange(exchange->reply, nullptr);
  if (!result) return reply(error_line(exchange->id, result.error()));
  std::string line = result_line(exchange->id, result->result);
  line.append(result->raw);
  reply(std::move(line));
}

bool Dispatcher::body_full(const Exchange& exchange) {
  Body& body = *exchange.body;
  std::lock_guard lock(body.mutex);
  return body.buffered >= body_buffer_bytes_max;
}

void Dispatcher::body_arrived(const ExchangePtr& exchange, std::string chunk) {
  Body& body = *exchange->body;
  {
    std::lock_guard lock(body.mutex);
    body.received += static_cast<std::int64_t>(chunk.size());
    if (body.given_up) return;
    body.buffered += chunk.size();
    if (!chunk.empty()) body.chunks.push_back(std::move(chunk));
  }
  if (exchange->place.stage != SendPlace::Stage::waiting) serve_arrived(exchange);
}

// Requests a worker only once a large enough chunk has arrived, so that a slow client does not occupy one.
void Dispatcher::serve_arrived(const ExchangePtr& exchange) {
  Body& body = *exchange->body;
  {
    std::lock_guard lock(body.mutex);
    const bool enough = body.buffered >= (1u << 20) || body.received >= body.expected;
    if (!enough || body.given_up || std::exchange(body.served, true)) return;
  }
  if (Status posted = post_body(exchange); !posted) answer(exchange, std::move(posted).error());
}

// Requests a worker; if none is available, drops the body and its remaining bytes.
Status Dispatcher::post_body(const ExchangePtr& exchange) {
  Status posted =
      workers_.post(exchange->deadline, [this, exchange](store::Reader& reader) { serve_body(exchange, reader); });
  if (!posted) exchange->body->drop();
  return posted;
}

// Runs on a worker: writes what has arrived, and finishes once all bytes have.
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
      if (body.given_up && (body.chunks.empty() || !body.sink->keeps_pieces())) {
        body.sink.reset();
        return post_to_loop([this, exchange] { answer(exchange, Error(Errc::unavailable, "the client is gone")); });
      }
      if (body.chunks.empty()) {
        if (body.received == body.expected) break;
        body.served = false;
        return post_to_loop([] {});  // lets the session read again
      }
      chunk = std::move(body.chunks.front());
      body.chunks.pop_front();
      const bool was_high = body.buffered >= body_buffer_bytes_max / 2;
      body.buffered -= chunk.size();
      resume = was_high && body.buffered < body_buffer_bytes_max / 2;
    }
    if (resume) post_to_loop([] {});  // lets the session read again during the write
    if (Status written = body.sink->write(chunk); !written) return refuse(std::move(written).error());
  }
  auto answer = std::make_shared<Result<Answer>>(body.sink->finish(call));
  body.sink.reset();
  post_to_loop([this, exchange, answer] { proceed(exchange, std::move(*answer)); });
}

void Dispatcher::give_up(const ExchangePtr& exchange) {
  exchange->reply = nullptr;
  if (exchange->body) exchange->write_state.begin_writing();  // a partial upload is kept
  answer_early(exchange, [](bool) { return Error(Errc::unavailable, "the client is gone"); });
}

// Marks the body as ended. Returns true if no worker is serving it.
bool Dispatcher::end_body(const ExchangePtr& exchange) {
  Body& body = *exchange->body;
  bool save = false;
  {
    std::lock_guard lock(body.mutex);
    body.given_up = true;
    if (body.served) return false;
    save = !body.chunks.empty();
    body.served = save;
  }
  // A resumable upload keeps the received bytes. Otherwise the partial file is removed, here if no worker is serving
  // it.
  if (save && post_body(exchange)) return false;
  body.drop();
  return true;
}

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
    const bool always = exchange->method->always_answers && exchange->began + database_patience <= now;
    if (always || exchange->deadline <= now) expired.push_back(exchange);
  }
  for (const ExchangePtr& exchange : expired) {
    exchange->method->always_answers ? answer_without_database(exchange)
                                     : answer_early(exchange, [&](bool may_land) { return late(*exchange, may_land); });
  }
  if (!expired.empty()) workers_.interrupt_late(now);
  return !waiting_.empty();
}

void Dispatcher::answer_without_database(const ExchangePtr& exchange) {
  Call call = call_for(*exchange, nullptr);
  call.without_database = true;
  proceed(exchange, exchange->method->function(call));
}

}  // namespace muniment::gateway
