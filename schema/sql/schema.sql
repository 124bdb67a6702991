-- What migrations/ make, for reading and for comparing; nothing is made from this file.
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
COMMENT ON FUNCTION public.archive_event_partition(wanted_log smallint, number bigint, wait interval) IS 'Takes the bodies of a sealed partition out of the database, once they are in the archive''s files';
CREATE FUNCTION public.erase_copies(wanted_log smallint, wanted_run bigint, seqs bigint[], artifact_ids uuid[], run_row jsonb) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'public', 'pg_temp'
    SET lock_timeout TO '30s'
    AS $$
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
COMMENT ON FUNCTION public.erase_copies(wanted_log smallint, wanted_run bigint, seqs bigint[], artifact_ids uuid[], run_row jsonb) IS 'Takes the bodies of these events and artifacts out of every table, once the log says that it is done';
CREATE FUNCTION public.event_body_stays(type text) RETURNS boolean
    LANGUAGE sql IMMUTABLE
    AS $$
  SELECT split_part(type, '.', 1) = ANY ('{access,artifact,claim,document,event,evidence,feedback,key,log,manifest,pointer,run,snapshot,source,task}')
$$;
COMMENT ON FUNCTION public.event_body_stays(type text) IS 'Whether an event of this type keeps its body in the database when its partition is archived';
CREATE FUNCTION public.event_partition_bits(wanted_log smallint) RETURNS integer
    LANGUAGE sql STABLE
    AS $$
  SELECT coalesce((SELECT partition_bits FROM log_head WHERE log_no = wanted_log), 24)::integer
$$;
COMMENT ON FUNCTION public.event_partition_bits(wanted_log smallint) IS 'A partition of this log is 2 to the power of this many events';
CREATE FUNCTION public.event_run_seq_as_of(wanted_log smallint, wanted_run bigint, upto bigint) RETURNS bigint
    LANGUAGE plpgsql STABLE
    AS $$
DECLARE
  low    bigint := -1;
  high   bigint := (SELECT max(run_seq) + 1 FROM event WHERE log_no = wanted_log AND run_no = wanted_run);
  middle bigint;
  passed bigint;
BEGIN
  IF high IS NULL THEN RETURN -1; END IF;
  WHILE high - low > 1 LOOP
    middle := (low + high) / 2;
    SELECT seq INTO STRICT passed FROM event WHERE log_no = wanted_log AND run_no = wanted_run AND run_seq = middle;
    IF passed <= upto THEN low := middle; ELSE high := middle; END IF;
  END LOOP;
  RETURN low;
END $$;
COMMENT ON FUNCTION public.event_run_seq_as_of(wanted_log smallint, wanted_run bigint, upto bigint) IS 'The last run_seq of the run with seq <= upto; -1 where there is none';
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
COMMENT ON FUNCTION public.event_seq_as_of(wanted_log smallint, moment timestamp with time zone) IS 'The last seq with recorded_at <= moment; -1 where there is none';
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
COMMENT ON FUNCTION public.event_seq_before(wanted_log smallint, moment timestamp with time zone) IS 'A seq recorded before the moment whose successor was not (or the log''s edge); NULL for an empty log';
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
COMMENT ON FUNCTION public.event_seq_since(wanted_log smallint, moment timestamp with time zone) IS 'The first seq with recorded_at >= moment; the log''s size where there is none';
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
COMMENT ON FUNCTION public.muniment_role(kind text) IS 'The role of this database for owner, writer, auditor, reporter or redactor';
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
CREATE FUNCTION report.sees(run_id text) RETURNS boolean
    LANGUAGE sql STABLE
    AS $$
  SELECT left(run_id, 1) <> '_' AND (coalesce(current_setting('muniment.runs', true), '') = ''
         OR run_id = ANY (string_to_array(current_setting('muniment.runs', true), ',')))
