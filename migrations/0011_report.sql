-- The views of schema `report`, and the tables that the follower "report" keeps so that they answer at once over a large log
-- (docs/sql.md). The tables hold names and numbers; every longer text is read from the log itself, and so is gone where that
-- was erased.

-- Inlined into every view; without this no view would be read by more than one process.
ALTER FUNCTION report.sees(text) PARALLEL SAFE;

CREATE TABLE report_run (
  log_no              smallint NOT NULL REFERENCES log_head,
  run_no              bigint NOT NULL CHECK (run_no > 0),
  events              bigint NOT NULL,
  last_seq            bigint NOT NULL,
  last_event_at       timestamptz NOT NULL,
  first_occurred_at   timestamptz,
  last_occurred_at    timestamptz,
  messages            bigint NOT NULL,
  errors              bigint NOT NULL,
  model_calls         bigint NOT NULL,
  model_errors        bigint NOT NULL,
  tool_calls          bigint NOT NULL,
  tool_errors         bigint NOT NULL,
  steps               bigint NOT NULL,
  commands            bigint NOT NULL,
  command_errors      bigint NOT NULL,
  input_tokens        numeric NOT NULL,
  output_tokens       numeric NOT NULL,
  cached_input_tokens numeric NOT NULL,
  reasoning_tokens    numeric NOT NULL,
  cost                numeric NOT NULL,
  currency            text CHECK (octet_length(currency) <= 64),
  PRIMARY KEY (log_no, run_no)
);
COMMENT ON TABLE report_run IS 'What a run comes to. Derived from the log by the follower "report"; rebuilt by: muniment rebuild';
COMMENT ON COLUMN report_run.currency IS 'Of cost; mixed: of several, and then the sum says nothing';

-- What begins with one event and ends with another. `seq` is that of the first of the two that is known.
CREATE TABLE report_span (
  log_no              smallint NOT NULL,
  kind                text NOT NULL,
  seq                 bigint NOT NULL,
  run_no              bigint NOT NULL,
  key                 text NOT NULL CHECK (octet_length(key) BETWEEN 1 AND 1024),
  step_id             text CHECK (octet_length(step_id) <= 200),
  origin              smallint NOT NULL CHECK (origin BETWEEN 1 AND 3),
  began_seq           bigint,
  began_at            timestamptz,
  ended_seq           bigint,
  ended_at            timestamptz,
  name                text CHECK (octet_length(name) <= 1024),
  sort                text CHECK (octet_length(sort) <= 1024),
  via                 text CHECK (octet_length(via) <= 1024),
  attempt             bigint,
  status              text CHECK (octet_length(status) <= 32),
  reason              text CHECK (octet_length(reason) <= 1024),
  answered_by         text CHECK (octet_length(answered_by) <= 1024),
  exit_code           bigint,
  duration_us         bigint,
  first_token_us      bigint,
  input_tokens        bigint,
  output_tokens       bigint,
  cached_input_tokens bigint,
  cache_write_tokens  bigint,
  reasoning_tokens    bigint,
  cost                numeric,
  currency            text CHECK (octet_length(currency) <= 64),
  PRIMARY KEY (log_no, kind, seq),
  CHECK (seq = coalesce(began_seq, ended_seq))
) PARTITION BY LIST (kind);
CREATE TABLE report_span_model PARTITION OF report_span FOR VALUES IN ('model');
CREATE TABLE report_span_tool PARTITION OF report_span FOR VALUES IN ('tool');
CREATE TABLE report_span_step PARTITION OF report_span FOR VALUES IN ('step');
CREATE TABLE report_span_command PARTITION OF report_span FOR VALUES IN ('command');
CREATE TABLE report_span_approval PARTITION OF report_span FOR VALUES IN ('approval');
CREATE INDEX report_span_run ON report_span (log_no, run_no, seq);
CREATE INDEX report_span_open ON report_span (log_no, run_no, key, seq) WHERE ended_seq IS NULL;
CREATE INDEX report_span_failed ON report_span (log_no, seq) WHERE status <> 'ok';
CREATE INDEX report_span_time ON report_span USING brin (began_at) WITH (pages_per_range = 32);
COMMENT ON TABLE report_span IS 'Calls, steps, commands and approvals: what begins with one event and ends with another. Derived from the log by the follower "report"; rebuilt by: muniment rebuild';
COMMENT ON COLUMN report_span.key IS 'What the two events share: call_id, step_id or approval_id';
COMMENT ON COLUMN report_span.began_at IS 'By the client or the source, otherwise by the daemon''s clock; NULL where an imported event does not say';
COMMENT ON COLUMN report_span.sort IS 'model: operation; tool: kind; step: kind';
COMMENT ON COLUMN report_span.via IS 'model: provider; tool: server; step: the step around it';
COMMENT ON COLUMN report_span.reason IS 'model: the first finish reason, or the type of the error; others: the type of the error, or the signal';

