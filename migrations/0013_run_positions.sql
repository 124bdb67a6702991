-- The probes of the search name the order that they want: on a table that was never analysed, "run_seq = middle" alone let the
-- planner take any index that begins with the run, and read all of the run at each step.
CREATE OR REPLACE FUNCTION event_run_seq_as_of(wanted_log smallint, wanted_run bigint, upto bigint) RETURNS bigint
LANGUAGE plpgsql STABLE AS $$
DECLARE
  low    bigint := -1;
  high   bigint := (SELECT run_seq + 1 FROM event WHERE log_no = wanted_log AND run_no = wanted_run ORDER BY run_seq DESC LIMIT 1);
  middle bigint;
  passed bigint;
BEGIN
  IF high IS NULL THEN RETURN -1; END IF;
  WHILE high - low > 1 LOOP
    middle := (low + high) / 2;
    SELECT seq INTO STRICT passed FROM event
      WHERE log_no = wanted_log AND run_no = wanted_run AND run_seq >= middle ORDER BY run_seq LIMIT 1;
    IF passed <= upto THEN low := middle; ELSE high := middle; END IF;
  END LOOP;
  RETURN low;
END $$;
