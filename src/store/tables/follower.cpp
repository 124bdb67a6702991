#include "store/tables/follower.hpp"

#include <algorithm>

#include "base/limits.hpp"
#include "base/log.hpp"
#include "base/process/failpoint.hpp"
#include "store/read/pq.hpp"
#include "store/tables/followed_rows.hpp"

namespace muniment::store {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t batch_events_max = 4'096;
constexpr std::int64_t table_span_events = 65'536;  // events scanned at once when far behind
constexpr std::size_t table_rows_max = 4'096;       // events taken at once
constexpr std::size_t table_bytes_max = 8u << 20;   // total size of their bodies
constexpr milliseconds at_rest{3'600'000};
constexpr milliseconds away_pause{500};

// Moves the position from `from`, which must match, or from any position. The statement locks the row, so it waits for
// an earlier write whose commit is still in progress.
bool put_position(Connection& connection, pqxx::transaction_base& work, std::int16_t log_no, std::string_view name,
                  std::optional<std::int64_t> from, std::int64_t next_seq) {
  return query(
             connection, work, "follower_position_put",
             "INSERT INTO follower (log_no, name, next_seq) VALUES ($1, $2, $3) "
             "ON CONFLICT (log_no, name) DO UPDATE SET next_seq = excluded.next_seq, updated_at = now() WHERE follower.next_seq = coalesce($4, follower.next_seq)",
             Params().integer(log_no).text(name).integer(next_seq).text_or_null(
                 from ? std::optional(std::to_string(*from)) : std::nullopt))
             .affected_rows() == 1;
}

}  // namespace

Follower::Follower(std::string name, std::vector<std::string> types, Options options, const Tail& tail)
    : name_(std::move(name)),
      types_(std::move(types)),
      options_(std::move(options)),
      tail_(tail),
      reader_(options_.place, DatabaseRole::follower),
      shown_(metrics::process().followers.of(name_)) {}

Follower::~Follower() = default;

// Sets the position before other threads can query it, if Postgres answers now.
void Follower::start() {
  if (const auto position = reader_.follower_position(name_)) {
    next_seq_.store(*position, std::memory_order_release);
    shown_.set(*position);
  }
  worker_.start("follow " + name_, [this] { follow(); });
}

std::string Follower::problem() const {
  const auto lock = worker_.lock();
  return problem_;
}

void Follower::set_problem(std::string text) {
  const auto lock = worker_.lock();
  if (!text.empty() && problem_ != text) log_warning("a follower is blocked", {{"follower", name_}, {"error", text}});
  problem_ = std::move(text);
}

void Follower::pause(milliseconds time) {
  auto lock = worker_.lock();
  worker_.wait_until(lock, std::chrono::steady_clock::now() + time, [this] { return hurried_; });
  hurried_ = false;
}

bool Follower::wait_for(std::int64_t seq, std::chrono::steady_clock::time_point until, bool hurry) {
  auto lock = worker_.lock();
  worker_.wait_until(lock, until, [&] {
    if (next_seq() >= seq) return true;
    if (hurry && !std::exchange(hurried_, true))
      worker_.notify();  // once, because two followers that repeated it would keep waking each other
    return false;
  });
  return next_seq() >= seq;
}

bool Follower::concerns(std::string_view type) const {
  return std::ranges::any_of(types_, [&](const std::string& wanted) {
    if (wanted.ends_with('*')) return type.starts_with(std::string_view(wanted).substr(0, wanted.size() - 1));
    return type == wanted;
  });
}

void Follower::follow() {
  while (true) {
    const Status stepped = step();
    set_problem(stepped ? std::string() : stepped.error().message);
    worker_.notify();  // after taking the lock, so that a thread that checked before is waiting by now
    const std::int64_t waiting = tail_.next_seq() - next_seq_.load();
    const bool ending = tail_.closed();
    if (ending && (!stepped || waiting <= 0)) return;  // the next start reads the rest
    if (!stepped) {
      pause(away_pause);
    } else if (waiting < static_cast<std::int64_t>(batch_events_max)) {
      if (waiting <= 0) tail_.wait(next_seq_.load(), at_rest);
      if (!tail_.closed()) pause(options_.batch_pause);
    }
  }
}

