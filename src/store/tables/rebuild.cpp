#include "store/tables/rebuild.hpp"

#include <array>
#include <iterator>
#include <optional>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/process/failpoint.hpp"
#include "events/catalogue.hpp"
#include "events/readable_text.hpp"
#include "store/logs/erasure.hpp"
#include "store/read/pq.hpp"
#include "store/tables/followed_rows.hpp"
#include "store/tables/rebuild_tables.hpp"
#include "store/tables/run_row.hpp"

namespace muniment::store {
namespace {

constexpr std::int64_t collect_span_events = 20'000;
constexpr int rest_per_work = 2;          // rests twice as long as it works: uses a third of one core
constexpr std::size_t fold_rows = 1'000;  // rows read at once

// The temporary tables have the names of the real ones and precede them in the search path, so that statements for the
// real ones write the temporary ones.
constexpr const char* make_temporary =
    "DROP TABLE IF EXISTS pg_temp.rebuilt_event;"
    "CREATE TEMP TABLE rebuilt_event (seq bigint PRIMARY KEY, run_no bigint, type text, actor text, origin smallint, "
    "recorded_at timestamptz, step_id text, body json, told boolean);"
    "CREATE INDEX ON rebuilt_event (run_no) WHERE type = 'run.started' AND (body IS NULL OR body->>'indexed' = 'true')";

constexpr std::string_view collect_events =
    "INSERT INTO rebuilt_event SELECT seq, run_no, type, actor, origin, recorded_at, step_id, body, salt IS NOT NULL FROM event "
    "WHERE log_no = $1 AND seq >= $2 AND seq < $3 AND (type LIKE 'run.%' OR type IN ('claim.recorded', 'claim.decided', "
    "'evidence.recorded', 'evidence.linked', 'task.opened', 'task.completed', 'manifest.recorded', 'artifact.stored', 'document.revised', 'document.retracted', "
    "'source.revoked', 'event.redacted', 'feedback.recorded'))";

// Selects events with a text, of runs that are indexed or may be. Their bodies are left out because they are large;
// they are read when needed.
constexpr std::string_view collect_readable =
    "INSERT INTO rebuilt_event SELECT e.seq, e.run_no, e.type, e.actor, e.origin, e.recorded_at, e.step_id, NULL, e.salt IS NOT NULL FROM rebuilt_event s "
    "JOIN event e ON e.log_no = $1 AND e.run_no = s.run_no AND e.seq >= $2 AND e.seq < $3 WHERE s.type = 'run.started' "
    "AND (s.body IS NULL OR s.body->>'indexed' = 'true') AND e.type = ANY ($4::text[]) ON CONFLICT DO NOTHING";

// Finds events that had a body when they were collected and were erased since then. An event of the log names every
// erased event: one that was collected, or a later one.
constexpr std::string_view erased_since_collected =
    "SELECT FROM rebuilt_event r JOIN event e ON e.log_no = $1 AND e.seq = r.seq WHERE r.told AND e.salt IS NULL AND r.seq IN ("
    "SELECT (body->>'seq')::bigint FROM rebuilt_event WHERE type = 'event.redacted' UNION "
    "SELECT (body->>'seq')::bigint FROM event WHERE log_no = $1 AND seq >= $2 AND type = 'event.redacted') LIMIT 1";

constexpr std::string_view corpus_events =
    "SELECT seq, type, actor, " MUNIMENT_MICROS("recorded_at") ", body, run_no FROM rebuilt_event WHERE seq > $1 AND seq < $2 AND (type IN "
    "('document.revised', 'document.retracted', 'source.revoked', 'event.redacted', 'feedback.recorded', 'run.started') "
    "OR type = ANY ($4::text[])) ORDER BY seq LIMIT $3";

// Keeps the row of a revision whose event was erased, except its end, which other events determine.
constexpr const char* keep_revision =
    "INSERT INTO pg_temp.corpus SELECT log_no, corpus, '{0}', seq, seq FROM public.document WHERE log_no = {1} AND seq = {2} AND owner IS NULL "
    "ON CONFLICT (log_no, corpus) DO UPDATE SET last_seq = excluded.last_seq;"
    "UPDATE pg_temp.document t SET valid_to = {2}, ended_by = 'revised' FROM public.document p WHERE p.log_no = {1} AND p.seq = {2} "
    "AND t.corpus = p.corpus AND t.document = p.document AND t.valid_to IS NULL;"
    "INSERT INTO pg_temp.document SELECT * FROM public.document WHERE log_no = {1} AND seq = {2};"
    "UPDATE pg_temp.document SET valid_to = NULL, ended_by = NULL, removed_at = NULL WHERE seq = {2};"
    "INSERT INTO pg_temp.chunk SELECT * FROM public.chunk WHERE log_no = {1} AND seq = {2}";

// Keeps the ends in the rows that an event without a body caused, and all ends of an erased revision.
constexpr const char* keep_ends =
    "UPDATE pg_temp.document t SET valid_to = p.valid_to, ended_by = p.ended_by, removed_at = p.removed_at FROM public.document p "
    "WHERE p.log_no = {0} AND t.seq = p.seq AND (p.valid_to = {1} OR p.removed_at = {1})";

std::vector<std::string> readable_types() {
  return {std::begin(events::readable_types), std::end(events::readable_types)};
}

}  // namespace

struct Rebuild::Work {
  Connection& connection;
  const std::int16_t log_no;
  pqxx::work work;