-- Where in the log the rarer events are that views show one by one.
CREATE TABLE report_place (
  log_no smallint NOT NULL,
  type   text NOT NULL,
  seq    bigint NOT NULL,
  run_no bigint NOT NULL,
  PRIMARY KEY (log_no, type, seq)
);
CREATE INDEX report_place_run ON report_place (log_no, run_no, type, seq);
COMMENT ON TABLE report_place IS 'Where the events of some types are. Derived from the log by the follower "report"; rebuilt by: muniment rebuild';

-- What the spans of a run come to.
CREATE FUNCTION report_sums(wanted_log smallint, wanted_run bigint, OUT model_calls bigint, OUT model_errors bigint, OUT tool_calls bigint,
                            OUT tool_errors bigint, OUT steps bigint, OUT commands bigint, OUT command_errors bigint, OUT input_tokens numeric,
                            OUT output_tokens numeric, OUT cached_input_tokens numeric, OUT reasoning_tokens numeric, OUT cost numeric, OUT currency text)
LANGUAGE plpgsql STABLE AS $$
BEGIN
  SELECT count(*) FILTER (WHERE s.kind = 'model'), count(*) FILTER (WHERE s.kind = 'model' AND s.status <> 'ok'),
         count(*) FILTER (WHERE s.kind = 'tool'), count(*) FILTER (WHERE s.kind = 'tool' AND s.status <> 'ok'),
         count(*) FILTER (WHERE s.kind = 'step'),
         count(*) FILTER (WHERE s.kind = 'command'), count(*) FILTER (WHERE s.kind = 'command' AND s.status <> 'ok'),
         coalesce(sum(s.input_tokens), 0), coalesce(sum(s.output_tokens), 0), coalesce(sum(s.cached_input_tokens), 0),
         coalesce(sum(s.reasoning_tokens), 0), coalesce(sum(s.cost), 0),
         CASE count(DISTINCT s.currency) WHEN 0 THEN NULL WHEN 1 THEN min(s.currency) ELSE 'mixed' END
    INTO model_calls, model_errors, tool_calls, tool_errors, steps, commands, command_errors, input_tokens, output_tokens,
         cached_input_tokens, reasoning_tokens, cost, currency
    FROM report_span s WHERE s.log_no = wanted_log AND s.run_no = wanted_run;
END $$;

