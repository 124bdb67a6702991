// Declares the methods, one function each, grouped by the file that defines them; method_table.cpp lists them.
#pragma once

#include "gateway/call.hpp"

namespace muniment::gateway::methods {

// artifacts.cpp, artifact_put.cpp
Result<Answer> artifact_put(Call& call);
Result<std::unique_ptr<BodySink>> artifact_put_body(Call& call, std::int64_t body_bytes);
Result<Answer> artifact_get(Call& call);
Result<Answer> artifact_stat(Call& call);
Result<Answer> artifact_list(Call& call);

// archive.cpp
Result<Answer> audit_archive(Call& call);

// redact.cpp
Result<Answer> audit_redact(Call& call);
// Erases all revisions of a document, for document.retract. Errors: denied; not_found if it has none that is left;
// conflict if one shares its file with other documents.
Result<Answer> erase_document(Call& call, const std::string& corpus, const std::string& document);

// pointers.cpp
Result<Answer> pointer_resolve(Call& call);
Result<Answer> pointer_validate(Call& call);
Result<Answer> pointer_render(Call& call);

// ask.cpp
Result<Answer> ask(Call& call);

// cloud.cpp
Result<Answer> cloud_answer(Call& call);

// context.cpp
Result<Answer> context_build(Call& call);

// corpus_ingest.cpp
Result<Answer> corpus_ingest(Call& call);
// Also to the corpora of the daemon itself.
Result<Answer> ingest_documents(Call& call);

// documents.cpp
Result<Answer> corpus_list(Call& call);
Result<Answer> document_diff(Call& call);
Result<Answer> document_get(Call& call);
Result<Answer> document_history(Call& call);
Result<Answer> document_list(Call& call);
Result<Answer> document_retract(Call& call);
Result<Answer> feedback_record(Call& call);
Result<Answer> source_revoke(Call& call);

// retrieve.cpp
Result<Answer> evidence_retrieve(Call& call);

// ledger.cpp
Result<Answer> claim_record(Call& call);
Result<Answer> claim_list(Call& call);
Result<Answer> evidence_record(Call& call);
Result<Answer> evidence_list(Call& call);

// ledger_evidence.cpp
Result<Answer> claim_decide(Call& call);
Result<Answer> evidence_get(Call& call);
Result<Answer> evidence_link(Call& call);
Result<Answer> evidence_verify(Call& call);

// tasks/tasks.cpp
Result<Answer> task_list(Call& call);
Result<Answer> task_open(Call& call);

// tasks/completion.cpp
Result<Answer> task_complete(Call& call);
Result<Answer> task_validate(Call& call);

// tasks/evidence_files.cpp
Result<Answer> evidence_check(Call& call);
Result<Answer> evidence_attest(Call& call);
Result<Answer> evidence_export(Call& call);
Result<Answer> evidence_import(Call& call);

// recover.cpp
Result<Answer> run_recover(Call& call);
Result<Answer> server_rebuild(Call& call);

// audit.cpp
Result<Answer> audit_checkpoint(Call& call);
Result<Answer> audit_key(Call& call);
Result<Answer> audit_prove(Call& call);
Result<Answer> audit_verified(Call& call);

// bundle.cpp
Result<Answer> bundle_close(Call& call);
Result<Answer> bundle_nodes(Call& call);
Result<Answer> bundle_read(Call& call);

// commands.cpp
Result<Answer> command_end(Call& call);
Result<Answer> command_executor(Call& call);
Result<Answer> command_start(Call& call);

// events.cpp
Result<Answer> event_append(Call& call);

// event_list.cpp
Result<Answer> event_get(Call& call);
Result<Answer> event_list(Call& call);

// manifests.cpp
Result<Answer> manifest_get(Call& call);
Result<Answer> manifest_put(Call& call);

// run_start.cpp
Result<Answer> run_start(Call& call);

// run_end.cpp
Result<Answer> run_annotate(Call& call);
Result<Answer> run_end(Call& call);

// run_judge.cpp
Result<Answer> run_judge(Call& call);

// run_list.cpp
Result<Answer> run_costs(Call& call);
Result<Answer> run_get(Call& call);
Result<Answer> run_list(Call& call);

// server.cpp
Result<Answer> server_health(Call& call);
Result<Answer> server_metrics(Call& call);
Result<Answer> server_status(Call& call);

// snapshots.cpp
Result<Answer> run_rehydrate(Call& call);
Result<Answer> snapshot_latest(Call& call);
Result<Answer> snapshot_list(Call& call);
Result<Answer> snapshot_take(Call& call);

}  // namespace muniment::gateway::methods
