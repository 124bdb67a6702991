-- Evidence that lies somewhere has one id in all runs, made of what it is; each run's use of it is a row. A link is between a
-- claim and its own run's use. What was recorded before keeps its id.
ALTER TABLE evidence_link DROP CONSTRAINT evidence_link_evidence_id_fkey;
ALTER TABLE evidence DROP CONSTRAINT evidence_pkey;
DROP INDEX evidence_seq;
ALTER TABLE evidence
  ADD PRIMARY KEY (log_no, seq),
  ADD COLUMN corpus_id text CHECK (octet_length(corpus_id) <= 128),
  ADD COLUMN index_id text CHECK (octet_length(index_id) <= 128),
  ADD COLUMN chunk_id text CHECK (octet_length(chunk_id) <= 4096),
  ADD COLUMN span text CHECK (span ~ '^b[0-9]+-[0-9]+$');
-- Once in a run; what belongs to no run, once for whoever recorded it.
CREATE UNIQUE INDEX evidence_use ON evidence (log_no, evidence_id, run_id, (CASE run_id WHEN '_log' THEN actor ELSE '' END));
-- By what it is of: a request that is sent again is known by it.
CREATE INDEX evidence_pointer ON evidence (log_no, run_id, pointer);
COMMENT ON COLUMN evidence.evidence_id IS 'Of a pointer: made of corpus_id, index_id, chunk_id and span, the same in all runs; otherwise its own';
COMMENT ON COLUMN evidence.corpus_id IS 'Of a pointer: the corpus, or artifact, manifest or snapshot';
COMMENT ON COLUMN evidence.index_id IS 'How the corpus was cut: the chunker''s identity';
COMMENT ON COLUMN evidence.chunk_id IS 'What of the corpus, with its revision';
COMMENT ON COLUMN evidence.span IS 'The bytes of its text, b<start>-<end>; NULL for an event as a whole';

ALTER TABLE evidence_link ADD COLUMN run_id text CHECK (octet_length(run_id) <= 128);
UPDATE evidence_link l SET run_id = e.run_id FROM evidence e WHERE e.log_no = l.log_no AND e.evidence_id = l.evidence_id;
ALTER TABLE evidence_link ALTER COLUMN run_id SET NOT NULL;
CREATE UNIQUE INDEX evidence_link_once ON evidence_link (log_no, claim_id, evidence_id, relation);
COMMENT ON COLUMN evidence_link.run_id IS 'The run of the claim, and of the use of the evidence';

-- The same evidence may be needed by several runs. What a run needs is asked when it ends.
ALTER TABLE pointer DROP CONSTRAINT pointer_pkey, ADD PRIMARY KEY (log_no, pointer, needed_by, needed_id, run_id);
-- What belongs to no run stops none.
DELETE FROM pointer WHERE run_id = '_log';
CREATE INDEX pointer_run ON pointer (log_no, run_id, pointer);

-- A decision is written as a row, like all that comes with an event, and changes its claim.
CREATE VIEW claim_decision AS SELECT log_no, seq, claim_id, status FROM claim;
COMMENT ON VIEW claim_decision IS 'Takes what claim.decided says; the claim''s row has it';
CREATE FUNCTION decide_claim() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
  UPDATE claim SET status = new.status WHERE log_no = new.log_no AND claim_id = new.claim_id;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'no claim %', new.claim_id USING ERRCODE = 'foreign_key_violation';
  END IF;
  RETURN new;
END $$;
CREATE TRIGGER decide INSTEAD OF INSERT ON claim_decision FOR EACH ROW EXECUTE FUNCTION decide_claim();

-- As in 0011_report.sql, and what evidence is and what was decided of a claim.
CREATE OR REPLACE FUNCTION erase_copies(wanted_log smallint, wanted_run bigint, seqs bigint[], artifact_ids uuid[], run_row jsonb)
RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp SET lock_timeout = '30s' SET row_security = off AS $$
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

DO $$
DECLARE
  owner text := quote_ident(muniment_role('owner'));
BEGIN
  EXECUTE format('ALTER VIEW claim_decision OWNER TO %s', owner);
  EXECUTE format('ALTER FUNCTION decide_claim() OWNER TO %s', owner);
  EXECUTE format('GRANT SELECT, INSERT ON claim_decision TO %s', quote_ident(muniment_role('writer')));
END $$;
