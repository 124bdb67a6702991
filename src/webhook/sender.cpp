#include "webhook/sender.hpp"

#include <algorithm>
#include <thread>

#include <fmt/format.h>

#include "base/crypto/sha256.hpp"
#include "base/http.hpp"
#include "base/limits.hpp"
#include "base/log.hpp"
#include "base/metrics.hpp"
#include "base/process/failpoint.hpp"
#include "base/process/thread.hpp"
#include "store/read/reader.hpp"
#include "store/tables/follower.hpp"

namespace muniment::webhook {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t batch_events_max = 1'000;
constexpr std::size_t batch_bytes_max = 8 << 20;        // bodies, which the table's reader loads
constexpr std::int64_t table_span_events = 65'536;      // events scanned at once when far behind
constexpr milliseconds at_rest{3'600'000};              // a commit or the stop ends it
constexpr milliseconds batch_pause{100};                // one batch then covers many commits of a busy log
constexpr milliseconds away_pause{1'000};               // after an error of the database
constexpr std::chrono::seconds store_at_most_each{10};  // for positions after events of other types
constexpr int status_gone = 410;
constexpr std::int64_t micros_per_second = 1'000'000;
constexpr std::int64_t retry_micros_max = limits::webhook_retry_hours_max * 3'600 * micros_per_second;

// A batch may wait for days, and a message has no body: an event that is erased meanwhile must not stay in memory.
store::EventPtr without_body(const events::Event& event) {
  auto made = std::make_shared<events::Event>(event);
  made->body.reset();
  made->salt.reset();
  return made;
}

std::uint32_t random_number() {
  std::uint32_t number = 0;
  random_bytes(reinterpret_cast<std::uint8_t*>(&number), sizeof number);
  return number;
}

}  // namespace

struct Sender::Line {
  Line(Webhook hook, const store::LogPlace& place)
      : webhook(std::move(hook)),
        follower(std::string(follower_prefix) + webhook.setting.name),
        reader(place),
        shown(metrics::process().followers.of(follower)) {}

  // Used by the thread alone.
  const Webhook webhook;
  const std::string follower;  // name of its position
  store::Reader reader;
  metrics::Gauge& shown;  // the position, for server.metrics
  std::int64_t next_seq = 0;
  std::int64_t stored_seq = 0;
  Monotonic stored_at{};
  int failures = 0;                   // consecutive ones
  std::optional<Time> failing_since;  // time of the first of them

  WebhookStatus status;  // guarded by the sender's mutex
  std::thread thread;
};

Sender::Sender(const Uuid& log_id, Clock& clock, const store::Tail& tail)
    : log_id_(log_id), clock_(clock), tail_(tail) {}

Sender::~Sender() { stop(); }

Result<std::unique_ptr<Sender>> Sender::open(std::vector<Webhook> webhooks, const store::LogPlace& place,
                                             const Uuid& log_id, const std::string& refused, Clock& clock,
                                             const store::Tail& tail) {
  std::unique_ptr<Sender> sender(new Sender(log_id, clock, tail));
  for (Webhook& webhook : webhooks) RETURN_IF_ERROR(sender->open_line(std::move(webhook), place, refused));
  return sender;
}

Status Sender::open_line(Webhook webhook, const store::LogPlace& place, const std::string& refused) {
  auto line = std::make_unique<Line>(std::move(webhook), place);
  line->status.name = line->webhook.setting.name;
  line->status.url = shown_url(line->webhook.setting.url);
  line->status.problem = refused;
  ASSIGN_OR_RETURN(const auto positions, line->reader.follower_positions());
  const auto found = std::ranges::find(positions, line->follower, &std::pair<std::string, std::int64_t>::first);
  const std::int64_t end = tail_.next_seq();
  line->next_seq = found == positions.end() ? end : std::min(found->second, end);
  line->stored_seq = line->next_seq;
  if (found == positions.end() && refused.empty())
    RETURN_IF_ERROR(store::keep_position(line->reader.connection(), place.log_no, line->follower, end));
  advance(*line, line->next_seq);
  lines_.push_back(std::move(line));
  return success();
}

void Sender::start() {
  for (const auto& line : lines_) {
    if (line->status.problem.empty()) line->thread = named_thread("webhook", [this, &line = *line] { serve(line); });
  }
}

void Sender::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  tail_.wake();
  for (const auto& line : lines_) {
    if (line->thread.joinable()) line->thread.join();
  }
}

