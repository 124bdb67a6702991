// Classifies the program of a command line, after the removal of wrappers.
#include "evidence/completion/text/command_line.hpp"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <optional>
#include <utility>

#include "evidence/completion/shell_script.hpp"
#include "evidence/completion/text/words.hpp"

namespace muniment::evidence::completion {
namespace {

// Programs that are runners by their name.
constexpr std::array<std::string_view, 36> runner_programs{
    "pytest",    "py.test", "nosetests",     "nose2", "tox",     "nox",    "ctest",    "jest",        "mocha",
    "vitest",    "ava",     "tap",           "tape",  "jasmine", "karma",  "cypress",  "rspec",       "phpunit",
    "gotestsum", "ginkgo",  "cargo-nextest", "bats",  "prove",   "behat",  "cucumber", "runtests.py", "trial",
    "busted",    "pest",    "testem",        "robot", "behave",  "stestr", "ptw",      "playwright",  "shunit2"};

// A program that runs tests if it has one of these arguments.
struct RunnerCommand {
  std::string_view program;
  std::string_view arguments;  // alternatives, separated by spaces
};
constexpr std::array runner_commands{RunnerCommand{"cargo", "test nextest t"},
                                     RunnerCommand{"go", "test"},
                                     RunnerCommand{"npm", "test t tst"},
                                     RunnerCommand{"yarn", "test"},
                                     RunnerCommand{"pnpm", "test t"},
                                     RunnerCommand{"bun", "test"},
                                     RunnerCommand{"deno", "test"},
                                     RunnerCommand{"node", "--test"},
                                     RunnerCommand{"make", "test check tests"},
                                     RunnerCommand{"ninja", "test check"},
                                     RunnerCommand{"meson", "test"},
                                     RunnerCommand{"mvn", "test verify install"},
                                     RunnerCommand{"gradle", "test check build"},
                                     RunnerCommand{"gradlew", "test check build"},
                                     RunnerCommand{"dotnet", "test"},
                                     RunnerCommand{"mix", "test"},
                                     RunnerCommand{"swift", "test"},
                                     RunnerCommand{"bazel", "test"},
                                     RunnerCommand{"zig", "test"},
                                     RunnerCommand{"stack", "test"},
                                     RunnerCommand{"cabal", "test"},
                                     RunnerCommand{"sbt", "test"},
                                     RunnerCommand{"rake", "test spec"},
                                     RunnerCommand{"rails", "test"},
                                     RunnerCommand{"manage.py", "test"},
                                     RunnerCommand{"setup.py", "test"},
                                     RunnerCommand{"flutter", "test"},
                                     RunnerCommand{"just", "test"},
                                     RunnerCommand{"task", "test"},
                                     RunnerCommand{"mvnw", "test verify install"},
                                     RunnerCommand{"lein", "test"},
                                     RunnerCommand{"composer", "test"}};

constexpr std::array<std::string_view, 8> runner_modules{"pytest", "unittest", "nose",  "nose2",
                                                         "tox",    "nox",      "trial", "doctest"};
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
  std::string_view subcommand;        // subcommand that must follow the name; empty: none
  std::string_view flags_with_value;  // flags, separated by spaces
  int operands = 0;                   // number of operands before the command, such as the duration of timeout
};
constexpr std::array wrappers{Wrapper{"env", "", "-u -C --unset --chdir", 0},
                              Wrapper{"timeout", "", "-k -s --kill-after --signal", 1},
                              Wrapper{"nice", "", "-n --adjustment", 0},
                              Wrapper{"nohup", "", "", 0},
                              Wrapper{"time", "", "-f -o", 0},
                              Wrapper{"sudo", "", "-u -g", 0},
                              Wrapper{"stdbuf", "", "-i -o -e", 0},
                              Wrapper{"setsid", "", "", 0},
                              Wrapper{"xvfb-run", "", "-s -n", 0},
                              Wrapper{"exec", "", "-a", 0},
                              Wrapper{"command", "", "", 0},
                              Wrapper{"ionice", "", "-c -n", 0},
                              Wrapper{"taskset", "", "", 1},
                              Wrapper{"unbuffer", "", "", 0},
                              Wrapper{"npx", "", "-p --package", 0},
                              Wrapper{"uvx", "", "--with --from", 0},
                              Wrapper{"poetry", "run", "", 0},
                              Wrapper{"pipenv", "run", "", 0},
                              Wrapper{"uv", "run", "--with --python -p --group --extra", 0},
                              Wrapper{"pdm", "run", "", 0},
                              Wrapper{"hatch", "run", "", 0},
                              Wrapper{"rye", "run", "", 0},
                              Wrapper{"bundle", "exec", "", 0},
                              Wrapper{"conda", "run", "-n -p --name --prefix", 0},
                              Wrapper{"mamba", "run", "-n -p --name --prefix", 0},
                              Wrapper{"pnpm", "exec", "", 0},
                              Wrapper{"yarn", "exec", "", 0},
                              Wrapper{"npm", "exec", "", 0},
                              Wrapper{"coverage", "run", "--source --omit --include --rcfile", 0},
                              Wrapper{"catchsegv", "", "", 0},
                              Wrapper{"valgrind", "", "", 0},
                              Wrapper{"ccache", "", "", 0}};

std::string_view base_name(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

template <typename List>
bool holds(const List& list, std::string_view word) {
  return std::find(std::begin(list), std::end(list), word) != std::end(list);
}

bool holds_word(std::string_view list, std::string_view word) {
  if (word.empty()) return false;
  for (std::size_t at = list.find(word); at != std::string_view::npos; at = list.find(word, at + 1)) {
    const bool begins = at == 0 || list[at - 1] == ' ';
    const bool ends = at + word.size() == list.size() || list[at + word.size()] == ' ';
    if (begins && ends) return true;
  }
  return false;
}

bool is_python(std::string_view name) { return name.starts_with("python") || name.starts_with("pypy") || name == "py"; }

// Returns whether the option passes a command line to the wrapper: `env -S LINE`, `npx -c LINE`.
bool brings_a_command(std::string_view wrapper, std::string_view option) {
  if (wrapper == "env") {
    return option.starts_with("--s") || (!option.starts_with("--") && option.find('S') != std::string_view::npos);
  }
  if (wrapper == "npx" || wrapper == "npm") return option.starts_with("-c") || option.starts_with("--c");
  if (wrapper == "sudo") return option == "-s" || option == "-i" || option == "--shell" || option == "--login";
  return false;
}

// The command that a wrapper runs; nullopt: the words do not begin with a wrapper. Clears `direct` if the wrapper may
// run another command.
std::optional<std::span<const std::string>> unwrapped(std::span<const std::string> words, bool& direct) {
  const std::string_view name = base_name(words[0]);
  for (const Wrapper& wrapper : wrappers) {
    if (name != wrapper.program) continue;
    std::size_t at = 1;
    if (!wrapper.subcommand.empty()) {
      if (words.size() < 2 || words[1] != wrapper.subcommand) continue;
      at = 2;
    }
    int operands = wrapper.operands;
    while (at < words.size()) {
      const std::string& word = words[at];
      if (word == "--") {
        ++at;
        break;
      }
      if (word.size() > 1 && word[0] == '-') {
        if (name == "coverage" && word == "-m") break;
        if (brings_a_command(name, word)) direct = false;
        at += holds_word(wrapper.flags_with_value, word) ? 2U : 1U;
      } else if (is_assignment(word)) {
        ++at;
      } else if (operands > 0) {
        --operands;
        ++at;
      } else {
        break;
      }
    }
    return words.subspan(std::min(at, words.size()));
  }
  return std::nullopt;
}

CommandKind kind_of_words(std::span<const std::string> words, std::span<const std::string> runners, int depth);

// The kind of the most significant command: a runner precedes an unknown program, which precedes a printer.
CommandKind kind_of_script(std::string_view script, std::span<const std::string> runners, int depth) {
  CommandKind kind;
  if (script.size() > script_bytes_max) return kind;
  const ShellScript read = read_script(script);
  const std::vector<ScriptCommand>& commands = read.commands;
  bool first = true, mentions = false;
  for (std::size_t i = 0; i < commands.size(); ++i) {
    const ScriptCommand& simple = commands[i];
    CommandKind one = kind_of_words(simple.words, runners, depth);
    mentions = mentions || one.mentions_runner;
    const bool control =
        holds(std::initializer_list<std::string_view>{"if", "then", "else", "while", "for", "case", "do", "{", "!"},
              std::string_view(simple.words[0]));
    // After || a command runs only if the previous one failed, so that it is unknown which branch ran.
    if (one.program == Program::runner && (simple.before == "||" || control)) one.program = Program::unknown;
    const bool last = i + 1 == commands.size();
    one.masked = one.masked || (!last && simple.after != "&&") || (last && simple.after == "&");
    for (std::size_t k = i + 1; k < commands.size(); ++k) {
      if (commands[k].before != "&&") one.masked = true;
    }
    const bool helper =
        std::all_of(simple.words.begin(), simple.words.end(), is_assignment) ||
        holds(std::initializer_list<std::string_view>{"cd", "set", "export", "source", ".", "mkdir", "rm", "pushd"},
              std::string_view(simple.words[0]));
    if (helper) continue;
    if (first || one.program < kind.program) kind = one;
    first = false;
  }
  kind.direct = kind.direct && is_one_command(read);
  kind.mentions_runner = mentions;
  return kind;
}

bool is_configured(std::span<const std::string> words, std::span<const std::string> runners) {
  for (const std::string& runner : runners) {
    if (runner.find(' ') == std::string::npos) {
      if (words[0] == runner || base_name(words[0]) == base_name(runner) || (words[0] == "./" + runner)) return true;
      const std::string_view program = base_name(words[0]);
      const bool interpreter = holds(shells, program) || is_python(program) || holds(interpreters, program);
      if (interpreter && words.size() > 1 && (words[1] == runner || words[1] == "./" + runner)) return true;
      continue;
    }
    std::string line;
    for (const std::string& word : words) {
      line += line.empty() ? word : " " + word;
      if (line == runner) return true;
      if (line.size() > runner.size()) break;
    }
  }
  return false;
}

// Sets `name` to the module or the script, and removes the words before its arguments.
Program program_of_python(std::span<const std::string>& words, std::string& name) {
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "-c") {
      const bool runs = i + 1 < words.size() && (words[i + 1].find("pytest.main") != std::string::npos ||
                                                 words[i + 1].find("unittest.main") != std::string::npos);
      return runs ? Program::unknown : Program::printer;
    }
    if (word == "-m" && i + 1 < words.size()) {
      name = words[i + 1];
      const std::span<const std::string> rest = words.subspan(i + 1);
      if (name == "coverage" && i + 3 < words.size() && words[i + 2] == "run") {
        std::vector<std::string> inner{"python"};
        inner.insert(inner.end(), words.begin() + static_cast<std::ptrdiff_t>(i) + 3, words.end());
        words = rest;
        return inner[1] == "-m" && inner.size() > 2 && holds(runner_modules, inner[2]) ? Program::runner
                                                                                       : Program::unknown;
      }
      words = rest;
      return holds(runner_modules, name)            ? Program::runner
             : name == "pip" || name == "json.tool" ? Program::reader
                                                    : Program::unknown;
    }
    if (word == "-W" || word == "-X") {
      ++i;
      continue;
    }
    if (!word.empty() && word[0] == '-') continue;
    name = word;
    const std::string_view script = base_name(name);
    words = words.subspan(i);
    if (holds(runner_programs, script)) return Program::runner;
    for (const RunnerCommand& row : runner_commands) {
      if (row.program == script && words.size() > 1 && holds_word(row.arguments, words[1])) return Program::runner;
    }
    return Program::unknown;
  }
  return Program::unknown;
}

