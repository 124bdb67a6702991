// Implements the Reader itself, the log's size and positions, and those of the followers. Other statements are in
// reader_events.cpp, reader_runs.cpp, reader_files.cpp and reader_ledger.cpp.
#include "store/read/reader.hpp"

#include <algorithm>

#include "store/read/reader_impl.hpp"

namespace muniment::store {
namespace {

constexpr std::chrono::milliseconds decided_within{1'000};

Error undecided(Time time) {
  Error error(Errc::unavailable, "the state at " + format_time(time) +
                                     " is not final yet: Postgres has not confirmed all events up to then. "
                                     "Retry in a moment, or use an earlier time.");
  error.retry_after_ms = 1'000;
  return error;
}

}  // namespace

Reader::Reader(const LogPlace& place, DatabaseRole role) : impl_(std::make_unique<Impl>(place, role)) {}
Reader::Reader(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Reader::~Reader() = default;
Connection& Reader::connection() { return impl_->connection; }
const LogPlace& Reader::place() const { return impl_->place; }
std::int16_t Reader::log_no() const { return impl_->log_no; }

Reader& Reader::of(const LogPlace& other) {
  if (other.log_no == impl_->log_no) return *this;
  std::unique_ptr<Reader>& held = impl_->others[other.log_no];
  if (!held) held.reset(new Reader(std::make_unique<Impl>(other, impl_->shared)));
  return *held;
}

Result<std::int64_t> Reader::log_size() {
  return guarded(impl_->connection, "reading the log's size", [&] {
    return integer_of(query(impl_->connection, "log_size",
                            "SELECT coalesce(max(seq) + 1, 0) FROM event WHERE log_no = $1", impl_->params())[0][0]);
  });
}

Result<std::int64_t> Reader::seq_as_of(Time time) {
  ASSIGN_OR_RETURN(const std::int64_t found, guarded(impl_->connection, "looking for the position of a time", [&] {
                     return std::min(impl_->place.size - 1,
                                     integer_of(query(impl_->connection, "seq_as_of", "SELECT event_seq_as_of($1, $2)",
                                                      impl_->params().time(time))[0][0]));
                   }));
  // The times on both sides decide.
  for (const std::int64_t seq : {found, found + 1}) {
    if (seq >= 0) RETURN_IF_ERROR(confirmed(event_at(seq)));
  }
  return found;
}

Result<bool> Reader::has_passed(Time time, const Clock& clock, const Tail& tail, Deadline deadline) {
  const bool passed = time < clock.now();
  if (!impl_->closed()) {
    if (passed && !tail.decided(time, std::min(deadline, clock.monotonic() + decided_within))) return undecided(time);
    return passed;
  }
  if (passed) return true;
  ASSIGN_OR_RETURN(const std::int64_t size, log_size());
  ASSIGN_OR_RETURN(const auto last, event_at(size - 1));
  return last && last->recorded_at >= time;
}

Result<std::int64_t> Reader::follower_position(std::string_view name) {
  return guarded(impl_->connection, "reading a follower's position", [&]() -> std::int64_t {
    const pqxx::result rows =
        query(impl_->connection, "follower_position", "SELECT next_seq FROM follower WHERE log_no = $1 AND name = $2",
              impl_->params().text(name));
    return rows.empty() ? 0 : integer_of(rows[0][0]);
  });
}

Result<std::vector<std::pair<std::string, std::int64_t>>> Reader::follower_positions() {
  return guarded(impl_->connection, "reading the followers' positions", [&] {
    std::vector<std::pair<std::string, std::int64_t>> positions;
    for (const pqxx::row& row :
         query(impl_->connection, "follower_positions",
               "SELECT name, next_seq FROM follower WHERE log_no = $1 ORDER BY name", impl_->params())) {
      positions.emplace_back(text_of(row[0]), integer_of(row[1]));
    }
    return positions;
  });
}

Result<Totals> Reader::totals() {
  return guarded(impl_->connection, "summing up the tables", [&] {
    const pqxx::result rows = query(
        impl_->connection, "totals",
        "SELECT count(*) FILTER (WHERE status = 'open'), count(*) FILTER (WHERE status = 'ended'), "
        "count(*) FILTER (WHERE status = 'halted'), (SELECT count(*) FROM artifact WHERE log_no = $1 AND hash <> repeat('0', 64)), "
        "(SELECT coalesce(sum(size_bytes), 0)::bigint FROM artifact WHERE log_no = $1 AND hash <> repeat('0', 64)), "
        "pg_database_size(current_database()) FROM run WHERE log_no = $1",
        impl_->params());
    const auto at = [&](int column) { return integer_of(rows[0][column]); };
    return Totals{at(0), at(1), at(2), at(3), at(4), at(5)};
  });
}

}  // namespace muniment::store
