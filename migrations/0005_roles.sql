-- Who may do what. Five group roles that cannot log in, named <prefix>_owner, _writer, _auditor, _reporter and
-- _redactor. Roles belong to the whole server, so the prefix names the database: `muniment` for a database of that
-- name, otherwise `muniment_<database>`, or what muniment.role_prefix says. docs/runbook.md (roles) has the
-- statements for a server on which the daemon's user may not make them.

DO $$
DECLARE
  database text := current_database();
  prefix   text := coalesce(nullif(current_setting('muniment.role_prefix', true), ''),
                            CASE WHEN database = 'muniment' THEN database ELSE 'muniment_' || database END);
  kind     text;
  role     text;
  missing  text := '';
BEGIN
  IF octet_length(prefix) > 50 THEN  -- a name has at most 63 bytes
    prefix := 'muniment_' || left(md5(database), 16);
  END IF;
  FOREACH kind IN ARRAY ARRAY['owner', 'writer', 'auditor', 'reporter', 'redactor'] LOOP
    role := quote_ident(prefix || '_' || kind);
    IF to_regrole(role) IS NULL THEN
      BEGIN
        EXECUTE format('CREATE ROLE %s NOLOGIN', role);
      EXCEPTION WHEN insufficient_privilege THEN
        missing := missing || format('CREATE ROLE %s NOLOGIN%s; GRANT %s TO %I; ', role,
                                     CASE kind WHEN 'writer' THEN ' BYPASSRLS' ELSE '' END, role, current_user);
        CONTINUE;
      END;
    END IF;
    IF NOT pg_has_role(prefix || '_' || kind, 'MEMBER') THEN
      BEGIN
        EXECUTE format('GRANT %s TO %I', role, current_user);
      EXCEPTION WHEN insufficient_privilege OR invalid_grant_operation THEN
        missing := missing || format('GRANT %s TO %I; ', role, current_user);
      END;
    END IF;
  END LOOP;
  IF missing <> '' THEN
    RAISE EXCEPTION 'the database user "%" may not make roles. Let an administrator run: %then start again (docs/runbook.md, roles)',
      current_user, missing USING ERRCODE = 'insufficient_privilege';
  END IF;
  EXECUTE format('GRANT USAGE, CREATE ON SCHEMA public TO %I', prefix || '_owner');
  EXECUTE format('ALTER TABLE event OWNER TO %I', prefix || '_owner');
END $$;

-- The name of a role in this database: whoever owns the log says it, also in a copy of the database under another name.
CREATE FUNCTION muniment_role(kind text) RETURNS text LANGUAGE sql STABLE AS $$
  SELECT regexp_replace(pg_get_userbyid(relowner), 'owner$', kind) FROM pg_class WHERE oid = 'public.event'::regclass
$$;
COMMENT ON FUNCTION muniment_role IS 'The role of this database for owner, writer, auditor, reporter or redactor';

CREATE SCHEMA report;
COMMENT ON SCHEMA report IS 'Views for analysts; columns are only ever added';

-- What a reporter sees of a run. The setting is a net against mistakes and not a wall: who may SET it may widen it.
CREATE FUNCTION report.sees(run_id text) RETURNS boolean LANGUAGE sql STABLE AS $$
  SELECT left(run_id, 1) <> '_' AND (coalesce(current_setting('muniment.runs', true), '') = ''
         OR run_id = ANY (string_to_array(current_setting('muniment.runs', true), ',')))
$$;
COMMENT ON FUNCTION report.sees IS 'Whether the run is among those that muniment.runs names (comma separated; empty: all). What concerns the whole log (_log) never is';

CREATE VIEW report.event_log WITH (security_barrier) AS
  SELECT e.log_no, e.seq, r.run_id, e.run_seq, e.recorded_at, e.occurred_at,
         (ARRAY['observed', 'reported', 'imported'])[e.origin] AS origin, e.type, e.schema_version, e.step_id, e.actor,
         e.event_id, e.body IS NULL AS redacted, e.body::jsonb AS body
  FROM event e JOIN run r USING (log_no, run_no)
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
COMMENT ON COLUMN report.event_log.body IS 'What it says; NULL once redacted';

-- Rights. The owner alone has DDL; nobody but it may change or remove what is append-only, and the triggers refuse
-- that to it too.
DO $$
DECLARE
  owner    text := quote_ident(muniment_role('owner'));
  writer   text := quote_ident(muniment_role('writer'));
  auditor  text := quote_ident(muniment_role('auditor'));
  reporter text := quote_ident(muniment_role('reporter'));
  redactor text := quote_ident(muniment_role('redactor'));
  all_tables text[] := ARRAY['log_head', 'event', 'checkpoint', 'checkpoint_note', 'run', 'artifact',
                             'manifest', 'snapshot', 'claim', 'evidence', 'evidence_link', 'pointer', 'follower'];
  item     text;