Program program_of(std::span<const std::string>& words, std::span<const std::string> runners, std::string& name) {
  const std::string_view base = base_name(words[0]);
  name = words[0];
  if (is_configured(words, runners)) return Program::runner;
  if (holds(printers, base)) return Program::printer;
  if (holds(readers, base)) return Program::reader;
  if (is_python(base)) return program_of_python(words, name);
  if (holds(runner_programs, base)) return Program::runner;
  const bool inline_code = (base == "perl" || base == "ruby" || base == "node") && words.size() > 2 && words[1] == "-e";
  if (inline_code) return Program::printer;
  for (const RunnerCommand& row : runner_commands) {
    if (row.program != base) continue;
    for (std::size_t i = 1; i < words.size(); ++i) {
      std::string_view word = words[i];
      if (word.empty() || word == "run" || word == "run-script") continue;
      if (word.size() > 5 && word.starts_with("test:")) word = "test";
      if (holds_word(row.arguments, word)) return Program::runner;
      if (base == "node" || base == "npm" || base == "go" || base == "cargo") {
        if (word[0] != '-' && word[0] != '+') break;
      }
    }
  }
  return Program::unknown;
}

CommandKind kind_of_words(std::span<const std::string> words, std::span<const std::string> runners, int depth) {
  CommandKind kind;
  for (const std::string& word : words) {
    each_word(std::string_view(word).substr(0, script_bytes_max), [&](std::string_view part) {
      if ((classes_of(part) & runner_name) != 0) kind.mentions_runner = true;
    });
  }
  while (!words.empty() && is_assignment(words[0])) words = words.subspan(1);
  for (; depth < wrappers_max && !words.empty(); ++depth) {
    if (is_configured(words, runners)) break;
    if (holds(shells, base_name(words[0]))) {
      for (std::size_t i = 1; i < words.size() && words[i].size() > 1 && (words[i][0] == '-' || words[i][0] == '+');
           ++i) {
        if (words[i][0] == '-' && words[i].back() == 'c' && words[i][1] != '-' && i + 1 < words.size()) {
          CommandKind script = kind_of_script(words[i + 1], runners, depth + 1);
          script.direct = script.direct && kind.direct;
          return script;
        }
      }
      break;
    }
    const auto inner = unwrapped(words, kind.direct);
    if (!inner) break;
    words = *inner;
    if (!words.empty() && words[0] == "-m" && words.size() > 1) {  // coverage run -m pytest
      words = words.subspan(1);
    }
  }
  if (words.empty() || depth == wrappers_max) return kind;
  std::span<const std::string> program = words;
  kind.program = program_of(program, runners, kind.name);
  if (kind.program == Program::runner) kind.arguments.assign(program.begin() + 1, program.end());
  // A GoogleTest program has an arbitrary name and the library's options.
  const bool gtest = std::any_of(words.begin() + 1, words.end(), [](const std::string& word) {
    return word.starts_with("--gtest_output=") || word.starts_with("--gtest_filter=");
  });
  if (kind.program == Program::unknown && gtest) kind.program = Program::runner;
  if (kind.program == Program::runner) {
    for (const std::string& word : words.subspan(1)) {
      const std::string_view flag = std::string_view(word).substr(0, word.find('='));
      const bool dry = base_name(words[0]) == "ctest" ? word == "-N" : base_name(words[0]) == "make" && word == "-n";
      if (holds(listing_flags, flag) || dry) kind.program = Program::lister;
    }
  }
  return kind;
}

