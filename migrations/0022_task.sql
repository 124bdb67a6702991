-- Tasks and the evidence that completed them. Both tables are written in the transaction of their event, like evidence_link, and
-- hold no text of it: what a task says is read from the body of its task.opened event.
CREATE TABLE task_change (
  log_no  smallint NOT NULL,
  seq     bigint NOT NULL,
  run_id  text NOT NULL CHECK (octet_length(run_id) <= 128),
  task_id text NOT NULL CHECK (octet_length(task_id) <= 256),
  change  text NOT NULL CHECK (change IN ('opened', 'completed')),
  PRIMARY KEY (log_no, seq)
);
-- A task is opened once and completed once in its run.
CREATE UNIQUE INDEX task_change_once ON task_change (log_no, run_id, task_id, change);
-- For the list of a run's tasks.
CREATE INDEX task_change_run ON task_change (log_no, run_id, change, seq);
COMMENT ON TABLE task_change IS 'One row for each task.opened and task.completed event';
COMMENT ON COLUMN task_change.seq IS 'The event';

CREATE TABLE task_evidence (
  log_no       smallint NOT NULL,
  seq          bigint NOT NULL,
  run_id       text NOT NULL CHECK (octet_length(run_id) <= 128),
  task_id      text NOT NULL CHECK (octet_length(task_id) <= 256),
  evidence_id  uuid NOT NULL,
  evidence_seq bigint NOT NULL,
  PRIMARY KEY (log_no, seq, evidence_seq)
);
-- A piece of evidence completes one task.
CREATE UNIQUE INDEX task_evidence_once ON task_evidence (log_no, evidence_seq);
COMMENT ON TABLE task_evidence IS 'One row for each piece of evidence of a task.completed event';
COMMENT ON COLUMN task_evidence.seq IS 'The task.completed event';
COMMENT ON COLUMN task_evidence.run_id IS 'The run of the task; the evidence may be of another run';
COMMENT ON COLUMN task_evidence.evidence_seq IS 'The evidence.recorded event, which is one run''s use of the evidence';

ALTER TABLE evidence
  ADD COLUMN task_id text CHECK (octet_length(task_id) <= 256),
  ADD COLUMN command_id uuid;
