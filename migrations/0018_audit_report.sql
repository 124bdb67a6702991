-- What an auditor asks of the log's life was not all in report.audit_report: the times in which nothing was appended, the events that a
-- start adopted, whether the daemon before it had stopped in order, the runs that this interrupted, and what was erased of the log's own
-- run, documents above all.

INSERT INTO report_place SELECT e.log_no, e.type, e.seq, e.run_no FROM event e JOIN follower f ON f.log_no = e.log_no AND f.name = 'report'
  WHERE e.type IN ('log.resumed', 'run.interrupted') AND e.seq < f.next_seq;

CREATE OR REPLACE VIEW report.audit_report WITH (security_barrier) AS
  SELECT p.log_no, r.run_id, p.seq, e.recorded_at, p.type, e.actor,
         coalesce(e.body ->> 'pointer', e.body ->> 'artifact_id', e.body ->> 'seq', e.body ->> 'budget', e.body ->> 'partition', e.body ->> 'new_key',
                  CASE p.type WHEN 'run.interrupted' THEN e.body ->> 'log_seq' WHEN 'log.restored' THEN e.body ->> 'log_id' END) AS about,
         coalesce(e.body ->> 'reason', e.body ->> 'why', e.body ->> 'detail') AS reason,
         CASE WHEN p.type <> 'log.started' THEN coalesce(e.body ->> 'verdict', e.body ->> 'code', e.body ->> 'kind')
              WHEN e.body -> 'adopted' IS NOT NULL THEN 'adopted' WHEN e.body ->> 'clean' = 'false' THEN 'unclean' END AS verdict,
         e.body ->> 'legal_basis' AS legal_basis, (e.body ->> 'upto')::bigint AS upto,
         (e.body #>> '{adopted,from_seq}')::bigint AS from_seq, (e.body #>> '{adopted,to_seq}')::bigint AS to_seq, e.body #>> '{adopted,known_by}' AS known_by,
         CASE p.type WHEN 'log.resumed' THEN (e.body ->> 'since')::timestamptz WHEN 'clock.stepped' THEN (e.body ->> 'before')::timestamptz END AS since,
         CASE p.type WHEN 'log.resumed' THEN (e.body ->> 'until')::timestamptz WHEN 'clock.stepped' THEN (e.body ->> 'after')::timestamptz END AS until,
         CASE p.type WHEN 'log.resumed' THEN (e.body ->> 'requests_refused')::bigint END AS requests_refused,
         CASE p.type WHEN 'log.resumed' THEN (e.body ->> 'events_refused')::bigint END AS events_refused
  FROM report_place p LEFT JOIN run r USING (log_no, run_no) JOIN event e USING (log_no, seq)
  WHERE CASE p.run_no WHEN 0 THEN coalesce(current_setting('muniment.runs', true), '') = '' ELSE report.sees(r.run_id) END
    AND p.type IN ('event.redacted', 'artifact.redacted', 'run.halted', 'run.resumed', 'run.interrupted', 'pointer.unresolved', 'violation.detected', 'budget.exceeded',
                   'log.started', 'log.stopped', 'log.resumed', 'log.verified', 'log.exported', 'log.restored', 'log.archived', 'key.rotated', 'clock.stepped');
COMMENT ON VIEW report.audit_report IS 'What an auditor asks about: erasures, halts, interruptions and what came after, pointers that did not resolve, violations, verifications, keys, starts, stops, what a start adopted, times in which nothing could be appended, steps of the clock. What concerns the whole log is shown to those who see all runs';
COMMENT ON COLUMN report.audit_report.about IS 'What it is about: a pointer, an artifact, an event, a budget, a partition, a key, a log; of an interruption: the log.started that says so';
COMMENT ON COLUMN report.audit_report.verdict IS 'The verdict of a verification, the code of a halt, the kind of a violation; of a start: adopted, where it took in events that nothing outside the database shows to be the daemon''s own, unclean, where the daemon before it did not stop in order, otherwise NULL';
COMMENT ON COLUMN report.audit_report.from_seq IS 'Of a start that adopted events: the first of them';
COMMENT ON COLUMN report.audit_report.to_seq IS 'Of a start that adopted events: the last of them';
COMMENT ON COLUMN report.audit_report.known_by IS 'Of a start that adopted events: what vouches for the events before them: record, signature or nothing';
COMMENT ON COLUMN report.audit_report.since IS 'Of a time in which nothing could be appended: its beginning; of a step of the clock: the time before it';
COMMENT ON COLUMN report.audit_report.until IS 'Of a time in which nothing could be appended: its end; of a step of the clock: the time after it';
COMMENT ON COLUMN report.audit_report.requests_refused IS 'Of a time in which nothing could be appended: requests that were refused; clients may have sent them again';
COMMENT ON COLUMN report.audit_report.events_refused IS 'Of a time in which nothing could be appended: events in those requests';
