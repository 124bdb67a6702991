-- What belongs to a run beside its events: its row (kept by a follower), its files, snapshots and manifests.

CREATE TABLE run (
  log_no       smallint NOT NULL REFERENCES log_head,
  run_no       bigint NOT NULL,
  run_id       text NOT NULL CHECK (octet_length(run_id) <= 128),
  first_seq    bigint NOT NULL,
  status       text NOT NULL CHECK (status IN ('open', 'ended', 'halted')),
  outcome      text CHECK (octet_length(outcome) <= 32),
  origin       smallint NOT NULL CHECK (origin BETWEEN 1 AND 3),
  owner        text NOT NULL CHECK (octet_length(owner) <= 128),
  agent        text NOT NULL CHECK (octet_length(agent) <= 1024),
  goal         text CHECK (octet_length(goal) <= 61440),
  labels       jsonb NOT NULL DEFAULT '{}' CHECK (octet_length(labels::text) <= 65000),
  parent       text CHECK (octet_length(parent) <= 128),
  external_id  text CHECK (octet_length(external_id) <= 1024),
  started_at   timestamptz NOT NULL,
  ended_at     timestamptz,
  halt         jsonb CHECK (octet_length(halt::text) <= 65000),
  PRIMARY KEY (log_no, run_no),
  UNIQUE (log_no, run_id)
);
CREATE INDEX run_started ON run (log_no, started_at);
CREATE INDEX run_external ON run (external_id) WHERE external_id IS NOT NULL;
CREATE INDEX run_parent ON run (parent) WHERE parent IS NOT NULL;
COMMENT ON TABLE run IS 'Derived from the log by the follower "run"; rebuilt by: muniment rebuild';

CREATE TABLE artifact (
  artifact_id uuid PRIMARY KEY,
  run_id      text NOT NULL CHECK (octet_length(run_id) <= 128),
  step_id     text NOT NULL CHECK (octet_length(step_id) <= 200),
  path        text NOT NULL UNIQUE CHECK (octet_length(path) <= 1024),
  hash        text NOT NULL CHECK (hash ~ '^[0-9a-f]{64}$'),
  mime_type   text NOT NULL CHECK (octet_length(mime_type) <= 256),
  size_bytes  bigint NOT NULL CHECK (size_bytes >= 0),
  created_at  timestamptz NOT NULL,
  metadata    jsonb NOT NULL DEFAULT '{}' CHECK (octet_length(metadata::text) <= 16384),
  log_no      smallint NOT NULL,
  seq         bigint NOT NULL
);
CREATE INDEX artifact_step ON artifact (run_id, step_id);
CREATE INDEX artifact_hash ON artifact (hash);
CREATE INDEX artifact_run ON artifact (run_id, artifact_id);
COMMENT ON TABLE artifact IS 'Raw bytes on disk: path is relative to the artifact root, hash is their SHA-256, seq the artifact.stored event.';

CREATE TABLE manifest (
  manifest_id uuid PRIMARY KEY,
  log_no      smallint NOT NULL,
  seq         bigint NOT NULL,
  run_id      text NOT NULL CHECK (octet_length(run_id) <= 128),
  base_id     uuid,
  salt        bytea CHECK (octet_length(salt) = 32),
  hash        bytea NOT NULL CHECK (octet_length(hash) = 32),
  size_bytes  integer NOT NULL CHECK (size_bytes BETWEEN 2 AND 61440),
  manifest    json CHECK (octet_length(manifest::text) <= 61440),
  created_at  timestamptz NOT NULL,
  CHECK ((salt IS NULL) = (manifest IS NULL))
);
CREATE INDEX manifest_run ON manifest (run_id, seq);
COMMENT ON TABLE manifest IS 'What was in the context window and why. hash = sha256(salt, manifest); seq is its manifest.recorded event.';

CREATE TABLE snapshot (
  log_no         smallint NOT NULL,
  run_no         bigint NOT NULL,
  seq            bigint NOT NULL,
  run_seq        bigint NOT NULL,
  event_seq      bigint NOT NULL,
  salt           bytea CHECK (octet_length(salt) = 32),
  hash           bytea NOT NULL CHECK (octet_length(hash) = 32),
  state_hash     bytea NOT NULL CHECK (octet_length(state_hash) = 32),
  size_bytes     bigint NOT NULL CHECK (size_bytes > 0),
  state          json CHECK (octet_length(state::text) <= 61440),
  artifact_id    uuid,
  reason         text NOT NULL CHECK (octet_length(reason) <= 64),
  created_at     timestamptz NOT NULL,
  PRIMARY KEY (log_no, run_no, seq)
);
COMMENT ON TABLE snapshot IS 'A run''s state after the event seq. hash = sha256(salt, state), state_hash = sha256(state); event_seq is its snapshot.taken event. state is NULL when the bytes are the artifact, or erased.';

CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON artifact FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON manifest FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON snapshot FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER no_truncate BEFORE TRUNCATE ON artifact FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER no_truncate BEFORE TRUNCATE ON manifest FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER no_truncate BEFORE TRUNCATE ON snapshot FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