std::vector<WebhookStatus> Sender::status() const {
  const std::lock_guard lock(mutex_);
  std::vector<WebhookStatus> all;
  for (const auto& line : lines_) all.push_back(line->status);
  return all;
}

void Sender::serve(Line& line) {
  while (!stopping_) {
    const auto batch = read(line);
    if (!batch) {
      set_problem(line, "reading the log: " + batch.error().message);
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, away_pause, [&] { return stopping_.load(); });
      continue;
    }
    if (line.failures == 0) set_problem(line, {});
    for (const store::EventPtr& event : batch->events) {
      if (deliver(line, *event) == Outcome::stop) return;
    }
    const bool at_end = batch->next_seq == line.next_seq;
    advance(line, batch->next_seq);
    if (clock_.monotonic() >= line.stored_at + store_at_most_each) store_position(line);
    if (at_end) rest(line);
  }
  store_position(line);
}

// Waits for new events. Stores the position if there is none for a while.
void Sender::rest(Line& line) {
  if (!tail_.wait(line.next_seq, store_at_most_each, stopping_)) store_position(line);
  tail_.wait(line.next_seq, at_rest, stopping_);
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, batch_pause, [&] { return stopping_.load(); });
}

Result<Sender::Batch> Sender::read(Line& line) const {
  const std::vector<std::string>& types = line.webhook.setting.types;
  Batch batch;
  batch.next_seq = line.next_seq;
  const std::int64_t end = tail_.next_seq();
  if (line.next_seq >= end) return batch;
  if (const auto newer = tail_.read(line.next_seq, batch_events_max)) {
    for (const store::EventPtr& event : *newer) {
      if (matches(types, event->type)) batch.events.push_back(without_body(*event));
    }
    if (!newer->empty()) batch.next_seq = newer->back()->seq + 1;
    return batch;
  }
  store::EventFilter filter;
  filter.from_seq = line.next_seq;
  filter.to_seq = std::min(end, line.next_seq + table_span_events) - 1;
  filter.types = types;
  filter.archived_bodies = false;
  ASSIGN_OR_RETURN(auto events, line.reader.events(filter, batch_events_max, batch_bytes_max));
  // A page that reached a limit ends before the span.
  std::size_t bytes = 0;
  for (const events::Event& event : events) bytes += event.body ? event.body->size() : 0;
  const bool cut = events.size() == batch_events_max || bytes + limits::event_body_bytes_max > batch_bytes_max;
  batch.next_seq = cut ? events.back().seq + 1 : *filter.to_seq + 1;
  for (const events::Event& event : events) batch.events.push_back(without_body(event));
  return batch;
}

// Sends one event until it is delivered or skipped. The position is stored after each delivery, so that a crash repeats
// at most one.
Sender::Outcome Sender::deliver(Line& line, const events::Event& event) {
  while (!skips(line, event)) {
    const auto answered = post(line, event);
    if (stopping_ && !answered) return Outcome::stop;  // aborted
    if (answered && *answered / 100 == 2) {
      FAILPOINT("webhook.delivered");
      line.failures = 0;
      line.failing_since.reset();
      {
        const std::lock_guard lock(mutex_);
        ++line.status.delivered;
        line.status.next_attempt.reset();
      }
      set_problem(line, {});
      advance(line, event.seq + 1);
      store_position(line);
      return Outcome::done;
    }
    if (answered && *answered == status_gone) {
      count_failure(line, std::nullopt);
      set_problem(line, "the receiver answered 410 Gone: nothing is sent until the daemon restarts");
      return Outcome::stop;
    }
    fail(line, answered ? fmt::format("the receiver answered {}", *answered) : answered.error().message);
    if (stopping_) return Outcome::stop;
  }
  {
    const std::lock_guard lock(mutex_);
    if (line.status.skipped++ == 0)
      log_warning("events are skipped, because their webhook has failed for too long",
                  {{"webhook", line.status.name}, {"seq", event.seq}, {"hours", limits::webhook_retry_hours_max}});
    line.status.next_attempt.reset();
  }
  advance(line, event.seq + 1);
  store_position(line);
  return Outcome::done;
}

