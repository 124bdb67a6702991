-- The workflow with which a task was opened, as a further column of the report about tasks.
CREATE OR REPLACE VIEW report.task_report WITH (security_barrier) AS
  SELECT t.log_no, t.run_id, t.task_id, o.body ->> 'content' AS content, o.body ->> 'type' AS type,
         (o.body ->> 'requires_evidence')::boolean IS DISTINCT FROM false AS requires_evidence,
         CASE WHEN t.completed_seq IS NULL THEN 'open' ELSE 'completed' END AS status, c.body ->> 'verdict' AS verdict,
         (SELECT count(*) FROM task_evidence u WHERE u.log_no = t.log_no AND u.seq = t.completed_seq) AS evidence,
         o.actor AS opened_by, o.recorded_at AS opened_at, c.actor AS completed_by, c.recorded_at AS completed_at,
         t.opened_seq, t.completed_seq, o.body ->> 'workflow' AS workflow
  FROM (SELECT log_no, run_id, task_id, max(seq) FILTER (WHERE change = 'opened') AS opened_seq,
               max(seq) FILTER (WHERE change = 'completed') AS completed_seq
        FROM task_change GROUP BY log_no, run_id, task_id) t
    JOIN run r USING (log_no, run_id)
    LEFT JOIN event o ON o.log_no = t.log_no AND o.seq = t.opened_seq
    LEFT JOIN event c ON c.log_no = t.log_no AND c.seq = t.completed_seq
  WHERE report.sees(r.run_id);
COMMENT ON COLUMN report.task_report.workflow IS 'Digest of the blind workflow whose comparison completes the task; NULL: any evidence';
