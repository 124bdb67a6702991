// muniment: the command line. Every command is declared in commands_*.cpp; this joins them.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/config/command_tree.hpp"
#include "base/ids.hpp"
#include "base/text.hpp"
#include "cli/commands.hpp"

namespace muniment::cli {
namespace {

constexpr const char* footer =
    R"(A run is named by its id, @last, @last~1, @17 (its number) or a label k=v, if one run has it;
MUNIMENT_RUN is the default of RUN and --run.

Exit codes
  0    done
  1    refused: not found, conflict, denied, wrong arguments, or a check that failed
  2    halted, SYSTEM_ERROR (see: muniment recover RUN); or damaged: what a file, a log, a
       backup or what was restored from it holds is not what was recorded
  3    the command line is wrong
  4    no daemon or database, or no answer in time; the same command may work later
  125  exec: could not record, and the command was not started (else: its own code)
audit verify has muniment-verify's: 0 verified, 1 tampered or corrupt, 2 nothing is damaged,
but not all is signed by a key that is trusted, 3 as above, 4 unreadable, 5 incomplete.
record has its agent's: 1 not recorded, 2 the tool call is blocked.)";

void declare_common(CLI::App& app, CommonOptions& options) {
  app.add_option("--data", options.data, "The data folder (MUNIMENT_DATA)")->type_name("DIR");
  app.add_option("--config", options.config, "The configuration file")->type_name("FILE");
  app.add_option("--socket", options.socket, "The daemon's socket (MUNIMENT_SOCKET)")->type_name("PATH");
  app.add_option("--database", options.database, "For a daemon that is started (MUNIMENT_DATABASE)")->type_name("URI");
  app.add_flag("--json", options.json, "Print JSON");
  app.add_flag("--raw", options.raw, "Print text as it is; not on a terminal");
  app.add_flag("--no-autostart", options.no_autostart, "Never start a daemon");
}

// What stands after "--" is a command to run, not for us to read.
int cut_command(int argc, char** argv, std::vector<std::string>& command) {
  int end = 1;
  while (end < argc && std::strcmp(argv[end], "--") != 0) ++end;
  for (int i = end + 1; i < argc; ++i) command.emplace_back(argv[i]);
  return end;
}

// The words in CLI11's order, the last first; "help run show" is "run show --help".
std::vector<std::string> words_of(int count, char** argv) {
  std::vector<std::string> words(argv + 1, argv + count);
  if (!words.empty() && words.front() == "help") {
    words.erase(words.begin());
    words.emplace_back("--help");
  }
  std::reverse(words.begin(), words.end());
  return words;
}

// CLI11 says only that a command is missing, also where one was given that there is not.
bool named_unknown_word(const CLI::App& app) {
  const std::vector<std::string> unknown = app.remaining(true);
  if (unknown.empty()) return false;
  const CLI::App* group = &app;
  std::string path = group->get_name();
  while (!group->get_subcommands().empty()) {
    group = group->get_subcommands().front();
    path += " " + group->get_name();
  }
  std::vector<std::string> names;
  for (const CLI::App* command : group->get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(command->get_name());
  if (names.empty()) return false;
  const std::string& word = unknown.front();
  const std::string_view near = nearest(word, names);
  fmt::print(stderr, "{}: there is no {} \"{}\".{} See: {} --help\n", path,
             word.starts_with('-') ? "option" : "command", escape_for_terminal(word),
             near.empty() ? "" : fmt::format(" Did you mean \"{}\"?", near), path);
  return true;
}

// All of what was printed is out, or it is said that it is not. What a command does beside printing is done by now.
int flushed_exit_code(int exit_code) {
  const bool flushed = std::fflush(stdout) == 0;
  const std::string why = flushed ? "" : fmt::format(": {}", std::strerror(errno));
  if (flushed && std::ferror(stdout) == 0) return exit_code;
  fmt::print(stderr, "muniment: the output could not be written{}. What the command does beside printing is {}\n", why,
             exit_code == exit_done ? "done" : "told by its exit code");
  return exit_code == exit_done ? exit_refused : exit_code;
}

int run(int argc, char** argv) {
  Session session;
  const int count = cut_command(argc, argv, session.command);
  CLI::App app("Audit-grade external memory for AI agents", "muniment");
  app.footer(footer);
  app.set_version_flag("--version", MUNIMENT_VERSION);
  app.require_subcommand(1);
  app.fallthrough();
  declare_common(app, session.options);
  add_server_commands(app, session);
  add_doctor_command(app, session);
  add_metrics_command(app, session);
  add_top_command(app, session);
  add_run_commands(app, session);
  add_why_command(app, session);
  add_exec_command(app, session);
  add_mcp_command(app, session);
  add_record_command(app, session, follow_file);
  add_event_commands(app, session);
  add_artifact_commands(app, session);
  add_ledger_commands(app, session);
  add_task_commands(app, session);
  add_ingest_command(app, session);
  add_query_command(app, session);
  add_corpus_commands(app, session);
  add_context_command(app, session);
  add_audit_commands(app, session);
  add_import_command(app, session);
  add_backup_commands(app, session);
  add_export_command(app, session);
  add_sql_command(app, session);
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    session.commands.push_back(command->get_name());
  offer_command_tree(app);
  app.add_subcommand("help", "This text, or that of a command: help run show");
  try {
    app.parse(words_of(count, argv));
  } catch (const CLI::CallForHelp& error) {  // of a word that is none, too, of which there is no help
    return named_unknown_word(app) || app.exit(error) != 0 ? exit_usage : exit_done;
  } catch (const CLI::RequiredError& error) {
    return named_unknown_word(app) || app.exit(error) != 0 ? exit_usage : exit_done;
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? exit_done : exit_usage;
  }
  return flushed_exit_code(session.exit_code);
}

}  // namespace
}  // namespace muniment::cli

int main(int argc, char** argv) { return muniment::cli::run(argc, argv); }