// The options by which a runner runs a part of the tests, or reads another configuration.
struct Selector {
  std::string_view programs;  // base names, separated by spaces
  std::string_view options;
  enum class Operands : std::uint8_t { any, nested, none };
  Operands operands;  // operands that select: every one; a path below a folder, a file or a node id; none
};
using Operands = Selector::Operands;
constexpr std::array selectors{
    Selector{"pytest py.test ptw",
             "-k -m -p -c -o --deselect --ignore --ignore-glob --lf --last-failed --sw --stepwise --noconftest "
             "--override-ini --rootdir --confcutdir --config-file",
             Operands::nested},
    Selector{"unittest", "-k -p --pattern", Operands::any},
    Selector{"nose2 nosetests trial", "-A -a -e -m -c --config", Operands::any},
    Selector{"go gotestsum ginkgo", "-run -skip -short -exec -overlay --focus --skip --run", Operands::nested},
    Selector{"ctest",
             "-R -E -L -LE -I --tests-regex --exclude-regex --label-regex --label-exclude --tests-information "
             "--rerun-failed",
             Operands::none},
    Selector{"cargo cargo-nextest",
             "--skip --test --lib --bin --bins --example --examples -p --package --exclude -E --filter-expr "
             "--filterset --partition",
             Operands::any},
    Selector{
        "jest vitest mocha ava jasmine karma tap tape npm yarn pnpm bun",
        "-t -g -f -i -o --testNamePattern --testPathPattern --testPathPatterns --testPathIgnorePatterns --onlyChanged "
        "--onlyFailures --findRelatedTests --grep --fgrep --invert --exclude --changed --shard --config -c",
        Operands::any},
    Selector{"node", "--test-name-pattern --test-skip-pattern --test-only --test-shard", Operands::none},
    Selector{"mvn mvnw", "-Dtest -Dit.test -Dgroups -DexcludedGroups -pl --projects -Dsurefire.excludes",
             Operands::none},
    Selector{"gradle gradlew", "--tests -x --exclude-task", Operands::none},
    Selector{"dotnet", "--filter", Operands::none},
    Selector{"rspec", "-e -t -P --example --tag --only-failures --pattern --exclude-pattern", Operands::nested},
    Selector{"phpunit pest", "-c --filter --group --exclude-group --testsuite --configuration", Operands::nested},
    Selector{"mix", "--only --exclude --stale --failed --partitions", Operands::any},
    Selector{"swift", "--filter --skip", Operands::none},
    Selector{"tox nox", "-e -s -k", Operands::none},
    Selector{"meson", "--suite --no-suite", Operands::any},
    Selector{"bazel", "--test_filter --test_tag_filters", Operands::none},
    Selector{"behave robot cucumber behat", "-n -t -i -e --tags --name --test --suite --include --exclude",
             Operands::nested}};

