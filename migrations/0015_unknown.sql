-- What the log does not say is NULL: tokens and cost of a run of which no call says them, and the duration of an imported run
-- of which no two moments are known. A call or step whose end is `unknown` did neither go well nor fail. What a source counts
-- for a whole run, and for no call of it, is in its run.ended.

ALTER TABLE report_run ALTER input_tokens DROP NOT NULL, ALTER output_tokens DROP NOT NULL, ALTER cached_input_tokens DROP NOT NULL,
  ALTER reasoning_tokens DROP NOT NULL, ALTER cost DROP NOT NULL;

CREATE FUNCTION report_failed(status text) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT status NOT IN ('ok', 'unknown')
$$;

CREATE OR REPLACE FUNCTION report_sums(wanted_log smallint, wanted_run bigint, OUT model_calls bigint, OUT model_errors bigint, OUT tool_calls bigint,
                            OUT tool_errors bigint, OUT steps bigint, OUT commands bigint, OUT command_errors bigint, OUT input_tokens numeric,
                            OUT output_tokens numeric, OUT cached_input_tokens numeric, OUT reasoning_tokens numeric, OUT cost numeric, OUT currency text)
LANGUAGE plpgsql STABLE AS $$
BEGIN
  SELECT count(*) FILTER (WHERE s.kind = 'model'), count(*) FILTER (WHERE s.kind = 'model' AND report_failed(s.status)),
         count(*) FILTER (WHERE s.kind = 'tool'), count(*) FILTER (WHERE s.kind = 'tool' AND report_failed(s.status)),
         count(*) FILTER (WHERE s.kind = 'step'),
         count(*) FILTER (WHERE s.kind = 'command'), count(*) FILTER (WHERE s.kind = 'command' AND report_failed(s.status)),
         sum(s.input_tokens), sum(s.output_tokens), sum(s.cached_input_tokens), sum(s.reasoning_tokens), sum(s.cost),
         CASE count(DISTINCT s.currency) WHEN 0 THEN NULL WHEN 1 THEN min(s.currency) ELSE 'mixed' END
    INTO model_calls, model_errors, tool_calls, tool_errors, steps, commands, command_errors, input_tokens, output_tokens,
         cached_input_tokens, reasoning_tokens, cost, currency
    FROM report_span s WHERE s.log_no = wanted_log AND s.run_no = wanted_run;
END $$;

UPDATE report_run r SET (input_tokens, output_tokens, cached_input_tokens, reasoning_tokens, cost) =
  (SELECT s.input_tokens, s.output_tokens, s.cached_input_tokens, s.reasoning_tokens, s.cost FROM report_sums(r.log_no, r.run_no) s);

-- The view of runs asks their ends what a whole run used.
INSERT INTO report_place SELECT e.log_no, e.type, e.seq, e.run_no FROM event e JOIN follower f ON f.log_no = e.log_no AND f.name = 'report'
  WHERE e.type = 'run.ended' AND e.seq < f.next_seq;

DROP INDEX report_span_failed;
CREATE INDEX report_span_failed ON report_span (log_no, seq) WHERE report_failed(status);

-- A number as an event's body says it, where it is one: a text may be anything.
CREATE FUNCTION report_number(said text) RETURNS numeric LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN said ~ '^[0-9]{1,40}(\.[0-9]{1,60})?([eE][-+]?[0-9]{1,3})?$' THEN said::numeric END
$$;

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
    LEFT JOIN (SELECT log_no, run_id, count(*) AS artifacts, sum(size_bytes)::bigint AS artifact_bytes FROM artifact GROUP BY log_no, run_id) a USING (log_no, run_id)
    LEFT JOIN LATERAL (SELECT (SELECT e.body -> 'usage' FROM event e WHERE e.log_no = p.log_no AND e.seq = p.seq) AS usage FROM report_place p
                       WHERE p.log_no = r.log_no AND p.run_no = r.run_no AND p.type = 'run.ended' ORDER BY p.seq DESC LIMIT 1) t ON true
  WHERE report.sees(r.run_id);

CREATE OR REPLACE VIEW report.error_report WITH (security_barrier) AS
  SELECT x.log_no, x.run_id, x.step_id, x.seq, x.recorded_at,
         (ARRAY['observed', 'reported', 'imported'])[x.origin_no] AS origin, x.kind, x.name, x.call_id, x.status, x.error_type,
         x.message, x.exit_code, x.retryable FROM (
    SELECT p.log_no, r.run_id, e.step_id, p.seq, e.recorded_at, e.origin AS origin_no, CASE p.type WHEN 'run.halted' THEN 'halt' ELSE 'raised' END AS kind, NULL::text AS name,
           e.body ->> 'call_id' AS call_id, 'error' AS status, coalesce(e.body ->> 'error_type', e.body ->> 'code') AS error_type,
           coalesce(e.body ->> 'message', e.body ->> 'reason') AS message, NULL::bigint AS exit_code, (e.body ->> 'retryable')::boolean AS retryable
    FROM report_place p JOIN run r USING (log_no, run_no) JOIN event e USING (log_no, seq)
    WHERE report.sees(r.run_id) AND p.type IN ('error.raised', 'run.halted')
    UNION ALL
    SELECT s.log_no, r.run_id, CASE s.kind WHEN 'step' THEN s.key ELSE s.step_id END, s.ended_seq, e.recorded_at, s.origin, s.kind, s.name,
           CASE WHEN s.kind <> 'step' THEN s.key END, s.status, s.reason, e.body #>> '{error,message}', s.exit_code, NULL
    FROM report_span s JOIN run r USING (log_no, run_no) JOIN event e ON e.log_no = s.log_no AND e.seq = s.ended_seq
    WHERE report.sees(r.run_id) AND report_failed(s.status)) x;

COMMENT ON COLUMN report.run_report.outcome IS 'Of an ended run: success, failure, cancelled, abandoned; unknown: nobody says';
COMMENT ON COLUMN report.run_tree.outcome IS 'Of an ended run: success, failure, cancelled, abandoned; unknown: nobody says';
COMMENT ON COLUMN report.run_report.input_tokens IS 'Tokens read by models: the sum of the calls that say it, or the run''s own total where none does; NULL where nothing says it';
COMMENT ON COLUMN report.run_report.output_tokens IS 'Tokens written by models; NULL where nothing says it';
COMMENT ON COLUMN report.run_report.cached_input_tokens IS 'Of the tokens read, those from the provider''s cache; NULL where nothing says it';
COMMENT ON COLUMN report.run_report.reasoning_tokens IS 'Of the tokens written, those spent on reasoning; NULL where nothing says it';
COMMENT ON COLUMN report.run_report.model_errors IS 'Of these, those that failed; an end that is unknown is none';
COMMENT ON COLUMN report.run_report.tool_errors IS 'Of these, those that failed; an end that is unknown is none';
COMMENT ON COLUMN report.step_report.status IS 'ok, error, denied, timeout, cancelled, interrupted; unknown: nothing says how it ended; pending: it has no end yet';
COMMENT ON COLUMN report.model_call.status IS 'ok, error, denied, timeout, cancelled, interrupted; unknown: nothing says how it ended; pending: it has no end yet';
COMMENT ON COLUMN report.tool_call.status IS 'ok, error, denied, timeout, cancelled, interrupted; unknown: nothing says how it ended; pending: it has no end yet';
