-- Archive: a sealed partition keeps its rows and gives its bodies to files (store/body_archive.hpp; docs/format.md,
-- Archive). `salt` tells: with a salt and no body the body is in the archive; without a salt it is erased.

ALTER TABLE event DROP CONSTRAINT event_check;
ALTER TABLE event ADD CONSTRAINT event_body_has_salt CHECK (body IS NULL OR salt IS NOT NULL);
COMMENT ON COLUMN event.body IS 'The bytes that were hashed. NULL with a salt: it is in the archive; NULL together with salt: redacted';

-- A log's partitions are of one size, which is chosen when the log is made.
ALTER TABLE log_head ADD COLUMN partition_bits smallint NOT NULL DEFAULT 24 CHECK (partition_bits BETWEEN 10 AND 24);
COMMENT ON COLUMN log_head.partition_bits IS 'A partition of this log is 2^partition_bits events';
DROP TRIGGER keeps_identity ON log_head;
CREATE TRIGGER keeps_identity BEFORE UPDATE ON log_head FOR EACH ROW
  WHEN ((old.log_no, old.log_id, old.created_at, old.partition_bits) IS DISTINCT FROM (new.log_no, new.log_id, new.created_at, new.partition_bits)
        OR new.epoch < old.epoch)
  EXECUTE FUNCTION refuse_change();

CREATE FUNCTION event_partition_bits(wanted_log smallint) RETURNS integer LANGUAGE sql STABLE AS $$
  SELECT coalesce((SELECT partition_bits FROM log_head WHERE log_no = wanted_log), 24)::integer
$$;
COMMENT ON FUNCTION event_partition_bits IS 'A partition of this log is 2 to the power of this many events';

-- Making a partition, in the two steps that archiving takes too: the table, and its indexes once it is filled.
CREATE FUNCTION make_event_table(log_table text, part_table text, wanted_log smallint, low bigint, high bigint) RETURNS void
LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
  EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING DEFAULTS INCLUDING CONSTRAINTS)', part_table, log_table);
  EXECUTE format('ALTER TABLE %I ADD CONSTRAINT event_place CHECK (log_no = %s AND seq >= %s AND seq < %s)', part_table, wanted_log, low, high);
  EXECUTE format('CREATE TRIGGER no_truncate BEFORE TRUNCATE ON %I FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()', part_table);
END $$;

CREATE FUNCTION make_event_indexes(part_table text, prefix text) RETURNS void
LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
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
END $$;

-- As in 0001_log.sql, with the log's own size of a partition.
CREATE OR REPLACE FUNCTION make_event_partition(wanted_log smallint, number bigint) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp SET lock_timeout = '2s' AS $$
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

-- What other tables, indexes and rules are made of stays in the database: it is little.
CREATE FUNCTION event_body_stays(type text) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
  SELECT split_part(type, '.', 1) = ANY ('{access,artifact,claim,document,event,evidence,key,log,manifest,pointer,run,snapshot,source,task}')
$$;
COMMENT ON FUNCTION event_body_stays IS 'Whether an event of this type keeps its body in the database when its partition is archived';

CREATE TABLE archived_partition (
  log_no      smallint NOT NULL,
  number      bigint NOT NULL CHECK (number >= 0),
  first_seq   bigint NOT NULL,
  last_seq    bigint NOT NULL,
  archived_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (log_no, number)
);
COMMENT ON TABLE archived_partition IS 'Partitions of the log whose bodies lie in the archive';
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON archived_partition FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER no_truncate BEFORE TRUNCATE ON archived_partition FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- Detaches a partition and puts the same rows without their bodies in its place, all of it or nothing. Its caller has
-- every body in files. Readers are not kept waiting: the lock is asked for in short turns, for at most `wait`.
CREATE FUNCTION archive_event_partition(wanted_log smallint, number bigint, wait interval) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
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
COMMENT ON FUNCTION archive_event_partition IS 'Takes the bodies of a sealed partition out of the database, once they are in the archive''s files';

-- `redacted` is what has no salt. A view's columns are only ever added.
CREATE OR REPLACE VIEW report.event_log WITH (security_barrier) AS
  SELECT e.log_no, e.seq, r.run_id, e.run_seq, e.recorded_at, e.occurred_at,
         (ARRAY['observed', 'reported', 'imported'])[e.origin] AS origin, e.type, e.schema_version, e.step_id, e.actor,
         e.event_id, e.salt IS NULL AS redacted, e.body::jsonb AS body, e.salt IS NOT NULL AND e.body IS NULL AS archived
  FROM event e JOIN run r USING (log_no, run_no)
  WHERE report.sees(r.run_id);
COMMENT ON COLUMN report.event_log.body IS 'What it says; NULL once redacted or archived';
COMMENT ON COLUMN report.event_log.archived IS 'The body is in the archive: event.get and event.list of the daemon have it';

REVOKE ALL ON FUNCTION make_event_table(text, text, smallint, bigint, bigint), make_event_indexes(text, text),
  archive_event_partition(smallint, bigint, interval) FROM PUBLIC;
DO $$
DECLARE
  item text;
BEGIN
  FOR item IN SELECT oid::regprocedure FROM pg_proc WHERE pronamespace = 'public'::regnamespace
              AND proname IN ('make_event_table', 'make_event_indexes', 'archive_event_partition', 'event_partition_bits',
                              'event_body_stays') LOOP
    EXECUTE format('ALTER FUNCTION %s OWNER TO %I', item, muniment_role('owner'));
  END LOOP;
  EXECUTE format('ALTER TABLE archived_partition OWNER TO %I', muniment_role('owner'));
  EXECUTE format('GRANT SELECT ON archived_partition TO %I, %I', muniment_role('writer'), muniment_role('auditor'));
  -- Taking bodies away is the redactor's business, whether they are erased or moved.
  EXECUTE format('GRANT EXECUTE ON FUNCTION archive_event_partition(smallint, bigint, interval) TO %I', muniment_role('redactor'));
END $$;
