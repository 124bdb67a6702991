#include "verify/postgres/database.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "base/json/json.hpp"
#include "base/text.hpp"
#include "verify/postgres/definitions.hpp"

namespace muniment::verify {
namespace {

// Tables that a follower maintains.
struct Kept {
  std::string_view follower, tables;
};
constexpr std::array kept_tables{Kept{"document", "corpus, document, chunk, feedback"}, Kept{"pointer", "pointer"},
                                 Kept{"report", "report_run, report_span, report_place"}, Kept{"run", "run"}};
// A follower lags by milliseconds while the daemon works normally.
constexpr std::int64_t follower_micros_max = 10'000'000;

// Describes the rows that are not checked for events from `next_seq` on, and whether a later verification can check
// them.
Result<std::string> behind(Connection& connection, const Log& log, const Writing& writing, std::int64_t next_seq,
                           const std::string& tables) {
  const bool one = tables.find(", ") == std::string::npos;
  const std::string what = fmt::format("the rows that the {} {} {} for events from {} on", one ? "table" : "tables",
                                       tables, one ? "holds" : "hold", grouped(static_cast<std::uint64_t>(next_seq)));
  if (!writing.live)
    return what + ": the follower has not processed them, and no daemon holds the log. Run muniment rebuild";
  RETURN_IF_ERROR(connection.start_copy(
      fmt::format("SELECT recorded_at FROM event WHERE log_no = {} AND seq = {}", log.log_no, next_seq)));
  Row row;
  std::int64_t age = 0;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, connection.next(row));
    if (!more) break;
    age = writing.at.micros - row.time(0).micros;
  }
  if (age <= follower_micros_max) return what + ": the follower has not processed them yet. Verify again";
  return fmt::format(
      "{}: the follower has not processed them, although a daemon holds the log and the first is {} old. Run muniment rebuild",
      what, human_duration(age));
}

// Tables of other owners are not Muniment's and hold no log.
Result<std::vector<std::string>> own_tables_with(Connection& connection, std::string_view column) {
  RETURN_IF_ERROR(connection.start_copy(
      fmt::format("SELECT c.relname::text FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid"
                  " WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition"
                  " AND a.attname = '{}' AND NOT a.attisdropped AND c.relname <> 'log_head' ORDER BY 1",
                  column)));
  std::vector<std::string> tables;
  Row row;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, connection.next(row));
    if (!more) return tables;
    if (is_own_table(row.text(0))) tables.push_back(row.text(0));
  }
}

}  // namespace

// Finds log numbers by skipping through an index if the table has one, otherwise by two scans of the table.
Status check_foreign_rows(Connection& connection, Findings& findings) {
  ASSIGN_OR_RETURN(const auto tables, own_tables_with(connection, "log_no"));
  for (const std::string& table : tables) {
    RETURN_IF_ERROR(connection.start_copy(fmt::format(
        "WITH RECURSIVE hop (log_no) AS (SELECT min(log_no) FROM public.{0}"
        " UNION ALL SELECT (SELECT min(log_no) FROM public.{0} t WHERE t.log_no > hop.log_no) FROM hop WHERE hop.log_no IS NOT NULL)"
        " SELECT log_no FROM hop WHERE log_no IS NOT NULL AND log_no NOT IN (SELECT log_no FROM log_head)",
        table)));
    Row row;
    while (true) {
      ASSIGN_OR_RETURN(const bool more, connection.next(row));
      if (!more) break;
      findings.add({Check::foreign_row, -1, "", fmt::format("{}: rows of the logs in log_head", table),
                    fmt::format("{}: rows of log {}", table, row.integer(0))});
    }
  }
  return success();
}

Status check_rows_before(Connection& connection, const Log& log, Findings& findings) {
  ASSIGN_OR_RETURN(const auto tables, own_tables_with(connection, "seq"));
  for (const std::string& table : tables) {
    ASSIGN_OR_RETURN(const auto first,
                     connection.integer(fmt::format("SELECT min(seq) FROM public.{} WHERE log_no = {} AND seq < 0",
                                                    table, log.log_no)));
    if (first)
      findings.add({Check::foreign_row, -1, "", fmt::format("{}: rows of events with seq 0 or more", table),
                    fmt::format("{}: a row with seq {}", table, *first)});
  }
  return success();
}

Status check_closed_end(Connection& connection, const Log& log, Findings& findings) {
  RETURN_IF_ERROR(connection.start_copy(fmt::format(
      "SELECT log_no, body FROM event WHERE log_no > {} AND seq = 0 AND type = 'log.restored' AND body IS NOT NULL",
      log.log_no)));
  Row row;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, connection.next(row));
    if (!more) return success();
    const auto body = json::parse(row.bytes(1));
    if (!body || body->root()["log_no"].as_int() != log.log_no) continue;
    const std::int64_t size = body->root()["size"].as_int().value_or(0);
    if (log.upto + 1 == size) continue;
    findings.add({Check::log_rolled_back, log.upto + 1, "",
                  fmt::format("a log of {} events, as recorded in its successor, log {}", size, row.integer(0)),
                  fmt::format("a log of {} events", log.upto + 1)});
  }
}

Status check_followers(Connection& connection, const Log& log, const Writing& writing, Findings& findings,
                       std::vector<std::string>& not_checked) {
  RETURN_IF_ERROR(connection.start_copy(
      fmt::format("SELECT name, next_seq FROM follower WHERE log_no = {} ORDER BY name", log.log_no)));
  std::vector<std::pair<std::string, std::int64_t>> positions;
  Row row;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, connection.next(row));
    if (!more) break;
    positions.emplace_back(row.text(0), row.integer(1));
  }
  for (const auto& [name, next_seq] : positions) {
    if (next_seq >= 0 && next_seq <= log.upto + 1) continue;
    findings.add({Check::follower, -1, "", fmt::format("follower {}: next_seq from 0 to {}", name, log.upto + 1),
                  fmt::format("next_seq = {}", next_seq)});
  }
  std::map<std::int64_t, std::string> late;  // keys: the first events that they have not processed
  for (const Kept& kept : kept_tables) {
    const auto found = std::ranges::find(positions, kept.follower, &std::pair<std::string, std::int64_t>::first);
    const std::int64_t next_seq = found == positions.end() ? 0 : std::max<std::int64_t>(found->second, 0);
    if (next_seq > log.upto) continue;
    std::string& tables = late[next_seq];
    tables += fmt::format("{}{}", tables.empty() ? "" : ", ", kept.tables);
  }
  for (const auto& [next_seq, tables] : late) {
    ASSIGN_OR_RETURN(std::string text, behind(connection, log, writing, next_seq, tables));
    not_checked.push_back(std::move(text));
  }
  return success();
}

Status check_archived_partitions(Connection& connection, const Log& log, const std::set<ArchivedSpan>& said,
                                 Findings& findings) {
  RETURN_IF_ERROR(connection.start_copy(fmt::format(
      "SELECT number, first_seq, last_seq FROM archived_partition WHERE log_no = {} ORDER BY number", log.log_no)));
  Row row;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, connection.next(row));
    if (!more) return success();
    const ArchivedSpan span{row.integer(0), row.integer(1), row.integer(2)};
    if (said.contains(span)) continue;  // a recorded archiving may not be complete yet
    findings.add({Check::archived_partition, span.first_seq, "", "no row: no log.archived event names this partition",
                  fmt::format("partition {}: events {} to {}", span.number, span.first_seq, span.last_seq)});
  }
}

}  // namespace muniment::verify
