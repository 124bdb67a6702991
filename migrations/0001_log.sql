-- The log: its head, its events, and the tree's checkpoints. docs/format.md specifies every hashed byte.

CREATE TABLE log_head (
  log_no      smallint PRIMARY KEY CHECK (log_no > 0),
  log_id      uuid NOT NULL UNIQUE,
  epoch       bigint NOT NULL DEFAULT 0,
  writer      uuid,
  created_at  timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE log_head IS 'One row a log. It changes only when a writer takes over: the epoch fences the one before.';
COMMENT ON COLUMN log_head.writer IS 'The process that raised the epoch last, so that it recognises its own raise when the answer was lost';

CREATE TABLE event (
  log_no         smallint NOT NULL,
  seq            bigint NOT NULL CHECK (seq >= 0),
  run_no         bigint NOT NULL CHECK (run_no >= 0),
  run_seq        bigint NOT NULL CHECK (run_seq >= 0),
  recorded_at    timestamptz NOT NULL,
  occurred_at    timestamptz,
  origin         smallint NOT NULL CHECK (origin BETWEEN 1 AND 3),
  type           text NOT NULL CHECK (octet_length(type) BETWEEN 1 AND 100),
  schema_version smallint NOT NULL CHECK (schema_version > 0),
  step_id        text CHECK (octet_length(step_id) BETWEEN 1 AND 200),
  actor          text NOT NULL CHECK (octet_length(actor) BETWEEN 1 AND 128),
  event_id       uuid NOT NULL,
  body_hash      bytea NOT NULL CHECK (octet_length(body_hash) = 32),
  salt           bytea CHECK (octet_length(salt) = 32),
  body           json CHECK (octet_length(body::text) <= 61440),
  run_hash       bytea NOT NULL CHECK (octet_length(run_hash) = 32),
  PRIMARY KEY (log_no, seq),
  CHECK ((salt IS NULL) = (body IS NULL))
) PARTITION BY LIST (log_no);
COMMENT ON TABLE event IS 'The authoritative history. seq is gapless within a log and is the Merkle leaf index; run_seq is gapless within a run.';
COMMENT ON COLUMN event.origin IS '1 observed, 2 reported, 3 imported';
COMMENT ON COLUMN event.body IS 'The bytes that were hashed; NULL together with salt once redacted';

CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION '% is append-only: % refused', TG_TABLE_NAME, TG_OP
    USING ERRCODE = 'insufficient_privilege', HINT = 'Erase with: muniment audit redact';
END $$;

CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON event
  FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER no_truncate BEFORE TRUNCATE ON event
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- A log keeps its identity, and its epoch only grows.
CREATE TRIGGER keeps_identity BEFORE UPDATE ON log_head FOR EACH ROW
  WHEN ((old.log_no, old.log_id, old.created_at) IS DISTINCT FROM (new.log_no, new.log_id, new.created_at)
        OR new.epoch < old.epoch)
  EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only BEFORE DELETE ON log_head
  FOR EACH ROW EXECUTE FUNCTION refuse_change();

-- One partition is 2^24 events: one full subtree of 256^3 leaves. It is made beside the table and
-- then attached: CREATE … PARTITION OF would queue behind every open reader, and inserts behind it.
-- ATTACH clones the row triggers, finds the key's index there, and need not scan for the CHECK's sake;
-- it does not clone TRUNCATE triggers.
CREATE FUNCTION make_event_partition(wanted_log smallint, number bigint) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp SET lock_timeout = '2s' AS $$
DECLARE
  log_table  text := format('event_%s', wanted_log);
  part_table text := format('event_%s_%s', wanted_log, number);
  low  bigint := number << 24;
  high bigint := (number + 1) << 24;
BEGIN
  IF to_regclass(log_table) IS NULL THEN
    EXECUTE format('CREATE TABLE %I (LIKE event INCLUDING DEFAULTS INCLUDING CONSTRAINTS) PARTITION BY RANGE (seq)', log_table);
    EXECUTE format('ALTER TABLE %I ADD CHECK (log_no = %s)', log_table, wanted_log);
    EXECUTE format('ALTER TABLE %I ADD PRIMARY KEY (log_no, seq)', log_table);
    EXECUTE format('CREATE TRIGGER no_truncate BEFORE TRUNCATE ON %I FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()', log_table);
    EXECUTE format('ALTER TABLE event ATTACH PARTITION %I FOR VALUES IN (%s)', log_table, wanted_log);
  END IF;
  IF to_regclass(part_table) IS NULL THEN
    EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING DEFAULTS INCLUDING CONSTRAINTS)', part_table, log_table);
    EXECUTE format('ALTER TABLE %I ADD CHECK (log_no = %s AND seq >= %s AND seq < %s)', part_table, wanted_log, low, high);
    EXECUTE format('ALTER TABLE %I ADD PRIMARY KEY (log_no, seq)', part_table);
    EXECUTE format('CREATE UNIQUE INDEX %I ON %I (log_no, run_no, run_seq)', part_table || '_run', part_table);
    EXECUTE format('CREATE UNIQUE INDEX %I ON %I (log_no, run_no, event_id)', part_table || '_event_id', part_table);
    -- A run by its id, and the few events that make its row: the state of a run is read from the log
    -- itself, whatever a derived table says.
    EXECUTE format($sql$CREATE UNIQUE INDEX %I ON %I (log_no, (body ->> 'run_id')) WHERE run_seq = 0 AND run_no > 0$sql$,
                   part_table || '_started', part_table);
    EXECUTE format($sql$CREATE INDEX %I ON %I (log_no, run_no, run_seq)
                        WHERE type IN ('run.started', 'run.ended', 'run.halted', 'run.resumed', 'run.annotated')$sql$,
                   part_table || '_life', part_table);
    EXECUTE format('CREATE INDEX %I ON %I USING brin (recorded_at, seq) WITH (pages_per_range = 32, autosummarize = on)',
                   part_table || '_time', part_table);
    EXECUTE format('CREATE TRIGGER no_truncate BEFORE TRUNCATE ON %I FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()', part_table);
    EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%s) TO (%s)', log_table, part_table, low, high);
  END IF;
  RETURN part_table;
