-- The schema that migrations/ create, for reading and comparison. No database is created from this file.
-- Written by: MUNIMENT_ACCEPT=1 meson test -C build pg_store
CREATE SCHEMA report;
COMMENT ON SCHEMA report IS 'Views for analysts; columns are only ever added';
CREATE FUNCTION public.archive_event_partition(wanted_log smallint, number bigint, wait interval) RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'public', 'pg_temp'
    AS $$
DECLARE
  log_table  text := format('event_%s', wanted_log);
  part_table text := format('event_%s_%s', wanted_log, number);
  new_table  text := part_table || '_new';
  low  bigint := number << event_partition_bits(wanted_log);
  high bigint := (number + 1) << event_partition_bits(wanted_log);
  until timestamptz;
  held  bigint;
  index_name text;
BEGIN
  INSERT INTO archived_partition VALUES (wanted_log, number, low, high - 1);  -- once
  PERFORM set_config('lock_timeout', '2s', true);
  EXECUTE format('LOCK TABLE %I IN SHARE MODE', part_table);  -- an erasure waits: it would be undone
  PERFORM make_event_table(log_table, new_table, wanted_log, low, high);
  EXECUTE format('INSERT INTO %I SELECT log_no, seq, run_no, run_seq, recorded_at, occurred_at, origin, type, schema_version, step_id, actor, '
                 'event_id, body_hash, salt, CASE WHEN event_body_stays(type) THEN body END, run_hash FROM %I ORDER BY seq', new_table, part_table);
  GET DIAGNOSTICS held = ROW_COUNT;
  IF held <> high - low THEN
    RAISE EXCEPTION 'partition % of log % has % events of %', number, wanted_log, held, high - low USING ERRCODE = 'object_not_in_prerequisite_state';
  END IF;
  PERFORM make_event_indexes(new_table, new_table);
  until := clock_timestamp() + wait;
  PERFORM set_config('lock_timeout', '100ms', true);
  LOOP
    BEGIN
      EXECUTE format('LOCK TABLE ONLY %I, %I IN ACCESS EXCLUSIVE MODE', log_table, part_table);
      EXIT;
    EXCEPTION WHEN lock_not_available THEN
      IF clock_timestamp() > until THEN
        RAISE EXCEPTION 'somebody''s transaction has been reading the log for longer than %', wait
          USING ERRCODE = 'lock_not_available', HINT = 'SELECT pid, usename, xact_start, query FROM pg_stat_activity WHERE xact_start IS NOT NULL ORDER BY xact_start';
      END IF;
      PERFORM pg_sleep(0.3);
    END;
  END LOOP;
  EXECUTE format('ALTER TABLE %I DETACH PARTITION %I', log_table, part_table);
  EXECUTE format('DROP TABLE %I', part_table);
  EXECUTE format('ALTER TABLE %I RENAME TO %I', new_table, part_table);
  FOR index_name IN SELECT indexrelid::regclass::text FROM pg_index WHERE indrelid = part_table::regclass LOOP
    EXECUTE format('ALTER INDEX %I RENAME TO %I', index_name, part_table || substr(index_name, length(new_table) + 1));
  END LOOP;
  EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%s) TO (%s)', log_table, part_table, low, high);
  RETURN held;
END $$;
COMMENT ON FUNCTION public.archive_event_partition(wanted_log smallint, number bigint, wait interval) IS 'Removes the bodies of a sealed partition from the database, once the archive''s files contain them';
CREATE FUNCTION public.decide_claim() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'public', 'pg_temp'
    AS $$
BEGIN
  UPDATE claim SET status = new.status WHERE log_no = new.log_no AND claim_id = new.claim_id;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'no claim %', new.claim_id USING ERRCODE = 'foreign_key_violation';
  END IF;
  RETURN new;
END $$;
CREATE FUNCTION public.erase_copies(wanted_log smallint, wanted_run bigint, seqs bigint[], artifact_ids uuid[], run_row jsonb) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'public', 'pg_temp'
    SET lock_timeout TO '30s'
    SET row_security TO 'off'
    AS $$
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
COMMENT ON FUNCTION public.erase_copies(wanted_log smallint, wanted_run bigint, seqs bigint[], artifact_ids uuid[], run_row jsonb) IS 'Removes the bodies of these events and artifacts from every table, once the log announces the erasure';
CREATE FUNCTION public.erase_report(wanted_log smallint, wanted_run bigint, seqs bigint[]) RETURNS void
    LANGUAGE plpgsql
    AS $$
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
COMMENT ON FUNCTION public.erase_report(wanted_log smallint, wanted_run bigint, seqs bigint[]) IS 'Removes the content of these events of a run from the tables of the follower "report"';
CREATE FUNCTION public.event_body_stays(type text) RETURNS boolean
    LANGUAGE sql IMMUTABLE
    AS $$
  SELECT split_part(type, '.', 1) = ANY ('{access,artifact,claim,document,event,evidence,feedback,key,log,manifest,pointer,run,snapshot,source,task}')
$$;
COMMENT ON FUNCTION public.event_body_stays(type text) IS 'True if the body of an event of this type stays in the database when its partition is archived';
CREATE FUNCTION public.event_partition_bits(wanted_log smallint) RETURNS integer
    LANGUAGE sql STABLE
    AS $$
  SELECT coalesce((SELECT partition_bits FROM log_head WHERE log_no = wanted_log), 24)::integer
$$;
COMMENT ON FUNCTION public.event_partition_bits(wanted_log smallint) IS 'A partition of this log has 2 to the power of this many events';
CREATE FUNCTION public.event_run_seq_as_of(wanted_log smallint, wanted_run bigint, upto bigint) RETURNS bigint
    LANGUAGE plpgsql STABLE
    AS $$
DECLARE
  low    bigint := -1;
  high   bigint := (SELECT run_seq + 1 FROM event WHERE log_no = wanted_log AND run_no = wanted_run ORDER BY run_seq DESC LIMIT 1);
  middle bigint;
  passed bigint;
BEGIN
  IF high IS NULL THEN RETURN -1; END IF;
  WHILE high - low > 1 LOOP
    middle := (low + high) / 2;
    SELECT seq INTO STRICT passed FROM event
      WHERE log_no = wanted_log AND run_no = wanted_run AND run_seq >= middle ORDER BY run_seq LIMIT 1;
    IF passed <= upto THEN low := middle; ELSE high := middle; END IF;
  END LOOP;
  RETURN low;
END $$;
COMMENT ON FUNCTION public.event_run_seq_as_of(wanted_log smallint, wanted_run bigint, upto bigint) IS 'The last run_seq of the run with seq <= upto; -1 if there is none';
CREATE FUNCTION public.event_seq_as_of(wanted_log smallint, moment timestamp with time zone) RETURNS bigint
    LANGUAGE plpgsql STABLE
    SET enable_seqscan TO 'off'
    SET enable_indexscan TO 'off'
    SET enable_indexonlyscan TO 'off'
    AS $$
DECLARE
  past     timestamptz := moment + interval '1 microsecond';
  bisected bigint;
  later    bigint;
BEGIN
  bisected := event_seq_before(wanted_log, past);
  SELECT max(seq) INTO later FROM event WHERE log_no = wanted_log AND seq > bisected AND recorded_at < past;
  RETURN coalesce(later, bisected, -1);
END $$;
COMMENT ON FUNCTION public.event_seq_as_of(wanted_log smallint, moment timestamp with time zone) IS 'The last seq with recorded_at <= moment; -1 if there is none';
CREATE FUNCTION public.event_seq_before(wanted_log smallint, moment timestamp with time zone) RETURNS bigint
    LANGUAGE plpgsql STABLE
    SET enable_seqscan TO 'on'
    SET enable_indexscan TO 'on'
    SET enable_indexonlyscan TO 'on'
    AS $$
DECLARE
  low    bigint := (SELECT min(seq) - 1 FROM event WHERE log_no = wanted_log);
  high   bigint := (SELECT max(seq) + 1 FROM event WHERE log_no = wanted_log);
  middle bigint;
  passed timestamptz;
BEGIN
  WHILE high - low > 1 LOOP
    middle := (low + high) / 2;
    SELECT recorded_at INTO STRICT passed FROM event WHERE log_no = wanted_log AND seq = middle;
    IF passed < moment THEN low := middle; ELSE high := middle; END IF;
  END LOOP;
  RETURN low;
END $$;
COMMENT ON FUNCTION public.event_seq_before(wanted_log smallint, moment timestamp with time zone) IS 'A seq recorded before the moment whose successor was recorded later (or the log''s edge); NULL for an empty log';
CREATE FUNCTION public.event_seq_since(wanted_log smallint, moment timestamp with time zone) RETURNS bigint
    LANGUAGE plpgsql STABLE
    SET enable_seqscan TO 'off'
    SET enable_indexscan TO 'off'
    SET enable_indexonlyscan TO 'off'
    AS $$
DECLARE
  bisected bigint;
  earlier  bigint;
BEGIN
  bisected := event_seq_before(wanted_log, moment);
  SELECT min(seq) INTO earlier FROM event WHERE log_no = wanted_log AND seq <= bisected AND recorded_at >= moment;
  RETURN coalesce(earlier, bisected + 1, 0);
END $$;
COMMENT ON FUNCTION public.event_seq_since(wanted_log smallint, moment timestamp with time zone) IS 'The first seq with recorded_at >= moment; the log''s size if there is none';
CREATE FUNCTION public.make_event_indexes(part_table text, prefix text) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'public', 'pg_temp'
    AS $_$
BEGIN
  EXECUTE format('ALTER TABLE %I ADD CONSTRAINT %I PRIMARY KEY (log_no, seq)', part_table, prefix || '_pkey');
  EXECUTE format('CREATE UNIQUE INDEX %I ON %I (log_no, run_no, run_seq)', prefix || '_run', part_table);
  EXECUTE format('CREATE UNIQUE INDEX %I ON %I (log_no, run_no, event_id)', prefix || '_event_id', part_table);
  -- A run by its id, and the few events that make its row: the state of a run is read from the log
  -- itself, whatever a derived table says.
  EXECUTE format($sql$CREATE UNIQUE INDEX %I ON %I (log_no, (body ->> 'run_id')) WHERE run_seq = 0 AND run_no > 0$sql$,
                 prefix || '_started', part_table);
  EXECUTE format($sql$CREATE INDEX %I ON %I (log_no, run_no, run_seq)
                      WHERE type IN ('run.started', 'run.ended', 'run.halted', 'run.resumed', 'run.annotated')$sql$,
                 prefix || '_life', part_table);
  EXECUTE format('CREATE INDEX %I ON %I USING brin (recorded_at, seq) WITH (pages_per_range = 32, autosummarize = on)',
                 prefix || '_time', part_table);
END $_$;
CREATE FUNCTION public.make_event_partition(wanted_log smallint, number bigint) RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'public', 'pg_temp'
    SET lock_timeout TO '2s'
    AS $$
DECLARE
  log_table  text := format('event_%s', wanted_log);
  part_table text := format('event_%s_%s', wanted_log, number);
  low  bigint := number << event_partition_bits(wanted_log);
  high bigint := (number + 1) << event_partition_bits(wanted_log);
BEGIN
  IF to_regclass(log_table) IS NULL THEN
    EXECUTE format('CREATE TABLE %I (LIKE event INCLUDING DEFAULTS INCLUDING CONSTRAINTS) PARTITION BY RANGE (seq)', log_table);
    EXECUTE format('ALTER TABLE %I ADD CHECK (log_no = %s)', log_table, wanted_log);
    EXECUTE format('ALTER TABLE %I ADD PRIMARY KEY (log_no, seq)', log_table);
    EXECUTE format('CREATE TRIGGER no_truncate BEFORE TRUNCATE ON %I FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()', log_table);
    EXECUTE format('ALTER TABLE event ATTACH PARTITION %I FOR VALUES IN (%s)', log_table, wanted_log);
  END IF;
  IF to_regclass(part_table) IS NULL THEN
    PERFORM make_event_table(log_table, part_table, wanted_log, low, high);
    PERFORM make_event_indexes(part_table, part_table);
    EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%s) TO (%s)', log_table, part_table, low, high);
  END IF;
  RETURN part_table;
END $$;
CREATE FUNCTION public.make_event_table(log_table text, part_table text, wanted_log smallint, low bigint, high bigint) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'public', 'pg_temp'
    AS $$
BEGIN
  EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING DEFAULTS INCLUDING CONSTRAINTS)', part_table, log_table);
  EXECUTE format('ALTER TABLE %I ADD CONSTRAINT event_place CHECK (log_no = %s AND seq >= %s AND seq < %s)', part_table, wanted_log, low, high);
  EXECUTE format('CREATE TRIGGER no_truncate BEFORE TRUNCATE ON %I FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()', part_table);
END $$;
CREATE FUNCTION public.muniment_role(kind text) RETURNS text
    LANGUAGE sql STABLE
    AS $_$
  SELECT regexp_replace(pg_get_userbyid(relowner), 'owner$', kind) FROM pg_class WHERE oid = 'public.event'::regclass
$_$;
COMMENT ON FUNCTION public.muniment_role(kind text) IS 'Name of this database''s role for owner, writer, auditor, reporter or redactor';
CREATE FUNCTION public.percent_decoded(encoded text) RETURNS text
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
    AS $$
BEGIN
  IF strpos(encoded, '%') = 0 THEN
    RETURN encoded;
  END IF;
  RETURN (SELECT convert_from(string_agg(CASE WHEN part[1] LIKE '\%%' THEN decode(substr(part[1], 2), 'hex') ELSE convert_to(part[1], 'UTF8') END,
                                         ''::bytea ORDER BY place), 'UTF8')
          FROM regexp_matches(encoded, '%[0-9A-Fa-f]{2}|[^%]+', 'g') WITH ORDINALITY AS found (part, place));
EXCEPTION WHEN OTHERS THEN
  RETURN NULL;
END $$;
COMMENT ON FUNCTION public.percent_decoded(encoded text) IS 'The text without percent-encoding; NULL if it is not UTF-8';
CREATE FUNCTION public.pointer_document(pointer text) RETURNS text
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    AS $$
  SELECT CASE WHEN strpos(pointer, '%') = 0 THEN substring(pointer FROM '^ev://[^/]*/([^#?]*)')
              ELSE public.percent_decoded(substring(pointer FROM '^ev://[^/]*/([^#?]*)')) END
         || CASE WHEN pointer LIKE 'ev://run/%' THEN coalesce(substring(pointer FROM '#e[0-9]+'), '') ELSE '' END
$$;
COMMENT ON FUNCTION public.pointer_document(pointer text) IS 'The document that a pointer ev:// names; NULL for any other pointer';
CREATE FUNCTION public.refuse_but_erasure() RETURNS trigger
    LANGUAGE plpgsql
    SET bytea_output TO 'hex'
    AS $$
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
CREATE FUNCTION public.refuse_change() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  RAISE EXCEPTION '% is append-only: % refused', TG_TABLE_NAME, TG_OP
    USING ERRCODE = 'insufficient_privilege', HINT = 'Erase with: muniment audit redact';
END $$;
CREATE FUNCTION public.report_failed(status text) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$
  SELECT status NOT IN ('ok', 'unknown')
$$;
CREATE FUNCTION public.report_micros(began timestamp with time zone, ended timestamp with time zone) RETURNS bigint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$
  SELECT CASE WHEN ended >= began THEN (extract(epoch FROM ended - began) * 1000000)::bigint END
$$;
CREATE FUNCTION public.report_number(said text) RETURNS numeric
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $_$
  SELECT CASE WHEN said ~ '^[0-9]{1,40}(\.[0-9]{1,60})?([eE][-+]?[0-9]{1,3})?$' THEN said::numeric END
$_$;
CREATE FUNCTION public.report_sums(wanted_log smallint, wanted_run bigint, OUT model_calls bigint, OUT model_errors bigint, OUT tool_calls bigint, OUT tool_errors bigint, OUT steps bigint, OUT commands bigint, OUT command_errors bigint, OUT input_tokens numeric, OUT output_tokens numeric, OUT cached_input_tokens numeric, OUT reasoning_tokens numeric, OUT cost numeric, OUT currency text) RETURNS record
    LANGUAGE plpgsql STABLE
    AS $$
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
CREATE FUNCTION report.sees(run_id text) RETURNS boolean
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $$
  SELECT left(run_id, 1) <> '_' AND CASE coalesce(current_setting('muniment.runs', true), '') WHEN '' THEN true
         ELSE run_id = ANY (string_to_array(current_setting('muniment.runs', true), ',')) END
$$;
COMMENT ON FUNCTION report.sees(run_id text) IS 'True if muniment.runs names the run (comma separated; empty: all). Always false for the whole log (_log)';
CREATE FUNCTION report.wait(at_most interval DEFAULT '00:00:02'::interval) RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'public', 'pg_temp'
    AS $$
DECLARE
  until  constant timestamptz := clock_timestamp() + at_most;
  heads  jsonb;
  behind bigint;
BEGIN
  IF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
    RAISE EXCEPTION 'report.wait() would see nothing new: this transaction keeps the state that it began with'
      USING ERRCODE = 'invalid_transaction_state', HINT = 'Call it before BEGIN.';
  END IF;
  SELECT jsonb_object_agg(l.log_no, l.log_next_seq) INTO heads FROM report.lag l WHERE NOT EXISTS (
    SELECT FROM log_head h JOIN event e ON e.log_no = h.log_no AND e.seq = 0
    WHERE h.log_no > l.log_no AND e.type = 'log.restored' AND e.body ->> 'log_no' = l.log_no::text);
  LOOP
    SELECT coalesce(sum(missing), 0) INTO behind FROM (
      SELECT max(greatest((heads ->> log_no::text)::bigint - follower_next_seq, 0)) AS missing FROM report.lag
      WHERE heads ? log_no::text GROUP BY log_no) logs;
    EXIT WHEN behind = 0 OR until IS NULL OR clock_timestamp() >= until;
    PERFORM pg_sleep(0.005);
  END LOOP;
  RETURN behind;
END $$;
COMMENT ON FUNCTION report.wait(at_most interval) IS 'Waits, at most at_most, until the views show all events that the log has now. Returns the number of missing events. Does not wait for a log that another log continues';
CREATE TABLE public.archived_partition (
    log_no smallint NOT NULL,
    number bigint NOT NULL,
    first_seq bigint NOT NULL,
    last_seq bigint NOT NULL,
    archived_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT archived_partition_number_check CHECK ((number >= 0))
);
COMMENT ON TABLE public.archived_partition IS 'Partitions of the log whose bodies are in the archive';
CREATE TABLE public.artifact (
    artifact_id uuid NOT NULL,
    run_id text NOT NULL,
    step_id text NOT NULL,
    path text NOT NULL,
    hash text NOT NULL,
    mime_type text NOT NULL,
    size_bytes bigint NOT NULL,
    created_at timestamp with time zone NOT NULL,
    metadata jsonb DEFAULT '{}'::jsonb NOT NULL,
    log_no smallint NOT NULL,
    seq bigint NOT NULL,
    CONSTRAINT artifact_hash_check CHECK ((hash ~ '^[0-9a-f]{64}$'::text)),
    CONSTRAINT artifact_metadata_check CHECK ((octet_length((metadata)::text) <= 16384)),
    CONSTRAINT artifact_mime_type_check CHECK ((octet_length(mime_type) <= 256)),
    CONSTRAINT artifact_path_check CHECK ((octet_length(path) <= 1024)),
    CONSTRAINT artifact_run_id_check CHECK ((octet_length(run_id) <= 128)),
    CONSTRAINT artifact_size_bytes_check CHECK ((size_bytes >= 0)),
    CONSTRAINT artifact_step_id_check CHECK ((octet_length(step_id) <= 200))
);
COMMENT ON TABLE public.artifact IS 'Raw bytes on disk: path is relative to the artifact root, hash is their SHA-256, seq the artifact.stored event.';
CREATE VIEW public.artifacts WITH (security_invoker='true') AS
 SELECT artifact.artifact_id,
    artifact.run_id,
    artifact.step_id,
    artifact.path,
    artifact.hash,
    artifact.mime_type,
    artifact.size_bytes,
    artifact.created_at,
    artifact.metadata
   FROM public.artifact;
COMMENT ON VIEW public.artifacts IS 'Files of runs, one row each, without the columns of the log (see artifact)';
COMMENT ON COLUMN public.artifacts.artifact_id IS 'Id of the artifact';
COMMENT ON COLUMN public.artifacts.run_id IS 'Run that stored it';
COMMENT ON COLUMN public.artifacts.step_id IS 'Step within the run; main if none was named';
COMMENT ON COLUMN public.artifacts.path IS 'Path of the file, relative to the folder artifacts';
COMMENT ON COLUMN public.artifacts.hash IS 'SHA-256 of the bytes; zeros after an erasure';
COMMENT ON COLUMN public.artifacts.mime_type IS 'MIME type given by the sender';
COMMENT ON COLUMN public.artifacts.size_bytes IS 'Size in bytes';
COMMENT ON COLUMN public.artifacts.created_at IS 'Time at which it was stored';
COMMENT ON COLUMN public.artifacts.metadata IS 'Metadata given by the sender';
CREATE TABLE public.checkpoint (
    log_no smallint NOT NULL,
    size bigint NOT NULL,
    root bytea NOT NULL,
    edge bytea NOT NULL,
    recorded_at timestamp with time zone NOT NULL,
    CONSTRAINT checkpoint_edge_check CHECK ((octet_length(edge) <= 2048)),
    CONSTRAINT checkpoint_root_check CHECK ((octet_length(root) = 32)),
    CONSTRAINT checkpoint_size_check CHECK ((size >= 0))
);
COMMENT ON TABLE public.checkpoint IS 'The Merkle tree at some sizes: its root and its right edge, from which a start continues';
CREATE TABLE public.checkpoint_note (
    log_no smallint NOT NULL,
    size bigint NOT NULL,
    note text NOT NULL,
    recorded_at timestamp with time zone NOT NULL,
    CONSTRAINT checkpoint_note_note_check CHECK ((octet_length(note) <= 65536)),
    CONSTRAINT checkpoint_note_size_check CHECK ((size >= 0))
);
COMMENT ON TABLE public.checkpoint_note IS 'Signed checkpoints: C2SP notes of origin, size and root';
CREATE TABLE public.chunk (
    log_no smallint NOT NULL,
    chunk_id bigint NOT NULL,
    seq bigint NOT NULL,
    number integer NOT NULL,
    start_byte bigint NOT NULL,
    end_byte bigint NOT NULL,
    hash bytea NOT NULL,
    heading text,
    CONSTRAINT chunk_check CHECK ((end_byte > start_byte)),
    CONSTRAINT chunk_chunk_id_check CHECK ((chunk_id > 0)),
    CONSTRAINT chunk_hash_check CHECK ((octet_length(hash) = 32)),
    CONSTRAINT chunk_heading_check CHECK ((octet_length(heading) <= 1024)),
    CONSTRAINT chunk_number_check CHECK ((number >= 0)),
    CONSTRAINT chunk_start_byte_check CHECK ((start_byte >= 0))
);
COMMENT ON TABLE public.chunk IS 'A span of a revision''s text';
COMMENT ON COLUMN public.chunk.seq IS 'seq of the document.revised event of its document';
COMMENT ON COLUMN public.chunk.number IS 'Position in the document, from 0: the n of #p<n>';
COMMENT ON COLUMN public.chunk.hash IS 'SHA-256 of its bytes, as in its event';
CREATE TABLE public.claim (
    claim_id uuid NOT NULL,
    log_no smallint NOT NULL,
    seq bigint NOT NULL,
    run_id text NOT NULL,
    step_id text,
    text text NOT NULL,
    pointers jsonb NOT NULL,
    status text DEFAULT 'open'::text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    CONSTRAINT claim_pointers_check CHECK ((octet_length((pointers)::text) <= 65000)),
    CONSTRAINT claim_run_id_check CHECK ((octet_length(run_id) <= 128)),
    CONSTRAINT claim_status_check CHECK ((octet_length(status) <= 32)),
    CONSTRAINT claim_step_id_check CHECK ((octet_length(step_id) <= 200)),
    CONSTRAINT claim_text_check CHECK ((octet_length(text) <= 61440))
);
CREATE VIEW public.claim_decision AS
 SELECT claim.log_no,
    claim.seq,
    claim.claim_id,
    claim.status
   FROM public.claim;
