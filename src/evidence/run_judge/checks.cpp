// Recognises checks and file changes in the commands of a command line.
#include "evidence/run_judge/checks.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "base/text.hpp"
#include "evidence/run_judge/bare_words.hpp"
#include "evidence/run_judge/kinds.hpp"
#include "evidence/run_judge/words.hpp"
#include "evidence/shell/script.hpp"

namespace muniment::evidence::run_judge {
namespace {

constexpr std::size_t command_bytes_max = 120;  // length of a displayed command
constexpr std::size_t files_max = 32;           // files that one command changes
constexpr std::size_t nested_shells_max = 3;    // bash -c "bash -c …"

struct Programs {
  // Each pattern is matched against the bare words of a simple command, joined by blanks. The first match decides.
  struct Row {
    std::optional<Check> check;  // nullopt: the command only reads, or changes files (add_file_effects)
    Pattern pattern;
  };
  std::vector<Row> rows;

  Programs() {
    const auto add = [&](std::optional<Check> check, const char* pattern) {
      rows.push_back({check, Pattern(pattern, false)});
    };
    add(std::nullopt,
        R"(^(?:echo|printf|cat|ls|cd|pwd|grep|egrep|fgrep|rg|ag|find|head|tail|less|more|wc|which|whereis|type|export|source|\.|set|unset|alias|sleep|true|false|)"
        R"(test|\[|\[\[|date|whoami|env|history|man|help|file|stat|du|df|ps|kill|tree|diff|sort|uniq|cut|tr|awk|sed|xargs|jq|mkdir|touch|cp|mv|rm|rmdir|ln|chmod|chown|tee|patch|)"
        R"(for|done|fi|else|case|esac|read|exit|return|wait|open|goto|scroll_up|scroll_down|create|edit|search_dir|search_file|find_file|submit|close|str_replace_editor|curl|wget|ping|tar|unzip|zip|gunzip|nl|clear|hostname|uname|id|base64|md5sum|sha256sum|vi|vim|nano|emacs)(?:\s|$))");
    add(Check::commit, R"(^git(?:\s+-\S+(?:\s+\S+)?)*?\s+commit(?:\s|$))");
    add(Check::push,
        R"(^(?:git(?:\s+-\S+(?:\s+\S+)?)*?\s+push|gh\s+pr\s+create|glab\s+mr\s+create|hub\s+pull-request)(?:\s|$))");
    add(std::nullopt, R"(^(?:git|gh|hg|svn)(?:\s|$))");
    add(std::nullopt, R"(\s(?:--help|--version|--collect-only|--dry-run|--list-tests|--listTests)(?:\s|$))");
    add(Check::install,
        R"(^(?:pip3?|pipx|conda|mamba|gem|brew|apt|apt-get|apk|dnf|yum|cargo|poetry|pipenv|uv(?:\s+pip)?|go|bundle|composer|npm|pnpm|yarn|bun)\s+(?:-\S+\s+)*(?:install|add|ci|i|sync|get)(?:\s|$)|^(?:yarn|bundle)$|^go\s+mod\s+(?:download|tidy))");
    add(Check::types,
        R"(^(?:mypy|dmypy|pyright|basedpyright|pyre|tsc|vue-tsc|flow)(?:\s|$)|^(?:npm|pnpm|yarn|bun)\s+(?:run\s+)?(?:type-?check|types|tsc)\S*(?:\s|$))");
    add(Check::lint,
        R"(^(?:eslint|flake8|pylint|ruff|pycodestyle|pyflakes|stylelint|tslint|clang-tidy|clang-format|shellcheck|hadolint|golangci-lint|golint|staticcheck|rubocop|ktlint|checkstyle|cppcheck|black|isort|prettier|gofmt|rustfmt|biome|yamllint|markdownlint|actionlint|pre-commit)(?:\s|$)|)"
        R"(^cargo\s+(?:clippy|fmt)|^go\s+(?:vet|fmt)|^(?:npm|pnpm|yarn|bun|make|just|task)\s+(?:run\s+)?(?:lint|format|style|check-format)\S*(?:\s|$)|^\S*(?:scripts|bin|tools)/lint\S*)");
    add(Check::build, R"(^cargo\s+(?:\S+\s+)*?(?:check|build)(?:\s|$))");
    add(Check::test,
        R"(^(?:pytest|py\.test|unittest|nose2?|nosetests|trial|tox|nox|ctest|jest|vitest|mocha|ava|jasmine|karma|cypress|playwright|rspec|minitest|phpunit|pest|busted|bats|prove|gotestsum|doctest|behave|cucumber|stestr|zunit|kunit)(?:\s|$)|)"
        R"(^(?:go|cargo|dotnet|swift|flutter|dart|mix|sbt|stack|cabal|zig|deno|bun|bazel|lein|rake|rails|ninja|meson|mvn|mvnw|gradle|gradlew|\./gradlew|\./mvnw|make|gmake|just|task|npm|pnpm|yarn|composer|cmake|swipl|elm|dune)\s+(?:\S+\s+)*?(?:run\s+)?(?:\S*:)?(?:tests?|check|nextest|t|verify|unit|e2e|runtest|test[:_-]\S+|check-\S+|runtests?)(?:\s|$)|)"
        R"(^node\s+(?:\S+\s+)*--test(?:\s|$)|^(?:perl|ruby|python[\d.]*|pypy3|php|node|bash|sh|xvfb-run|julia)\s+(?:-\S+\s+)*(?:\S*/)?(?:runtests?|run_tests?|test_\S+|\S+_test|\S+_spec|\S+\.test|tests?)(?:\.\w+)?(?:\s|$)|)"
        R"(^(?:python[\d.]*)\s+(?:-\S+\s+)*(?:\S*/)?(?:manage\.py|setup\.py)\s+test(?:\s|$)|^(?:python[\d.]*)\s+(?:-\S+\s+)*bin/test(?:\s|$)|)"
        R"(^(?:\./)?(?:\S*/)?(?:runtests?|run_tests?|run-tests?|tests?|bin/test|scripts/test)(?:\.\w+)?(?:\s|$)|^\S*/(?:test_\S+|\S+_tests?)(?:\s|$))");
    add(Check::deploy,
        R"(^(?:kubectl\s+(?:\S+\s+)*(?:apply|rollout|set\s+image)|helm\s+(?:\S+\s+)*(?:install|upgrade)|docker\s+(?:push|stack\s+deploy)|docker-compose\s+up|docker\s+compose\s+(?:\S+\s+)*up|terraform\s+apply|tofu\s+apply|pulumi\s+up|ansible-playbook|)"
        R"((?:npm|pnpm|yarn|cargo|poetry|uv|bun|gem)\s+(?:npm\s+)?(?:publish|push)|twine\s+upload|gh\s+release\s+create|goreleaser|flyctl|fly\s+deploy|vercel|netlify\s+deploy|wrangler\s+(?:\S+\s+)*(?:deploy|publish)|firebase\s+deploy|serverless\s+deploy|sls\s+deploy|eb\s+deploy|cap\s+\S+\s+deploy|)"
        R"((?:gcloud|aws|az)\s+(?:\S+\s+)*?(?:deploy|update-service|create-deployment|sync|up)|heroku\s+(?:\S+\s+)*(?:release|push)|systemctl\s+(?:re)?start)(?:\s|$)|)"
        R"(^(?:(?:make|just|task|npm|pnpm|yarn|bun|rake)\s+(?:run\s+)?|(?:bash|sh|python[\d.]*|node|ruby)\s+)?(?:\S*[/_.-])?(?:deploy|release|publish|rollout)(?:[:_.-]\S*)?(?:\s|$))");
    add(Check::build,
        R"(^(?:gcc|g\+\+|cc|c\+\+|clang|clang\+\+|rustc|javac|kotlinc|swiftc|ghc|ninja|make|gmake|bazel\s+build|webpack|rollup|esbuild|vite\s+build|next\s+build|ng\s+build|msbuild|xcodebuild|scons|waf)(?:\s|$)|^(?:go|cargo|dotnet|swift|zig|stack|cabal|dune|flutter|docker|podman|nix|poetry|uv|buf|hugo|mkdocs)\s+(?:compose\s+)?(?:build|check|install)(?:\s|$)|)"
        R"(^(?:meson|cmake)\s+(?:compile|--build)|^(?:npm|pnpm|yarn|bun|just|task)\s+(?:run\s+)?(?:build|compile|bundle)\S*(?:\s|$)|^(?:mvn|mvnw|\./mvnw|gradle|gradlew|\./gradlew)\s+(?:\S+\s+)*(?:compile|package|install|build|assemble)|^(?:py_compile|compileall|build)(?:\s|$)|^python[\d.]*\s+setup\.py\s+(?:build|develop|bdist)|^(?:\S*/)?build\.sh(?:\s|$))");
    add(std::nullopt, R"(^(?:node|npm|npx|python[\d.]*|ipython|irb|bash|sh|cmake|meson|docker|kubectl|aws|gcloud)$)");
  }
};

const Programs& programs() {
  static const Programs table;
  return table;
}

// Returns the files and filters to which a test command is limited.
std::vector<std::string> targets_of(const std::vector<std::string>& words) {
  static const Pattern filter(R"(^(?:-k|-run|-R|-t|--filter|--grep|-g|--test|--tests|--testNamePattern|-m)(?:=(.*))?$)",
                              false);
  std::vector<std::string> targets;
  for (std::size_t i = 1; i < words.size() && targets.size() < subjects_max; ++i) {
    const std::string& word = words[i];
    if (const auto found = filter.find(word)) {
      if (!found->group.empty())
        targets.emplace_back(found->group);
      else if (i + 1 < words.size() && words[i + 1] != "test")
        targets.push_back(words[++i]);
    } else if (!word.starts_with("-") &&
               (word.find('/') != std::string::npos || word.find('.') != std::string::npos ||
                word.starts_with("test_")) &&
               word != "." && word != "./..." && word.find("setup.py") == std::string::npos &&
               word.find("runtests") == std::string::npos) {
      targets.push_back(word);
    }
  }
  return targets;
}

bool has_word(const std::vector<std::string>& words, std::initializer_list<std::string_view> wanted) {
  return std::any_of(words.begin(), words.end(), [&](const std::string& word) {
    return std::find(wanted.begin(), wanted.end(), std::string_view(word)) != wanted.end();
  });
}

std::vector<std::string> operands_of(const std::vector<std::string>& words) {
  std::vector<std::string> operands;
  for (std::size_t i = 1; i < words.size() && operands.size() < files_max; ++i) {
    if (!words[i].starts_with("-")) operands.push_back(words[i]);
  }
  return operands;
}

// Adds the files that the program changes by its purpose: cp, mv, rm, patch and others.
void add_file_effects(CommandEffects& effects, const std::vector<std::string>& words) {
  const std::string& program = words.front();
  const std::vector<std::string> operands = operands_of(words);
  const auto write_all = [&](std::size_t from) {
    for (std::size_t i = from; i < operands.size(); ++i) effects.files.push_back({operands[i], false});
  };
  const auto in_place = [&] {
    return std::any_of(words.begin(), words.end(), [](const std::string& word) {
      return word.starts_with("-i") || word.starts_with("--in-place") || word.starts_with("-pi");
    });
  };
  if (program == "tee" || program == "touch") {
    write_all(0);
  } else if ((program == "sed" || program == "perl") && in_place()) {
    write_all(operands.size() > 1 ? 1 : 0);
  } else if (program == "rm" || program == "rmdir" || program == "unlink") {
    for (const std::string& path : operands) effects.files.push_back({path, true});
  } else if (program == "cp" && operands.size() > 1) {
    effects.files.push_back({operands.back(), false});
  } else if (program == "mv" && operands.size() > 1) {
    for (std::size_t i = 0; i + 1 < operands.size(); ++i) effects.files.push_back({operands[i], true});
    effects.files.push_back({operands.back(), false});
  } else if (program == "git" && has_word(words, {"rm"})) {
    for (std::size_t i = 1; i < operands.size(); ++i) effects.files.push_back({operands[i], true});
  } else if (program == "patch" ||
             (program == "git" && has_word(words, {"apply", "checkout", "restore", "stash", "reset", "revert", "merge",
                                                   "rebase", "cherry-pick", "pull", "am", "clean", "switch"}))) {
    effects.changes_tree = !has_word(words, {"--check", "--stat", "list", "show", "-b"});
  } else if (has_word(words, {"--fix", "--write", "--in-place"}) ||
             ((program == "black" || program == "isort" || program == "rustfmt") &&
              !has_word(words, {"--check", "--diff", "-c", "--check-only"}))) {
    effects.changes_tree = true;
  }
}

// Returns whether the status and the output of the whole line come from one command.
struct Speaks {
  bool status = true;
  bool output = true;
};

bool is_one_of(std::string_view program, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), program) != names.end();
}