Status Follower::step() {
  const std::lock_guard lock(step_mutex_);
  if (next_seq_.load() < 0) {
    ASSIGN_OR_RETURN(const std::int64_t position, reader_.follower_position(name_));
    next_seq_.store(position, std::memory_order_release);
    shown_.set(position);
  }
  if (!unconfirmed_.empty()) RETURN_IF_ERROR(look_again());  // the position decides what to read next
  if (!begun_) RETURN_IF_ERROR(begin(reader_));
  begun_ = true;
  if (next_seq_.load() >= tail_.next_seq()) return success();
  const std::int64_t batch_began = next_seq_.load();
  ASSIGN_OR_RETURN(const Batch batch, read_batch());
  FollowedRows rows;
  if (!batch.events.empty()) {
    ASSIGN_OR_RETURN(rows, apply(batch.events, reader_));
  }
  const std::int64_t next = rows.next_seq.value_or(batch.next_seq);
  const auto wrote = write(rows, next);
  begun_ = wrote && *wrote;
  if (!wrote) {
    // The write can be committed only if the connection was lost, not if Postgres refused it.
    const bool in_doubt = wrote.error().code == Errc::unavailable;
    const bool known = std::ranges::find(unconfirmed_, next, &Unconfirmed::next_seq) != unconfirmed_.end();
    if (in_doubt && !known) unconfirmed_.push_back({std::move(rows), next});
    return wrote.error();
  }
  if (!*wrote) {
    RETURN_IF_ERROR(look_again());
    if (next_seq_.load() != batch_began) return success();
    return Error(
        Errc::system_error,
        "Postgres does not store its position: the table follower was altered (by a trigger, for example). Run muniment-verify, and see docs/runbook.md#tables_changed");
  }
  unconfirmed_.clear();
  written(rows);
  next_seq_.store(next, std::memory_order_release);
  shown_.set(next);
  return success();
}

// Determines whether an unconfirmed write is committed, or another daemon has moved the position.
Status Follower::look_again() {
  ASSIGN_OR_RETURN(const std::int64_t position, reader_.follower_position(name_));
  if (position == next_seq_.load()) return success();  // the commit is still pending; the next write waits for it
  const auto there = std::ranges::find(unconfirmed_, position, &Unconfirmed::next_seq);
  if (there != unconfirmed_.end()) written(there->rows);
  unconfirmed_.clear();
  next_seq_.store(position, std::memory_order_release);
  shown_.set(position);
  return success();
}

Status Follower::move_to(std::int64_t next_seq) {
  RETURN_IF_ERROR(keep_position(reader_.connection(), options_.place.log_no, name_, next_seq));
  next_seq_.store(next_seq, std::memory_order_release);
  return success();
}

Result<Follower::Batch> Follower::read_batch() {
  Batch batch;
  batch.next_seq = next_seq_.load();
  const std::int64_t end = tail_.next_seq();
  while (batch.next_seq < end && batch.events.size() < batch_events_max) {
    const auto newer = tail_.read(batch.next_seq, batch_events_max);
    if (!newer) {
      if (!batch.events.empty()) return batch;
      return read_table(batch.next_seq, std::min(end, batch.next_seq + table_span_events));
    }
    if (newer->empty()) break;
    for (const EventPtr& event : *newer) {
      if (concerns(event->type)) batch.events.push_back(event);
    }
    batch.next_seq = newer->back()->seq + 1;
  }
  return batch;
}

Result<Follower::Batch> Follower::read_table(std::int64_t from, std::int64_t end) {
  EventFilter filter;
  filter.from_seq = from;
  filter.to_seq = end - 1;
  filter.types = types_;
  ASSIGN_OR_RETURN(auto events, options_.confirmed
                                    ? reader_.recorded_events({from, end}, table_rows_max, table_bytes_max)
                                    : reader_.events(filter, table_rows_max, table_bytes_max));
  std::size_t bytes = 0;
  for (const events::Event& event : events) bytes += event.body ? event.body->size() : 0;
  // The page may end before the span: at the limit of rows, or at the limit of bytes that one more event could exceed.
  const bool cut = events.size() == table_rows_max || bytes + limits::event_body_bytes_max > table_bytes_max;
  Batch batch;
  batch.next_seq = cut ? events.back().seq + 1 : end;
  for (events::Event& event : events) {
    if (concerns(event.type)) batch.events.push_back(std::make_shared<const events::Event>(std::move(event)));
  }
  return batch;
}

Result<bool> Follower::write(const FollowedRows& rows, std::int64_t next_seq) {
  Connection& connection = reader_.connection();
  RETURN_IF_ERROR(connection.ensure_open());
  // Runs once: after a lost commit, the position is read before anything is written again.
  auto wrote = once(connection, "writing what follower " + name_ + " has read", [&] {
    pqxx::work work(*connection.impl().link);
    // Moves the position first, as a rebuild does, to avoid a deadlock.
    if (!put_position(connection, work, options_.place.log_no, name_, next_seq_.load(), next_seq)) return false;
    CorpusEffects effects;
    write_followed(connection, work, options_.place.log_no, rows, &effects);
    writing(rows, effects, next_seq);
    work.commit();
    return true;
  });
  if (FAILPOINT_FAILS("follower.committed"))
    return Error(Errc::unavailable, "the connection is gone before the commit was confirmed");
  return wrote;
}

Status keep_position(Connection& connection, std::int16_t log_no, std::string_view name, std::int64_t next_seq) {
  metrics::process().followers.of(name).set(next_seq);
  return guarded(connection, "keeping the position of follower " + std::string(name), [&] {
    pqxx::work work(*connection.impl().link);
    put_position(connection, work, log_no, name, std::nullopt, next_seq);
    work.commit();
    return Done{};
  });
}

}  // namespace muniment::store