END $$;

REVOKE ALL ON FUNCTION make_event_partition(smallint, bigint) FROM PUBLIC;

-- Positions of moments. recorded_at is the wall clock, which may step back: bisecting by the key finds
-- one side of a crossing, and the BRIN index then finds what lies beyond it on the wrong side. The
-- planner is kept from walking the key's index instead, which is exact too but reads everything.
CREATE FUNCTION event_seq_before(wanted_log smallint, moment timestamptz) RETURNS bigint
LANGUAGE plpgsql STABLE SET enable_seqscan = on SET enable_indexscan = on SET enable_indexonlyscan = on AS $$
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
COMMENT ON FUNCTION event_seq_before IS 'A seq recorded before the moment whose successor was not (or the log''s edge); NULL for an empty log';

CREATE FUNCTION event_seq_as_of(wanted_log smallint, moment timestamptz) RETURNS bigint
LANGUAGE plpgsql STABLE SET enable_seqscan = off SET enable_indexscan = off SET enable_indexonlyscan = off AS $$
DECLARE
  past     timestamptz := moment + interval '1 microsecond';
  bisected bigint;
  later    bigint;
BEGIN
  bisected := event_seq_before(wanted_log, past);
  SELECT max(seq) INTO later FROM event WHERE log_no = wanted_log AND seq > bisected AND recorded_at < past;
  RETURN coalesce(later, bisected, -1);
END $$;
COMMENT ON FUNCTION event_seq_as_of IS 'The last seq with recorded_at <= moment; -1 where there is none';

CREATE FUNCTION event_seq_since(wanted_log smallint, moment timestamptz) RETURNS bigint
LANGUAGE plpgsql STABLE SET enable_seqscan = off SET enable_indexscan = off SET enable_indexonlyscan = off AS $$
DECLARE
  bisected bigint;
  earlier  bigint;
BEGIN
  bisected := event_seq_before(wanted_log, moment);
  SELECT min(seq) INTO earlier FROM event WHERE log_no = wanted_log AND seq <= bisected AND recorded_at >= moment;
  RETURN coalesce(earlier, bisected + 1, 0);
END $$;
COMMENT ON FUNCTION event_seq_since IS 'The first seq with recorded_at >= moment; the log''s size where there is none';

CREATE FUNCTION event_run_seq_as_of(wanted_log smallint, wanted_run bigint, upto bigint) RETURNS bigint
LANGUAGE plpgsql STABLE AS $$
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
COMMENT ON FUNCTION event_run_seq_as_of IS 'The last run_seq of the run with seq <= upto; -1 where there is none';

CREATE TABLE checkpoint (
  log_no      smallint NOT NULL REFERENCES log_head,
  size        bigint NOT NULL CHECK (size >= 0),
  root        bytea NOT NULL CHECK (octet_length(root) = 32),
  edge        bytea NOT NULL CHECK (octet_length(edge) <= 2048),
  recorded_at timestamptz NOT NULL,
  note        text CHECK (octet_length(note) <= 4096),
  PRIMARY KEY (log_no, size)
);
COMMENT ON TABLE checkpoint IS 'The tree at some sizes: its root and its right edge. note is the signed form, where there is one.';
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON checkpoint
  FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER no_truncate BEFORE TRUNCATE ON checkpoint
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
