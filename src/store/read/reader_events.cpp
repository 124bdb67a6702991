// Implements reads of events. A filter becomes bounds on one index (the log's seq, or a run's run_seq) and conditions
// on the events between them. A time or a seq is converted to a position first, because a condition on it would scan
// all events up to it.
#include <algorithm>
#include <limits>
#include <set>

#include "store/files/body_archive.hpp"
#include "store/read/reader_impl.hpp"

namespace muniment::store {

namespace {

constexpr std::int64_t last_position = std::numeric_limits<std::int64_t>::max();
constexpr std::size_t rows_per_statement_max = 1'024;
// With a limit on bytes, the first statement requests few rows, because bodies have up to 60 KiB.
constexpr std::size_t rows_of_first_statement = 64;
constexpr std::size_t run_ids_held_max = 65'536;

struct Span {
  std::int64_t from = 0;
  std::int64_t to = last_position;

  void at_least(std::int64_t position) { from = std::max(from, position); }
  void at_most(std::int64_t position) { to = std::min(to, position); }
  bool empty() const { return from > to; }
};

std::int64_t ask_position(Reader::Impl& impl, std::string_view name, std::string_view sql, const Params& params) {
  return integer_of(query(impl.connection, name, sql, params)[0][0]);
}

// Returns the span of seq, or of run_seq if the filter names a run.
Span span_of(Reader::Impl& impl, const EventFilter& filter) {
  Span seqs{filter.from_seq, filter.to_seq.value_or(last_position)};
  if (impl.closed()) seqs.at_most(impl.place.size - 1);
  if (filter.since) {
    seqs.at_least(ask_position(impl, "seq_since", "SELECT event_seq_since($1, $2)", impl.params().time(*filter.since)));
  }
  if (filter.until) {
    seqs.at_most(ask_position(impl, "seq_as_of", "SELECT event_seq_as_of($1, $2)",
                              impl.params().time(Time{filter.until->micros - 1})));
  }
  if (!filter.run_no) return seqs;
  Span span{filter.from_run_seq.value_or(0), filter.to_run_seq.value_or(last_position)};
  const auto run_seq_as_of = [&](std::int64_t seq) {
    // Usually the run has not grown since then: its last event is the answer and no search is needed.
    const pqxx::result last =
        query(impl.connection, "run_last",
              "SELECT run_seq, seq FROM event WHERE log_no = $1 AND run_no = $2 ORDER BY run_seq DESC LIMIT 1",
              impl.params().integer(*filter.run_no));
    if (!last.empty() && integer_of(last[0][1]) <= seq) return integer_of(last[0][0]);
    return ask_position(impl, "run_seq_as_of", "SELECT event_run_seq_as_of($1, $2, $3)",
                        impl.params().integer(*filter.run_no).integer(seq));
  };
  if (seqs.from > 0) span.at_least(run_seq_as_of(seqs.from - 1) + 1);
  if (seqs.to < last_position) span.at_most(run_seq_as_of(seqs.to));
  return span;
}

std::string like_pattern(std::string_view prefix) {
  std::string pattern;
  for (const char byte : prefix) {
    if (byte == '%' || byte == '_' || byte == '\\') pattern += '\\';
    pattern += byte;
  }
  return pattern + "%";
}

// A statement that depends on the filter. Its name encodes its shape, so that each shape is prepared once.
class EventQuery {
 public:
  explicit EventQuery(const EventFilter& filter);
  pqxx::result run(Reader::Impl& impl, const Span& span, std::size_t rows) const;

 private:
  // `condition` contains "?" in place of each parameter.
  void add(std::string_view tag, std::string condition) {
    for (auto at = condition.find('?'); at != std::string::npos; at = condition.find('?')) {
      condition.replace(at, 1, "$" + std::to_string(++count_));
    }
    where_ += " AND " + condition;
    name_ += tag;
  }