$$;
COMMENT ON FUNCTION report.sees(run_id text) IS 'Whether the run is among those that muniment.runs names (comma separated; empty: all). What concerns the whole log (_log) never is';
CREATE TABLE public.archived_partition (
    log_no smallint NOT NULL,
    number bigint NOT NULL,
    first_seq bigint NOT NULL,
    last_seq bigint NOT NULL,
    archived_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT archived_partition_number_check CHECK ((number >= 0))
);
COMMENT ON TABLE public.archived_partition IS 'Partitions of the log whose bodies lie in the archive';
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
COMMENT ON TABLE public.checkpoint IS 'The tree at some sizes: its root and its right edge, from which a start goes on';
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
COMMENT ON COLUMN public.chunk.seq IS 'The document.revised event of its document';
COMMENT ON COLUMN public.chunk.number IS 'Its place in the document, from 0: the n of #p<n>';
COMMENT ON COLUMN public.chunk.hash IS 'SHA-256 of its bytes, as its event says';
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
CREATE TABLE public.corpus (
    log_no smallint NOT NULL,
    corpus text NOT NULL,
    owner text NOT NULL,
    first_seq bigint NOT NULL,
    last_seq bigint NOT NULL,
    CONSTRAINT corpus_corpus_check CHECK (((octet_length(corpus) >= 1) AND (octet_length(corpus) <= 128))),
    CONSTRAINT corpus_owner_check CHECK (((octet_length(owner) >= 1) AND (octet_length(owner) <= 128)))
);
COMMENT ON TABLE public.corpus IS 'A collection of documents, which is there from its first document on';
COMMENT ON COLUMN public.corpus.owner IS 'The actor of its first document.revised: who sees it';
COMMENT ON COLUMN public.corpus.last_seq IS 'The last event that changed it';
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
COMMENT ON COLUMN public.document.seq IS 'Its document.revised event, or in the corpus run the event that it is';
COMMENT ON COLUMN public.document.revision IS 'What its pointers carry: the first 16 digits of hash, or the label that it was ingested with';
COMMENT ON COLUMN public.document.hash IS 'SHA-256 of the hash of its bytes and the name of the chunker';
COMMENT ON COLUMN public.document.artifact_id IS 'Its bytes are size_bytes of this artifact, from start_byte on; NULL: the text of an event';
COMMENT ON COLUMN public.document.text_artifact_id IS 'The text that was taken out of it, where its bytes are not UTF-8 text';
COMMENT ON COLUMN public.document.source IS 'What it comes from, by which it can be revoked';
COMMENT ON COLUMN public.document.sources IS 'Its source and those of what it was derived from';
COMMENT ON COLUMN public.document.first_chunk IS 'Its chunks have the ids from here on';
COMMENT ON COLUMN public.document.valid_to IS 'The event that ended it; NULL: it is current';
COMMENT ON COLUMN public.document.removed_at IS 'The event that took it out of the indexes: its source was revoked, or it was erased';
COMMENT ON COLUMN public.document.owner IS 'Of an event: the actor of its run''s run.started, who sees it; NULL: the owner of the corpus does';
COMMENT ON COLUMN public.document.origin IS 'Of an event: its origin';
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
COMMENT ON COLUMN public.event.body IS 'The bytes that were hashed. NULL with a salt: it is in the archive; NULL together with salt: redacted';
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
    CONSTRAINT evidence_actor_check CHECK ((octet_length(actor) <= 128)),
    CONSTRAINT evidence_check CHECK ((num_nonnulls(content, pointer) = 1)),
    CONSTRAINT evidence_content_check CHECK ((octet_length((content)::text) <= 61440)),
    CONSTRAINT evidence_hash_check CHECK ((hash ~ '^[0-9a-f]{64}$'::text)),
    CONSTRAINT evidence_pointer_check CHECK ((octet_length(pointer) <= 2048)),
    CONSTRAINT evidence_run_id_check CHECK ((octet_length(run_id) <= 128)),
    CONSTRAINT evidence_type_check CHECK ((octet_length(type) <= 100)),
    CONSTRAINT evidence_validator_id_check CHECK ((octet_length(validator_id) <= 256))
);
COMMENT ON COLUMN public.evidence.hash IS 'SHA-256 of the content''s text, or of what the pointer named when it was recorded: reuse shows';
CREATE TABLE public.evidence_link (
    claim_id uuid NOT NULL,
    evidence_id uuid NOT NULL,
    relation text NOT NULL,
    log_no smallint NOT NULL,
    seq bigint NOT NULL,
    CONSTRAINT evidence_link_relation_check CHECK ((relation = ANY (ARRAY['supports'::text, 'refutes'::text])))
);
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
COMMENT ON TABLE public.feedback IS 'How relevant a card was found, from feedback.recorded';
COMMENT ON COLUMN public.feedback.chunk_id IS 'The passage that the pointer names; NULL for an event of a run';
CREATE TABLE public.follower (
    log_no smallint NOT NULL,
    name text NOT NULL,
    next_seq bigint NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT follower_name_check CHECK ((octet_length(name) <= 64))
);
COMMENT ON COLUMN public.follower.next_seq IS 'The first seq that the follower has not yet seen';
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
COMMENT ON TABLE public.log_head IS 'One row a log. It changes only when a writer takes over: the epoch fences the one before.';
COMMENT ON COLUMN public.log_head.writer IS 'The process that raised the epoch last, so that it recognises its own raise when the answer was lost';
COMMENT ON COLUMN public.log_head.partition_bits IS 'A partition of this log is 2^partition_bits events';
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
COMMENT ON TABLE public.manifest IS 'What was in the context window and why. hash = sha256(salt, manifest); seq is its manifest.recorded event.';
CREATE TABLE public.pointer (
    log_no smallint NOT NULL,
    pointer text NOT NULL,
    needed_by text NOT NULL,
    needed_id uuid NOT NULL,
    run_id text NOT NULL,
    seq bigint NOT NULL,
    CONSTRAINT pointer_needed_by_check CHECK ((needed_by = ANY (ARRAY['claim'::text, 'evidence'::text, 'manifest'::text]))),
    CONSTRAINT pointer_pointer_check CHECK ((octet_length(pointer) <= 2048)),
    CONSTRAINT pointer_run_id_check CHECK ((octet_length(run_id) <= 128))
);
COMMENT ON TABLE public.pointer IS 'Derived from the log by the follower "pointer"; rebuilt by: muniment rebuild';
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
COMMENT ON VIEW report.event_log IS 'The events of runs, in order of seq; not those that concern the whole log. A run appears once the follower "run" has seen it';
COMMENT ON COLUMN report.event_log.log_no IS 'The log''s number within this database';
COMMENT ON COLUMN report.event_log.seq IS 'Position in the log, from 0; it is the leaf index of proofs';
COMMENT ON COLUMN report.event_log.run_id IS 'The run that the event belongs to';
COMMENT ON COLUMN report.event_log.run_seq IS 'Position in its run, from 0';
COMMENT ON COLUMN report.event_log.recorded_at IS 'The daemon''s clock when the event was appended';
COMMENT ON COLUMN report.event_log.occurred_at IS 'The client''s or the source''s time; never trusted for order';
COMMENT ON COLUMN report.event_log.origin IS 'Who vouches for it: observed, reported or imported';
COMMENT ON COLUMN report.event_log.type IS 'Noun.participle, as in schema/event/';
COMMENT ON COLUMN report.event_log.schema_version IS 'Version of the type''s schema';
COMMENT ON COLUMN report.event_log.step_id IS 'The step within the run';
COMMENT ON COLUMN report.event_log.actor IS 'The authenticated identity that appended it';
COMMENT ON COLUMN report.event_log.event_id IS 'The client''s id of it, unique within its run';
COMMENT ON COLUMN report.event_log.redacted IS 'The body was erased; its hash stands';
COMMENT ON COLUMN report.event_log.body IS 'What it says; NULL once redacted or archived';
COMMENT ON COLUMN report.event_log.archived IS 'The body is in the archive: event.get and event.list of the daemon have it';
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
    ADD CONSTRAINT evidence_pkey PRIMARY KEY (evidence_id);
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
    ADD CONSTRAINT pointer_pkey PRIMARY KEY (log_no, pointer, needed_by, needed_id);
