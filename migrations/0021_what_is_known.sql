-- What was erased is counted nowhere as if it were there, and what began is not said to have no end where its end may be one that
-- was erased.

-- Events that end something and were erased: their type, their step and their place are known still, what they ended is not.
CREATE VIEW report_erased_end AS
  SELECT p.log_no, p.run_no, e.seq, e.type, e.step_id
  FROM report_place p JOIN event x ON x.log_no = p.log_no AND x.seq = p.seq
    JOIN event e ON e.log_no = p.log_no AND e.seq = (x.body ->> 'seq')::bigint
  WHERE p.type = 'event.redacted' AND e.type IN ('approval.decided', 'command.ended', 'model.answered', 'step.ended', 'tool.returned');
COMMENT ON VIEW report_erased_end IS 'Events of runs that ended something and were erased';

CREATE OR REPLACE VIEW report.step_report WITH (security_barrier) AS
  SELECT s.log_no, r.run_id, s.key AS step_id, s.name, s.sort AS kind, s.via AS parent_step_id,
         (ARRAY['observed', 'reported', 'imported'])[s.origin] AS origin,
         CASE WHEN s.ended_seq IS NOT NULL THEN coalesce(s.status, 'pending')
              WHEN EXISTS (SELECT FROM report_erased_end x WHERE x.log_no = s.log_no AND x.run_no = s.run_no AND x.type = 'step.ended' AND x.seq > s.began_seq
                           AND coalesce(x.step_id, 'main') = s.key) THEN 'unknown'
              ELSE 'pending' END AS status,
         s.reason AS error_type, s.began_at AS started_at, s.ended_at,
         coalesce(s.duration_us, report_micros(s.began_at, s.ended_at)) AS duration_us, s.began_seq AS started_seq, s.ended_seq
  FROM report_span_step s JOIN run r USING (log_no, run_no)
  WHERE report.sees(r.run_id);

CREATE OR REPLACE VIEW report.model_call WITH (security_barrier) AS
  SELECT s.log_no, r.run_id, s.step_id, s.key AS call_id, s.name AS model, s.answered_by AS answered_model, s.via AS provider,
         s.sort AS operation, (ARRAY['observed', 'reported', 'imported'])[s.origin] AS origin, s.attempt,
         CASE WHEN s.ended_seq IS NOT NULL THEN coalesce(s.status, 'pending')
              WHEN EXISTS (SELECT FROM report_erased_end x WHERE x.log_no = s.log_no AND x.run_no = s.run_no AND x.type = 'model.answered' AND x.seq > s.began_seq) THEN 'unknown'
              ELSE 'pending' END AS status,
         CASE WHEN s.status = 'ok' THEN s.reason END AS finish_reason,
         CASE WHEN s.status <> 'ok' THEN s.reason END AS error_type, s.began_at AS called_at, s.ended_at AS answered_at,
         coalesce(s.duration_us, report_micros(s.began_at, s.ended_at)) AS duration_us, s.first_token_us, s.input_tokens,
         s.output_tokens, s.cached_input_tokens, s.cache_write_tokens, s.reasoning_tokens, s.cost, s.currency,
         s.began_seq AS called_seq, s.ended_seq AS answered_seq
  FROM report_span_model s JOIN run r USING (log_no, run_no)
  WHERE report.sees(r.run_id);

CREATE OR REPLACE VIEW report_tool_seen WITH (security_barrier) AS
  SELECT s.log_no, r.run_id, s.step_id, s.key AS call_id, s.name AS tool, s.sort AS kind, s.via AS server,
         (ARRAY['observed', 'reported', 'imported'])[s.origin] AS origin, s.attempt,
         CASE WHEN s.ended_seq IS NOT NULL THEN coalesce(s.status, 'pending')
              WHEN EXISTS (SELECT FROM report_erased_end x WHERE x.log_no = s.log_no AND x.run_no = s.run_no AND x.type = 'tool.returned' AND x.seq > s.began_seq) THEN 'unknown'
              ELSE 'pending' END AS status,
         s.reason AS error_type, s.exit_code, s.began_at AS called_at, s.ended_at AS returned_at,
         coalesce(s.duration_us, report_micros(s.began_at, s.ended_at)) AS duration_us, s.began_seq AS called_seq, s.ended_seq AS returned_seq
  FROM report_span_tool s JOIN run r USING (log_no, run_no)
  WHERE report.sees(r.run_id);