BEGIN
  EXECUTE format('GRANT USAGE ON SCHEMA public, report TO %s', auditor);
  EXECUTE format('GRANT USAGE ON SCHEMA public TO %s, %s', writer, redactor);
  EXECUTE format('GRANT USAGE ON SCHEMA public, report TO %s', reporter);
  EXECUTE format('GRANT USAGE, CREATE ON SCHEMA report TO %s', owner);
  EXECUTE format('GRANT TEMPORARY ON DATABASE %I TO %s', current_database(), owner);
  EXECUTE format('GRANT TEMPORARY ON DATABASE %I TO %s', current_database(), writer);  -- rebuild compares in temporary tables
  IF to_regclass('public.schema_migration') IS NOT NULL THEN  -- whoever applies migrations keeps it
    all_tables := all_tables || ARRAY['schema_migration'];
  END IF;
  FOREACH item IN ARRAY all_tables LOOP
    EXECUTE format('ALTER TABLE public.%I OWNER TO %s', item, owner);
    EXECUTE format('GRANT SELECT ON public.%I TO %s, %s', item, writer, auditor);
  END LOOP;
  FOR item IN SELECT relid::regclass FROM pg_partition_tree('event') WHERE relid <> 'event'::regclass LOOP
    EXECUTE format('ALTER TABLE %s OWNER TO %s', item, owner);
  END LOOP;
  FOR item IN SELECT oid::regprocedure FROM pg_proc WHERE pronamespace = 'public'::regnamespace
              AND proname IN ('refuse_change', 'make_event_partition', 'event_seq_before', 'event_seq_as_of',
                              'event_seq_since', 'event_run_seq_as_of', 'muniment_role') LOOP
    EXECUTE format('ALTER FUNCTION %s OWNER TO %s', item, owner);
  END LOOP;
  EXECUTE format('ALTER FUNCTION report.sees(text) OWNER TO %s', owner);
  EXECUTE format('ALTER VIEW report.event_log OWNER TO %s', owner);
  EXECUTE format('ALTER SCHEMA report OWNER TO %s', owner);

  EXECUTE format('GRANT INSERT ON log_head, event, checkpoint, checkpoint_note, artifact, manifest, snapshot TO %s', writer);
  EXECUTE format('GRANT UPDATE (epoch, writer) ON log_head TO %s', writer);
  EXECUTE format('GRANT INSERT, UPDATE ON follower TO %s', writer);
  EXECUTE format('GRANT INSERT, UPDATE, DELETE ON run, claim, evidence, evidence_link, pointer TO %s', writer);
  EXECUTE format('GRANT EXECUTE ON FUNCTION make_event_partition(smallint, bigint) TO %s', writer);
  EXECUTE format('GRANT SELECT ON artifact, report.event_log TO %s', reporter);
  EXECUTE format('GRANT SELECT ON report.event_log TO %s', auditor);
  EXECUTE format('ALTER DEFAULT PRIVILEGES FOR ROLE %s IN SCHEMA public GRANT SELECT ON TABLES TO %s, %s', owner, writer, auditor);
  EXECUTE format('ALTER DEFAULT PRIVILEGES FOR ROLE %s IN SCHEMA report GRANT SELECT ON TABLES TO %s, %s', owner, reporter, auditor);
END $$;

-- The net under the rights: a role that is given SELECT on a table by mistake still reads nothing, and a reporter reads
-- the artifacts of the runs that it is shown. The writer must pass by it, since COPY does not work through it; on a
-- server that does not allow that (BYPASSRLS needs a superuser) there are the rights alone.
DO $$
DECLARE
  item text;
BEGIN
  BEGIN
    EXECUTE format('ALTER ROLE %I BYPASSRLS', muniment_role('writer'));
  EXCEPTION WHEN insufficient_privilege THEN NULL;  -- an administrator may have done it
  END;
  FOREACH item IN ARRAY ARRAY['event', 'run', 'artifact', 'manifest', 'snapshot', 'claim', 'evidence'] LOOP
    EXECUTE format('CREATE POLICY auditor ON %I FOR SELECT TO %I USING (true)', item, muniment_role('auditor'));
    IF (SELECT rolbypassrls FROM pg_roles WHERE rolname = muniment_role('writer')) THEN
      EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', item);
    END IF;
  END LOOP;
  EXECUTE format('CREATE POLICY reporter ON artifact FOR SELECT TO %I USING (report.sees(run_id))', muniment_role('reporter'));
END $$;
