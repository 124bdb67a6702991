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

// Returns whether a program or module of this name only runs tests.
bool runs_alone(std::string_view name) {
  const Runner* const row = runner_of(name);
  return row != nullptr && row->subcommands.empty();
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
      if (name == "coverage" && i + 3 < words.size() && words[i + 2] == "run") {
        const bool module = words[i + 3] == "-m" && i + 4 < words.size() && runs_alone(words[i + 4]);
        if (module) name = words[i + 4];
        words = words.subspan(i + (module ? 4 : 1));
        return module ? Program::runner : Program::unknown;
      }
      words = words.subspan(i + 1);
      if (runs_alone(name)) return Program::runner;
      return name == "pip" || name == "json.tool" ? Program::reader : Program::unknown;
    }
    if (word == "-W" || word == "-X") {
      ++i;
      continue;
    }
    if (!word.empty() && word[0] == '-') continue;
    name = word;
    const std::string_view script = base_name(name);
    words = words.subspan(i);
    if (runs_alone(script)) return Program::runner;
    const Runner* const row = runner_of(script);
    return row != nullptr && words.size() > 1 && is_subcommand(*row, words[1]) ? Program::runner : Program::unknown;
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
  if (runs_alone(base)) return Program::runner;
  const bool inline_code = (base == "perl" || base == "ruby" || base == "node") && words.size() > 2 && words[1] == "-e";
  if (inline_code) return Program::printer;
  const Runner* const row = runner_of(base);
  for (std::size_t i = 1; row != nullptr && i < words.size(); ++i) {
    const std::string_view word = words[i];
    if (word.empty() || word == "run" || word == "run-script") continue;
    if (is_subcommand(*row, word)) return Program::runner;
    // The first operand of these is their subcommand.
    if (holds_word("node npm go cargo", base) && word[0] != '-' && word[0] != '+') break;
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

}  // namespace

Selection selection_of(const CommandKind& kind) {
  return kind.program == Program::runner ? selection_in(base_name(kind.name), kind.arguments) : Selection{};
}

const Runner* runner_in(const CommandKind& kind) {
  return kind.program == Program::runner ? runner_of(base_name(kind.name)) : nullptr;
}

CommandKind kind_of(std::span<const std::string> argv, std::span<const std::string> runners) {
  return argv.empty() ? CommandKind{} : kind_of_words(argv, runners, 0);
}

CommandKind kind_of_line(std::string_view line, std::span<const std::string> runners) {
  return kind_of_script(line, runners, 0);
}

}  // namespace muniment::evidence::completion