COMMENT ON VIEW public.claim_decision IS 'Applies claim.decided to the claim''s row';
CREATE TABLE public.corpus (
    log_no smallint NOT NULL,
    corpus text NOT NULL,
    owner text NOT NULL,
    first_seq bigint NOT NULL,
    last_seq bigint NOT NULL,
    CONSTRAINT corpus_corpus_check CHECK (((octet_length(corpus) >= 1) AND (octet_length(corpus) <= 128))),
    CONSTRAINT corpus_owner_check CHECK (((octet_length(owner) >= 1) AND (octet_length(owner) <= 128)))
);
COMMENT ON TABLE public.corpus IS 'A collection of documents; it exists from its first document on';
COMMENT ON COLUMN public.corpus.owner IS 'Actor of its first document.revised; decides who can read it';
COMMENT ON COLUMN public.corpus.last_seq IS 'seq of the last event that changed it';
CREATE TABLE public.document (
    log_no smallint NOT NULL,
    seq bigint NOT NULL,
    corpus text NOT NULL,
    document text NOT NULL,
    revision text NOT NULL,
    hash bytea NOT NULL,
    artifact_id uuid,
    start_byte bigint NOT NULL,
    size_bytes bigint NOT NULL,
    text_artifact_id uuid,
    mime_type text NOT NULL,
    format text NOT NULL,
    language text NOT NULL,
    title text NOT NULL,
    tags text[] NOT NULL,
    source text NOT NULL,
    sources text[] NOT NULL,
    source_url text,
    trust text NOT NULL,
    document_time timestamp with time zone NOT NULL,
    recorded_at timestamp with time zone NOT NULL,
    chunker text NOT NULL,
    first_chunk bigint NOT NULL,
    chunks integer NOT NULL,
    valid_to bigint,
    ended_by text,
    removed_at bigint,
    owner text,
    origin smallint,
    CONSTRAINT document_check CHECK ((valid_to > seq)),
    CONSTRAINT document_check1 CHECK ((removed_at > seq)),
    CONSTRAINT document_check2 CHECK (((valid_to IS NULL) = (ended_by IS NULL))),
    CONSTRAINT document_chunker_check CHECK ((octet_length(chunker) <= 128)),
    CONSTRAINT document_chunks_check CHECK ((chunks >= 0)),
    CONSTRAINT document_corpus_check CHECK (((octet_length(corpus) >= 1) AND (octet_length(corpus) <= 128))),
    CONSTRAINT document_document_check CHECK (((octet_length(document) >= 1) AND (octet_length(document) <= 1024))),
    CONSTRAINT document_ended_by_check CHECK ((ended_by = ANY (ARRAY['revised'::text, 'retracted'::text, 'revoked'::text, 'erased'::text]))),
    CONSTRAINT document_first_chunk_check CHECK ((first_chunk > 0)),
    CONSTRAINT document_format_check CHECK ((octet_length(format) <= 32)),
    CONSTRAINT document_hash_check CHECK ((octet_length(hash) = 32)),
    CONSTRAINT document_language_check CHECK ((octet_length(language) <= 16)),
    CONSTRAINT document_mime_type_check CHECK ((octet_length(mime_type) <= 256)),
    CONSTRAINT document_of_run CHECK ((((corpus = 'run'::text) = (artifact_id IS NULL)) AND ((corpus = 'run'::text) = (owner IS NOT NULL)) AND ((corpus = 'run'::text) = (origin IS NOT NULL)))),
    CONSTRAINT document_origin_check CHECK (((origin >= 1) AND (origin <= 3))),
    CONSTRAINT document_owner_check CHECK (((octet_length(owner) >= 1) AND (octet_length(owner) <= 128))),
    CONSTRAINT document_revision_check CHECK (((octet_length(revision) >= 1) AND (octet_length(revision) <= 128))),
    CONSTRAINT document_seq_check CHECK ((seq >= 0)),
    CONSTRAINT document_size_bytes_check CHECK ((size_bytes >= 0)),
    CONSTRAINT document_source_check CHECK ((octet_length(source) <= 2048)),
    CONSTRAINT document_source_url_check CHECK ((octet_length(source_url) <= 2048)),
    CONSTRAINT document_sources_check CHECK ((cardinality(sources) <= 64)),
    CONSTRAINT document_start_byte_check CHECK ((start_byte >= 0)),
    CONSTRAINT document_tags_check CHECK ((cardinality(tags) <= 64)),
    CONSTRAINT document_title_check CHECK ((octet_length(title) <= 1024)),
    CONSTRAINT document_trust_check CHECK ((trust = ANY (ARRAY['trusted'::text, 'untrusted'::text, 'quarantined'::text])))
);
COMMENT ON TABLE public.document IS 'A revision of a document: current from seq until before valid_to';
COMMENT ON COLUMN public.document.seq IS 'seq of its document.revised event; in the corpus run, of the event that it is';
COMMENT ON COLUMN public.document.revision IS 'Revision in its pointers: the first 16 digits of hash, or the label given at ingestion';
COMMENT ON COLUMN public.document.hash IS 'SHA-256 of the hash of its bytes and the name of the chunker';
COMMENT ON COLUMN public.document.artifact_id IS 'Artifact with its bytes: size_bytes from start_byte on; NULL: the text of an event';
COMMENT ON COLUMN public.document.text_artifact_id IS 'Artifact with the extracted text, if the bytes are not UTF-8 text';
COMMENT ON COLUMN public.document.source IS 'Source, by which it can be revoked';
COMMENT ON COLUMN public.document.sources IS 'Its source and the sources of the documents that it was derived from';
COMMENT ON COLUMN public.document.first_chunk IS 'Id of its first chunk; the others follow';
COMMENT ON COLUMN public.document.valid_to IS 'seq of the event that ended it; NULL: it is current';
COMMENT ON COLUMN public.document.removed_at IS 'seq of the event that removed it from the indexes: its source was revoked, or it was erased';
COMMENT ON COLUMN public.document.owner IS 'Owner of an event (corpus run only): actor of its run''s run.started; NULL: the owner of the corpus';
COMMENT ON COLUMN public.document.origin IS 'Origin of an event (corpus run only)';
CREATE TABLE public.event (
    log_no smallint NOT NULL,
    seq bigint NOT NULL,
    run_no bigint NOT NULL,
    run_seq bigint NOT NULL,
    recorded_at timestamp with time zone NOT NULL,
    occurred_at timestamp with time zone,
    origin smallint NOT NULL,
    type text NOT NULL,
    schema_version smallint NOT NULL,
    step_id text,
    actor text NOT NULL,
    event_id uuid NOT NULL,
    body_hash bytea NOT NULL,
    salt bytea,
    body json,
    run_hash bytea NOT NULL,
    CONSTRAINT event_actor_check CHECK (((octet_length(actor) >= 1) AND (octet_length(actor) <= 128))),
    CONSTRAINT event_body_check CHECK ((octet_length((body)::text) <= 61440)),
    CONSTRAINT event_body_has_salt CHECK (((body IS NULL) OR (salt IS NOT NULL))),
    CONSTRAINT event_body_hash_check CHECK ((octet_length(body_hash) = 32)),
    CONSTRAINT event_origin_check CHECK (((origin >= 1) AND (origin <= 3))),
    CONSTRAINT event_run_hash_check CHECK ((octet_length(run_hash) = 32)),
    CONSTRAINT event_run_no_check CHECK ((run_no >= 0)),
    CONSTRAINT event_run_seq_check CHECK ((run_seq >= 0)),
    CONSTRAINT event_salt_check CHECK ((octet_length(salt) = 32)),
    CONSTRAINT event_schema_version_check CHECK ((schema_version > 0)),
    CONSTRAINT event_seq_check CHECK ((seq >= 0)),
    CONSTRAINT event_step_id_check CHECK (((octet_length(step_id) >= 1) AND (octet_length(step_id) <= 200))),
    CONSTRAINT event_type_check CHECK (((octet_length(type) >= 1) AND (octet_length(type) <= 100)))
)
PARTITION BY LIST (log_no);
COMMENT ON TABLE public.event IS 'The authoritative history. seq is gapless within a log and is the Merkle leaf index; run_seq is gapless within a run.';
COMMENT ON COLUMN public.event.origin IS '1 observed, 2 reported, 3 imported';
COMMENT ON COLUMN public.event.body IS 'The hashed bytes. NULL with a salt: in the archive; NULL without a salt: erased';
CREATE TABLE public.evidence (
    evidence_id uuid NOT NULL,
    log_no smallint NOT NULL,
    seq bigint NOT NULL,
    run_id text NOT NULL,
    type text NOT NULL,
    content json,
    pointer text,
    hash text NOT NULL,
    validator_id text,
    actor text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    corpus_id text,
    index_id text,
    chunk_id text,
    span text,
    task_id text,
    command_id uuid,
    CONSTRAINT evidence_actor_check CHECK ((octet_length(actor) <= 128)),
    CONSTRAINT evidence_check CHECK ((num_nonnulls(content, pointer) = 1)),
    CONSTRAINT evidence_chunk_id_check CHECK ((octet_length(chunk_id) <= 4096)),
    CONSTRAINT evidence_content_check CHECK ((octet_length((content)::text) <= 61440)),
    CONSTRAINT evidence_corpus_id_check CHECK ((octet_length(corpus_id) <= 128)),
    CONSTRAINT evidence_hash_check CHECK ((hash ~ '^[0-9a-f]{64}$'::text)),
    CONSTRAINT evidence_index_id_check CHECK ((octet_length(index_id) <= 128)),
    CONSTRAINT evidence_pointer_check CHECK ((octet_length(pointer) <= 2048)),
    CONSTRAINT evidence_run_id_check CHECK ((octet_length(run_id) <= 128)),
    CONSTRAINT evidence_span_check CHECK ((span ~ '^b[0-9]+-[0-9]+$'::text)),
    CONSTRAINT evidence_task_id_check CHECK ((octet_length(task_id) <= 256)),
    CONSTRAINT evidence_type_check CHECK ((octet_length(type) <= 100)),
    CONSTRAINT evidence_validator_id_check CHECK ((octet_length(validator_id) <= 256))
);
COMMENT ON COLUMN public.evidence.evidence_id IS 'Id of the evidence; for a pointer, derived from corpus_id, index_id, chunk_id and span, and equal in all runs';
COMMENT ON COLUMN public.evidence.hash IS 'SHA-256 of the content''s text, or of the pointer''s target when recorded; equal hashes show reuse';
COMMENT ON COLUMN public.evidence.corpus_id IS 'Corpus of a pointer, or artifact, manifest or snapshot';
COMMENT ON COLUMN public.evidence.index_id IS 'Identity of the chunker that split the corpus';
COMMENT ON COLUMN public.evidence.chunk_id IS 'Passage in the corpus, with its revision';
COMMENT ON COLUMN public.evidence.span IS 'Bytes of its text, b<start>-<end>; NULL for a whole event';
COMMENT ON COLUMN public.evidence.task_id IS 'Task of the run that it was recorded for';
COMMENT ON COLUMN public.evidence.command_id IS 'command.started event of the command from which the daemon made the content; NULL: a client wrote the content';
CREATE TABLE public.evidence_link (
    claim_id uuid NOT NULL,
    evidence_id uuid NOT NULL,
    relation text NOT NULL,
    log_no smallint NOT NULL,
    seq bigint NOT NULL,
    run_id text NOT NULL,
    CONSTRAINT evidence_link_relation_check CHECK ((relation = ANY (ARRAY['supports'::text, 'refutes'::text]))),
    CONSTRAINT evidence_link_run_id_check CHECK ((octet_length(run_id) <= 128))
);
COMMENT ON COLUMN public.evidence_link.run_id IS 'Run of the claim, which uses the evidence';
CREATE TABLE public.feedback (
    log_no smallint NOT NULL,
    seq bigint NOT NULL,
    pointer text NOT NULL,
    chunk_id bigint,
    value double precision NOT NULL,
    actor text NOT NULL,
    CONSTRAINT feedback_pointer_check CHECK ((octet_length(pointer) <= 2048)),
    CONSTRAINT feedback_value_check CHECK (((value >= ('-1'::integer)::double precision) AND (value <= (1)::double precision)))
);
COMMENT ON TABLE public.feedback IS 'Relevance of cards, from feedback.recorded';
COMMENT ON COLUMN public.feedback.chunk_id IS 'Passage of the pointer; NULL for an event of a run';
CREATE TABLE public.follower (
    log_no smallint NOT NULL,
    name text NOT NULL,
    next_seq bigint NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT follower_name_check CHECK ((octet_length(name) <= 64))
);
COMMENT ON COLUMN public.follower.next_seq IS 'First seq that the follower has not processed';
CREATE TABLE public.log_head (
    log_no smallint NOT NULL,
    log_id uuid NOT NULL,
    epoch bigint DEFAULT 0 NOT NULL,
    writer uuid,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    partition_bits smallint DEFAULT 24 NOT NULL,
    CONSTRAINT log_head_log_no_check CHECK ((log_no > 0)),
    CONSTRAINT log_head_partition_bits_check CHECK (((partition_bits >= 10) AND (partition_bits <= 24)))
);
COMMENT ON TABLE public.log_head IS 'One row per log. It changes only when a writer takes over: the epoch fences the previous writer.';
COMMENT ON COLUMN public.log_head.writer IS 'Process that raised the epoch last; it recognises its own raise if the reply was lost';
COMMENT ON COLUMN public.log_head.partition_bits IS 'A partition of this log has 2^partition_bits events';
CREATE TABLE public.manifest (
    manifest_id uuid NOT NULL,
    log_no smallint NOT NULL,
    seq bigint NOT NULL,
    run_id text NOT NULL,
    base_id uuid,
    salt bytea,
    hash bytea NOT NULL,
    size_bytes integer NOT NULL,
    manifest json,
    created_at timestamp with time zone NOT NULL,
    CONSTRAINT manifest_check CHECK (((salt IS NULL) = (manifest IS NULL))),
    CONSTRAINT manifest_hash_check CHECK ((octet_length(hash) = 32)),
    CONSTRAINT manifest_manifest_check CHECK ((octet_length((manifest)::text) <= 61440)),
    CONSTRAINT manifest_run_id_check CHECK ((octet_length(run_id) <= 128)),
    CONSTRAINT manifest_salt_check CHECK ((octet_length(salt) = 32)),
    CONSTRAINT manifest_size_bytes_check CHECK (((size_bytes >= 2) AND (size_bytes <= 61440)))
);
COMMENT ON TABLE public.manifest IS 'Content of a context window, with reasons. hash = sha256(salt, manifest); seq is its manifest.recorded event.';
CREATE TABLE public.pointer (
    log_no smallint NOT NULL,
    pointer text NOT NULL,
    needed_by text NOT NULL,
    needed_id uuid NOT NULL,
    run_id text NOT NULL,
    seq bigint NOT NULL,
    corpus text GENERATED ALWAYS AS ("substring"(pointer, '^ev://([^/]*)/'::text)) STORED,
    document text GENERATED ALWAYS AS (public.pointer_document(pointer)) STORED,
    CONSTRAINT pointer_needed_by_check CHECK ((needed_by = ANY (ARRAY['claim'::text, 'evidence'::text, 'manifest'::text]))),
    CONSTRAINT pointer_pointer_check CHECK ((octet_length(pointer) <= 2048)),
    CONSTRAINT pointer_run_id_check CHECK ((octet_length(run_id) <= 128))
);
COMMENT ON TABLE public.pointer IS 'What claims, evidence, manifests and completed tasks rest on: pointers, and pieces of evidence as evidence://<evidence_id>. Derived from the log by the follower "pointer"; rebuilt by: muniment rebuild';
CREATE TABLE public.report_place (
    log_no smallint NOT NULL,
    type text NOT NULL,
    seq bigint NOT NULL,
    run_no bigint NOT NULL
);
COMMENT ON TABLE public.report_place IS 'Positions of the events of some types. Derived from the log by the follower "report"; rebuilt by: muniment rebuild';
CREATE VIEW public.report_erased_end AS
 SELECT p.log_no,
    p.run_no,
    e.seq,
    e.type,
    e.step_id
   FROM ((public.report_place p
     JOIN public.event x ON (((x.log_no = p.log_no) AND (x.seq = p.seq))))
     JOIN public.event e ON (((e.log_no = p.log_no) AND (e.seq = ((x.body ->> 'seq'::text))::bigint))))
  WHERE ((p.type = 'event.redacted'::text) AND (e.type = ANY (ARRAY['approval.decided'::text, 'command.ended'::text, 'model.answered'::text, 'step.ended'::text, 'tool.returned'::text])));
COMMENT ON VIEW public.report_erased_end IS 'Erased events of runs that ended a call, a step, a command or an approval';
CREATE TABLE public.report_price (
    version text NOT NULL,
    model text NOT NULL,
    input numeric NOT NULL,
    output numeric NOT NULL,
    cached_input numeric NOT NULL,
    cache_write numeric NOT NULL,
    current boolean NOT NULL,
    list_date date,
    CONSTRAINT report_price_cache_write_check CHECK ((cache_write >= (0)::numeric)),
    CONSTRAINT report_price_cached_input_check CHECK ((cached_input >= (0)::numeric)),
    CONSTRAINT report_price_input_check CHECK ((input >= (0)::numeric)),
    CONSTRAINT report_price_model_check CHECK ((octet_length(model) <= 1024)),
    CONSTRAINT report_price_output_check CHECK ((output >= (0)::numeric)),
    CONSTRAINT report_price_version_check CHECK (((octet_length(version) >= 1) AND (octet_length(version) <= 64)))
);
COMMENT ON TABLE public.report_price IS 'Prices of models in USD per million tokens, from the setting prices; not derived from the log';
COMMENT ON COLUMN public.report_price.version IS 'First 12 digits of the SHA-256 of the price list';
COMMENT ON COLUMN public.report_price.current IS 'True for the list that the daemon found at its last start';
COMMENT ON COLUMN public.report_price.list_date IS 'Date of the price list; NULL if only the setting prices names prices';
CREATE TABLE public.report_span (
    log_no smallint NOT NULL,
    kind text NOT NULL,
    seq bigint NOT NULL,
    run_no bigint NOT NULL,
    key text NOT NULL,
    step_id text,
    origin smallint NOT NULL,
    began_seq bigint,
    began_at timestamp with time zone,
    ended_seq bigint,
    ended_at timestamp with time zone,
    name text,
    sort text,
    via text,
    attempt bigint,
    status text,
    reason text,
    answered_by text,
    exit_code bigint,
    duration_us bigint,
    first_token_us bigint,
    input_tokens bigint,
    output_tokens bigint,
    cached_input_tokens bigint,
    cache_write_tokens bigint,
    reasoning_tokens bigint,
    cost numeric,
    currency text,
    CONSTRAINT report_span_answered_by_check CHECK ((octet_length(answered_by) <= 1024)),
    CONSTRAINT report_span_check CHECK ((seq = COALESCE(began_seq, ended_seq))),
    CONSTRAINT report_span_currency_check CHECK ((octet_length(currency) <= 64)),
    CONSTRAINT report_span_key_check CHECK (((octet_length(key) >= 1) AND (octet_length(key) <= 1024))),
    CONSTRAINT report_span_name_check CHECK ((octet_length(name) <= 1024)),
    CONSTRAINT report_span_origin_check CHECK (((origin >= 1) AND (origin <= 3))),
    CONSTRAINT report_span_reason_check CHECK ((octet_length(reason) <= 1024)),
    CONSTRAINT report_span_sort_check CHECK ((octet_length(sort) <= 1024)),
    CONSTRAINT report_span_status_check CHECK ((octet_length(status) <= 32)),
    CONSTRAINT report_span_step_id_check CHECK ((octet_length(step_id) <= 200)),
    CONSTRAINT report_span_via_check CHECK ((octet_length(via) <= 1024))
)
PARTITION BY LIST (kind);
COMMENT ON TABLE public.report_span IS 'Calls, steps, commands and approvals: each begins with one event and ends with another. Derived from the log by the follower "report"; rebuilt by: muniment rebuild';
COMMENT ON COLUMN public.report_span.key IS 'Id that both events share: call_id, step_id or approval_id';
COMMENT ON COLUMN public.report_span.began_at IS 'Time of the beginning given by the client or the source, otherwise by the daemon''s clock; NULL if an imported event has none';
COMMENT ON COLUMN public.report_span.sort IS 'model: operation; tool: kind; step: kind';
COMMENT ON COLUMN public.report_span.via IS 'model: provider; tool: server; step: the enclosing step';
COMMENT ON COLUMN public.report_span.reason IS 'model: the first finish reason, or the type of the error; others: the type of the error, or the signal';
CREATE TABLE public.report_span_model (
    log_no smallint NOT NULL,
    kind text NOT NULL,
    seq bigint NOT NULL,
    run_no bigint NOT NULL,
    key text NOT NULL,
    step_id text,
    origin smallint NOT NULL,
    began_seq bigint,
    began_at timestamp with time zone,
    ended_seq bigint,
    ended_at timestamp with time zone,
    name text,
    sort text,
    via text,
    attempt bigint,
    status text,
    reason text,
    answered_by text,
    exit_code bigint,
    duration_us bigint,
    first_token_us bigint,
    input_tokens bigint,
    output_tokens bigint,
    cached_input_tokens bigint,
    cache_write_tokens bigint,
    reasoning_tokens bigint,
    cost numeric,
    currency text,
    CONSTRAINT report_span_answered_by_check CHECK ((octet_length(answered_by) <= 1024)),
    CONSTRAINT report_span_check CHECK ((seq = COALESCE(began_seq, ended_seq))),
    CONSTRAINT report_span_currency_check CHECK ((octet_length(currency) <= 64)),
    CONSTRAINT report_span_key_check CHECK (((octet_length(key) >= 1) AND (octet_length(key) <= 1024))),
    CONSTRAINT report_span_name_check CHECK ((octet_length(name) <= 1024)),
    CONSTRAINT report_span_origin_check CHECK (((origin >= 1) AND (origin <= 3))),
    CONSTRAINT report_span_reason_check CHECK ((octet_length(reason) <= 1024)),
    CONSTRAINT report_span_sort_check CHECK ((octet_length(sort) <= 1024)),
    CONSTRAINT report_span_status_check CHECK ((octet_length(status) <= 32)),
    CONSTRAINT report_span_step_id_check CHECK ((octet_length(step_id) <= 200)),
    CONSTRAINT report_span_via_check CHECK ((octet_length(via) <= 1024))
);
CREATE VIEW public.report_model_span AS
 SELECT s.log_no,
    s.kind,
    s.seq,
    s.run_no,
    s.key,
    s.step_id,
    s.origin,
    s.began_seq,
    s.began_at,
    s.ended_seq,
    s.ended_at,
    s.name,
    s.sort,
    s.via,
    s.attempt,
    s.status,
    s.reason,
    s.answered_by,
    s.exit_code,
    s.duration_us,
    s.first_token_us,
    s.input_tokens,
    s.output_tokens,
    s.cached_input_tokens,
    s.cache_write_tokens,
    s.reasoning_tokens,
    s.cost,
    s.currency,
    p.estimate,
        CASE
            WHEN (p.estimate IS NOT NULL) THEN p.version
            ELSE NULL::text
        END AS price_list,
        CASE
            WHEN (s.cost IS NOT NULL) THEN 'recorded'::text
            WHEN (p.estimate IS NOT NULL) THEN ('prices '::text || p.version)
            ELSE NULL::text
        END AS cost_basis
   FROM ((((((public.report_span_model s
     LEFT JOIN public.report_price a ON ((a.current AND (a.model = s.answered_by))))
     LEFT JOIN public.report_price n ON ((n.current AND (n.model = s.name))))
     CROSS JOIN LATERAL ( SELECT COALESCE(s.input_tokens, (0)::bigint) AS read,
            COALESCE(s.output_tokens, (0)::bigint) AS written) t)
     CROSS JOIN LATERAL ( SELECT LEAST(COALESCE(s.cached_input_tokens, (0)::bigint), t.read) AS cached) c)
     CROSS JOIN LATERAL ( SELECT LEAST(COALESCE(s.cache_write_tokens, (0)::bigint), (t.read - c.cached)) AS stored) w)
     CROSS JOIN LATERAL ( SELECT COALESCE(a.version, n.version) AS version,
                CASE
                    WHEN ((s.cost IS NULL) AND (COALESCE(s.input_tokens, s.output_tokens) IS NOT NULL)) THEN trim_scale((0.000001 * (((((((t.read - c.cached) - w.stored))::numeric * COALESCE(a.input, n.input)) + ((c.cached)::numeric * COALESCE(a.cached_input, n.cached_input))) + ((w.stored)::numeric * COALESCE(a.cache_write, n.cache_write))) + ((t.written)::numeric * COALESCE(a.output, n.output)))))
                    ELSE NULL::numeric
                END AS estimate) p);
