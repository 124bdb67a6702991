#include "evidence/completion/text/command_line.hpp"

#include <gtest/gtest.h>

#include "evidence/shell/script.hpp"

namespace muniment::evidence::completion {
namespace {

Program program_of(std::vector<std::string> argv, std::vector<std::string> runners = {}) {
  return kind_of(argv, runners).program;
}
CommandKind kind_of_shell(std::string script) {
  return kind_of(std::vector<std::string>{"bash", "-c", std::move(script)}, {});
}

TEST(CommandLine, RunnersAreKnownByTheirNameOrTheirSubcommand) {
  EXPECT_EQ(program_of({"pytest", "-q"}), Program::runner);
  EXPECT_EQ(program_of({"/usr/bin/ctest", "--test-dir", "build"}), Program::runner);
  EXPECT_EQ(program_of({"cargo", "test", "--all"}), Program::runner);
  EXPECT_EQ(program_of({"cargo", "+nightly", "test"}), Program::runner);
  EXPECT_EQ(program_of({"go", "test", "./..."}), Program::runner);
  EXPECT_EQ(program_of({"npm", "run", "test:unit"}), Program::runner);
  EXPECT_EQ(program_of({"node", "--test"}), Program::runner);
  EXPECT_EQ(program_of({"make", "-j4", "check"}), Program::runner);
  EXPECT_EQ(program_of({"meson", "test", "-C", "build"}), Program::runner);
}

TEST(CommandLine, APythonModuleOrScriptCanBeARunner) {
  EXPECT_EQ(program_of({"python3", "-m", "pytest"}), Program::runner);
  EXPECT_EQ(program_of({"python", "-W", "ignore", "-m", "unittest"}), Program::runner);
  EXPECT_EQ(program_of({"python", "manage.py", "test", "billing"}), Program::runner);
  EXPECT_EQ(program_of({"python", "./tests/runtests.py"}), Program::runner);
  EXPECT_EQ(program_of({"python", "-m", "coverage", "run", "-m", "pytest"}), Program::runner);
  EXPECT_EQ(program_of({"python", "-m", "pip", "install", "pytest"}), Program::reader);
  EXPECT_EQ(program_of({"python", "fake_pytest.py"}), Program::unknown);
}

TEST(CommandLine, WrappersAreLookedThrough) {
  EXPECT_EQ(program_of({"env", "CI=1", "pytest"}), Program::runner);
  EXPECT_EQ(program_of({"timeout", "-k", "5", "60", "pytest"}), Program::runner);
  EXPECT_EQ(program_of({"poetry", "run", "pytest"}), Program::runner);
  EXPECT_EQ(program_of({"uv", "run", "--group", "x", "pytest"}), Program::runner);
  EXPECT_EQ(program_of({"npx", "jest"}), Program::runner);
  EXPECT_EQ(program_of({"nice", "-n", "5", "env", "A=b", "timeout", "9", "cargo", "test"}), Program::runner);
  EXPECT_EQ(program_of({"env", "CI=1", "echo", "pytest"}), Program::printer);
}

TEST(CommandLine, WrappersNestOnlySoDeep) {
  std::vector<std::string> argv(static_cast<std::size_t>(wrappers_max) - 1, "nohup");
  argv.emplace_back("pytest");
  EXPECT_EQ(program_of(argv), Program::runner);
  argv.insert(argv.begin(), 2, "nohup");
  EXPECT_EQ(program_of(argv), Program::unknown);
}

TEST(CommandLine, PrintersAndReadersNeverRunTests) {
  EXPECT_EQ(program_of({"echo", "pytest"}), Program::printer);
  EXPECT_EQ(program_of({"true"}), Program::printer);
  EXPECT_EQ(program_of({"/bin/printf", "3 passed"}), Program::printer);
  EXPECT_EQ(program_of({"cat", "results.xml"}), Program::reader);
  EXPECT_EQ(program_of({"python3", "-c", "print('3 passed')"}), Program::printer);
  EXPECT_EQ(program_of({"node", "-e", "console.log('ok')"}), Program::printer);
}

TEST(CommandLine, ARunnerThatOnlyListsOrHelpsRunsNothing) {
  EXPECT_EQ(program_of({"pytest", "--collect-only"}), Program::lister);
  EXPECT_EQ(program_of({"pytest", "--version"}), Program::lister);
  EXPECT_EQ(program_of({"ctest", "-N"}), Program::lister);
  EXPECT_EQ(program_of({"make", "-n", "test"}), Program::lister);
  EXPECT_EQ(program_of({"cargo", "test", "--no-run"}), Program::lister);
}

TEST(CommandLine, AShellsScriptIsReadCommandByCommand) {
  EXPECT_EQ(kind_of_shell("cd src && pytest -q").program, Program::runner);
  EXPECT_FALSE(kind_of_shell("cd src && pytest -q").masked);
  EXPECT_EQ(kind_of_shell("echo 'pytest && cargo test'").program, Program::printer);
  EXPECT_EQ(kind_of_shell("# pytest\ntrue").program, Program::printer);
  EXPECT_EQ(kind_of_shell("true || pytest").program, Program::unknown);
}

TEST(CommandLine, AnExitStatusThatIsNotTheRunnersIsMasked) {
  for (const char* script : {"pytest || true", "pytest; exit 0", "pytest | tee log", "pytest\necho done", "pytest &"}) {
    EXPECT_TRUE(kind_of_shell(script).masked) << script;
    EXPECT_EQ(kind_of_shell(script).program, Program::runner) << script;
  }
  EXPECT_FALSE(kind_of_shell("pytest > log 2>&1").masked);
  EXPECT_FALSE(kind_of_shell("set -e; pytest").masked);
}

TEST(CommandLine, AScriptThatIsOneCommandIsDirect) {
  for (const char* script :
       {"pytest", "pytest -q 2>&1", "pytest 2>/dev/null", "pytest 2>>log", "cd src && pytest -q",
        "set -e; cd a; pytest", "set -euo pipefail\ncd 'a b'\nexec pytest -q\n", "CI=1 pytest -k 'a > b | c; d'",
        "export CI=1 && pytest", "A=1; pytest $ARGS # | tee log", "cd a && bash -c 'pytest -q'",
        "env CI=1 nice -n 5 pytest;", "pytest \"a\\`b\" < /dev/null"}) {
    EXPECT_TRUE(kind_of_shell(script).direct) << script;
    EXPECT_EQ(kind_of_shell(script).program, Program::runner) << script;
  }
}

TEST(CommandLine, AScriptThatCanChangeTheRunnersOutputIsNotDirect) {
  for (const char* script : {"pytest -q >/dev/null; echo '2 passed in 0.01s'",
                             "pytest -q | grep -o '1 passed in.*'",
                             "pytest && echo done",
                             "pytest || true",
                             "pytest | tee log",
                             "set -o pipefail; pytest | tee log",
                             "pytest > log",
                             "pytest >>log",
                             "pytest 1>log",
                             "pytest 01>log",
                             "pytest '2'>log",
                             "pytest &>log",
                             "pytest >&2",
                             "pytest -n2>log",
                             "pytest &",
                             "pytest 2>&1 >/dev/null",
                             "echo '2 passed' && pytest",
                             "trap 'echo 2 passed' EXIT; pytest",
                             "pytest $(echo x >/proc/1/fd/1)",
                             "pytest \"`echo x`\"",
                             "pytest \\>& echo '2 passed in 0.01s'",
                             "pytest \\>&& echo '2 passed in 0.01s'",
                             "pytest $'a\\'' ; echo 2 passed # '",
                             "pytest <<X\n2 passed\nX",
                             "set () (echo 2 passed); set; pytest",
                             "bash -c 'pytest; echo 2 passed'",
                             "cd a & pytest",
                             "cd a || pytest",
                             "source fake && pytest",
                             "source venv/bin/activate; echo 2 passed; pytest",
                             "pytest\necho '2 passed'"}) {
    EXPECT_FALSE(kind_of_shell(script).direct) << script;
  }
  std::string long_script;
  for (std::size_t i = 0; i < shell::script_commands_max; ++i) long_script += "cd a;";
  EXPECT_FALSE(kind_of_shell(long_script + "pytest").direct);
}

std::string unknown_in(std::vector<std::string> argv) { return kind_of(argv, {}).read.unknown; }

TEST(CommandLine, EveryWordIsUnderstood) {
  const std::vector<std::vector<std::string>> lines{
      {"pytest"},
      {"pytest", "-xvs", "-n4", "--tb=short", "-p", "no:cacheprovider", "-rA", "--junitxml=out.xml", "tests"},
      {"pytest", "-q", "--cov", "--cov-report", "term", "--rootdir", "."},
      {"python3", "-Wignore", "-X", "dev", "-m", "pytest", "-q"},
      {"python", "-m", "coverage", "run", "--source", "src", "-m", "pytest", "-q"},
      {"python", "-m", "unittest", "discover", "-v", "-s", "tests"},
      {"env", "-i", "CI=1", "DATABASE_URL=x", "time", "npx", "--yes", "jest"},
      {"timeout", "-k", "5", "60", "nice", "-n", "5", "cargo", "+nightly", "test", "--", "--nocapture"},
      {"go", "test", "-race", "-count=1", "-v", "./..."},
      {"ctest", "--test-dir", "build", "-j8", "--output-on-failure"},
      {"meson", "test", "-C", "build", "--print-errorlogs"},
      {"make", "-j4", "-C", "build", "all", "check"},
      {"npm", "run", "test:unit", "--", "--ci"},
      {"mvn", "-B", "-q", "clean", "verify"},
      {"build/tests", "--gtest_output=xml:out.xml", "--gtest_color=no"},
      {"prove", "-rv", "t"},
      {"bash", "-euc", "cd src && PYTHONPATH=. pytest -q 2>&1 < /dev/null"},
      {"sh", "-c", "set -e; . .venv/bin/activate && pytest -q"}};
  for (const auto& line : lines) {
    EXPECT_EQ(unknown_in(line), "") << line.front() << " … " << line.back();
    EXPECT_EQ(program_of(line), Program::runner) << line.front() << " … " << line.back();
  }
}

TEST(CommandLine, AWordThatIsNotUnderstoodIsNamed) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> lines{
      {{"pytest", "-q", "--collect-in-virtualenv"}, "--collect-in-virtualenv"},
      {{"pytest", "-qz", "tests"}, "-qz"},
      {{"pytest", "@args"}, "@args"},
      {{"pytest", "--junitxml", "-q"}, "--junitxml"},
      {{"pytest", "--tb=./x.py"}, "--tb=./x.py"},
      {{"python", "-O", "-m", "pytest"}, "-O"},
      {{"python", "-X", "pycache_prefix=/tmp/x", "-m", "pytest"}, "-X"},
      {{"env", "-Secho 2 passed in 0.01s", "pytest"}, "-Secho 2 passed in 0.01s"},
      {{"env", "--split-string=echo 2 passed", "pytest"}, "--split-string=echo 2 passed"},
      {{"env", "PATH=/tmp/x", "pytest"}, "PATH=/tmp/x"},
      {{"env", "PYTEST_ADDOPTS=-k x", "pytest"}, "PYTEST_ADDOPTS=-k x"},
      {{"npx", "-c", "pytest"}, "-c"},
      {{"npx", "-p", "x", "jest"}, "-p"},
      {{"npm", "exec", "--call=echo 2 passed", "jest"}, "--call=echo 2 passed"},
      {{"sudo", "pytest"}, "sudo"},
      {{"uv", "run", "--with", "./x", "pytest"}, "--with"},
      {{"make", "-f", "x.mk", "test"}, "-f"},
      {{"make", "test", "PYTEST=true"}, "PYTEST=true"},
      {{"make", "--eval=test:", "test"}, "--eval=test:"},
      {{"make", "-i", "test"}, "-i"},
      {{"go", "test", "-overlay=x.json", "--run=X", "./..."}, ""},
      {{"go", "test", "-toolexec=x", "./..."}, "-toolexec=x"},
      {{"cargo", "test", "--config", "x"}, "--config"},
      {{"meson", "test", "--wrapper=true"}, "--wrapper=true"},
      {{"prove", "--exec", "true", "t"}, "--exec"},
      {{"prove", "-Ilib", "t"}, "-Ilib"},
      {{"node", "--require=./x.js", "--test"}, "--require=./x.js"},
      {{"jest", "--reporters", "./x.js"}, "--reporters"},
      {{"ctest", "build"}, "build"},
      {{"bash", "-ic", "pytest"}, "-ic"},
      {{"bash", "--rcfile", "x", "-c", "pytest"}, "--rcfile"},
      {{"bash", "-c", "pytest $ARGS"}, "$ARGS"},
      {{"bash", "-c", "pytest test_*.py"}, "test_*.py"},
      {{"bash", "-c", "cd - && pytest"}, "cd"},
      {{"bash", "-c", "export \"PYTEST_ADD\"\"OPTS=-k x\"; pytest"}, "PYTEST_ADDOPTS=-k x"},
      {{"bash", "-c", "HOME=/tmp/x pytest"}, "HOME=/tmp/x"}};
  for (const auto& [line, word] : lines) EXPECT_EQ(unknown_in(line), word) << line.front() << " … " << line.back();
}

TEST(CommandLine, APolicyThatNamesTheCommandVouchesForItsWords) {
  const std::vector<std::string> line{"npm", "--prefix", "web", "--script-shell=x", "test", "-u"};
  EXPECT_EQ(kind_of(line, {}).read.unknown, "--script-shell=x");
  const std::vector<std::string> runners{"npm --prefix web --script-shell=x test"};
  EXPECT_EQ(kind_of(line, runners).read.unknown, "-u") << "not among the words that the policy names";
  EXPECT_EQ(
      kind_of(std::vector<std::string>{"scripts/test", "--any"}, std::vector<std::string>{"scripts/test"}).read.unknown,
      "");
}

TEST(CommandLine, TheFolderOfTheRunIsRead) {
  const auto folder = [](std::vector<std::string> argv) { return kind_of(argv, {}).read.folder; };
  EXPECT_EQ(folder({"bash", "-c", "cd a && cd b && make -C c test"}), "a/b/c");
  EXPECT_EQ(folder({"env", "-C", "a", "npm", "--prefix=b", "test"}), "a/b");
  EXPECT_EQ(folder({"cargo", "test", "--manifest-path", "a/Cargo.toml"}), "a");
  EXPECT_EQ(folder({"bash", "-c", "cd a; cd /b; pytest"}), "/b");
}

TEST(CommandLine, ThePrograms) {
  const auto programs = [](std::vector<std::string> argv) { return kind_of(argv, {}).read.programs; };
  EXPECT_EQ(programs({"env", "/tmp/x/nice", "pytest"}), (std::vector<std::string>{"env", "/tmp/x/nice", "pytest"}));
  EXPECT_EQ(programs({"bash", "-c", "exec timeout 5 python3 -m pytest"}),
            (std::vector<std::string>{"bash", "timeout", "python3"}));
  EXPECT_EQ(programs({"bash", "deploy.sh", "now"}), (std::vector<std::string>{"bash", "./deploy.sh"}));
  EXPECT_EQ(programs({"deno", "test"}), std::vector<std::string>{"deno"});
  EXPECT_EQ(programs({"python3", "runtests.py"}), (std::vector<std::string>{"python3", "./runtests.py"}));
  EXPECT_EQ(kind_of_shell("cd a && . venv/bin/activate && pytest").environment, "a/venv/bin");
}

TEST(CommandLine, AssignmentsRunNothing) {
  EXPECT_EQ(kind_of_shell("A=1 && echo '2 passed'").program, Program::printer);
}

TEST(CommandLine, APolicyNamesFurtherRunners) {
  EXPECT_EQ(program_of({"echo", "scripts/test", "2 passed in 0.01s"}, {"scripts/test"}), Program::printer);
  EXPECT_EQ(program_of({"cat", "scripts/test"}, {"scripts/test"}), Program::reader);
  EXPECT_EQ(program_of({"scripts/test", "unit"}), Program::unknown);
  EXPECT_EQ(program_of({"scripts/test", "unit"}, {"scripts/test"}), Program::runner);
  EXPECT_EQ(program_of({"bash", "scripts/test"}, {"scripts/test"}), Program::runner);
  EXPECT_EQ(program_of({"make", "selftest"}, {"make selftest"}), Program::runner);
  EXPECT_EQ(program_of({"make", "all"}, {"make selftest"}), Program::unknown);
}

TEST(CommandLine, AnArgumentSelectsTests) {
  const auto selected = [](std::vector<std::string> argv) { return kind_of(argv, {}).read.selection.argument; };
  EXPECT_EQ(selected({"pytest", "-v", "tests/test_a.py::test_one"}), "tests/test_a.py::test_one");
  EXPECT_EQ(selected({"pytest", "--color", "yes", "tests/test_a.py::test_one"}), "tests/test_a.py::test_one");
  EXPECT_EQ(selected({"pytest", "-qk", "login"}), "-qk login");
  EXPECT_EQ(selected({"pytest", "-klogin"}), "-klogin");
  EXPECT_EQ(selected({"go", "test", "-run=TestA", "./..."}), "-run=TestA");
  EXPECT_EQ(selected({"cargo", "test", "login"}), "login");
  EXPECT_EQ(selected({"make", "clean", "test"}), "");
  EXPECT_EQ(selected({"pytest", "-q", "tests"}), "");
}

TEST(CommandLine, Operands) {
  const auto operands = [](std::vector<std::string> argv) { return kind_of(argv, {}).read.operands; };
  EXPECT_EQ(operands({"pytest", "-q", "tests/a", "--maxfail", "3", "b"}), (std::vector<std::string>{"tests/a", "b"}));
  EXPECT_EQ(operands({"go", "test", "-v", "./pkg/easy"}), std::vector<std::string>{"./pkg/easy"});
  EXPECT_EQ(operands({"python", "-m", "unittest", "discover", "-s", "tests"}), std::vector<std::string>{"tests"});
  EXPECT_EQ(operands({"python", "-m", "unittest"}), std::vector<std::string>{});
  EXPECT_EQ(operands({"make", "-j4", "clean", "check"}), (std::vector<std::string>{"clean", "check"}));
}

TEST(CommandLine, HostileVectorsHaveAKind) {
  EXPECT_EQ(program_of({}), Program::unknown);
  EXPECT_EQ(program_of({""}), Program::unknown);
  EXPECT_EQ(program_of({"", "", ""}), Program::unknown);
  EXPECT_EQ(program_of({"env"}), Program::unknown);
  EXPECT_EQ(program_of({"bash", "-c"}), Program::unknown);
  EXPECT_EQ(program_of({"npm", ""}), Program::unknown);
  EXPECT_EQ(kind_of_shell("").program, Program::unknown);
  EXPECT_EQ(kind_of_shell("'\"\\").program, Program::unknown);
  EXPECT_EQ(kind_of_shell(std::string(script_bytes_max + 1, 'a')).program, Program::unknown);
  EXPECT_EQ(kind_of_shell("bash -c 'bash -c \"bash -c pytest\"'").program, Program::runner);
}

}  // namespace
}  // namespace muniment::evidence::completion
