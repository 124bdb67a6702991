// Entry point of `muniment`: the commands that agents use. Those for operators and adapters are in programs of their
// own, whose libraries take longer to load than most commands take.
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

constexpr std::string_view operators = "muniment-operator", adapters = "muniment-adapters",
                           capsules = "muniment-capsule";
constexpr Family families[] = {
    in_program(operators, "up", "Start the daemon if it is not running"),
    in_program(operators, "down", "Stop the daemon"),
    in_program(operators, "status", "Show the state of the daemon"),
    in_program(operators, "rebuild", "Rebuild the derived tables from the log"),
    in_program(operators, "config", "Show or check the configuration", capsules),
    in_program(operators, "doctor", "Diagnose problems and suggest fixes (exit code 1: a problem was found)"),
    in_program(operators, "model", "Sentence encoders: install one, list them"),
    in_program(operators, "metrics", "Print the daemon's metrics in the Prometheus text format"),
    in_program(operators, "top", "Show the daemon's activity live; q quits"),
    {"run rehydrate recover", add_run_commands},
    {"why", add_why_command},
    {"exec", add_exec_command},
    {"workflow validate-code", add_workflow_commands},
    in_program(adapters, "mcp", "Serve MCP on standard input and output, or record an MCP server", capsules),
    in_program(adapters, "otlp", "Receive OpenTelemetry traces and record them as runs"),
    in_program(adapters, "record", "Record an agent live, as its hook command or from its session file"),
    {"event", add_event_commands},
    {"artifact snapshot manifest", add_artifact_commands},
    {"claim evidence list-evidence check-evidence pointer", add_ledger_commands},
    {"task validate-todo", add_task_commands},
    {"attestation", add_attestation_commands},
    {"bead", add_bead_commands},
    {"ingest", add_ingest_command},
    {"query", add_query_command},
    {"corpus document source feedback", add_corpus_commands},
    {"ask", add_ask_command},
    {"context recall", add_context_commands},
    {"log", add_log_command},
    in_program(capsules, "capsule", "Inspect, verify, compare and merge capsules"),
    in_program(capsules, "agent", "Answer with a hook and the tools of a capsule"),
    {"remember forget memories history memory", add_memory_commands},
    in_program(operators, "audit", "Sign, prove, verify, export and erase"),
    in_program(adapters, "import", "Import traces of other systems as runs"),
    in_program(operators, "backup", "Back up the log, its files and its configuration"),
    in_program(operators, "restore", "Restore a backup into an empty data folder and verify it"),
    in_program(operators, "export", "Export events as JSONL or CSV with all hashed fields"),
    in_program(operators, "cost", "Costs of models by day, week, month, agent, model or label"),
    in_program(operators, "retention", "Erase old runs by the rules of the configuration"),
    in_program(operators, "disk", "Show what uses space"),
    in_program(operators, "sql", "Query the views of schema report, read-only (docs/sql.md)"),
    {"self-check", add_self_check_command},
};

int run(int argc, char** argv, Execution execution) {
  return run_program({families, footer}, argc, argv, std::move(execution));
}

}  // namespace
}  // namespace muniment::cli

int main(int argc, char** argv) {
  namespace cli = muniment::cli;
  cli::open_standard_streams();
  if (argc == 2 && std::strcmp(argv[1], "--executor-child") == 0) return cli::serve_executor(cli::run);
  return cli::run(argc, argv, {});
}
