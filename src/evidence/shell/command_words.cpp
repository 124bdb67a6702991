// Wrappers, and the variables and options that change what a command line runs.
#include "evidence/shell/command_words.hpp"

#include <algorithm>
#include <array>
#include <filesystem>

#include "evidence/shell/script.hpp"

namespace muniment::evidence::shell {
namespace {

using Effect = Option::Effect;

// The syntax of a wrapper before the command that it runs.
struct Wrapper {
  std::string_view program;
  std::string_view subcommand{};  // must follow the name; empty: none
  Options options{};
  int operands = 0;        // number of operands before the command, such as the duration of timeout
  bool elsewhere = false;  // it looks for programs in other places than a shell: in a container, as another user
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
    Wrapper{.program = "sudo", .elsewhere = true},
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
    Wrapper{.program = "ccache"},
    Wrapper{.program = "docker", .subcommand = "exec", .operands = 1, .elsewhere = true},
    Wrapper{.program = "bunx"},
    Wrapper{.program = "pnpm", .subcommand = "dlx"},
    Wrapper{.program = "dotenv", .subcommand = "run", .elsewhere = true},
    Wrapper{.program = "dotnet", .subcommand = "exec"},
    Wrapper{.program = "stack", .subcommand = "exec", .elsewhere = true},
    Wrapper{.program = "opam", .subcommand = "exec", .elsewhere = true},
    Wrapper{.program = "nix", .subcommand = "develop", .elsewhere = true}};

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

Effect effect_of(const Options& options, std::string_view flag) {
  if (holds_word(options.selecting, flag)) return Effect::selects;
  if (holds_word(options.folders, flag)) return Effect::folder;
  if (holds_word(options.paths, flag)) return Effect::path;
  for (const std::string_view list : {options.switches, options.values, options.words}) {
    if (holds_word(list, flag)) return Effect::none;
  }
  return Effect::unknown;
}

bool is_option(std::string_view word) { return word.size() > 1 && word[0] == '-'; }

// Completes an option whose flag is known: its value is `attached` to it, or the next word.
Option with_value(const Options& options, std::string_view flag, std::string_view attached, bool is_attached,
                  std::span<const std::string> words) {
  Option found{effect_of(options, flag), std::string(flag), std::string(attached), 1};
  const bool optional = holds_word(options.switches, flag) || found.effect == Effect::selects;
  const bool takes =
      found.effect != Effect::none || holds_word(options.values, flag) || holds_word(options.words, flag);
  const bool follows = words.size() > 1 && !is_option(words[1]) && words[1] != "-";
  if (!is_attached && takes && follows) {
    found.value = words[1];
    found.words = 2;
  } else if (!is_attached && takes && !optional) {
    found.effect = Effect::unknown;  // what follows may be its value
  }
  const bool plain = holds_word(options.words, flag) && !holds_word(options.switches, flag);
  if (plain && !is_plain(found.value, "-_")) found.effect = Effect::unknown;
  return found;
}

}  // namespace

std::string_view base_name(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

bool is_python(std::string_view name) { return name.starts_with("python") || name.starts_with("pypy") || name == "py"; }

bool is_plain(std::string_view word, std::string_view also) {
  return !word.empty() && std::ranges::all_of(word, [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           also.find(c) != std::string_view::npos;
  });
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

Option read_option(const Options& options, std::span<const std::string> words) {
  const std::string_view word = words[0];
  const std::string_view flag = word.substr(0, word.find('='));
  if (effect_of(options, flag) != Effect::unknown) {
    const bool attached = flag.size() < word.size();
    return with_value(options, flag, attached ? word.substr(flag.size() + 1) : "", attached, words);
  }
  // A cluster of short options, the last of which may take a value: -xvs, -n4, -vk name.
  for (std::size_t i = 1; word.size() > 2 && word[1] != '-' && i < word.size(); ++i) {
    const std::string letter{'-', word[i]};
    const Effect effect = effect_of(options, letter);
    if (effect == Effect::unknown) break;
    const bool is_switch = effect == Effect::none && holds_word(options.switches, letter);
    const bool takes = !is_switch || holds_word(options.values, letter) || holds_word(options.words, letter);
    if (takes) return with_value(options, letter, word.substr(i + 1), i + 1 < word.size(), words);
    if (i + 1 == word.size()) return {Effect::none, std::string(word), "", 1};
  }
  return {Effect::unknown, std::string(word), "", 1};
}

void Reading::enter(std::string_view path) { folder = (std::filesystem::path(folder) / path).string(); }

void Reading::note_unknown(std::string_view word) {
  if (unknown.empty()) unknown = word;
}

void note_setting(std::string_view setting, Reading& reading) {
  const std::string_view name = setting.substr(0, setting.find('='));
  const bool of_tools =
      holds_word(tool_variables, name) ||
      std::ranges::any_of(tool_prefixes, [&](std::string_view prefix) { return name.starts_with(prefix); });
  if (of_tools && !holds_word(harmless_variables, name)) reading.note_unknown(setting);
}

void skip_options(const Options& options, std::string_view end, std::span<const std::string>& words, Reading& reading) {
  while (!words.empty() && words[0].size() > 1 && words[0][0] == '-' && words[0] != end && words[0] != "--") {
    const Option option = read_option(options, words);
    if (option.effect == Option::Effect::folder) reading.enter(option.value);
    if (option.effect == Option::Effect::unknown) reading.note_unknown(words[0]);
    words = words.subspan(option.words);
  }
  if (!words.empty() && words[0] == "--") words = words.subspan(1);
}

bool unwrap(std::span<const std::string>& words, Reading& reading) {
  const std::string_view name = base_name(words[0]);
  for (const Wrapper& wrapper : wrappers) {
    if (name != wrapper.program) continue;
    const bool sub = !wrapper.subcommand.empty();
    if (sub && (words.size() < 2 || words[1] != wrapper.subcommand)) continue;
    if (name != "exec" && name != "command") reading.programs.push_back(words[0]);  // of the shell
    if (wrapper.elsewhere) reading.note_unknown(name);
    words = words.subspan(sub ? 2 : 1);
    skip_options(wrapper.options, "", words, reading);
    for (int operands = wrapper.operands; operands > 0 && !words.empty(); --operands) words = words.subspan(1);
    while (!words.empty() && is_assignment(words[0])) {
      note_setting(words[0], reading);
      words = words.subspan(1);
    }
    return true;
  }
  return false;
}

}  // namespace muniment::evidence::shell
