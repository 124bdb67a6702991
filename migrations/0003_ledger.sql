-- The ledger (claims, evidence and what links them), the pointer catalogue, and the followers' positions.

CREATE TABLE claim (
  claim_id   uuid PRIMARY KEY,
  log_no     smallint NOT NULL,
  seq        bigint NOT NULL,
  run_id     text NOT NULL CHECK (octet_length(run_id) <= 128),
  step_id    text CHECK (octet_length(step_id) <= 200),
  text       text NOT NULL CHECK (octet_length(text) <= 61440),
  pointers   jsonb NOT NULL CHECK (octet_length(pointers::text) <= 65000),
  status     text NOT NULL DEFAULT 'open' CHECK (octet_length(status) <= 32),
  created_at timestamptz NOT NULL
);
CREATE INDEX claim_run ON claim (run_id, seq);

CREATE TABLE evidence (
  evidence_id  uuid PRIMARY KEY,
  log_no       smallint NOT NULL,
  seq          bigint NOT NULL,
  run_id       text NOT NULL CHECK (octet_length(run_id) <= 128),
  type         text NOT NULL CHECK (octet_length(type) <= 100),
  content      json CHECK (octet_length(content::text) <= 61440),
  pointer      text CHECK (octet_length(pointer) <= 2048),
  hash         text NOT NULL CHECK (hash ~ '^[0-9a-f]{64}$'),
  validator_id text CHECK (octet_length(validator_id) <= 256),
  actor        text NOT NULL CHECK (octet_length(actor) <= 128),
  created_at   timestamptz NOT NULL,
  CHECK (num_nonnulls(content, pointer) = 1)
);
CREATE INDEX evidence_run ON evidence (run_id, seq);
CREATE INDEX evidence_hash ON evidence (hash);
CREATE INDEX evidence_seq ON evidence (log_no, seq);
COMMENT ON COLUMN evidence.hash IS 'SHA-256 of the content''s text, or of what the pointer named when it was recorded: reuse shows';

CREATE TABLE evidence_link (
  claim_id    uuid NOT NULL REFERENCES claim,
  evidence_id uuid NOT NULL REFERENCES evidence,
  relation    text NOT NULL CHECK (relation IN ('supports', 'refutes')),
  log_no      smallint NOT NULL,
  seq         bigint NOT NULL,
  PRIMARY KEY (claim_id, evidence_id, seq)
);
CREATE INDEX evidence_link_evidence ON evidence_link (evidence_id);

-- The catalogue: which pointers something depends on. Resolving one of them is critical.
CREATE TABLE pointer (
  log_no    smallint NOT NULL,
  pointer   text NOT NULL CHECK (octet_length(pointer) <= 2048),
  needed_by text NOT NULL CHECK (needed_by IN ('claim', 'evidence', 'manifest')),
  needed_id uuid NOT NULL,
  run_id    text NOT NULL CHECK (octet_length(run_id) <= 128),
  seq       bigint NOT NULL,
  PRIMARY KEY (log_no, pointer, needed_by, needed_id)
);
COMMENT ON TABLE pointer IS 'Derived from the log by the follower "pointer"; rebuilt by: muniment rebuild';

CREATE TABLE follower (
  log_no     smallint NOT NULL,
  name       text NOT NULL CHECK (octet_length(name) <= 64),
  next_seq   bigint NOT NULL,
  updated_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (log_no, name)
);
COMMENT ON COLUMN follower.next_seq IS 'The first seq that the follower has not yet seen';
