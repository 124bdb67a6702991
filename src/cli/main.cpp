// Entry point of `muniment`: declares the global options and the commands of src/cli/commands and runs one command.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/config/command_tree.hpp"
#include "base/ids.hpp"
#include "base/text.hpp"
#include "cli/commands.hpp"
#include "cli/examples.hpp"
#include "cli/executor/executor.hpp"

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

void declare_common(CLI::App& app, CommonOptions& options) {
  app.add_option("--data", options.data, "Data folder (default: MUNIMENT_DATA)")->type_name("DIR");
  app.add_option("--config", options.config, "Configuration file")->type_name("FILE");
  app.add_option("--socket", options.socket, "Socket of the daemon (default: MUNIMENT_SOCKET)")->type_name("PATH");
  app.add_option("--database", options.database, "Database for a daemon to start (default: MUNIMENT_DATABASE)")
      ->type_name("URI");
  app.add_flag("--json", options.json, "Print JSON");
  app.add_flag("--raw", options.raw, "Print text unescaped; ignored on a terminal");
  app.add_flag("--no-autostart", options.no_autostart, "Never start a daemon");
}

// The commands by the words that follow "muniment". Only those of the word in the command line are declared, because
// declaring all of them takes longer than most commands.
struct Family {
  std::string_view names;
  void (*add)(CLI::App& app, Session& session);
};
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
    {"mcp", add_mcp_command},
    {"otlp", add_otlp_command},
    {"record", [](CLI::App& app, Session& session) { add_record_command(app, session, follow_file); }},
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
    {"context", add_context_command},
    {"audit", add_audit_commands},
    {"import", add_import_command},
    {"backup restore", add_backup_commands},
    {"export", add_export_command},
    {"sql", add_sql_command},
};

// Returns the first word that is neither an option nor an option's value; empty: there is none.
std::string_view first_word(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (!word.starts_with('-')) return word;
    if (word == "--data" || word == "--config" || word == "--socket" || word == "--database") ++i;
  }
  return "";
}

bool has(const Family& family, std::string_view word) {
  return (" " + std::string(family.names) + " ").find(" " + std::string(word) + " ") != std::string::npos;
}

void add_families(CLI::App& app, Session& session, std::string_view word) {
  const bool known = std::ranges::any_of(families, [&](const Family& family) { return has(family, word); });
  for (const Family& family : families) {
    if (!known || has(family, word)) family.add(app, session);
    for (std::string_view names = family.names; !names.empty();) {
      session.commands.emplace_back(names.substr(0, names.find(' ')));
      names.remove_prefix(std::min(session.commands.back().size() + 1, names.size()));
    }
  }
}

// The words after "--" are the command to run and are not parsed here; for other commands they are parsed, as
// arguments.
int cut_command(int argc, char** argv, std::vector<std::string>& command) {
  const std::string_view word = first_word(argc, argv);
  if (word != "exec" && word != "mcp" && word != "otlp" && word != "record") return argc;
  int end = 1;
  while (end < argc && std::strcmp(argv[end], "--") != 0) ++end;
  for (int i = end + 1; i < argc; ++i) command.emplace_back(argv[i]);
  return end;
}

// Returns the words in the order of CLI11, last first; "help run show" becomes "run show --help".
std::vector<std::string> words_of(int count, char** argv) {
  std::vector<std::string> words(argv + 1, argv + count);
  if (!words.empty() && words.front() == "help") {
    words.erase(words.begin());
    words.emplace_back("--help");
  }
  std::reverse(words.begin(), words.end());
  return words;
}

// Returns the command that was parsed last and its path, such as "muniment run list".
const CLI::App& deepest(const CLI::App& app, std::string& path) {
  const CLI::App* command = &app;
  path = app.get_name();
  while (!command->get_subcommands().empty()) {
    command = command->get_subcommands().front();
    path += " " + command->get_name();
  }
  return *command;
}

std::vector<std::string> names_below(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::App* word : command.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(word->get_name());
  return names;
}

// Returns the options of the command and of its parents, which a command inherits.
std::vector<std::string> option_names(const CLI::App* command) {
  std::vector<std::string> names;
  for (; command != nullptr; command = command->get_parent()) {
    for (const CLI::Option* option : command->get_options()) {
      for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    }
  }
  return names;
}

// Commands that other programs name differently.
constexpr std::pair<std::string_view, std::string_view> synonyms[] = {
    {"cat", "artifact get"},
    {"find", "query"},
    {"list", "run list"},
    {"log", "run show"},
    {"logs", "run show"},
    {"ls", "run list"},
    {"recall", "query"},
    {"remember", "ingest"},
    {"runs", "run list"},
    {"search", "query"},
    {"serve", "up"},
    {"show", "run show"},
    {"start", "up"},
    {"stop", "down"},
    {"timeline", "run show"},
    {"trace", "run show"},
    {"verify", "audit verify"},
};

// Names the arguments after "--", which CLI11 does not see, in the usage lines.
class HelpFormat : public CLI::Formatter {
 public:
  std::string make_usage(const CLI::App* app, std::string name) const override {
    std::string usage = CLI::Formatter::make_usage(app, std::move(name));
    if (const std::size_t count = usage.find("(1x)"); count != std::string::npos) usage.erase(count, 4);
    const std::string& command = app->get_name();
    const bool wraps = command == "mcp" || command == "otlp";
    if (command == "exec" || wraps)
      usage.insert(usage.find_last_not_of('\n') + 1, wraps ? " [-- COMMAND...]" : " -- COMMAND...");
    return usage;
  }
};

