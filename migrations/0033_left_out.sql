-- What weakens evidence of a command: the agent's own program, and a file of tests that the command line leaves out.
CREATE OR REPLACE VIEW report.evidence_report WITH (security_barrier) AS
  SELECT v.log_no, v.run_id, e.step_id, v.evidence_id, v.type, v.task_id,
         u.run_id AS completed_run_id, u.task_id AS completed_task_id, v.actor, v.validator_id, v.command_id,
         e.body #>> '{attestation,key}' AS attestation_key, v.pointer, v.content::jsonb AS content,
         CASE WHEN e.body IS NOT NULL THEN v.hash END AS hash,
         v.created_at + make_interval(secs => (e.body ->> 'expires_in_seconds')::integer) AS expires_at,
         (e.body -> 'depends_on')::jsonb AS depends_on, e.body IS NULL AS redacted, v.created_at AS recorded_at, v.seq,
         (e.body -> 'artifacts')::jsonb AS artifacts,
         CASE WHEN v.command_id IS NOT NULL AND e.body IS NOT NULL
              THEN coalesce((v.content::jsonb #>> '{command,observed}')::boolean, false) END AS observed,
         CASE WHEN v.command_id IS NOT NULL THEN v.content::jsonb #>> '{command,program,own}' END AS own_program,
         CASE WHEN v.command_id IS NOT NULL THEN v.content::jsonb #>> '{command,program,left_out}' END AS left_out
  FROM evidence v JOIN run r USING (log_no, run_id) JOIN event e ON e.log_no = v.log_no AND e.seq = v.seq
    LEFT JOIN task_evidence u ON u.log_no = v.log_no AND u.evidence_seq = v.seq AND report.sees(u.run_id)
  WHERE report.sees(r.run_id);
COMMENT ON COLUMN report.evidence_report.own_program IS 'Why the program of its command is the agent''s own; NULL: it is not, no command, or once redacted';
COMMENT ON COLUMN report.evidence_report.left_out IS 'A file of tests that the command line leaves out; NULL: none was found, no command, or once redacted';
