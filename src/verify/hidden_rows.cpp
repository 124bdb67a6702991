#include "verify/hidden_rows.hpp"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "base/json.hpp"
#include "verify/definitions.hpp"

namespace muniment::verify {
namespace {

// Tables of ours that say of which event a row is.
Result<std::vector<std::string>> tables_of_events(Connection& connection) {
  RETURN_IF_ERROR(connection.start_copy(
      "SELECT c.relname::text FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition"
      " AND (SELECT count(*) FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname IN ('log_no', 'seq') AND NOT a.attisdropped) = 2 ORDER BY 1"));
  std::vector<std::string> tables;
  Row row;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, connection.next(row));
    if (!more) return tables;
    if (is_own_table(row.text(0))) tables.push_back(row.text(0));
  }
}

}  // namespace

Status check_rows_before(Connection& connection, const Log& log, Findings& findings) {
  ASSIGN_OR_RETURN(const auto tables, tables_of_events(connection));
  for (const std::string& table : tables) {
    ASSIGN_OR_RETURN(const auto first, connection.integer(fmt::format("SELECT min(seq) FROM public.{} WHERE log_no = {} AND seq < 0", table, log.log_no)));
    if (first) findings.add({Check::foreign_row, -1, "", fmt::format("{}: rows of events, which begin with seq 0", table), fmt::format("{}: a row with seq {}", table, *first)});
  }
  return success();
}

Status check_closed_end(Connection& connection, const Log& log, Findings& findings) {
  RETURN_IF_ERROR(connection.start_copy(fmt::format("SELECT log_no, body FROM event WHERE log_no > {} AND seq = 0 AND type = 'log.restored' AND body IS NOT NULL", log.log_no)));
  Row row;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, connection.next(row));
    if (!more) return success();
    const auto body = json::parse(row.bytes(1));
    if (!body || body->root()["log_no"].as_int() != log.log_no) continue;
    const std::int64_t size = body->root()["size"].as_int().value_or(0);
    if (log.upto + 1 == size) continue;
    findings.add({Check::log_rolled_back, log.upto + 1, "", fmt::format("a log of {} events: log {}, which goes on from it, says so", size, row.integer(0)),
                  fmt::format("a log of {} events", log.upto + 1)});
  }
}

}  // namespace muniment::verify