// Returns whether the command, in a pipe, passes on whole lines of its input unchanged: some of them or all.
bool keeps_lines(const shell::ScriptCommand& command) {
  return !command.output_away && !command.words.empty() &&
         is_one_of(command.words.front(), {"tail", "head", "tee", "cat", "less", "more"});
}

// Returns whether the command can print a test summary that no runner wrote. `written`: the files that the runner
// wrote.
bool can_print_results(const std::vector<std::string>& words, const std::vector<std::string>& written) {
  static const Pattern results(R"(pass|\bok\b|\bran\b)");
  const std::string_view program = words.front();
  if (program == "echo" || program == "printf") return results.in(joined(words, " ").substr(0, 4096));
  if (is_one_of(program, {"cat", "tail", "head", "less", "more"})) {
    const std::vector<std::string> files = operands_of(words);
    return files.empty() || !std::all_of(files.begin(), files.end(), [&](const std::string& file) {
             return std::find(written.begin(), written.end(), file) != written.end() ||
                    file.find_first_not_of("0123456789") == std::string::npos;  // tail -n 20
           });
  }
  if (is_one_of(program, {"grep", "egrep", "sed", "awk", "tac", "nl", "jq", "cut", "tr", "sort", "uniq", "base64"}))
    return true;
  return program.starts_with("python") || is_one_of(program, {"perl", "node", "ruby"})
             ? has_word(words, {"-c", "-e", "-"})
             : false;
}

