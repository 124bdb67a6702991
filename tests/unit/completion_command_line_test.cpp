#include "evidence/completion/text/command_line.hpp"

#include <gtest/gtest.h>

#include "evidence/completion/shell_script.hpp"

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
  EXPECT_EQ(program_of({"uv", "run", "--with", "x", "pytest"}), Program::runner);
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
                             "pytest\necho '2 passed'"}) {
    EXPECT_FALSE(kind_of_shell(script).direct) << script;
  }
  EXPECT_FALSE(kind_of_shell("pytest;" + std::string(script_commands_max, ';')).direct);
}

TEST(CommandLine, AWrapperThatTakesALineOfItsOwnIsNotDirect) {
  const auto direct = [](std::vector<std::string> argv) { return kind_of(argv, {}).direct; };
  EXPECT_TRUE(direct({"pytest", "-q", "|", "cat"}));
  EXPECT_TRUE(direct({"env", "-i", "CI=1", "time", "npx", "--yes", "jest"}));
  EXPECT_FALSE(direct({"env", "-Secho 2 passed in 0.01s", "pytest"}));
  EXPECT_FALSE(direct({"env", "-iS", "echo 2 passed", "pytest"}));
  EXPECT_FALSE(direct({"env", "--split-string=echo 2 passed", "pytest"}));
  EXPECT_FALSE(direct({"npx", "-c", "pytest"}));
  EXPECT_FALSE(direct({"npm", "exec", "--call=echo 2 passed", "jest"}));
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

TEST(CommandLine, AnOperandAfterASwitchSelectsTests) {
  const auto selected = [](std::vector<std::string> argv) { return selection_of(kind_of(argv, {})).argument; };
  EXPECT_EQ(selected({"pytest", "-v", "tests/test_a.py::test_one"}), "tests/test_a.py::test_one");
  EXPECT_EQ(selected({"pytest", "-q", "tests/test_easy.py"}), "tests/test_easy.py");
  EXPECT_EQ(selected({"pytest", "--color", "tests/test_a.py::test_one"}), "tests/test_a.py::test_one");
  EXPECT_EQ(selected({"go", "test", "-v", "./pkg/easy"}), "./pkg/easy");
  EXPECT_EQ(selected({"pytest", "-q", "tests"}), "");
  EXPECT_EQ(selected({"pytest", "--cov-config", "sub/folder"}), "") << "the value of an option";
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
