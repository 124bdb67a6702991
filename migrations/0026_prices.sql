-- Prices of models, and costs estimated by them. The daemon writes the configured prices here at its start; every estimate is
-- computed by the view report_model_span. A list that was replaced is kept, so that an earlier estimate can be computed again.

CREATE TABLE report_price (
  version      text NOT NULL CHECK (octet_length(version) BETWEEN 1 AND 64),
  model        text NOT NULL CHECK (octet_length(model) <= 1024),
  input        numeric NOT NULL CHECK (input >= 0),
  output       numeric NOT NULL CHECK (output >= 0),
  cached_input numeric NOT NULL CHECK (cached_input >= 0),
  cache_write  numeric NOT NULL CHECK (cache_write >= 0),
  current      boolean NOT NULL,
  PRIMARY KEY (version, model)
);
CREATE UNIQUE INDEX report_price_current ON report_price (model) WHERE current;
COMMENT ON TABLE report_price IS 'Prices of models in USD per million tokens, from the setting prices; not derived from the log';
COMMENT ON COLUMN report_price.version IS 'First 12 digits of the SHA-256 of the price list';
COMMENT ON COLUMN report_price.current IS 'True for the list that the daemon found at its last start';

-- Model calls with an estimate of each cost that is not recorded. input_tokens includes the tokens of the cache. A price of the model
-- that answered takes precedence over one of the requested model. Without tokens or without a price there is no estimate.
CREATE VIEW report_model_span AS
  SELECT s.*, p.estimate, CASE WHEN p.estimate IS NOT NULL THEN p.version END AS price_list,
         CASE WHEN s.cost IS NOT NULL THEN 'recorded' WHEN p.estimate IS NOT NULL THEN 'prices ' || p.version END AS cost_basis
  FROM report_span_model s
    LEFT JOIN report_price a ON a.current AND a.model = s.answered_by
    LEFT JOIN report_price n ON n.current AND n.model = s.name
    CROSS JOIN LATERAL (SELECT coalesce(s.input_tokens, 0) AS read, coalesce(s.output_tokens, 0) AS written) t
    CROSS JOIN LATERAL (SELECT least(coalesce(s.cached_input_tokens, 0), t.read) AS cached) c
    CROSS JOIN LATERAL (SELECT least(coalesce(s.cache_write_tokens, 0), t.read - c.cached) AS stored) w
    CROSS JOIN LATERAL (
      SELECT coalesce(a.version, n.version) AS version,
             CASE WHEN s.cost IS NULL AND coalesce(s.input_tokens, s.output_tokens) IS NOT NULL THEN
               trim_scale(0.000001 * ((t.read - c.cached - w.stored) * coalesce(a.input, n.input) + c.cached * coalesce(a.cached_input, n.cached_input)
                                      + w.stored * coalesce(a.cache_write, n.cache_write) + t.written * coalesce(a.output, n.output))) END AS estimate) p;
COMMENT ON VIEW report_model_span IS 'Model calls, each with its recorded or estimated cost';

