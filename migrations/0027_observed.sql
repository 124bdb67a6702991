-- Who observed a command, and whose program ran, in the views of commands and evidence.

CREATE OR REPLACE VIEW report.command_report WITH (security_barrier) AS
  SELECT s.log_no, r.run_id, s.step_id, s.key AS call_id, (b.body -> 'argv')::jsonb AS argv, b.body ->> 'cwd' AS cwd,
         (ARRAY['observed', 'reported', 'imported'])[s.origin] AS origin,
         CASE WHEN s.ended_seq IS NOT NULL THEN coalesce(s.status, 'pending')
              WHEN EXISTS (SELECT FROM report_erased_end x WHERE x.log_no = s.log_no AND x.run_no = s.run_no AND x.type = 'command.ended' AND x.seq > s.began_seq) THEN 'unknown'
              ELSE 'pending' END AS status,
         s.exit_code, s.reason AS signal, s.began_at AS started_at,
         coalesce(least(s.began_at + make_interval(secs => s.duration_us / 1e6), s.ended_at), s.ended_at) AS ended_at,
         coalesce(s.duration_us, report_micros(s.began_at, s.ended_at)) AS duration_us,
         (e.body #>> '{stdout,size_bytes}')::bigint AS stdout_bytes,
         (e.body #>> '{stdout,artifact_id}')::uuid AS stdout_artifact_id,
         (e.body #>> '{stderr,size_bytes}')::bigint AS stderr_bytes,
         (e.body #>> '{stderr,artifact_id}')::uuid AS stderr_artifact_id, b.body ->> 'tree_digest' AS tree_before,
         e.body ->> 'tree_digest' AS tree_after, s.began_seq AS started_seq, s.ended_seq,
         b.body #>> '{program,path}' AS program, b.body #>> '{program,own}' AS own_program
  FROM report_span_command s JOIN run r USING (log_no, run_no)
    LEFT JOIN event b ON b.log_no = s.log_no AND b.seq = s.began_seq LEFT JOIN event e ON e.log_no = s.log_no AND e.seq = s.ended_seq
  WHERE report.sees(r.run_id);
COMMENT ON COLUMN report.command_report.program IS 'Resolved path of the program; NULL: the command is no evidence, or once redacted';
COMMENT ON COLUMN report.command_report.own_program IS 'Reason why the agent may have made what ran; NULL: none was found';

CREATE OR REPLACE VIEW report.evidence_report WITH (security_barrier) AS
  SELECT v.log_no, v.run_id, e.step_id, v.evidence_id, v.type, v.task_id,
         u.run_id AS completed_run_id, u.task_id AS completed_task_id, v.actor, v.validator_id, v.command_id,
         e.body #>> '{attestation,key}' AS attestation_key, v.pointer, v.content::jsonb AS content,
         CASE WHEN e.body IS NOT NULL THEN v.hash END AS hash,
         v.created_at + make_interval(secs => (e.body ->> 'expires_in_seconds')::integer) AS expires_at,
         (e.body -> 'depends_on')::jsonb AS depends_on, e.body IS NULL AS redacted, v.created_at AS recorded_at, v.seq,
         (e.body -> 'artifacts')::jsonb AS artifacts,
         CASE WHEN v.command_id IS NOT NULL AND e.body IS NOT NULL
              THEN coalesce((v.content::jsonb #>> '{command,observed}')::boolean, false) END AS observed
  FROM evidence v JOIN run r USING (log_no, run_id) JOIN event e ON e.log_no = v.log_no AND e.seq = v.seq
    LEFT JOIN task_evidence u ON u.log_no = v.log_no AND u.evidence_seq = v.seq AND report.sees(u.run_id)
  WHERE report.sees(r.run_id);
COMMENT ON COLUMN report.evidence_report.observed IS 'True if the daemon started the command, false if a client reported it; NULL: no command, or once redacted';
