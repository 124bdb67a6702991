-- Views of tasks and evidence for analysts.

CREATE VIEW report.task_report WITH (security_barrier) AS
  SELECT t.log_no, t.run_id, t.task_id, o.body ->> 'content' AS content, o.body ->> 'type' AS type,
         (o.body ->> 'requires_evidence')::boolean IS DISTINCT FROM false AS requires_evidence,
         CASE WHEN t.completed_seq IS NULL THEN 'open' ELSE 'completed' END AS status, c.body ->> 'verdict' AS verdict,
         (SELECT count(*) FROM task_evidence u WHERE u.log_no = t.log_no AND u.seq = t.completed_seq) AS evidence,
         o.actor AS opened_by, o.recorded_at AS opened_at, c.actor AS completed_by, c.recorded_at AS completed_at,
         t.opened_seq, t.completed_seq
  FROM (SELECT log_no, run_id, task_id, max(seq) FILTER (WHERE change = 'opened') AS opened_seq,
               max(seq) FILTER (WHERE change = 'completed') AS completed_seq
        FROM task_change GROUP BY log_no, run_id, task_id) t
    JOIN run r USING (log_no, run_id)
    LEFT JOIN event o ON o.log_no = t.log_no AND o.seq = t.opened_seq
    LEFT JOIN event c ON c.log_no = t.log_no AND c.seq = t.completed_seq
  WHERE report.sees(r.run_id);
COMMENT ON VIEW report.task_report IS 'Tasks of runs, each with its completion';
COMMENT ON COLUMN report.task_report.log_no IS 'Number of the log within this database';
COMMENT ON COLUMN report.task_report.run_id IS 'Run id';
COMMENT ON COLUMN report.task_report.task_id IS 'Id of the task, unique within its run';
COMMENT ON COLUMN report.task_report.content IS 'Text of the task; NULL if its opening is not recorded or was erased';
COMMENT ON COLUMN report.task_report.type IS 'Type of the task, a section of the completion policy';
COMMENT ON COLUMN report.task_report.requires_evidence IS 'False if the task could be completed without evidence';
COMMENT ON COLUMN report.task_report.status IS 'open or completed';
COMMENT ON COLUMN report.task_report.verdict IS 'Verdict on the evidence of the completed task';
COMMENT ON COLUMN report.task_report.evidence IS 'Number of pieces of evidence that completed it (evidence_report.completed_task_id)';
COMMENT ON COLUMN report.task_report.opened_by IS 'Actor that opened it';
COMMENT ON COLUMN report.task_report.opened_at IS 'Time at which it was opened';
COMMENT ON COLUMN report.task_report.completed_by IS 'Actor that completed it';
COMMENT ON COLUMN report.task_report.completed_at IS 'Time at which it was completed';
COMMENT ON COLUMN report.task_report.opened_seq IS 'seq of its task.opened event';
COMMENT ON COLUMN report.task_report.completed_seq IS 'seq of its task.completed event';

CREATE VIEW report.evidence_report WITH (security_barrier) AS
  SELECT v.log_no, v.run_id, e.step_id, v.evidence_id, v.type, v.task_id,
         u.run_id AS completed_run_id, u.task_id AS completed_task_id, v.actor, v.validator_id, v.command_id,
         e.body #>> '{attestation,key}' AS attestation_key, v.pointer, v.content::jsonb AS content,
         CASE WHEN e.body IS NOT NULL THEN v.hash END AS hash,
         v.created_at + make_interval(secs => (e.body ->> 'expires_in_seconds')::integer) AS expires_at,
         (e.body -> 'depends_on')::jsonb AS depends_on, e.body IS NULL AS redacted, v.created_at AS recorded_at, v.seq
  FROM evidence v JOIN run r USING (log_no, run_id) JOIN event e ON e.log_no = v.log_no AND e.seq = v.seq
    LEFT JOIN task_evidence u ON u.log_no = v.log_no AND u.evidence_seq = v.seq AND report.sees(u.run_id)
  WHERE report.sees(r.run_id);
COMMENT ON VIEW report.evidence_report IS 'Evidence of runs, and the tasks that it completed';
COMMENT ON COLUMN report.evidence_report.log_no IS 'Number of the log within this database';
COMMENT ON COLUMN report.evidence_report.run_id IS 'Run that recorded it';
COMMENT ON COLUMN report.evidence_report.step_id IS 'Step within the run';
COMMENT ON COLUMN report.evidence_report.evidence_id IS 'Id of the evidence; the same pointer has the same id in all runs';
COMMENT ON COLUMN report.evidence_report.type IS 'Type of the evidence; empty once redacted';
COMMENT ON COLUMN report.evidence_report.task_id IS 'Task of the run that it was recorded for';
COMMENT ON COLUMN report.evidence_report.completed_run_id IS 'Run of the task that it completed';
COMMENT ON COLUMN report.evidence_report.completed_task_id IS 'Task that it completed; NULL: none';
COMMENT ON COLUMN report.evidence_report.actor IS 'Actor that recorded it';
COMMENT ON COLUMN report.evidence_report.validator_id IS 'Name of the validator, given by the client';
COMMENT ON COLUMN report.evidence_report.command_id IS 'Recorded command (command_report) from which the daemon made the content; NULL: a client wrote the content';
COMMENT ON COLUMN report.evidence_report.attestation_key IS 'Trusted key of the attestation from which the daemon made the content';
COMMENT ON COLUMN report.evidence_report.pointer IS 'Pointer to the evidence; NULL if it is content';
COMMENT ON COLUMN report.evidence_report.content IS 'Content of the evidence; NULL if it is a pointer, empty once redacted';
COMMENT ON COLUMN report.evidence_report.hash IS 'SHA-256 of the content''s text, or of the pointer''s target when recorded; NULL once redacted';
COMMENT ON COLUMN report.evidence_report.expires_at IS 'Time from which it is stale; NULL: never';
COMMENT ON COLUMN report.evidence_report.depends_on IS 'Ids of evidence that must be intact and fresh for it to count';
COMMENT ON COLUMN report.evidence_report.redacted IS 'True if the event was erased';
COMMENT ON COLUMN report.evidence_report.recorded_at IS 'Time of the event';
COMMENT ON COLUMN report.evidence_report.seq IS 'seq of its evidence.recorded event';