-- Tokens and costs of runs. A source may give them only for the whole run, in its run.ended; such a cost is recorded, so nothing is
-- estimated then. Each lateral join has an aggregate, so that Postgres omits it where its columns are not asked for.
CREATE VIEW report_run_usage AS
  SELECT c.log_no, c.run_no,
         coalesce(c.input_tokens, report_number(t.usage ->> 'input_tokens')) AS input_tokens,
         coalesce(c.output_tokens, report_number(t.usage ->> 'output_tokens')) AS output_tokens,
         coalesce(c.cached_input_tokens, report_number(t.usage ->> 'cached_input_tokens')) AS cached_input_tokens,
         coalesce(c.reasoning_tokens, report_number(t.usage ->> 'reasoning_tokens')) AS reasoning_tokens,
         CASE WHEN x.currency <> 'mixed' THEN coalesce(r.cost + e.estimate, r.cost, e.estimate) END AS cost, x.currency,
         e.estimate AS cost_estimated, e.price_list
  FROM report_run c
    LEFT JOIN LATERAL (SELECT (SELECT e.body -> 'usage' FROM event e WHERE e.log_no = c.log_no AND e.seq = max(p.seq)) AS usage FROM report_place p
                       WHERE p.log_no = c.log_no AND p.run_no = c.run_no AND p.type = 'run.ended') t ON true
    CROSS JOIN LATERAL (SELECT CASE WHEN c.currency IS NULL THEN report_number(t.usage #>> '{cost,amount}') WHEN c.currency <> 'mixed' THEN c.cost END AS cost,
                               coalesce(c.currency, t.usage #>> '{cost,currency}') AS currency) r
    LEFT JOIN LATERAL (SELECT sum(s.estimate) AS estimate, min(s.price_list) AS price_list FROM report_model_span s
                       WHERE s.log_no = c.log_no AND s.run_no = c.run_no AND c.model_calls > 0 AND (c.currency IS NOT NULL OR r.cost IS NULL)
                         AND (SELECT EXISTS (SELECT FROM report_price WHERE current))) e ON true
    CROSS JOIN LATERAL (SELECT CASE WHEN e.estimate IS NULL OR r.currency = 'USD' THEN r.currency
                                    WHEN c.currency IS NULL THEN 'USD' ELSE 'mixed' END AS currency) x;
COMMENT ON VIEW report_run_usage IS 'Tokens and costs of runs, with estimates of costs that are not recorded';

CREATE OR REPLACE VIEW report.model_call WITH (security_barrier) AS
  SELECT s.log_no, r.run_id, s.step_id, s.key AS call_id, s.name AS model, s.answered_by AS answered_model, s.via AS provider,
         s.sort AS operation, (ARRAY['observed', 'reported', 'imported'])[s.origin] AS origin, s.attempt,
         CASE WHEN s.ended_seq IS NOT NULL THEN coalesce(s.status, 'pending')
              WHEN EXISTS (SELECT FROM report_erased_end x WHERE x.log_no = s.log_no AND x.run_no = s.run_no AND x.type = 'model.answered' AND x.seq > s.began_seq) THEN 'unknown'
              ELSE 'pending' END AS status,
         CASE WHEN s.status = 'ok' THEN s.reason END AS finish_reason,
         CASE WHEN s.status <> 'ok' THEN s.reason END AS error_type, s.began_at AS called_at, s.ended_at AS answered_at,
         coalesce(s.duration_us, report_micros(s.began_at, s.ended_at)) AS duration_us, s.first_token_us, s.input_tokens,
         s.output_tokens, s.cached_input_tokens, s.cache_write_tokens, s.reasoning_tokens, coalesce(s.cost, s.estimate) AS cost,
         coalesce(s.currency, CASE WHEN s.estimate IS NOT NULL THEN 'USD' END) AS currency,
         s.began_seq AS called_seq, s.ended_seq AS answered_seq, s.cost_basis
  FROM report_model_span s JOIN run r USING (log_no, run_no)
  WHERE report.sees(r.run_id);
COMMENT ON COLUMN report.model_call.cost IS 'Recorded cost, otherwise the estimate by the current prices; NULL if unknown';
COMMENT ON COLUMN report.model_call.cost_basis IS 'recorded, or "prices" and the version of the price list (report.price); NULL without a cost';

CREATE OR REPLACE VIEW report.run_report WITH (security_barrier) AS
  SELECT r.log_no, r.run_id, r.run_no, r.status, r.outcome, (ARRAY['observed', 'reported', 'imported'])[r.origin] AS origin,
         r.agent, r.owner, r.goal, r.labels, r.parent AS parent_run_id, r.external_id, r.started_at, r.ended_at,
         c.last_event_at, c.first_occurred_at, c.last_occurred_at,
         CASE WHEN r.origin = 3 THEN nullif(c.last_occurred_at - c.first_occurred_at, interval '0') ELSE coalesce(r.ended_at, c.last_event_at) - r.started_at END AS duration,
         coalesce(c.events, 0) AS events, r.first_seq, c.last_seq, coalesce(c.steps, 0) AS steps,
         coalesce(c.messages, 0) AS messages, coalesce(c.model_calls, 0) AS model_calls,
         coalesce(c.model_errors, 0) AS model_errors, coalesce(c.tool_calls, 0) AS tool_calls,
         coalesce(c.tool_errors, 0) AS tool_errors, coalesce(c.commands, 0) AS commands,
         coalesce(c.command_errors, 0) AS command_errors, coalesce(c.errors, 0) AS errors,
         u.input_tokens, u.output_tokens, u.cached_input_tokens, u.reasoning_tokens, u.cost, u.currency, coalesce(a.artifacts, 0) AS artifacts,
         coalesce(a.artifact_bytes, 0) AS artifact_bytes, r.halt ->> 'code' AS halt_code, r.halt ->> 'reason' AS halt_reason,
         r.halt ->> 'pointer' AS halt_pointer, u.cost_estimated, u.price_list
  FROM run r LEFT JOIN report_run c USING (log_no, run_no) LEFT JOIN report_run_usage u USING (log_no, run_no)
    LEFT JOIN (SELECT log_no, run_id, count(*) AS artifacts, sum(size_bytes)::bigint AS artifact_bytes FROM artifact WHERE hash <> repeat('0', 64)
               GROUP BY log_no, run_id) a USING (log_no, run_id)
  WHERE report.sees(r.run_id);
COMMENT ON COLUMN report.run_report.cost IS 'Cost of the models: recorded costs, and estimates of those that are not recorded; NULL if unknown or in several currencies';
COMMENT ON COLUMN report.run_report.cost_estimated IS 'Part of cost that is estimated by the current prices, in USD; NULL if nothing is estimated';
COMMENT ON COLUMN report.run_report.price_list IS 'Version of the price list of cost_estimated (report.price)';

CREATE VIEW report.price WITH (security_barrier) AS
  SELECT p.version, p.model, p.input, p.output, p.cached_input, p.cache_write, p.current FROM report_price p;
COMMENT ON VIEW report.price IS 'Prices of models by which costs are estimated: the current list, and earlier ones';
COMMENT ON COLUMN report.price.version IS 'Version of the list: the first 12 digits of its SHA-256';
COMMENT ON COLUMN report.price.model IS 'Name of the model';
COMMENT ON COLUMN report.price.input IS 'USD per million input tokens that are neither read from the cache nor written to it';
COMMENT ON COLUMN report.price.output IS 'USD per million output tokens';
COMMENT ON COLUMN report.price.cached_input IS 'USD per million input tokens read from the provider''s cache';
COMMENT ON COLUMN report.price.cache_write IS 'USD per million input tokens written to the provider''s cache';
COMMENT ON COLUMN report.price.current IS 'True for the list that the daemon uses';

DO $$
BEGIN
  EXECUTE format('ALTER TABLE report_price OWNER TO %I', muniment_role('owner'));
  EXECUTE format('GRANT SELECT, INSERT, UPDATE ON report_price TO %I', muniment_role('writer'));
  EXECUTE format('GRANT SELECT ON report_price TO %I', muniment_role('auditor'));
  EXECUTE format('CREATE POLICY auditor ON report_price FOR SELECT TO %I USING (true)', muniment_role('auditor'));
  IF (SELECT rolbypassrls FROM pg_roles WHERE rolname = muniment_role('writer')) THEN
    ALTER TABLE report_price ENABLE ROW LEVEL SECURITY;
  END IF;
END $$;