-- A command whose end says how long it took ended so long after its start, however late its end was recorded.
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
         e.body ->> 'tree_digest' AS tree_after, s.began_seq AS started_seq, s.ended_seq
  FROM report_span_command s JOIN run r USING (log_no, run_no)
    LEFT JOIN event b ON b.log_no = s.log_no AND b.seq = s.began_seq LEFT JOIN event e ON e.log_no = s.log_no AND e.seq = s.ended_seq
  WHERE report.sees(r.run_id);

CREATE OR REPLACE VIEW report.approval_report WITH (security_barrier) AS
  SELECT s.log_no, r.run_id, s.step_id, s.key AS approval_id, b.body ->> 'call_id' AS call_id,
         b.body ->> 'question' AS question, (b.body -> 'options')::jsonb AS options, b.actor AS requested_by,
         CASE WHEN s.ended_seq IS NOT NULL THEN e.body ->> 'decision'
              WHEN EXISTS (SELECT FROM report_erased_end x WHERE x.log_no = s.log_no AND x.run_no = s.run_no AND x.type = 'approval.decided' AND x.seq > s.began_seq) THEN 'unknown'
              ELSE 'pending' END AS decision,
         e.body ->> 'by' AS decided_as, e.actor AS decided_by, e.body ->> 'reason' AS reason, s.began_at AS requested_at, s.ended_at AS decided_at,
         report_micros(s.began_at, s.ended_at) AS duration_us, s.began_seq AS requested_seq, s.ended_seq AS decided_seq
  FROM report_span_approval s JOIN run r USING (log_no, run_no)
    LEFT JOIN event b ON b.log_no = s.log_no AND b.seq = s.began_seq LEFT JOIN event e ON e.log_no = s.log_no AND e.seq = s.ended_seq
  WHERE report.sees(r.run_id);

