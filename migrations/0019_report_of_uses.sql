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
