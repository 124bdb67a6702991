#include "store/tables/followed_rows.hpp"

#include "store/tables/run_row.hpp"

namespace muniment::store {
namespace {

constexpr std::string_view put_run =
    "INSERT INTO run (log_no, run_no, run_id, first_seq, status, outcome, origin, owner, agent, goal, labels, parent, "
    "external_id, started_at, ended_at, halt) "
    "VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11::jsonb, $12, $13, $14, $15, $16::jsonb) "
    "ON CONFLICT (log_no, run_no) DO UPDATE SET status = excluded.status, outcome = excluded.outcome, "
    "labels = excluded.labels, ended_at = excluded.ended_at, halt = excluded.halt";

constexpr std::string_view put_pointer =
    "INSERT INTO pointer (log_no, pointer, needed_by, needed_id, run_id, seq) VALUES ($1, $2, $3, $4, $5, $6) "
    "ON CONFLICT (log_no, pointer, needed_by, needed_id, run_id) DO UPDATE SET seq = excluded.seq";

}  // namespace

void write_followed(Connection& connection, pqxx::transaction_base& work, std::int16_t log_no, const FollowedRows& rows,
                    CorpusEffects* effects) {
  for (const RunRow& row : rows.runs) {
    const auto ended_at = row.ended_at ? std::optional(format_time(*row.ended_at)) : std::nullopt;
    query(connection, work, "run_put", put_run,
          Params()
              .integer(log_no)
              .integer(row.run_no)
              .text(row.run_id)
              .integer(row.first_seq)
              .text(row.status)
              .text_or_null(row.outcome)
              .integer(static_cast<std::int64_t>(row.origin))
              .text(row.owner)
              .text(row.agent)
              .text_or_null(row.goal)
              .text(stored_labels(row))
              .text_or_null(row.parent)
              .text_or_null(row.external_id)
              .time(row.started_at)
              .text_or_null(ended_at)
              .text_or_null(row.halt));
  }
  for (const PointerRow& row : rows.pointers) {
    query(connection, work, "pointer_put", put_pointer,
          Params()
              .integer(log_no)
              .text(row.pointer)
              .text(row.needed_by)
              .uuid(row.needed_id)
              .text(row.run_id)
              .integer(row.seq));
  }
  write_followed_corpus(connection, work, log_no, rows.corpus, effects);
  write_followed_report(connection, work, log_no, rows.report);
}

}  // namespace muniment::store