  Work(Connection& given, std::int16_t number) : connection(given), log_no(number), work(*given.impl().link) {}

  std::int64_t count(const std::string& rows) {
    return integer_of(work.exec("SELECT count(*) FROM (" + rows + ") AS counted")[0][0]);
  }

  // Empties or creates the temporary table. The table is kept because prepared statements refer to it.
  void make_table(const Table& table) {
    work.exec(fmt::format("CREATE TEMP TABLE IF NOT EXISTS {0} (LIKE public.{0} INCLUDING ALL)", table.name));
    work.exec(fmt::format("TRUNCATE pg_temp.{}", table.name));
  }

  // Collects the events of a span from which rows are derived.
  void collect(std::int64_t from, std::int64_t end) {
    query(connection, work, "rebuild_collect", collect_events, Params().integer(log_no).integer(from).integer(end));
    query(connection, work, "rebuild_readable", collect_readable,
          Params().integer(log_no).integer(from).integer(end).texts(readable_types()));
  }

  // Prevents erasures until the transaction ends. Returns true if something was erased; the derived rows must not be
  // written then.
  bool erased_meanwhile(std::int64_t collected) {
    hold_erasures(connection, work, log_no);
    return !query(connection, work, "rebuild_erased", erased_since_collected,
                  Params().integer(log_no).integer(collected))
                .empty();
  }

  // Returns the follower's position and locks it until the transaction ends.
  std::int64_t hold_follower(std::string_view name) {
    const pqxx::result row = query(connection, work, "rebuild_hold",
                                   "SELECT next_seq FROM follower WHERE log_no = $1 AND name = $2 FOR UPDATE",
                                   Params().integer(log_no).text(name));
    return row.empty() ? 0 : integer_of(row[0][0]);
  }