  std::string name_ = "events";
  std::string where_ = "log_no = $1";
  std::string order_;
  int count_ = 4;  // $1 log_no, $2 and $3 the span, $4 the number of rows
  Params conditions_;
};

EventQuery::EventQuery(const EventFilter& filter) {
  const std::string position = filter.run_no ? "run_seq" : "seq";
  where_ += " AND " + position + " BETWEEN $2 AND $3";
  order_ = position + (filter.newest_first ? " DESC" : "");
  if (filter.newest_first) name_ += "_newest";
  if (filter.run_no) {
    add("_run", "run_no = ?");
    conditions_.integer(*filter.run_no);
  }
  if (!filter.types.empty()) {
    std::vector<std::string> exact;
    std::vector<std::string> patterns;
    for (const std::string& type : filter.types) {
      if (type.ends_with('*')) {
        patterns.push_back(like_pattern(std::string_view(type).substr(0, type.size() - 1)));
      } else {
        exact.push_back(type);
      }
    }
    add("_type", "(type = ANY(?::text[]) OR type LIKE ANY(?::text[]))");
    conditions_.texts(exact).texts(patterns);
  }
  if (filter.step_id) {
    add("_step", "step_id = ?");
    conditions_.text(*filter.step_id);
  }
  if (filter.actor) {
    add("_actor", "actor = ?");
    conditions_.text(*filter.actor);
  }
  if (filter.origin) {
    add("_origin", "origin = ?");
    conditions_.integer(static_cast<int>(*filter.origin));
  }
  if (filter.since) {
    add("_since", "recorded_at >= ?");
    conditions_.time(*filter.since);
  }
  if (filter.until) {
    add("_until", "recorded_at < ?");
    conditions_.time(*filter.until);
  }
}

pqxx::result EventQuery::run(Reader::Impl& impl, const Span& span, std::size_t rows) const {
  Params params = impl.params();
  params.integer(span.from).integer(span.to).integer(static_cast<std::int64_t>(rows));
  params.append(conditions_);
  return query(impl.connection, name_,
               "SELECT " MUNIMENT_EVENT_COLUMNS " FROM event WHERE " + where_ + " ORDER BY " + order_ + " LIMIT $4",
               params);
}

std::vector<events::Event> read_events(Reader::Impl& impl, const EventFilter& filter, std::size_t limit,
                                       std::size_t body_bytes_max) {
  Span span = span_of(impl, filter);
  const EventQuery statement(filter);
  std::vector<events::Event> page;
  std::size_t bytes = 0;
  std::size_t rows = body_bytes_max == SIZE_MAX ? rows_per_statement_max : rows_of_first_statement;
  while (page.size() < limit && !span.empty()) {
    rows = std::min({rows, limit - page.size(), rows_per_statement_max});
    const pqxx::result found = statement.run(impl, span, rows);
    std::vector<events::Event> events = rows_of(found, event_of);
    if (filter.archived_bodies) impl.fill(events);
    for (events::Event& event : events) {
      bytes += event.body ? event.body->size() : 0;
      if (!page.empty() && bytes > body_bytes_max) return page;
      const std::int64_t position = filter.run_no ? event.run_seq : event.seq;
      if (filter.newest_first) span.at_most(position - 1);
      if (!filter.newest_first) span.at_least(position + 1);
      page.push_back(std::move(event));
    }
    if (found.size() < rows) break;
    rows *= 2;
  }
  return page;
}

Result<std::optional<events::Event>> one_event(Reader::Impl& impl, std::string_view name, std::string_view sql,
                                               const Params& params) {
  return guarded(impl.connection, "reading an event", [&]() -> std::optional<events::Event> {
    auto events = rows_of(query(impl.connection, name, sql, params), event_of);
    if (events.empty() || events.front().seq >= impl.place.size) return {};
    impl.fill(events);
    impl.name_runs(events);
    return std::move(events.front());
  });
}

}  // namespace

events::Event event_of(const pqxx::row& row) {
  events::Event event;
  event.seq = integer_of(row[0]);
  event.run_no = integer_of(row[1]);
  event.run_seq = integer_of(row[2]);
  event.recorded_at = time_of(row[3]);
  event.occurred_at = time_if(row[4]);
  event.origin = static_cast<events::Origin>(integer_of(row[5]));
  event.type = text_of(row[6]);
  event.schema_version = static_cast<std::int16_t>(integer_of(row[7]));
  event.step_id = text_if(row[8]);
  event.actor = text_of(row[9]);
  event.event_id = uuid_of(row[10]);
  event.body_hash = hash_of(row[11]);
  event.salt = hash_if(row[12]);
  event.body = text_if(row[13]);
  event.run_hash = hash_of(row[14]);
  return event;
}

void Reader::Impl::fill(std::vector<events::Event>& events) {
  if (Status filled = fill_archived(archive, events); !filled) throw pqxx::conversion_error(filled.error().message);
}

void Reader::Impl::name_runs(std::vector<events::Event>& events) {
  if (run_ids.size() > run_ids_held_max) run_ids.clear();
  run_ids.try_emplace(0, log_run_id);
  std::set<std::int64_t> unknown;
  for (const events::Event& event : events) {
    if (!run_ids.contains(event.run_no)) unknown.insert(event.run_no);
  }
  if (!unknown.empty()) {
    // The table `run` covers the runs whose first partition was archived.
    for (const pqxx::row& row :
         query(connection, "run_ids",
               // Looks up each run in the index of runs: before its tables are analyzed, Postgres would otherwise scan
               // the start of every run.
               "SELECT wanted.run_no, began.run_id FROM unnest($2::bigint[]) wanted (run_no) CROSS JOIN LATERAL "
               "(SELECT CASE WHEN run_seq = 0 THEN body ->> 'run_id' END AS run_id FROM event WHERE log_no = $1 AND "
               "event.run_no = wanted.run_no AND run_seq >= 0 ORDER BY event.run_no, run_seq LIMIT 1) began "
               "WHERE began.run_id IS NOT NULL UNION "
               "SELECT run_no, run_id FROM run WHERE log_no = $1 AND run_no = ANY($2::bigint[])",
               params().integers({unknown.begin(), unknown.end()}))) {
      run_ids[integer_of(row[0])] = text_of(row[1]);
    }
  }
  for (events::Event& event : events) {
    const auto name = run_ids.find(event.run_no);
    if (name == run_ids.end()) {
      throw pqxx::conversion_error("event " + std::to_string(event.seq) + " is of run " + std::to_string(event.run_no) +
                                   ", which has no run.started. Run muniment-verify");
    }
    event.run_id = name->second;
  }
}

Result<std::vector<events::Event>> Reader::events(const EventFilter& filter, std::size_t limit,
                                                  std::size_t body_bytes_max) {
  return guarded(impl_->connection, "reading events", [&] {
    auto page = read_events(*impl_, filter, limit, body_bytes_max);
    impl_->name_runs(page);
    return page;
  });
}

Result<std::optional<events::Event>> Reader::event_at(std::int64_t seq) {
  return one_event(*impl_, "event_at", "SELECT " MUNIMENT_EVENT_COLUMNS " FROM event WHERE log_no = $1 AND seq = $2",
                   impl_->params().integer(seq));
}

Result<std::optional<events::Event>> Reader::event_of_run(std::int64_t run_no, std::int64_t run_seq) {
  return one_event(*impl_, "event_of_run",
                   "SELECT " MUNIMENT_EVENT_COLUMNS " FROM event WHERE log_no = $1 AND run_no = $2 AND run_seq = $3",
                   impl_->params().integer(run_no).integer(run_seq));
}

Result<Hash> Reader::previous_run_hash(const events::Event& event) {
  if (event.run_seq == 0) return Hash{};
  return guarded(impl_->connection, "reading the hash before an event", [&] {
    const pqxx::result rows = query(impl_->connection, "previous_run_hash",
                                    "SELECT run_hash FROM event WHERE log_no = $1 AND run_no = $2 AND run_seq = $3",
                                    impl_->params().integer(event.run_no).integer(event.run_seq - 1));
    if (!rows.empty()) return hash_of(rows[0][0]);
    throw pqxx::conversion_error("the event before " + std::to_string(event.seq) +
                                 " in its run is missing. Run muniment-verify");
  });
}

Result<std::optional<events::Event>> Reader::event_by_id(std::int64_t run_no, const Uuid& event_id) {
  return one_event(*impl_, "event_by_id",
                   "SELECT " MUNIMENT_EVENT_COLUMNS " FROM event WHERE log_no = $1 AND run_no = $2 AND event_id = $3",
                   impl_->params().integer(run_no).uuid(event_id));
}

Result<std::vector<events::Event>> Reader::events_by_ids(std::int64_t run_no, const std::vector<Uuid>& event_ids) {
  return guarded(impl_->connection, "reading events", [&] {
    // Looks up each id in the index of ids, as `name_runs` does for runs.
    auto found = rows_of(
        query(
            impl_->connection, "events_by_ids",
            "SELECT found.* FROM unnest($3::uuid[]) wanted (id) CROSS JOIN LATERAL (SELECT " MUNIMENT_EVENT_COLUMNS_WITH(
                "NULL::text AS body") " FROM event WHERE log_no = $1 AND run_no = $2 AND event_id = wanted.id "
                                      "LIMIT 1) found",
            impl_->params().integer(run_no).uuids(event_ids)),
        event_of);
    std::erase_if(found, [&](const events::Event& event) { return event.seq >= impl_->place.size; });
    impl_->name_runs(found);
    return found;
  });
}

}  // namespace muniment::store
