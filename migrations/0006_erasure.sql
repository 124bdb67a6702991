-- Erasure: the one function that takes bodies out of the log and of everything that was made of them, and the triggers
-- that allow exactly this. docs/runbook.md (erasure) says what is erased and what stays.

-- As refuse_change, but within erase_copies a row may lose what it says. What then differs from before, apart from these
-- columns, is refused.
CREATE FUNCTION refuse_but_erasure() RETURNS trigger LANGUAGE plpgsql SET bytea_output = 'hex' AS $$
DECLARE
  erased jsonb := CASE WHEN TG_TABLE_NAME LIKE 'event%' THEN '{"salt": null, "body": null}'
                       WHEN TG_TABLE_NAME = 'manifest' THEN '{"salt": null, "manifest": null}'
                       WHEN TG_TABLE_NAME = 'snapshot' THEN jsonb_build_object('salt', NULL, 'state', NULL, 'state_hash', '\x' || repeat('0', 64))
                       WHEN TG_TABLE_NAME = 'artifact' THEN jsonb_build_object('metadata', '{}'::jsonb, 'hash', repeat('0', 64)) END;
BEGIN
  IF TG_OP = 'UPDATE' AND current_setting('muniment.erasing', true) = 'on' AND to_jsonb(new) = to_jsonb(old) || erased THEN
    RETURN new;
  END IF;
  RAISE EXCEPTION '% is append-only: % refused', TG_TABLE_NAME, TG_OP
    USING ERRCODE = 'insufficient_privilege', HINT = 'Erase with: muniment audit redact';
END $$;

DROP TRIGGER append_only ON event;
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON event FOR EACH ROW EXECUTE FUNCTION refuse_but_erasure();
DROP TRIGGER append_only ON manifest;
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON manifest FOR EACH ROW EXECUTE FUNCTION refuse_but_erasure();
DROP TRIGGER append_only ON snapshot;
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON snapshot FOR EACH ROW EXECUTE FUNCTION refuse_but_erasure();
DROP TRIGGER append_only ON artifact;
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON artifact FOR EACH ROW EXECUTE FUNCTION refuse_but_erasure();

-- All of it or nothing, and only what the log says is erased: every seq and every artifact must have its event.redacted or
-- artifact.redacted in the run. Doing it again changes nothing. `run_row` is what the run's remaining events make of its row.
CREATE FUNCTION erase_copies(wanted_log smallint, wanted_run bigint, seqs bigint[], artifact_ids uuid[], run_row jsonb)
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
  UPDATE event SET salt = NULL, body = NULL
    WHERE log_no = wanted_log AND run_no = wanted_run AND seq = ANY (seqs) AND salt IS NOT NULL;
  PERFORM set_config('muniment.erasing', 'off', true);
END $$;
COMMENT ON FUNCTION erase_copies IS 'Takes the bodies of these events and artifacts out of every table, once the log says that it is done';

REVOKE ALL ON FUNCTION erase_copies(smallint, bigint, bigint[], uuid[], jsonb) FROM PUBLIC;
DO $$
BEGIN
  EXECUTE format('GRANT EXECUTE ON FUNCTION erase_copies(smallint, bigint, bigint[], uuid[], jsonb) TO %I', muniment_role('redactor'));
END $$;