-- As in 0015_unknown.sql, but for artifacts that were erased: their rows stay, and their bytes are gone.
CREATE OR REPLACE VIEW report.run_report WITH (security_barrier) AS
  SELECT r.log_no, r.run_id, r.run_no, r.status, r.outcome, (ARRAY['observed', 'reported', 'imported'])[r.origin] AS origin,
         r.agent, r.owner, r.goal, r.labels, r.parent AS parent_run_id, r.external_id, r.started_at, r.ended_at,
         c.last_event_at, c.first_occurred_at, c.last_occurred_at,
         CASE WHEN r.origin = 3 THEN nullif(c.last_occurred_at - c.first_occurred_at, interval '0') ELSE coalesce(r.ended_at, c.last_event_at) - r.started_at END AS duration,
         coalesce(c.events, 0) AS events, r.first_seq, c.last_seq, coalesce(c.steps, 0) AS steps,
         coalesce(c.messages, 0) AS messages, coalesce(c.model_calls, 0) AS model_calls,
         coalesce(c.model_errors, 0) AS model_errors, coalesce(c.tool_calls, 0) AS tool_calls,
         coalesce(c.tool_errors, 0) AS tool_errors, coalesce(c.commands, 0) AS commands,
         coalesce(c.command_errors, 0) AS command_errors, coalesce(c.errors, 0) AS errors,
         coalesce(c.input_tokens, report_number(t.usage ->> 'input_tokens')) AS input_tokens,
         coalesce(c.output_tokens, report_number(t.usage ->> 'output_tokens')) AS output_tokens,
         coalesce(c.cached_input_tokens, report_number(t.usage ->> 'cached_input_tokens')) AS cached_input_tokens,
         coalesce(c.reasoning_tokens, report_number(t.usage ->> 'reasoning_tokens')) AS reasoning_tokens,
         CASE WHEN c.currency IS NULL THEN report_number(t.usage #>> '{cost,amount}') WHEN c.currency <> 'mixed' THEN c.cost END AS cost,
         coalesce(c.currency, t.usage #>> '{cost,currency}') AS currency, coalesce(a.artifacts, 0) AS artifacts,
         coalesce(a.artifact_bytes, 0) AS artifact_bytes, r.halt ->> 'code' AS halt_code, r.halt ->> 'reason' AS halt_reason,
         r.halt ->> 'pointer' AS halt_pointer
  FROM run r LEFT JOIN report_run c USING (log_no, run_no)
    LEFT JOIN (SELECT log_no, run_id, count(*) AS artifacts, sum(size_bytes)::bigint AS artifact_bytes FROM artifact WHERE hash <> repeat('0', 64)
               GROUP BY log_no, run_id) a USING (log_no, run_id)
    LEFT JOIN LATERAL (SELECT (SELECT e.body -> 'usage' FROM event e WHERE e.log_no = p.log_no AND e.seq = p.seq) AS usage FROM report_place p
                       WHERE p.log_no = r.log_no AND p.run_no = r.run_no AND p.type = 'run.ended' ORDER BY p.seq DESC LIMIT 1) t ON true
  WHERE report.sees(r.run_id);

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
    SELECT 'artifacts', 'artifacts', count(*), coalesce(sum(size_bytes), 0)::bigint, NULL, NULL, NULL FROM artifact WHERE hash <> repeat('0', 64)) x
  WHERE coalesce(current_setting('muniment.runs', true), '') = '';

COMMENT ON COLUMN report.step_report.status IS 'ok, error, denied, timeout, cancelled, interrupted; unknown: nothing says how it ended, or its end was erased; pending: it has no end yet';
COMMENT ON COLUMN report.model_call.status IS 'ok, error, denied, timeout, cancelled, interrupted; unknown: nothing says how it ended, or an answer of the run was erased and may be its own; pending: it has no end yet';
COMMENT ON COLUMN report.tool_call.status IS 'ok, error, denied, timeout, cancelled, interrupted; unknown: nothing says how it ended, or a result of the run was erased and may be its own; pending: it has no end yet';
COMMENT ON COLUMN report.command_report.status IS 'ok, error, interrupted; unknown: an end of a command of the run was erased and may be its own; pending: it has no end yet';
COMMENT ON COLUMN report.command_report.ended_at IS 'When it ended: its start and the time that it took, otherwise when its end was recorded';
COMMENT ON COLUMN report.command_report.duration_us IS 'How long it took, in microseconds, by the clock of whoever ran it; where its end does not say, the time between the records of its start and its end';
COMMENT ON COLUMN report.command_report.stdout_bytes IS 'Bytes of its standard output that were kept; secrets that were replaced in it change their number';
COMMENT ON COLUMN report.command_report.stderr_bytes IS 'Bytes of its standard error that were kept; secrets that were replaced in it change their number';
COMMENT ON COLUMN report.approval_report.decision IS 'What was decided; pending: nothing yet; unknown: a decision of the run was erased and may be its own';
COMMENT ON COLUMN report.run_report.artifacts IS 'How many artifacts, without those that were erased';
COMMENT ON COLUMN report.run_report.artifact_bytes IS 'Their bytes';
COMMENT ON COLUMN report.storage_report.row_count IS 'About how many rows, as the planner knows it, NULL where it knows nothing yet; of artifacts exactly how many, without those that were erased';
COMMENT ON COLUMN report.storage_report.size_bytes IS 'On disk, with its indexes; of artifacts the sum of their bytes, without those that were erased';

DO $$
BEGIN
  EXECUTE format('REVOKE ALL ON report_erased_end FROM %I, %I', muniment_role('writer'), muniment_role('auditor'));
END $$;
