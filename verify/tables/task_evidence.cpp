#include "verify/tables/task_evidence.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/ids.hpp"

namespace muniment::verify {
namespace {

std::string a_row(std::int64_t evidence_seq) { return fmt::format("a row with evidence_seq = {}", evidence_seq); }

// Compares ids regardless of case, because an event may use capitals and Postgres does not.
bool names(const json::Value& ids, const std::string& evidence_id) {
  for (const json::Value id : ids) {
    const auto uuid = parse_uuid(id.string_or(""));
    if (uuid && uuid->text() == evidence_id) return true;
  }
  return false;
}

std::set<std::int64_t> integers_of(const json::Value& list) {
  std::set<std::int64_t> integers;
  for (const json::Value item : list) {
    if (const auto integer = item.as_int()) integers.insert(*integer);
  }
  return integers;
}

}  // namespace

Result<TaskEvidence> TaskEvidence::open(Connection& connection, const Log& log, Findings& findings) {
  ASSIGN_OR_RETURN(
      Cursor cursor,
      Cursor::open(
          connection, "rows_of_task_evidence",
          fmt::format("SELECT t.seq, t.evidence_seq, t.run_id, t.task_id, t.evidence_id, e.evidence_id "
                      "FROM task_evidence t LEFT JOIN evidence e ON e.log_no = t.log_no AND e.seq = t.evidence_seq "
                      "WHERE t.log_no = {} AND t.seq >= {} ORDER BY t.seq, t.evidence_seq",
                      log.log_no, log.from)));
  TaskEvidence table(std::move(cursor), log, findings);
  RETURN_IF_ERROR(table.advance());
  return table;
}

Status TaskEvidence::advance() {
  Row row;
  ASSIGN_OR_RETURN(there_, cursor_.next(row));
  if (!there_) return success();
  piece_ = {row.integer(0), row.integer(1),     row.text(2),
            row.text(3),    row.uuid(4).text(), row.null(5) ? Text() : row.uuid(5).text()};
  return success();
}

// Reports rows that no event names.
Status TaskEvidence::drop_before(std::int64_t seq) {
  while (there_ && piece_.seq < seq) {
    findings_.add({Check::task_evidence, piece_.seq, piece_.run_id, "no row: no task.completed event has this seq",
                   a_row(piece_.evidence_seq)});
    RETURN_IF_ERROR(advance());
  }
  return success();
}

void TaskEvidence::found(const SeenEvent& event, std::string expected, std::string actual) {
  findings_.add({Check::task_evidence, event.seq, log_.run_id(event.run_no), std::move(expected), std::move(actual)});
}

Status TaskEvidence::see(const SeenEvent& event, const Telling& telling) {
  RETURN_IF_ERROR(drop_before(event.seq));
  const auto document = json::parse(telling.json());
  if (telling.redacted || !document) {  // erased_rows.hpp finds the rows of an erased event
    while (there_ && piece_.seq == event.seq) RETURN_IF_ERROR(advance());
    return success();
  }
  const json::Value body = document->root();
  const std::set<std::int64_t> wanted = integers_of(body["evidence_seqs"]);
  auto next = wanted.begin();
  const auto missing_below = [&](std::int64_t evidence_seq) {
    for (; next != wanted.end() && *next < evidence_seq; ++next) found(event, a_row(*next), "no row");
  };
  while (there_ && piece_.seq == event.seq) {
    missing_below(piece_.evidence_seq);
    if (next != wanted.end() && *next == piece_.evidence_seq) {
      ++next;
      compare(event, body);
    } else {
      found(event, fmt::format("no row: the event does not name evidence_seq = {}", piece_.evidence_seq),
            a_row(piece_.evidence_seq));
    }
    RETURN_IF_ERROR(advance());
  }
  for (; next != wanted.end(); ++next) found(event, a_row(*next), "no row");
  return success();
}

void TaskEvidence::compare(const SeenEvent& event, const json::Value& body) {
  const std::string run_id = log_.run_id(event.run_no);
  if (piece_.run_id != run_id) found(event, shown("run_id", run_id), shown("run_id", piece_.run_id));
  const Text task_id = text_of(body, "task_id");
  if (piece_.task_id != task_id) found(event, shown("task_id", task_id), shown("task_id", piece_.task_id));
  if (piece_.recorded_id && piece_.recorded_id != piece_.evidence_id) {
    found(event, shown("evidence_id", piece_.recorded_id), shown("evidence_id", piece_.evidence_id));
  } else if (!names(body["evidence_ids"], piece_.evidence_id)) {
    found(event, "an evidence_id that the event names", shown("evidence_id", piece_.evidence_id));
  }
}

Status TaskEvidence::finish() { return drop_before(INT64_MAX); }

}  // namespace muniment::verify
