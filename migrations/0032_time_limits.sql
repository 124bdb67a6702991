-- Adds the time limits of documents to their report. They are read from the events; a query that does not name them reads no event.

CREATE OR REPLACE VIEW report.document_report WITH (security_barrier) AS
  SELECT d.log_no, d.corpus, d.document, d.title, d.revision, h.revisions, coalesce(d.ended_by, 'current') AS status, d.trust, d.source, d.source_url,
         d.mime_type, d.tags, d.size_bytes, d.chunks, d.document_time, h.first_recorded_at, d.recorded_at,
         coalesce(a.answers, 0) AS answers, coalesce(u.recalls, 0) AS recalls, coalesce(u.citations, 0) AS citations,
         greatest(a.last_seq, u.last_seq) AS last_used_seq, d.seq,
         (SELECT (e.body ->> 'expires_at')::timestamptz FROM event e WHERE e.log_no = d.log_no AND e.seq = d.seq) AS expires_at,
         (SELECT (e.body ->> 'review_at')::timestamptz FROM event e WHERE e.log_no = d.log_no AND e.seq = d.seq) AS review_at
  FROM (SELECT DISTINCT ON (log_no, corpus, document) * FROM document ORDER BY log_no, corpus, document, seq DESC) d
    JOIN (SELECT log_no, corpus, document, count(*) AS revisions, min(recorded_at) AS first_recorded_at FROM document GROUP BY log_no, corpus, document) h
      USING (log_no, corpus, document)
    LEFT JOIN (SELECT log_no, corpus, document, count(DISTINCT needed_id) FILTER (WHERE needed_by = 'manifest') AS recalls,
                      count(DISTINCT needed_id) FILTER (WHERE needed_by <> 'manifest') AS citations, max(seq) AS last_seq
               FROM pointer WHERE corpus IS NOT NULL GROUP BY log_no, corpus, document) u USING (log_no, corpus, document)
    LEFT JOIN (SELECT p.log_no, substring(c.card FROM '^ev://([^/]*)/') AS corpus, pointer_document(c.card) AS document,
                      count(DISTINCT p.seq) AS answers, max(p.seq) AS last_seq
               FROM report_place p JOIN event e USING (log_no, seq)
                 CROSS JOIN LATERAL (SELECT x ->> 'id' AS card FROM json_array_elements(e.body -> 'cards') x) c
               WHERE p.type = 'retrieval.answered' GROUP BY 1, 2, 3) a USING (log_no, corpus, document)
  WHERE coalesce(current_setting('muniment.runs', true), '') = '';
COMMENT ON COLUMN report.document_report.expires_at IS 'Time from which queries do not find it; NULL: no limit';
COMMENT ON COLUMN report.document_report.review_at IS 'Time at which it is to be checked; NULL: none';
