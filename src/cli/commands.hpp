// Declares the commands of `muniment`, one file per family.
#pragma once

#include "client/command.hpp"

namespace muniment::cli {

void add_server_commands(CLI::App& app, Session& session);     // up down status config rebuild
void add_doctor_command(CLI::App& app, Session& session);      // doctor
void add_self_check_command(CLI::App& app, Session& session);  // doctor --self
void add_model_commands(CLI::App& app, Session& session);      // model install, list
void add_metrics_command(CLI::App& app, Session& session);     // metrics
void add_top_command(CLI::App& app, Session& session);         // top
void add_run_commands(CLI::App& app, Session& session);        // run …, recover, rehydrate
void add_run_list(CLI::App& run, Session& session);            // run list
void add_run_judge(CLI::App& run, Session& session);           // run judge
void add_run_grep(CLI::App& run, Session& session);            // run grep
void add_run_diff(CLI::App& run, Session& session);            // run diff, fork
void add_why_command(CLI::App& app, Session& session);         // why
void add_event_commands(CLI::App& app, Session& session);      // event …
void add_artifact_grep(CLI::App& artifact, Session& session);  // artifact grep
void add_artifact_commands(CLI::App& app, Session& session);   // artifact …, snapshot …, manifest …
void add_ledger_commands(CLI::App& app, Session& session);     // claim …, evidence …, list-evidence, pointer …
void add_task_commands(CLI::App& app, Session& session);       // task …, validate-todo
// evidence check, import, export; check-evidence
void add_evidence_file_commands(CLI::App& app, CLI::App& evidence, Session& session);
void add_attestation_commands(CLI::App& app, Session& session);     // attestation …
void add_bead_commands(CLI::App& app, Session& session);            // bead …
void add_ingest_command(CLI::App& app, Session& session);           // ingest
void add_ask_command(CLI::App& app, Session& session);              // ask
void add_query_command(CLI::App& app, Session& session);            // query
void add_corpus_commands(CLI::App& app, Session& session);          // corpus …, document …, source …, feedback
void add_context_commands(CLI::App& app, Session& session);         // context, recall
void add_memory_commands(CLI::App& app, Session& session);          // remember, forget, memories, history, memory …
void add_log_command(CLI::App& app, Session& session);              // log
void add_capsule_commands(CLI::App& app, Session& session);         // capsule …
void add_agent_command(CLI::App& app, Session& session);            // agent
void add_capsule_config_commands(CLI::App& app, Session& session);  // config, with --capsule
void add_capsule_mcp_command(CLI::App& app, Session& session);      // mcp, with --capsule
void add_export_command(CLI::App& app, Session& session);           // export
void add_retention_commands(CLI::App& app, Session& session);       // retention preview, apply
void add_disk_command(CLI::App& app, Session& session);             // disk
void add_cost_command(CLI::App& app, Session& session);             // cost
void add_sql_command(CLI::App& app, Session& session);              // sql
void add_audit_commands(CLI::App& app, Session& session);           // audit …
void add_bundle_commands(CLI::App& audit, Session& session);        // audit export, import, report
void add_archive_command(CLI::App& audit, Session& session);        // audit archive
void add_redact_command(CLI::App& audit, Session& session);         // audit redact
void add_witness_command(CLI::App& audit, Session& session);        // audit witness
void add_backup_commands(CLI::App& app, Session& session);          // backup, restore
void add_exec_command(CLI::App& app, Session& session);             // exec
void add_workflow_commands(CLI::App& app, Session& session);        // workflow run, workflow digest, validate-code

// workflow.cpp: returns the digest of the workflow whose specification is at `path`. `text`: the task, if the file
// names none. Errors: those of the file.
Result<std::string> digest_of_workflow(const std::string& path, const std::string& text);

}  // namespace muniment::cli