  // Calls `take` with each event of these types before `upto`, ordered by run and seq, with the text of its manifest.
  template <typename Take>
  void each_event(std::string_view type_pattern, std::int64_t upto, Take take) {
    std::int64_t run_no = -1;
    std::int64_t seq = -1;
    while (true) {
      const pqxx::result rows = query(
          connection, work, "rebuild_events",
          "SELECT e.run_no, e.seq, e.type, e.actor, e.origin, " MUNIMENT_MICROS(
              "e.recorded_at") ", e.body, " MUNIMENT_RUN_NAME
                               ", m.manifest FROM rebuilt_event e LEFT JOIN public.manifest m ON e.type = 'manifest.recorded' "
                               "AND m.manifest_id = (e.body->>'manifest_id')::uuid "
                               "WHERE (e.run_no, e.seq) > ($2, $3) AND e.seq < $4 AND e.type ~ $5 ORDER BY e.run_no, e.seq LIMIT $6",
          Params().integer(log_no).integer(run_no).integer(seq).integer(upto).text(type_pattern).integer(fold_rows));
      for (const pqxx::row& row : rows) {
        events::Event event;
        event.run_no = run_no = integer_of(row[0]);
        event.seq = seq = integer_of(row[1]);
        event.type = text_of(row[2]);
        event.actor = text_of(row[3]);
        event.origin = static_cast<events::Origin>(integer_of(row[4]));
        event.recorded_at = time_of(row[5]);
        event.body = text_if(row[6]);
        event.run_id = text_if(row[7]).value_or("");
        take(event, text_if(row[8]).value_or(""));
      }
      if (rows.size() < fold_rows) return;
    }
  }

  void put(FollowedRows rows) { write_followed(connection, work, log_no, rows); }

  void fold_runs(std::int64_t upto) {
    std::optional<RunRow> row;
    each_event("^run[.]", upto, [&](const events::Event& event, const std::string&) {
      if (!row || row->run_no != event.run_no) {
        if (row) put({{*row}, {}});
        row.reset();
        if (event.type == "run.started") row = RunRow();
      }
      if (row) apply_to_row(*row, event);
    });
    if (row) put({{*row}, {}});
  }

  void fold_pointers(std::int64_t upto, const PointersOf& pointers_of) {
    std::string pattern;
    for (const std::string& type : events::types_where([](const auto& row) { return !row.critical_for.empty(); }))
      pattern += (pattern.empty() ? "^(" : "|") + type;
    each_event(pattern + ")$", upto, [&](const events::Event& event, const std::string& manifest) {
      put({{}, pointers_of(event, manifest)});
    });
  }

  // Applies the changes in the order of the log, because one event ends what another began.
  Status fold_corpora(std::int64_t upto, const CorpusChangeOf& change_of) {
    for (std::int64_t seq = -1;;) {
      const pqxx::result rows = query(connection, work, "rebuild_corpora", corpus_events,
                                      Params().integer(seq).integer(upto).integer(fold_rows).texts(readable_types()));
      FollowedRows followed;
      const auto put_followed = [&] { put(std::exchange(followed, {})); };
      for (const pqxx::row& row : rows) {
        events::Event event;
        event.seq = seq = integer_of(row[0]);
        event.type = text_of(row[1]);
        event.actor = text_of(row[2]);
        event.recorded_at = time_of(row[3]);
        event.body = text_if(row[4]);
        event.run_no = integer_of(row[5]);
        const bool readable = events::is_readable(event.type);
        if (!event.body && !readable) {
          put_followed();
          fold_bodiless(event);
          continue;
        }
        ASSIGN_OR_RETURN(auto change, change_of(event));
        if (!change) continue;
        if (std::holds_alternative<Untold>(*change)) {
          put_followed();
          fold_bodiless(event);
          continue;
        }
        const bool erased = std::holds_alternative<Erased>(*change);
        followed.corpus.push_back(*std::move(change));
        if (!erased) continue;
        put_followed();
        work.exec(fmt::format(keep_ends, log_no, seq));
      }
      put_followed();
      if (rows.size() < fold_rows) return success();
    }
  }

  void fold_bodiless(const events::Event& event) {
    if (event.type == "document.revised" || events::is_readable(event.type))
      work.exec(fmt::format(keep_revision, work.esc(event.actor), log_no, event.seq));
    work.exec(fmt::format(keep_ends, log_no, event.seq));
  }

  // Selects the rows of the table x that are compared. Rows of later events are excluded, and the row of an erased
  // event may remain.
  std::string ours(const Table& table, std::int64_t upto) const {
    std::string where = fmt::format("x.log_no = {}", log_no);
    if (!table.follower.empty()) return where;
    return where +
           fmt::format(
               " AND x.seq < {} AND EXISTS (SELECT FROM event e WHERE e.log_no = x.log_no AND e.seq = x.seq AND e.body IS NOT NULL)",
               upto);
  }