// Returns whether a test summary in the line's output comes from command `at`: its output reaches the line's output, at
// most cut to its first or last lines, and no later command can print a summary.
bool output_speaks(const std::vector<shell::ScriptCommand>& commands, std::size_t at) {
  const std::vector<std::string>& written = commands[at].written;
  bool shown = !commands[at].output_away;
  std::size_t next = at + 1;
  for (; next < commands.size() && commands[next - 1].after == "|"; ++next) {
    if (!keeps_lines(commands[next])) return false;
  }
  for (; next < commands.size(); ++next) {
    const std::vector<std::string> bare = bare_words(commands[next].words);
    if (bare.empty()) continue;
    if (can_print_results(bare, written)) return false;
    shown = shown || is_one_of(bare.front(), {"cat", "tail", "head", "less", "more"});
  }
  return shown;
}

void add_line(CommandEffects& effects, std::string_view line, std::size_t depth, Speaks speaks);

void add_words(CommandEffects& effects, const std::vector<std::string>& words, std::size_t depth, Speaks speaks) {
  const std::vector<std::string> bare = bare_words(words);
  if (bare.empty()) return;
  const std::string& program = bare.front();
  if (program == "bash" || program == "sh" || program == "zsh" || program == "dash") {
    for (std::size_t i = 1; i + 1 < bare.size(); ++i) {
      const bool script = bare[i].size() >= 2 && bare[i][0] == '-' && bare[i][1] != '-' && bare[i].back() == 'c';
      if (script && depth < nested_shells_max) return add_line(effects, bare[i + 1], depth + 1, speaks);
    }
  }
  add_file_effects(effects, bare);
  const std::string text = joined(bare, " ").substr(0, 4096);
  CheckRun run{.check = Check::run,
               .command = preview(joined(words, " ").substr(0, 4096), command_bytes_max),
               .targets = {},
               .status_speaks = speaks.status,
               .output_speaks = speaks.output};
  for (const Programs::Row& row : programs().rows) {
    if (!row.pattern.in(text)) continue;
    if (!row.check) return;
    run.check = *row.check;
    break;
  }
  if (run.check == Check::test) run.targets = targets_of(bare);
  effects.checks.push_back(std::move(run));
}