COMMENT ON VIEW public.report_model_span IS 'Model calls, each with its recorded or estimated cost';
CREATE TABLE public.report_run (
    log_no smallint NOT NULL,
    run_no bigint NOT NULL,
    events bigint NOT NULL,
    last_seq bigint NOT NULL,
    last_event_at timestamp with time zone NOT NULL,
    first_occurred_at timestamp with time zone,
    last_occurred_at timestamp with time zone,
    messages bigint NOT NULL,
    errors bigint NOT NULL,
    model_calls bigint NOT NULL,
    model_errors bigint NOT NULL,
    tool_calls bigint NOT NULL,
    tool_errors bigint NOT NULL,
    steps bigint NOT NULL,
    commands bigint NOT NULL,
    command_errors bigint NOT NULL,
    input_tokens numeric,
    output_tokens numeric,
    cached_input_tokens numeric,
    reasoning_tokens numeric,
    cost numeric,
    currency text,
    CONSTRAINT report_run_currency_check CHECK ((octet_length(currency) <= 64)),
    CONSTRAINT report_run_run_no_check CHECK ((run_no > 0))
);
COMMENT ON TABLE public.report_run IS 'Totals of a run. Derived from the log by the follower "report"; rebuilt by: muniment rebuild';
COMMENT ON COLUMN public.report_run.currency IS 'Currency of cost; mixed: several currencies, whose sum has no meaning';
CREATE VIEW public.report_run_usage AS
 SELECT c.log_no,
    c.run_no,
    COALESCE(c.input_tokens, public.report_number((t.usage ->> 'input_tokens'::text))) AS input_tokens,
    COALESCE(c.output_tokens, public.report_number((t.usage ->> 'output_tokens'::text))) AS output_tokens,
    COALESCE(c.cached_input_tokens, public.report_number((t.usage ->> 'cached_input_tokens'::text))) AS cached_input_tokens,
    COALESCE(c.reasoning_tokens, public.report_number((t.usage ->> 'reasoning_tokens'::text))) AS reasoning_tokens,
        CASE
            WHEN (x.currency <> 'mixed'::text) THEN COALESCE((r.cost + e.estimate), r.cost, e.estimate)
            ELSE NULL::numeric
        END AS cost,
    x.currency,
    e.estimate AS cost_estimated,
    e.price_list
   FROM ((((public.report_run c
     LEFT JOIN LATERAL ( SELECT ( SELECT (e_1.body -> 'usage'::text)
                   FROM public.event e_1
                  WHERE ((e_1.log_no = c.log_no) AND (e_1.seq = max(p.seq)))) AS usage
           FROM public.report_place p
          WHERE ((p.log_no = c.log_no) AND (p.run_no = c.run_no) AND (p.type = 'run.ended'::text))) t ON (true))
     CROSS JOIN LATERAL ( SELECT
                CASE
                    WHEN (c.currency IS NULL) THEN public.report_number((t.usage #>> '{cost,amount}'::text[]))
                    WHEN (c.currency <> 'mixed'::text) THEN c.cost
                    ELSE NULL::numeric
                END AS cost,
            COALESCE(c.currency, (t.usage #>> '{cost,currency}'::text[])) AS currency) r)
     LEFT JOIN LATERAL ( SELECT sum(s.estimate) AS estimate,
            min(s.price_list) AS price_list
           FROM public.report_model_span s
          WHERE ((s.log_no = c.log_no) AND (s.run_no = c.run_no) AND (c.model_calls > 0) AND ((c.currency IS NOT NULL) OR (r.cost IS NULL)) AND ( SELECT (EXISTS ( SELECT
                           FROM public.report_price
                          WHERE report_price.current)) AS "exists"))) e ON (true))
     CROSS JOIN LATERAL ( SELECT
                CASE
                    WHEN ((e.estimate IS NULL) OR (r.currency = 'USD'::text)) THEN r.currency
                    WHEN (c.currency IS NULL) THEN 'USD'::text
                    ELSE 'mixed'::text
                END AS currency) x);
COMMENT ON VIEW public.report_run_usage IS 'Tokens and costs of runs, with estimates of costs that are not recorded';
CREATE TABLE public.report_span_approval (
    log_no smallint NOT NULL,
    kind text NOT NULL,
    seq bigint NOT NULL,
    run_no bigint NOT NULL,
    key text NOT NULL,
    step_id text,
    origin smallint NOT NULL,
    began_seq bigint,
    began_at timestamp with time zone,
    ended_seq bigint,
    ended_at timestamp with time zone,
    name text,
    sort text,
    via text,
    attempt bigint,
    status text,
    reason text,
    answered_by text,
    exit_code bigint,
    duration_us bigint,
    first_token_us bigint,
    input_tokens bigint,
    output_tokens bigint,
    cached_input_tokens bigint,
    cache_write_tokens bigint,
    reasoning_tokens bigint,
    cost numeric,
    currency text,
    CONSTRAINT report_span_answered_by_check CHECK ((octet_length(answered_by) <= 1024)),
    CONSTRAINT report_span_check CHECK ((seq = COALESCE(began_seq, ended_seq))),
    CONSTRAINT report_span_currency_check CHECK ((octet_length(currency) <= 64)),
    CONSTRAINT report_span_key_check CHECK (((octet_length(key) >= 1) AND (octet_length(key) <= 1024))),
    CONSTRAINT report_span_name_check CHECK ((octet_length(name) <= 1024)),
    CONSTRAINT report_span_origin_check CHECK (((origin >= 1) AND (origin <= 3))),
    CONSTRAINT report_span_reason_check CHECK ((octet_length(reason) <= 1024)),
    CONSTRAINT report_span_sort_check CHECK ((octet_length(sort) <= 1024)),
    CONSTRAINT report_span_status_check CHECK ((octet_length(status) <= 32)),
    CONSTRAINT report_span_step_id_check CHECK ((octet_length(step_id) <= 200)),
    CONSTRAINT report_span_via_check CHECK ((octet_length(via) <= 1024))
);
CREATE TABLE public.report_span_command (
    log_no smallint NOT NULL,
    kind text NOT NULL,
    seq bigint NOT NULL,
    run_no bigint NOT NULL,
    key text NOT NULL,
    step_id text,
    origin smallint NOT NULL,
    began_seq bigint,
    began_at timestamp with time zone,
    ended_seq bigint,
    ended_at timestamp with time zone,
    name text,
    sort text,
    via text,
    attempt bigint,
    status text,
    reason text,
    answered_by text,
    exit_code bigint,
    duration_us bigint,
    first_token_us bigint,
    input_tokens bigint,
    output_tokens bigint,
    cached_input_tokens bigint,
    cache_write_tokens bigint,
    reasoning_tokens bigint,
    cost numeric,
    currency text,
    CONSTRAINT report_span_answered_by_check CHECK ((octet_length(answered_by) <= 1024)),
    CONSTRAINT report_span_check CHECK ((seq = COALESCE(began_seq, ended_seq))),
    CONSTRAINT report_span_currency_check CHECK ((octet_length(currency) <= 64)),
    CONSTRAINT report_span_key_check CHECK (((octet_length(key) >= 1) AND (octet_length(key) <= 1024))),
    CONSTRAINT report_span_name_check CHECK ((octet_length(name) <= 1024)),
    CONSTRAINT report_span_origin_check CHECK (((origin >= 1) AND (origin <= 3))),
    CONSTRAINT report_span_reason_check CHECK ((octet_length(reason) <= 1024)),
    CONSTRAINT report_span_sort_check CHECK ((octet_length(sort) <= 1024)),
    CONSTRAINT report_span_status_check CHECK ((octet_length(status) <= 32)),
    CONSTRAINT report_span_step_id_check CHECK ((octet_length(step_id) <= 200)),
    CONSTRAINT report_span_via_check CHECK ((octet_length(via) <= 1024))
);
CREATE TABLE public.report_span_step (
    log_no smallint NOT NULL,
    kind text NOT NULL,
    seq bigint NOT NULL,
    run_no bigint NOT NULL,
    key text NOT NULL,
    step_id text,
    origin smallint NOT NULL,
    began_seq bigint,
    began_at timestamp with time zone,
    ended_seq bigint,
    ended_at timestamp with time zone,
    name text,
    sort text,
    via text,
    attempt bigint,
    status text,
    reason text,
    answered_by text,
    exit_code bigint,
    duration_us bigint,
    first_token_us bigint,
    input_tokens bigint,
    output_tokens bigint,
    cached_input_tokens bigint,
    cache_write_tokens bigint,
    reasoning_tokens bigint,
    cost numeric,
    currency text,
    CONSTRAINT report_span_answered_by_check CHECK ((octet_length(answered_by) <= 1024)),
    CONSTRAINT report_span_check CHECK ((seq = COALESCE(began_seq, ended_seq))),
    CONSTRAINT report_span_currency_check CHECK ((octet_length(currency) <= 64)),
    CONSTRAINT report_span_key_check CHECK (((octet_length(key) >= 1) AND (octet_length(key) <= 1024))),
    CONSTRAINT report_span_name_check CHECK ((octet_length(name) <= 1024)),
    CONSTRAINT report_span_origin_check CHECK (((origin >= 1) AND (origin <= 3))),
    CONSTRAINT report_span_reason_check CHECK ((octet_length(reason) <= 1024)),
    CONSTRAINT report_span_sort_check CHECK ((octet_length(sort) <= 1024)),
    CONSTRAINT report_span_status_check CHECK ((octet_length(status) <= 32)),
    CONSTRAINT report_span_step_id_check CHECK ((octet_length(step_id) <= 200)),
    CONSTRAINT report_span_via_check CHECK ((octet_length(via) <= 1024))
);
CREATE TABLE public.report_span_tool (
    log_no smallint NOT NULL,
    kind text NOT NULL,
    seq bigint NOT NULL,
    run_no bigint NOT NULL,
    key text NOT NULL,
    step_id text,
    origin smallint NOT NULL,
    began_seq bigint,
    began_at timestamp with time zone,
    ended_seq bigint,
    ended_at timestamp with time zone,
    name text,
    sort text,
    via text,
    attempt bigint,
    status text,
    reason text,
    answered_by text,
    exit_code bigint,
    duration_us bigint,
    first_token_us bigint,
    input_tokens bigint,
    output_tokens bigint,
    cached_input_tokens bigint,
    cache_write_tokens bigint,
    reasoning_tokens bigint,
    cost numeric,
    currency text,
    CONSTRAINT report_span_answered_by_check CHECK ((octet_length(answered_by) <= 1024)),
    CONSTRAINT report_span_check CHECK ((seq = COALESCE(began_seq, ended_seq))),
    CONSTRAINT report_span_currency_check CHECK ((octet_length(currency) <= 64)),
    CONSTRAINT report_span_key_check CHECK (((octet_length(key) >= 1) AND (octet_length(key) <= 1024))),
    CONSTRAINT report_span_name_check CHECK ((octet_length(name) <= 1024)),
    CONSTRAINT report_span_origin_check CHECK (((origin >= 1) AND (origin <= 3))),
    CONSTRAINT report_span_reason_check CHECK ((octet_length(reason) <= 1024)),
    CONSTRAINT report_span_sort_check CHECK ((octet_length(sort) <= 1024)),
    CONSTRAINT report_span_status_check CHECK ((octet_length(status) <= 32)),
    CONSTRAINT report_span_step_id_check CHECK ((octet_length(step_id) <= 200)),
    CONSTRAINT report_span_via_check CHECK ((octet_length(via) <= 1024))
);
CREATE TABLE public.run (
    log_no smallint NOT NULL,
    run_no bigint NOT NULL,
    run_id text NOT NULL,
    first_seq bigint NOT NULL,
    status text NOT NULL,
    outcome text,
    origin smallint NOT NULL,
    owner text NOT NULL,
    agent text NOT NULL,
    goal text,
    labels jsonb DEFAULT '{}'::jsonb NOT NULL,
    parent text,
    external_id text,
    started_at timestamp with time zone NOT NULL,
    ended_at timestamp with time zone,
    halt jsonb,
    CONSTRAINT run_agent_check CHECK ((octet_length(agent) <= 1024)),
    CONSTRAINT run_external_id_check CHECK ((octet_length(external_id) <= 1024)),
    CONSTRAINT run_goal_check CHECK ((octet_length(goal) <= 61440)),
    CONSTRAINT run_halt_check CHECK ((octet_length((halt)::text) <= 65000)),
    CONSTRAINT run_labels_check CHECK ((octet_length((labels)::text) <= 65000)),
    CONSTRAINT run_origin_check CHECK (((origin >= 1) AND (origin <= 3))),
    CONSTRAINT run_outcome_check CHECK ((octet_length(outcome) <= 32)),
    CONSTRAINT run_owner_check CHECK ((octet_length(owner) <= 128)),
    CONSTRAINT run_parent_check CHECK ((octet_length(parent) <= 128)),
    CONSTRAINT run_run_id_check CHECK ((octet_length(run_id) <= 128)),
    CONSTRAINT run_status_check CHECK ((status = ANY (ARRAY['open'::text, 'ended'::text, 'halted'::text])))
);
COMMENT ON TABLE public.run IS 'Derived from the log by the follower "run"; rebuilt by: muniment rebuild';
CREATE VIEW public.report_tool_seen WITH (security_barrier='true') AS
 SELECT s.log_no,
    r.run_id,
    s.step_id,
    s.key AS call_id,
    s.name AS tool,
    s.sort AS kind,
    s.via AS server,
    (ARRAY['observed'::text, 'reported'::text, 'imported'::text])[s.origin] AS origin,
    s.attempt,
        CASE
            WHEN (s.ended_seq IS NOT NULL) THEN COALESCE(s.status, 'pending'::text)
            WHEN (EXISTS ( SELECT
               FROM public.report_erased_end x
              WHERE ((x.log_no = s.log_no) AND (x.run_no = s.run_no) AND (x.type = 'tool.returned'::text) AND (x.seq > s.began_seq)))) THEN 'unknown'::text
            ELSE 'pending'::text
        END AS status,
    s.reason AS error_type,
    s.exit_code,
    s.began_at AS called_at,
    s.ended_at AS returned_at,
    COALESCE(s.duration_us, public.report_micros(s.began_at, s.ended_at)) AS duration_us,
    s.began_seq AS called_seq,
    s.ended_seq AS returned_seq
   FROM (public.report_span_tool s
     JOIN public.run r USING (log_no, run_no))
  WHERE report.sees(r.run_id);
COMMENT ON VIEW public.report_tool_seen IS 'Columns of report.tool_call for the calls that the reporter may read, without those read from the log';
CREATE TABLE public.schema_migration (
    number integer NOT NULL,
    name text NOT NULL,
    sha256 text NOT NULL,
    applied_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT schema_migration_name_check CHECK ((octet_length(name) <= 256)),
    CONSTRAINT schema_migration_number_check CHECK ((number > 0)),
    CONSTRAINT schema_migration_sha256_check CHECK ((sha256 ~ '^[0-9a-f]{64}$'::text))
);
CREATE TABLE public.snapshot (
    log_no smallint NOT NULL,
    run_no bigint NOT NULL,
    seq bigint NOT NULL,
    run_seq bigint NOT NULL,
    event_seq bigint NOT NULL,
    salt bytea,
    hash bytea NOT NULL,
    state_hash bytea NOT NULL,
    size_bytes bigint NOT NULL,
    state json,
    artifact_id uuid,
    reason text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    CONSTRAINT snapshot_hash_check CHECK ((octet_length(hash) = 32)),
    CONSTRAINT snapshot_reason_check CHECK ((octet_length(reason) <= 64)),
    CONSTRAINT snapshot_salt_check CHECK ((octet_length(salt) = 32)),
    CONSTRAINT snapshot_size_bytes_check CHECK ((size_bytes > 0)),
    CONSTRAINT snapshot_state_check CHECK ((octet_length((state)::text) <= 61440)),
    CONSTRAINT snapshot_state_hash_check CHECK ((octet_length(state_hash) = 32))
);
COMMENT ON TABLE public.snapshot IS 'A run''s state after the event seq. hash = sha256(salt, state), state_hash = sha256(state); event_seq is its snapshot.taken event. state is NULL when the bytes are the artifact, or erased.';
CREATE TABLE public.task_change (
    log_no smallint NOT NULL,
    seq bigint NOT NULL,
    run_id text NOT NULL,
    task_id text NOT NULL,
    change text NOT NULL,
    CONSTRAINT task_change_change_check CHECK ((change = ANY (ARRAY['opened'::text, 'completed'::text]))),
    CONSTRAINT task_change_run_id_check CHECK ((octet_length(run_id) <= 128)),
    CONSTRAINT task_change_task_id_check CHECK ((octet_length(task_id) <= 256))
);
COMMENT ON TABLE public.task_change IS 'One row for each task.opened and task.completed event';
COMMENT ON COLUMN public.task_change.seq IS 'seq of the event';
CREATE TABLE public.task_evidence (
    log_no smallint NOT NULL,
    seq bigint NOT NULL,
    run_id text NOT NULL,
    task_id text NOT NULL,
    evidence_id uuid NOT NULL,
    evidence_seq bigint NOT NULL,
    CONSTRAINT task_evidence_run_id_check CHECK ((octet_length(run_id) <= 128)),
    CONSTRAINT task_evidence_task_id_check CHECK ((octet_length(task_id) <= 256))
);
COMMENT ON TABLE public.task_evidence IS 'One row for each piece of evidence of a task.completed event';
COMMENT ON COLUMN public.task_evidence.seq IS 'seq of the task.completed event';
COMMENT ON COLUMN public.task_evidence.run_id IS 'The run of the task; the evidence may be of another run';
COMMENT ON COLUMN public.task_evidence.evidence_seq IS 'seq of the evidence.recorded event, which is one run''s use of the evidence';
CREATE VIEW report.approval_report WITH (security_barrier='true') AS
 SELECT s.log_no,
    r.run_id,
    s.step_id,
    s.key AS approval_id,
    (b.body ->> 'call_id'::text) AS call_id,
    (b.body ->> 'question'::text) AS question,
    ((b.body -> 'options'::text))::jsonb AS options,
    b.actor AS requested_by,
        CASE
            WHEN (s.ended_seq IS NOT NULL) THEN (e.body ->> 'decision'::text)
            WHEN (EXISTS ( SELECT
               FROM public.report_erased_end x
              WHERE ((x.log_no = s.log_no) AND (x.run_no = s.run_no) AND (x.type = 'approval.decided'::text) AND (x.seq > s.began_seq)))) THEN 'unknown'::text
            ELSE 'pending'::text
        END AS decision,
    (e.body ->> 'by'::text) AS decided_as,
    e.actor AS decided_by,
    (e.body ->> 'reason'::text) AS reason,
    s.began_at AS requested_at,
    s.ended_at AS decided_at,
    public.report_micros(s.began_at, s.ended_at) AS duration_us,
    s.began_seq AS requested_seq,
    s.ended_seq AS decided_seq
   FROM (((public.report_span_approval s
     JOIN public.run r USING (log_no, run_no))
     LEFT JOIN public.event b ON (((b.log_no = s.log_no) AND (b.seq = s.began_seq))))
     LEFT JOIN public.event e ON (((e.log_no = s.log_no) AND (e.seq = s.ended_seq))))
  WHERE report.sees(r.run_id);
COMMENT ON VIEW report.approval_report IS 'Requests for approval, and their decisions';
COMMENT ON COLUMN report.approval_report.log_no IS 'Number of the log within this database';
COMMENT ON COLUMN report.approval_report.run_id IS 'Run id';
COMMENT ON COLUMN report.approval_report.step_id IS 'Step within the run';
COMMENT ON COLUMN report.approval_report.approval_id IS 'Id shared by the request and its decision';
COMMENT ON COLUMN report.approval_report.call_id IS 'Call that the approval is for';
COMMENT ON COLUMN report.approval_report.question IS 'Question; NULL once redacted or archived';
COMMENT ON COLUMN report.approval_report.options IS 'Options offered';
COMMENT ON COLUMN report.approval_report.requested_by IS 'Identity that asked';
COMMENT ON COLUMN report.approval_report.decision IS 'Decision; pending: none yet; unknown: a decision of the run, possibly this one, was erased';
COMMENT ON COLUMN report.approval_report.decided_as IS 'Kind of decider: human, model or code';
COMMENT ON COLUMN report.approval_report.decided_by IS 'Identity that decided';
COMMENT ON COLUMN report.approval_report.reason IS 'Reason';
COMMENT ON COLUMN report.approval_report.requested_at IS 'Time of the request';
COMMENT ON COLUMN report.approval_report.decided_at IS 'Time of the decision';
COMMENT ON COLUMN report.approval_report.duration_us IS 'Waiting time in microseconds';
COMMENT ON COLUMN report.approval_report.requested_seq IS 'seq of its approval.requested event';
COMMENT ON COLUMN report.approval_report.decided_seq IS 'seq of its approval.decided event';
CREATE VIEW report.artifact_report WITH (security_barrier='true') AS
 SELECT a.log_no,
    a.run_id,
    a.step_id,
    a.artifact_id,
    a.path,
    a.mime_type,
    a.size_bytes,
    a.hash,
    (a.hash = repeat('0'::text, 64)) AS erased,
    a.metadata,
    a.created_at,
    (ARRAY['observed'::text, 'reported'::text, 'imported'::text])[( SELECT e.origin
           FROM public.event e
          WHERE ((e.log_no = a.log_no) AND (e.seq = a.seq)))] AS origin,
    a.seq
   FROM (public.artifact a
     JOIN public.run r USING (log_no, run_id))
  WHERE report.sees(r.run_id);
COMMENT ON VIEW report.artifact_report IS 'Files of runs';
COMMENT ON COLUMN report.artifact_report.log_no IS 'Number of the log within this database';
COMMENT ON COLUMN report.artifact_report.run_id IS 'Run id';
COMMENT ON COLUMN report.artifact_report.step_id IS 'Step within the run';
COMMENT ON COLUMN report.artifact_report.artifact_id IS 'Id of the artifact';
COMMENT ON COLUMN report.artifact_report.path IS 'Path of the file, relative to the artifact root';
COMMENT ON COLUMN report.artifact_report.mime_type IS 'MIME type';
COMMENT ON COLUMN report.artifact_report.size_bytes IS 'Size in bytes';
COMMENT ON COLUMN report.artifact_report.hash IS 'SHA-256 of the bytes; zeros after an erasure';
COMMENT ON COLUMN report.artifact_report.erased IS 'True if the bytes were erased';
COMMENT ON COLUMN report.artifact_report.metadata IS 'Metadata given when it was stored';
COMMENT ON COLUMN report.artifact_report.created_at IS 'Time at which it was stored';
COMMENT ON COLUMN report.artifact_report.origin IS 'Source of the event: observed (daemon), reported (client) or imported';
COMMENT ON COLUMN report.artifact_report.seq IS 'seq of its artifact.stored event';
CREATE VIEW report.audit_report WITH (security_barrier='true') AS
 SELECT p.log_no,
    r.run_id,
    p.seq,
    e.recorded_at,
    p.type,
    e.actor,
    COALESCE((e.body ->> 'pointer'::text), (e.body ->> 'artifact_id'::text), (e.body ->> 'seq'::text), (e.body ->> 'budget'::text), (e.body ->> 'partition'::text), (e.body ->> 'new_key'::text),
        CASE p.type
            WHEN 'run.interrupted'::text THEN (e.body ->> 'log_seq'::text)
            WHEN 'log.restored'::text THEN (e.body ->> 'log_id'::text)
            WHEN 'child.halted'::text THEN (e.body ->> 'run_id'::text)
            WHEN 'access.refused'::text THEN (e.body ->> 'principal'::text)
            WHEN 'sandbox.refused'::text THEN (e.body ->> 'path'::text)
            WHEN 'source.revoked'::text THEN (e.body ->> 'source'::text)
            WHEN 'embedder.trained'::text THEN (e.body ->> 'embedder'::text)
            ELSE NULL::text
        END) AS about,
    COALESCE((e.body ->> 'reason'::text), (e.body ->> 'why'::text), (e.body ->> 'detail'::text), (e.body ->> 'operation'::text)) AS reason,
        CASE
            WHEN (p.type <> 'log.started'::text) THEN COALESCE((e.body ->> 'verdict'::text), (e.body ->> 'code'::text), (e.body ->> 'kind'::text))
            WHEN ((e.body -> 'adopted'::text) IS NOT NULL) THEN 'adopted'::text
            WHEN ((e.body ->> 'clean'::text) = 'false'::text) THEN 'unclean'::text
            ELSE NULL::text
        END AS verdict,
    (e.body ->> 'legal_basis'::text) AS legal_basis,
    ((e.body ->> 'upto'::text))::bigint AS upto,
    ((e.body #>> '{adopted,from_seq}'::text[]))::bigint AS from_seq,
    ((e.body #>> '{adopted,to_seq}'::text[]))::bigint AS to_seq,
    (e.body #>> '{adopted,known_by}'::text[]) AS known_by,
        CASE p.type
            WHEN 'log.resumed'::text THEN ((e.body ->> 'since'::text))::timestamp with time zone
            WHEN 'clock.stepped'::text THEN ((e.body ->> 'before'::text))::timestamp with time zone
            ELSE NULL::timestamp with time zone
        END AS since,
        CASE p.type
            WHEN 'log.resumed'::text THEN ((e.body ->> 'until'::text))::timestamp with time zone
            WHEN 'clock.stepped'::text THEN ((e.body ->> 'after'::text))::timestamp with time zone
            ELSE NULL::timestamp with time zone
        END AS until,
        CASE p.type
            WHEN 'log.resumed'::text THEN ((e.body ->> 'requests_refused'::text))::bigint
            ELSE NULL::bigint
        END AS requests_refused,
        CASE p.type
            WHEN 'log.resumed'::text THEN ((e.body ->> 'events_refused'::text))::bigint
            ELSE NULL::bigint
        END AS events_refused
   FROM ((public.report_place p
     LEFT JOIN public.run r USING (log_no, run_no))
     JOIN public.event e USING (log_no, seq))
  WHERE (
        CASE p.run_no
            WHEN 0 THEN (COALESCE(current_setting('muniment.runs'::text, true), ''::text) = ''::text)
            ELSE report.sees(r.run_id)
        END AND (p.type = ANY (ARRAY['event.redacted'::text, 'artifact.redacted'::text, 'run.halted'::text, 'run.resumed'::text, 'run.interrupted'::text, 'pointer.unresolved'::text, 'violation.detected'::text, 'budget.exceeded'::text, 'log.started'::text, 'log.stopped'::text, 'log.resumed'::text, 'log.verified'::text, 'log.exported'::text, 'log.restored'::text, 'log.archived'::text, 'key.rotated'::text, 'clock.stepped'::text, 'access.refused'::text, 'child.halted'::text, 'embedder.trained'::text, 'pointer.retried'::text, 'sandbox.refused'::text, 'source.revoked'::text])));
COMMENT ON VIEW report.audit_report IS 'Events for auditors: erasures, halts, interruptions and recoveries, pointers that were retried or did not resolve, refused accesses, violations, revoked sources, trained models, verifications, keys, starts, stops, events adopted by a start, periods without appends, steps of the clock. Events of the whole log are shown to readers who see all runs';
COMMENT ON COLUMN report.audit_report.log_no IS 'Number of the log within this database';
COMMENT ON COLUMN report.audit_report.run_id IS 'Run id; NULL for an event of the whole log';
COMMENT ON COLUMN report.audit_report.seq IS 'Position of the event in the log';
COMMENT ON COLUMN report.audit_report.recorded_at IS 'Time of the append, by the daemon''s clock';
COMMENT ON COLUMN report.audit_report.type IS 'Type of the event';
COMMENT ON COLUMN report.audit_report.actor IS 'Authenticated identity that appended it';
COMMENT ON COLUMN report.audit_report.about IS 'Subject of the event: a pointer, an artifact, an event, a budget, a partition, a key, a log, a child run, a principal, a path, a source, a model; for an interruption, the log.started that reports it';
COMMENT ON COLUMN report.audit_report.reason IS 'Reason, as text; for an access that a sandbox refused, the operation';
COMMENT ON COLUMN report.audit_report.verdict IS 'Verdict of a verification, code of a halt, kind of a violation. For a start: adopted, if it took in events that nothing outside the database shows to be the daemon''s own; unclean, if the previous daemon did not stop in order; otherwise NULL';
COMMENT ON COLUMN report.audit_report.legal_basis IS 'Legal basis of an erasure';
COMMENT ON COLUMN report.audit_report.upto IS 'Last event covered by a verification';
COMMENT ON COLUMN report.audit_report.from_seq IS 'First event that a start adopted';
COMMENT ON COLUMN report.audit_report.to_seq IS 'Last event that a start adopted';
COMMENT ON COLUMN report.audit_report.known_by IS 'Proof of the events before the adopted ones: record, signature or nothing';
COMMENT ON COLUMN report.audit_report.since IS 'Start of a period without appends; for a step of the clock, the time before it';
COMMENT ON COLUMN report.audit_report.until IS 'End of a period without appends; for a step of the clock, the time after it';
COMMENT ON COLUMN report.audit_report.requests_refused IS 'Requests refused in a period without appends; clients may have sent them again';
COMMENT ON COLUMN report.audit_report.events_refused IS 'Events refused in a period without appends';
CREATE VIEW report.claim_report WITH (security_barrier='true') AS
 SELECT c.log_no,
    c.run_id,
    c.step_id,
    c.claim_id,
    c.text,
    c.status,
    c.pointers,
    jsonb_array_length(c.pointers) AS pointer_count,
    ( SELECT count(*) AS count
           FROM public.evidence_link l
          WHERE ((l.claim_id = c.claim_id) AND (l.relation = 'supports'::text))) AS supporting,
    ( SELECT count(*) AS count
           FROM public.evidence_link l
          WHERE ((l.claim_id = c.claim_id) AND (l.relation = 'refutes'::text))) AS refuting,
    c.created_at AS recorded_at,
    c.seq
   FROM (public.claim c
     JOIN public.run r USING (log_no, run_id))
  WHERE report.sees(r.run_id);
COMMENT ON VIEW report.claim_report IS 'Claims of runs, and the evidence for and against them';
COMMENT ON COLUMN report.claim_report.log_no IS 'Number of the log within this database';
COMMENT ON COLUMN report.claim_report.run_id IS 'Run id';
COMMENT ON COLUMN report.claim_report.step_id IS 'Step within the run';
COMMENT ON COLUMN report.claim_report.claim_id IS 'Id of the claim';
COMMENT ON COLUMN report.claim_report.text IS 'Text of the claim; empty once redacted';
COMMENT ON COLUMN report.claim_report.status IS 'open, or the decision';
COMMENT ON COLUMN report.claim_report.pointers IS 'Pointers that support the claim';
COMMENT ON COLUMN report.claim_report.pointer_count IS 'Number of pointers';
COMMENT ON COLUMN report.claim_report.supporting IS 'Evidence that supports the claim';
COMMENT ON COLUMN report.claim_report.refuting IS 'Evidence that refutes the claim';
COMMENT ON COLUMN report.claim_report.recorded_at IS 'Time of the append, by the daemon''s clock';
COMMENT ON COLUMN report.claim_report.seq IS 'seq of its claim.recorded event';
CREATE VIEW report.cloud_report WITH (security_barrier='true') AS
 WITH ended AS (
         SELECT p_1.log_no,
            p_1.seq,
            p_1.type,
            e_1.recorded_at,
            e_1.body,
            (e_1.body ->> 'id'::text) AS id
           FROM (public.report_place p_1
             JOIN public.event e_1 USING (log_no, seq))
          WHERE (p_1.type = ANY (ARRAY['cloud.answered'::text, 'cloud.failed'::text]))
        )
 SELECT p.log_no,
    r.run_id,
    e.step_id,
    p.seq,
    e.recorded_at,
    e.actor,
    (e.body ->> 'branch'::text) AS branch,
    ((e.body ->> 'id'::text))::uuid AS call_id,
    ((e.body ->> 'question_id'::text))::uuid AS question_id,
    (e.body ->> 'provider'::text) AS provider,
    (e.body ->> 'model'::text) AS model,
    (e.body ->> 'by'::text) AS called_by,
        CASE
            WHEN (p.type = 'cloud.refused'::text) THEN 'refused'::text
            WHEN (e.body IS NULL) THEN NULL::text
            WHEN (d.type = 'cloud.answered'::text) THEN 'answered'::text
            WHEN (d.type = 'cloud.failed'::text) THEN 'failed'::text
            ELSE 'unknown'::text
        END AS status,
    COALESCE((e.body ->> 'reason'::text), (d.body ->> 'reason'::text)) AS reason,
    (e.body ->> 'template'::text) AS template,
    ((e.body -> 'rules'::text))::jsonb AS rules,
    ((e.body ->> 'confidence'::text))::double precision AS confidence,
    (e.body ->> 'prompt_hash'::text) AS prompt_hash,
    ((e.body ->> 'prompt_bytes'::text))::bigint AS prompt_bytes,
    (d.body ->> 'response_hash'::text) AS response_hash,
    ((d.body ->> 'response_bytes'::text))::bigint AS response_bytes,
    (d.body ->> 'pointer'::text) AS pointer,
    ((d.body ->> 'redactions'::text))::bigint AS redactions,
    ((d.body ->> 'duration_us'::text))::bigint AS duration_us,
    d.seq AS ended_seq,
    d.recorded_at AS ended_at,
    (e.body IS NULL) AS redacted
   FROM (((public.report_place p
     LEFT JOIN public.run r USING (log_no, run_no))
     JOIN public.event e USING (log_no, seq))
     LEFT JOIN ended d ON (((d.log_no = p.log_no) AND (d.id = (e.body ->> 'id'::text)) AND (p.type = 'cloud.asked'::text))))
  WHERE ((p.type = ANY (ARRAY['cloud.asked'::text, 'cloud.refused'::text])) AND
        CASE p.run_no
            WHEN 0 THEN (COALESCE(current_setting('muniment.runs'::text, true), ''::text) = ''::text)
            ELSE report.sees(r.run_id)
        END);
COMMENT ON VIEW report.cloud_report IS 'Questions to cloud services: those that left the machine, how each call ended, and those that were refused';
COMMENT ON COLUMN report.cloud_report.log_no IS 'Number of the log within this database';
COMMENT ON COLUMN report.cloud_report.run_id IS 'Run id; NULL outside a run';
COMMENT ON COLUMN report.cloud_report.step_id IS 'Step within the run';
COMMENT ON COLUMN report.cloud_report.seq IS 'seq of its cloud.asked or cloud.refused event';
COMMENT ON COLUMN report.cloud_report.recorded_at IS 'Time of the append, by the daemon''s clock; nothing left before it';
COMMENT ON COLUMN report.cloud_report.actor IS 'Authenticated identity that asked';
COMMENT ON COLUMN report.cloud_report.branch IS 'Parallel branch of the run that asked';
COMMENT ON COLUMN report.cloud_report.call_id IS 'Id of the call';
COMMENT ON COLUMN report.cloud_report.question_id IS 'Id of the question of ask';
COMMENT ON COLUMN report.cloud_report.provider IS 'Provider; command for a caller''s command';
COMMENT ON COLUMN report.cloud_report.model IS 'Requested model';
COMMENT ON COLUMN report.cloud_report.called_by IS 'daemon: the daemon''s child makes the call; caller: a command of the caller of ask';
COMMENT ON COLUMN report.cloud_report.status IS 'answered, failed, refused (nothing was sent), or unknown: no end is recorded; NULL once redacted';
COMMENT ON COLUMN report.cloud_report.reason IS 'Reason of a refusal or a failure';
COMMENT ON COLUMN report.cloud_report.template IS 'Template of the question that left; NULL: none was made';
COMMENT ON COLUMN report.cloud_report.rules IS 'Rules of the sanitiser that found something in the user''s question';
COMMENT ON COLUMN report.cloud_report.confidence IS 'Confidence of the local answer';
COMMENT ON COLUMN report.cloud_report.prompt_hash IS 'SHA-256 of the question that left; NULL: none was made';
COMMENT ON COLUMN report.cloud_report.prompt_bytes IS 'Size of that question in bytes';
COMMENT ON COLUMN report.cloud_report.response_hash IS 'SHA-256 of the received body';
COMMENT ON COLUMN report.cloud_report.response_bytes IS 'Size of the received body in bytes';
COMMENT ON COLUMN report.cloud_report.pointer IS 'Pointer to the stored reply, in the corpus cloud';
COMMENT ON COLUMN report.cloud_report.redactions IS 'Number of replacements in the stored reply';
COMMENT ON COLUMN report.cloud_report.duration_us IS 'Duration of the call in microseconds';
COMMENT ON COLUMN report.cloud_report.ended_seq IS 'seq of its cloud.answered or cloud.failed event';
COMMENT ON COLUMN report.cloud_report.ended_at IS 'Time at which the end of the call was appended';
COMMENT ON COLUMN report.cloud_report.redacted IS 'True if the event''s body was erased';
CREATE VIEW report.command_report WITH (security_barrier='true') AS
 SELECT s.log_no,
    r.run_id,
    s.step_id,
    s.key AS call_id,
    ((b.body -> 'argv'::text))::jsonb AS argv,
    (b.body ->> 'cwd'::text) AS cwd,
    (ARRAY['observed'::text, 'reported'::text, 'imported'::text])[s.origin] AS origin,
        CASE
            WHEN (s.ended_seq IS NOT NULL) THEN COALESCE(s.status, 'pending'::text)
            WHEN (EXISTS ( SELECT
               FROM public.report_erased_end x
              WHERE ((x.log_no = s.log_no) AND (x.run_no = s.run_no) AND (x.type = 'command.ended'::text) AND (x.seq > s.began_seq)))) THEN 'unknown'::text
            ELSE 'pending'::text
        END AS status,
    s.exit_code,
    s.reason AS signal,
    s.began_at AS started_at,
    COALESCE(LEAST((s.began_at + make_interval(secs => (((s.duration_us)::numeric / '1000000'::numeric))::double precision)), s.ended_at), s.ended_at) AS ended_at,
    COALESCE(s.duration_us, public.report_micros(s.began_at, s.ended_at)) AS duration_us,
    ((e.body #>> '{stdout,size_bytes}'::text[]))::bigint AS stdout_bytes,
    ((e.body #>> '{stdout,artifact_id}'::text[]))::uuid AS stdout_artifact_id,
    ((e.body #>> '{stderr,size_bytes}'::text[]))::bigint AS stderr_bytes,
    ((e.body #>> '{stderr,artifact_id}'::text[]))::uuid AS stderr_artifact_id,
    (b.body ->> 'tree_digest'::text) AS tree_before,
    (e.body ->> 'tree_digest'::text) AS tree_after,
    s.began_seq AS started_seq,
    s.ended_seq,
    (b.body #>> '{program,path}'::text[]) AS program,
    (b.body #>> '{program,own}'::text[]) AS own_program,
    (b.body #>> '{program,left_out}'::text[]) AS left_out
   FROM (((public.report_span_command s
     JOIN public.run r USING (log_no, run_no))
     LEFT JOIN public.event b ON (((b.log_no = s.log_no) AND (b.seq = s.began_seq))))
     LEFT JOIN public.event e ON (((e.log_no = s.log_no) AND (e.seq = s.ended_seq))))
  WHERE report.sees(r.run_id);
COMMENT ON VIEW report.command_report IS 'Commands run by muniment exec';
COMMENT ON COLUMN report.command_report.log_no IS 'Number of the log within this database';
COMMENT ON COLUMN report.command_report.run_id IS 'Run id';
COMMENT ON COLUMN report.command_report.step_id IS 'Step within the run';
COMMENT ON COLUMN report.command_report.call_id IS 'Id of the call';
COMMENT ON COLUMN report.command_report.argv IS 'The command and its arguments; NULL once redacted or archived';
COMMENT ON COLUMN report.command_report.cwd IS 'Working folder';
COMMENT ON COLUMN report.command_report.origin IS 'Source of the event: observed (daemon), reported (client) or imported';
COMMENT ON COLUMN report.command_report.status IS 'ok, error, interrupted; unknown: an end of a command of the run, possibly this one, was erased; pending: no end yet';
COMMENT ON COLUMN report.command_report.exit_code IS 'Exit code';
COMMENT ON COLUMN report.command_report.signal IS 'Signal that ended it';
COMMENT ON COLUMN report.command_report.started_at IS 'Time of its start';
COMMENT ON COLUMN report.command_report.ended_at IS 'Time of its end: start plus duration, otherwise the time at which its end was recorded';
COMMENT ON COLUMN report.command_report.duration_us IS 'Duration in microseconds, by the clock of the recorder; if the end event has none, the time between the records of start and end';
COMMENT ON COLUMN report.command_report.stdout_bytes IS 'Bytes of standard output that were stored; replaced secrets change the number';
COMMENT ON COLUMN report.command_report.stdout_artifact_id IS 'Artifact with the stored output';
COMMENT ON COLUMN report.command_report.stderr_bytes IS 'Bytes of standard error that were stored; replaced secrets change the number';
COMMENT ON COLUMN report.command_report.stderr_artifact_id IS 'Artifact with the stored output';
COMMENT ON COLUMN report.command_report.tree_before IS 'Digest of the working tree before the command';
COMMENT ON COLUMN report.command_report.tree_after IS 'Digest of the working tree after the command';
COMMENT ON COLUMN report.command_report.started_seq IS 'seq of its command.started event';
COMMENT ON COLUMN report.command_report.ended_seq IS 'seq of its command.ended event';
COMMENT ON COLUMN report.command_report.program IS 'Resolved path of the program; NULL: the command is no evidence, or once redacted';
COMMENT ON COLUMN report.command_report.own_program IS 'Reason why the agent may have made what ran; NULL: none was found';
COMMENT ON COLUMN report.command_report.left_out IS 'A file of tests that the command line leaves out; NULL: none was found';
CREATE VIEW report.cost_report WITH (security_barrier='true') AS
 WITH total AS MATERIALIZED (
         SELECT c_1.log_no,
            c_1.run_no,
            ((COALESCE(e.occurred_at, c_1.last_occurred_at, e.recorded_at) AT TIME ZONE 'UTC'::text))::date AS day,
                CASE
                    WHEN (c_1.currency IS NULL) THEN public.report_number((e.body #>> '{usage,cost,amount}'::text[]))
                    ELSE NULL::numeric
                END AS cost,
            (e.body #>> '{usage,cost,currency}'::text[]) AS currency,
                CASE
                    WHEN (c_1.input_tokens IS NULL) THEN public.report_number((e.body #>> '{usage,input_tokens}'::text[]))
                    ELSE NULL::numeric
                END AS input_tokens,
                CASE
                    WHEN (c_1.output_tokens IS NULL) THEN public.report_number((e.body #>> '{usage,output_tokens}'::text[]))
                    ELSE NULL::numeric
                END AS output_tokens,
                CASE
                    WHEN (c_1.cached_input_tokens IS NULL) THEN public.report_number((e.body #>> '{usage,cached_input_tokens}'::text[]))
                    ELSE NULL::numeric
                END AS cached_input_tokens
           FROM ((( SELECT report_place.log_no,
                    report_place.run_no,
                    max(report_place.seq) AS seq
                   FROM public.report_place
                  WHERE (report_place.type = 'run.ended'::text)
                  GROUP BY report_place.log_no, report_place.run_no) p_1
             JOIN public.report_run c_1 USING (log_no, run_no))
             JOIN public.event e ON (((e.log_no = p_1.log_no) AND (e.seq = p_1.seq))))
          WHERE ((e.body -> 'usage'::text) IS NOT NULL)
        ), part AS (
         SELECT s.log_no,
            s.run_no,
            ((COALESCE(s.began_at, s.ended_at) AT TIME ZONE 'UTC'::text))::date AS day,
            COALESCE(s.answered_by, s.name) AS model,
            COALESCE(s.currency, 'USD'::text) AS currency,
            count(*) AS calls,
            sum(s.input_tokens) AS input_tokens,
            sum(s.output_tokens) AS output_tokens,
            sum(s.cached_input_tokens) AS cached_input_tokens,
            sum(s.cost) AS recorded,
            sum(s.estimate) FILTER (WHERE (t.cost IS NULL)) AS estimated,
            min(s.price_list) FILTER (WHERE (t.cost IS NULL)) AS price_list,
            count(*) FILTER (WHERE ((t.cost IS NULL) AND (s.cost_basis IS NULL) AND (COALESCE(s.input_tokens, s.output_tokens) IS NOT NULL))) AS unpriced_calls
           FROM (public.report_model_span s
             LEFT JOIN total t USING (log_no, run_no))
          GROUP BY s.log_no, s.run_no, (((COALESCE(s.began_at, s.ended_at) AT TIME ZONE 'UTC'::text))::date), COALESCE(s.answered_by, s.name), COALESCE(s.currency, 'USD'::text)
        UNION ALL
         SELECT t.log_no,
            t.run_no,
            t.day,
            ( SELECT
                        CASE
                            WHEN (min(COALESCE(s.answered_by, s.name)) = max(COALESCE(s.answered_by, s.name))) THEN min(COALESCE(s.answered_by, s.name))
                            ELSE NULL::text
                        END AS "case"
                   FROM public.report_span_model s
                  WHERE ((s.log_no = t.log_no) AND (s.run_no = t.run_no))) AS "case",
            COALESCE(t.currency, 'USD'::text) AS "coalesce",
            0,
            t.input_tokens,
            t.output_tokens,
            t.cached_input_tokens,
            t.cost,
            NULL::numeric,
            NULL::text,
            0
           FROM total t
          WHERE (COALESCE(t.cost, t.input_tokens, t.output_tokens) IS NOT NULL)
        )
 SELECT p.log_no,
    r.run_id,
    COALESCE(p.day, ((COALESCE(c.last_occurred_at, r.started_at) AT TIME ZONE 'UTC'::text))::date) AS day,
    r.agent,
    r.owner,
    r.labels,
    (ARRAY['observed'::text, 'reported'::text, 'imported'::text])[r.origin] AS origin,
    p.model,
    p.calls,
    p.input_tokens,
    p.output_tokens,
    p.cached_input_tokens,
    p.recorded,
    p.estimated,
        CASE
            WHEN (COALESCE(p.recorded, p.estimated) IS NOT NULL) THEN p.currency
            ELSE NULL::text
        END AS currency,
    p.price_list,
    p.unpriced_calls
   FROM ((part p
     JOIN public.run r USING (log_no, run_no))
     LEFT JOIN public.report_run c USING (log_no, run_no))
  WHERE report.sees(r.run_id);
COMMENT ON VIEW report.cost_report IS 'Costs and tokens by run, day and model: recorded costs, and estimates by the current prices';
COMMENT ON COLUMN report.cost_report.log_no IS 'Number of the log within this database';
COMMENT ON COLUMN report.cost_report.run_id IS 'Run id';
COMMENT ON COLUMN report.cost_report.day IS 'Day of the calls in UTC; for an import, by the times of its source, otherwise the day of the import';
COMMENT ON COLUMN report.cost_report.agent IS 'Agent of the run';
COMMENT ON COLUMN report.cost_report.owner IS 'Identity that started the run';
COMMENT ON COLUMN report.cost_report.labels IS 'Labels of the run';
COMMENT ON COLUMN report.cost_report.origin IS 'Source of the run: observed, reported or imported';
COMMENT ON COLUMN report.cost_report.model IS 'Model that answered, otherwise the requested one; NULL for the totals of a run with several models';
COMMENT ON COLUMN report.cost_report.calls IS 'Number of model calls; 0 for totals that the source gives only for the whole run';
COMMENT ON COLUMN report.cost_report.input_tokens IS 'Tokens read by the model; NULL if unknown';
COMMENT ON COLUMN report.cost_report.output_tokens IS 'Tokens written by the model; NULL if unknown';
COMMENT ON COLUMN report.cost_report.cached_input_tokens IS 'Input tokens from the provider''s cache; NULL if unknown';
COMMENT ON COLUMN report.cost_report.recorded IS 'Recorded cost; NULL if none is recorded';
COMMENT ON COLUMN report.cost_report.estimated IS 'Cost in USD that is estimated by the current prices, of calls without a recorded one; NULL if nothing is estimated';
COMMENT ON COLUMN report.cost_report.currency IS 'Currency of both costs; NULL without a cost';
COMMENT ON COLUMN report.cost_report.price_list IS 'Version of the prices of the estimate (report.price)';
COMMENT ON COLUMN report.cost_report.unpriced_calls IS 'Number of calls with tokens, but with neither a recorded cost nor a price';
CREATE VIEW report.document_report WITH (security_barrier='true') AS
 SELECT d.log_no,
    d.corpus,
    d.document,
    d.title,
    d.revision,
    h.revisions,
    COALESCE(d.ended_by, 'current'::text) AS status,
    d.trust,
    d.source,
    d.source_url,
    d.mime_type,
    d.tags,
    d.size_bytes,
    d.chunks,
    d.document_time,
    h.first_recorded_at,
    d.recorded_at,
    COALESCE(a.answers, (0)::bigint) AS answers,
    COALESCE(u.recalls, (0)::bigint) AS recalls,
    COALESCE(u.citations, (0)::bigint) AS citations,
    GREATEST(a.last_seq, u.last_seq) AS last_used_seq,
    d.seq,
    ( SELECT ((e.body ->> 'expires_at'::text))::timestamp with time zone AS timestamptz
           FROM public.event e
          WHERE ((e.log_no = d.log_no) AND (e.seq = d.seq))) AS expires_at,
    ( SELECT ((e.body ->> 'review_at'::text))::timestamp with time zone AS timestamptz
           FROM public.event e
          WHERE ((e.log_no = d.log_no) AND (e.seq = d.seq))) AS review_at
   FROM (((( SELECT DISTINCT ON (document.log_no, document.corpus, document.document) document.log_no,
            document.seq,
            document.corpus,
            document.document,
            document.revision,
            document.hash,
            document.artifact_id,
            document.start_byte,
            document.size_bytes,
            document.text_artifact_id,
            document.mime_type,
            document.format,
            document.language,
            document.title,
            document.tags,
            document.source,
            document.sources,
            document.source_url,
            document.trust,
            document.document_time,
            document.recorded_at,
            document.chunker,
            document.first_chunk,
            document.chunks,
            document.valid_to,
            document.ended_by,
            document.removed_at,
            document.owner,
            document.origin
           FROM public.document
          ORDER BY document.log_no, document.corpus, document.document, document.seq DESC) d
     JOIN ( SELECT document.log_no,
            document.corpus,
            document.document,
            count(*) AS revisions,
            min(document.recorded_at) AS first_recorded_at
           FROM public.document
          GROUP BY document.log_no, document.corpus, document.document) h USING (log_no, corpus, document))
     LEFT JOIN ( SELECT pointer.log_no,
            pointer.corpus,
            pointer.document,
            count(DISTINCT pointer.needed_id) FILTER (WHERE (pointer.needed_by = 'manifest'::text)) AS recalls,
            count(DISTINCT pointer.needed_id) FILTER (WHERE (pointer.needed_by <> 'manifest'::text)) AS citations,
            max(pointer.seq) AS last_seq
           FROM public.pointer
          WHERE (pointer.corpus IS NOT NULL)
          GROUP BY pointer.log_no, pointer.corpus, pointer.document) u USING (log_no, corpus, document))
     LEFT JOIN ( SELECT p.log_no,
            "substring"(c.card, '^ev://([^/]*)/'::text) AS corpus,
            public.pointer_document(c.card) AS document,
            count(DISTINCT p.seq) AS answers,
            max(p.seq) AS last_seq
           FROM ((public.report_place p
             JOIN public.event e USING (log_no, seq))
             CROSS JOIN LATERAL ( SELECT (x.value ->> 'id'::text) AS card
                   FROM json_array_elements((e.body -> 'cards'::text)) x(value)) c)
          WHERE (p.type = 'retrieval.answered'::text)
          GROUP BY p.log_no, ("substring"(c.card, '^ev://([^/]*)/'::text)), (public.pointer_document(c.card))) a USING (log_no, corpus, document))
  WHERE (COALESCE(current_setting('muniment.runs'::text, true), ''::text) = ''::text);
COMMENT ON VIEW report.document_report IS 'Documents of corpora in their newest revision, memories among them, and how often they were found, recalled and cited; shown to users who see all runs';
COMMENT ON COLUMN report.document_report.log_no IS 'Number of the log within this database';
COMMENT ON COLUMN report.document_report.corpus IS 'Corpus: memory has what was remembered, run has the texts of runs';
COMMENT ON COLUMN report.document_report.document IS 'Name of the document within its corpus';
COMMENT ON COLUMN report.document_report.title IS 'Title';
COMMENT ON COLUMN report.document_report.revision IS 'Newest revision';
COMMENT ON COLUMN report.document_report.revisions IS 'Number of revisions';
COMMENT ON COLUMN report.document_report.status IS 'current, or how the newest revision ended: retracted, revoked or erased';
COMMENT ON COLUMN report.document_report.trust IS 'Level of trust';
COMMENT ON COLUMN report.document_report.source IS 'Source of the newest revision';
COMMENT ON COLUMN report.document_report.source_url IS 'Address of the source';
COMMENT ON COLUMN report.document_report.mime_type IS 'MIME type';
COMMENT ON COLUMN report.document_report.tags IS 'Tags';
COMMENT ON COLUMN report.document_report.size_bytes IS 'Size in bytes';
COMMENT ON COLUMN report.document_report.chunks IS 'Number of passages';
COMMENT ON COLUMN report.document_report.document_time IS 'Time of the document, as its source states';
COMMENT ON COLUMN report.document_report.first_recorded_at IS 'Time at which the first revision was recorded';
COMMENT ON COLUMN report.document_report.recorded_at IS 'Time at which the newest revision was recorded';
COMMENT ON COLUMN report.document_report.answers IS 'Number of queries that found a passage of it';
COMMENT ON COLUMN report.document_report.recalls IS 'Number of context packs and other manifests with a passage of it';
COMMENT ON COLUMN report.document_report.citations IS 'Number of claims and pieces of evidence that point to it';
COMMENT ON COLUMN report.document_report.last_used_seq IS 'seq of the newest of these uses; NULL: none';
COMMENT ON COLUMN report.document_report.seq IS 'seq of the document.revised event of the newest revision';
COMMENT ON COLUMN report.document_report.expires_at IS 'Time from which queries do not find it; NULL: no limit';
COMMENT ON COLUMN report.document_report.review_at IS 'Time at which it is to be checked; NULL: none';
CREATE VIEW report.error_report WITH (security_barrier='true') AS
 SELECT x.log_no,
    x.run_id,
    x.step_id,
    x.seq,
    x.recorded_at,
    (ARRAY['observed'::text, 'reported'::text, 'imported'::text])[x.origin_no] AS origin,
    x.kind,
    x.name,
    x.call_id,
    x.status,
    x.error_type,
    x.message,
    x.exit_code,
    x.retryable
   FROM ( SELECT p.log_no,
            r.run_id,
            e.step_id,
            p.seq,
            e.recorded_at,
            e.origin AS origin_no,
                CASE p.type
                    WHEN 'run.halted'::text THEN 'halt'::text
                    ELSE 'raised'::text
                END AS kind,
            NULL::text AS name,
            (e.body ->> 'call_id'::text) AS call_id,
            'error'::text AS status,
            COALESCE((e.body ->> 'error_type'::text), (e.body ->> 'code'::text)) AS error_type,
            COALESCE((e.body ->> 'message'::text), (e.body ->> 'reason'::text)) AS message,
            NULL::bigint AS exit_code,
            ((e.body ->> 'retryable'::text))::boolean AS retryable
           FROM ((public.report_place p
             JOIN public.run r USING (log_no, run_no))
             JOIN public.event e USING (log_no, seq))
          WHERE (report.sees(r.run_id) AND (p.type = ANY (ARRAY['error.raised'::text, 'run.halted'::text])))
        UNION ALL
         SELECT s.log_no,
            r.run_id,
                CASE s.kind
                    WHEN 'step'::text THEN s.key
                    ELSE s.step_id
                END AS step_id,
            s.ended_seq,
            e.recorded_at,
            s.origin,
            s.kind,
            s.name,
                CASE
                    WHEN (s.kind <> 'step'::text) THEN s.key
                    ELSE NULL::text
                END AS "case",
            s.status,
            s.reason,
            (e.body #>> '{error,message}'::text[]),
            s.exit_code,
            NULL::boolean
           FROM ((public.report_span s
             JOIN public.run r USING (log_no, run_no))
             JOIN public.event e ON (((e.log_no = s.log_no) AND (e.seq = s.ended_seq))))
          WHERE (report.sees(r.run_id) AND public.report_failed(s.status))) x;
COMMENT ON VIEW report.error_report IS 'Failures in runs: errors raised, failed calls, steps and commands, and halts';
COMMENT ON COLUMN report.error_report.log_no IS 'Number of the log within this database';
COMMENT ON COLUMN report.error_report.run_id IS 'Run id';
COMMENT ON COLUMN report.error_report.step_id IS 'Step within the run';
COMMENT ON COLUMN report.error_report.seq IS 'Position of the event in the log';
COMMENT ON COLUMN report.error_report.recorded_at IS 'Time of the append, by the daemon''s clock';
COMMENT ON COLUMN report.error_report.origin IS 'Source of the event: observed (daemon), reported (client) or imported';
COMMENT ON COLUMN report.error_report.kind IS 'raised, halt, or the kind that failed: model, tool, step, command';
COMMENT ON COLUMN report.error_report.name IS 'Name of the model, tool or step';
COMMENT ON COLUMN report.error_report.call_id IS 'Call id; NULL if it was not a call';
COMMENT ON COLUMN report.error_report.status IS 'Status of the end: error, denied, timeout, cancelled, interrupted';
COMMENT ON COLUMN report.error_report.error_type IS 'Type of the error, the signal, or the code of the halt';
COMMENT ON COLUMN report.error_report.message IS 'Message from the log; NULL once redacted or archived';
COMMENT ON COLUMN report.error_report.exit_code IS 'Exit code of a command, or of a tool that is a command';
COMMENT ON COLUMN report.error_report.retryable IS 'True if the error is marked as retryable';
CREATE VIEW report.event_log WITH (security_barrier='true') AS
 SELECT e.log_no,
    e.seq,
    r.run_id,
    e.run_seq,
    e.recorded_at,
    e.occurred_at,
    (ARRAY['observed'::text, 'reported'::text, 'imported'::text])[e.origin] AS origin,
    e.type,
    e.schema_version,
    e.step_id,
    e.actor,
    e.event_id,
    (e.salt IS NULL) AS redacted,
    (e.body)::jsonb AS body,
    ((e.salt IS NOT NULL) AND (e.body IS NULL)) AS archived
   FROM (public.event e
     JOIN public.run r USING (log_no, run_no))
  WHERE report.sees(r.run_id);
COMMENT ON VIEW report.event_log IS 'Events of runs in order of seq, without those of the whole log. A run appears once the follower "run" has processed it';
COMMENT ON COLUMN report.event_log.log_no IS 'Number of the log within this database';
COMMENT ON COLUMN report.event_log.seq IS 'Position in the log, from 0; it is the leaf index of proofs';
COMMENT ON COLUMN report.event_log.run_id IS 'Run of the event';
COMMENT ON COLUMN report.event_log.run_seq IS 'Position in the run, from 0';
COMMENT ON COLUMN report.event_log.recorded_at IS 'Time of the append, by the daemon''s clock';
COMMENT ON COLUMN report.event_log.occurred_at IS 'Time given by the client or the source; not used for order';
COMMENT ON COLUMN report.event_log.origin IS 'Source of the event: observed (daemon), reported (client) or imported';
COMMENT ON COLUMN report.event_log.type IS 'Noun.participle, as in schema/event/';
COMMENT ON COLUMN report.event_log.schema_version IS 'Version of the type''s schema';
COMMENT ON COLUMN report.event_log.step_id IS 'Step within the run';
COMMENT ON COLUMN report.event_log.actor IS 'Authenticated identity that appended it';
COMMENT ON COLUMN report.event_log.event_id IS 'Event id given by the client, unique within the run';
COMMENT ON COLUMN report.event_log.redacted IS 'True if the body was erased; its hash remains';
COMMENT ON COLUMN report.event_log.body IS 'Body of the event; NULL once redacted or archived';
COMMENT ON COLUMN report.event_log.archived IS 'True if the body is in the archive; event.get and event.list of the daemon read it';
CREATE VIEW report.evidence_report WITH (security_barrier='true') AS
 SELECT v.log_no,
    v.run_id,
    e.step_id,
    v.evidence_id,
    v.type,
    v.task_id,
    u.run_id AS completed_run_id,
    u.task_id AS completed_task_id,
    v.actor,
    v.validator_id,
    v.command_id,
    (e.body #>> '{attestation,key}'::text[]) AS attestation_key,
    v.pointer,
    (v.content)::jsonb AS content,
        CASE
            WHEN (e.body IS NOT NULL) THEN v.hash
            ELSE NULL::text
        END AS hash,
    (v.created_at + make_interval(secs => (((e.body ->> 'expires_in_seconds'::text))::integer)::double precision)) AS expires_at,
    ((e.body -> 'depends_on'::text))::jsonb AS depends_on,
    (e.body IS NULL) AS redacted,
    v.created_at AS recorded_at,
    v.seq,
    ((e.body -> 'artifacts'::text))::jsonb AS artifacts,
        CASE
            WHEN ((v.command_id IS NOT NULL) AND (e.body IS NOT NULL)) THEN COALESCE((((v.content)::jsonb #>> '{command,observed}'::text[]))::boolean, false)
            ELSE NULL::boolean
        END AS observed,
        CASE
            WHEN (v.command_id IS NOT NULL) THEN ((v.content)::jsonb #>> '{command,program,own}'::text[])
            ELSE NULL::text
        END AS own_program,
        CASE
            WHEN (v.command_id IS NOT NULL) THEN ((v.content)::jsonb #>> '{command,program,left_out}'::text[])
            ELSE NULL::text
        END AS left_out
   FROM (((public.evidence v
     JOIN public.run r USING (log_no, run_id))
     JOIN public.event e ON (((e.log_no = v.log_no) AND (e.seq = v.seq))))
     LEFT JOIN public.task_evidence u ON (((u.log_no = v.log_no) AND (u.evidence_seq = v.seq) AND report.sees(u.run_id))))
  WHERE report.sees(r.run_id);
COMMENT ON VIEW report.evidence_report IS 'Evidence of runs, and the tasks that it completed';
COMMENT ON COLUMN report.evidence_report.log_no IS 'Number of the log within this database';
COMMENT ON COLUMN report.evidence_report.run_id IS 'Run that recorded it';
COMMENT ON COLUMN report.evidence_report.step_id IS 'Step within the run';
COMMENT ON COLUMN report.evidence_report.evidence_id IS 'Id of the evidence; the same pointer has the same id in all runs';
COMMENT ON COLUMN report.evidence_report.type IS 'Type of the evidence; empty once redacted';
COMMENT ON COLUMN report.evidence_report.task_id IS 'Task of the run that it was recorded for';
COMMENT ON COLUMN report.evidence_report.completed_run_id IS 'Run of the task that it completed';
COMMENT ON COLUMN report.evidence_report.completed_task_id IS 'Task that it completed; NULL: none';
COMMENT ON COLUMN report.evidence_report.actor IS 'Actor that recorded it';
COMMENT ON COLUMN report.evidence_report.validator_id IS 'Name of the validator, given by the client';
COMMENT ON COLUMN report.evidence_report.command_id IS 'Recorded command (command_report) from which the daemon made the content; NULL: a client wrote the content';
COMMENT ON COLUMN report.evidence_report.attestation_key IS 'Trusted key of the attestation from which the daemon made the content';
COMMENT ON COLUMN report.evidence_report.pointer IS 'Pointer to the evidence; NULL if it is content';
COMMENT ON COLUMN report.evidence_report.content IS 'Content of the evidence; NULL if it is a pointer, empty once redacted';
COMMENT ON COLUMN report.evidence_report.hash IS 'SHA-256 of the content''s text, or of the pointer''s target when recorded; NULL once redacted';
COMMENT ON COLUMN report.evidence_report.expires_at IS 'Time from which it is stale; NULL: never';
COMMENT ON COLUMN report.evidence_report.depends_on IS 'Ids of evidence that must be intact and fresh for it to count';
COMMENT ON COLUMN report.evidence_report.redacted IS 'True if the event was erased';
COMMENT ON COLUMN report.evidence_report.recorded_at IS 'Time of the event';
COMMENT ON COLUMN report.evidence_report.seq IS 'seq of its evidence.recorded event';
COMMENT ON COLUMN report.evidence_report.artifacts IS 'Ids of the artifacts on which it rests: the output and report of its command, and those that the recorder named';
COMMENT ON COLUMN report.evidence_report.observed IS 'True if the daemon started the command, false if a client reported it; NULL: no command, or once redacted';
COMMENT ON COLUMN report.evidence_report.own_program IS 'Why the program of its command is the agent''s own; NULL: it is not, no command, or once redacted';
COMMENT ON COLUMN report.evidence_report.left_out IS 'A file of tests that the command line leaves out; NULL: none was found, no command, or once redacted';
CREATE VIEW report.feedback_report WITH (security_barrier='true') AS
 SELECT p.log_no,
    r.run_id,
    e.step_id,
    p.seq,
    e.recorded_at,
    e.actor,
    (e.body ->> 'target'::text) AS target,
    (e.body ->> 'name'::text) AS name,
    ((e.body -> 'value'::text))::jsonb AS value,
        CASE
            WHEN (json_typeof((e.body -> 'value'::text)) = 'number'::text) THEN ((e.body ->> 'value'::text))::numeric
            ELSE NULL::numeric
        END AS score,
    (e.body ->> 'by'::text) AS given_by,
    (e.body ->> 'comment'::text) AS comment
   FROM ((public.report_place p
     LEFT JOIN public.run r USING (log_no, run_no))
     JOIN public.event e USING (log_no, seq))
  WHERE (
        CASE p.run_no
            WHEN 0 THEN (COALESCE(current_setting('muniment.runs'::text, true), ''::text) = ''::text)
            ELSE report.sees(r.run_id)
        END AND (p.type = 'feedback.recorded'::text));
COMMENT ON VIEW report.feedback_report IS 'Scores given to runs, events and passages';
COMMENT ON COLUMN report.feedback_report.log_no IS 'Number of the log within this database';
COMMENT ON COLUMN report.feedback_report.run_id IS 'Run id; NULL for a score of a passage outside a run';
COMMENT ON COLUMN report.feedback_report.step_id IS 'Step within the run';
COMMENT ON COLUMN report.feedback_report.seq IS 'Position of the event in the log';
COMMENT ON COLUMN report.feedback_report.recorded_at IS 'Time of the append, by the daemon''s clock';
COMMENT ON COLUMN report.feedback_report.actor IS 'Authenticated identity that appended it';
COMMENT ON COLUMN report.feedback_report.target IS 'Pointer to the scored object; NULL once redacted';
COMMENT ON COLUMN report.feedback_report.name IS 'Name of the score';
COMMENT ON COLUMN report.feedback_report.value IS 'Value as given';
COMMENT ON COLUMN report.feedback_report.score IS 'Value as a number; NULL if it is not one';
COMMENT ON COLUMN report.feedback_report.given_by IS 'Kind of the giver: human, model or code';
COMMENT ON COLUMN report.feedback_report.comment IS 'Reason';
CREATE VIEW report.file_report WITH (security_barrier='true') AS
 SELECT p.log_no,
    r.run_id,
    e.step_id,
    p.seq,
    e.recorded_at,
    e.occurred_at,
    (ARRAY['observed'::text, 'reported'::text, 'imported'::text])[e.origin] AS origin,
    e.actor,
    (e.body ->> 'path'::text) AS path,
        CASE p.type
            WHEN 'file.read'::text THEN 'read'::text
            ELSE (e.body ->> 'change'::text)
        END AS change,
    (e.body ->> 'from_path'::text) AS from_path,
    COALESCE((e.body ->> 'before_hash'::text), (e.body ->> 'hash'::text)) AS before_hash,
    (e.body ->> 'after_hash'::text) AS after_hash,
    (e.body ->> 'call_id'::text) AS call_id
   FROM ((public.report_place p
     JOIN public.run r USING (log_no, run_no))
     JOIN public.event e USING (log_no, seq))
  WHERE (report.sees(r.run_id) AND (p.type = ANY (ARRAY['file.read'::text, 'file.changed'::text])));
COMMENT ON VIEW report.file_report IS 'Files that runs report to have read or changed';
COMMENT ON COLUMN report.file_report.log_no IS 'Number of the log within this database';
COMMENT ON COLUMN report.file_report.run_id IS 'Run id';
COMMENT ON COLUMN report.file_report.step_id IS 'Step within the run';
COMMENT ON COLUMN report.file_report.seq IS 'Position of the event in the log';
COMMENT ON COLUMN report.file_report.recorded_at IS 'Time of the append, by the daemon''s clock';
COMMENT ON COLUMN report.file_report.occurred_at IS 'Time given by the client or the source; not used for order';
COMMENT ON COLUMN report.file_report.origin IS 'Source of the event: observed (daemon), reported (client) or imported';
COMMENT ON COLUMN report.file_report.actor IS 'Authenticated identity that appended it';
COMMENT ON COLUMN report.file_report.path IS 'Path of the file; NULL once redacted or archived';
COMMENT ON COLUMN report.file_report.change IS 'read, created, modified, renamed or deleted';
COMMENT ON COLUMN report.file_report.from_path IS 'Path of a renamed file before';
COMMENT ON COLUMN report.file_report.before_hash IS 'SHA-256 of the bytes before the change, or of the bytes read';
COMMENT ON COLUMN report.file_report.after_hash IS 'SHA-256 of the bytes after the change';
COMMENT ON COLUMN report.file_report.call_id IS 'Call that made the change';
CREATE VIEW report.lag WITH (security_barrier='true') AS
 SELECT h.log_no,
    n.name AS follower,
    e.next_seq AS log_next_seq,
    COALESCE(f.next_seq, (0)::bigint) AS follower_next_seq,
    GREATEST((e.next_seq - COALESCE(f.next_seq, (0)::bigint)), (0)::bigint) AS events_behind,
    ( SELECT u.recorded_at
           FROM public.event u
          WHERE ((u.log_no = h.log_no) AND (u.seq = COALESCE(f.next_seq, (0)::bigint)))) AS oldest_unseen_at
   FROM (((public.log_head h
     CROSS JOIN ( VALUES ('run'::text), ('report'::text)) n(name))
     CROSS JOIN LATERAL ( SELECT COALESCE(( SELECT (event.seq + 1)
                   FROM public.event
                  WHERE (event.log_no = h.log_no)
                  ORDER BY event.seq DESC
                 LIMIT 1), (0)::bigint) AS next_seq) e)
     LEFT JOIN public.follower f ON (((f.log_no = h.log_no) AND (f.name = n.name))));
COMMENT ON VIEW report.lag IS 'Number of events that the views are behind each log: one row per follower';
COMMENT ON COLUMN report.lag.log_no IS 'Number of the log within this database';
COMMENT ON COLUMN report.lag.follower IS 'Follower: run (runs and their status) or report (all else)';
COMMENT ON COLUMN report.lag.log_next_seq IS 'seq of the log''s next event';
COMMENT ON COLUMN report.lag.follower_next_seq IS 'First seq that the follower has not processed';
COMMENT ON COLUMN report.lag.events_behind IS 'Number of events that the follower has not processed';
COMMENT ON COLUMN report.lag.oldest_unseen_at IS 'Time of the oldest event that the follower has not processed; NULL if there is none';
CREATE VIEW report.model_call WITH (security_barrier='true') AS
 SELECT s.log_no,
    r.run_id,
    s.step_id,
    s.key AS call_id,
    s.name AS model,
    s.answered_by AS answered_model,
    s.via AS provider,
    s.sort AS operation,
    (ARRAY['observed'::text, 'reported'::text, 'imported'::text])[s.origin] AS origin,
    s.attempt,
        CASE
            WHEN (s.ended_seq IS NOT NULL) THEN COALESCE(s.status, 'pending'::text)
            WHEN (EXISTS ( SELECT
               FROM public.report_erased_end x
              WHERE ((x.log_no = s.log_no) AND (x.run_no = s.run_no) AND (x.type = 'model.answered'::text) AND (x.seq > s.began_seq)))) THEN 'unknown'::text
            ELSE 'pending'::text
        END AS status,
        CASE
            WHEN (s.status = 'ok'::text) THEN s.reason
            ELSE NULL::text
        END AS finish_reason,
        CASE
            WHEN (s.status <> 'ok'::text) THEN s.reason
            ELSE NULL::text
        END AS error_type,
    s.began_at AS called_at,
    s.ended_at AS answered_at,
    COALESCE(s.duration_us, public.report_micros(s.began_at, s.ended_at)) AS duration_us,
    s.first_token_us,
    s.input_tokens,
    s.output_tokens,
    s.cached_input_tokens,
    s.cache_write_tokens,
    s.reasoning_tokens,
    COALESCE(s.cost, s.estimate) AS cost,
    COALESCE(s.currency,
        CASE
            WHEN (s.estimate IS NOT NULL) THEN 'USD'::text
            ELSE NULL::text
        END) AS currency,
    s.began_seq AS called_seq,
    s.ended_seq AS answered_seq,
    s.cost_basis
   FROM (public.report_model_span s
     JOIN public.run r USING (log_no, run_no))
  WHERE report.sees(r.run_id);
COMMENT ON VIEW report.model_call IS 'Model calls, each with its answer';
COMMENT ON COLUMN report.model_call.log_no IS 'Number of the log within this database';
COMMENT ON COLUMN report.model_call.run_id IS 'Run id';
COMMENT ON COLUMN report.model_call.step_id IS 'Step within the run';
COMMENT ON COLUMN report.model_call.call_id IS 'Id of the call';
COMMENT ON COLUMN report.model_call.model IS 'Requested model';
COMMENT ON COLUMN report.model_call.answered_model IS 'Model named in the answer';
COMMENT ON COLUMN report.model_call.provider IS 'Provider of the model';
COMMENT ON COLUMN report.model_call.operation IS 'chat, embeddings, …';
COMMENT ON COLUMN report.model_call.origin IS 'Source of the event: observed (daemon), reported (client) or imported';
COMMENT ON COLUMN report.model_call.attempt IS 'Attempt number of the call, from 1';
COMMENT ON COLUMN report.model_call.status IS 'ok, error, denied, timeout, cancelled, interrupted; unknown: the end is not recorded, or an answer of the run, possibly this one, was erased; pending: no end yet';
COMMENT ON COLUMN report.model_call.finish_reason IS 'First reason for the end of the answer';
COMMENT ON COLUMN report.model_call.error_type IS 'Type of the error; NULL without an error';
COMMENT ON COLUMN report.model_call.called_at IS 'Time of the call; NULL if an imported event has none';
COMMENT ON COLUMN report.model_call.answered_at IS 'Time of the answer';
COMMENT ON COLUMN report.model_call.duration_us IS 'Duration in microseconds, as given by the end event, otherwise from beginning to end';
COMMENT ON COLUMN report.model_call.first_token_us IS 'Time to the first token in microseconds';
COMMENT ON COLUMN report.model_call.input_tokens IS 'Input tokens';
COMMENT ON COLUMN report.model_call.output_tokens IS 'Output tokens';
COMMENT ON COLUMN report.model_call.cached_input_tokens IS 'Input tokens read from the provider''s cache';
COMMENT ON COLUMN report.model_call.cache_write_tokens IS 'Tokens written to the provider''s cache';
COMMENT ON COLUMN report.model_call.reasoning_tokens IS 'Output tokens used for reasoning';
COMMENT ON COLUMN report.model_call.cost IS 'Recorded cost, otherwise the estimate by the current prices; NULL if unknown';
COMMENT ON COLUMN report.model_call.currency IS 'Currency of cost';
COMMENT ON COLUMN report.model_call.called_seq IS 'seq of its model.called event';
COMMENT ON COLUMN report.model_call.answered_seq IS 'seq of its model.answered event';
COMMENT ON COLUMN report.model_call.cost_basis IS 'recorded, or "prices" and the version of the price list (report.price); NULL without a cost';
CREATE VIEW report.price WITH (security_barrier='true') AS
 SELECT p.version,
    p.model,
    p.input,
    p.output,
    p.cached_input,
    p.cache_write,
    p.current,
    p.list_date
   FROM public.report_price p;
COMMENT ON VIEW report.price IS 'Prices of models by which costs are estimated: the current list, and earlier ones';
COMMENT ON COLUMN report.price.version IS 'Version of the list: the first 12 digits of its SHA-256';
COMMENT ON COLUMN report.price.model IS 'Name of the model';
COMMENT ON COLUMN report.price.input IS 'USD per million input tokens that are neither read from the cache nor written to it';
COMMENT ON COLUMN report.price.output IS 'USD per million output tokens';
COMMENT ON COLUMN report.price.cached_input IS 'USD per million input tokens read from the provider''s cache';
COMMENT ON COLUMN report.price.cache_write IS 'USD per million input tokens written to the provider''s cache';
COMMENT ON COLUMN report.price.current IS 'True for the list that the daemon uses';
COMMENT ON COLUMN report.price.list_date IS 'Date of the price list; NULL if only the setting prices names prices';
CREATE VIEW report.recall_report WITH (security_barrier='true') AS
 SELECT p.log_no,
    r.run_id,
    e.step_id,
    p.seq,
    e.recorded_at,
    e.actor,
    (e.body ->> 'branch'::text) AS branch,
    COALESCE((e.body #>> '{queries,0,query}'::text[]), (m.manifest #>> '{queries,0,query}'::text[])) AS question,
    (COALESCE((e.body -> 'queries'::text), (m.manifest -> 'queries'::text)))::jsonb AS questions,
    json_array_length((m.manifest -> 'passages'::text)) AS passages,
    jsonb_path_query_array(((m.manifest -> 'passages'::text))::jsonb, '$[*]."pointer"'::jsonpath) AS pointers,
    ((m.manifest ->> 'left_out_count'::text))::integer AS left_out,
    ((e.body ->> 'manifest_id'::text))::uuid AS manifest_id,
    ((e.body ->> 'budget'::text))::bigint AS budget,
    ((e.body ->> 'used'::text))::bigint AS used,
        CASE p.type
            WHEN 'context.built'::text THEN COALESCE((e.body ->> 'unit'::text), 'tokens'::text)
            ELSE NULL::text
        END AS unit,
    ((e.body ->> 'duration_us'::text))::bigint AS duration_us,
    (e.body IS NULL) AS redacted,
    p.type,
    (e.body ->> 'answer'::text) AS answer,
    ((e.body ->> 'confidence'::text))::double precision AS confidence
   FROM (((public.report_place p
     LEFT JOIN public.run r USING (log_no, run_no))
     JOIN public.event e USING (log_no, seq))
     LEFT JOIN public.manifest m ON ((m.manifest_id = ((e.body ->> 'manifest_id'::text))::uuid)))
  WHERE ((p.type = ANY (ARRAY['context.built'::text, 'question.answered'::text])) AND
        CASE p.run_no
            WHEN 0 THEN (COALESCE(current_setting('muniment.runs'::text, true), ''::text) = ''::text)
            ELSE report.sees(r.run_id)
        END);
COMMENT ON VIEW report.recall_report IS 'Context packs that were built and answers to questions: what a run recalled';
COMMENT ON COLUMN report.recall_report.log_no IS 'Number of the log within this database';
COMMENT ON COLUMN report.recall_report.run_id IS 'Run id; NULL outside a run';
COMMENT ON COLUMN report.recall_report.step_id IS 'Step within the run';
COMMENT ON COLUMN report.recall_report.seq IS 'seq of its context.built or question.answered event';
COMMENT ON COLUMN report.recall_report.recorded_at IS 'Time of the append, by the daemon''s clock';
COMMENT ON COLUMN report.recall_report.actor IS 'Authenticated identity that asked';
COMMENT ON COLUMN report.recall_report.branch IS 'Parallel branch of the run that asked';
COMMENT ON COLUMN report.recall_report.question IS 'Question, or the first of several; NULL once redacted';
COMMENT ON COLUMN report.recall_report.questions IS 'All questions, with their corpora';
COMMENT ON COLUMN report.recall_report.passages IS 'Number of passages in the pack; NULL once its manifest was redacted';
COMMENT ON COLUMN report.recall_report.pointers IS 'Pointers to these passages, in the order of the pack';
COMMENT ON COLUMN report.recall_report.left_out IS 'Number of passages that were found and left out';
COMMENT ON COLUMN report.recall_report.manifest_id IS 'Manifest with the passages, their hashes and scores, and the reasons for leaving others out';
COMMENT ON COLUMN report.recall_report.budget IS 'Largest size of the pack';
COMMENT ON COLUMN report.recall_report.used IS 'Size of the pack';
COMMENT ON COLUMN report.recall_report.unit IS 'Unit of budget and used: tokens or bytes';
COMMENT ON COLUMN report.recall_report.duration_us IS 'Duration in microseconds';
COMMENT ON COLUMN report.recall_report.redacted IS 'True if the event was erased';
COMMENT ON COLUMN report.recall_report.type IS 'Type of the event: context.built or question.answered';
COMMENT ON COLUMN report.recall_report.answer IS 'Answer to the question; NULL for a context pack, or once redacted';
COMMENT ON COLUMN report.recall_report.confidence IS 'Probability that the evidence holds the answer; NULL for a context pack, or once redacted';
CREATE VIEW report.retrieval_report WITH (security_barrier='true') AS
 SELECT p.log_no,
    COALESCE(r.run_id, (e.body ->> 'run_id'::text)) AS run_id,
    e.step_id,
    p.seq,
    e.recorded_at,
    e.actor,
    COALESCE((e.body #>> '{queries,0,query}'::text[]), (m.manifest #>> '{queries,0,query}'::text[])) AS query,
    COALESCE(json_array_length((e.body -> 'queries'::text)), json_array_length((m.manifest -> 'queries'::text))) AS queries,
    ((e.body -> 'corpora'::text))::jsonb AS corpora,
    COALESCE((e.body ->> 'profile'::text), (m.manifest ->> 'profile'::text)) AS profile,
    COALESCE(json_array_length((e.body -> 'cards'::text)), json_array_length((m.manifest -> 'passages'::text))) AS cards,
    COALESCE(((e.body #>> '{cards,0,score}'::text[]))::double precision, ((m.manifest #>> '{passages,0,score}'::text[]))::double precision) AS best_score,
    ((e.body -> 'degraded'::text))::jsonb AS degraded,
    (e.body ->> 'cache'::text) AS cache,
    COALESCE(((e.body ->> 'watermark'::text))::bigint, ((m.manifest ->> 'watermark'::text))::bigint) AS watermark,
    ((e.body ->> 'duration_us'::text))::bigint AS duration_us,
    p.type,
    (e.body ->> 'branch'::text) AS branch,
        CASE p.type
            WHEN 'retrieval.answered'::text THEN jsonb_path_query_array(((e.body -> 'cards'::text))::jsonb, '$[*]."id"'::jsonpath)
            WHEN 'context.built'::text THEN jsonb_path_query_array(((m.manifest -> 'passages'::text))::jsonb, '$[*]."pointer"'::jsonpath)
            WHEN 'question.answered'::text THEN jsonb_path_query_array(((e.body -> 'citations'::text))::jsonb, '$[*]."pointer"'::jsonpath)
            WHEN 'artifact.read'::text THEN jsonb_build_array((e.body ->> 'pointer'::text))
            ELSE jsonb_path_query_array(((e.body -> 'pointers'::text))::jsonb, '$[*]."pointer"'::jsonpath)
        END AS pointers,
    ((e.body -> 'bad'::text))::jsonb AS bad,
    (e.body ->> 'pointer'::text) AS artifact,
        CASE p.type
            WHEN 'retrieval.answered'::text THEN json_array_length((e.body -> 'cards'::text))
            WHEN 'context.built'::text THEN json_array_length((m.manifest -> 'passages'::text))
            WHEN 'question.answered'::text THEN json_array_length((e.body -> 'citations'::text))
            WHEN 'artifact.read'::text THEN 1
            ELSE ((e.body ->> 'count'::text))::integer
        END AS pointer_count
   FROM (((public.report_place p
     LEFT JOIN public.run r USING (log_no, run_no))
     JOIN public.event e USING (log_no, seq))
     LEFT JOIN public.manifest m ON (((p.type = ANY (ARRAY['context.built'::text, 'question.answered'::text])) AND (m.manifest_id = ((e.body ->> 'manifest_id'::text))::uuid))))
  WHERE (
        CASE p.run_no
            WHEN 0 THEN (COALESCE(current_setting('muniment.runs'::text, true), ''::text) = ''::text)
            ELSE report.sees(r.run_id)
        END AND (p.type = ANY (ARRAY['artifact.read'::text, 'context.built'::text, 'pointer.rendered'::text, 'pointer.resolved'::text, 'pointer.validated'::text, 'question.answered'::text, 'retrieval.answered'::text])));
COMMENT ON VIEW report.retrieval_report IS 'What was read: answers to queries and questions, context packs, pointers checked and artifacts read, with caller and run';
COMMENT ON COLUMN report.retrieval_report.log_no IS 'Number of the log within this database';
COMMENT ON COLUMN report.retrieval_report.run_id IS 'Run of the request, even if it has ended; NULL outside a run';
COMMENT ON COLUMN report.retrieval_report.step_id IS 'Step within the run';
COMMENT ON COLUMN report.retrieval_report.seq IS 'Position of the event in the log';
COMMENT ON COLUMN report.retrieval_report.recorded_at IS 'Time of the append, by the daemon''s clock';
COMMENT ON COLUMN report.retrieval_report.actor IS 'Authenticated identity that appended it';
COMMENT ON COLUMN report.retrieval_report.query IS 'Question, or the first of several; NULL once redacted or archived';
COMMENT ON COLUMN report.retrieval_report.queries IS 'Number of questions';
COMMENT ON COLUMN report.retrieval_report.corpora IS 'Corpora searched';
COMMENT ON COLUMN report.retrieval_report.profile IS 'Ranking profile';
COMMENT ON COLUMN report.retrieval_report.cards IS 'Number of passages returned; for question.answered, of passages that were read';
COMMENT ON COLUMN report.retrieval_report.best_score IS 'Score of the first passage';
COMMENT ON COLUMN report.retrieval_report.degraded IS 'Reasons for a degraded answer';
COMMENT ON COLUMN report.retrieval_report.cache IS 'hit, miss or off';
COMMENT ON COLUMN report.retrieval_report.watermark IS 'seq up to which documents were indexed';
COMMENT ON COLUMN report.retrieval_report.duration_us IS 'Duration in microseconds';
COMMENT ON COLUMN report.retrieval_report.type IS 'Type of the event: retrieval.answered, question.answered, context.built, pointer.validated, pointer.rendered, pointer.resolved or artifact.read';
COMMENT ON COLUMN report.retrieval_report.branch IS 'Parallel branch of the run that asked';
COMMENT ON COLUMN report.retrieval_report.pointers IS 'Pointers to what was read, in order, as far as the event names them; for question.answered, to what is cited; NULL once redacted';
COMMENT ON COLUMN report.retrieval_report.bad IS 'Number of failed pointers by reason';
COMMENT ON COLUMN report.retrieval_report.artifact IS 'Pointer to the artifact that was read';
COMMENT ON COLUMN report.retrieval_report.pointer_count IS 'Number of pointers to what was read';
CREATE VIEW report.run_report WITH (security_barrier='true') AS
 SELECT r.log_no,
    r.run_id,
    r.run_no,
    r.status,
    r.outcome,
    (ARRAY['observed'::text, 'reported'::text, 'imported'::text])[r.origin] AS origin,
    r.agent,
    r.owner,
    r.goal,
    r.labels,
    r.parent AS parent_run_id,
    r.external_id,
    r.started_at,
    r.ended_at,
    c.last_event_at,
    c.first_occurred_at,
    c.last_occurred_at,
        CASE
            WHEN (r.origin = 3) THEN NULLIF((c.last_occurred_at - c.first_occurred_at), '00:00:00'::interval)
            ELSE (COALESCE(r.ended_at, c.last_event_at) - r.started_at)
        END AS duration,
    COALESCE(c.events, (0)::bigint) AS events,
    r.first_seq,
    c.last_seq,
    COALESCE(c.steps, (0)::bigint) AS steps,
    COALESCE(c.messages, (0)::bigint) AS messages,
    COALESCE(c.model_calls, (0)::bigint) AS model_calls,
    COALESCE(c.model_errors, (0)::bigint) AS model_errors,
    COALESCE(c.tool_calls, (0)::bigint) AS tool_calls,
    COALESCE(c.tool_errors, (0)::bigint) AS tool_errors,
    COALESCE(c.commands, (0)::bigint) AS commands,
    COALESCE(c.command_errors, (0)::bigint) AS command_errors,
    COALESCE(c.errors, (0)::bigint) AS errors,
    u.input_tokens,
    u.output_tokens,
    u.cached_input_tokens,
    u.reasoning_tokens,
    u.cost,
    u.currency,
    COALESCE(a.artifacts, (0)::bigint) AS artifacts,
    COALESCE(a.artifact_bytes, (0)::bigint) AS artifact_bytes,
    (r.halt ->> 'code'::text) AS halt_code,
    (r.halt ->> 'reason'::text) AS halt_reason,
    (r.halt ->> 'pointer'::text) AS halt_pointer,
    u.cost_estimated,
    u.price_list
   FROM (((public.run r
     LEFT JOIN public.report_run c USING (log_no, run_no))
     LEFT JOIN public.report_run_usage u USING (log_no, run_no))
     LEFT JOIN ( SELECT artifact.log_no,
            artifact.run_id,
            count(*) AS artifacts,
            (sum(artifact.size_bytes))::bigint AS artifact_bytes
           FROM public.artifact
          WHERE (artifact.hash <> repeat('0'::text, 64))
          GROUP BY artifact.log_no, artifact.run_id) a USING (log_no, run_id))
  WHERE report.sees(r.run_id);
COMMENT ON VIEW report.run_report IS 'One row per run: status, counts and totals';
COMMENT ON COLUMN report.run_report.log_no IS 'Number of the log within this database';
COMMENT ON COLUMN report.run_report.run_id IS 'Run id';
COMMENT ON COLUMN report.run_report.run_no IS 'Number of the run in the log: @17 is 17';
COMMENT ON COLUMN report.run_report.status IS 'open, ended or halted';
COMMENT ON COLUMN report.run_report.outcome IS 'Outcome of an ended run: success, failure, cancelled, abandoned; unknown if not reported';
COMMENT ON COLUMN report.run_report.origin IS 'Source of the event: observed (daemon), reported (client) or imported';
COMMENT ON COLUMN report.run_report.agent IS 'Name of the agent';
COMMENT ON COLUMN report.run_report.owner IS 'Identity that started it';
COMMENT ON COLUMN report.run_report.goal IS 'Goal';
COMMENT ON COLUMN report.run_report.labels IS 'Labels';
COMMENT ON COLUMN report.run_report.parent_run_id IS 'Run that started it';
COMMENT ON COLUMN report.run_report.external_id IS 'Id in another system';
COMMENT ON COLUMN report.run_report.started_at IS 'Time of its start, by the daemon''s clock';
COMMENT ON COLUMN report.run_report.ended_at IS 'Time of its end or halt';
COMMENT ON COLUMN report.run_report.last_event_at IS 'Time of its last event, by the daemon''s clock';
COMMENT ON COLUMN report.run_report.first_occurred_at IS 'Earliest time given by the client or the source';
COMMENT ON COLUMN report.run_report.last_occurred_at IS 'Latest time given by the client or the source';
COMMENT ON COLUMN report.run_report.duration IS 'Duration from start to end, or to the last event; imported runs use the source''s times';
COMMENT ON COLUMN report.run_report.events IS 'Number of events';
COMMENT ON COLUMN report.run_report.first_seq IS 'seq of its first event';
COMMENT ON COLUMN report.run_report.last_seq IS 'seq of its last event';
COMMENT ON COLUMN report.run_report.steps IS 'Number of steps';
COMMENT ON COLUMN report.run_report.messages IS 'Number of messages';
COMMENT ON COLUMN report.run_report.model_calls IS 'Number of model calls';
COMMENT ON COLUMN report.run_report.model_errors IS 'Number of failed calls, without those with an unknown end';
COMMENT ON COLUMN report.run_report.tool_calls IS 'Number of tool calls';
COMMENT ON COLUMN report.run_report.tool_errors IS 'Number of failed calls, without those with an unknown end';
COMMENT ON COLUMN report.run_report.commands IS 'Number of commands run by muniment exec';
COMMENT ON COLUMN report.run_report.command_errors IS 'Number of commands that did not exit with 0';
COMMENT ON COLUMN report.run_report.errors IS 'Number of error.raised events';
COMMENT ON COLUMN report.run_report.input_tokens IS 'Input tokens: sum over the calls, or the run''s total if no call reports them; NULL if unknown';
COMMENT ON COLUMN report.run_report.output_tokens IS 'Output tokens; NULL if unknown';
COMMENT ON COLUMN report.run_report.cached_input_tokens IS 'Input tokens read from the provider''s cache; NULL if unknown';
COMMENT ON COLUMN report.run_report.reasoning_tokens IS 'Output tokens used for reasoning; NULL if unknown';
COMMENT ON COLUMN report.run_report.cost IS 'Cost of the models: recorded costs, and estimates of those that are not recorded; NULL if unknown or in several currencies';
COMMENT ON COLUMN report.run_report.currency IS 'Currency of cost; mixed if there are several';
COMMENT ON COLUMN report.run_report.artifacts IS 'Number of artifacts, without erased ones';
COMMENT ON COLUMN report.run_report.artifact_bytes IS 'Size of the artifacts in bytes';
COMMENT ON COLUMN report.run_report.halt_code IS 'Code of the halt';
COMMENT ON COLUMN report.run_report.halt_reason IS 'Reason of the halt, as text';
COMMENT ON COLUMN report.run_report.halt_pointer IS 'Pointer whose failure halted the run';
COMMENT ON COLUMN report.run_report.cost_estimated IS 'Part of cost that is estimated by the current prices, in USD; NULL if nothing is estimated';
COMMENT ON COLUMN report.run_report.price_list IS 'Version of the price list of cost_estimated (report.price)';
CREATE VIEW report.run_tree WITH (security_barrier='true') AS
 WITH RECURSIVE tree AS (
         SELECT r.log_no,
            r.run_id AS root_run_id,
            r.run_id,
            NULL::text AS parent_run_id,
            0 AS depth,
            ARRAY[r.run_id] AS path,
            r.status,
            r.outcome,
            r.agent,
            r.started_at,
            r.ended_at
           FROM (public.run r
             LEFT JOIN public.run above ON (((above.log_no = r.log_no) AND (above.run_id = r.parent) AND report.sees(above.run_id))))
          WHERE (report.sees(r.run_id) AND (above.run_id IS NULL))
        UNION ALL
         SELECT r.log_no,
            t_1.root_run_id,
            r.run_id,
            t_1.run_id,
            (t_1.depth + 1),
            (t_1.path || r.run_id),
            r.status,
            r.outcome,
            r.agent,
            r.started_at,
            r.ended_at
           FROM (tree t_1
             JOIN public.run r ON (((r.log_no = t_1.log_no) AND (r.parent = t_1.run_id))))
          WHERE (report.sees(r.run_id) AND (r.run_id <> ALL (t_1.path)))
        )
 SELECT t.log_no,
    t.root_run_id,
    t.run_id,
    t.parent_run_id,
    t.depth,
    t.path,
    t.status,
    t.outcome,
    t.agent,
    t.started_at,
    t.ended_at
   FROM tree t;
COMMENT ON VIEW report.run_tree IS 'Runs below the runs that started them';
COMMENT ON COLUMN report.run_tree.log_no IS 'Number of the log within this database';
COMMENT ON COLUMN report.run_tree.root_run_id IS 'Topmost run';
COMMENT ON COLUMN report.run_tree.run_id IS 'Run id';
COMMENT ON COLUMN report.run_tree.parent_run_id IS 'Run that started it; NULL for the topmost run, or if that run is not shown';
COMMENT ON COLUMN report.run_tree.depth IS 'Depth, 0 for the topmost run';
COMMENT ON COLUMN report.run_tree.path IS 'Runs from the topmost run down to it';
COMMENT ON COLUMN report.run_tree.status IS 'open, ended or halted';
COMMENT ON COLUMN report.run_tree.outcome IS 'Outcome of an ended run: success, failure, cancelled, abandoned; unknown if not reported';
COMMENT ON COLUMN report.run_tree.agent IS 'Name of the agent';
COMMENT ON COLUMN report.run_tree.started_at IS 'Time of its start, by the daemon''s clock';
COMMENT ON COLUMN report.run_tree.ended_at IS 'Time of its end or halt';
CREATE VIEW report.step_report WITH (security_barrier='true') AS
 SELECT s.log_no,
    r.run_id,
    s.key AS step_id,
    s.name,
    s.sort AS kind,
    s.via AS parent_step_id,
    (ARRAY['observed'::text, 'reported'::text, 'imported'::text])[s.origin] AS origin,
        CASE
            WHEN (s.ended_seq IS NOT NULL) THEN COALESCE(s.status, 'pending'::text)
            WHEN (EXISTS ( SELECT
               FROM public.report_erased_end x
              WHERE ((x.log_no = s.log_no) AND (x.run_no = s.run_no) AND (x.type = 'step.ended'::text) AND (x.seq > s.began_seq) AND (COALESCE(x.step_id, 'main'::text) = s.key)))) THEN 'unknown'::text
            ELSE 'pending'::text
        END AS status,
    s.reason AS error_type,
    s.began_at AS started_at,
    s.ended_at,
    COALESCE(s.duration_us, public.report_micros(s.began_at, s.ended_at)) AS duration_us,
    s.began_seq AS started_seq,
    s.ended_seq
   FROM (public.report_span_step s
     JOIN public.run r USING (log_no, run_no))
  WHERE report.sees(r.run_id);
COMMENT ON VIEW report.step_report IS 'Steps, each with its end';
COMMENT ON COLUMN report.step_report.log_no IS 'Number of the log within this database';
COMMENT ON COLUMN report.step_report.run_id IS 'Run id';
COMMENT ON COLUMN report.step_report.step_id IS 'Step within the run';
COMMENT ON COLUMN report.step_report.name IS 'Name of the step';
COMMENT ON COLUMN report.step_report.kind IS 'turn, node, task or command';
COMMENT ON COLUMN report.step_report.parent_step_id IS 'Enclosing step';
COMMENT ON COLUMN report.step_report.origin IS 'Source of the event: observed (daemon), reported (client) or imported';
COMMENT ON COLUMN report.step_report.status IS 'ok, error, denied, timeout, cancelled, interrupted; unknown: the end is not recorded, or was erased; pending: no end yet';
COMMENT ON COLUMN report.step_report.error_type IS 'Type of the error; NULL without an error';
COMMENT ON COLUMN report.step_report.started_at IS 'Time of its start; NULL if an imported event has none';
COMMENT ON COLUMN report.step_report.ended_at IS 'Time of its end';
COMMENT ON COLUMN report.step_report.duration_us IS 'Duration in microseconds, as given by the end event, otherwise from beginning to end';
COMMENT ON COLUMN report.step_report.started_seq IS 'seq of its step.started event';
COMMENT ON COLUMN report.step_report.ended_seq IS 'seq of its step.ended event';
CREATE VIEW report.storage_report WITH (security_barrier='true') AS
 SELECT x.what,
    x.name,
    x.row_count,
    x.size_bytes,
    x.first_seq,
    x.last_seq,
    x.archived
   FROM ( SELECT 'events'::text AS what,
            (c.relname)::text AS name,
                CASE
                    WHEN (c.reltuples > (0)::double precision) THEN (c.reltuples)::bigint
                    WHEN (pg_relation_size((c.oid)::regclass) = 0) THEN (0)::bigint
                    ELSE NULL::bigint
                END AS row_count,
            pg_total_relation_size((c.oid)::regclass) AS size_bytes,
            (bounds.number << (h.partition_bits)::integer) AS first_seq,
            (((bounds.number + 1) << (h.partition_bits)::integer) - 1) AS last_seq,
            (p.number IS NOT NULL) AS archived
           FROM ((((pg_partition_tree('public.event'::regclass) t(relid, parentrelid, isleaf, level)
             JOIN pg_class c ON ((c.oid = (t.relid)::oid)))
             CROSS JOIN LATERAL ( SELECT (split_part((c.relname)::text, '_'::text, 2))::smallint AS log_no,
                    (split_part((c.relname)::text, '_'::text, 3))::bigint AS number) bounds)
             JOIN public.log_head h USING (log_no))
             LEFT JOIN public.archived_partition p ON (((p.log_no = bounds.log_no) AND (p.number = bounds.number))))
          WHERE (t.isleaf AND ((t.relid)::oid <> ('public.event'::regclass)::oid) AND (c.relname ~~ 'event\_%\_%'::text))
        UNION ALL
         SELECT 'table'::text,
            (c.relname)::text AS relname,
                CASE
                    WHEN (c.reltuples > (0)::double precision) THEN (c.reltuples)::bigint
                    WHEN (pg_relation_size((c.oid)::regclass) = 0) THEN (0)::bigint
                    ELSE NULL::bigint
                END AS row_count,
            pg_total_relation_size((c.oid)::regclass) AS pg_total_relation_size,
            NULL::bigint,
            NULL::bigint,
            NULL::boolean
           FROM pg_class c
          WHERE ((c.relnamespace = ('public'::regnamespace)::oid) AND (c.relkind = 'r'::"char") AND (c.relname !~~ 'event\_%'::text))
        UNION ALL
         SELECT 'artifacts'::text,
            'artifacts'::text,
            count(*) AS count,
            (COALESCE(sum(artifact.size_bytes), (0)::numeric))::bigint AS "coalesce",
            NULL::bigint,
            NULL::bigint,
            NULL::boolean
           FROM public.artifact
          WHERE (artifact.hash <> repeat('0'::text, 64))) x
  WHERE (COALESCE(current_setting('muniment.runs'::text, true), ''::text) = ''::text);
COMMENT ON VIEW report.storage_report IS 'Space used by tables and files; shown to readers who see all runs';
COMMENT ON COLUMN report.storage_report.what IS 'Kind: events (a partition of the log), table (another table) or artifacts (all files of runs)';
COMMENT ON COLUMN report.storage_report.name IS 'Name in the database';
COMMENT ON COLUMN report.storage_report.row_count IS 'Planner''s estimate of the number of rows, NULL if unknown; exact for artifacts, without erased ones';
COMMENT ON COLUMN report.storage_report.size_bytes IS 'Size on disk in bytes, with indexes; for artifacts, the sum of their sizes, without erased ones';
COMMENT ON COLUMN report.storage_report.first_seq IS 'First event of a partition';
COMMENT ON COLUMN report.storage_report.last_seq IS 'Last event that a partition can have';
COMMENT ON COLUMN report.storage_report.archived IS 'True if the bodies of a partition are in the archive';
CREATE VIEW report.task_report WITH (security_barrier='true') AS
 SELECT t.log_no,
    t.run_id,
    t.task_id,
    (o.body ->> 'content'::text) AS content,
    (o.body ->> 'type'::text) AS type,
    (((o.body ->> 'requires_evidence'::text))::boolean IS DISTINCT FROM false) AS requires_evidence,
        CASE
            WHEN (t.completed_seq IS NULL) THEN 'open'::text
            ELSE 'completed'::text
        END AS status,
    (c.body ->> 'verdict'::text) AS verdict,
    ( SELECT count(*) AS count
           FROM public.task_evidence u
          WHERE ((u.log_no = t.log_no) AND (u.seq = t.completed_seq))) AS evidence,
    o.actor AS opened_by,
    o.recorded_at AS opened_at,
    c.actor AS completed_by,
    c.recorded_at AS completed_at,
    t.opened_seq,
    t.completed_seq,
    (o.body ->> 'workflow'::text) AS workflow
   FROM (((( SELECT task_change.log_no,
            task_change.run_id,
            task_change.task_id,
            max(task_change.seq) FILTER (WHERE (task_change.change = 'opened'::text)) AS opened_seq,
            max(task_change.seq) FILTER (WHERE (task_change.change = 'completed'::text)) AS completed_seq
           FROM public.task_change
          GROUP BY task_change.log_no, task_change.run_id, task_change.task_id) t
     JOIN public.run r USING (log_no, run_id))
     LEFT JOIN public.event o ON (((o.log_no = t.log_no) AND (o.seq = t.opened_seq))))
     LEFT JOIN public.event c ON (((c.log_no = t.log_no) AND (c.seq = t.completed_seq))))
  WHERE report.sees(r.run_id);
COMMENT ON VIEW report.task_report IS 'Tasks of runs, each with its completion';
COMMENT ON COLUMN report.task_report.log_no IS 'Number of the log within this database';
COMMENT ON COLUMN report.task_report.run_id IS 'Run id';
COMMENT ON COLUMN report.task_report.task_id IS 'Id of the task, unique within its run';
COMMENT ON COLUMN report.task_report.content IS 'Text of the task; NULL if its opening is not recorded or was erased';
COMMENT ON COLUMN report.task_report.type IS 'Type of the task, a section of the completion policy';
COMMENT ON COLUMN report.task_report.requires_evidence IS 'False if the task could be completed without evidence';
COMMENT ON COLUMN report.task_report.status IS 'open or completed';
COMMENT ON COLUMN report.task_report.verdict IS 'Verdict on the evidence of the completed task';
COMMENT ON COLUMN report.task_report.evidence IS 'Number of pieces of evidence that completed it (evidence_report.completed_task_id)';
COMMENT ON COLUMN report.task_report.opened_by IS 'Actor that opened it';
COMMENT ON COLUMN report.task_report.opened_at IS 'Time at which it was opened';
COMMENT ON COLUMN report.task_report.completed_by IS 'Actor that completed it';
COMMENT ON COLUMN report.task_report.completed_at IS 'Time at which it was completed';
COMMENT ON COLUMN report.task_report.opened_seq IS 'seq of its task.opened event';
COMMENT ON COLUMN report.task_report.completed_seq IS 'seq of its task.completed event';
COMMENT ON COLUMN report.task_report.workflow IS 'Digest of the blind workflow whose comparison completes the task; NULL: any evidence';
CREATE VIEW report.task_validation WITH (security_barrier='true') AS
 SELECT p.log_no,
    r.run_id,
    (e.body ->> 'task_id'::text) AS task_id,
    (((e.body ->> 'completing'::text))::boolean IS TRUE) AS completing,
    ((e.body ->> 'can_complete'::text))::boolean AS can_complete,
    (e.body ->> 'verdict'::text) AS verdict,
    (e.body ->> 'reason'::text) AS reason,
    ((e.body -> 'codes'::text))::jsonb AS codes,
    ((e.body -> 'evidence_ids'::text))::jsonb AS evidence_ids,
    e.actor,
    e.recorded_at,
    p.seq
   FROM ((public.report_place p
     JOIN public.run r USING (log_no, run_no))
     JOIN public.event e USING (log_no, seq))
  WHERE ((p.type = 'task.validated'::text) AND report.sees(r.run_id));
COMMENT ON VIEW report.task_validation IS 'Judgements of evidence for tasks: refused completions, and validations; task_report has the completed tasks';
COMMENT ON COLUMN report.task_validation.log_no IS 'Number of the log within this database';
COMMENT ON COLUMN report.task_validation.run_id IS 'Run id';
COMMENT ON COLUMN report.task_validation.task_id IS 'Id of the task, unique within its run';
COMMENT ON COLUMN report.task_validation.completing IS 'True if a completion was refused, false if the evidence was only validated';
COMMENT ON COLUMN report.task_validation.can_complete IS 'True if the evidence suffices';
COMMENT ON COLUMN report.task_validation.verdict IS 'pass, weak, fail, tampered or inconclusive';
COMMENT ON COLUMN report.task_validation.reason IS 'First reason for a refusal; NULL once redacted';
COMMENT ON COLUMN report.task_validation.codes IS 'Codes of all findings that block the completion';
COMMENT ON COLUMN report.task_validation.evidence_ids IS 'Ids of the evidence that was judged';
COMMENT ON COLUMN report.task_validation.actor IS 'Authenticated identity that asked';
COMMENT ON COLUMN report.task_validation.recorded_at IS 'Time of the append, by the daemon''s clock';
COMMENT ON COLUMN report.task_validation.seq IS 'seq of its task.validated event';
CREATE VIEW report.tool_call AS
 SELECT s.log_no,
    s.run_id,
    s.step_id,
    s.call_id,
    s.tool,
    s.kind,
    s.server,
    s.origin,
    s.attempt,
    s.status,
    s.error_type,
    s.exit_code,
    s.called_at,
    s.returned_at,
    s.duration_us,
    ( SELECT (COALESCE((e.body -> 'arguments'::text), (e.body -> 'ref'::text)))::jsonb AS "coalesce"
           FROM public.event e
          WHERE ((e.log_no = s.log_no) AND (e.seq = s.called_seq))) AS arguments,
    ( SELECT ((e.body -> 'content'::text))::jsonb AS jsonb
           FROM public.event e
          WHERE ((e.log_no = s.log_no) AND (e.seq = s.returned_seq))) AS content,
    s.called_seq,
    s.returned_seq
   FROM public.report_tool_seen s;
COMMENT ON VIEW report.tool_call IS 'Tool calls, each with its result';
COMMENT ON COLUMN report.tool_call.log_no IS 'Number of the log within this database';
COMMENT ON COLUMN report.tool_call.run_id IS 'Run id';
COMMENT ON COLUMN report.tool_call.step_id IS 'Step within the run';
COMMENT ON COLUMN report.tool_call.call_id IS 'Id of the call';
COMMENT ON COLUMN report.tool_call.tool IS 'Name of the tool';
COMMENT ON COLUMN report.tool_call.kind IS 'function, mcp, extension, datastore or command';
COMMENT ON COLUMN report.tool_call.server IS 'MCP server of the tool';
COMMENT ON COLUMN report.tool_call.origin IS 'Source of the event: observed (daemon), reported (client) or imported';
COMMENT ON COLUMN report.tool_call.attempt IS 'Attempt number of the call, from 1';
COMMENT ON COLUMN report.tool_call.status IS 'ok, error, denied, timeout, cancelled, interrupted; unknown: the end is not recorded, or a result of the run, possibly this one, was erased; pending: no end yet';
COMMENT ON COLUMN report.tool_call.error_type IS 'Type of the error; NULL without an error';
COMMENT ON COLUMN report.tool_call.exit_code IS 'Exit code of a tool that is a command';
COMMENT ON COLUMN report.tool_call.called_at IS 'Time of the call; NULL if an imported event has none';
COMMENT ON COLUMN report.tool_call.returned_at IS 'Time of its return';
COMMENT ON COLUMN report.tool_call.duration_us IS 'Duration in microseconds, as given by the end event, otherwise from beginning to end';
COMMENT ON COLUMN report.tool_call.arguments IS 'Arguments from the log; NULL once redacted or archived';
COMMENT ON COLUMN report.tool_call.content IS 'Result from the log; NULL once redacted or archived';
COMMENT ON COLUMN report.tool_call.called_seq IS 'seq of its tool.called event';
COMMENT ON COLUMN report.tool_call.returned_seq IS 'seq of its tool.returned event';
ALTER TABLE ONLY public.report_span ATTACH PARTITION public.report_span_approval FOR VALUES IN ('approval');
ALTER TABLE ONLY public.report_span ATTACH PARTITION public.report_span_command FOR VALUES IN ('command');
ALTER TABLE ONLY public.report_span ATTACH PARTITION public.report_span_model FOR VALUES IN ('model');
ALTER TABLE ONLY public.report_span ATTACH PARTITION public.report_span_step FOR VALUES IN ('step');
ALTER TABLE ONLY public.report_span ATTACH PARTITION public.report_span_tool FOR VALUES IN ('tool');
ALTER TABLE ONLY public.archived_partition
    ADD CONSTRAINT archived_partition_pkey PRIMARY KEY (log_no, number);
ALTER TABLE ONLY public.artifact
    ADD CONSTRAINT artifact_path_key UNIQUE (path);
ALTER TABLE ONLY public.artifact
    ADD CONSTRAINT artifact_pkey PRIMARY KEY (artifact_id);
ALTER TABLE ONLY public.checkpoint_note
    ADD CONSTRAINT checkpoint_note_pkey PRIMARY KEY (log_no, size);
ALTER TABLE ONLY public.checkpoint
    ADD CONSTRAINT checkpoint_pkey PRIMARY KEY (log_no, size);
ALTER TABLE ONLY public.chunk
    ADD CONSTRAINT chunk_pkey PRIMARY KEY (log_no, chunk_id);
ALTER TABLE ONLY public.claim
    ADD CONSTRAINT claim_pkey PRIMARY KEY (claim_id);
ALTER TABLE ONLY public.corpus
    ADD CONSTRAINT corpus_pkey PRIMARY KEY (log_no, corpus);
ALTER TABLE ONLY public.document
    ADD CONSTRAINT document_pkey PRIMARY KEY (log_no, seq);
ALTER TABLE ONLY public.event
    ADD CONSTRAINT event_pkey PRIMARY KEY (log_no, seq);
ALTER TABLE ONLY public.evidence_link
    ADD CONSTRAINT evidence_link_pkey PRIMARY KEY (claim_id, evidence_id, seq);
ALTER TABLE ONLY public.evidence
    ADD CONSTRAINT evidence_pkey PRIMARY KEY (log_no, seq);
ALTER TABLE ONLY public.feedback
    ADD CONSTRAINT feedback_pkey PRIMARY KEY (log_no, seq);
ALTER TABLE ONLY public.follower
    ADD CONSTRAINT follower_pkey PRIMARY KEY (log_no, name);
ALTER TABLE ONLY public.log_head
    ADD CONSTRAINT log_head_log_id_key UNIQUE (log_id);
ALTER TABLE ONLY public.log_head
    ADD CONSTRAINT log_head_pkey PRIMARY KEY (log_no);
ALTER TABLE ONLY public.manifest
    ADD CONSTRAINT manifest_pkey PRIMARY KEY (manifest_id);
ALTER TABLE ONLY public.pointer
    ADD CONSTRAINT pointer_pkey PRIMARY KEY (log_no, pointer, needed_by, needed_id, run_id);
ALTER TABLE ONLY public.report_place
    ADD CONSTRAINT report_place_pkey PRIMARY KEY (log_no, type, seq);
ALTER TABLE ONLY public.report_price
    ADD CONSTRAINT report_price_pkey PRIMARY KEY (version, model);
ALTER TABLE ONLY public.report_run
    ADD CONSTRAINT report_run_pkey PRIMARY KEY (log_no, run_no);
ALTER TABLE ONLY public.report_span
    ADD CONSTRAINT report_span_pkey PRIMARY KEY (log_no, kind, seq);
ALTER TABLE ONLY public.report_span_approval
    ADD CONSTRAINT report_span_approval_pkey PRIMARY KEY (log_no, kind, seq);
ALTER TABLE ONLY public.report_span_command
    ADD CONSTRAINT report_span_command_pkey PRIMARY KEY (log_no, kind, seq);
ALTER TABLE ONLY public.report_span_model
    ADD CONSTRAINT report_span_model_pkey PRIMARY KEY (log_no, kind, seq);
ALTER TABLE ONLY public.report_span_step
    ADD CONSTRAINT report_span_step_pkey PRIMARY KEY (log_no, kind, seq);
ALTER TABLE ONLY public.report_span_tool
    ADD CONSTRAINT report_span_tool_pkey PRIMARY KEY (log_no, kind, seq);
ALTER TABLE ONLY public.run
    ADD CONSTRAINT run_log_no_run_id_key UNIQUE (log_no, run_id);
ALTER TABLE ONLY public.run
    ADD CONSTRAINT run_pkey PRIMARY KEY (log_no, run_no);
ALTER TABLE ONLY public.schema_migration
    ADD CONSTRAINT schema_migration_pkey PRIMARY KEY (number);
ALTER TABLE ONLY public.snapshot
    ADD CONSTRAINT snapshot_pkey PRIMARY KEY (log_no, run_no, seq);
ALTER TABLE ONLY public.task_change
    ADD CONSTRAINT task_change_pkey PRIMARY KEY (log_no, seq);
ALTER TABLE ONLY public.task_evidence
    ADD CONSTRAINT task_evidence_pkey PRIMARY KEY (log_no, seq, evidence_seq);
CREATE INDEX artifact_hash ON public.artifact USING btree (hash);
CREATE INDEX artifact_run ON public.artifact USING btree (run_id, artifact_id);
CREATE INDEX artifact_step ON public.artifact USING btree (run_id, step_id);
CREATE UNIQUE INDEX chunk_number ON public.chunk USING btree (log_no, seq, number);
CREATE INDEX claim_run ON public.claim USING btree (run_id, seq);
CREATE INDEX document_artifact ON public.document USING btree (artifact_id);
CREATE INDEX document_chunks ON public.document USING btree (log_no, first_chunk);
CREATE UNIQUE INDEX document_current ON public.document USING btree (log_no, corpus, document) WHERE (valid_to IS NULL);
CREATE INDEX document_ended ON public.document USING btree (log_no, valid_to) WHERE (valid_to IS NOT NULL);
CREATE INDEX document_history ON public.document USING btree (log_no, corpus, document, seq);
CREATE INDEX document_removed ON public.document USING btree (log_no, removed_at) WHERE (removed_at IS NOT NULL);
CREATE INDEX document_sources ON public.document USING gin (sources);
CREATE INDEX document_text_artifact ON public.document USING btree (text_artifact_id) WHERE (text_artifact_id IS NOT NULL);
CREATE INDEX event_redacted ON ONLY public.event USING btree (log_no, (((body ->> 'seq'::text))::bigint)) WHERE (type = 'event.redacted'::text);
CREATE INDEX evidence_hash ON public.evidence USING btree (log_no, hash, seq);
CREATE INDEX evidence_link_evidence ON public.evidence_link USING btree (evidence_id);
CREATE UNIQUE INDEX evidence_link_once ON public.evidence_link USING btree (log_no, claim_id, evidence_id, relation);
CREATE INDEX evidence_pointer ON public.evidence USING btree (log_no, run_id, pointer);
CREATE INDEX evidence_run ON public.evidence USING btree (run_id, seq);
CREATE INDEX evidence_suite ON public.evidence USING btree (log_no, hashtextextended((content #>> '{command,suite}'::text[]), (0)::bigint), seq) WHERE (command_id IS NOT NULL);
CREATE INDEX evidence_task ON public.evidence USING btree (log_no, task_id, seq) WHERE (task_id IS NOT NULL);
CREATE UNIQUE INDEX evidence_use ON public.evidence USING btree (log_no, evidence_id, run_id, (
CASE run_id
    WHEN '_log'::text THEN actor
    ELSE ''::text
END));
CREATE INDEX feedback_chunk ON public.feedback USING btree (log_no, chunk_id, seq) WHERE (chunk_id IS NOT NULL);
CREATE INDEX manifest_run ON public.manifest USING btree (run_id, seq);
CREATE INDEX pointer_document ON public.pointer USING btree (log_no, corpus, document) WHERE (corpus IS NOT NULL);
CREATE INDEX pointer_needed ON public.pointer USING btree (log_no, needed_id);
CREATE INDEX pointer_run ON public.pointer USING btree (log_no, run_id, pointer);
CREATE INDEX report_place_run ON public.report_place USING btree (log_no, run_no, type, seq);
CREATE UNIQUE INDEX report_price_current ON public.report_price USING btree (model) WHERE current;
CREATE INDEX report_span_time ON ONLY public.report_span USING brin (began_at) WITH (pages_per_range='32');
CREATE INDEX report_span_approval_began_at_idx ON public.report_span_approval USING brin (began_at) WITH (pages_per_range='32');
CREATE INDEX report_span_open ON ONLY public.report_span USING btree (log_no, run_no, key, seq) WHERE (ended_seq IS NULL);
CREATE INDEX report_span_approval_log_no_run_no_key_seq_idx ON public.report_span_approval USING btree (log_no, run_no, key, seq) WHERE (ended_seq IS NULL);
CREATE INDEX report_span_run ON ONLY public.report_span USING btree (log_no, run_no, seq);
CREATE INDEX report_span_approval_log_no_run_no_seq_idx ON public.report_span_approval USING btree (log_no, run_no, seq);
CREATE INDEX report_span_failed ON ONLY public.report_span USING btree (log_no, seq) WHERE public.report_failed(status);
CREATE INDEX report_span_approval_log_no_seq_idx ON public.report_span_approval USING btree (log_no, seq) WHERE public.report_failed(status);
CREATE INDEX report_span_command_began_at_idx ON public.report_span_command USING brin (began_at) WITH (pages_per_range='32');
CREATE INDEX report_span_command_log_no_run_no_key_seq_idx ON public.report_span_command USING btree (log_no, run_no, key, seq) WHERE (ended_seq IS NULL);
CREATE INDEX report_span_command_log_no_run_no_seq_idx ON public.report_span_command USING btree (log_no, run_no, seq);
CREATE INDEX report_span_command_log_no_seq_idx ON public.report_span_command USING btree (log_no, seq) WHERE public.report_failed(status);
CREATE INDEX report_span_model_began_at_idx ON public.report_span_model USING brin (began_at) WITH (pages_per_range='32');
CREATE INDEX report_span_model_log_no_run_no_key_seq_idx ON public.report_span_model USING btree (log_no, run_no, key, seq) WHERE (ended_seq IS NULL);
CREATE INDEX report_span_model_log_no_run_no_seq_idx ON public.report_span_model USING btree (log_no, run_no, seq);
CREATE INDEX report_span_model_log_no_seq_idx ON public.report_span_model USING btree (log_no, seq) WHERE public.report_failed(status);
CREATE INDEX report_span_step_began_at_idx ON public.report_span_step USING brin (began_at) WITH (pages_per_range='32');
CREATE INDEX report_span_step_log_no_run_no_key_seq_idx ON public.report_span_step USING btree (log_no, run_no, key, seq) WHERE (ended_seq IS NULL);
CREATE INDEX report_span_step_log_no_run_no_seq_idx ON public.report_span_step USING btree (log_no, run_no, seq);
CREATE INDEX report_span_step_log_no_seq_idx ON public.report_span_step USING btree (log_no, seq) WHERE public.report_failed(status);
CREATE INDEX report_span_tool_began_at_idx ON public.report_span_tool USING brin (began_at) WITH (pages_per_range='32');
CREATE INDEX report_span_tool_log_no_run_no_key_seq_idx ON public.report_span_tool USING btree (log_no, run_no, key, seq) WHERE (ended_seq IS NULL);
CREATE INDEX report_span_tool_log_no_run_no_seq_idx ON public.report_span_tool USING btree (log_no, run_no, seq);
CREATE INDEX report_span_tool_log_no_seq_idx ON public.report_span_tool USING btree (log_no, seq) WHERE public.report_failed(status);
CREATE INDEX run_external ON public.run USING btree (external_id) WHERE (external_id IS NOT NULL);
CREATE INDEX run_parent ON public.run USING btree (parent) WHERE (parent IS NOT NULL);
CREATE INDEX run_started ON public.run USING btree (log_no, started_at);
CREATE UNIQUE INDEX task_change_once ON public.task_change USING btree (log_no, run_id, task_id, change);
CREATE INDEX task_change_run ON public.task_change USING btree (log_no, run_id, change, seq);
CREATE UNIQUE INDEX task_evidence_once ON public.task_evidence USING btree (log_no, evidence_seq);
ALTER INDEX public.report_span_time ATTACH PARTITION public.report_span_approval_began_at_idx;
ALTER INDEX public.report_span_open ATTACH PARTITION public.report_span_approval_log_no_run_no_key_seq_idx;
ALTER INDEX public.report_span_run ATTACH PARTITION public.report_span_approval_log_no_run_no_seq_idx;
ALTER INDEX public.report_span_failed ATTACH PARTITION public.report_span_approval_log_no_seq_idx;
ALTER INDEX public.report_span_pkey ATTACH PARTITION public.report_span_approval_pkey;
ALTER INDEX public.report_span_time ATTACH PARTITION public.report_span_command_began_at_idx;
ALTER INDEX public.report_span_open ATTACH PARTITION public.report_span_command_log_no_run_no_key_seq_idx;
ALTER INDEX public.report_span_run ATTACH PARTITION public.report_span_command_log_no_run_no_seq_idx;
ALTER INDEX public.report_span_failed ATTACH PARTITION public.report_span_command_log_no_seq_idx;
ALTER INDEX public.report_span_pkey ATTACH PARTITION public.report_span_command_pkey;
ALTER INDEX public.report_span_time ATTACH PARTITION public.report_span_model_began_at_idx;
ALTER INDEX public.report_span_open ATTACH PARTITION public.report_span_model_log_no_run_no_key_seq_idx;
ALTER INDEX public.report_span_run ATTACH PARTITION public.report_span_model_log_no_run_no_seq_idx;
ALTER INDEX public.report_span_failed ATTACH PARTITION public.report_span_model_log_no_seq_idx;
ALTER INDEX public.report_span_pkey ATTACH PARTITION public.report_span_model_pkey;
ALTER INDEX public.report_span_time ATTACH PARTITION public.report_span_step_began_at_idx;
ALTER INDEX public.report_span_open ATTACH PARTITION public.report_span_step_log_no_run_no_key_seq_idx;
ALTER INDEX public.report_span_run ATTACH PARTITION public.report_span_step_log_no_run_no_seq_idx;
ALTER INDEX public.report_span_failed ATTACH PARTITION public.report_span_step_log_no_seq_idx;
ALTER INDEX public.report_span_pkey ATTACH PARTITION public.report_span_step_pkey;
ALTER INDEX public.report_span_time ATTACH PARTITION public.report_span_tool_began_at_idx;
ALTER INDEX public.report_span_open ATTACH PARTITION public.report_span_tool_log_no_run_no_key_seq_idx;
ALTER INDEX public.report_span_run ATTACH PARTITION public.report_span_tool_log_no_run_no_seq_idx;
ALTER INDEX public.report_span_failed ATTACH PARTITION public.report_span_tool_log_no_seq_idx;
ALTER INDEX public.report_span_pkey ATTACH PARTITION public.report_span_tool_pkey;
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE ON public.archived_partition FOR EACH ROW EXECUTE FUNCTION public.refuse_change();
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE ON public.artifact FOR EACH ROW EXECUTE FUNCTION public.refuse_but_erasure();
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE ON public.checkpoint FOR EACH ROW EXECUTE FUNCTION public.refuse_change();
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE ON public.checkpoint_note FOR EACH ROW EXECUTE FUNCTION public.refuse_change();
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE ON public.event FOR EACH ROW EXECUTE FUNCTION public.refuse_but_erasure();
CREATE TRIGGER append_only BEFORE DELETE ON public.log_head FOR EACH ROW EXECUTE FUNCTION public.refuse_change();
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE ON public.manifest FOR EACH ROW EXECUTE FUNCTION public.refuse_but_erasure();
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE ON public.snapshot FOR EACH ROW EXECUTE FUNCTION public.refuse_but_erasure();
CREATE TRIGGER decide INSTEAD OF INSERT ON public.claim_decision FOR EACH ROW EXECUTE FUNCTION public.decide_claim();
CREATE TRIGGER keeps_identity BEFORE UPDATE ON public.log_head FOR EACH ROW WHEN ((((((old.log_no IS DISTINCT FROM new.log_no) OR (old.log_id IS DISTINCT FROM new.log_id)) OR (old.created_at IS DISTINCT FROM new.created_at)) OR (old.partition_bits IS DISTINCT FROM new.partition_bits)) OR (new.epoch < old.epoch))) EXECUTE FUNCTION public.refuse_change();
CREATE TRIGGER no_truncate BEFORE TRUNCATE ON public.archived_partition FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_change();
CREATE TRIGGER no_truncate BEFORE TRUNCATE ON public.artifact FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_change();
CREATE TRIGGER no_truncate BEFORE TRUNCATE ON public.checkpoint FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_change();
CREATE TRIGGER no_truncate BEFORE TRUNCATE ON public.checkpoint_note FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_change();
CREATE TRIGGER no_truncate BEFORE TRUNCATE ON public.event FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_change();
CREATE TRIGGER no_truncate BEFORE TRUNCATE ON public.manifest FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_change();
CREATE TRIGGER no_truncate BEFORE TRUNCATE ON public.snapshot FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_change();
ALTER TABLE ONLY public.checkpoint
    ADD CONSTRAINT checkpoint_log_no_fkey FOREIGN KEY (log_no) REFERENCES public.log_head(log_no);
ALTER TABLE ONLY public.checkpoint_note
    ADD CONSTRAINT checkpoint_note_log_no_fkey FOREIGN KEY (log_no) REFERENCES public.log_head(log_no);
ALTER TABLE ONLY public.corpus
    ADD CONSTRAINT corpus_log_no_fkey FOREIGN KEY (log_no) REFERENCES public.log_head(log_no);
ALTER TABLE ONLY public.document
    ADD CONSTRAINT document_log_no_fkey FOREIGN KEY (log_no) REFERENCES public.log_head(log_no);
ALTER TABLE ONLY public.evidence_link
    ADD CONSTRAINT evidence_link_claim_id_fkey FOREIGN KEY (claim_id) REFERENCES public.claim(claim_id);
ALTER TABLE ONLY public.report_run
    ADD CONSTRAINT report_run_log_no_fkey FOREIGN KEY (log_no) REFERENCES public.log_head(log_no);
ALTER TABLE ONLY public.run
    ADD CONSTRAINT run_log_no_fkey FOREIGN KEY (log_no) REFERENCES public.log_head(log_no);
ALTER TABLE public.artifact ENABLE ROW LEVEL SECURITY;
CREATE POLICY auditor ON public.artifact FOR SELECT TO muniment_auditor USING (true);
CREATE POLICY auditor ON public.chunk FOR SELECT TO muniment_auditor USING (true);
CREATE POLICY auditor ON public.claim FOR SELECT TO muniment_auditor USING (true);
CREATE POLICY auditor ON public.corpus FOR SELECT TO muniment_auditor USING (true);
CREATE POLICY auditor ON public.document FOR SELECT TO muniment_auditor USING (true);
CREATE POLICY auditor ON public.event FOR SELECT TO muniment_auditor USING (true);
CREATE POLICY auditor ON public.evidence FOR SELECT TO muniment_auditor USING (true);
CREATE POLICY auditor ON public.feedback FOR SELECT TO muniment_auditor USING (true);
CREATE POLICY auditor ON public.manifest FOR SELECT TO muniment_auditor USING (true);
CREATE POLICY auditor ON public.report_place FOR SELECT TO muniment_auditor USING (true);
CREATE POLICY auditor ON public.report_price FOR SELECT TO muniment_auditor USING (true);
CREATE POLICY auditor ON public.report_run FOR SELECT TO muniment_auditor USING (true);
CREATE POLICY auditor ON public.report_span FOR SELECT TO muniment_auditor USING (true);
CREATE POLICY auditor ON public.report_span_approval FOR SELECT TO muniment_auditor USING (true);
CREATE POLICY auditor ON public.report_span_command FOR SELECT TO muniment_auditor USING (true);
CREATE POLICY auditor ON public.report_span_model FOR SELECT TO muniment_auditor USING (true);
CREATE POLICY auditor ON public.report_span_step FOR SELECT TO muniment_auditor USING (true);
CREATE POLICY auditor ON public.report_span_tool FOR SELECT TO muniment_auditor USING (true);
CREATE POLICY auditor ON public.run FOR SELECT TO muniment_auditor USING (true);
CREATE POLICY auditor ON public.snapshot FOR SELECT TO muniment_auditor USING (true);
CREATE POLICY auditor ON public.task_change FOR SELECT TO muniment_auditor USING (true);
CREATE POLICY auditor ON public.task_evidence FOR SELECT TO muniment_auditor USING (true);
ALTER TABLE public.chunk ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.claim ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.corpus ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.document ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.event ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.evidence ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.feedback ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.manifest ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.report_place ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.report_price ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.report_run ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.report_span ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.report_span_approval ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.report_span_command ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.report_span_model ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.report_span_step ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.report_span_tool ENABLE ROW LEVEL SECURITY;
CREATE POLICY reporter ON public.artifact FOR SELECT TO muniment_reporter USING (report.sees(run_id));
ALTER TABLE public.run ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.snapshot ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.task_change ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.task_evidence ENABLE ROW LEVEL SECURITY;
