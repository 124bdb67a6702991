#include "daemon/subscriptions.hpp"

#include <algorithm>

#include "base/limits.hpp"
#include "base/metrics.hpp"
#include "daemon/session.hpp"
#include "gateway/access.hpp"
#include "gateway/event_json.hpp"

namespace muniment::daemon {
namespace {

constexpr std::size_t events_per_step = 256;
constexpr std::size_t unsent_bytes_max = 4 << 20;      // of one session: beyond it the pump waits
constexpr std::chrono::seconds slow_reader_grace{30};

bool matches(const std::vector<std::string>& types, std::string_view type) {
  if (types.empty()) return true;
  return std::any_of(types.begin(), types.end(), [&](std::string_view wanted) {
    if (wanted.ends_with('*')) return type.starts_with(wanted.substr(0, wanted.size() - 1));
    return type == wanted;
  });
}

std::string notification(std::string_view method, std::uint64_t subscription, std::string_view name, std::string_view value) {
  std::string line = R"({"jsonrpc":"2.0","method":")";
  line.append(method).append(R"(","params":{"subscription":)").append(std::to_string(subscription));
  line.append(",\"").append(name).append("\":").append(value).append("}}\n");
  return line;
}

}  // namespace

struct Subscriptions::Subscription {
  std::uint64_t number = 0;
  std::weak_ptr<Session> session;
  std::uint64_t connection = 0;
  std::int64_t next_seq = 0;               // the first seq that has not been looked at
  std::optional<std::int64_t> run_no;
  std::vector<std::string> types;
  bool reading_table = false;
  bool caught_up = false;
  std::optional<Monotonic> slow_since;     // its client does not read
};

Subscriptions::Subscriptions(gateway::Services& services, gateway::Dispatcher& dispatcher)
    : services_(services), dispatcher_(dispatcher) {}
Subscriptions::~Subscriptions() = default;

// A run that is not in memory is loaded by a worker first.
void Subscriptions::serve(Session& session, const gateway::ExchangePtr& exchange) {
  const std::string run_id = exchange->params["run_id"].string_or("");
  if (run_id.empty() || services_.runs.find(run_id)) return answer(session, exchange);
  std::weak_ptr<Session> weak = session.weak_from_this();
  Status posted = dispatcher_.workers().post(exchange->deadline, [this, weak, exchange, run_id](store::Reader& reader) {
    auto loaded = std::make_shared<Status>(success());
    if (auto run = services_.runs.find_or_load(run_id, [&] { return reader.load_run(run_id); }); !run) *loaded = std::move(run).error();
    dispatcher_.post_to_loop([this, weak, exchange, loaded] {
      const auto alive = weak.lock();
      if (!alive || alive->closed()) return;
      if (!*loaded) return exchange->reply(gateway::error_line(exchange->id, loaded->error()));
      answer(*alive, exchange);
    });
  });
  if (!posted) exchange->reply(gateway::error_line(exchange->id, posted.error()));
}

void Subscriptions::answer(Session& session, const gateway::ExchangePtr& exchange) {
  const bool starts = exchange->method->name == "event.subscribe";
  auto result = starts ? subscribe(session, exchange->params) : unsubscribe(session, exchange->params);
  services_.requests.note(*exchange->method, result ? std::nullopt : std::optional(result.error().code), services_.clock.monotonic() - exchange->began);
  if (!result) return exchange->reply(gateway::error_line(exchange->id, result.error()));
  exchange->reply(gateway::result_line(exchange->id, *result));
  // Events only after the reply that names the subscription.
  if (starts) pump(subscriptions_.at(next_ - 1));
}

void Subscriptions::count() const { metrics::process().subscriptions.set(static_cast<std::int64_t>(subscriptions_.size())); }

Result<std::string> Subscriptions::subscribe(Session& session, const json::Value& params) {
  auto subscription = std::make_shared<Subscription>();
  subscription->session = session.weak_from_this();
  subscription->connection = session.number();
  if (const auto run_id = params["run_id"].as_string()) {
    const auto run = services_.runs.find(*run_id);
    const bool theirs = run && (session.caller().admin || run->view().owner == session.caller().actor);
    if (!theirs || run->view().run_no < 0) {
      return Error(Errc::not_found, "no run " + *run_id + ". See: muniment run list");
    }
    subscription->run_no = run->view().run_no;
  } else if (!session.caller().admin) {
    return Error(Errc::denied, "only the daemon's own user may follow the whole log: give a run_id.");
  }
  for (const json::Value type : params["types"]) subscription->types.push_back(type.string_or(""));
  subscription->next_seq = params["from_seq"].as_int().value_or(services_.tail.next_seq());
  subscription->number = next_++;
  subscriptions_.emplace(subscription->number, subscription);
  count();
  return json::Writer().begin_object().member("subscription", static_cast<std::int64_t>(subscription->number)).end_object().text();
}

Result<std::string> Subscriptions::unsubscribe(Session& session, const json::Value& params) {
  const auto number = static_cast<std::uint64_t>(params["subscription"].as_int().value_or(0));
  const auto found = subscriptions_.find(number);
  if (found == subscriptions_.end() || found->second->connection != session.number()) {
    return Error(Errc::not_found, "this connection has no subscription " + std::to_string(number) + ".");
  }
  const std::int64_t next = found->second->next_seq;
  subscriptions_.erase(found);
  count();
  return json::Writer().begin_object().member("next_seq", next).end_object().text();
}

void Subscriptions::closed(Session& session) {
  std::erase_if(subscriptions_, [&](const auto& item) { return item.second->connection == session.number(); });
  count();
}

void Subscriptions::drained(Session& session) {
  if (session.unsent_bytes() > unsent_bytes_max / 2) return;
  for (const auto& [number, subscription] : subscriptions_) {
    if (subscription->connection == session.number()) pump(subscription);
  }
}

void Subscriptions::committed() {
  for (const auto& [number, subscription] : subscriptions_) pump(subscription);
}

// Goes as far as the tail and the client's buffer allow. Any write may find that the client has left, and close the session.
void Subscriptions::pump(const std::shared_ptr<Subscription>& subscription) {
  const auto session = subscription->session.lock();
  if (!session || subscription->reading_table) return;
  while (!session->closed()) {
    if (session->unsent_bytes() > unsent_bytes_max) {
      if (!subscription->slow_since) subscription->slow_since = services_.clock.monotonic();
      return;
    }
    subscription->slow_since.reset();
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
  if (!matches(subscription.types, event.type)) return;
  const auto session = subscription.session.lock();
  if (session) session->send(notification("event", subscription.number, "event", gateway::event_json(event)));
}

// Older than what the tail holds: a worker reads a page. `upto` was committed before the read, so
// that a page that is not full has seen everything below it.
void Subscriptions::read_table(const std::shared_ptr<Subscription>& subscription) {
  subscription->reading_table = true;
  store::EventFilter filter;
  filter.run_no = subscription->run_no;
  filter.from_seq = subscription->next_seq;
  filter.types = subscription->types;
  const std::int64_t upto = services_.tail.next_seq();
  filter.to_seq = upto - 1;
  const Deadline deadline = services_.clock.monotonic() + std::chrono::milliseconds(limits::deadline_ms_default);
  Status posted = dispatcher_.workers().post(deadline, [this, subscription, filter, upto](store::Reader& reader) {
    auto page = std::make_shared<Result<std::vector<events::Event>>>(reader.events(filter, events_per_step, limits::page_bytes_max));
    dispatcher_.post_to_loop([this, subscription, page, upto] {
      subscription->reading_table = false;
      if (!*page) return;  // Postgres is away: the next commit or keep-alive tries again
      for (const events::Event& event : **page) deliver(*subscription, event);
      // A page cut by its bytes is shorter than events_per_step, so only an empty one is the end.
      subscription->next_seq = (*page)->empty() ? upto : (*page)->back().seq + 1;
      pump(subscription);
    });
  });
  if (!posted) subscription->reading_table = false;
}

void Subscriptions::keep_alive() {
  const Monotonic now = services_.clock.monotonic();
  std::vector<std::shared_ptr<Session>> too_slow;
  for (const auto& [number, subscription] : subscriptions_) {
    const auto session = subscription->session.lock();
    if (!session) continue;
    pump(subscription);
    if (subscription->slow_since && now - *subscription->slow_since > slow_reader_grace) {
      session->send(notification("closed", number, "next_seq", std::to_string(subscription->next_seq)));
      too_slow.push_back(session);
    } else if (subscription->caught_up) {
      session->send(notification("keep_alive", number, "seq", std::to_string(subscription->next_seq - 1)));
    }
  }
  for (const auto& session : too_slow) session->close();
}

}  // namespace muniment::daemon
