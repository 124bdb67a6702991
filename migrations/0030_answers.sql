-- Which tests a command line leaves out, in the view of commands; answers to questions, in the view of what was recalled.

CREATE OR REPLACE VIEW report.command_report WITH (security_barrier) AS
  SELECT s.log_no, r.run_id, s.step_id, s.key AS call_id, (b.body -> 'argv')::jsonb AS argv, b.body ->> 'cwd' AS cwd,
         (ARRAY['observed', 'reported', 'imported'])[s.origin] AS origin,
         CASE WHEN s.ended_seq IS NOT NULL THEN coalesce(s.status, 'pending')
              WHEN EXISTS (SELECT FROM report_erased_end x WHERE x.log_no = s.log_no AND x.run_no = s.run_no AND x.type = 'command.ended' AND x.seq > s.began_seq) THEN 'unknown'
              ELSE 'pending' END AS status,
         s.exit_code, s.reason AS signal, s.began_at AS started_at,
         coalesce(least(s.began_at + make_interval(secs => s.duration_us / 1e6), s.ended_at), s.ended_at) AS ended_at,
         coalesce(s.duration_us, report_micros(s.began_at, s.ended_at)) AS duration_us,
         (e.body #>> '{stdout,size_bytes}')::bigint AS stdout_bytes,
         (e.body #>> '{stdout,artifact_id}')::uuid AS stdout_artifact_id,
         (e.body #>> '{stderr,size_bytes}')::bigint AS stderr_bytes,
         (e.body #>> '{stderr,artifact_id}')::uuid AS stderr_artifact_id, b.body ->> 'tree_digest' AS tree_before,
         e.body ->> 'tree_digest' AS tree_after, s.began_seq AS started_seq, s.ended_seq,
         b.body #>> '{program,path}' AS program, b.body #>> '{program,own}' AS own_program,
         b.body #>> '{program,left_out}' AS left_out
  FROM report_span_command s JOIN run r USING (log_no, run_no)
    LEFT JOIN event b ON b.log_no = s.log_no AND b.seq = s.began_seq LEFT JOIN event e ON e.log_no = s.log_no AND e.seq = s.ended_seq
  WHERE report.sees(r.run_id);
COMMENT ON COLUMN report.command_report.left_out IS 'A file of tests that the command line leaves out; NULL: none was found';

CREATE OR REPLACE VIEW report.recall_report WITH (security_barrier) AS
  SELECT p.log_no, r.run_id, e.step_id, p.seq, e.recorded_at, e.actor, e.body ->> 'branch' AS branch,
         coalesce(e.body #>> '{queries,0,query}', m.manifest #>> '{queries,0,query}') AS question,
         coalesce(e.body -> 'queries', m.manifest -> 'queries')::jsonb AS questions,
         json_array_length(m.manifest -> 'passages') AS passages,
         jsonb_path_query_array((m.manifest -> 'passages')::jsonb, '$[*].pointer') AS pointers,
         (m.manifest ->> 'left_out_count')::integer AS left_out, (e.body ->> 'manifest_id')::uuid AS manifest_id,
         (e.body ->> 'budget')::bigint AS budget, (e.body ->> 'used')::bigint AS used,
         CASE p.type WHEN 'context.built' THEN coalesce(e.body ->> 'unit', 'tokens') END AS unit,
         (e.body ->> 'duration_us')::bigint AS duration_us, e.body IS NULL AS redacted, p.type, e.body ->> 'answer' AS answer,
         (e.body ->> 'confidence')::double precision AS confidence
  FROM report_place p LEFT JOIN run r USING (log_no, run_no) JOIN event e USING (log_no, seq)
    LEFT JOIN manifest m ON m.manifest_id = (e.body ->> 'manifest_id')::uuid
  WHERE p.type IN ('context.built', 'question.answered')
    AND CASE p.run_no WHEN 0 THEN coalesce(current_setting('muniment.runs', true), '') = '' ELSE report.sees(r.run_id) END;
COMMENT ON VIEW report.recall_report IS 'Context packs that were built and answers to questions: what a run recalled';
COMMENT ON COLUMN report.recall_report.seq IS 'seq of its context.built or question.answered event';
COMMENT ON COLUMN report.recall_report.type IS 'Type of the event: context.built or question.answered';
COMMENT ON COLUMN report.recall_report.answer IS 'Answer to the question; NULL for a context pack, or once redacted';
COMMENT ON COLUMN report.recall_report.confidence IS 'Probability that the evidence holds the answer; NULL for a context pack, or once redacted';
