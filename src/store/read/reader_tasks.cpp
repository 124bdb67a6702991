// Implements reads of tasks: the events that open and complete them, and the evidence that completed them.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/read/reader_impl.hpp"

namespace muniment::store {

namespace {

TaskPlace task_place_of(const pqxx::row& row) {
  TaskPlace place;
  place.task_id = text_of(row[0]);
  if (!row[1].is_null()) place.opened_seq = integer_of(row[1]);
  if (!row[2].is_null()) place.completed_seq = integer_of(row[2]);
  return place;
}

TaskEvidenceRow task_evidence_of(const pqxx::row& row) {
  TaskEvidenceRow piece;
  piece.run_id = text_of(row[0]);
  piece.task_id = text_of(row[1]);
  piece.evidence_id = uuid_of(row[2]);
  piece.evidence_seq = integer_of(row[3]);
  piece.seq = integer_of(row[4]);
  return piece;
}

#define MUNIMENT_TASK_EVIDENCE_COLUMNS "t.run_id, t.task_id, t.evidence_id, t.evidence_seq, t.seq"

}  // namespace

Result<std::optional<TaskPlace>> Reader::task(std::string_view run_id, std::string_view task_id) {
  return guarded(impl_->connection, "reading a task", [&]() -> std::optional<TaskPlace> {
    const pqxx::result rows =
        query(impl_->connection, "task",
              "SELECT task_id, max(seq) FILTER (WHERE change = 'opened'), max(seq) FILTER (WHERE change = 'completed')"
              " FROM task_change WHERE log_no = $1 AND run_id = $2 AND task_id = $3 AND seq < $4 GROUP BY task_id",
              impl_->params().text(run_id).text(task_id).integer(impl_->place.size));
    if (rows.empty()) return {};
    return task_place_of(rows[0]);
  });
}

Result<std::vector<TaskPlace>> Reader::tasks(std::string_view run_id, std::optional<bool> completed,
                                             std::int64_t after_seq, std::size_t limit) {
  return guarded(impl_->connection, "listing tasks", [&] {
    std::optional<std::string> wanted;
    if (completed) wanted = *completed ? "t" : "f";
    Params params = impl_->params();
    params.text(run_id)
        .text_or_null(wanted)
        .integer(after_seq)
        .integer(static_cast<std::int64_t>(limit))
        .integer(impl_->place.size);
    return rows_of(
        query(impl_->connection, "tasks",
              "SELECT o.task_id, o.seq, c.seq FROM task_change o LEFT JOIN task_change c ON c.log_no = o.log_no"
              " AND c.run_id = o.run_id AND c.task_id = o.task_id AND c.change = 'completed' AND c.seq < $6"
              " WHERE o.log_no = $1 AND o.run_id = $2 AND o.change = 'opened' AND o.seq > $4 AND o.seq < $6"
              " AND ($3::boolean IS NULL OR $3::boolean = (c.seq IS NOT NULL)) ORDER BY o.seq LIMIT $5",
              params),
        task_place_of);
  });
}

Result<std::vector<TaskPlace>> Reader::open_tasks(std::string_view run_id, const std::vector<std::string>& task_ids) {
  return guarded(impl_->connection, "looking for open tasks", [&] {
    return rows_of(query(impl_->connection, "open_tasks",
                         "SELECT o.task_id, o.seq, NULL FROM task_change o WHERE o.log_no = $1 AND o.run_id = $2"
                         " AND o.task_id = ANY ($3::text[]) AND o.change = 'opened' AND o.seq < $4"
                         " AND NOT EXISTS (SELECT FROM task_change c WHERE c.log_no = o.log_no AND c.run_id = o.run_id"
                         " AND c.task_id = o.task_id AND c.change = 'completed' AND c.seq < $4) ORDER BY o.seq",
                         impl_->params().text(run_id).texts(task_ids).integer(impl_->place.size)),
                   task_place_of);
  });
}

Result<std::vector<TaskEvidenceRow>> Reader::evidence_spent(const std::vector<std::int64_t>& evidence_seqs) {
  return guarded(impl_->connection, "looking for tasks that evidence completed", [&] {
    return rows_of(
        query(impl_->connection, "evidence_spent",
              "SELECT " MUNIMENT_TASK_EVIDENCE_COLUMNS
              " FROM task_evidence t WHERE t.log_no = $1 AND t.evidence_seq = ANY ($2::bigint[]) AND t.seq < $3"
              " ORDER BY t.evidence_seq",
              impl_->params().integers(evidence_seqs).integer(impl_->place.size)),
        task_evidence_of);
  });
}

Result<std::optional<TaskEvidenceRow>> Reader::spent_on_another(const EvidenceRow& evidence, bool by_content,
                                                                std::string_view run_id, std::string_view task_id) {
  return guarded(impl_->connection, "looking for another task that the evidence completed",
                 [&]() -> std::optional<TaskEvidenceRow> {
                   const auto hash = by_content ? std::optional(to_hex(evidence.hash)) : std::nullopt;
                   Params params = impl_->params();
                   params.text(evidence.actor)
                       .uuid(evidence.evidence_id)
                       .text_or_null(hash)
                       .text(evidence.run_id)
                       .uuid_or_null(evidence.command_id)
                       .text(run_id)
                       .text(task_id)
                       .integer(impl_->place.size);
                   const pqxx::result rows =
                       query(impl_->connection, "spent_on_another",
                             "SELECT " MUNIMENT_TASK_EVIDENCE_COLUMNS
                             " FROM evidence e JOIN task_evidence t ON t.log_no = $1 AND t.evidence_seq = e.seq"
                             " WHERE e.log_no = $1 AND e.actor = $2 AND (e.evidence_id = $3::uuid OR e.hash = $4"
                             " OR (e.run_id = $5 AND e.command_id = $6::uuid))"
                             " AND NOT (t.run_id = $7 AND t.task_id = $8) AND t.seq < $9 ORDER BY t.seq LIMIT 1",
                             params);
                   if (rows.empty()) return {};
                   return task_evidence_of(rows[0]);
                 });
}

}  // namespace muniment::store
