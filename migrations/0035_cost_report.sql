-- Costs by run, day and model, so that they can be summed by day, month, agent, model or label; and the date of the price list.

ALTER TABLE report_price ADD COLUMN list_date date;
COMMENT ON COLUMN report_price.list_date IS 'Date of the price list; NULL if only the setting prices names prices';

CREATE OR REPLACE VIEW report.price WITH (security_barrier) AS
  SELECT p.version, p.model, p.input, p.output, p.cached_input, p.cache_write, p.current, p.list_date FROM report_price p;
COMMENT ON COLUMN report.price.list_date IS 'Date of the price list; NULL if only the setting prices names prices';

-- A source may give tokens and cost only for the whole run. A cost is then in a row of its own, and nothing is estimated for the
-- run, as in report_run_usage. The sums of a run are those of report.run_report.
CREATE VIEW report.cost_report WITH (security_barrier) AS
  WITH total AS MATERIALIZED (
    SELECT c.log_no, c.run_no, (coalesce(e.occurred_at, c.last_occurred_at, e.recorded_at) AT TIME ZONE 'UTC')::date AS day,
           CASE WHEN c.currency IS NULL THEN report_number(e.body #>> '{usage,cost,amount}') END AS cost, e.body #>> '{usage,cost,currency}' AS currency,
           CASE WHEN c.input_tokens IS NULL THEN report_number(e.body #>> '{usage,input_tokens}') END AS input_tokens,
           CASE WHEN c.output_tokens IS NULL THEN report_number(e.body #>> '{usage,output_tokens}') END AS output_tokens,
           CASE WHEN c.cached_input_tokens IS NULL THEN report_number(e.body #>> '{usage,cached_input_tokens}') END AS cached_input_tokens
    FROM (SELECT log_no, run_no, max(seq) AS seq FROM report_place WHERE type = 'run.ended' GROUP BY log_no, run_no) p
      JOIN report_run c USING (log_no, run_no) JOIN event e ON e.log_no = p.log_no AND e.seq = p.seq
    WHERE e.body -> 'usage' IS NOT NULL),
  part AS (
    SELECT s.log_no, s.run_no, (coalesce(s.began_at, s.ended_at) AT TIME ZONE 'UTC')::date AS day, coalesce(s.answered_by, s.name) AS model,
           coalesce(s.currency, 'USD') AS currency, count(*) AS calls, sum(s.input_tokens) AS input_tokens, sum(s.output_tokens) AS output_tokens,
           sum(s.cached_input_tokens) AS cached_input_tokens, sum(s.cost) AS recorded, sum(s.estimate) FILTER (WHERE t.cost IS NULL) AS estimated,
           min(s.price_list) FILTER (WHERE t.cost IS NULL) AS price_list,
           count(*) FILTER (WHERE t.cost IS NULL AND s.cost_basis IS NULL AND coalesce(s.input_tokens, s.output_tokens) IS NOT NULL) AS unpriced_calls
    FROM report_model_span s LEFT JOIN total t USING (log_no, run_no)
    GROUP BY 1, 2, 3, 4, 5
    UNION ALL
    SELECT t.log_no, t.run_no, t.day,
           (SELECT CASE WHEN min(coalesce(s.answered_by, s.name)) = max(coalesce(s.answered_by, s.name)) THEN min(coalesce(s.answered_by, s.name)) END
            FROM report_span_model s WHERE s.log_no = t.log_no AND s.run_no = t.run_no),
           coalesce(t.currency, 'USD'), 0, t.input_tokens, t.output_tokens, t.cached_input_tokens, t.cost, NULL, NULL, 0
    FROM total t WHERE coalesce(t.cost, t.input_tokens, t.output_tokens) IS NOT NULL)
  SELECT p.log_no, r.run_id, coalesce(p.day, (coalesce(c.last_occurred_at, r.started_at) AT TIME ZONE 'UTC')::date) AS day, r.agent, r.owner, r.labels,
         (ARRAY['observed', 'reported', 'imported'])[r.origin] AS origin, p.model, p.calls, p.input_tokens, p.output_tokens,
         p.cached_input_tokens, p.recorded, p.estimated,
         CASE WHEN coalesce(p.recorded, p.estimated) IS NOT NULL THEN p.currency END AS currency, p.price_list, p.unpriced_calls
  FROM part p JOIN run r USING (log_no, run_no) LEFT JOIN report_run c USING (log_no, run_no)
  WHERE report.sees(r.run_id);
COMMENT ON VIEW report.cost_report IS 'Costs and tokens by run, day and model: recorded costs, and estimates by the current prices';
COMMENT ON COLUMN report.cost_report.log_no IS 'Number of the log within this database';
COMMENT ON COLUMN report.cost_report.run_id IS 'Run id';
COMMENT ON COLUMN report.cost_report.day IS 'Day of the calls in UTC; for an import, by the times of its source, otherwise the day of the import';
COMMENT ON COLUMN report.cost_report.agent IS 'Agent of the run';
COMMENT ON COLUMN report.cost_report.owner IS 'Identity that started the run';
COMMENT ON COLUMN report.cost_report.labels IS 'Labels of the run';
COMMENT ON COLUMN report.cost_report.origin IS 'Source of the run: observed, reported or imported';
COMMENT ON COLUMN report.cost_report.model IS 'Model that answered, otherwise the requested one; NULL for the totals of a run with several models';
COMMENT ON COLUMN report.cost_report.calls IS 'Number of model calls; 0 for totals that the source gives only for the whole run';
COMMENT ON COLUMN report.cost_report.input_tokens IS 'Tokens read by the model; NULL if unknown';
COMMENT ON COLUMN report.cost_report.output_tokens IS 'Tokens written by the model; NULL if unknown';
COMMENT ON COLUMN report.cost_report.cached_input_tokens IS 'Input tokens from the provider''s cache; NULL if unknown';
COMMENT ON COLUMN report.cost_report.recorded IS 'Recorded cost; NULL if none is recorded';
COMMENT ON COLUMN report.cost_report.estimated IS 'Cost in USD that is estimated by the current prices, of calls without a recorded one; NULL if nothing is estimated';
COMMENT ON COLUMN report.cost_report.currency IS 'Currency of both costs; NULL without a cost';
COMMENT ON COLUMN report.cost_report.price_list IS 'Version of the prices of the estimate (report.price)';
COMMENT ON COLUMN report.cost_report.unpriced_calls IS 'Number of calls with tokens, but with neither a recorded cost nor a price';
