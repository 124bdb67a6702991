#include "store/tables/rebuild_tables.hpp"

#include <array>
#include <string>

#include "store/read/pq.hpp"

namespace muniment::store {
namespace {

constexpr std::string_view run_columns =
    "log_no, run_no, run_id, first_seq, status, outcome, origin, owner, agent, goal, labels, parent, external_id, "
    "started_at, ended_at, halt";
constexpr std::string_view pointer_columns = "log_no, pointer, needed_by, needed_id, run_id, seq";
constexpr std::string_view claim_columns = "claim_id, log_no, seq, run_id, step_id, text, pointers, status, created_at";
constexpr std::string_view evidence_columns =
    "evidence_id, log_no, seq, run_id, type, content, pointer, hash, validator_id, actor, created_at, corpus_id, index_id, chunk_id, span, task_id, command_id";
constexpr std::string_view artifact_columns =
    "artifact_id, run_id, step_id, path, hash, mime_type, size_bytes, created_at, metadata, log_no, seq";
constexpr std::string_view link_columns = "claim_id, evidence_id, relation, log_no, seq, run_id";
constexpr std::string_view task_change_columns = "log_no, seq, run_id, task_id, change";
constexpr std::string_view task_evidence_columns = "log_no, seq, run_id, task_id, evidence_id, evidence_seq";
constexpr std::string_view corpus_columns = "log_no, corpus, owner, first_seq, last_seq";
constexpr std::string_view document_columns =
    "log_no, seq, corpus, document, revision, hash, artifact_id, start_byte, size_bytes, text_artifact_id, mime_type, format, language, "
    "title, tags, source, sources, source_url, trust, document_time, recorded_at, chunker, first_chunk, chunks, valid_to, ended_by, removed_at, owner, origin";
constexpr std::string_view chunk_columns = "log_no, chunk_id, seq, number, start_byte, end_byte, hash, heading";
constexpr std::string_view feedback_columns = "log_no, seq, pointer, chunk_id, value, actor";
constexpr std::array<Rebuild::Table, 12> rebuilt_tables = {{
    {"run", "log_no, run_no", run_columns, run_columns,
     "run_id, first_seq, status, outcome, origin, owner, agent, goal, labels, parent, external_id, started_at, ended_at, halt",
     "run", "", true},
    {"pointer", "log_no, pointer, needed_by, needed_id, run_id", pointer_columns, pointer_columns, "seq", "pointer", "",
     true},
    {"claim", "claim_id", claim_columns, claim_columns,
     "log_no, seq, run_id, step_id, text, pointers, status, created_at", "",
     "INSERT INTO pg_temp.claim SELECT (e.body->>'claim_id')::uuid, $1, e.seq, " MUNIMENT_RUN_NAME
     ", e.step_id, e.body->>'text', (e.body->'pointers')::jsonb, coalesce((SELECT d.body->>'status' FROM rebuilt_event d "
     "WHERE d.type = 'claim.decided' AND d.body->>'claim_id' = e.body->>'claim_id' ORDER BY d.seq DESC LIMIT 1), 'open'), "
     "e.recorded_at FROM rebuilt_event e WHERE e.type = 'claim.recorded' AND e.body IS NOT NULL AND e.seq < $2",
     true, "text, pointers", "'', '[]'::jsonb",
     "UPDATE pg_temp.claim c SET status = d.status FROM (SELECT DISTINCT ON (body->>'claim_id') body->>'claim_id' AS claim_id, body->>'status' AS status "
     "FROM event WHERE log_no = {0} AND seq >= {1} AND type = 'claim.decided' AND body IS NOT NULL ORDER BY body->>'claim_id', seq DESC) d "
     "WHERE c.claim_id = d.claim_id::uuid"},
    {"evidence", "log_no, seq", evidence_columns,
     "evidence_id, log_no, seq, run_id, type, content::text, pointer, hash, validator_id, actor, created_at, corpus_id, index_id, chunk_id, span, "
     "task_id, command_id",
     "evidence_id, run_id, type, content, pointer, hash, validator_id, actor, created_at, corpus_id, index_id, chunk_id, span, task_id, "
     "command_id",
     "",
     "INSERT INTO pg_temp.evidence SELECT (e.body->>'evidence_id')::uuid, $1, e.seq, " MUNIMENT_RUN_NAME
     ", e.body->>'type', e.body->'content', e.body->>'pointer', e.body->>'hash', e.body->>'validator_id', e.actor, "
     "e.recorded_at, e.body->>'corpus_id', e.body->>'index_id', e.body->>'chunk_id', e.body->>'span', e.body->>'task_id', (e.body->>'command_id')::uuid "
     "FROM rebuilt_event e WHERE e.type = 'evidence.recorded' AND e.body IS NOT NULL AND e.seq < $2",
     true, "type, content, pointer, hash, validator_id, corpus_id, index_id, chunk_id, span, task_id, command_id",
     "'', '{}'::json, NULL::text, repeat('0', 64), NULL::text, NULL::text, NULL::text, NULL::text, NULL::text, NULL::text, NULL::uuid"},
    {"evidence_link",
     "claim_id, evidence_id, seq",
     link_columns,
     link_columns,
     "relation, log_no",
     "",
     "INSERT INTO pg_temp.evidence_link SELECT (e.body->>'claim_id')::uuid, (e.body->>'evidence_id')::uuid, "
     "e.body->>'relation', $1, e.seq, " MUNIMENT_RUN_NAME
     " FROM rebuilt_event e WHERE e.type = 'evidence.linked' AND e.body IS NOT NULL AND e.seq < $2",
     true,
     {},
     {},
     {},
     true},
    {"task_change",
     "log_no, seq",
     task_change_columns,
     task_change_columns,
     "",
     "",
     "INSERT INTO pg_temp.task_change SELECT $1, e.seq, " MUNIMENT_RUN_NAME
     ", e.body->>'task_id', CASE e.type WHEN 'task.opened' THEN 'opened' ELSE 'completed' END "
     "FROM rebuilt_event e WHERE e.type IN ('task.opened', 'task.completed') AND e.body IS NOT NULL AND e.seq < $2",
     true,
     {},
     {},
     {},
     true},
    // The id of the evidence is in its event, or in its row if the event is erased or archived.
    {"task_evidence",
     "log_no, seq, evidence_seq",
     task_evidence_columns,
     task_evidence_columns,
     "",
     "",
     "INSERT INTO pg_temp.task_evidence SELECT $1, e.seq, " MUNIMENT_RUN_NAME
     ", e.body->>'task_id', s.evidence_id, s.evidence_seq FROM rebuilt_event e CROSS JOIN LATERAL ("
     "SELECT u.evidence_seq, coalesce((SELECT (r.body->>'evidence_id')::uuid FROM rebuilt_event r WHERE r.seq = u.evidence_seq "
     "AND r.type = 'evidence.recorded'), (SELECT p.evidence_id FROM public.evidence p WHERE p.log_no = $1 AND p.seq = u.evidence_seq)) "
     "AS evidence_id FROM (SELECT DISTINCT value::text::bigint AS evidence_seq FROM json_array_elements(e.body->'evidence_seqs')) u) s "
     "WHERE e.type = 'task.completed' AND e.body IS NOT NULL AND e.seq < $2 AND s.evidence_id IS NOT NULL",
     true,
     {},
     {},
     {},
     true},
    {"artifact", "artifact_id", artifact_columns, artifact_columns, "", "",
     "INSERT INTO pg_temp.artifact SELECT (e.body->>'artifact_id')::uuid, " MUNIMENT_RUN_NAME
     ", e.body->>'step_id', e.body->>'path', e.body->>'hash', e.body->>'mime_type', (e.body->>'size_bytes')::bigint, "
     "e.recorded_at, coalesce((e.body->'metadata')::jsonb, '{}'), $1, e.seq "
     "FROM rebuilt_event e WHERE e.type = 'artifact.stored' AND e.body IS NOT NULL AND e.seq < $2",
     false},
    {"corpus", "log_no, corpus", corpus_columns, corpus_columns, "", "document", "", true},
    {"document", "log_no, seq", document_columns, document_columns, "", "document", "", true},
    {"chunk", "log_no, chunk_id", chunk_columns, chunk_columns, "", "document", "", true},
    {"feedback", "log_no, seq", feedback_columns, feedback_columns, "", "document", "", true},
}};
}  // namespace

const Rebuild::Table& Rebuild::table_named(std::string_view name) {
  for (const Table& table : rebuilt_tables) {
    if (table.name == name) return table;
  }
  throw pqxx::argument_error("table " + std::string(name) + " cannot be rebuilt");
}

}  // namespace muniment::store
