// Classifies the program of a command line, after the removal of wrappers.
#include "evidence/completion/text/command_line.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <utility>

#include "evidence/completion/text/words.hpp"
#include "evidence/shell/script.hpp"

namespace muniment::evidence::completion {
namespace {

using shell::base_name;
using shell::holds_word;
using shell::is_activation;
using shell::is_assignment;
using shell::is_python;
using shell::note_setting;
using shell::Option;
using shell::Options;
using shell::read_option;
using shell::ScriptCommand;
using shell::skip_options;

constexpr std::array<std::string_view, 11> printers{"echo", "printf", "true",   "false",  ":",   "yes",
                                                    "seq",  "sleep",  "banner", "figlet", "exit"};
constexpr std::array<std::string_view, 38> readers{
    "cat",   "head",    "tail", "tee",  "grep", "rg",  "sed",     "awk",   "ls",   "find", "less", "more",   "man",
    "which", "whereis", "type", "pip",  "pip3", "apt", "apt-get", "touch", "cp",   "mv",   "git",  "wc",     "sort",
    "tac",   "nl",      "curl", "wget", "bat",  "jq",  "zcat",    "stat",  "tree", "date", "ps",   "xmllint"};
constexpr std::array<std::string_view, 7> shells{"sh", "bash", "zsh", "dash", "ksh", "ash", "busybox"};
constexpr std::array<std::string_view, 7> interpreters{"perl", "ruby", "node", "php", "deno", "bun", "Rscript"};
constexpr std::array<std::string_view, 18> listing_flags{
    "--version",   "--help",       "-h",           "--collect-only", "--co",        "--list",
    "--show-only", "--no-run",     "--listTests",  "--fixtures",     "--markers",   "--gtest_list_tests",
    "--dry-run",   "--list-tests", "--setup-plan", "--setup-only",   "-DskipTests", "-Dmaven.test.skip"};

// The options of `coverage run` and of Python before the module or script.
constexpr Options coverage_options{.switches = "-a -p --append --branch --parallel-mode --timid",
                                   .values = "--source --omit --include --context"};
constexpr Options python_options{.switches = "-B -E -I -P -s -u -q -b -v", .values = "-W", .words = "-X"};
constexpr Options shell_options{.switches = "-e -u -x", .words = "-o"};

template <typename List>
bool holds(const List& list, std::string_view word) {
  return std::find(std::begin(list), std::end(list), word) != std::end(list);
}

void read_words(std::span<const std::string> words, std::span<const std::string> runners, int depth, CommandKind& kind);

// Reads the commands of a script that is one command, except for the last.
void read_preparation(std::span<const ScriptCommand> commands, CommandKind& kind) {
  for (const ScriptCommand& command : commands) {
    const std::vector<std::string>& words = command.words;
    if (words[0] == "cd" && words.size() == 2 && words[1][0] != '-') {
      kind.read.enter(words[1]);
    } else if (words[0] == "cd") {
      kind.read.note_unknown("cd");
    } else if (words.size() == 2 && is_activation(words[1])) {
      kind.environment = (std::filesystem::path(kind.read.folder) / words[1]).parent_path().string();
    } else if (words[0] == "set") {
      std::span<const std::string> options = std::span(words).subspan(1);
      skip_options(shell_options, "", options, kind.read);
      if (!options.empty()) kind.read.note_unknown(options[0]);
    } else {
      for (const std::string& word : words) {
        if (is_assignment(word)) note_setting(word, kind.read);
      }
    }
  }
}

// Returns whether the first word of the command is one of the list.
bool begins_with(const ScriptCommand& command, std::string_view list) { return holds_word(list, command.words[0]); }

// Reads the script into the kind of its most significant command: a runner precedes an unknown program, which precedes
// a printer.
void read_commands(std::string_view script, std::span<const std::string> runners, int depth, CommandKind& kind) {
  if (script.size() > script_bytes_max) return;
  const shell::ShellScript read = shell::read_script(script);
  const std::vector<ScriptCommand>& commands = read.commands;
  kind.read.note_unknown(read.expanded);
  kind.direct = kind.direct && shell::is_one_command(read);
  if (kind.direct) read_preparation(std::span(commands).first(commands.size() - 1), kind);
  CommandKind outer = kind;
  outer.mentions_runner = false;
  bool first = true, mentions = false;
  for (std::size_t i = 0; i < commands.size(); ++i) {
    const ScriptCommand& simple = commands[i];
    if (simple.words.empty()) continue;  // only a redirection
    CommandKind one = outer;
    read_words(simple.words, runners, depth, one);
    mentions = mentions || one.mentions_runner;
    // After || a command runs only if the previous one failed, so that it is unknown which branch ran.
    if (one.program == Program::runner &&
        (simple.before == "||" || begins_with(simple, "if then else while for case do { !")))
      one.program = Program::unknown;
    one.masked = one.masked || !shell::status_speaks(commands, i);
    const bool helper = std::ranges::all_of(simple.words, is_assignment) ||
                        begins_with(simple, "cd set export source . mkdir rm pushd");
    if (helper) continue;
    if (first || one.program < kind.program) kind = one;
    first = false;
  }
  kind.mentions_runner = mentions;
}

// Returns the number of words by which the policy names the program as one that runs tests; 0: it does not.
std::size_t configured_words(std::span<const std::string> words, std::span<const std::string> runners) {
  for (const std::string& runner : runners) {
    if (runner.find(' ') == std::string::npos) {
      const std::string_view program = base_name(words[0]);
      if (words[0] == runner || program == base_name(runner) || (words[0] == "./" + runner)) return 1;
      const bool interpreter = holds(shells, program) || is_python(program) || holds(interpreters, program);
      if (interpreter && words.size() > 1 && (words[1] == runner || words[1] == "./" + runner)) return 2;
      continue;
    }
    std::string line;
    for (std::size_t i = 0; i < words.size() && line.size() <= runner.size(); ++i) {
      line += line.empty() ? words[i] : " " + words[i];
      if (line == runner) return i + 1;
    }
  }
  return 0;
}

// Returns whether a program or module of this name only runs tests.
bool runs_alone(std::string_view name) {
  const Runner* const row = runner_of(name);
  return row != nullptr && row->subcommands.empty();
}

std::string script_path(const std::string& name) { return name.find('/') == std::string::npos ? "./" + name : name; }

// Classifies the module that follows -m. Removes the words before its arguments.
Program program_of_module(std::span<const std::string>& words, CommandKind& kind) {
  if (words.empty()) return Program::unknown;
  kind.is_module = true;
  kind.name = words[0];
  if (kind.name == "coverage" && words.size() > 1 && words[1] == "run") {
    std::span<const std::string> rest = words.subspan(2);
    skip_options(coverage_options, "-m", rest, kind.read);
    if (rest.size() < 2 || rest[0] != "-m" || !runs_alone(rest[1])) return Program::unknown;
    words = rest.subspan(1);
    kind.name = words[0];
  }
  if (runs_alone(kind.name)) return Program::runner;
  return kind.name == "pip" || kind.name == "json.tool" ? Program::reader : Program::unknown;
}

// Classifies the module or the script that Python runs. Removes the words before its arguments.
Program program_of_python(std::span<const std::string>& words, CommandKind& kind) {
  words = words.subspan(1);
  while (!words.empty() && words[0].starts_with('-')) {
    if (words[0] == "-c") {
      const bool runs = words.size() > 1 && (words[1].find("pytest.main") != std::string::npos ||
                                             words[1].find("unittest.main") != std::string::npos);
      return runs ? Program::unknown : Program::printer;
    }
    if (words[0] == "-m") {
      words = words.subspan(1);
      return program_of_module(words, kind);
    }
    const Option option = read_option(python_options, words);
    if (option.effect == Option::Effect::unknown) kind.read.note_unknown(words[0]);
    words = words.subspan(option.words);
  }
  if (words.empty()) return Program::unknown;
  kind.name = words[0];
  kind.read.programs.push_back(script_path(kind.name));
  const Runner* const row = runner_of(base_name(kind.name));
  if (row == nullptr) return Program::unknown;
  const bool runs = row->subcommands.empty() || (words.size() > 1 && is_subcommand(*row, words[1]));
  return runs ? Program::runner : Program::unknown;
}

// Sets the kind's name, and removes the words before the arguments of the program.
Program program_of(std::span<const std::string>& words, CommandKind& kind) {
  const std::string_view base = base_name(words[0]);
  kind.name = words[0];
  kind.read.programs.push_back(words[0]);
  if (holds(printers, base)) return Program::printer;
  if (holds(readers, base)) return Program::reader;
  if (is_python(base)) return program_of_python(words, kind);
  if (base == "coverage") return program_of_module(words, kind);
  const bool interprets = holds(shells, base) || holds(interpreters, base);
  if (interprets && words.size() > 1 && words[1][0] != '-' && words[1].find_first_of("./") != std::string::npos)
    kind.read.programs.push_back(script_path(words[1]));
  if (runs_alone(base)) return Program::runner;
  const bool inline_code = (base == "perl" || base == "ruby" || base == "node") && words.size() > 2 && words[1] == "-e";
  if (inline_code) return Program::printer;
  const Runner* const row = runner_of(base);
  for (std::size_t i = 1; row != nullptr && i < words.size();) {
    const std::string_view word = words[i];
    if (is_subcommand(*row, word)) return Program::runner;
    const bool option = word.size() > 1 && word[0] == '-';
    i += option ? read_option(row->options, words.subspan(i)).words : 1;
    // The first operand of these is their subcommand.
    const bool operand = !option && !word.empty() && word[0] != '+' && word != "run" && word != "run-script";
    if (operand && holds_word("node npm go cargo", base)) break;
  }
  return Program::unknown;
}

bool only_lists(std::string_view program, std::span<const std::string> arguments) {
  return std::ranges::any_of(arguments, [&](const std::string& word) {
    const bool dry = program == "ctest" ? word == "-N" : program == "make" && word == "-n";
    return dry || holds(listing_flags, std::string_view(word).substr(0, word.find('=')));
  });
}

// Reads the command after its wrappers. `named`: number of words by which the policy names it.
void read_program(std::span<const std::string> words, std::size_t named, CommandKind& kind) {
  if (named > 0) {
    kind.name = words[0];
    kind.program = Program::runner;
    words = words.subspan(named - 1);
  } else {
    kind.program = program_of(words, kind);
  }
  const std::span<const std::string> arguments = words.subspan(std::min<std::size_t>(1, words.size()));
  // A program of GoogleTest has an arbitrary name and the library's options.
  const bool gtest = std::ranges::any_of(arguments, [](const std::string& word) {
    return word.starts_with("--gtest_output=") || word.starts_with("--gtest_filter=");
  });
  if (kind.program == Program::unknown && gtest) kind.program = Program::runner;
  if (kind.program != Program::runner) return;
  kind.runner = runner_of(base_name(kind.name));
  if (kind.runner == nullptr && gtest) kind.runner = &googletest();
  kind.arguments.assign(arguments.begin(), arguments.end());
  if (kind.runner != nullptr) read_arguments(*kind.runner, arguments, kind.read);
  if (only_lists(base_name(kind.name), arguments)) kind.program = Program::lister;
}

// Returns the script of `sh -c`, and reads the shell's options; nullopt: the words run no such script.
std::optional<std::string_view> script_of(std::span<const std::string> words, CommandKind& kind) {
  if (!holds(shells, base_name(words[0]))) return std::nullopt;
  for (words = words.subspan(1); words.size() > 1 && (words[0].starts_with('-') || words[0].starts_with('+'));) {
    std::vector<std::string> option(words.begin(), words.begin() + 2);
    const bool runs = option[0][0] == '-' && option[0].back() == 'c' && !option[0].starts_with("--");
    if (runs) option[0].pop_back();
    Option read{Option::Effect::none, "", "", 1};
    if (option[0] != "-") read = read_option(shell_options, option);
    if (read.effect == Option::Effect::unknown) kind.read.note_unknown(words[0]);
    if (runs) return words[1];
    words = words.subspan(read.words);
  }
  return std::nullopt;
}

void read_words(std::span<const std::string> words, std::span<const std::string> runners, int depth,
                CommandKind& kind) {
  for (const std::string& word : words) {
    each_word(std::string_view(word).substr(0, script_bytes_max), [&](std::string_view part) {
      if ((classes_of(part) & runner_name) != 0) kind.mentions_runner = true;
    });
  }
  for (; !words.empty() && is_assignment(words[0]); words = words.subspan(1)) note_setting(words[0], kind.read);
  std::size_t named = 0;
  for (; depth < wrappers_max && !words.empty(); ++depth) {
    named = configured_words(words, runners);
    if (named > 0) break;
    if (const auto script = script_of(words, kind)) {
      kind.read.programs.push_back(words[0]);
      return read_commands(*script, runners, depth + 1, kind);
    }
    if (!unwrap(words, kind.read)) break;
  }
  if (!words.empty() && depth < wrappers_max) read_program(words, named, kind);
}

}  // namespace

CommandKind kind_of(std::span<const std::string> argv, std::span<const std::string> runners) {
  CommandKind kind;
  if (!argv.empty()) read_words(argv, runners, 0, kind);
  return kind;
}

CommandKind kind_of_line(std::string_view line, std::span<const std::string> runners) {
  CommandKind kind;
  read_commands(line, runners, 0, kind);
  return kind;
}

}  // namespace muniment::evidence::completion
