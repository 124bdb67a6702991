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

-- One partition is 2^24 events: one full subtree of 256^3 leaves. It is made beside the table and
-- then attached: CREATE … PARTITION OF would queue behind every open reader, and inserts behind it.
CREATE FUNCTION make_event_partition(wanted_log smallint, number bigint) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  log_table  text := format('event_%s', wanted_log);
  part_table text := format('event_%s_%s', wanted_log, number);
  low  bigint := number << 24;
  high bigint := (number + 1) << 24;
BEGIN
  SET LOCAL lock_timeout = '2s';
  IF to_regclass(log_table) IS NULL THEN
    EXECUTE format('CREATE TABLE %I (LIKE event INCLUDING DEFAULTS INCLUDING CONSTRAINTS) PARTITION BY RANGE (seq)', log_table);
    EXECUTE format('ALTER TABLE %I ADD CHECK (log_no = %s)', log_table, wanted_log);
    EXECUTE format('ALTER TABLE %I ADD PRIMARY KEY (log_no, seq)', log_table);
    EXECUTE format('ALTER TABLE event ATTACH PARTITION %I FOR VALUES IN (%s)', log_table, wanted_log);
  END IF;
  IF to_regclass(part_table) IS NULL THEN
    EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING DEFAULTS INCLUDING CONSTRAINTS)', part_table, log_table);
    EXECUTE format('ALTER TABLE %I ADD CHECK (log_no = %s AND seq >= %s AND seq < %s)', part_table, wanted_log, low, high);
    EXECUTE format('ALTER TABLE %I ADD PRIMARY KEY (log_no, seq)', part_table);
    EXECUTE format('CREATE UNIQUE INDEX %I ON %I (log_no, run_no, run_seq)', part_table || '_run', part_table);
    EXECUTE format('CREATE UNIQUE INDEX %I ON %I (log_no, run_no, event_id)', part_table || '_event_id', part_table);
    EXECUTE format('CREATE INDEX %I ON %I USING brin (recorded_at) WITH (pages_per_range = 32)', part_table || '_time', part_table);
    EXECUTE format('CREATE TRIGGER no_truncate BEFORE TRUNCATE ON %I FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()', part_table);
    EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%s) TO (%s)', log_table, part_table, low, high);
  END IF;
  RETURN part_table;
END $$;

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
