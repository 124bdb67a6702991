-- Beside queries, what else is used for a run: pointers that were validated, rendered and resolved, artifacts that were read. What was
-- asked for a run that takes no more is in the log's own run, and names it.

CREATE OR REPLACE VIEW report.retrieval_report WITH (security_barrier) AS
  SELECT p.log_no, coalesce(r.run_id, e.body ->> 'run_id') AS run_id, e.step_id, p.seq, e.recorded_at, e.actor, e.body #>> '{queries,0,query}' AS query,
         json_array_length(e.body -> 'queries') AS queries, (e.body -> 'corpora')::jsonb AS corpora,
         e.body ->> 'profile' AS profile, json_array_length(e.body -> 'cards') AS cards,
         (e.body #>> '{cards,0,score}')::double precision AS best_score, (e.body -> 'degraded')::jsonb AS degraded,
         e.body ->> 'cache' AS cache, (e.body ->> 'watermark')::bigint AS watermark,
         (e.body ->> 'duration_us')::bigint AS duration_us, p.type, e.body ->> 'branch' AS branch,
         (e.body ->> 'count')::integer AS pointers, (e.body -> 'bad')::jsonb AS bad, e.body ->> 'pointer' AS artifact
  FROM report_place p LEFT JOIN run r USING (log_no, run_no) JOIN event e USING (log_no, seq)
  WHERE CASE p.run_no WHEN 0 THEN coalesce(current_setting('muniment.runs', true), '') = '' ELSE report.sees(r.run_id) END
    AND p.type IN ('artifact.read', 'pointer.rendered', 'pointer.resolved', 'pointer.validated', 'retrieval.answered');
COMMENT ON VIEW report.retrieval_report IS 'What was asked of corpora, which pointers were looked at and which artifacts read, by whom and for which run';
COMMENT ON COLUMN report.retrieval_report.run_id IS 'The run that it was for, also where it takes no more; NULL for what was used outside of one';
COMMENT ON COLUMN report.retrieval_report.type IS 'The type of its event: retrieval.answered, pointer.validated, pointer.rendered, pointer.resolved or artifact.read';
COMMENT ON COLUMN report.retrieval_report.branch IS 'Which of the run''s parallel branches it was for';
COMMENT ON COLUMN report.retrieval_report.pointers IS 'How many pointers were looked at; NULL for a query and for an artifact';
COMMENT ON COLUMN report.retrieval_report.bad IS 'Those of them that did not stand, by reason';
COMMENT ON COLUMN report.retrieval_report.artifact IS 'The artifact that was read, as a pointer';

-- A table that was never analysed is not an empty one: about how many rows it has is unknown.
CREATE OR REPLACE VIEW report.storage_report WITH (security_barrier) AS
  SELECT x.what, x.name, x.row_count, x.size_bytes, x.first_seq, x.last_seq, x.archived FROM (
    SELECT 'events' AS what, c.relname::text AS name, CASE WHEN c.reltuples > 0 THEN c.reltuples::bigint WHEN pg_relation_size(c.oid) = 0 THEN 0 END AS row_count,
           pg_total_relation_size(c.oid) AS size_bytes,
           bounds.number << h.partition_bits AS first_seq, ((bounds.number + 1) << h.partition_bits) - 1 AS last_seq, p.number IS NOT NULL AS archived
    FROM pg_partition_tree('event'::regclass) t JOIN pg_class c ON c.oid = t.relid
    CROSS JOIN LATERAL (SELECT split_part(c.relname, '_', 2)::smallint AS log_no, split_part(c.relname, '_', 3)::bigint AS number) bounds
    JOIN log_head h USING (log_no) LEFT JOIN archived_partition p ON p.log_no = bounds.log_no AND p.number = bounds.number
    WHERE t.isleaf AND t.relid <> 'event'::regclass AND c.relname LIKE 'event\_%\_%'
    UNION ALL
    SELECT 'table', c.relname::text, CASE WHEN c.reltuples > 0 THEN c.reltuples::bigint WHEN pg_relation_size(c.oid) = 0 THEN 0 END AS row_count,
           pg_total_relation_size(c.oid), NULL, NULL, NULL
    FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND c.relname NOT LIKE 'event\_%'
    UNION ALL
    SELECT 'artifacts', 'artifacts', count(*), coalesce(sum(size_bytes), 0)::bigint, NULL, NULL, NULL FROM artifact) x
  WHERE coalesce(current_setting('muniment.runs', true), '') = '';
COMMENT ON COLUMN report.storage_report.row_count IS 'About how many rows, as the planner knows it, NULL where it knows nothing yet; of artifacts exactly how many';
