-- Signed checkpoints. A note is stored now and then, not at every signature: which ones, and that each of them is what
-- was signed, the notes themselves prove. The newest one is a file (docs/format.md, Checkpoints).

CREATE TABLE checkpoint_note (
  log_no      smallint NOT NULL REFERENCES log_head,
  size        bigint NOT NULL CHECK (size >= 0),
  note        text NOT NULL CHECK (octet_length(note) <= 65536),
  recorded_at timestamptz NOT NULL,
  PRIMARY KEY (log_no, size)
);
COMMENT ON TABLE checkpoint_note IS 'Signed checkpoints: C2SP notes of origin, size and root';
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON checkpoint_note
  FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER no_truncate BEFORE TRUNCATE ON checkpoint_note
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

ALTER TABLE checkpoint DROP COLUMN note;
COMMENT ON TABLE checkpoint IS 'The tree at some sizes: its root and its right edge, from which a start goes on';
