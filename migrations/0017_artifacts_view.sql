-- The artifacts by the name and with the columns by which others know them. It reads as whoever asks: the owner and the
-- auditor see all, a reporter the runs that it is shown.
CREATE VIEW artifacts WITH (security_invoker) AS
  SELECT artifact_id, run_id, step_id, path, hash, mime_type, size_bytes, created_at, metadata FROM artifact;
COMMENT ON VIEW artifacts IS 'The files of runs: a row each, without what the log adds (artifact has it)';
COMMENT ON COLUMN artifacts.artifact_id IS 'Its id';
COMMENT ON COLUMN artifacts.run_id IS 'The run that stored it';
COMMENT ON COLUMN artifacts.step_id IS 'The step within the run; main where none was named';
COMMENT ON COLUMN artifacts.path IS 'Its file, below the folder artifacts';
COMMENT ON COLUMN artifacts.hash IS 'SHA-256 of its bytes; zeros once they were erased';
COMMENT ON COLUMN artifacts.mime_type IS 'What the bytes are, as whoever stored them said';
COMMENT ON COLUMN artifacts.size_bytes IS 'How many bytes';
COMMENT ON COLUMN artifacts.created_at IS 'When it was stored';
COMMENT ON COLUMN artifacts.metadata IS 'What was said of it';

DO $$
BEGIN
  EXECUTE format('ALTER VIEW artifacts OWNER TO %I', muniment_role('owner'));
  EXECUTE format('GRANT SELECT ON artifacts TO %I, %I, %I', muniment_role('writer'), muniment_role('auditor'), muniment_role('reporter'));
END $$;