// Values of options that leave every test in: `-p no:cacheprovider`.
constexpr std::array<std::string_view, 3> harmless_values{"no:cacheprovider", "no:warnings", "no:randomly"};

// Options that leave tests out, or change which tests there are, rather than name those that run.
constexpr std::string_view excluding_options =
    "--deselect --ignore --ignore-glob -E -LE --exclude-regex --label-exclude --exclude --skip -skip --invert -x "
    "--exclude-task --exclude-group -DexcludedGroups --test-skip-pattern --exclude-pattern -Dsurefire.excludes -c -o "
    "--override-ini --rootdir --confcutdir --config --config-file --configuration -exec -overlay --noconftest";

// The name in a selecting argument: the value, for a node id its last part.
std::string named_by(std::string_view option, std::string_view value, std::string_view program) {
  if (holds_word(excluding_options, option) || (option == "-p" && program.starts_with("pytest"))) return {};
  if (value.empty()) return std::string(option.substr(std::min(option.find_first_not_of('-'), option.size())));
  if (value.starts_with("not ") || value[0] == '!' || value[0] == '-' || value.find(" not ") != std::string_view::npos)
    return {};
  const std::size_t node = value.rfind("::");
  return std::string(node == std::string_view::npos ? value : value.substr(node + 2));
}

