-- Corpora: a row for each revision of a document, and for each of its chunks. Both follow from document.revised,
-- document.retracted and source.revoked and are kept by the follower "document"; the text itself is in artifacts.

CREATE TABLE corpus (
  log_no    smallint NOT NULL REFERENCES log_head,
  corpus    text NOT NULL CHECK (octet_length(corpus) BETWEEN 1 AND 128),
  owner     text NOT NULL CHECK (octet_length(owner) BETWEEN 1 AND 128),
  first_seq bigint NOT NULL,
  last_seq  bigint NOT NULL,
  PRIMARY KEY (log_no, corpus)
);
COMMENT ON TABLE corpus IS 'A collection of documents, which is there from its first document on';
COMMENT ON COLUMN corpus.owner IS 'The actor of its first document.revised: who sees it';
COMMENT ON COLUMN corpus.last_seq IS 'The last event that changed it';

CREATE TABLE document (
  log_no      smallint NOT NULL REFERENCES log_head,
  seq         bigint NOT NULL CHECK (seq >= 0),
  corpus      text NOT NULL CHECK (octet_length(corpus) BETWEEN 1 AND 128),
  document    text NOT NULL CHECK (octet_length(document) BETWEEN 1 AND 1024),
  revision    text NOT NULL CHECK (octet_length(revision) BETWEEN 1 AND 128),
  hash        bytea NOT NULL CHECK (octet_length(hash) = 32),
  artifact_id uuid NOT NULL,
  start_byte  bigint NOT NULL CHECK (start_byte >= 0),
  size_bytes  bigint NOT NULL CHECK (size_bytes >= 0),
  text_artifact_id uuid,
  mime_type   text NOT NULL CHECK (octet_length(mime_type) <= 256),
  format      text NOT NULL CHECK (octet_length(format) <= 32),
  language    text NOT NULL CHECK (octet_length(language) <= 16),
  title       text NOT NULL CHECK (octet_length(title) <= 1024),
  tags        text[] NOT NULL CHECK (cardinality(tags) <= 64),
  source      text NOT NULL CHECK (octet_length(source) <= 2048),
  sources     text[] NOT NULL CHECK (cardinality(sources) <= 64),
  source_url  text CHECK (octet_length(source_url) <= 2048),
  trust       text NOT NULL CHECK (trust IN ('trusted', 'untrusted', 'quarantined')),
  document_time timestamptz NOT NULL,
  recorded_at timestamptz NOT NULL,
  chunker     text NOT NULL CHECK (octet_length(chunker) <= 128),
  first_chunk bigint NOT NULL CHECK (first_chunk > 0),
  chunks      integer NOT NULL CHECK (chunks >= 0),
  valid_to    bigint CHECK (valid_to > seq),
  ended_by    text CHECK (ended_by IN ('revised', 'retracted', 'revoked', 'erased')),
  removed_at  bigint CHECK (removed_at > seq),
  PRIMARY KEY (log_no, seq),
  CHECK ((valid_to IS NULL) = (ended_by IS NULL))
);
COMMENT ON TABLE document IS 'A revision of a document: current from seq until before valid_to';
COMMENT ON COLUMN document.seq IS 'Its document.revised event';
COMMENT ON COLUMN document.revision IS 'What its pointers carry: the first 16 digits of hash, or the label that it was ingested with';
COMMENT ON COLUMN document.hash IS 'SHA-256 of the hash of its bytes and the name of the chunker';
COMMENT ON COLUMN document.artifact_id IS 'Its bytes are size_bytes of this artifact, from start_byte on';
COMMENT ON COLUMN document.text_artifact_id IS 'The text that was taken out of it, where its bytes are not UTF-8 text';
COMMENT ON COLUMN document.source IS 'What it comes from, by which it can be revoked';
COMMENT ON COLUMN document.sources IS 'Its source and those of what it was derived from';
COMMENT ON COLUMN document.first_chunk IS 'Its chunks have the ids from here on';
COMMENT ON COLUMN document.valid_to IS 'The event that ended it; NULL: it is current';
COMMENT ON COLUMN document.removed_at IS 'The event that took it out of the indexes: its source was revoked, or it was erased';
CREATE INDEX document_ended ON document (log_no, valid_to) WHERE valid_to IS NOT NULL;
CREATE INDEX document_removed ON document (log_no, removed_at) WHERE removed_at IS NOT NULL;
CREATE UNIQUE INDEX document_current ON document (log_no, corpus, document) WHERE valid_to IS NULL;
CREATE INDEX document_history ON document (log_no, corpus, document, seq);
CREATE INDEX document_chunks ON document (log_no, first_chunk);
CREATE INDEX document_sources ON document USING gin (sources);
CREATE INDEX document_artifact ON document (artifact_id);
CREATE INDEX document_text_artifact ON document (text_artifact_id) WHERE text_artifact_id IS NOT NULL;

CREATE TABLE chunk (
  log_no     smallint NOT NULL,
  chunk_id   bigint NOT NULL CHECK (chunk_id > 0),
  seq        bigint NOT NULL,
  number     integer NOT NULL CHECK (number >= 0),
  start_byte bigint NOT NULL CHECK (start_byte >= 0),
  end_byte   bigint NOT NULL,
  hash       bytea NOT NULL CHECK (octet_length(hash) = 32),
  heading    text CHECK (octet_length(heading) <= 1024),
  PRIMARY KEY (log_no, chunk_id),
  CHECK (end_byte > start_byte)
);
COMMENT ON TABLE chunk IS 'A span of a revision''s text';
COMMENT ON COLUMN chunk.seq IS 'The document.revised event of its document';
COMMENT ON COLUMN chunk.number IS 'Its place in the document, from 0: the n of #p<n>';
COMMENT ON COLUMN chunk.hash IS 'SHA-256 of its bytes, as its event says';
CREATE UNIQUE INDEX chunk_number ON chunk (log_no, seq, number);

CREATE TABLE feedback (
  log_no  smallint NOT NULL,
  seq     bigint NOT NULL,
  pointer text NOT NULL CHECK (octet_length(pointer) <= 2048),
  chunk_id bigint,
  value   double precision NOT NULL CHECK (value BETWEEN -1 AND 1),
  actor   text NOT NULL,
  PRIMARY KEY (log_no, seq)
);
COMMENT ON TABLE feedback IS 'How relevant a card was found, from feedback.recorded';
COMMENT ON COLUMN feedback.chunk_id IS 'The passage that the pointer names; NULL for an event of a run';
CREATE INDEX feedback_chunk ON feedback (log_no, chunk_id, seq) WHERE chunk_id IS NOT NULL;

DO $$
DECLARE
  item text;
BEGIN
  FOREACH item IN ARRAY ARRAY['corpus', 'document', 'chunk', 'feedback'] LOOP
    EXECUTE format('ALTER TABLE %I OWNER TO %I', item, muniment_role('owner'));
    EXECUTE format('GRANT SELECT ON %I TO %I, %I', item, muniment_role('writer'), muniment_role('auditor'));
    EXECUTE format('GRANT INSERT, UPDATE, DELETE ON %I TO %I', item, muniment_role('writer'));
    EXECUTE format('CREATE POLICY auditor ON %I FOR SELECT TO %I USING (true)', item, muniment_role('auditor'));
    IF (SELECT rolbypassrls FROM pg_roles WHERE rolname = muniment_role('writer')) THEN
      EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', item);
    END IF;
  END LOOP;
END $$;
