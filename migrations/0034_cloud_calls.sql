-- The calls of cloud services, one row for each: asked, and how the call ended; or refused.

CREATE VIEW report.cloud_report WITH (security_barrier) AS
  WITH ended AS (
    SELECT p.log_no, p.seq, p.type, e.recorded_at, e.body, e.body ->> 'id' AS id
    FROM report_place p JOIN event e USING (log_no, seq) WHERE p.type IN ('cloud.answered', 'cloud.failed'))
  SELECT p.log_no, r.run_id, e.step_id, p.seq, e.recorded_at, e.actor, e.body ->> 'branch' AS branch,
         (e.body ->> 'id')::uuid AS call_id, (e.body ->> 'question_id')::uuid AS question_id,
         e.body ->> 'provider' AS provider, e.body ->> 'model' AS model, e.body ->> 'by' AS called_by,
         CASE WHEN p.type = 'cloud.refused' THEN 'refused' WHEN e.body IS NULL THEN NULL WHEN d.type = 'cloud.answered' THEN 'answered'
              WHEN d.type = 'cloud.failed' THEN 'failed' ELSE 'unknown' END AS status,
         coalesce(e.body ->> 'reason', d.body ->> 'reason') AS reason, e.body ->> 'template' AS template,
         (e.body -> 'rules')::jsonb AS rules, (e.body ->> 'confidence')::double precision AS confidence,
         e.body ->> 'prompt_hash' AS prompt_hash, (e.body ->> 'prompt_bytes')::bigint AS prompt_bytes,
         d.body ->> 'response_hash' AS response_hash, (d.body ->> 'response_bytes')::bigint AS response_bytes,
         d.body ->> 'pointer' AS pointer, (d.body ->> 'redactions')::bigint AS redactions,
         (d.body ->> 'duration_us')::bigint AS duration_us, d.seq AS ended_seq, d.recorded_at AS ended_at,
         e.body IS NULL AS redacted
  FROM report_place p LEFT JOIN run r USING (log_no, run_no) JOIN event e USING (log_no, seq)
    LEFT JOIN ended d ON d.log_no = p.log_no AND d.id = e.body ->> 'id' AND p.type = 'cloud.asked'
  WHERE p.type IN ('cloud.asked', 'cloud.refused')
    AND CASE p.run_no WHEN 0 THEN coalesce(current_setting('muniment.runs', true), '') = '' ELSE report.sees(r.run_id) END;
COMMENT ON VIEW report.cloud_report IS 'Questions to cloud services: those that left the machine, how each call ended, and those that were refused';
COMMENT ON COLUMN report.cloud_report.seq IS 'seq of its cloud.asked or cloud.refused event';
COMMENT ON COLUMN report.cloud_report.called_by IS 'daemon: the daemon''s child makes the call; caller: a command of the caller of ask';
COMMENT ON COLUMN report.cloud_report.status IS 'answered, failed, refused (nothing was sent), or unknown: no end is recorded; NULL once redacted';
COMMENT ON COLUMN report.cloud_report.reason IS 'Reason of a refusal or a failure';
COMMENT ON COLUMN report.cloud_report.rules IS 'Rules of the sanitiser that found something in the user''s question';
COMMENT ON COLUMN report.cloud_report.confidence IS 'Confidence of the local answer';
COMMENT ON COLUMN report.cloud_report.prompt_hash IS 'SHA-256 of the question that left; NULL: none was made';
COMMENT ON COLUMN report.cloud_report.response_hash IS 'SHA-256 of the received body';
COMMENT ON COLUMN report.cloud_report.pointer IS 'Pointer to the stored reply, in the corpus cloud';
COMMENT ON COLUMN report.cloud_report.ended_seq IS 'seq of its cloud.answered or cloud.failed event';
COMMENT ON COLUMN report.cloud_report.log_no IS 'Number of the log within this database';
COMMENT ON COLUMN report.cloud_report.run_id IS 'Run id; NULL outside a run';
COMMENT ON COLUMN report.cloud_report.step_id IS 'Step within the run';
COMMENT ON COLUMN report.cloud_report.recorded_at IS 'Time of the append, by the daemon''s clock; nothing left before it';
COMMENT ON COLUMN report.cloud_report.actor IS 'Authenticated identity that asked';
COMMENT ON COLUMN report.cloud_report.branch IS 'Parallel branch of the run that asked';
COMMENT ON COLUMN report.cloud_report.call_id IS 'Id of the call';
COMMENT ON COLUMN report.cloud_report.question_id IS 'Id of the question of ask';
COMMENT ON COLUMN report.cloud_report.provider IS 'Provider; command for a caller''s command';
COMMENT ON COLUMN report.cloud_report.model IS 'Requested model';
COMMENT ON COLUMN report.cloud_report.template IS 'Template of the question that left; NULL: none was made';
COMMENT ON COLUMN report.cloud_report.prompt_bytes IS 'Size of that question in bytes';
COMMENT ON COLUMN report.cloud_report.response_bytes IS 'Size of the received body in bytes';
COMMENT ON COLUMN report.cloud_report.redactions IS 'Number of replacements in the stored reply';
COMMENT ON COLUMN report.cloud_report.duration_us IS 'Duration of the call in microseconds';
COMMENT ON COLUMN report.cloud_report.ended_at IS 'Time at which the end of the call was appended';
COMMENT ON COLUMN report.cloud_report.redacted IS 'True if the event''s body was erased';
