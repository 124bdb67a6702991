-- The views show what the followers "run" and "report" have seen. How far that is behind the log, and a wait until they have
-- seen all that the log holds now: whoever asks right after a write calls report.wait() in a statement before the query.

CREATE VIEW report.lag WITH (security_barrier) AS
  SELECT h.log_no, n.name AS follower, e.next_seq AS log_next_seq, coalesce(f.next_seq, 0) AS follower_next_seq,
         greatest(e.next_seq - coalesce(f.next_seq, 0), 0) AS events_behind,
         (SELECT u.recorded_at FROM event u WHERE u.log_no = h.log_no AND u.seq = coalesce(f.next_seq, 0)) AS oldest_unseen_at
  FROM log_head h CROSS JOIN (VALUES ('run'), ('report')) n (name)
    CROSS JOIN LATERAL (SELECT coalesce((SELECT seq + 1 FROM event WHERE log_no = h.log_no ORDER BY seq DESC LIMIT 1), 0) AS next_seq) e
    LEFT JOIN follower f ON f.log_no = h.log_no AND f.name = n.name;
COMMENT ON VIEW report.lag IS 'How many events the views are behind each log: one row for each follower that they depend on';
COMMENT ON COLUMN report.lag.log_no IS 'The log''s number within this database';
COMMENT ON COLUMN report.lag.follower IS 'run: which runs there are and how they stand; report: everything else';
COMMENT ON COLUMN report.lag.log_next_seq IS 'The seq that the log''s next event gets';
COMMENT ON COLUMN report.lag.follower_next_seq IS 'The first seq that the follower has not seen';
COMMENT ON COLUMN report.lag.events_behind IS 'How many events it has not seen';
COMMENT ON COLUMN report.lag.oldest_unseen_at IS 'When the oldest of them was recorded; NULL where it has seen all';

-- Nobody follows a log that another one goes on from (log.restored): it is not waited for.
-- Each statement of a volatile function has a snapshot of its own, but in a transaction that keeps one: there it would wait in vain.
CREATE FUNCTION report.wait(at_most interval DEFAULT '2 seconds') RETURNS bigint
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
  until  constant timestamptz := clock_timestamp() + at_most;
  heads  jsonb;
  behind bigint;
BEGIN
  IF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
    RAISE EXCEPTION 'report.wait() would see nothing new: this transaction keeps the state that it began with'
      USING ERRCODE = 'invalid_transaction_state', HINT = 'Call it before BEGIN.';
  END IF;
  SELECT jsonb_object_agg(l.log_no, l.log_next_seq) INTO heads FROM report.lag l WHERE NOT EXISTS (
    SELECT FROM log_head h JOIN event e ON e.log_no = h.log_no AND e.seq = 0
    WHERE h.log_no > l.log_no AND e.type = 'log.restored' AND e.body ->> 'log_no' = l.log_no::text);
  LOOP
    SELECT coalesce(sum(missing), 0) INTO behind FROM (
      SELECT max(greatest((heads ->> log_no::text)::bigint - follower_next_seq, 0)) AS missing FROM report.lag
      WHERE heads ? log_no::text GROUP BY log_no) logs;
    EXIT WHEN behind = 0 OR until IS NULL OR clock_timestamp() >= until;
    PERFORM pg_sleep(0.005);
  END LOOP;
  RETURN behind;
END $$;
COMMENT ON FUNCTION report.wait IS 'Waits, at most so long, until the views show all that the log holds now; answers how many events they are still behind. A log that another one goes on from is not waited for';

DO $$
BEGIN
  REVOKE EXECUTE ON FUNCTION report.wait(interval) FROM PUBLIC;
  EXECUTE format('GRANT EXECUTE ON FUNCTION report.wait(interval) TO %I, %I', muniment_role('reporter'), muniment_role('auditor'));
END $$;
