-- Views of recalls, documents and judgements of evidence. The table "pointer" tells which document a pointer names, and what a
-- piece of evidence rests on.

-- Returns the text without percent-encoding; NULL if it is not UTF-8.
CREATE FUNCTION percent_decoded(encoded text) RETURNS text LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
BEGIN
  IF strpos(encoded, '%') = 0 THEN
    RETURN encoded;
  END IF;
  RETURN (SELECT convert_from(string_agg(CASE WHEN part[1] LIKE '\%%' THEN decode(substr(part[1], 2), 'hex') ELSE convert_to(part[1], 'UTF8') END,
                                         ''::bytea ORDER BY place), 'UTF8')
          FROM regexp_matches(encoded, '%[0-9A-Fa-f]{2}|[^%]+', 'g') WITH ORDINALITY AS found (part, place));
EXCEPTION WHEN OTHERS THEN
  RETURN NULL;
END $$;
COMMENT ON FUNCTION percent_decoded IS 'The text without percent-encoding; NULL if it is not UTF-8';

-- The document ev://run/<run>#e<run_seq> is a part of a run, and its passages follow a point.
CREATE FUNCTION pointer_document(pointer text) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
  SELECT CASE WHEN strpos(pointer, '%') = 0 THEN substring(pointer FROM '^ev://[^/]*/([^#?]*)')
              ELSE public.percent_decoded(substring(pointer FROM '^ev://[^/]*/([^#?]*)')) END
         || CASE WHEN pointer LIKE 'ev://run/%' THEN coalesce(substring(pointer FROM '#e[0-9]+'), '') ELSE '' END
$$;
COMMENT ON FUNCTION pointer_document IS 'The document that a pointer ev:// names; NULL for any other pointer';

ALTER TABLE pointer ADD COLUMN corpus text GENERATED ALWAYS AS (substring(pointer FROM '^ev://([^/]*)/')) STORED,
                    ADD COLUMN document text GENERATED ALWAYS AS (pointer_document(pointer)) STORED;
CREATE INDEX pointer_document ON pointer (log_no, corpus, document) WHERE corpus IS NOT NULL;
CREATE INDEX pointer_needed ON pointer (log_no, needed_id);
COMMENT ON TABLE pointer IS 'What claims, evidence, manifests and completed tasks rest on: pointers, and pieces of evidence as evidence://<evidence_id>. Derived from the log by the follower "pointer"; rebuilt by: muniment rebuild';

-- The follower "pointer" reads the current log again, because more events make pointers critical than before; its rows replace equal ones.
UPDATE follower SET next_seq = 0 WHERE name = 'pointer' AND log_no = (SELECT max(log_no) FROM log_head);

-- The positions of events of types that views did not list before, as far as the follower "report" has read.
INSERT INTO report_place (log_no, type, seq, run_no)
  SELECT e.log_no, e.type, e.seq, e.run_no FROM event e JOIN follower f ON f.log_no = e.log_no AND f.name = 'report' AND e.seq < f.next_seq
  WHERE e.type IN ('access.refused', 'child.halted', 'context.built', 'embedder.trained', 'pointer.retried', 'sandbox.refused', 'source.revoked', 'task.validated')
  ON CONFLICT DO NOTHING;

