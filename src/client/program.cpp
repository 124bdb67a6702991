#include "client/program.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <set>
#include <vector>

#include "base/config/command_tree.hpp"
#include "base/ids.hpp"
#include "base/text.hpp"
#include "client/examples.hpp"

namespace muniment::cli {
namespace {

void declare_common(CLI::App& app, CommonOptions& options, bool has_capsules) {
  const auto is_capsule = [has_capsules](const std::string& file) -> std::string {
    if (file.empty()) return "the name of the file is empty";
    return has_capsules ? "" : "this command needs a daemon. Omit --capsule";
  };
  app.add_option("--data", options.data, "Data folder (default: MUNIMENT_DATA)")->type_name("DIR");
  app.add_option("--config", options.config, "Configuration file")->type_name("FILE");
  app.add_option("--socket", options.socket, "Socket of the daemon (default: MUNIMENT_SOCKET)")->type_name("PATH");
  app.add_option("--database", options.database, "Database for a daemon to start (default: MUNIMENT_DATABASE)")
      ->type_name("URI");
  app.add_option("--capsule", options.capsule, "Use this capsule instead of a daemon")
      ->type_name("FILE")
      ->check(is_capsule);
  app.add_flag("--json", options.json, "Print JSON");
  app.add_flag("--raw", options.raw, "Print text unescaped; ignored on a terminal");
  app.add_flag("--no-autostart", options.no_autostart, "Never start a daemon");
}

// Returns the first word that is neither an option nor an option's value; empty: there is none.
std::string_view first_word(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (!word.starts_with('-')) return word;
    if (word == "--data" || word == "--config" || word == "--socket" || word == "--database" || word == "--capsule")
      ++i;
  }
  return "";
}

bool names_capsule(int argc, char** argv) {
  return std::any_of(argv + 1, argv + argc, [](const char* word) {
    return std::strcmp(word, "--capsule") == 0 || std::string_view(word).starts_with("--capsule=");
  });
}

bool has(std::string_view names, std::string_view word) {
  return (" " + std::string(names) + " ").find(" " + std::string(word) + " ") != std::string::npos;
}

// Declares the commands of the family of `word`, or all of them if it names none.
void add_families(CLI::App& app, Session& session, const Program& program, std::string_view word) {
  const auto is_named = [&](const Family& family) { return has(family.names, word); };
  const bool known = std::ranges::any_of(program.families, is_named);
  for (const Family& family : program.families) {
    if (known ? !is_named(family) : family.hidden) continue;
    if (family.add != nullptr) {
      family.add(app, session);
    } else {
      add_word(session, app, std::string(family.names), std::string(family.text), success);
    }
  }
}

// The words after "--" are the command to run and are not parsed here; for other commands they are parsed, as
// arguments.
int cut_command(int argc, char** argv, std::vector<std::string>& command) {
  const std::string_view word = first_word(argc, argv);
  if (word != "exec" && word != "mcp" && word != "otlp" && word != "record" && word != "agent") return argc;
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
    {"cat", "artifact get"}, {"find", "query"},
    {"list", "run list"},    {"logs", "run show"},
    {"ls", "run list"},      {"runs", "run list"},
    {"search", "query"},     {"serve", "up"},
    {"show", "run show"},    {"start", "up"},
    {"stop", "down"},        {"timeline", "run show"},
    {"trace", "run show"},   {"verify", "audit verify"},
};

// Names the arguments after "--", which CLI11 does not see, in the usage lines.
class HelpFormat : public CLI::Formatter {
 public:
  std::string make_usage(const CLI::App* app, std::string name) const override {
    std::string usage = CLI::Formatter::make_usage(app, std::move(name));
    if (const std::size_t count = usage.find("(1x)"); count != std::string::npos) usage.erase(count, 4);
    const std::string& command = app->get_name();
    const bool wraps = command == "mcp" || command == "otlp" || command == "agent";
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
    const bool takes_text = command.get_option_no_throw("TEXT") != nullptr;
    fmt::print(stderr, "{}: unexpected argument \"{}\".{} See: {} --help\n", path, shown,
               takes_text ? " Put a text of several words in quotes." : "", path);
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

// Returns the program that has the command; empty: this one, or there is none.
std::string_view program_of(const Program& program, int argc, char** argv) {
  std::string_view word = first_word(argc, argv);
  if (word == "help" && argc > 2) word = argv[2];
  for (const Family& family : program.families) {
    if (family.add != nullptr || family.names != word) continue;
    const bool other = !family.with_capsule.empty() && names_capsule(argc, argv);
    return other ? family.with_capsule : family.program;
  }
  return {};
}

// Returns the command trees of the programs that have some of the commands.
std::vector<std::string> other_trees(const Program& program) {
  std::set<std::string_view> names;
  for (const Family& family : program.families) {
    if (family.add == nullptr) names.insert(family.program);
  }
  std::vector<std::string> trees;
  for (const std::string_view name : names) trees.push_back(tree_of(name));
  return trees;
}

}  // namespace

int run_program(const Program& program, int argc, char** argv, Execution execution) {
  if (const std::string_view other = program_of(program, argc, argv); !other.empty()) return become(other, argv);
  Session session;
  session.words.assign(argv, argv + argc);
  session.execution = std::move(execution);
  const int count = cut_command(argc, argv, session.command);
  CLI::App app("Audit-grade external memory for AI agents", "muniment");
  app.formatter(std::make_shared<HelpFormat>());
  app.footer(std::string(program.footer));
  app.set_version_flag("--version", MUNIMENT_VERSION);
  app.require_subcommand(1);
  app.fallthrough();
  declare_common(app, session.options, program.has_capsules);
  add_families(app, session, program, first_word(argc, argv));
  offer_command_tree(app, [&program] { return other_trees(program); });
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
  session.disconnect();
  return flushed_exit_code(session.exit_code);
}

// Reserves the descriptors of standard streams that the caller closed, so that no file opened later gets their
// numbers.
void open_standard_streams() {
  int opened = 0;
  while (opened >= 0 && opened <= STDERR_FILENO) opened = ::open("/dev/null", O_RDONLY);
  if (opened > STDERR_FILENO) ::close(opened);
}

int become(std::string_view name, char** argv) {
  const std::string path = path_beside(name);
  ::execv(path.c_str(), argv);
  fmt::print(stderr, "muniment: {} cannot be started: {}. Install it beside muniment\n", escape_for_terminal(path),
             std::strerror(errno));
  return exit_unavailable;
}

std::string tree_of(std::string_view program) {
  std::string tree;
  std::FILE* const pipe = ::popen((shell_word(path_beside(program)) + " --command-tree").c_str(), "re");
  if (pipe == nullptr) return tree;
  std::array<char, 4096> piece{};
  while (const std::size_t got = std::fread(piece.data(), 1, piece.size(), pipe)) tree.append(piece.data(), got);
  return ::pclose(pipe) == 0 ? tree : std::string();
}

}  // namespace muniment::cli
