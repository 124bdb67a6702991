#include "gateway/dispatcher.hpp"

#include <algorithm>

#include "base/limits.hpp"
#include "base/log.hpp"
#include "gateway/method_table.hpp"

namespace muniment::gateway {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t body_buffer_bytes_max = 4 << 20;

Error unknown_method(std::string_view name) {
  std::vector<std::string_view> names;
  for (const MethodInfo& method : method_table()) names.push_back(method.name);
  std::string text = "unknown method \"" + std::string(name.substr(0, 100)) + "\".";
  if (const std::string_view near = nearest(name, names); !near.empty()) text += " Did you mean \"" + std::string(near) + "\"?";
  return Error(Errc::invalid_argument, text);
}

// The id's own text, if it is one JSON-RPC allows; otherwise nullopt.
std::optional<std::string> id_of(const json::Value& id) {
  if (!id || id.is(json::Kind::boolean) || id.is(json::Kind::object) || id.is(json::Kind::array)) return std::nullopt;
  if (id.source().size() > 256) return std::nullopt;
  return std::string(id.source());
}

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
  Admitted admitted;
  std::string id = "null";
  Result<ExchangePtr> parsed = parse(std::move(line), caller, admitted, id);
  if (!parsed) {
    reply(error_line(id, parsed.error()));
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

Result<ExchangePtr> Dispatcher::parse(std::string line, const Caller& caller, Admitted& admitted, std::string& id) {
  auto exchange = std::make_shared<Exchange>();
  exchange->line = std::move(line);
  exchange->caller = caller;
  auto document = json::parse(exchange->line);
  if (!document) {
    // What follows such a line could be artifact bytes: they must never be read as requests.
    admitted.close = exchange->line.find("body_bytes") != std::string::npos;
    return std::move(document).error();
  }
  exchange->document = *std::move(document);
  const json::Value root = exchange->document.root();
  if (root.is(json::Kind::array)) {
    return Error(Errc::invalid_argument, "JSON-RPC batches are not supported: send one request a line (event.append takes many events).");
  }
  if (!root.is(json::Kind::object)) return Error(Errc::invalid_argument, "a request is a JSON object, one a line.");
  const json::Value params = root["params"];
  if (const json::Value body = params["body_bytes"]) {
    const auto bytes = body.as_int();
    if (!bytes || *bytes < 0) {
      admitted.close = true;
      if (auto text = id_of(root["id"])) id = *text;
      return Error(Errc::invalid_argument, "body_bytes: expected the number of raw bytes that follow the line, got " +
                                               std::string(body.source().substr(0, 40)) + ". The connection is closed.");
    }
    admitted.body_bytes = *bytes;
  }
  const std::optional<std::string> given_id = id_of(root["id"]);
  if (given_id) id = *given_id;
  exchange->id = id;
  if (root["jsonrpc"].string_or("") != "2.0") return Error(Errc::invalid_argument, "jsonrpc: expected \"2.0\".");
  const auto name = root["method"].as_string();
  if (!name) return Error(Errc::invalid_argument, "method: expected the name of a method.");
  exchange->method = find_method(*name);
  if (!exchange->method) return unknown_method(*name);
  if (!given_id) {
    return Error(Errc::invalid_argument, root["id"] ? "id: expected a string, a number or null."
                                                    : "notifications are refused: give the request an id, so that it can be answered.");
  }
  if (params && !params.is(json::Kind::object)) return Error(Errc::invalid_argument, "params: expected an object.");
  static const json::Document no_params = *json::parse("{}");
  exchange->params = params ? params : no_params.root();
  const auto schema = schemas_.find("rpc/" + *name + "#params");
  if (schema) RETURN_IF_ERROR(schema->validate(exchange->params));
  if (admitted.body_bytes > 0 && !exchange->method->open_body) {
    return Error(Errc::invalid_argument, *name + " takes no raw bytes: drop body_bytes.");
  }

  const json::Value meta = exchange->params["_meta"];
  exchange->key_storage = meta["idempotency_key"].string_or("");
  exchange->idempotency_key = exchange->key_storage;
  const std::int64_t wanted = meta["deadline_ms"].as_int().value_or(limits::deadline_ms_default);
  exchange->deadline = services_.clock.monotonic() + milliseconds(std::clamp<std::int64_t>(wanted, 1, limits::deadline_ms_max));
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
  if (!exchange->reply) return;
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
