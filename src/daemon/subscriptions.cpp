// Sends events of the log to subscribers.
#include "daemon/subscriptions.hpp"

#include <algorithm>

#include "base/limits.hpp"
#include "base/metrics.hpp"
#include "gateway/access.hpp"
#include "gateway/append/event_json.hpp"
#include "gateway/methods/custody/server_state.hpp"
#include "gateway/read/log_pointers.hpp"

namespace muniment::daemon {
namespace {

constexpr std::size_t events_per_step = 256;

bool matches(const std::vector<std::string>& types, std::string_view type) {
  if (types.empty()) return true;
  return std::any_of(types.begin(), types.end(), [&](std::string_view wanted) {
    if (wanted.ends_with('*')) return type.starts_with(wanted.substr(0, wanted.size() - 1));
    return type == wanted;
  });
}

std::string notification(std::string_view method, std::uint64_t subscription, std::string_view name,
                         std::string_view value) {
  std::string line = R"({"jsonrpc":"2.0","method":")";
  line.append(method).append(R"(","params":{"subscription":)").append(std::to_string(subscription));
  line.append(",\"").append(name).append("\":").append(value).append("}}\n");
  return line;
}

// Returns the requested source: by a pointer, or by run_id and types. Errors: invalid_argument.
Result<gateway::LogSource> source_of(const gateway::Caller& caller, const json::Value& params) {
  if (const auto text = params["pointer"].as_string()) {
    if (params["run_id"] || params["types"])
      return Error(Errc::invalid_argument, "pointer already selects the run and the types. Omit run_id and types.");
    ASSIGN_OR_RETURN(const evidence::Pointer pointer, evidence::parse_pointer(*text));
    if (pointer.kind == evidence::PointerKind::log) return gateway::log_source(caller, pointer);
    return Error(Errc::invalid_argument,
                 "pointer: only log:// pointers can be followed. Read others with pointer.resolve");
  }
  gateway::LogSource source{.run_id = params["run_id"].string_or("")};
  for (const json::Value type : params["types"]) source.types.push_back(type.string_or(""));
  return source;
}

}  // namespace

struct Subscriptions::Subscription {
  std::uint64_t number = 0;
  std::weak_ptr<Subscriber> session;
  std::uint64_t connection = 0;
  std::int64_t next_seq = 0;  // the first seq that was not processed
  std::optional<std::int64_t> run_no;
  std::vector<std::string> types;
  std::optional<std::string> actor;  // for log://validation: the user whose events are sent
  bool metrics = false;              // sends metrics repeatedly instead of events
  bool reading_table = false;
  bool caught_up = false;
};

Subscriptions::Subscriptions(gateway::Services& services, gateway::Dispatcher& dispatcher)
    : services_(services), dispatcher_(dispatcher) {}
Subscriptions::~Subscriptions() = default;

// A worker first loads a run that is not in memory.
void Subscriptions::serve(const std::shared_ptr<Subscriber>& session, const gateway::ExchangePtr& exchange) {
  dispatcher_.watch(exchange);
  const auto source = source_of(session->caller(), exchange->params);
  if (!source) return dispatcher_.answer(exchange, source.error());
  const std::string run_id = source->run_id;
  if (run_id.empty() || services_.runs.find(run_id)) return answer(session, exchange);
  std::weak_ptr<Subscriber> weak = session;
  Status posted = dispatcher_.workers().post(exchange->deadline, [this, weak, exchange, run_id](store::Reader& reader) {
    if (exchange->write_state.over()) return;
    auto loaded = std::make_shared<Status>(success());
    auto run = services_.runs.find_or_load(run_id, [&] { return reader.load_run(run_id); });
    if (!run) *loaded = std::move(run).error();
    if (run && !*run) *loaded = check_not_closed(reader, exchange->caller, run_id);
    dispatcher_.post_to_loop([this, weak, exchange, loaded] {
      const auto alive = weak.lock();
      if (!alive || alive->closed() || exchange->answered) return;
      if (!*loaded) return dispatcher_.answer(exchange, loaded->error());
      answer(alive, exchange);
    });
  });
  if (!posted) dispatcher_.answer(exchange, std::move(posted).error());
}

// A run of a closed log gets no more events.
Status Subscriptions::check_not_closed(store::Reader& reader, const gateway::Caller& caller,
                                       const std::string& run_id) {
  for (const auto& log : services_.earlier) {
    ASSIGN_OR_RETURN(const auto run, store::find_run(*log, reader, run_id));
    if (run) return gateway::may_see(caller, run->view()) ? Status(store::closed_error(*run)) : success();
  }
  return success();
}

void Subscriptions::answer(const std::shared_ptr<Subscriber>& session, const gateway::ExchangePtr& exchange) {
  const auto reply = [&](std::string_view name, std::int64_t value) {
    dispatcher_.answer(exchange,
                       gateway::Reply{json::Writer().begin_object().member(name, value).end_object().text(), {}});
  };
  if (exchange->method->name == "event.unsubscribe") {
    const auto next_seq = unsubscribe(*session, exchange->params);
    return next_seq ? reply("next_seq", *next_seq) : dispatcher_.answer(exchange, next_seq.error());
  }
  const auto subscription = subscribe(session, exchange->params);
  if (!subscription) return dispatcher_.answer(exchange, subscription.error());
  // Sends events only after the reply that names the subscription. The client may end the subscription before that
  // reply is written.
  const std::uint64_t number = (*subscription)->number;
  reply("subscription", static_cast<std::int64_t>(number));
  if (!subscriptions_.contains(number)) return;
  (*subscription)->metrics ? send_metrics(**subscription) : pump(*subscription);
}

// Omits the metrics that need Postgres. Skips a client that does not read.
void Subscriptions::send_metrics(Subscription& subscription) {
  const auto session = subscription.session.lock();
  if (!session || !session->may_send()) return;
  session->send(notification("metrics", subscription.number, "text",
                             json::quote(gateway::methods::metrics_text(services_, nullptr))));
}

void Subscriptions::count() const {
  metrics::process().subscriptions.set(static_cast<std::int64_t>(subscriptions_.size()));
}

Status Subscriptions::check_room(const Subscriber& session) const {
  const auto refused = [](std::size_t limit, std::string_view whose) {
    Error error(Errc::over_budget, std::to_string(limit) + " subscriptions are open" + std::string(whose) +
                                       ", which is the limit. End one with event.unsubscribe.");
    error.limit = static_cast<std::int64_t>(limit);
    return error;
  };
  if (subscriptions_.size() >= limits::subscriptions_max) return refused(limits::subscriptions_max, "");
  const auto own = std::count_if(subscriptions_.begin(), subscriptions_.end(),
                                 [&](const auto& item) { return item.second->connection == session.number(); });
  if (static_cast<std::size_t>(own) < limits::subscriptions_per_connection_max) return success();
  return refused(limits::subscriptions_per_connection_max, " on this connection");
}

Result<std::shared_ptr<Subscriptions::Subscription>> Subscriptions::subscribe(
    const std::shared_ptr<Subscriber>& session, const json::Value& params) {
  RETURN_IF_ERROR(check_room(*session));
  auto subscription = std::make_shared<Subscription>();
  subscription->session = session;
  subscription->connection = session->number();
  ASSIGN_OR_RETURN(const gateway::LogSource source, source_of(session->caller(), params));
  if (!source.run_id.empty()) {
    const auto run = services_.runs.find(source.run_id);
    const bool theirs = run && (session->caller().admin || run->view().owner == session->caller().actor);
    if (!theirs || run->view().run_no < 0) {
      return Error(Errc::not_found, "no run " + source.run_id + ". See: muniment run list");
    }
    subscription->run_no = run->view().run_no;
  } else if (!session->caller().admin && !params["pointer"]) {
    return Error(Errc::denied, "only the daemon's own user may follow the whole log: give a run_id.");
  }
  subscription->types = source.types;
  subscription->actor = source.actor;
  subscription->metrics = source.metrics;
  subscription->next_seq = params["from_seq"].as_int().value_or(services_.tail.next_seq());
  subscription->number = next_++;
  subscriptions_.emplace(subscription->number, subscription);
  count();
  return subscription;
}

Result<std::int64_t> Subscriptions::unsubscribe(const Subscriber& session, const json::Value& params) {
  const auto number = static_cast<std::uint64_t>(params["subscription"].as_int().value_or(0));
  const auto found = subscriptions_.find(number);
  if (found == subscriptions_.end() || found->second->connection != session.number()) {
    return Error(Errc::not_found, "this connection has no subscription " + std::to_string(number) + ".");
  }
  const std::int64_t next = found->second->next_seq;
  subscriptions_.erase(found);
  count();
  return next;
}

void Subscriptions::closed(const Subscriber& session) {
  std::erase_if(subscriptions_, [&](const auto& item) { return item.second->connection == session.number(); });
  count();
}

void Subscriptions::drained(const Subscriber& session) {
  if (session.unread_bytes() > limits::unread_bytes_per_connection_max / 2) return;
  for (const auto& [number, subscription] : subscriptions_) {
    if (subscription->connection == session.number()) pump(subscription);
  }
}

void Subscriptions::committed() {
  for (const auto& [number, subscription] : subscriptions_) pump(subscription);
}

// Sends as much as the tail and the client's buffer allow. Any write may detect that the client has disconnected, and
// close the session.
void Subscriptions::pump(const std::shared_ptr<Subscription>& subscription) {
  const auto session = subscription->session.lock();
  if (!session || subscription->reading_table || subscription->metrics) return;
  while (!session->closed()) {
    if (!session->may_send()) return;
    const auto events = services_.tail.read(subscription->next_seq, events_per_step);
    if (!events) return read_table(subscription);
    if (events->empty()) break;
    for (const store::EventPtr& event : *events) deliver(*subscription, *event);
    subscription->next_seq = events->back()->seq + 1;
  }
  if (!subscription->caught_up && !session->closed()) {
    subscription->caught_up = true;
    session->send(notification("caught_up", subscription->number, "seq", std::to_string(subscription->next_seq - 1)));
  }
}

void Subscriptions::deliver(Subscription& subscription, const events::Event& event) {
  if (subscription.run_no && event.run_no != *subscription.run_no) return;
  if (!matches(subscription.types, event.type) || (subscription.actor && event.actor != *subscription.actor)) return;
  const auto session = subscription.session.lock();
  if (session) session->send(notification("event", subscription.number, "event", gateway::event_json(event)));
}

// The tail no longer has these events, so a worker reads a page. `upto` was committed before the read: a page that is
// not full has covered everything below it.
void Subscriptions::read_table(const std::shared_ptr<Subscription>& subscription) {
  subscription->reading_table = true;
  store::EventFilter filter;
  filter.run_no = subscription->run_no;
  filter.from_seq = subscription->next_seq;
  filter.types = subscription->types;
  filter.actor = subscription->actor;
  const std::int64_t upto = services_.tail.next_seq();
  filter.to_seq = upto - 1;
  const Deadline deadline = services_.clock.monotonic() + std::chrono::milliseconds(limits::deadline_ms_default);
  Status posted = dispatcher_.workers().post(deadline, [this, subscription, filter, upto](store::Reader& reader) {
    auto page = std::make_shared<Result<std::vector<events::Event>>>(
        reader.events(filter, events_per_step, limits::page_bytes_max));
    dispatcher_.post_to_loop([this, subscription, page, upto] {
      subscription->reading_table = false;
      if (!*page) return;  // Postgres is unreachable: the next commit or keep-alive tries again
      for (const events::Event& event : **page) deliver(*subscription, event);
      // A page that was cut by bytes is shorter than events_per_step, so only an empty page marks the end.
      subscription->next_seq = (*page)->empty() ? upto : (*page)->back().seq + 1;
      pump(subscription);
    });
  });
  if (!posted) subscription->reading_table = false;
}

void Subscriptions::keep_alive() {
  for (const auto& [number, subscription] : subscriptions_) {
    const auto session = subscription->session.lock();
    if (!session) continue;
    if (subscription->metrics) {
      send_metrics(*subscription);
      continue;
    }
    pump(subscription);
    if (subscription->caught_up && session->may_send()) {
      session->send(notification("keep_alive", number, "seq", std::to_string(subscription->next_seq - 1)));
    }
  }
}

}  // namespace muniment::daemon
