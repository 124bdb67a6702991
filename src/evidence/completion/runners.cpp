// One row for each test runner, or for several with the same arguments.
#include "evidence/completion/runners.hpp"

#include <algorithm>
#include <array>

namespace muniment::evidence::completion {
namespace {

using Operands = Runner::Operands;

constexpr std::string_view js_options =
    "-t -g -f -i -o --testNamePattern --testPathPattern --testPathPatterns --testPathIgnorePatterns --onlyChanged "
    "--onlyFailures --findRelatedTests --grep --fgrep --invert --exclude --changed --shard --config -c";
constexpr std::string_view cargo_options =
    "--skip --test --lib --bin --bins --example --examples -p --package --exclude -E --filter-expr --filterset "
    "--partition";
constexpr std::string_view surefire_counts = "Record the XML files that it writes: --report target/surefire-reports.";
constexpr std::string_view gradle_counts = "Record the XML files that it writes: --report build/test-results.";

constexpr std::array runner_rows{
    Runner{"pytest py.test ptw", "",
           "-k -m -p -c -o --deselect --ignore --ignore-glob --lf --last-failed --sw --stepwise --noconftest "
           "--override-ini --rootdir --confcutdir --config-file",
           Operands::nested, true, "Run it with at most one -q."},
    Runner{"unittest", "", "-k -p --pattern", Operands::any, true},
    Runner{"nose2 nosetests nose trial", "", "-A -a -e -m -c --config", Operands::any},
    Runner{"tox nox", "", "-e -s -k"},
    Runner{"doctest runtests.py stestr", "", ""},
    Runner{"manage.py setup.py", "test", ""},
    Runner{"go", "test", "-run -skip -short -exec -overlay", Operands::nested, true, "Run it with -v or -json."},
    Runner{"gotestsum ginkgo", "", "-run -skip -short -exec -overlay --focus --skip --run", Operands::nested},
    Runner{"ctest", "",
           "-R -E -L -LE -I --tests-regex --exclude-regex --label-regex --label-exclude --tests-information "
           "--rerun-failed",
           Operands::none, true, "Run it without -Q."},
    Runner{"cargo", "test nextest t", cargo_options, Operands::any, true},
    Runner{"cargo-nextest", "", cargo_options, Operands::any, true},
    Runner{"jest", "", js_options, Operands::any, true, "Run it without --silent and --json."},
    Runner{"mocha", "", js_options, Operands::any, true, "Run it with --reporter spec."},
    Runner{"vitest", "", js_options, Operands::any, true, "Run it with --reporter default."},
    Runner{"ava tap tape jasmine karma", "", js_options, Operands::any},
    Runner{"npm yarn pnpm bun", "test t tst", js_options, Operands::any},
    Runner{"deno", "test", "--filter"},
    Runner{"node", "--test", "--test-name-pattern --test-skip-pattern --test-only --test-shard", Operands::none, true,
           "Run it with --test-reporter spec."},
    Runner{"cypress testem playwright", "", ""},
    Runner{"make", "test check tests", ""},
    Runner{"ninja", "test check", ""},
    Runner{"meson", "test", "--suite --no-suite", Operands::any, true},
    Runner{"mvn mvnw", "test verify install",
           "-Dtest -Dit.test -Dgroups -DexcludedGroups -pl --projects -Dsurefire.excludes", Operands::none, false,
           surefire_counts},
    Runner{"gradle gradlew", "test check build", "--tests -x --exclude-task", Operands::none, false, gradle_counts},
    Runner{"dotnet", "test", "--filter", Operands::none, false, "Run it with --logger \"console;verbosity=normal\"."},
    Runner{"rspec", "", "-e -t -P --example --tag --only-failures --pattern --exclude-pattern", Operands::nested, true,
           "Run it with --format progress."},
    Runner{"phpunit pest", "", "-c --filter --group --exclude-group --testsuite --configuration", Operands::nested,
           false, "Record the report of --log-junit report.xml: --report report.xml."},
    Runner{"mix", "test", "--only --exclude --stale --failed --partitions", Operands::any, true},
    Runner{"swift", "test", "--filter --skip", Operands::none, false, "Run it without --parallel."},
    Runner{"bazel", "test", "--test_filter --test_tag_filters"},
    Runner{"behave robot cucumber behat", "", "-n -t -i -e --tags --name --test --suite --include --exclude",
           Operands::nested},
    Runner{"prove", "", "", Operands::none, false, "Run it with -v."},
    Runner{"bats busted shunit2", "", ""},
    Runner{"rake", "test spec", ""},
    Runner{"zig stack cabal sbt rails flutter just task lein composer", "test", ""},
};

// Values of options that leave every test in: `-p no:cacheprovider`.
constexpr std::string_view harmless_values = "no:cacheprovider no:warnings no:randomly";

// Operands before those that select tests: `npm run test`, `vitest run`, `unittest discover`.
constexpr std::string_view leading_operands = "test t tst nextest run run-script discover";

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

bool is_selecting_option(const Runner& row, std::string_view word) {
  const std::string_view flag = word.substr(0, word.find('='));
  if (holds_word(row.selecting, flag)) return true;
  // The value may follow a short option without a blank: `-kname`.
  return word.size() > 2 && word[0] == '-' && word[1] != '-' && row.programs.starts_with("pytest") &&
         holds_word(row.selecting, word.substr(0, 2));
}

// Common options of runners that take no value.
constexpr std::string_view switches =
    "-v -vv -vvv -q -qq -s -x -l -ra -rA -rf -rs -rP -rx -i -race -short -json -cover -failfast --verbose --quiet "
    "--silent --exitfirst --color --no-header --no-cov --showlocals --ci --runInBand --bail --coverage --nocapture "
    "--release --workspace --all-targets --all-features --locked --offline --no-fail-fast --fail-fast --strict-markers";

// A folder in the top folder, such as `tests` or `./...`, is where the tests of a project are.
bool is_nested(std::string_view operand) {
  if (operand.starts_with("./")) operand.remove_prefix(2);
  while (operand.ends_with('/')) operand.remove_suffix(1);
  if (operand.find("...") != std::string_view::npos) return operand != "...";
  return operand.find('/') != std::string_view::npos || operand.find("::") != std::string_view::npos ||
         operand.find('.', 1) != std::string_view::npos;
}

// Reads the selecting option at `at`; the position moves to its value if that is a word of its own.
Selection option_at(const Runner& row, const std::vector<std::string>& arguments, std::size_t& at) {
  const std::string& word = arguments[at];
  if (!is_selecting_option(row, word)) return {};
  const std::size_t equals = word.find('=');
  const bool attached =
      equals == std::string::npos && word.size() > 2 && word[1] != '-' && !holds_word(row.selecting, word);
  const bool apart = equals == std::string::npos && !attached && at + 1 < arguments.size();
  if (apart && holds_word(harmless_values, arguments[at + 1])) {
    ++at;
    return {};
  }
  const std::string option = word.substr(0, attached ? 2 : equals);
  const std::string value = attached                      ? word.substr(2)
                            : equals != std::string::npos ? word.substr(equals + 1)
                            : apart                       ? arguments[at + 1]
                                                          : std::string();
  return {apart ? word + " " + value : word, named_by(option, value, row.programs)};
}

}  // namespace

bool holds_word(std::string_view list, std::string_view word) {
  if (word.empty()) return false;
  for (std::size_t at = list.find(word); at != std::string_view::npos; at = list.find(word, at + 1)) {
    const bool begins = at == 0 || list[at - 1] == ' ';
    const bool ends = at + word.size() == list.size() || list[at + word.size()] == ' ';
    if (begins && ends) return true;
  }
  return false;
}

const Runner* runner_of(std::string_view name) {
  for (const Runner& row : runner_rows) {
    if (holds_word(row.programs, name)) return &row;
  }
  return nullptr;
}

bool is_subcommand(const Runner& runner, std::string_view argument) {
  return holds_word(runner.subcommands, argument.starts_with("test:") ? "test" : argument);
}

std::string counts_advice(const Runner* runner) {
  if (runner != nullptr && !runner->counts.empty()) return std::string(runner->counts);
  return "Configure it to write JUnit XML, and record the file with --report.";
}

Selection selection_in(std::string_view name, const std::vector<std::string>& arguments) {
  const Runner* const row = runner_of(name);
  bool leading = true;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    if (word.starts_with("--gtest_filter=")) return {word, named_by("", word.substr(15), "")};
    if (row == nullptr || word == "--") continue;
    if (word.size() > 1 && (word[0] == '-' || word[0] == '+')) {
      if (Selection found = option_at(*row, arguments, i); !found.argument.empty()) return found;
      continue;
    }
    if (leading && (holds_word(leading_operands, word) || is_subcommand(*row, word))) continue;
    // An operand after an option may be its value.
    const bool maybe_value = i > 0 && arguments[i - 1].starts_with('-') && arguments[i - 1] != "--" &&
                             arguments[i - 1].find('=') == std::string::npos &&
                             !holds_word(switches, arguments[i - 1]) && word.find("::") == std::string::npos;
    if (maybe_value) continue;
    leading = false;
    if (row->operands == Operands::any || (row->operands == Operands::nested && is_nested(word)))
      return {word, named_by("", word, row->programs)};
  }
  return {};
}

}  // namespace muniment::evidence::completion