  std::string rows_made(const Table& table) const {
    return fmt::format("SELECT {} FROM pg_temp.{}", table.compared, table.name);
  }
  std::string rows_there(const Table& table, std::int64_t upto) const {
    return fmt::format("SELECT {} FROM public.{} x WHERE {}", table.compared, table.name, ours(table, upto));
  }

  RebuiltTable compare(const Table& table, std::int64_t upto) {
    if (!table.later.empty()) work.exec(fmt::format(fmt::runtime(table.later), log_no, upto));
    const std::string made = rows_made(table), there = rows_there(table, upto);
    RebuiltTable report;
    report.name = table.name;
    report.rows = count(made);
    report.missing = count(made + " EXCEPT " + there);
    report.unexpected = count(there + " EXCEPT " + made);
    return report;
  }

  RebuiltTable compare_and_replace(const Table& table, std::int64_t upto) {
    RebuiltTable report = compare(table, upto);
    if (!report.equal() && !table.later.empty()) {
      // Locks rows that later events change until the derived rows are written.
      work.exec(fmt::format("LOCK TABLE public.{} IN SHARE ROW EXCLUSIVE MODE", table.name));
      report = compare(table, upto);
    }
    report.unexpected += blank_erased(table);
    if (report.equal() || !table.replace) return report;
    const std::string made = rows_made(table), there = rows_there(table, upto);
    if (table.updated.empty()) {
      work.exec(fmt::format("DELETE FROM public.{} WHERE ({}) IN (SELECT {} FROM ({} EXCEPT {}) AS differing)",
                            table.name, table.key, table.key, there, made));
      work.exec(fmt::format("INSERT INTO public.{} ({}) {} EXCEPT {}", table.name, table.columns, made, there));
      report.replaced = true;
      return report;
    }
    const std::string key = fmt::format("({})", table.key);
    work.exec(fmt::format("DELETE FROM public.{0} x WHERE {1} AND {2} NOT IN (SELECT {3} FROM pg_temp.{0})", table.name,
                          ours(table, upto), key, table.key));
    work.exec(
        fmt::format("INSERT INTO public.{0} ({1}) SELECT {1} FROM pg_temp.{0} ON CONFLICT ({2}) DO UPDATE SET ({3}) = "
                    "(SELECT {4})",
                    table.name, table.columns, table.key, table.updated, of("excluded.", table.updated)));
    report.replaced = true;
    return report;
  }

  // Deletes or clears the rows of erased events. Returns the number of rows that still held content.
  std::int64_t blank_erased(const Table& table) {
    if (table.goes) {
      return static_cast<std::int64_t>(
          work
              .exec(fmt::format(
                  "DELETE FROM public.{0} x USING event e WHERE x.log_no = {1} AND e.log_no = {1} AND e.seq = x.seq AND e.salt IS NULL",
                  table.name, log_no))
              .affected_rows());
    }
    if (table.blank.empty()) return 0;
    return static_cast<std::int64_t>(
        work
            .exec(fmt::format(
                "UPDATE public.{0} x SET ({1}) = ROW ({2}) FROM event e WHERE x.log_no = {3} AND e.log_no = {3} AND e.seq = x.seq "
                "AND e.salt IS NULL AND ROW ({4})::text <> ROW ({2})::text",
                table.name, table.blank, table.blanks, log_no, of("x.", table.blank)))
            .affected_rows());
  }