bool is_selecting_option(const Selector& row, std::string_view word) {
  const std::string_view flag = word.substr(0, word.find('='));
  if (holds_word(row.options, flag)) return true;
  // The value may follow a short option without a blank: `-kname`.
  return word.size() > 2 && word[0] == '-' && word[1] != '-' && row.programs.starts_with("pytest") &&
         holds_word(row.options, word.substr(0, 2));
}

// A folder in the top folder, such as `tests` or `./...`, is where the tests of a project are.
bool is_nested(std::string_view operand) {
  if (operand.starts_with("./")) operand.remove_prefix(2);
  while (operand.ends_with('/')) operand.remove_suffix(1);
  if (operand.find("...") != std::string_view::npos) return operand != "...";
  return operand.find('/') != std::string_view::npos || operand.find("::") != std::string_view::npos ||
         operand.find('.', 1) != std::string_view::npos;
}

}  // namespace

Selection selection_of(const CommandKind& kind) {
  if (kind.program != Program::runner) return {};
  const std::string_view name = base_name(kind.name);
  const auto* const row = std::find_if(selectors.begin(), selectors.end(),
                                       [&](const Selector& one) { return holds_word(one.programs, name); });
  bool after_subcommand = !holds_word("cargo mix meson npm yarn pnpm bun go", name);
  for (std::size_t i = 0; i < kind.arguments.size(); ++i) {
    const std::string& word = kind.arguments[i];
    if (word.starts_with("--gtest_filter=")) return {word, named_by("", word.substr(15), "")};
    if (row == selectors.end() || word == "--") continue;
    if (word.size() > 1 && (word[0] == '-' || word[0] == '+')) {
      if (!is_selecting_option(*row, word)) continue;
      const bool apart = word.find('=') == std::string::npos && i + 1 < kind.arguments.size();
      if (apart && holds(harmless_values, std::string_view(kind.arguments[i + 1]))) {
        ++i;
        continue;
      }
      const std::size_t equals = word.find('=');
      const bool attached =
          equals == std::string::npos && word.size() > 2 && word[1] != '-' && !holds_word(row->options, word);
      const std::string option = word.substr(0, attached ? 2 : equals);
      const std::string value = attached                      ? word.substr(2)
                                : equals != std::string::npos ? word.substr(equals + 1)
                                : apart                       ? kind.arguments[i + 1]
                                                              : std::string();
      return {apart && !attached ? word + " " + value : word, named_by(option, value, row->programs)};
    }
    if (!after_subcommand && (word == "test" || word == "t" || word == "tst" || word == "nextest" || word == "run")) {
      after_subcommand = word != "nextest";
      continue;
    }
    if (!after_subcommand || (name == "unittest" && word == "discover")) continue;
    // An operand after an option may be its value.
    const bool maybe_value = i > 0 && kind.arguments[i - 1].starts_with('-') && kind.arguments[i - 1] != "--" &&
                             kind.arguments[i - 1].find('=') == std::string::npos;
    if (maybe_value) continue;
    if (row->operands == Operands::any || (row->operands == Operands::nested && is_nested(word)))
      return {word, named_by("", word, row->programs)};
  }
  return {};
}

CommandKind kind_of(std::span<const std::string> argv, std::span<const std::string> runners) {
  return argv.empty() ? CommandKind{} : kind_of_words(argv, runners, 0);
}

CommandKind kind_of_line(std::string_view line, std::span<const std::string> runners) {
  return kind_of_script(line, runners, 0);
}

}  // namespace muniment::evidence::completion