std::string did_you_mean(std::string_view word, const std::vector<std::string>& names) {
  const auto* const synonym = std::ranges::find(synonyms, word, [](const auto& row) { return row.first; });
  const bool at_top = std::ranges::find(names, "down") != names.end();
  const std::string_view near = synonym != std::end(synonyms) && at_top ? synonym->second : nearest(word, names);
  return near.empty() ? "" : fmt::format(" Did you mean \"{}\"?", near);
}

// CLI11 does not name an unknown word. An unknown option is reported first, since the words around it may be its value.
bool named_unknown_word(const CLI::App& app) {
  const std::vector<std::string> unknown = app.remaining(true);
  if (unknown.empty()) return false;
  std::string path;
  const CLI::App& command = deepest(app, path);
  const auto is_option = [](const std::string& word) { return word.size() > 1 && word.starts_with('-'); };
  const auto option = std::ranges::find_if(unknown, is_option);
  const std::vector<std::string> commands = names_below(command);
  const bool misses_command = !commands.empty() && !is_option(unknown.front());
  const std::string word = misses_command || option == unknown.end() ? unknown.front() : *option;
  if (path == "muniment exec" && !is_option(unknown.front())) {
    fmt::print(stderr, "{}: the command to run follows \"--\". Write: muniment exec -- {}\n", path,
               escape_for_terminal(joined(unknown, " ")));
    return true;
  }
  const std::string shown = escape_for_terminal(word);
  if (is_option(word)) {
    const std::string name = word.substr(0, word.find('='));
    fmt::print(stderr, "{}: there is no option \"{}\".{} See: {} --help\n", path, escape_for_terminal(name),
               did_you_mean(name, option_names(&command)), path);
  } else if (misses_command) {
    fmt::print(stderr, "{}: there is no command \"{}\".{} See: {} --help\n", path, shown, did_you_mean(word, commands),
               path);
  } else {
    fmt::print(stderr, "{}: unexpected argument \"{}\". See: {} --help\n", path, shown, path);
  }
  return true;
}

// Prints the help of a command group that was called without a command; reports any other error with an example.
void print_mistake(const CLI::App& app, const CLI::ParseError& error) {
  std::string path;
  const CLI::App& command = deepest(app, path);
  if (error.get_name() == "RequiredError" && !names_below(command).empty()) {
    const std::size_t last_word = path.rfind(' ');
    fmt::print("{}", command.help(last_word == std::string::npos ? "" : path.substr(0, last_word)));
    return;
  }
  const std::size_t blank = path.find(' ');
  const std::string_view example = example_of(blank == std::string::npos ? "" : path.substr(blank + 1));
  fmt::print(stderr, "{}: {}. {}See: {} --help\n", path, escape_for_terminal(error.what()),
             example.empty() ? "" : fmt::format("Example: {}. ", example), path);
}

// Flushes standard output and reports a failed write. The command has finished its other work by now.
int flushed_exit_code(int exit_code) {
  const bool flushed = std::fflush(stdout) == 0;
  const std::string why = flushed ? "" : fmt::format(": {}", std::strerror(errno));
  if (flushed && std::ferror(stdout) == 0) return exit_code;
  fmt::print(stderr, "muniment: the output could not be written{}. The rest of the command is {}\n", why,
             exit_code == exit_done ? "done" : "reported by its exit code");
  return exit_code == exit_done ? exit_refused : exit_code;
}

// Reserves the descriptors of standard streams that the caller closed, so that no file opened later gets their
// numbers.
void open_standard_streams() {
  int opened = 0;
  while (opened >= 0 && opened <= STDERR_FILENO) opened = ::open("/dev/null", O_RDONLY);
  if (opened > STDERR_FILENO) ::close(opened);
}

int run(int argc, char** argv, Execution execution) {
  Session session;
  session.words.assign(argv, argv + argc);
  session.execution = std::move(execution);
  const int count = cut_command(argc, argv, session.command);
  CLI::App app("Audit-grade external memory for AI agents", "muniment");
  app.formatter(std::make_shared<HelpFormat>());
  app.footer(footer);
  app.set_version_flag("--version", MUNIMENT_VERSION);
  app.require_subcommand(1);
  app.fallthrough();
  declare_common(app, session.options);
  add_families(app, session, first_word(argc, argv));
  offer_command_tree(app);
  app.add_subcommand("help", "Print this text or the help of a command: help run show");
  add_examples(app);
  try {
    app.parse(words_of(count, argv));
  } catch (const CLI::CallForHelp& error) {  // also thrown for an unknown word
    return named_unknown_word(app) || app.exit(error) != 0 ? exit_usage : exit_done;
  } catch (const CLI::Success& success) {
    return app.exit(success) == 0 ? exit_done : exit_usage;
  } catch (const CLI::ParseError& error) {
    if (!named_unknown_word(app)) print_mistake(app, error);
    return exit_usage;
  }
  return flushed_exit_code(session.exit_code);
}

}  // namespace
}  // namespace muniment::cli

int main(int argc, char** argv) {
  namespace cli = muniment::cli;
  cli::open_standard_streams();
  if (argc == 2 && std::strcmp(argv[1], "--executor-child") == 0) return cli::serve_executor(cli::run);
  return cli::run(argc, argv, {});
}
