-- Queries and feedback are kept in the log's own run: they belong to nobody's run, and the views showed none of them. Shown as
-- report.audit_report shows what concerns the whole log: to those who see all runs.

CREATE OR REPLACE VIEW report.retrieval_report WITH (security_barrier) AS
  SELECT p.log_no, r.run_id, e.step_id, p.seq, e.recorded_at, e.actor, e.body #>> '{queries,0,query}' AS query,
         json_array_length(e.body -> 'queries') AS queries, (e.body -> 'corpora')::jsonb AS corpora,
         e.body ->> 'profile' AS profile, json_array_length(e.body -> 'cards') AS cards,
         (e.body #>> '{cards,0,score}')::double precision AS best_score, (e.body -> 'degraded')::jsonb AS degraded,
         e.body ->> 'cache' AS cache, (e.body ->> 'watermark')::bigint AS watermark,
         (e.body ->> 'duration_us')::bigint AS duration_us
  FROM report_place p LEFT JOIN run r USING (log_no, run_no) JOIN event e USING (log_no, seq)
  WHERE CASE p.run_no WHEN 0 THEN coalesce(current_setting('muniment.runs', true), '') = '' ELSE report.sees(r.run_id) END AND p.type IN ('retrieval.answered');
COMMENT ON VIEW report.retrieval_report IS 'What was asked of corpora, and what was shown';
COMMENT ON COLUMN report.retrieval_report.run_id IS 'The run; NULL for a query that was asked outside of one';

CREATE OR REPLACE VIEW report.feedback_report WITH (security_barrier) AS
  SELECT p.log_no, r.run_id, e.step_id, p.seq, e.recorded_at, e.actor, e.body ->> 'target' AS target, e.body ->> 'name' AS name,
         (e.body -> 'value')::jsonb AS value,
         CASE WHEN json_typeof(e.body -> 'value') = 'number' THEN (e.body ->> 'value')::numeric END AS score,
         e.body ->> 'by' AS given_by, e.body ->> 'comment' AS comment
  FROM report_place p LEFT JOIN run r USING (log_no, run_no) JOIN event e USING (log_no, seq)
  WHERE CASE p.run_no WHEN 0 THEN coalesce(current_setting('muniment.runs', true), '') = '' ELSE report.sees(r.run_id) END AND p.type IN ('feedback.recorded');
COMMENT ON COLUMN report.feedback_report.run_id IS 'The run; NULL for a score that was given to a passage outside of one';

-- Where nothing says otherwise a reporter sees all runs. An `=` that the planner takes for rare made it look up each run's calls
-- one by one; of a CASE it expects half.
CREATE OR REPLACE FUNCTION report.sees(run_id text) RETURNS boolean LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT left(run_id, 1) <> '_' AND CASE coalesce(current_setting('muniment.runs', true), '') WHEN '' THEN true
         ELSE run_id = ANY (string_to_array(current_setting('muniment.runs', true), ',')) END
$$;

-- Arguments and contents are read from the log for the rows that are shown in the end. Behind the barrier they were read before a
-- query's ORDER BY and LIMIT, for every row that they chose from; so the barrier stands around the rest alone.
CREATE VIEW report_tool_seen WITH (security_barrier) AS
  SELECT s.log_no, r.run_id, s.step_id, s.key AS call_id, s.name AS tool, s.sort AS kind, s.via AS server,
         (ARRAY['observed', 'reported', 'imported'])[s.origin] AS origin, s.attempt, coalesce(s.status, 'pending') AS status,
         s.reason AS error_type, s.exit_code, s.began_at AS called_at, s.ended_at AS returned_at,
         coalesce(s.duration_us, report_micros(s.began_at, s.ended_at)) AS duration_us, s.began_seq AS called_seq, s.ended_seq AS returned_seq
  FROM report_span_tool s JOIN run r USING (log_no, run_no)
  WHERE report.sees(r.run_id);
COMMENT ON VIEW report_tool_seen IS 'What report.tool_call has of the calls that the reporter may see, without what is read from the log';

CREATE OR REPLACE VIEW report.tool_call AS
  SELECT s.log_no, s.run_id, s.step_id, s.call_id, s.tool, s.kind, s.server, s.origin, s.attempt, s.status, s.error_type, s.exit_code, s.called_at,
         s.returned_at, s.duration_us,
         (SELECT coalesce(e.body -> 'arguments', e.body -> 'ref')::jsonb FROM event e WHERE e.log_no = s.log_no AND e.seq = s.called_seq) AS arguments,
         (SELECT (e.body -> 'content')::jsonb FROM event e WHERE e.log_no = s.log_no AND e.seq = s.returned_seq) AS content,
         s.called_seq, s.returned_seq
  FROM report_tool_seen s;
ALTER VIEW report.tool_call RESET (security_barrier);

DO $$
BEGIN
  EXECUTE format('REVOKE ALL ON report_tool_seen FROM %I, %I', muniment_role('writer'), muniment_role('auditor'));
END $$;
