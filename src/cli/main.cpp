// Entry point of `muniment`: the commands of src/cli/commands, and those that muniment-adapters has.
#include <cstring>

#include "cli/commands.hpp"
#include "cli/executor/executor.hpp"
#include "client/program.hpp"

namespace muniment::cli {
namespace {

constexpr const char* footer =
    R"(Examples:
  muniment up                                          start the daemon
  muniment exec -- make test                           run a command and record it
  muniment run list --since 1d                         the runs of the last day
  muniment run show @last                              what happened in the newest run
  muniment query "how is a run recovered" --full       search the documents

RUN is a run's id, @last, @last~1, @17 (its number) or a label k=v that only one run has;
MUNIMENT_RUN is the default of RUN and --run.

Exit codes
  0    done
  1    refused: not found, conflict, denied, wrong arguments, or a check that failed
  2    halted, SYSTEM_ERROR (see: muniment recover RUN); or damaged: the contents of a file,
       a log, a backup or a restored log differ from what was recorded
  3    invalid command line
  4    the daemon or database is unreachable or timed out; retry later
  125  exec: recording failed and the command was not started (otherwise its own exit code)
  130  interrupted by a signal (workflow run, doctor --self)
audit verify uses the codes of muniment-verify: 0 verified, 1 tampered or corrupt, 2 undamaged
but not fully signed by a trusted key, 3 as above, 4 unreadable, 5 incomplete.
record uses the codes of its agent: 1 not recorded, 2 the tool call is blocked.)";

constexpr Family families[] = {
    {"up down status rebuild config", add_server_commands},
    {"doctor", add_doctor_command},
    {"model", add_model_commands},
    {"metrics", add_metrics_command},
    {"top", add_top_command},
    {"run rehydrate recover", add_run_commands},
    {"why", add_why_command},
    {"exec", add_exec_command},
    {"workflow validate-code", add_workflow_commands},
    {"event", add_event_commands},
    {"artifact snapshot manifest", add_artifact_commands},
    {"claim evidence list-evidence check-evidence pointer", add_ledger_commands},
    {"task validate-todo", add_task_commands},
    {"attestation", add_attestation_commands},
    {"bead", add_bead_commands},
    {"ingest", add_ingest_command},
    {"query", add_query_command},
    {"corpus document source feedback", add_corpus_commands},
    {"context", add_context_command},
    {"audit", add_audit_commands},
    {"backup restore", add_backup_commands},
    {"export", add_export_command},
    {"sql", add_sql_command},
};

// What translates the traces, hooks and protocols of other programs, of which `muniment` links nothing.
constexpr Elsewhere adapters[] = {
    {"mcp", "Serve MCP on standard input and output, or record an MCP server", "muniment-adapters"},
    {"otlp", "Receive OpenTelemetry traces and record them as runs", "muniment-adapters"},
    {"record", "Record an agent live, as its hook command or from its session file", "muniment-adapters"},
    {"import", "Import traces of other systems as runs", "muniment-adapters"},
};

int run(int argc, char** argv, Execution execution) {
  return run_program({families, adapters, footer}, argc, argv, std::move(execution));
}

}  // namespace
}  // namespace muniment::cli

int main(int argc, char** argv) {
  namespace cli = muniment::cli;
  cli::open_standard_streams();
  if (argc == 2 && std::strcmp(argv[1], "--executor-child") == 0) return cli::serve_executor(cli::run);
  return cli::run(argc, argv, {});
}
