#include "verify/log/log.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/limits.hpp"
#include "verify/log/run_facts.hpp"

namespace muniment::verify {

Result<Log> find_log(Connection& connection, std::optional<std::int64_t> log_no, std::vector<std::int64_t>& others) {
  RETURN_IF_ERROR(connection.start_copy("SELECT log_no, log_id, partition_bits FROM log_head ORDER BY log_no"));
  std::optional<Log> log;
  Row row;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, connection.next(row));
    if (!more) break;
    const bool wanted = log_no ? row.integer(0) == *log_no : !log;
    if (wanted) {
      log.emplace();
      log->log_no = row.integer(0);
      log->log_id = row.uuid(1);
      log->events_per_partition = std::int64_t{1}
                                  << std::clamp<std::int64_t>(row.integer(2), 0, limits::partition_bits_max);
    } else {
      others.push_back(row.integer(0));
    }
  }
  if (!log)
    return Error(Errc::not_found, log_no ? fmt::format("there is no log {} in this database", *log_no)
                                         : "there is no log in this database");
  ASSIGN_OR_RETURN(const auto last,
                   connection.integer(fmt::format("SELECT max(seq) FROM event WHERE log_no = {}", log->log_no)));
  log->upto = last.value_or(-1);
  ASSIGN_OR_RETURN(const auto archived, connection.integer(fmt::format(
                                            "SELECT count(*) FROM archived_partition WHERE log_no = {}", log->log_no)));
  log->archived = archived.value_or(0) > 0;
  return *std::move(log);
}

// Finds run numbers by skipping through the index: one step for each run, regardless of its number of events.
Status read_run_ids(Connection& connection, Log& log) {
  RETURN_IF_ERROR(connection.start_copy(
      fmt::format("WITH RECURSIVE hop (run_no) AS ("
                  " SELECT min(run_no) FROM event WHERE log_no = {0} AND run_no > {1}"
                  " UNION ALL SELECT (SELECT min(run_no) FROM event WHERE log_no = {0} AND run_no > hop.run_no)"
                  " FROM hop WHERE hop.run_no IS NOT NULL) "
                  "SELECT hop.run_no, e.body, r.run_id FROM hop"
                  " LEFT JOIN event e ON e.log_no = {0} AND e.run_no = hop.run_no AND e.run_seq = 0"
                  " LEFT JOIN run r ON r.log_no = {0} AND r.run_no = hop.run_no WHERE hop.run_no IS NOT NULL",
                  log.log_no, log.run_no_known)));
  Row row;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, connection.next(row));
    if (!more) return success();
    const auto document = json::parse(row.null(1) ? "{}" : row.bytes(1));
    Text run_id = document ? text_of(document->root(), "run_id") : Text();
    if (!run_id) run_id = row.optional_text(2);
    if (row.null(1)) {
      log.indexed.emplace(row.integer(0), std::nullopt);
    } else if (document && document->root()["indexed"].as_bool().value_or(false)) {
      log.indexed.emplace(row.integer(0), true);
    }
    if (run_id) log.run_ids.insert_or_assign(row.integer(0), *std::move(run_id));
  }
}

Status check_partitions(Connection& connection, const Log& log, Findings& findings) {
  RETURN_IF_ERROR(connection.start_copy(
      fmt::format("SELECT c.relname::text, coalesce(pg_get_expr(c.relpartbound, c.oid), 'not attached'),"
                  " substring(c.relname::text from '[0-9]+$')::bigint"
                  " FROM pg_class c JOIN pg_class e ON e.oid = 'event'::regclass AND e.relnamespace = c.relnamespace"
                  " WHERE c.relkind = 'r' AND c.relname ~ '^event_{}_[0-9]{{1,12}}$' ORDER BY 3",
                  log.log_no)));
  Row row;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, connection.next(row));
    if (!more) return success();
    const std::int64_t low = row.integer(2) * log.events_per_partition;
    const std::string wanted = fmt::format("FOR VALUES FROM ('{}') TO ('{}')", low, low + log.events_per_partition);
    if (row.bytes(1) != wanted) {
      findings.add({Check::partition, low, "", fmt::format("{} {}", row.bytes(0), wanted),
                    fmt::format("{} {}", row.bytes(0), row.bytes(1))});
    }
  }
}

}  // namespace muniment::verify