  // Example: "x.", "a, b" → "x.a, x.b".
  static std::string of(std::string_view table, std::string_view columns) {
    std::string out;
    while (!columns.empty()) {
      const std::size_t comma = columns.find(", ");
      if (!out.empty()) out += ", ";
      out.append(table).append(columns.substr(0, comma));
      columns = comma == std::string_view::npos ? std::string_view() : columns.substr(comma + 2);
    }
    return out;
  }
};

Status Rebuild::collect(std::int64_t upto) {
  RETURN_IF_ERROR(guarded(connection_, "preparing a rebuild", [&] {
    pqxx::nontransaction(*connection_.impl().link).exec(make_temporary);
    return Done{};
  }));
  for (collected_ = 0; collected_ < upto;) {
    const auto started = std::chrono::steady_clock::now();
    const std::int64_t end = std::min(upto, collected_ + collect_span_events);
    RETURN_IF_ERROR(collect_span(collected_, end));
    collected_ = end;
    std::this_thread::sleep_for((std::chrono::steady_clock::now() - started) * rest_per_work);
  }
  return once(connection_, "indexing the collected events", [&] {
    pqxx::nontransaction(*connection_.impl().link)
        .exec("CREATE INDEX ON rebuilt_event (run_no, seq); ANALYZE rebuilt_event");
    return Done{};
  });
}

Status Rebuild::collect_span(std::int64_t from, std::int64_t end) {
  return once(connection_, "collecting events", [&] {
    Work work(connection_, log_no_);
    work.collect(from, end);
    work.work.commit();
    return Done{};
  });
}

namespace {

Error erased_while_rebuilt() {
  return {Errc::conflict, "content was erased while the tables were rebuilt. Start the rebuild again"};
}

}  // namespace

Result<RebuiltTable> Rebuild::rebuild(std::string_view name) {
  bool erased = false;
  auto rebuilt = once(connection_, "rebuilding " + std::string(name), [&] {
    const Table& table = table_named(name);
    Work work(connection_, log_no_);
    work.make_table(table);
    std::int64_t upto = collected_;
    if (!table.follower.empty()) {
      upto = work.hold_follower(table.follower);
      for (; collected_ < upto; collected_ = upto) {
        work.collect(collected_, upto);
      }
      work.fold_runs(upto);
    } else {
      query(connection_, work.work, "rebuild_fill_" + std::string(name), table.fill,
            Params().integer(log_no_).integer(upto));
    }
    FAILPOINT("rebuild.before_replace");
    erased = work.erased_meanwhile(collected_);
    if (erased) return RebuiltTable();
    const RebuiltTable report = work.compare_and_replace(table, upto);
    work.work.commit();
    return report;
  });
  if (erased) return erased_while_rebuilt();
  return rebuilt;
}

Result<RebuiltTable> Rebuild::rebuild_pointers(const PointersOf& pointers_of) {
  bool erased = false;
  auto rebuilt = once(connection_, "rebuilding pointer", [&] {
    const Table& table = table_named("pointer");
    Work work(connection_, log_no_);
    work.make_table(table);
    const std::int64_t upto = work.hold_follower(table.follower);
    for (; collected_ < upto; collected_ = upto) {
      work.collect(collected_, upto);
    }
    work.fold_pointers(upto, pointers_of);
    erased = work.erased_meanwhile(collected_);
    if (erased) return RebuiltTable();
    const RebuiltTable report = work.compare_and_replace(table, upto);
    work.work.commit();
    return report;
  });
  if (erased) return erased_while_rebuilt();
  return rebuilt;
}

Result<std::vector<RebuiltTable>> Rebuild::rebuild_corpora(const std::vector<std::string>& tables,
                                                           const CorpusChangeOf& change_of) {
  Status folded = success();
  auto reports = once(connection_, "rebuilding corpora", [&] {
    Work work(connection_, log_no_);
    for (const std::string_view name : corpus_tables) work.make_table(table_named(name));
    const std::int64_t upto = work.hold_follower("document");
    for (; collected_ < upto; collected_ = upto) {
      work.collect(collected_, upto);
    }
    std::vector<RebuiltTable> compared;
    folded = work.fold_corpora(upto, change_of);
    if (!folded) return compared;
    if (work.erased_meanwhile(collected_)) {
      folded = erased_while_rebuilt();
      return compared;
    }
    for (const std::string& name : tables) compared.push_back(work.compare_and_replace(table_named(name), upto));
    work.work.commit();
    return compared;
  });
  RETURN_IF_ERROR(folded);
  return reports;
}

}  // namespace muniment::store