ALTER TABLE ONLY public.run
    ADD CONSTRAINT run_log_no_run_id_key UNIQUE (log_no, run_id);
ALTER TABLE ONLY public.run
    ADD CONSTRAINT run_pkey PRIMARY KEY (log_no, run_no);
ALTER TABLE ONLY public.schema_migration
    ADD CONSTRAINT schema_migration_pkey PRIMARY KEY (number);
ALTER TABLE ONLY public.snapshot
    ADD CONSTRAINT snapshot_pkey PRIMARY KEY (log_no, run_no, seq);
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
CREATE INDEX evidence_hash ON public.evidence USING btree (hash);
CREATE INDEX evidence_link_evidence ON public.evidence_link USING btree (evidence_id);
CREATE INDEX evidence_run ON public.evidence USING btree (run_id, seq);
CREATE INDEX evidence_seq ON public.evidence USING btree (log_no, seq);
CREATE INDEX feedback_chunk ON public.feedback USING btree (log_no, chunk_id, seq) WHERE (chunk_id IS NOT NULL);
CREATE INDEX manifest_run ON public.manifest USING btree (run_id, seq);
CREATE INDEX run_external ON public.run USING btree (external_id) WHERE (external_id IS NOT NULL);
CREATE INDEX run_parent ON public.run USING btree (parent) WHERE (parent IS NOT NULL);
CREATE INDEX run_started ON public.run USING btree (log_no, started_at);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE ON public.archived_partition FOR EACH ROW EXECUTE FUNCTION public.refuse_change();
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE ON public.artifact FOR EACH ROW EXECUTE FUNCTION public.refuse_but_erasure();
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE ON public.checkpoint FOR EACH ROW EXECUTE FUNCTION public.refuse_change();
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE ON public.checkpoint_note FOR EACH ROW EXECUTE FUNCTION public.refuse_change();
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE ON public.event FOR EACH ROW EXECUTE FUNCTION public.refuse_but_erasure();
CREATE TRIGGER append_only BEFORE DELETE ON public.log_head FOR EACH ROW EXECUTE FUNCTION public.refuse_change();
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE ON public.manifest FOR EACH ROW EXECUTE FUNCTION public.refuse_but_erasure();
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE ON public.snapshot FOR EACH ROW EXECUTE FUNCTION public.refuse_but_erasure();
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
ALTER TABLE ONLY public.evidence_link
    ADD CONSTRAINT evidence_link_evidence_id_fkey FOREIGN KEY (evidence_id) REFERENCES public.evidence(evidence_id);
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
CREATE POLICY auditor ON public.run FOR SELECT TO muniment_auditor USING (true);
CREATE POLICY auditor ON public.snapshot FOR SELECT TO muniment_auditor USING (true);
ALTER TABLE public.chunk ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.claim ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.corpus ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.document ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.event ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.evidence ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.feedback ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.manifest ENABLE ROW LEVEL SECURITY;
CREATE POLICY reporter ON public.artifact FOR SELECT TO muniment_reporter USING (report.sees(run_id));
ALTER TABLE public.run ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.snapshot ENABLE ROW LEVEL SECURITY;
