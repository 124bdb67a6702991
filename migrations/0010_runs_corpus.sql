-- The corpus "run": the events of runs that are indexed (run.started, indexed), one row of `document` each. Their text is in
-- their bodies and in the artifacts that these refer to; nothing of it is copied. The corpus has no row in `corpus`: what is
-- of a run belongs to whom the run belongs to.
ALTER TABLE document ALTER COLUMN artifact_id DROP NOT NULL;
ALTER TABLE document ADD COLUMN owner text CHECK (octet_length(owner) BETWEEN 1 AND 128);
ALTER TABLE document ADD COLUMN origin smallint CHECK (origin BETWEEN 1 AND 3);
ALTER TABLE document ADD CONSTRAINT document_of_run CHECK (
  (corpus = 'run') = (artifact_id IS NULL) AND (corpus = 'run') = (owner IS NOT NULL) AND (corpus = 'run') = (origin IS NOT NULL));
COMMENT ON COLUMN document.artifact_id IS 'Its bytes are size_bytes of this artifact, from start_byte on; NULL: the text of an event';
COMMENT ON COLUMN document.owner IS 'Of an event: the actor of its run''s run.started, who sees it; NULL: the owner of the corpus does';
COMMENT ON COLUMN document.origin IS 'Of an event: its origin';
COMMENT ON COLUMN document.seq IS 'Its document.revised event, or in the corpus run the event that it is';
