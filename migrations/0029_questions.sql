-- report.retrieval_report also holds answers to questions (question.answered).
CREATE OR REPLACE VIEW report.retrieval_report WITH (security_barrier) AS
  SELECT p.log_no, coalesce(r.run_id, e.body ->> 'run_id') AS run_id, e.step_id, p.seq, e.recorded_at, e.actor,
         coalesce(e.body #>> '{queries,0,query}', m.manifest #>> '{queries,0,query}') AS query,
         coalesce(json_array_length(e.body -> 'queries'), json_array_length(m.manifest -> 'queries')) AS queries,
         (e.body -> 'corpora')::jsonb AS corpora, coalesce(e.body ->> 'profile', m.manifest ->> 'profile') AS profile,
         coalesce(json_array_length(e.body -> 'cards'), json_array_length(m.manifest -> 'passages')) AS cards,
         coalesce((e.body #>> '{cards,0,score}')::double precision, (m.manifest #>> '{passages,0,score}')::double precision) AS best_score,
         (e.body -> 'degraded')::jsonb AS degraded, e.body ->> 'cache' AS cache,
         coalesce((e.body ->> 'watermark')::bigint, (m.manifest ->> 'watermark')::bigint) AS watermark,
         (e.body ->> 'duration_us')::bigint AS duration_us, p.type, e.body ->> 'branch' AS branch,
         CASE p.type WHEN 'retrieval.answered' THEN jsonb_path_query_array((e.body -> 'cards')::jsonb, '$[*].id')
                     WHEN 'context.built' THEN jsonb_path_query_array((m.manifest -> 'passages')::jsonb, '$[*].pointer')
                     WHEN 'question.answered' THEN jsonb_path_query_array((e.body -> 'citations')::jsonb, '$[*].pointer')
                     WHEN 'artifact.read' THEN jsonb_build_array(e.body ->> 'pointer')
                     ELSE jsonb_path_query_array((e.body -> 'pointers')::jsonb, '$[*].pointer') END AS pointers,
         (e.body -> 'bad')::jsonb AS bad, e.body ->> 'pointer' AS artifact,
         CASE p.type WHEN 'retrieval.answered' THEN json_array_length(e.body -> 'cards')
                     WHEN 'context.built' THEN json_array_length(m.manifest -> 'passages')
                     WHEN 'question.answered' THEN json_array_length(e.body -> 'citations')
                     WHEN 'artifact.read' THEN 1
                     ELSE (e.body ->> 'count')::integer END AS pointer_count
  FROM report_place p LEFT JOIN run r USING (log_no, run_no) JOIN event e USING (log_no, seq)
    LEFT JOIN manifest m ON p.type IN ('context.built', 'question.answered') AND m.manifest_id = (e.body ->> 'manifest_id')::uuid
  WHERE CASE p.run_no WHEN 0 THEN coalesce(current_setting('muniment.runs', true), '') = '' ELSE report.sees(r.run_id) END
    AND p.type IN ('artifact.read', 'context.built', 'pointer.rendered', 'pointer.resolved', 'pointer.validated', 'question.answered',
                   'retrieval.answered');
COMMENT ON VIEW report.retrieval_report IS 'What was read: answers to queries and questions, context packs, pointers checked and artifacts read, with caller and run';
COMMENT ON COLUMN report.retrieval_report.type IS 'Type of the event: retrieval.answered, question.answered, context.built, pointer.validated, pointer.rendered, pointer.resolved or artifact.read';
COMMENT ON COLUMN report.retrieval_report.cards IS 'Number of passages returned; for question.answered, of passages that were read';
COMMENT ON COLUMN report.retrieval_report.pointers IS 'Pointers to what was read, in order, as far as the event names them; for question.answered, to what is cited; NULL once redacted';
