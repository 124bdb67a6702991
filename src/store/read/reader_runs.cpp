// Implements reads of runs. A single run is read from the log, with the indexes "started" and "life" of
// migrations/0001_log.sql: the derived table `run` lags slightly, and a halted run must not appear open in the
// meantime. Lists are read from the table.
#include "base/json/jsonb.hpp"
#include "base/limits.hpp"
#include "base/log.hpp"
#include "store/read/reader_impl.hpp"
#include "store/tables/run_row.hpp"

namespace muniment::store {

namespace {

#define MUNIMENT_RUN_COLUMNS                                                                                 \
  "run_no, run_id, first_seq, status, outcome, origin, owner, agent, goal, labels, parent, "                 \
  "external_id, " MUNIMENT_MICROS("started_at") ", " MUNIMENT_MICROS("ended_at") ", halt, " MUNIMENT_MICROS( \
      "first_occurred_at") ", " MUNIMENT_MICROS("last_occurred_at") ", trim_scale(u.cost)::text, u.currency, trim_scale(u.cost_estimated)::text, u.price_list"

RunRow run_row_of(const pqxx::row& row) {
  RunRow run;
  run.run_no = integer_of(row[0]);
  run.run_id = text_of(row[1]);
  run.first_seq = integer_of(row[2]);
  run.status = text_of(row[3]);
  run.outcome = text_if(row[4]);
  run.origin = static_cast<events::Origin>(integer_of(row[5]));
  run.owner = text_of(row[6]);
  run.agent = text_of(row[7]);
  run.goal = text_if(row[8]);
  run.labels = json::from_jsonb(text_of(row[9]));
  run.parent = text_if(row[10]);
  run.external_id = text_if(row[11]);
  run.started_at = time_of(row[12]);
  run.ended_at = time_if(row[13]);
  run.halt = text_if(row[14]);
  run.first_occurred_at = time_if(row[15]);
  run.last_occurred_at = time_if(row[16]);
  if (!row[18].is_null()) run.cost = {text_if(row[17]), text_of(row[18]), text_if(row[19]), text_if(row[20])};
  return run;
}

std::optional<RunRow> read_run(Reader::Impl& impl, std::int64_t run_no) {
  auto life = impl.life_of(run_no);
  if (life.empty() || run_no == 0) return {};
  impl.name_runs(life);
  RunRow run;
  for (const events::Event& event : life) apply_to_row(run, event);
  return run;
}

// Returns the last event of a run and the preceding events that changed its state, from one snapshot, in order. The
// bodies of the latter stay in the database after archiving, and the body of the last event is not needed.
std::vector<events::Event> life_and_head(Reader::Impl& impl, std::int64_t run_no) {
  return rows_of(
      query(impl.connection, "life_and_head",
            "SELECT * FROM (SELECT " MUNIMENT_EVENT_COLUMNS
            " FROM event WHERE log_no = $1 AND run_no = $2 AND seq < $3 AND type IN (" MUNIMENT_HEAD_TYPES ")) life "
            "UNION ALL SELECT * FROM (SELECT " MUNIMENT_EVENT_COLUMNS
            " FROM event WHERE log_no = $1 AND run_no = $2 AND seq < $3 ORDER BY run_seq DESC LIMIT 1) head "
            "ORDER BY run_seq",
            impl.params().integer(run_no).integer(impl.place.size)),
      event_of);
}

// If all ids are known, an unknown id is certainly new, and Postgres need not be queried.
void load_ids(Reader::Impl& impl, Run& run) {
  run.ids_complete_from = run.head.run_seq;
  if (run.head.run_seq > limits::run_ids_loaded_max) return;
  for (const pqxx::row& row :
       query(impl.connection, "ids_of_run", "SELECT event_id FROM event WHERE log_no = $1 AND run_no = $2",
             impl.params().integer(run.head.run_no))) {
    run.seen.add(fingerprint(uuid_of(row[0])));
  }
  run.ids_complete_from = 0;
}

std::shared_ptr<Run> loaded(Reader::Impl& impl, std::string_view run_id, std::int64_t run_no) {
  const auto events = life_and_head(impl, run_no);
  if (events.empty()) return nullptr;
  RunView view;
  if (run_no == 0) {
    view.status = RunStatus::open;
    view.owner = events::daemon_actor;
    view.origin = events::Origin::observed;
    view.run_no = view.first_seq = 0;
  }
  for (const events::Event& event : events) apply_to_view(view, event);
  const events::Event& last = events.back();
  auto run = std::make_shared<Run>(std::string(run_id));
  run->head = {run_no, last.run_seq + 1, last.run_hash, view.status};
  load_ids(impl, *run);
  run->committed(run->head.run_seq);
  run->publish(std::move(view));
  return run;
}

// The conditions of a run filter. An absent condition is NULL, which the statement treats as "any".
// The start of an imported run (origin 3) is the earliest time that its source gave; without one it is unknown.
#define MUNIMENT_RUN_START "CASE WHEN origin = 3 THEN first_occurred_at ELSE started_at END"
// The costs are read only for the runs of the page, which no plan may change: OFFSET 0 keeps the order of the steps.
constexpr const char* runs_sql = "SELECT " MUNIMENT_RUN_COLUMNS
                                 " FROM (SELECT run.*, first_occurred_at, last_occurred_at"
                                 " FROM run LEFT JOIN report_run USING (log_no, run_no) WHERE log_no = $1"
                                 " AND ($2::text IS NULL OR status = $2)"
                                 " AND ($3::text IS NULL OR agent = $3)"
                                 " AND ($4::jsonb IS NULL OR labels @> $4)"
                                 " AND ($5::timestamptz IS NULL OR " MUNIMENT_RUN_START
                                 " >= $5)"
                                 " AND ($6::text IS NULL OR parent = $6)"
                                 " AND ($7::text IS NULL OR owner = $7)"
                                 " AND ($8::text IS NULL OR external_id = $8)"
                                 " AND ($9::bigint IS NULL OR run_no < $9)"
                                 " AND first_seq < $11"
                                 " AND ($12::timestamptz IS NULL OR " MUNIMENT_RUN_START
                                 " < $12)"
                                 " ORDER BY run_no DESC LIMIT $10) listed"
                                 " LEFT JOIN LATERAL (SELECT x.cost, x.currency, x.cost_estimated, x.price_list"
                                 " FROM report_run_usage x WHERE x.log_no = listed.log_no"
                                 " AND x.run_no = listed.run_no OFFSET 0) u ON true ORDER BY run_no DESC";

template <typename T, typename Format>
std::optional<std::string> formatted(const std::optional<T>& value, Format format) {
  if (!value) return {};
  return format(*value);
}

}  // namespace

std::vector<events::Event> Reader::Impl::life_of(std::int64_t run_no) {
  return rows_of(
      query(connection, "life_of",
            "SELECT " MUNIMENT_EVENT_COLUMNS " FROM event WHERE log_no = $1 AND run_no = $2 AND seq < $3 AND "
            "type IN (" MUNIMENT_LIFE_TYPES ") ORDER BY run_seq",
            params().integer(run_no).integer(place.size)),
      event_of);
}

std::optional<std::int64_t> Reader::Impl::run_no_of(std::string_view run_id) {
  if (run_id == log_run_id) return 0;
  const pqxx::result rows = query(
      connection, "run_no_of",
      "SELECT run_no FROM event WHERE log_no = $1 AND run_seq = 0 AND run_no > 0 AND "
      "body ->> 'run_id' = $2 "
      // If the first event of a run is erased, only the table has its id.
      "UNION ALL SELECT r.run_no FROM run r JOIN event e USING (log_no, run_no) WHERE r.log_no = $1 AND r.run_id = $2 "
      "AND e.run_seq = 0 AND e.body IS NULL LIMIT 1",
      params().text(run_id));
  if (rows.empty()) return {};
  return integer_of(rows[0][0]);
}

Result<std::shared_ptr<Run>> Reader::load_run(std::string_view run_id) {
  ASSIGN_OR_RETURN(auto run, guarded(impl_->connection, "loading a run", [&]() -> std::shared_ptr<Run> {
                     const auto run_no = impl_->run_no_of(run_id);
                     return run_no ? loaded(*impl_, run_id, *run_no) : nullptr;
                   }));
  if (!run || run->view().run_no <= 0) return run;
  const auto started = confirmed(event_of_run(run->view().run_no, 0));
  if (!started && is_transient(started.error().code)) return started.error();
  RunView view = run->view();
  if (started && *started && (*started)->actor == view.owner) return run;
  log_warning("the event that started a run is not that of the log: only administrators may read the run",
              {{"run_id", std::string(run_id)}});
  view.owner = events::daemon_actor;
  run->publish(std::move(view));
  return run;
}

Result<std::optional<RunRow>> Reader::run(std::string_view run_id) {
  return guarded(impl_->connection, "reading a run", [&]() -> std::optional<RunRow> {
    const auto run_no = impl_->run_no_of(run_id);
    return run_no ? read_run(*impl_, *run_no) : std::nullopt;
  });
}

Result<std::vector<events::Event>> Reader::life_of(std::int64_t run_no) {
  return guarded(impl_->connection, "reading a run's life", [&] { return impl_->life_of(run_no); });
}

Result<std::optional<RunRow>> Reader::run_by_no(std::int64_t run_no) {
  return guarded(impl_->connection, "reading a run", [&] { return read_run(*impl_, run_no); });
}

Result<std::int64_t> Reader::next_run_seq(std::int64_t run_no) {
  return guarded(impl_->connection, "reading the last event of a run", [&] {
    const pqxx::result last = query(
        impl_->connection, "next_run_seq",
        "SELECT run_seq + 1 FROM event WHERE log_no = $1 AND run_no = $2 AND seq < $3 ORDER BY run_seq DESC LIMIT 1",
        impl_->params().integer(run_no).integer(impl_->place.size));
    return last.empty() ? 0 : integer_of(last[0][0]);
  });
}

Result<std::vector<std::string>> Reader::runs_last_active(std::int64_t from, std::int64_t end) {
  return guarded(impl_->connection, "looking for runs that were going on", [&] {
    std::vector<std::string> run_ids;
    for (
        const pqxx::row& row : query(
            impl_->connection, "runs_last_active",
            "SELECT coalesce((SELECT run_id FROM run r WHERE r.log_no = $1 AND r.run_no = may.run_no),"
            " (SELECT body ->> 'run_id' FROM event s WHERE s.log_no = $1 AND s.run_no = may.run_no AND s.run_seq = 0)) FROM (SELECT run_no FROM run WHERE log_no = $1 AND status = 'open' UNION "
            " SELECT run_no FROM event WHERE log_no = $1 AND type IN ('run.started', 'run.resumed')"
            " AND seq >= coalesce((SELECT next_seq FROM follower WHERE log_no = $1 AND name = 'run'), 0)) may "
            "CROSS JOIN LATERAL (SELECT seq, type FROM event e WHERE e.log_no = $1 AND e.run_no = may.run_no AND e.type <> 'snapshot.taken'"
            " ORDER BY e.run_seq DESC LIMIT 1) last "
            "WHERE may.run_no > 0 AND last.seq >= $2 AND last.seq < $3 AND last.type <> 'run.interrupted' ORDER BY may.run_no DESC",
            impl_->params().integer(from).integer(end))) {
      if (!row[0].is_null()) run_ids.push_back(text_of(row[0]));
    }
    return run_ids;
  });
}

Result<std::vector<RunRow>> Reader::runs(const RunFilter& filter, std::size_t limit) {
  return guarded(impl_->connection, "listing runs", [&] {
    Params params = impl_->params();
    params.text_or_null(filter.status)
        .text_or_null(filter.agent)
        .text_or_null(filter.labels)
        .text_or_null(formatted(filter.since, format_time))
        .text_or_null(filter.parent)
        .text_or_null(filter.owner)
        .text_or_null(filter.external_id)
        .text_or_null(formatted(filter.before_run_no, [](std::int64_t no) { return std::to_string(no); }))
        .integer(static_cast<std::int64_t>(limit))
        .integer(impl_->place.size)
        .text_or_null(formatted(filter.until, format_time));
    std::vector<RunRow> runs;
    for (const pqxx::row& row : query(impl_->connection, "runs", runs_sql, params)) {
      runs.push_back(run_row_of(row));
    }
    return runs;
  });
}

}  // namespace muniment::store