void add_line(CommandEffects& effects, std::string_view line, std::size_t depth, Speaks speaks) {
  const shell::ShellScript script = shell::read_script(line.substr(0, shell_bytes_max));
  const std::vector<shell::ScriptCommand>& commands = script.commands;
  for (std::size_t i = 0; i < commands.size(); ++i) {
    const shell::ScriptCommand& command = commands[i];
    for (const std::string& path : command.written) {
      if (path != "/dev/null" && effects.files.size() < files_max) effects.files.push_back({path, false});
    }
    add_words(effects, command.words, depth,
              {speaks.status && shell::status_speaks(commands, i), speaks.output && output_speaks(commands, i)});
  }
}

}  // namespace

CommandEffects effects_of_line(std::string_view line) {
  CommandEffects effects;
  add_line(effects, line, 0, {});
  return effects;
}

CommandEffects effects_of_argv(const std::vector<std::string>& argv) {
  CommandEffects effects;
  if (!argv.empty()) add_words(effects, argv, 0, {});
  return effects;
}

CommandEffects effects_of_python(std::string_view code) {
  static const Pattern writes(
      R"(\b(?:create_file|edit_file\w*|insert_content_at_line|append_file|write_file)\(\s*(?:\w+\s*=\s*)?['"]([^'"\n]+)['"])",
      false);
  CommandEffects effects;
  code = code.substr(0, shell_bytes_max);
  std::size_t from = 0;
  while (effects.files.size() < files_max) {
    const auto found = writes.find(code, from);
    if (!found) break;
    effects.files.push_back({std::string(found->group), false});
    from = found->end;
  }
  if (effects.files.empty() && !code.empty() && code.find("open_file(") == std::string_view::npos) {
    effects.checks.push_back(
        {.check = Check::run, .command = preview(code, command_bytes_max), .targets = {}, .status_speaks = true});
  }
  return effects;
}

bool is_scratch(std::string_view path) {
  static constexpr std::string_view folders[] = {"/tmp/", "/dev/", "/var/tmp/", "/proc/"};
  return std::any_of(std::begin(folders), std::end(folders),
                     [&](std::string_view folder) { return path.starts_with(folder); });
}

}  // namespace muniment::evidence::run_judge
