-- As in 0016_evidence_ids.sql, but for states: one that was stored between the announcement of an erasure and the erasure was
-- folded with what is erased, and one whose own file is erased is no state any more.
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
                      index_id = NULL, chunk_id = NULL, span = NULL
    WHERE log_no = wanted_log AND seq = ANY (seqs);
  -- A decision that is committed meanwhile holds its claim: it is waited for, and then seen.
  PERFORM FROM claim c WHERE c.log_no = wanted_log AND c.claim_id IN (SELECT (e.body ->> 'claim_id')::uuid FROM event e
      WHERE e.log_no = wanted_log AND e.seq = ANY (seqs) AND e.type = 'claim.decided') FOR UPDATE;
  UPDATE claim c SET status = coalesce((SELECT d.body ->> 'status' FROM event d WHERE d.log_no = wanted_log AND d.run_no = wanted_run
      AND d.type = 'claim.decided' AND d.body ->> 'claim_id' = c.claim_id::text AND d.seq <> ALL (seqs) ORDER BY d.seq DESC LIMIT 1), 'open')
    WHERE c.log_no = wanted_log AND c.claim_id IN (SELECT (e.body ->> 'claim_id')::uuid FROM event e
      WHERE e.log_no = wanted_log AND e.seq = ANY (seqs) AND e.type = 'claim.decided');
  DELETE FROM evidence_link WHERE log_no = wanted_log AND seq = ANY (seqs);
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
  -- A trigger of somebody's that leaves rows as they were raises no error. Whoever asked is told that they are gone.
  IF EXISTS (SELECT FROM event WHERE log_no = wanted_log AND run_no = wanted_run AND seq = ANY (seqs) AND salt IS NOT NULL)
     OR EXISTS (SELECT FROM artifact WHERE log_no = wanted_log AND artifact_id = ANY (artifact_ids) AND hash <> repeat('0', 64))
     OR EXISTS (SELECT FROM manifest WHERE log_no = wanted_log AND seq = ANY (seqs) AND salt IS NOT NULL)
     OR EXISTS (SELECT FROM claim WHERE log_no = wanted_log AND seq = ANY (seqs) AND (text <> '' OR pointers <> '[]'))
     OR EXISTS (SELECT FROM evidence WHERE log_no = wanted_log AND seq = ANY (seqs) AND type <> '')
     OR EXISTS (SELECT FROM evidence_link WHERE log_no = wanted_log AND seq = ANY (seqs)) THEN
    RAISE EXCEPTION 'tables_changed: Postgres left rows of what is erased as they were: somebody changed the log''s tables (a trigger, say). Nothing was erased in the database'
      USING ERRCODE = 'triggered_data_change_violation', HINT = 'docs/runbook.md#tables_changed';
  END IF;
END $$;
