// Classifies the program of a command line, after the removal of wrappers.
#include "evidence/completion/text/command_line.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <utility>

#include "evidence/completion/shell_script.hpp"
#include "evidence/completion/text/words.hpp"

namespace muniment::evidence::completion {
namespace {

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

// The syntax of a wrapper before the command that it runs.
struct Wrapper {
  std::string_view program;
  std::string_view subcommand{};  // must follow the name; empty: none
  Options options{};
  int operands = 0;  // number of operands before the command, such as the duration of timeout
};
constexpr std::array wrappers{
    Wrapper{.program = "env",
            .options = {.switches = "-i --ignore-environment", .values = "-u --unset", .folders = "-C --chdir"}},
    Wrapper{.program = "timeout",
            .options = {.switches = "-v --foreground --preserve-status", .values = "-k -s --kill-after --signal"},
            .operands = 1},
    Wrapper{.program = "nice", .options = {.values = "-n --adjustment"}},
    Wrapper{.program = "nohup"},
    Wrapper{.program = "time", .options = {.switches = "-p -v", .values = "-f -o"}},
    Wrapper{.program = "sudo"},
    Wrapper{.program = "stdbuf", .options = {.values = "-i -o -e"}},
    Wrapper{.program = "setsid", .options = {.switches = "-w --wait"}},
    Wrapper{.program = "xvfb-run", .options = {.switches = "-a --auto-servernum", .values = "-s -n"}},
    Wrapper{.program = "exec"},
    Wrapper{.program = "command"},
    Wrapper{.program = "ionice", .options = {.values = "-c -n"}},
    Wrapper{.program = "taskset", .options = {.switches = "-c"}, .operands = 1},
    Wrapper{.program = "unbuffer"},
    Wrapper{.program = "npx", .options = {.switches = "-y -q --yes --no --no-install --quiet"}},
    Wrapper{.program = "uvx", .options = {.switches = "-q --quiet"}},
    Wrapper{.program = "poetry", .subcommand = "run"},
    Wrapper{.program = "pipenv", .subcommand = "run"},
    Wrapper{.program = "uv",
            .subcommand = "run",
            .options = {.switches = "-q --quiet --frozen --locked --no-sync --offline --all-extras --all-groups --dev",
                        .values = "--group --extra"}},
    Wrapper{.program = "pdm", .subcommand = "run"},
    Wrapper{.program = "hatch", .subcommand = "run"},
    Wrapper{.program = "rye", .subcommand = "run"},
    Wrapper{.program = "bundle", .subcommand = "exec"},
    Wrapper{.program = "conda",
            .subcommand = "run",
            .options = {.switches = "--no-capture-output --live-stream", .values = "-n --name"}},
    Wrapper{.program = "mamba", .subcommand = "run", .options = {.values = "-n --name"}},
    Wrapper{.program = "pnpm", .subcommand = "exec"},
    Wrapper{.program = "yarn", .subcommand = "exec"},
    Wrapper{.program = "npm", .subcommand = "exec"},
    Wrapper{.program = "catchsegv"},
    Wrapper{.program = "valgrind", .options = {.values = "--error-exitcode --leak-check"}},
    Wrapper{.program = "ccache"}};

// The options of `coverage run` and of Python before the module or script.
constexpr Options coverage_options{.switches = "-a -p --append --branch --parallel-mode --timid",
                                   .values = "--source --omit --include --context"};
constexpr Options python_options{.switches = "-B -E -I -P -s -u -q -b -v", .values = "-W", .words = "-X"};
constexpr Options shell_options{.switches = "-e -u -x", .words = "-o"};

// Variables that a command line may not set, because they change what runs or how: names and beginnings of names.
constexpr std::string_view tool_variables = "PATH HOME ENV SHELL IFS CDPATH PS4 PROMPT_COMMAND TMPDIR";
constexpr std::array<std::string_view, 45> tool_prefixes{
    "LD_",    "DYLD_",    "BASH",  "PYTEST", "PYTHON",  "NODE_",       "NPM_",  "npm_",  "YARN_",
    "BUN_",   "GO",       "CARGO", "RUST",   "MAVEN",   "MVN",         "JAVA_", "_JAVA", "JDK_",
    "GRADLE", "RUBY",     "GEM_",  "BUNDLE", "PERL",    "HARNESS",     "PROVE", "MAKE",  "GNUMAKE",
    "CTEST",  "CMAKE",    "NINJA", "MESON",  "JEST",    "VITEST",      "MOCHA", "GTEST", "TOX",
    "NOX",    "COVERAGE", "PHP",   "DOTNET", "MSBUILD", "VIRTUAL_ENV", "CONDA", "GIT_",  "XDG_"};
// Those of them that change no test.
constexpr std::string_view harmless_variables =
    "PYTHONUNBUFFERED PYTHONDONTWRITEBYTECODE PYTHONHASHSEED PYTHONIOENCODING PYTHONUTF8 PYTHONWARNINGS PYTHONPATH "
    "PYTHONFAULTHANDLER PYTHONDEVMODE NODE_ENV GOMAXPROCS GOTRACEBACK GORACE GOCACHE RUST_BACKTRACE RUST_LOG "
    "RUST_TEST_THREADS CARGO_TERM_COLOR CARGO_INCREMENTAL CARGO_TARGET_DIR CTEST_OUTPUT_ON_FAILURE "
    "CTEST_PARALLEL_LEVEL GTEST_COLOR";

std::string_view base_name(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

template <typename List>
bool holds(const List& list, std::string_view word) {
  return std::find(std::begin(list), std::end(list), word) != std::end(list);
}

bool is_python(std::string_view name) { return name.starts_with("python") || name.starts_with("pypy") || name == "py"; }

// Notes NAME=value of a command line unless the variable belongs to the program under test.
void note_setting(std::string_view setting, Arguments& read) {
  const std::string_view name = setting.substr(0, setting.find('='));
  const bool of_tools =
      holds_word(tool_variables, name) ||
      std::ranges::any_of(tool_prefixes, [&](std::string_view prefix) { return name.starts_with(prefix); });
  if (of_tools && !holds_word(harmless_variables, name)) read.note_unknown(setting);
}

// Reads options until `end` or the first word that is none, and removes them.
void skip_options(const Options& options, std::string_view end, std::span<const std::string>& words, Arguments& read) {
  while (!words.empty() && words[0].size() > 1 && words[0][0] == '-' && words[0] != end && words[0] != "--") {
    const Option option = read_option(options, words);
    if (option.effect == Option::Effect::folder) read.enter(option.value);
    if (option.effect == Option::Effect::unknown) read.note_unknown(words[0]);
    words = words.subspan(option.words);
  }
  if (!words.empty() && words[0] == "--") words = words.subspan(1);
}

// Removes a wrapper and its arguments. Returns false if the words do not begin with one.
bool unwrap(std::span<const std::string>& words, CommandKind& kind) {
  const std::string_view name = base_name(words[0]);
  for (const Wrapper& wrapper : wrappers) {
    if (name != wrapper.program) continue;
    const bool sub = !wrapper.subcommand.empty();
    if (sub && (words.size() < 2 || words[1] != wrapper.subcommand)) continue;
    if (name != "exec" && name != "command") kind.programs.push_back(words[0]);  // of the shell
    if (name == "sudo") kind.read.note_unknown(name);  // it looks for programs in other folders
    words = words.subspan(sub ? 2 : 1);
    skip_options(wrapper.options, "", words, kind.read);
    for (int operands = wrapper.operands; operands > 0 && !words.empty(); --operands) words = words.subspan(1);
    while (!words.empty() && is_assignment(words[0])) {
      note_setting(words[0], kind.read);
      words = words.subspan(1);
    }
    return true;
  }
  return false;
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
  const ShellScript read = read_script(script);
  const std::vector<ScriptCommand>& commands = read.commands;
  kind.read.note_unknown(read.expanded);
  kind.direct = kind.direct && is_one_command(read);
  if (kind.direct) read_preparation(std::span(commands).first(commands.size() - 1), kind);
  CommandKind outer = kind;
  outer.mentions_runner = false;
  bool first = true, mentions = false;
  for (std::size_t i = 0; i < commands.size(); ++i) {
    const ScriptCommand& simple = commands[i];
    CommandKind one = outer;
    read_words(simple.words, runners, depth, one);
    mentions = mentions || one.mentions_runner;
    // After || a command runs only if the previous one failed, so that it is unknown which branch ran.
    if (one.program == Program::runner &&
        (simple.before == "||" || begins_with(simple, "if then else while for case do { !")))
      one.program = Program::unknown;
    const bool last = i + 1 == commands.size();
    one.masked = one.masked || (!last && simple.after != "&&") || (last && simple.after == "&");
    for (std::size_t k = i + 1; k < commands.size(); ++k) {
      if (commands[k].before != "&&") one.masked = true;
    }
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
  kind.programs.push_back(kind.name.find('/') == std::string::npos ? "./" + kind.name : kind.name);
  const Runner* const row = runner_of(base_name(kind.name));
  if (row == nullptr) return Program::unknown;
  const bool runs = row->subcommands.empty() || (words.size() > 1 && is_subcommand(*row, words[1]));
  return runs ? Program::runner : Program::unknown;
}

// Sets the kind's name, and removes the words before the arguments of the program.
Program program_of(std::span<const std::string>& words, CommandKind& kind) {
  const std::string_view base = base_name(words[0]);
  kind.name = words[0];
  kind.programs.push_back(words[0]);
  if (holds(printers, base)) return Program::printer;
  if (holds(readers, base)) return Program::reader;
  if (is_python(base)) return program_of_python(words, kind);
  if (base == "coverage") return program_of_module(words, kind);
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
      kind.programs.push_back(words[0]);
      return read_commands(*script, runners, depth + 1, kind);
    }
    if (!unwrap(words, kind)) break;
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