-- The list in `pointers` has the type that it has in claim_report; its length is `pointer_count`.
DROP VIEW report.retrieval_report;
CREATE VIEW report.retrieval_report WITH (security_barrier) AS
  SELECT p.log_no, coalesce(r.run_id, e.body ->> 'run_id') AS run_id, e.step_id, p.seq, e.recorded_at, e.actor,
         coalesce(e.body #>> '{queries,0,query}', m.manifest #>> '{queries,0,query}') AS query,
         coalesce(json_array_length(e.body -> 'queries'), json_array_length(m.manifest -> 'queries')) AS queries,
         (e.body -> 'corpora')::jsonb AS corpora, coalesce(e.body ->> 'profile', m.manifest ->> 'profile') AS profile,
         coalesce(json_array_length(e.body -> 'cards'), json_array_length(m.manifest -> 'passages')) AS cards,
         coalesce((e.body #>> '{cards,0,score}')::double precision, (m.manifest #>> '{passages,0,score}')::double precision) AS best_score,
         (e.body -> 'degraded')::jsonb AS degraded, e.body ->> 'cache' AS cache,
         coalesce((e.body ->> 'watermark')::bigint, (m.manifest ->> 'watermark')::bigint) AS watermark,
         (e.body ->> 'duration_us')::bigint AS duration_us, p.type, e.body ->> 'branch' AS branch,
         CASE p.type WHEN 'retrieval.answered' THEN jsonb_path_query_array((e.body -> 'cards')::jsonb, '$[*].id')
                     WHEN 'context.built' THEN jsonb_path_query_array((m.manifest -> 'passages')::jsonb, '$[*].pointer')
                     WHEN 'artifact.read' THEN jsonb_build_array(e.body ->> 'pointer')
                     ELSE jsonb_path_query_array((e.body -> 'pointers')::jsonb, '$[*].pointer') END AS pointers,
         (e.body -> 'bad')::jsonb AS bad, e.body ->> 'pointer' AS artifact,
         CASE p.type WHEN 'retrieval.answered' THEN json_array_length(e.body -> 'cards')
                     WHEN 'context.built' THEN json_array_length(m.manifest -> 'passages')
                     WHEN 'artifact.read' THEN 1
                     ELSE (e.body ->> 'count')::integer END AS pointer_count
  FROM report_place p LEFT JOIN run r USING (log_no, run_no) JOIN event e USING (log_no, seq)
    LEFT JOIN manifest m ON p.type = 'context.built' AND m.manifest_id = (e.body ->> 'manifest_id')::uuid
  WHERE CASE p.run_no WHEN 0 THEN coalesce(current_setting('muniment.runs', true), '') = '' ELSE report.sees(r.run_id) END
    AND p.type IN ('artifact.read', 'context.built', 'pointer.rendered', 'pointer.resolved', 'pointer.validated', 'retrieval.answered');
COMMENT ON VIEW report.retrieval_report IS 'What was read: answers to queries, context packs, pointers checked and artifacts read, with caller and run';
COMMENT ON COLUMN report.retrieval_report.log_no IS 'Number of the log within this database';
COMMENT ON COLUMN report.retrieval_report.run_id IS 'Run of the request, even if it has ended; NULL outside a run';
COMMENT ON COLUMN report.retrieval_report.step_id IS 'Step within the run';
COMMENT ON COLUMN report.retrieval_report.seq IS 'Position of the event in the log';
COMMENT ON COLUMN report.retrieval_report.recorded_at IS 'Time of the append, by the daemon''s clock';
COMMENT ON COLUMN report.retrieval_report.actor IS 'Authenticated identity that appended it';
COMMENT ON COLUMN report.retrieval_report.query IS 'Question, or the first of several; NULL once redacted or archived';
COMMENT ON COLUMN report.retrieval_report.queries IS 'Number of questions';
COMMENT ON COLUMN report.retrieval_report.corpora IS 'Corpora searched';
COMMENT ON COLUMN report.retrieval_report.profile IS 'Ranking profile';
COMMENT ON COLUMN report.retrieval_report.cards IS 'Number of passages returned';
COMMENT ON COLUMN report.retrieval_report.best_score IS 'Score of the first passage';
COMMENT ON COLUMN report.retrieval_report.degraded IS 'Reasons for a degraded answer';
COMMENT ON COLUMN report.retrieval_report.cache IS 'hit, miss or off';
COMMENT ON COLUMN report.retrieval_report.watermark IS 'seq up to which documents were indexed';
COMMENT ON COLUMN report.retrieval_report.duration_us IS 'Duration in microseconds';
COMMENT ON COLUMN report.retrieval_report.type IS 'Type of the event: retrieval.answered, context.built, pointer.validated, pointer.rendered, pointer.resolved or artifact.read';
COMMENT ON COLUMN report.retrieval_report.branch IS 'Parallel branch of the run that asked';
COMMENT ON COLUMN report.retrieval_report.pointers IS 'Pointers to what was read, in order, as far as the event names them; NULL once redacted';
COMMENT ON COLUMN report.retrieval_report.bad IS 'Number of failed pointers by reason';
COMMENT ON COLUMN report.retrieval_report.artifact IS 'Pointer to the artifact that was read';
COMMENT ON COLUMN report.retrieval_report.pointer_count IS 'Number of pointers to what was read';

CREATE VIEW report.recall_report WITH (security_barrier) AS
  SELECT p.log_no, r.run_id, e.step_id, p.seq, e.recorded_at, e.actor, e.body ->> 'branch' AS branch,
         coalesce(e.body #>> '{queries,0,query}', m.manifest #>> '{queries,0,query}') AS question,
         coalesce(e.body -> 'queries', m.manifest -> 'queries')::jsonb AS questions,
         json_array_length(m.manifest -> 'passages') AS passages,
         jsonb_path_query_array((m.manifest -> 'passages')::jsonb, '$[*].pointer') AS pointers,
         (m.manifest ->> 'left_out_count')::integer AS left_out, (e.body ->> 'manifest_id')::uuid AS manifest_id,
         (e.body ->> 'budget')::bigint AS budget, (e.body ->> 'used')::bigint AS used, coalesce(e.body ->> 'unit', 'tokens') AS unit,
         (e.body ->> 'duration_us')::bigint AS duration_us, e.body IS NULL AS redacted
  FROM report_place p LEFT JOIN run r USING (log_no, run_no) JOIN event e USING (log_no, seq)
    LEFT JOIN manifest m ON m.manifest_id = (e.body ->> 'manifest_id')::uuid
  WHERE p.type = 'context.built'
    AND CASE p.run_no WHEN 0 THEN coalesce(current_setting('muniment.runs', true), '') = '' ELSE report.sees(r.run_id) END;
COMMENT ON VIEW report.recall_report IS 'Context packs that were built for questions: what a run recalled';
COMMENT ON COLUMN report.recall_report.log_no IS 'Number of the log within this database';
COMMENT ON COLUMN report.recall_report.run_id IS 'Run id; NULL outside a run';
COMMENT ON COLUMN report.recall_report.step_id IS 'Step within the run';
COMMENT ON COLUMN report.recall_report.seq IS 'seq of its context.built event';
COMMENT ON COLUMN report.recall_report.recorded_at IS 'Time of the append, by the daemon''s clock';
COMMENT ON COLUMN report.recall_report.actor IS 'Authenticated identity that asked';
COMMENT ON COLUMN report.recall_report.branch IS 'Parallel branch of the run that asked';
COMMENT ON COLUMN report.recall_report.question IS 'Question, or the first of several; NULL once redacted';
COMMENT ON COLUMN report.recall_report.questions IS 'All questions, with their corpora';
COMMENT ON COLUMN report.recall_report.passages IS 'Number of passages in the pack; NULL once its manifest was redacted';
COMMENT ON COLUMN report.recall_report.pointers IS 'Pointers to these passages, in the order of the pack';
COMMENT ON COLUMN report.recall_report.left_out IS 'Number of passages that were found and left out';
COMMENT ON COLUMN report.recall_report.manifest_id IS 'Manifest with the passages, their hashes and scores, and the reasons for leaving others out';
COMMENT ON COLUMN report.recall_report.budget IS 'Largest size of the pack';
COMMENT ON COLUMN report.recall_report.used IS 'Size of the pack';
COMMENT ON COLUMN report.recall_report.unit IS 'Unit of budget and used: tokens or bytes';
COMMENT ON COLUMN report.recall_report.duration_us IS 'Duration in microseconds';
COMMENT ON COLUMN report.recall_report.redacted IS 'True if the event was erased';

CREATE VIEW report.document_report WITH (security_barrier) AS
  SELECT d.log_no, d.corpus, d.document, d.title, d.revision, h.revisions, coalesce(d.ended_by, 'current') AS status, d.trust, d.source, d.source_url,
         d.mime_type, d.tags, d.size_bytes, d.chunks, d.document_time, h.first_recorded_at, d.recorded_at,
         coalesce(a.answers, 0) AS answers, coalesce(u.recalls, 0) AS recalls, coalesce(u.citations, 0) AS citations,
         greatest(a.last_seq, u.last_seq) AS last_used_seq, d.seq
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
COMMENT ON VIEW report.document_report IS 'Documents of corpora in their newest revision, memories among them, and how often they were found, recalled and cited; shown to users who see all runs';
COMMENT ON COLUMN report.document_report.log_no IS 'Number of the log within this database';
COMMENT ON COLUMN report.document_report.corpus IS 'Corpus: memory has what was remembered, run has the texts of runs';
COMMENT ON COLUMN report.document_report.document IS 'Name of the document within its corpus';
COMMENT ON COLUMN report.document_report.title IS 'Title';
COMMENT ON COLUMN report.document_report.revision IS 'Newest revision';
COMMENT ON COLUMN report.document_report.revisions IS 'Number of revisions';
COMMENT ON COLUMN report.document_report.status IS 'current, or how the newest revision ended: retracted, revoked or erased';
COMMENT ON COLUMN report.document_report.trust IS 'Level of trust';
COMMENT ON COLUMN report.document_report.source IS 'Source of the newest revision';
COMMENT ON COLUMN report.document_report.source_url IS 'Address of the source';
COMMENT ON COLUMN report.document_report.mime_type IS 'MIME type';
COMMENT ON COLUMN report.document_report.tags IS 'Tags';
COMMENT ON COLUMN report.document_report.size_bytes IS 'Size in bytes';
COMMENT ON COLUMN report.document_report.chunks IS 'Number of passages';
COMMENT ON COLUMN report.document_report.document_time IS 'Time of the document, as its source states';
COMMENT ON COLUMN report.document_report.first_recorded_at IS 'Time at which the first revision was recorded';
COMMENT ON COLUMN report.document_report.recorded_at IS 'Time at which the newest revision was recorded';
COMMENT ON COLUMN report.document_report.answers IS 'Number of queries that found a passage of it';
COMMENT ON COLUMN report.document_report.recalls IS 'Number of context packs and other manifests with a passage of it';
COMMENT ON COLUMN report.document_report.citations IS 'Number of claims and pieces of evidence that point to it';
COMMENT ON COLUMN report.document_report.last_used_seq IS 'seq of the newest of these uses; NULL: none';
COMMENT ON COLUMN report.document_report.seq IS 'seq of the document.revised event of the newest revision';

CREATE VIEW report.task_validation WITH (security_barrier) AS
  SELECT p.log_no, r.run_id, e.body ->> 'task_id' AS task_id, (e.body ->> 'completing')::boolean IS TRUE AS completing,
         (e.body ->> 'can_complete')::boolean AS can_complete, e.body ->> 'verdict' AS verdict, e.body ->> 'reason' AS reason,
         (e.body -> 'codes')::jsonb AS codes, (e.body -> 'evidence_ids')::jsonb AS evidence_ids, e.actor, e.recorded_at, p.seq
  FROM report_place p JOIN run r USING (log_no, run_no) JOIN event e USING (log_no, seq)
  WHERE p.type = 'task.validated' AND report.sees(r.run_id);
COMMENT ON VIEW report.task_validation IS 'Judgements of evidence for tasks: refused completions, and validations; task_report has the completed tasks';
COMMENT ON COLUMN report.task_validation.log_no IS 'Number of the log within this database';
COMMENT ON COLUMN report.task_validation.run_id IS 'Run id';
COMMENT ON COLUMN report.task_validation.task_id IS 'Id of the task, unique within its run';
COMMENT ON COLUMN report.task_validation.completing IS 'True if a completion was refused, false if the evidence was only validated';
COMMENT ON COLUMN report.task_validation.can_complete IS 'True if the evidence suffices';
COMMENT ON COLUMN report.task_validation.verdict IS 'pass, weak, fail, tampered or inconclusive';
COMMENT ON COLUMN report.task_validation.reason IS 'First reason for a refusal; NULL once redacted';
COMMENT ON COLUMN report.task_validation.codes IS 'Codes of all findings that block the completion';
COMMENT ON COLUMN report.task_validation.evidence_ids IS 'Ids of the evidence that was judged';
COMMENT ON COLUMN report.task_validation.actor IS 'Authenticated identity that asked';
COMMENT ON COLUMN report.task_validation.recorded_at IS 'Time of the append, by the daemon''s clock';
COMMENT ON COLUMN report.task_validation.seq IS 'seq of its task.validated event';

CREATE OR REPLACE VIEW report.audit_report WITH (security_barrier) AS
  SELECT p.log_no, r.run_id, p.seq, e.recorded_at, p.type, e.actor,
         coalesce(e.body ->> 'pointer', e.body ->> 'artifact_id', e.body ->> 'seq', e.body ->> 'budget', e.body ->> 'partition', e.body ->> 'new_key',
                  CASE p.type WHEN 'run.interrupted' THEN e.body ->> 'log_seq' WHEN 'log.restored' THEN e.body ->> 'log_id' WHEN 'child.halted' THEN e.body ->> 'run_id'
                              WHEN 'access.refused' THEN e.body ->> 'principal' WHEN 'sandbox.refused' THEN e.body ->> 'path'
                              WHEN 'source.revoked' THEN e.body ->> 'source' WHEN 'embedder.trained' THEN e.body ->> 'embedder' END) AS about,
         coalesce(e.body ->> 'reason', e.body ->> 'why', e.body ->> 'detail', e.body ->> 'operation') AS reason,
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
                   'log.started', 'log.stopped', 'log.resumed', 'log.verified', 'log.exported', 'log.restored', 'log.archived', 'key.rotated', 'clock.stepped',
                   'access.refused', 'child.halted', 'embedder.trained', 'pointer.retried', 'sandbox.refused', 'source.revoked');
COMMENT ON VIEW report.audit_report IS 'Events for auditors: erasures, halts, interruptions and recoveries, pointers that were retried or did not resolve, refused accesses, violations, revoked sources, trained models, verifications, keys, starts, stops, events adopted by a start, periods without appends, steps of the clock. Events of the whole log are shown to readers who see all runs';
COMMENT ON COLUMN report.audit_report.about IS 'Subject of the event: a pointer, an artifact, an event, a budget, a partition, a key, a log, a child run, a principal, a path, a source, a model; for an interruption, the log.started that reports it';
COMMENT ON COLUMN report.audit_report.reason IS 'Reason, as text; for an access that a sandbox refused, the operation';

CREATE OR REPLACE VIEW report.evidence_report WITH (security_barrier) AS
  SELECT v.log_no, v.run_id, e.step_id, v.evidence_id, v.type, v.task_id,
         u.run_id AS completed_run_id, u.task_id AS completed_task_id, v.actor, v.validator_id, v.command_id,
         e.body #>> '{attestation,key}' AS attestation_key, v.pointer, v.content::jsonb AS content,
         CASE WHEN e.body IS NOT NULL THEN v.hash END AS hash,
         v.created_at + make_interval(secs => (e.body ->> 'expires_in_seconds')::integer) AS expires_at,
         (e.body -> 'depends_on')::jsonb AS depends_on, e.body IS NULL AS redacted, v.created_at AS recorded_at, v.seq,
         (e.body -> 'artifacts')::jsonb AS artifacts
  FROM evidence v JOIN run r USING (log_no, run_id) JOIN event e ON e.log_no = v.log_no AND e.seq = v.seq
    LEFT JOIN task_evidence u ON u.log_no = v.log_no AND u.evidence_seq = v.seq AND report.sees(u.run_id)
  WHERE report.sees(r.run_id);
COMMENT ON COLUMN report.evidence_report.artifacts IS 'Ids of the artifacts on which it rests: the output and report of its command, and those that the recorder named';