// An event is skipped only if deliveries have failed all the time, so that a daemon that was down for days sends what
// it missed.
bool Sender::skips(const Line& line, const events::Event& event) const {
  const auto is_old = [now = clock_.now().micros](const Time& time) { return now - time.micros > retry_micros_max; };
  return line.failing_since && is_old(*line.failing_since) && is_old(event.recorded_at);
}

// Returns the status of the answer. Errors contain only the scheme and the host of the URL.
Result<int> Sender::post(const Line& line, const events::Event& event) const {
  const WebhookSetting& setting = line.webhook.setting;
  const std::int64_t now = clock_.now().micros / micros_per_second;
  const std::string id = message_id(setting.name, event);
  HttpRequest request;
  request.method = "POST";
  request.url = setting.url;
  request.content_type = "application/json";
  request.body = message_body(event, log_id_);
  request.headers = {"webhook-id: " + id, fmt::format("webhook-timestamp: {}", now),
                     "webhook-signature: " + signature(line.webhook.secret, id, now, request.body)};
  request.timeout = milliseconds(limits::webhook_timeout_ms);
  request.answer_bytes_max = limits::webhook_answer_bytes_max;
  request.given_up = [this] { return stopping_.load(); };
  auto answer = send_http(request);
  if (answer) return answer->status;
  std::string& message = answer.error().message;
  if (message.starts_with(setting.url)) message.replace(0, setting.url.size(), shown_url(setting.url));
  return std::move(answer).error();
}

// Records a failed attempt, and waits until the next one.
void Sender::fail(Line& line, const std::string& problem) {
  if (!line.failing_since) line.failing_since = clock_.now();
  const milliseconds pause = retry_pause(++line.failures, random_number());
  count_failure(line, Time{clock_.now().micros + std::chrono::microseconds(pause).count()});
  set_problem(line, problem);
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, pause, [&] { return stopping_.load(); });
}

void Sender::count_failure(Line& line, std::optional<Time> next_attempt) {
  const std::lock_guard lock(mutex_);
  ++line.status.failed;
  line.status.next_attempt = next_attempt;
}

void Sender::advance(Line& line, std::int64_t next_seq) {
  line.next_seq = next_seq;
  line.shown.set(next_seq);
  const std::lock_guard lock(mutex_);
  line.status.next_seq = next_seq;
}

// If the database does not answer, a later call stores a newer position, and a crash before it repeats deliveries.
void Sender::store_position(Line& line) {
  line.stored_at = clock_.monotonic();
  if (line.stored_seq == line.next_seq) return;
  const Status stored =
      store::keep_position(line.reader.connection(), line.reader.log_no(), line.follower, line.next_seq);
  if (stored) line.stored_seq = line.next_seq;
  if (!stored)
    log_warning("cannot store the position of a webhook",
                {{"webhook", line.webhook.setting.name}, {"error", stored.error().message}});
}

// Logs each new problem once.
void Sender::set_problem(Line& line, std::string problem) {
  const std::lock_guard lock(mutex_);
  if (!problem.empty() && problem != line.status.problem)
    log_warning("cannot deliver to a webhook", {{"webhook", line.status.name}, {"error", problem}});
  line.status.problem = std::move(problem);
}

}  // namespace muniment::webhook