-- These events of a run say nothing any more, and the tables are as if they never had. The follower does it where it meets an
-- event.redacted, erase_copies when it erases: each for what the other could not see yet. Changes run before span, as the
-- follower does.
CREATE FUNCTION erase_report(wanted_log smallint, wanted_run bigint, seqs bigint[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM FROM report_run WHERE log_no = wanted_log AND run_no = wanted_run FOR UPDATE;
  IF NOT EXISTS (SELECT FROM report_span WHERE log_no = wanted_log AND run_no = wanted_run AND (began_seq = ANY (seqs) OR ended_seq = ANY (seqs))) THEN
    RETURN;
  END IF;
  DELETE FROM report_span WHERE log_no = wanted_log AND run_no = wanted_run AND coalesce(began_seq = ANY (seqs), true) AND coalesce(ended_seq = ANY (seqs), true);
  UPDATE report_span s SET seq = s.ended_seq, began_seq = NULL, began_at = NULL, name = s.answered_by, sort = NULL, via = NULL, attempt = NULL,
                           step_id = e.step_id, origin = e.origin
    FROM event e WHERE s.log_no = wanted_log AND s.run_no = wanted_run AND s.began_seq = ANY (seqs) AND e.log_no = wanted_log AND e.seq = s.ended_seq;
  UPDATE report_span SET ended_seq = NULL, ended_at = NULL, status = NULL, reason = NULL, answered_by = NULL, exit_code = NULL, duration_us = NULL,
                         first_token_us = NULL, input_tokens = NULL, output_tokens = NULL, cached_input_tokens = NULL, cache_write_tokens = NULL,
                         reasoning_tokens = NULL, cost = NULL, currency = NULL
    WHERE log_no = wanted_log AND run_no = wanted_run AND ended_seq = ANY (seqs);
  UPDATE report_run SET (model_calls, model_errors, tool_calls, tool_errors, steps, commands, command_errors, input_tokens, output_tokens,
                         cached_input_tokens, reasoning_tokens, cost, currency) = (SELECT s.* FROM report_sums(wanted_log, wanted_run) s)
    WHERE log_no = wanted_log AND run_no = wanted_run;
END $$;
COMMENT ON FUNCTION erase_report IS 'Takes what these events of a run said out of the tables that the follower "report" keeps';

-- As in 0006_erasure.sql, and what the report tables took from these events.
CREATE OR REPLACE FUNCTION erase_copies(wanted_log smallint, wanted_run bigint, seqs bigint[], artifact_ids uuid[], run_row jsonb)
RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp SET lock_timeout = '30s' AS $$
DECLARE
  announced bigint;
  unnamed   text;
BEGIN
  SELECT string_agg(named, ', ') INTO unnamed FROM (
    SELECT 'event ' || wanted AS named FROM unnest(seqs) wanted WHERE NOT EXISTS (
      SELECT FROM event WHERE log_no = wanted_log AND run_no = wanted_run AND type = 'event.redacted' AND (body ->> 'seq')::bigint = wanted)
    UNION ALL
    SELECT 'artifact ' || wanted FROM unnest(artifact_ids) wanted WHERE NOT EXISTS (
      SELECT FROM event WHERE log_no = wanted_log AND run_no = wanted_run AND type = 'artifact.redacted' AND (body ->> 'artifact_id')::uuid = wanted)
    UNION ALL
    SELECT 'event ' || e.seq || ' (' || e.type || ' cannot be erased)' FROM event e WHERE e.log_no = wanted_log AND e.seq = ANY (seqs)
      AND (e.run_no <> wanted_run OR e.type IN ('event.redacted', 'artifact.redacted', 'snapshot.taken', 'key.rotated'))) AS refusals;
  IF unnamed IS NOT NULL THEN
    RAISE EXCEPTION 'no event of the log says that these are erased: %', unnamed USING ERRCODE = 'insufficient_privilege';
  END IF;
  SELECT min(seq) INTO announced FROM event
    WHERE log_no = wanted_log AND run_no = wanted_run AND type = 'event.redacted' AND (body ->> 'seq')::bigint = ANY (seqs);

  PERFORM set_config('muniment.erasing', 'on', true);
  UPDATE manifest SET salt = NULL, manifest = NULL WHERE log_no = wanted_log AND seq = ANY (seqs) AND salt IS NOT NULL;
  UPDATE claim SET text = '', pointers = '[]' WHERE log_no = wanted_log AND seq = ANY (seqs);
  UPDATE evidence SET type = '', content = '{}', pointer = NULL, hash = repeat('0', 64), validator_id = NULL
    WHERE log_no = wanted_log AND seq = ANY (seqs);
  DELETE FROM pointer WHERE log_no = wanted_log AND seq = ANY (seqs);
  -- An artifact's hash has no salt, and so would let short bytes be guessed.
  UPDATE artifact SET metadata = '{}', hash = repeat('0', 64) WHERE log_no = wanted_log AND artifact_id = ANY (artifact_ids);
  -- States from the first erased event on hold it; those from its announcement on were folded without it.
  UPDATE snapshot SET salt = NULL, state = NULL, state_hash = decode(repeat('0', 64), 'hex')
    WHERE log_no = wanted_log AND run_no = wanted_run AND seq >= (SELECT min(wanted) FROM unnest(seqs) wanted) AND seq < announced
      AND salt IS NOT NULL;
  UPDATE run SET agent = run_row ->> 'agent', goal = run_row ->> 'goal', labels = run_row -> 'labels', parent = run_row ->> 'parent',
                 external_id = run_row ->> 'external_id', outcome = run_row ->> 'outcome',
                 halt = nullif(run_row -> 'halt', 'null'::jsonb)
    WHERE log_no = wanted_log AND run_no = wanted_run AND run_row IS NOT NULL;
  PERFORM erase_report(wanted_log, wanted_run, seqs);
  UPDATE event SET salt = NULL, body = NULL
    WHERE log_no = wanted_log AND run_no = wanted_run AND seq = ANY (seqs) AND salt IS NOT NULL;
  PERFORM set_config('muniment.erasing', 'off', true);
END $$;

-- The microseconds from one moment to a later one; NULL where it is not later.
CREATE FUNCTION report_micros(began timestamptz, ended timestamptz) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN ended >= began THEN (extract(epoch FROM ended - began) * 1000000)::bigint END
$$;

CREATE VIEW report.run_report WITH (security_barrier) AS
  SELECT r.log_no, r.run_id, r.run_no, r.status, r.outcome, (ARRAY['observed', 'reported', 'imported'])[r.origin] AS origin,
         r.agent, r.owner, r.goal, r.labels, r.parent AS parent_run_id, r.external_id, r.started_at, r.ended_at,
         c.last_event_at, c.first_occurred_at, c.last_occurred_at,
         CASE WHEN r.origin = 3 THEN c.last_occurred_at - c.first_occurred_at ELSE coalesce(r.ended_at, c.last_event_at) - r.started_at END AS duration,
         coalesce(c.events, 0) AS events, r.first_seq, c.last_seq, coalesce(c.steps, 0) AS steps,
         coalesce(c.messages, 0) AS messages, coalesce(c.model_calls, 0) AS model_calls,
         coalesce(c.model_errors, 0) AS model_errors, coalesce(c.tool_calls, 0) AS tool_calls,
         coalesce(c.tool_errors, 0) AS tool_errors, coalesce(c.commands, 0) AS commands,
         coalesce(c.command_errors, 0) AS command_errors, coalesce(c.errors, 0) AS errors,
         coalesce(c.input_tokens, 0) AS input_tokens, coalesce(c.output_tokens, 0) AS output_tokens,
         coalesce(c.cached_input_tokens, 0) AS cached_input_tokens, coalesce(c.reasoning_tokens, 0) AS reasoning_tokens,
         CASE WHEN c.currency <> 'mixed' THEN c.cost END AS cost, c.currency, coalesce(a.artifacts, 0) AS artifacts,
         coalesce(a.artifact_bytes, 0) AS artifact_bytes, r.halt ->> 'code' AS halt_code, r.halt ->> 'reason' AS halt_reason,
         r.halt ->> 'pointer' AS halt_pointer
  FROM run r LEFT JOIN report_run c USING (log_no, run_no)
    LEFT JOIN (SELECT log_no, run_id, count(*) AS artifacts, sum(size_bytes)::bigint AS artifact_bytes FROM artifact GROUP BY log_no, run_id) a USING (log_no, run_id)
  WHERE report.sees(r.run_id);
COMMENT ON VIEW report.run_report IS 'One row a run: how it stands and what it came to';

CREATE VIEW report.run_tree WITH (security_barrier) AS
  WITH RECURSIVE tree AS (
    SELECT r.log_no, r.run_id AS root_run_id, r.run_id, NULL::text AS parent_run_id, 0 AS depth, ARRAY[r.run_id] AS path, r.status, r.outcome, r.agent, r.started_at, r.ended_at
    FROM run r LEFT JOIN run above ON above.log_no = r.log_no AND above.run_id = r.parent AND report.sees(above.run_id)
    WHERE report.sees(r.run_id) AND above.run_id IS NULL
    UNION ALL
    SELECT r.log_no, t.root_run_id, r.run_id, t.run_id, t.depth + 1, t.path || r.run_id, r.status, r.outcome, r.agent, r.started_at, r.ended_at
    FROM tree t JOIN run r ON r.log_no = t.log_no AND r.parent = t.run_id
    WHERE report.sees(r.run_id) AND r.run_id <> ALL (t.path))
  SELECT t.log_no, t.root_run_id, t.run_id, t.parent_run_id, t.depth, t.path, t.status, t.outcome, t.agent, t.started_at,
         t.ended_at
  FROM tree t;
COMMENT ON VIEW report.run_tree IS 'Runs under the runs that started them';

CREATE VIEW report.step_report WITH (security_barrier) AS
  SELECT s.log_no, r.run_id, s.key AS step_id, s.name, s.sort AS kind, s.via AS parent_step_id,
         (ARRAY['observed', 'reported', 'imported'])[s.origin] AS origin, coalesce(s.status, 'pending') AS status,
         s.reason AS error_type, s.began_at AS started_at, s.ended_at,
         coalesce(s.duration_us, report_micros(s.began_at, s.ended_at)) AS duration_us, s.began_seq AS started_seq, s.ended_seq
  FROM report_span_step s JOIN run r USING (log_no, run_no)
  WHERE report.sees(r.run_id);
COMMENT ON VIEW report.step_report IS 'Steps, each with its end';

CREATE VIEW report.model_call WITH (security_barrier) AS
  SELECT s.log_no, r.run_id, s.step_id, s.key AS call_id, s.name AS model, s.answered_by AS answered_model, s.via AS provider,
         s.sort AS operation, (ARRAY['observed', 'reported', 'imported'])[s.origin] AS origin, s.attempt,
         coalesce(s.status, 'pending') AS status, CASE WHEN s.status = 'ok' THEN s.reason END AS finish_reason,
         CASE WHEN s.status <> 'ok' THEN s.reason END AS error_type, s.began_at AS called_at, s.ended_at AS answered_at,
         coalesce(s.duration_us, report_micros(s.began_at, s.ended_at)) AS duration_us, s.first_token_us, s.input_tokens,
         s.output_tokens, s.cached_input_tokens, s.cache_write_tokens, s.reasoning_tokens, s.cost, s.currency,
         s.began_seq AS called_seq, s.ended_seq AS answered_seq
  FROM report_span_model s JOIN run r USING (log_no, run_no)
  WHERE report.sees(r.run_id);
COMMENT ON VIEW report.model_call IS 'Calls of models, each with its answer';

CREATE VIEW report.tool_call WITH (security_barrier) AS
  SELECT s.log_no, r.run_id, s.step_id, s.key AS call_id, s.name AS tool, s.sort AS kind, s.via AS server,
         (ARRAY['observed', 'reported', 'imported'])[s.origin] AS origin, s.attempt, coalesce(s.status, 'pending') AS status,
         s.reason AS error_type, s.exit_code, s.began_at AS called_at, s.ended_at AS returned_at,
         coalesce(s.duration_us, report_micros(s.began_at, s.ended_at)) AS duration_us,
         (SELECT coalesce(e.body -> 'arguments', e.body -> 'ref')::jsonb FROM event e WHERE e.log_no = s.log_no AND e.seq = s.began_seq) AS arguments,
         (SELECT (e.body -> 'content')::jsonb FROM event e WHERE e.log_no = s.log_no AND e.seq = s.ended_seq) AS content,
         s.began_seq AS called_seq, s.ended_seq AS returned_seq
  FROM report_span_tool s JOIN run r USING (log_no, run_no)
  WHERE report.sees(r.run_id);
COMMENT ON VIEW report.tool_call IS 'Calls of tools, each with its result';

CREATE VIEW report.command_report WITH (security_barrier) AS
  SELECT s.log_no, r.run_id, s.step_id, s.key AS call_id, (b.body -> 'argv')::jsonb AS argv, b.body ->> 'cwd' AS cwd,
         (ARRAY['observed', 'reported', 'imported'])[s.origin] AS origin, coalesce(s.status, 'pending') AS status, s.exit_code,
         s.reason AS signal, s.began_at AS started_at, s.ended_at,
         coalesce(s.duration_us, report_micros(s.began_at, s.ended_at)) AS duration_us,
         (e.body #>> '{stdout,size_bytes}')::bigint AS stdout_bytes,
         (e.body #>> '{stdout,artifact_id}')::uuid AS stdout_artifact_id,
         (e.body #>> '{stderr,size_bytes}')::bigint AS stderr_bytes,
         (e.body #>> '{stderr,artifact_id}')::uuid AS stderr_artifact_id, b.body ->> 'tree_digest' AS tree_before,
         e.body ->> 'tree_digest' AS tree_after, s.began_seq AS started_seq, s.ended_seq
  FROM report_span_command s JOIN run r USING (log_no, run_no)
    LEFT JOIN event b ON b.log_no = s.log_no AND b.seq = s.began_seq LEFT JOIN event e ON e.log_no = s.log_no AND e.seq = s.ended_seq
  WHERE report.sees(r.run_id);
COMMENT ON VIEW report.command_report IS 'Commands that muniment exec ran';

CREATE VIEW report.file_report WITH (security_barrier) AS
  SELECT p.log_no, r.run_id, e.step_id, p.seq, e.recorded_at, e.occurred_at,
         (ARRAY['observed', 'reported', 'imported'])[e.origin] AS origin, e.actor, e.body ->> 'path' AS path,
         CASE p.type WHEN 'file.read' THEN 'read' ELSE e.body ->> 'change' END AS change, e.body ->> 'from_path' AS from_path,
         coalesce(e.body ->> 'before_hash', e.body ->> 'hash') AS before_hash, e.body ->> 'after_hash' AS after_hash,
         e.body ->> 'call_id' AS call_id
  FROM report_place p JOIN run r USING (log_no, run_no) JOIN event e USING (log_no, seq)
  WHERE report.sees(r.run_id) AND p.type IN ('file.read', 'file.changed');
COMMENT ON VIEW report.file_report IS 'What runs say they read from and did to files';

CREATE VIEW report.approval_report WITH (security_barrier) AS
  SELECT s.log_no, r.run_id, s.step_id, s.key AS approval_id, b.body ->> 'call_id' AS call_id,
         b.body ->> 'question' AS question, (b.body -> 'options')::jsonb AS options, b.actor AS requested_by,
         CASE WHEN s.ended_seq IS NULL THEN 'pending' ELSE e.body ->> 'decision' END AS decision, e.body ->> 'by' AS decided_as,
         e.actor AS decided_by, e.body ->> 'reason' AS reason, s.began_at AS requested_at, s.ended_at AS decided_at,
         report_micros(s.began_at, s.ended_at) AS duration_us, s.began_seq AS requested_seq, s.ended_seq AS decided_seq
  FROM report_span_approval s JOIN run r USING (log_no, run_no)
    LEFT JOIN event b ON b.log_no = s.log_no AND b.seq = s.began_seq LEFT JOIN event e ON e.log_no = s.log_no AND e.seq = s.ended_seq
  WHERE report.sees(r.run_id);
COMMENT ON VIEW report.approval_report IS 'What was asked to be approved, and what was decided';

CREATE VIEW report.error_report WITH (security_barrier) AS
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
    WHERE report.sees(r.run_id) AND s.status <> 'ok') x;
COMMENT ON VIEW report.error_report IS 'Everything that went wrong in runs: errors that were raised, calls, steps and commands that failed, and halts';

CREATE VIEW report.artifact_report WITH (security_barrier) AS
  SELECT a.log_no, a.run_id, a.step_id, a.artifact_id, a.path, a.mime_type, a.size_bytes, a.hash,
         a.hash = repeat('0', 64) AS erased, a.metadata, a.created_at,
         (ARRAY['observed', 'reported', 'imported'])[(SELECT e.origin FROM event e WHERE e.log_no = a.log_no AND e.seq = a.seq)] AS origin,
         a.seq
  FROM artifact a JOIN run r USING (log_no, run_id)
  WHERE report.sees(r.run_id);
COMMENT ON VIEW report.artifact_report IS 'The files of runs';

CREATE VIEW report.claim_report WITH (security_barrier) AS
  SELECT c.log_no, c.run_id, c.step_id, c.claim_id, c.text, c.status, c.pointers,
         jsonb_array_length(c.pointers) AS pointer_count,
         (SELECT count(*) FROM evidence_link l WHERE l.claim_id = c.claim_id AND l.relation = 'supports') AS supporting,
         (SELECT count(*) FROM evidence_link l WHERE l.claim_id = c.claim_id AND l.relation = 'refutes') AS refuting,
         c.created_at AS recorded_at, c.seq
  FROM claim c JOIN run r USING (log_no, run_id)
  WHERE report.sees(r.run_id);
COMMENT ON VIEW report.claim_report IS 'What runs claim, and what speaks for and against it';

CREATE VIEW report.retrieval_report WITH (security_barrier) AS
  SELECT p.log_no, r.run_id, e.step_id, p.seq, e.recorded_at, e.actor, e.body #>> '{queries,0,query}' AS query,
         json_array_length(e.body -> 'queries') AS queries, (e.body -> 'corpora')::jsonb AS corpora,
         e.body ->> 'profile' AS profile, json_array_length(e.body -> 'cards') AS cards,
         (e.body #>> '{cards,0,score}')::double precision AS best_score, (e.body -> 'degraded')::jsonb AS degraded,
         e.body ->> 'cache' AS cache, (e.body ->> 'watermark')::bigint AS watermark,
         (e.body ->> 'duration_us')::bigint AS duration_us
  FROM report_place p JOIN run r USING (log_no, run_no) JOIN event e USING (log_no, seq)
  WHERE report.sees(r.run_id) AND p.type IN ('retrieval.answered');
COMMENT ON VIEW report.retrieval_report IS 'What runs asked of corpora, and what they were shown';

CREATE VIEW report.feedback_report WITH (security_barrier) AS
  SELECT p.log_no, r.run_id, e.step_id, p.seq, e.recorded_at, e.actor, e.body ->> 'target' AS target, e.body ->> 'name' AS name,
         (e.body -> 'value')::jsonb AS value,
         CASE WHEN json_typeof(e.body -> 'value') = 'number' THEN (e.body ->> 'value')::numeric END AS score,
         e.body ->> 'by' AS given_by, e.body ->> 'comment' AS comment
  FROM report_place p JOIN run r USING (log_no, run_no) JOIN event e USING (log_no, seq)
  WHERE report.sees(r.run_id) AND p.type IN ('feedback.recorded');
COMMENT ON VIEW report.feedback_report IS 'Scores that were given to runs, events and passages';

CREATE VIEW report.audit_report WITH (security_barrier) AS
  SELECT p.log_no, r.run_id, p.seq, e.recorded_at, p.type, e.actor,
         coalesce(e.body ->> 'pointer', e.body ->> 'artifact_id', e.body ->> 'seq', e.body ->> 'budget', e.body ->> 'partition', e.body ->> 'new_key') AS about,
         coalesce(e.body ->> 'reason', e.body ->> 'why', e.body ->> 'detail') AS reason,
         coalesce(e.body ->> 'verdict', e.body ->> 'code', e.body ->> 'kind') AS verdict,
         e.body ->> 'legal_basis' AS legal_basis, (e.body ->> 'upto')::bigint AS upto
  FROM report_place p LEFT JOIN run r USING (log_no, run_no) JOIN event e USING (log_no, seq)
  WHERE CASE p.run_no WHEN 0 THEN split_part(p.type, '.', 1) IN ('log', 'key', 'clock') AND coalesce(current_setting('muniment.runs', true), '') = '' ELSE report.sees(r.run_id) END AND p.type IN ('event.redacted', 'artifact.redacted', 'run.halted', 'run.resumed', 'pointer.unresolved', 'violation.detected', 'budget.exceeded', 'log.started', 'log.stopped', 'log.verified', 'log.exported', 'log.restored', 'log.archived', 'key.rotated', 'clock.stepped');
COMMENT ON VIEW report.audit_report IS 'What an auditor asks about: erasures, halts and what came after, pointers that did not resolve, violations, verifications, keys, starts and stops. What concerns the whole log is shown to those who see all runs';

CREATE VIEW report.storage_report WITH (security_barrier) AS
  SELECT x.what, x.name, x.row_count, x.size_bytes, x.first_seq, x.last_seq, x.archived FROM (
    SELECT 'events' AS what, c.relname::text AS name, greatest(c.reltuples, 0)::bigint AS row_count, pg_total_relation_size(c.oid) AS size_bytes,
           bounds.number << h.partition_bits AS first_seq, ((bounds.number + 1) << h.partition_bits) - 1 AS last_seq, p.number IS NOT NULL AS archived
    FROM pg_partition_tree('event'::regclass) t JOIN pg_class c ON c.oid = t.relid
    CROSS JOIN LATERAL (SELECT split_part(c.relname, '_', 2)::smallint AS log_no, split_part(c.relname, '_', 3)::bigint AS number) bounds
    JOIN log_head h USING (log_no) LEFT JOIN archived_partition p ON p.log_no = bounds.log_no AND p.number = bounds.number
    WHERE t.isleaf AND t.relid <> 'event'::regclass AND c.relname LIKE 'event\_%\_%'
    UNION ALL
    SELECT 'table', c.relname::text, greatest(c.reltuples, 0)::bigint, pg_total_relation_size(c.oid), NULL, NULL, NULL
    FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND c.relname NOT LIKE 'event\_%'
    UNION ALL
    SELECT 'artifacts', 'artifacts', count(*), coalesce(sum(size_bytes), 0)::bigint, NULL, NULL, NULL FROM artifact) x
  WHERE coalesce(current_setting('muniment.runs', true), '') = '';
COMMENT ON VIEW report.storage_report IS 'What takes how much room; shown to those who see all runs';

-- What the columns say; those under * are alike in every view that does not say it itself.
DO $$
DECLARE
  part record;
BEGIN
  FOR part IN SELECT c.relname, a.attname, substr(item, strpos(item, ': ') + 2) AS said
    FROM (VALUES
    ('run_report', 'run_no: Its number in the log: @17 is 17 | status: open, ended or halted | outcome: Of an ended run: success, failure, cancelled or abandoned | agent:
      The name of the agent | owner: The identity that started it | goal: What it was to achieve | labels: Its labels | parent_run_id: The run that
      started it | external_id: Its id in another system | started_at: When it was started, by the daemon''s clock | ended_at: When it ended or halted
      | last_event_at: Its last event, by the daemon''s clock | first_occurred_at: The earliest time that the client or the source gave |
      last_occurred_at: The latest time that the client or the source gave | duration: From its start to its end, or to its last event; of an imported
      run by the times of the source | events: How many events it has | first_seq: Its first event in the log | last_seq: Its last event in the log |
      steps: How many steps | messages: How many messages | model_calls: How many calls of models | model_errors: Of these, those that did not end
      with ok | tool_calls: How many calls of tools | tool_errors: Of these, those that did not end with ok | commands: How many commands that
      muniment exec ran | command_errors: Of these, those that did not exit with 0 | errors: How many errors were raised (error.raised) |
      input_tokens: Tokens read by models | output_tokens: Tokens written by models | cached_input_tokens: Of the tokens read, those from the
      provider''s cache | reasoning_tokens: Of the tokens written, those spent on reasoning | cost: What the models cost; NULL where nothing says it,
      and where it is in several currencies | currency: Of cost; mixed: of several | artifacts: How many artifacts | artifact_bytes: Their bytes |
      halt_code: Of a halted run: why, as a code | halt_reason: Of a halted run: why, in words | halt_pointer: Of a halted run: what did not resolve'),
    ('run_tree', 'root_run_id: The run at the top | parent_run_id: The run that started it; NULL at the top, and where that run is not shown | depth: 0 at the top |
      path: The runs from the top down to it | status: open, ended or halted | outcome: Of an ended run: success, failure, cancelled or abandoned |
      agent: The name of the agent | started_at: When it was started, by the daemon''s clock | ended_at: When it ended or halted'),
    ('step_report', 'name: What it is called | kind: turn, node, task or command | parent_step_id: The step around it | status: ok, error, denied, timeout, cancelled,
      interrupted; pending: it has no end yet | started_at: When it began; NULL where an imported event does not say | ended_at: When it ended |
      started_seq: Its step.started | ended_seq: Its step.ended'),
    ('model_call', 'model: The model that was asked for | answered_model: The model that says it answered | provider: Whose model it is | operation: chat, embeddings, … |
      status: ok, error, denied, timeout, cancelled, interrupted; pending: it has no end yet | finish_reason: Why it stopped writing; the first, where
      there are several | called_at: When it was called; NULL where an imported event does not say | answered_at: When it answered | first_token_us:
      Until its first token, in microseconds | input_tokens: Tokens read | output_tokens: Tokens written | cached_input_tokens: Of the tokens read,
      those from the provider''s cache | cache_write_tokens: Tokens written to the provider''s cache | reasoning_tokens: Of the tokens written, those
      spent on reasoning | cost: What it cost | currency: Of cost | called_seq: Its model.called | answered_seq: Its model.answered'),
    ('tool_call', 'tool: The tool | kind: function, mcp, extension, datastore or command | server: The MCP server that has it | status: ok, error, denied, timeout,
      cancelled, interrupted; pending: it has no end yet | exit_code: Of a tool that is a command | called_at: When it was called; NULL where an
      imported event does not say | returned_at: When it returned | arguments: Its arguments, from the log; NULL once redacted or archived | content:
      What it returned, from the log; NULL once redacted or archived | called_seq: Its tool.called | returned_seq: Its tool.returned'),
    ('command_report', 'argv: The command and its arguments; NULL once redacted or archived | cwd: Where it ran | status: ok, error, interrupted; pending: it has no end yet |
      exit_code: What it exited with | signal: The signal that ended it | started_at: When it began | ended_at: When it ended | stdout_bytes: Bytes
      that it wrote to standard output | stdout_artifact_id: The artifact that holds them | stderr_bytes: Bytes that it wrote to standard error |
      stderr_artifact_id: The artifact that holds them | tree_before: Digest of the working tree before it | tree_after: Digest of the working tree
      after it | started_seq: Its command.started | ended_seq: Its command.ended'),
    ('file_report', 'occurred_at: The client''s or the source''s time; never trusted for order | path: The file; NULL once redacted or archived | change: read, created,
      modified, renamed or deleted | from_path: Where a renamed file was before | before_hash: SHA-256 of its bytes before, or as they were read |
      after_hash: SHA-256 of its bytes after | call_id: The call that did it'),
    ('approval_report', 'approval_id: What question and decision share | call_id: The call that it is about | question: What was asked; NULL once redacted or archived |
      options: What could be chosen | requested_by: The identity that asked | decision: What was decided; pending: nothing yet | decided_as: human,
      model or code, as it says | decided_by: The identity that decided | reason: Why | requested_at: When it was asked | decided_at: When it was
      decided | duration_us: How long it waited, in microseconds | requested_seq: Its approval.requested | decided_seq: Its approval.decided'),
    ('error_report', 'kind: raised, halt, or what failed: model, tool, step, command | name: The model, tool or step | call_id: The call, if it was one | status: How it
      ended: error, denied, timeout, cancelled, interrupted | error_type: The type of the error, the signal, or the code of the halt | message: What
      it says, from the log; NULL once redacted or archived | exit_code: Of a command or a tool that is one | retryable: Whether it may work another
      time, as it says'),
    ('artifact_report', 'artifact_id: Its id | path: Its file, under the artifact root | mime_type: What it is | size_bytes: How many bytes | hash: SHA-256 of them; zeros once
      erased | erased: Its bytes were erased | metadata: What was said of it when it was stored | created_at: When it was stored | seq: Its
      artifact.stored'),
    ('claim_report', 'claim_id: Its id | text: What is claimed; empty once redacted | status: open, or what was decided | pointers: What it rests on | pointer_count: How
      many pointers that is | supporting: Evidence for it | refuting: Evidence against it | seq: Its claim.recorded'),
    ('retrieval_report', 'query: The question, or the first of several; NULL once redacted or archived | queries: How many questions | corpora: Where was looked | profile: How
      was looked | cards: How many passages were shown | best_score: The score of the best | degraded: What could not be used | cache: Whether the
      answer was kept from before | watermark: The event up to which documents were known | duration_us: How long it took, in microseconds'),
    ('feedback_report', 'target: What it is about, as a pointer; NULL once redacted | name: What is scored | value: The score, as it was given | score: The score, where it is
      a number | given_by: human, model or code, as it says | comment: Why'),
    ('audit_report', 'run_id: The run; NULL where it concerns the whole log | type: What happened | about: What it is about: a pointer, an artifact, an event, a budget, a
      partition, a key | reason: Why, in words | verdict: The verdict of a verification, the code of a halt, the kind of a violation | legal_basis: Of
      an erasure: what requires it | upto: Of a verification: the last event that it saw'),
    ('storage_report', 'what: events: a partition of the log; table: another table; artifacts: all files of runs | name: Its name in the database | row_count: About how many
      rows, as the planner knows it; of artifacts exactly how many | size_bytes: On disk, with its indexes | first_seq: Of a partition: its first
      event | last_seq: Of a partition: the last event that fits | archived: Of a partition: its bodies are in the archive'),
    ('*', 'log_no: The log''s number within this database | run_id: The run | step_id: The step within the run | origin: Who vouches for it: observed, reported or
      imported | seq: Position of its event in the log | actor: The authenticated identity that appended it | call_id: The id of the call |
      recorded_at: The daemon''s clock when it was appended | duration_us: How long it took, in microseconds: as its end says, otherwise from beginning
      to end | attempt: Which try of the call it is, from 1 | error_type: The type of the error, where it failed')
    ) texts (view_name, texts) CROSS JOIN LATERAL string_to_table(regexp_replace(texts.texts, '\s+', ' ', 'g'), ' | ') item
    JOIN pg_class c ON c.relnamespace = 'report'::regnamespace AND c.relname IN (view_name, CASE view_name WHEN '*' THEN c.relname END)
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = split_part(item, ': ', 1)
    WHERE col_description(c.oid, a.attnum) IS NULL
    ORDER BY view_name = '*' DESC
  LOOP
    EXECUTE format('COMMENT ON COLUMN report.%I.%I IS %L', part.relname, part.attname, part.said);
  END LOOP;
END $$;

-- The auditor reads what was kept; the writer keeps it; the reporter has the views, by the schema's default rights.
DO $$
DECLARE
  item text;
BEGIN
  FOREACH item IN ARRAY ARRAY['report_run', 'report_span', 'report_span_model', 'report_span_tool', 'report_span_step', 'report_span_command',
                              'report_span_approval', 'report_place'] LOOP
    EXECUTE format('ALTER TABLE %I OWNER TO %I', item, muniment_role('owner'));
    EXECUTE format('GRANT SELECT ON %I TO %I, %I', item, muniment_role('writer'), muniment_role('auditor'));
    EXECUTE format('GRANT INSERT, UPDATE, DELETE ON %I TO %I', item, muniment_role('writer'));
    EXECUTE format('CREATE POLICY auditor ON %I FOR SELECT TO %I USING (true)', item, muniment_role('auditor'));
    IF (SELECT rolbypassrls FROM pg_roles WHERE rolname = muniment_role('writer')) THEN
      EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', item);
    END IF;
  END LOOP;
END $$;
