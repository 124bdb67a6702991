// One row for each test runner, or for several with the same arguments.
#include "evidence/completion/runners.hpp"

#include <algorithm>
#include <array>
#include <filesystem>

namespace muniment::evidence::completion {
namespace {

using shell::holds_word;
using shell::is_plain;
using shell::Option;
using shell::Options;
using Operands = Runner::Operands;
using Effect = Option::Effect;

constexpr Options pytest_options{
    .switches =
        "-v -q -s -x -l -r -d --verbose --quiet --exitfirst --showlocals --no-header --no-summary --strict "
        "--strict-markers --strict-config --full-trace --disable-warnings --disable-pytest-warnings --ff "
        "--failed-first --nf --new-first --setup-show --cache-clear --cov --cov-branch --no-cov --cov-append "
        "--doctest-modules --runslow --benchmark-skip --asyncio-debug",
    .values =
        "-r -n -W --numprocesses --maxfail --durations --durations-min --color --junitxml --junit-xml "
        "--junit-prefix --cov --cov-report --cov-fail-under --timeout --log-level --log-cli-level --log-format "
        "--log-file --log-file-level --verbosity --basetemp --randomly-seed --random-order-seed --reruns "
        "--reruns-delay --code-highlight",
    .words = "--tb --capture --dist --timeout-method --import-mode --asyncio-mode --show-capture",
    .selecting =
        "-k -m -p -c -o --deselect --ignore --ignore-glob --lf --last-failed --sw --stepwise --noconftest "
        "--override-ini --rootdir --confcutdir --config-file"};
constexpr Options django_options{
    .switches = "-q --quiet --keepdb --failfast --noinput --no-input --parallel --verbose --timing",
    .values = "-v --verbosity --parallel",
    .words = "--settings",
    .selecting = "-k -p -t --pattern --tag --exclude-tag --testrunner"};
constexpr Options go_options{
    .switches = "-v -race -json -cover -failfast -benchmem -a -x -work -trimpath",
    .values =
        "-count -timeout -p -parallel -cpu -coverprofile -covermode -coverpkg -outputdir -vet -shuffle -bench "
        "-benchtime -fuzztime --format -f --junitfile --jsonfile --packages --procs",
    .words = "-mod",
    .folders = "-C",
    .selecting = "-run -skip -short -exec -overlay -tags -list -test.run -test.skip -test.short --focus --skip --run"};
constexpr Options cargo_options{
    .switches =
        "-v -vv -q --verbose --quiet --release --workspace --all --all-targets --all-features --locked "
        "--offline --frozen --no-fail-fast --no-capture --nocapture --show-output --include-ignored --tests "
        "--no-tests",
    .values = "-j -F --jobs --color --test-threads --profile --features --target --target-dir --retries",
    .words = "--message-format --format",
    .folders = "-C --manifest-path",
    .selecting =
        "--skip --test --lib --bin --bins --example --examples -p --package --exclude -E --filter-expr "
        "--filterset --partition --doc --ignored --exact --no-default-features --benches --bench"};
constexpr std::string_view js_selecting =
    "-t -g -f -i -o --testNamePattern --testPathPattern --testPathPatterns --testPathIgnorePatterns --onlyChanged "
    "--onlyFailures --findRelatedTests --grep --fgrep --invert --exclude --changed --shard --config -c --project "
    "--selectProjects --workspace -w --testMatch --testRegex --runTestsByPath";
constexpr Options js_options{
    .switches =
        "-s --ci --runInBand --verbose --silent --coverage --no-coverage --forceExit --detectOpenHandles "
        "--no-cache --colors --no-colors --no-color --bail -b --expand --logHeapUsage --no-watch --run --exit "
        "--recursive --check-leaks --full-trace --forbid-only --forbid-pending --parallel --inline-diffs "
        "--workspaces --workspaces-root --foreground-scripts --watchAll --watch --typecheck --tap",
    .values =
        "--maxWorkers --testTimeout --outputFile --coverageDirectory --timeout --slow --retries --jobs --maxfail "
        "--concurrency --seed --bail --reporter-option --reporter-options",
    .words = "-R --reporter --reporters --coverageReporters --ui --pool --loglevel",
    .folders = "--prefix -C --dir --cwd",
    .selecting = js_selecting};
constexpr std::string_view js_files = "*.test.* *.spec.*";
constexpr std::string_view pytest_settings =
    "pytest.ini .pytest.ini pytest.toml .pytest.toml tox.ini setup.cfg pyproject.toml conftest.py";
constexpr std::string_view npm_settings = ".npmrc .yarnrc .yarnrc.yml .pnpmfile.cjs bunfig.toml";

constexpr std::string_view surefire_counts = "Record the XML files that it writes: --report target/surefire-reports.";
constexpr std::string_view gradle_counts = "Record the XML files that it writes: --report build/test-results.";

constexpr std::array runner_rows{
    Runner{.programs = "pytest py.test",
           .options = pytest_options,
           .operands = Operands::paths,
           .test_files = "test_*.py *_test.py",
           .settings = pytest_settings,
           .ends_with_counts = true,
           .counts = "Run it with at most one -q."},
    Runner{.programs = "unittest",
           .options = {.switches = "-v -q -f -b -c --verbose --quiet --failfast --buffer --catch --locals",
                       .values = "-t --durations --top-level-directory",
                       .paths = "-s --start-directory",
                       .selecting = "-k -p --pattern"},
           .operands = Operands::paths,
           .test_files = "test*.py",
           .ends_with_counts = true},
    Runner{.programs = "nose2 nosetests nose trial",
           .options = {.switches = "-v -q --verbose --quiet --with-coverage --with-xunit",
                       .selecting = "-A -a -e -m -c --config"},
           .operands = Operands::any},
    Runner{.programs = "tox nox",
           .options = {.switches = "-q -v -r --recreate --verbose --quiet",
                       .values = "-p --parallel",
                       .selecting = "-e -s -k"},
           .settings = pytest_settings},
    Runner{.programs = "doctest stestr", .options = {.switches = "-v --verbose"}, .operands = Operands::any},
    Runner{.programs = "runtests.py", .options = django_options, .operands = Operands::any},
    Runner{
        .programs = "manage.py setup.py", .subcommands = "test", .options = django_options, .operands = Operands::any},
    Runner{.programs = "go",
           .subcommands = "test",
           .options = go_options,
           .operands = Operands::packages,
           .test_files = "*_test.go",
           .settings = "go.work",
           .ends_with_counts = true,
           .counts = "Run it with -v or -json."},
    Runner{.programs = "gotestsum ginkgo",
           .options = go_options,
           .operands = Operands::packages,
           .test_files = "*_test.go",
           .settings = "go.work"},
    Runner{.programs = "ctest",
           .options = {.switches = "-V -VV -j --verbose --extra-verbose --output-on-failure --progress "
                                   "--stop-on-failure --schedule-random --parallel",
                       .values = "-j -C -O --parallel --timeout --output-junit --output-log --build-config --repeat "
                                 "--no-tests --test-load",
                       .folders = "--test-dir",
                       .selecting = "-R -E -L -LE -I --tests-regex --exclude-regex --label-regex --label-exclude "
                                    "--tests-information --rerun-failed --preset"},
           .ends_with_counts = true,
           .counts = "Run it without -Q."},
    Runner{.programs = "cargo cargo-nextest",
           .subcommands = "test nextest t",
           .options = cargo_options,
           .operands = Operands::any,
           .settings = ".cargo/config.toml .cargo/config Cargo.toml",
           .ends_with_counts = true},
    Runner{.programs = "jest",
           .options = js_options,
           .operands = Operands::paths,
           .test_files = js_files,
           .ends_with_counts = true,
           .counts = "Run it without --silent and --json."},
    Runner{.programs = "mocha",
           .options = js_options,
           .operands = Operands::paths,
           .test_files = js_files,
           .settings = ".mocharc.js .mocharc.cjs .mocharc.json .mocharc.jsonc .mocharc.yml .mocharc.yaml",
           .ends_with_counts = true,
           .counts = "Run it with --reporter spec."},
    Runner{.programs = "vitest",
           .options = js_options,
           .operands = Operands::paths,
           .test_files = js_files,
           .ends_with_counts = true,
           .counts = "Run it with --reporter default."},
    Runner{.programs = "ava tap tape jasmine karma", .options = js_options, .operands = Operands::any},
    Runner{.programs = "npm yarn pnpm bun",
           .subcommands = "test t tst",
           .options = js_options,
           .operands = Operands::any,
           .test_files = js_files,
           .settings = npm_settings},
    Runner{.programs = "deno",
           .subcommands = "test",
           .options = {.switches = "-A -q -R -W -E -N --allow-all --allow-read --allow-write --allow-env --allow-net "
                                   "--allow-run --coverage --no-check --parallel --trace-leaks --quiet --fail-fast",
                       .values = "--junit-path --fail-fast --coverage",
                       .words = "--reporter",
                       .selecting = "--filter --ignore --config -c"},
           .operands = Operands::paths,
           .test_files = "*_test.ts *.test.ts *_test.js *.test.js"},
    Runner{.programs = "node",
           .subcommands = "--test",
           .options = {.switches = "--test --experimental-test-coverage --enable-source-maps --no-warnings "
                                   "--test-force-exit --experimental-strip-types --experimental-vm-modules",
                       .values = "--test-reporter-destination --test-concurrency --test-timeout --max-old-space-size",
                       .words = "--test-reporter",
                       .selecting = "--test-name-pattern --test-skip-pattern --test-only --test-shard"},
           .operands = Operands::paths,
           .test_files = "*.test.js *.test.mjs *.test.cjs *.test.ts *-test.js *_test.js test-*.js test-*.mjs",
           .ends_with_counts = true,
           .counts = "Run it with --test-reporter spec."},
    Runner{.programs = "cypress testem playwright", .options = js_options, .operands = Operands::any},
    Runner{.programs = "make gmake",
           .subcommands = "test check tests",
           .options = {.switches = "-s -k -w -B -j -O --silent --quiet --keep-going --print-directory "
                                   "--no-print-directory --always-make --jobs --output-sync",
                       .values = "-j -l -O --jobs --load-average --output-sync",
                       .folders = "-C --directory"},
           .operands = Operands::targets},
    Runner{.programs = "ninja",
           .subcommands = "test check",
           .options = {.switches = "-v --verbose --quiet", .values = "-j -k -l", .folders = "-C"},
           .operands = Operands::targets},
    Runner{.programs = "meson",
           .subcommands = "test",
           .options = {.switches = "-v -q --verbose --quiet --print-errorlogs --no-stdsplit",
                       .values = "-j -t --num-processes --maxfail --logbase --timeout-multiplier --repeat --max-lines",
                       .folders = "-C",
                       .selecting = "--suite --no-suite --setup"},
           .operands = Operands::any,
           .ends_with_counts = true},
    Runner{
        .programs = "mvn mvnw",
        .subcommands = "test verify install",
        .options = {.switches = "-B -q -o -U -e -X -ntp -fae -ff --batch-mode --quiet --offline --errors "
                                "--no-transfer-progress --fail-at-end --fail-fast --update-snapshots",
                    .values = "-T --threads -Dstyle.color",
                    .selecting = "-Dtest -Dit.test -Dgroups -DexcludedGroups -pl --projects -Dsurefire.excludes -P -f"},
        .operands = Operands::targets,
        .counts = surefire_counts},
    Runner{.programs = "gradle gradlew",
           .subcommands = "test check build",
           .options = {.switches = "-q -i --quiet --info --stacktrace --no-daemon --offline --continue --rerun-tasks "
                                   "--parallel --no-build-cache --no-parallel --full-stacktrace --build-cache",
                       .values = "--max-workers --console --warning-mode",
                       .folders = "-p --project-dir",
                       .selecting = "--tests -x --exclude-task"},
           .operands = Operands::targets,
           .settings = "gradle.properties init.gradle",
           .counts = gradle_counts},
    Runner{.programs = "dotnet",
           .subcommands = "test",
           .options = {.switches = "--no-restore --nologo --blame -p",
                       .values = "-c -v -l -m --configuration --verbosity --logger --results-directory --collect",
                       .selecting = "--filter --settings -s"},
           .operands = Operands::any,
           .settings = "Directory.Build.props Directory.Build.targets NuGet.Config",
           .counts = "Run it with --logger \"console;verbosity=normal\"."},
    Runner{
        .programs = "rspec",
        .options = {.switches = "-b -c --color --colour --no-color --force-color --fail-fast --backtrace",
                    .values = "-o --seed --order --out --deprecation-out --failure-exit-code",
                    .words = "-f --format",
                    .selecting = "-e -t -P --example --tag --only-failures --next-failure --pattern --exclude-pattern"},
        .operands = Operands::paths,
        .test_files = "*_spec.rb",
        .settings = ".rspec",
        .ends_with_counts = true,
        .counts = "Run it with --format progress."},
    Runner{
        .programs = "phpunit pest",
        .options = {.switches = "-v --colors --verbose --debug --stop-on-failure --testdox --no-coverage "
                                "--do-not-cache-result --display-warnings --display-deprecations --no-progress",
                    .values = "--colors --log-junit --coverage-text --coverage-clover --order-by "
                              "--random-order-seed --memory-limit",
                    .selecting = "-c --filter --group --exclude-group --testsuite --configuration --no-configuration"},
        .operands = Operands::paths,
        .test_files = "*Test.php",
        .counts = "Record the report of --log-junit report.xml: --report report.xml."},
    Runner{.programs = "mix",
           .subcommands = "test",
           .options = {.switches = "--trace --cover --force --color --no-color --warnings-as-errors --slowest",
                       .values = "--seed --max-failures --max-cases --timeout --slowest",
                       .selecting = "--only --exclude --include --stale --failed --partitions"},
           .operands = Operands::paths,
           .test_files = "*_test.exs",
           .ends_with_counts = true},
    Runner{.programs = "swift",
           .subcommands = "test",
           .options = {.switches = "-v --parallel --verbose --enable-code-coverage",
                       .values = "-c --configuration --num-workers --xunit-output",
                       .folders = "--package-path",
                       .selecting = "--filter --skip"},
           .counts = "Run it without --parallel."},
    Runner{.programs = "bazel",
           .subcommands = "test",
           .options = {.switches = "-k --keep_going",
                       .values = "--test_output --jobs",
                       .selecting = "--test_filter --test_tag_filters"},
           .operands = Operands::any,
           .settings = ".bazelrc"},
    Runner{.programs = "behave robot cucumber behat",
           .options = {.switches = "-v -q --no-capture --color --no-color --quiet --verbose --stop",
                       .values = "-d -o --outputdir --junit-directory",
                       .words = "-f --format",
                       .selecting = "-n -t -i -e --tags --name --test --suite --include --exclude"},
           .operands = Operands::paths,
           .test_files = "*.feature *.robot"},
    Runner{.programs = "prove",
           .options = {.switches = "-v -r -l -b -q -m -f -o --verbose --recurse --merge --color --nocolor --timer "
                                   "--failures --lib --blib --quiet",
                       .values = "-j --jobs"},
           .operands = Operands::paths,
           .test_files = "*.t",
           .settings = ".proverc",
           .counts = "Run it with -v."},
    Runner{.programs = "bats busted shunit2",
           .options = {.switches = "-r -t -T -p --recursive --tap --timing --pretty --verbose-run",
                       .values = "-j --jobs -o --output",
                       .words = "-F --formatter",
                       .selecting = "-f --filter --filter-tags --filter-status"},
           .operands = Operands::paths,
           .test_files = "*.bats *_spec.lua"},
    Runner{.programs = "rake",
           .subcommands = "test spec",
           .options = {.switches = "-q -s -t -v -m --trace --quiet --silent --verbose", .values = "-j"},
           .operands = Operands::targets},
    Runner{.programs = "zig stack cabal sbt rails flutter just task lein composer",
           .subcommands = "test",
           .options = {.switches = "-v --verbose"},
           .operands = Operands::targets},
};

constexpr Runner googletest_row{
    .options = {.switches = "--gtest_shuffle --gtest_brief --gtest_print_time --gtest_fail_fast",
                .values = "--gtest_output --gtest_color --gtest_random_seed --gtest_brief --gtest_print_time "
                          "--gtest_shuffle --gtest_repeat",
                .selecting = "--gtest_filter --gtest_also_run_disabled_tests"},
    .counts = "Run it without --gtest_brief, or record the report of --gtest_output: --report."};

// Options with a value that leaves every test in.
struct HarmlessOption {
  std::string_view flag, value;
};
constexpr std::array harmless_options{HarmlessOption{"-p", "no:cacheprovider"},
                                      HarmlessOption{"-p", "no:warnings"},
                                      HarmlessOption{"-p", "no:randomly"},
                                      HarmlessOption{"-p", "test*.py"},
                                      HarmlessOption{"--rootdir", "."},
                                      HarmlessOption{"--confcutdir", "."},
                                      HarmlessOption{"-t", "."},
                                      HarmlessOption{"--prefix", "."}};

// Operands that select no tests: `npm run test`, `vitest run`, `unittest discover`, `bazel test //...`.
constexpr std::string_view leading_operands = "test t tst nextest run run-script discover //...";

// Options that leave tests out, or change which tests there are, rather than name those that run.
constexpr std::string_view excluding_options =
    "--deselect --ignore --ignore-glob -E -LE --exclude-regex --label-exclude --exclude --skip -skip --invert -x "
    "--exclude-task --exclude-group -DexcludedGroups --test-skip-pattern --exclude-pattern -Dsurefire.excludes -c -o "
    "--override-ini --rootdir --confcutdir --config --config-file --configuration -exec -overlay --noconftest "
    "-test.skip --testPathIgnorePatterns --testrunner --filterset";

// The name in a selecting argument: the value, for a node id its last part.
std::string named_by(std::string_view option, std::string_view value, const Runner& row) {
  if (holds_word(excluding_options, option) || (option == "-p" && row.programs.starts_with("pytest"))) return {};
  if (value.empty()) return std::string(option.substr(std::min(option.find_first_not_of('-'), option.size())));
  if (value.starts_with("not ") || value[0] == '!' || value[0] == '-' || value.find(" not ") != std::string_view::npos)
    return {};
  const std::size_t node = value.rfind("::");
  return std::string(node == std::string_view::npos ? value : value.substr(node + 2));
}

bool is_option(std::string_view word) { return word.size() > 1 && word[0] == '-'; }

void note_selection(const Runner& row, std::string argument, std::string_view option, std::string_view value,
                    Arguments& found) {
  if (found.selection.argument.empty()) found.selection = {std::move(argument), named_by(option, value, row)};
}

void note_option(const Runner& row, const Option& option, const std::string& word, Arguments& found) {
  const bool harmless = std::ranges::any_of(harmless_options, [&](const HarmlessOption& one) {
    return one.flag == option.flag && one.value == option.value;
  });
  if (harmless) return;
  const bool file = option.flag == "--manifest-path";
  switch (option.effect) {
    case Effect::none: return;
    case Effect::unknown: return found.note_unknown(word);
    case Effect::path: return found.operands.push_back(option.value);
    case Effect::folder:
      return found.enter(file ? std::filesystem::path(option.value).parent_path().string() : option.value);
    case Effect::selects:
      return note_selection(row, option.words == 2 ? word + " " + option.value : word, option.flag, option.value,
                            found);
  }
}

bool is_leading(const Runner& row, std::string_view word) {
  const bool toolchain = word.starts_with('+') && is_plain(word.substr(1), "-_.");  // cargo +nightly test
  return toolchain || holds_word(leading_operands, word) || is_subcommand(row, word);
}

void note_operand(const Runner& row, const std::string& word, Arguments& found) {
  const bool understood = !word.empty() && word[0] != '@' && word[0] != '+';
  const bool by_name = row.operands == Operands::any || word.find("::") != std::string::npos;
  if (!understood || row.operands == Operands::none || (row.operands == Operands::targets && !is_plain(word, "-_./"))) {
    found.note_unknown(word);
  } else if (by_name && row.operands != Operands::targets) {
    note_selection(row, word, "", word, found);
  } else {
    found.operands.push_back(word);
  }
}

}  // namespace

const Runner* runner_of(std::string_view name) {
  for (const Runner& row : runner_rows) {
    if (holds_word(row.programs, name)) return &row;
  }
  return nullptr;
}

const Runner& googletest() { return googletest_row; }

bool is_subcommand(const Runner& runner, std::string_view argument) {
  return holds_word(runner.subcommands, argument.starts_with("test:") ? "test" : argument);
}

std::string counts_advice(const Runner* runner) {
  if (runner != nullptr && !runner->counts.empty()) return std::string(runner->counts);
  return "Configure it to write JUnit XML, and record the file with --report.";
}

void read_arguments(const Runner& row, std::span<const std::string> words, Arguments& found) {
  bool leading = true;
  for (std::size_t used = 1; !words.empty(); words = words.subspan(used)) {
    used = 1;
    if (words[0] == "--") continue;
    if (is_option(words[0])) {
      const Option option = shell::read_option(row.options, words);
      used = option.words;
      note_option(row, option, words[0], found);
    } else if (!leading || !is_leading(row, words[0])) {
      leading = false;
      note_operand(row, words[0], found);
    }
  }
}

}  // namespace muniment::evidence::completion