COMMENT ON COLUMN evidence.task_id IS 'The task of its run that it was recorded for';
COMMENT ON COLUMN evidence.command_id IS 'The recorded command (its command.started event) of which the daemon made the content; NULL: a client wrote the content';
CREATE INDEX evidence_task ON evidence (log_no, task_id, seq) WHERE task_id IS NOT NULL;
-- Evidence of the same test suite, by a hash: the index has no limit of its own for the text.
CREATE INDEX evidence_suite ON evidence (log_no, hashtextextended(content #>> '{command,suite}', 0), seq) WHERE command_id IS NOT NULL;
-- Uses of the same content are read in order.
DROP INDEX evidence_hash;
CREATE INDEX evidence_hash ON evidence (log_no, hash, seq);

-- As in 0020_erased_states.sql, and for tasks: the rows of an erased task event are deleted, and erased evidence names no task
-- and no command.
CREATE OR REPLACE FUNCTION erase_copies(wanted_log smallint, wanted_run bigint, seqs bigint[], artifact_ids uuid[], run_row jsonb)
RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp SET lock_timeout = '30s' SET row_security = off AS $$
DECLARE
  announced bigint;
  first_time boolean;
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
      AND (e.run_no <> wanted_run OR e.type IN ('event.redacted', 'artifact.redacted', 'snapshot.taken', 'key.rotated') OR e.type LIKE 'log.%')) AS refusals;
  IF unnamed IS NOT NULL THEN
    RAISE EXCEPTION 'no event of the log says that these are erased: %', unnamed USING ERRCODE = 'insufficient_privilege';
  END IF;
  SELECT min(seq) INTO announced FROM event
    WHERE log_no = wanted_log AND run_no = wanted_run AND type = 'event.redacted' AND (body ->> 'seq')::bigint = ANY (seqs);

  SELECT EXISTS (SELECT FROM event WHERE log_no = wanted_log AND run_no = wanted_run AND seq = ANY (seqs) AND salt IS NOT NULL) INTO first_time;

  PERFORM set_config('muniment.erasing', 'on', true);
  UPDATE manifest SET salt = NULL, manifest = NULL WHERE log_no = wanted_log AND seq = ANY (seqs) AND salt IS NOT NULL;
  UPDATE claim SET text = '', pointers = '[]' WHERE log_no = wanted_log AND seq = ANY (seqs);
  UPDATE evidence SET type = '', content = '{}', pointer = NULL, hash = repeat('0', 64), validator_id = NULL, corpus_id = NULL,
                      index_id = NULL, chunk_id = NULL, span = NULL, task_id = NULL, command_id = NULL
    WHERE log_no = wanted_log AND seq = ANY (seqs);
  -- A decision that is committed meanwhile holds its claim: it is waited for, and then seen.
  PERFORM FROM claim c WHERE c.log_no = wanted_log AND c.claim_id IN (SELECT (e.body ->> 'claim_id')::uuid FROM event e
      WHERE e.log_no = wanted_log AND e.seq = ANY (seqs) AND e.type = 'claim.decided') FOR UPDATE;
  UPDATE claim c SET status = coalesce((SELECT d.body ->> 'status' FROM event d WHERE d.log_no = wanted_log AND d.run_no = wanted_run
      AND d.type = 'claim.decided' AND d.body ->> 'claim_id' = c.claim_id::text AND d.seq <> ALL (seqs) ORDER BY d.seq DESC LIMIT 1), 'open')
    WHERE c.log_no = wanted_log AND c.claim_id IN (SELECT (e.body ->> 'claim_id')::uuid FROM event e
      WHERE e.log_no = wanted_log AND e.seq = ANY (seqs) AND e.type = 'claim.decided');
  DELETE FROM evidence_link WHERE log_no = wanted_log AND seq = ANY (seqs);
  DELETE FROM task_change WHERE log_no = wanted_log AND seq = ANY (seqs);
  DELETE FROM task_evidence WHERE log_no = wanted_log AND seq = ANY (seqs);
  DELETE FROM pointer WHERE log_no = wanted_log AND seq = ANY (seqs);
  -- An artifact's hash has no salt, and so would let short bytes be guessed.
  UPDATE artifact SET metadata = '{}', hash = repeat('0', 64) WHERE log_no = wanted_log AND artifact_id = ANY (artifact_ids);
  -- States from the first erased event on hold it. The first time that is all of them; later those from its announcement on
  -- were folded without it.
  UPDATE snapshot SET salt = NULL, state = NULL, state_hash = decode(repeat('0', 64), 'hex')
    WHERE log_no = wanted_log AND run_no = wanted_run AND salt IS NOT NULL AND (artifact_id = ANY (artifact_ids)
      OR (seq >= (SELECT min(wanted) FROM unnest(seqs) wanted) AND (first_time OR seq < announced)));
  UPDATE run SET agent = run_row ->> 'agent', goal = run_row ->> 'goal', labels = run_row -> 'labels', parent = run_row ->> 'parent',
                 external_id = run_row ->> 'external_id', outcome = run_row ->> 'outcome',
                 halt = nullif(run_row -> 'halt', 'null'::jsonb)
    WHERE log_no = wanted_log AND run_no = wanted_run AND run_row IS NOT NULL;
  PERFORM erase_report(wanted_log, wanted_run, seqs);
  UPDATE event SET salt = NULL, body = NULL
    WHERE log_no = wanted_log AND run_no = wanted_run AND seq = ANY (seqs) AND salt IS NOT NULL;
  PERFORM set_config('muniment.erasing', 'off', true);
  -- A foreign trigger that keeps rows as they were raises no error, and the caller is told that they are erased.
  IF EXISTS (SELECT FROM event WHERE log_no = wanted_log AND run_no = wanted_run AND seq = ANY (seqs) AND salt IS NOT NULL)
     OR EXISTS (SELECT FROM artifact WHERE log_no = wanted_log AND artifact_id = ANY (artifact_ids) AND hash <> repeat('0', 64))
     OR EXISTS (SELECT FROM manifest WHERE log_no = wanted_log AND seq = ANY (seqs) AND salt IS NOT NULL)
     OR EXISTS (SELECT FROM claim WHERE log_no = wanted_log AND seq = ANY (seqs) AND (text <> '' OR pointers <> '[]'))
     OR EXISTS (SELECT FROM evidence WHERE log_no = wanted_log AND seq = ANY (seqs) AND (type <> '' OR task_id IS NOT NULL OR command_id IS NOT NULL))
     OR EXISTS (SELECT FROM evidence_link WHERE log_no = wanted_log AND seq = ANY (seqs))
     OR EXISTS (SELECT FROM task_change WHERE log_no = wanted_log AND seq = ANY (seqs))
     OR EXISTS (SELECT FROM task_evidence WHERE log_no = wanted_log AND seq = ANY (seqs)) THEN
    RAISE EXCEPTION 'tables_changed: Postgres left rows of what is erased as they were: somebody changed the log''s tables (a trigger, say). Nothing was erased in the database'
      USING ERRCODE = 'triggered_data_change_violation', HINT = 'docs/runbook.md#tables_changed';
  END IF;
END $$;

DO $$
DECLARE
  item text;
BEGIN
  FOREACH item IN ARRAY ARRAY['task_change', 'task_evidence'] LOOP
    EXECUTE format('ALTER TABLE %I OWNER TO %I', item, muniment_role('owner'));
    EXECUTE format('GRANT SELECT ON %I TO %I, %I', item, muniment_role('writer'), muniment_role('auditor'));
    -- A rebuild deletes rows that no event explains. Nothing updates a row.
    EXECUTE format('GRANT INSERT, DELETE ON %I TO %I', item, muniment_role('writer'));
    EXECUTE format('CREATE POLICY auditor ON %I FOR SELECT TO %I USING (true)', item, muniment_role('auditor'));
    IF (SELECT rolbypassrls FROM pg_roles WHERE rolname = muniment_role('writer')) THEN
      EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', item);
    END IF;
  END LOOP;
END $$;
