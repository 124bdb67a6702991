// Tests of command lines: their effect, and how they ended.
#include <gtest/gtest.h>

#include <string>

#include "base/json/json.hpp"
#include "evidence/run_judge/bare_words.hpp"
#include "evidence/run_judge/checks.hpp"
#include "evidence/run_judge/outcome.hpp"
#include "evidence/run_judge/tool_calls.hpp"
#include "evidence/shell/script.hpp"

namespace muniment::evidence::run_judge {
namespace {

std::string checks_of(std::string_view line) {
  constexpr std::string_view names[checks] = {"test",   "build", "lint",    "types", "deploy",
                                              "commit", "push",  "install", "run"};
  std::string text;
  for (const CheckRun& run : effects_of_line(line).checks) {
    text += (text.empty() ? "" : " ") + std::string(names[static_cast<std::size_t>(run.check)]);
  }
  return text;
}

std::string files_of(const CommandEffects& effects) {
  std::string text;
  for (const FileEffect& file : effects.files)
    text += (text.empty() ? "" : " ") + std::string(file.deleted ? "-" : "+") + file.path;
  return text;
}

CheckEnd ended(std::string_view line, std::string_view output, std::optional<std::int64_t> exit_code = std::nullopt) {
  const CommandEffects effects = effects_of_line(line);
  if (effects.checks.empty()) return {};
  Ending ending;
  ending.exit_code = exit_code;
  ending.output = output;
  return end_of(effects.checks.back(), ending);
}

TEST(Commands, RunnersOfTestsAreKnownBehindWhatWrapsThem) {
  for (const char* line : {"pytest",
                           "python -m pytest -x tests",
                           "cd /repo && python3 -m pytest tests/test_a.py",
                           "PYTHONPATH=. pytest",
                           "timeout 60 pytest",
                           "poetry run pytest",
                           "npx jest",
                           "npm test",
                           "npm run test:unit",
                           "go test ./...",
                           "cargo test",
                           "ctest --output-on-failure",
                           "make check",
                           "ninja -C build test",
                           "python manage.py test app",
                           "./tests/runtests.py admin",
                           "python tests/runtests.py",
                           "bin/test sympy/core",
                           "node --test",
                           "bash -c 'cd x && pytest'",
                           "tox -e py311",
                           "mvn -q test",
                           "./gradlew test",
                           "python -m unittest discover",
                           "scripts/test --kinds unit"}) {
    EXPECT_EQ(checks_of(line), "test") << line;
  }
}

TEST(Commands, ACommandThatOnlyMentionsARunnerIsNoTest) {
  for (const char* line : {"echo pytest", "cat tests/test_a.py", "grep -rn pytest .", "ls tests", "which pytest",
                           "vim test_a.py", "echo 'All tests passed'", "pytest --version", "pytest --collect-only",
                           "git log --grep test", "# pytest", "find . -name 'test_*.py'"}) {
    EXPECT_EQ(checks_of(line), "") << line;
  }
  EXPECT_EQ(checks_of("pip install pytest"), "install");
}

TEST(Commands, OtherChecksHaveTheirSorts) {
  EXPECT_EQ(checks_of("make -j4"), "build");
  EXPECT_EQ(checks_of("cargo check"), "build");
  EXPECT_EQ(checks_of("npm run build"), "build");
  EXPECT_EQ(checks_of("ruff check ."), "lint");
  EXPECT_EQ(checks_of("npm run lint"), "lint");
  EXPECT_EQ(checks_of("mypy src"), "types");
  EXPECT_EQ(checks_of("npx tsc --noEmit"), "types");
  EXPECT_EQ(checks_of("kubectl apply -f x.yaml"), "deploy");
  EXPECT_EQ(checks_of("./deploy.sh production"), "deploy");
  EXPECT_EQ(checks_of("npm publish"), "deploy");
  EXPECT_EQ(checks_of("git add -A && git commit -m 'pytest passes'"), "commit");
  EXPECT_EQ(checks_of("git push origin main"), "push");
  EXPECT_EQ(checks_of("npm ci"), "install");
  EXPECT_EQ(checks_of("python reproduce.py"), "run");
}

TEST(Commands, FilesThatALineWritesAreFound) {
  EXPECT_EQ(files_of(effects_of_line("echo x > a.txt")), "+a.txt");
  EXPECT_EQ(files_of(effects_of_line("pytest 2>&1 | tee out.log")), "+out.log");
  EXPECT_EQ(files_of(effects_of_line("pytest >/dev/null 2>&1")), "");
  EXPECT_EQ(files_of(effects_of_line("sed -i 's/a/b/' src/a.py")), "+src/a.py");
  EXPECT_EQ(files_of(effects_of_line("rm -rf build/x.o")), "-build/x.o");
  EXPECT_EQ(files_of(effects_of_line("mv a.py b.py")), "-a.py +b.py");
  EXPECT_EQ(files_of(effects_of_line("cat <<'EOF' > new.py\nrm -rf x\nprint(1) > y\nEOF\nls")), "+new.py");
  EXPECT_TRUE(effects_of_line("git checkout -- src").changes_tree);
  EXPECT_FALSE(effects_of_line("git status").changes_tree);
  EXPECT_TRUE(effects_of_line("black .").changes_tree);
  EXPECT_FALSE(effects_of_line("black --check .").changes_tree);
}

TEST(Commands, AHereDocumentIsData) { EXPECT_EQ(checks_of("cat <<EOF\npytest\nEOF"), ""); }

TEST(Commands, TheStatusOfAPipelineIsItsLastCommands) {
  EXPECT_TRUE(effects_of_line("cd x && pytest").checks[0].status_speaks);
  EXPECT_TRUE(effects_of_line("pytest && echo ok").checks[0].status_speaks);
  EXPECT_FALSE(effects_of_line("pytest | tail -5").checks[0].status_speaks);
  EXPECT_FALSE(effects_of_line("pytest || true").checks[0].status_speaks);
  EXPECT_FALSE(effects_of_line("pytest; echo done").checks[0].status_speaks);
  EXPECT_FALSE(effects_of_line("pytest &").checks[0].status_speaks);
}

TEST(Commands, ALineHasAtMostSoManyCommands) {
  std::string line;
  for (std::size_t i = 0; i < shell::script_commands_max; ++i) line += "pytest;";
  EXPECT_EQ(effects_of_line(line).checks.size(), shell::script_commands_max);
  EXPECT_EQ(effects_of_line(line + "pytest").checks.size(), shell::script_commands_max);
}

TEST(Commands, ShellsInShellsEndAtADepth) {
  std::string line = "pytest";
  for (int i = 0; i < 3; ++i) line = "bash -c \"" + line + "\"";
  EXPECT_NO_FATAL_FAILURE(effects_of_line(line));
  std::string deep;
  for (int i = 0; i < 5'000; ++i) deep += "bash -c ";
  EXPECT_NO_FATAL_FAILURE(effects_of_line(deep));
}

TEST(Outcomes, SummariesOfRunnersAreRead) {
  EXPECT_EQ(ended("pytest | tail", "===== 12 passed in 0.10s =====").outcome, Outcome::passed);
  EXPECT_EQ(ended("pytest | tail", "===== 1 failed, 12 passed, 2 warnings in 0.10s =====").outcome, Outcome::failed);
  EXPECT_EQ(ended("pytest", "===== no tests ran in 0.01s =====").outcome, Outcome::no_tests);
  EXPECT_EQ(ended("./tests/runtests.py", "Ran 12 tests in 0.020s\n\nOK\nDestroying test database").outcome,
            Outcome::passed);
  EXPECT_EQ(ended("./tests/runtests.py", "Ran 12 tests in 0.020s\n\nFAILED (failures=1, errors=2)").counts->failed, 3);
  EXPECT_EQ(ended("python -m unittest", "Ran 0 tests in 0.000s\n\nOK").outcome, Outcome::no_tests);
  EXPECT_EQ(ended("cargo test", "test result: FAILED. 4 passed; 1 failed; 0 ignored; 0 measured").outcome,
            Outcome::failed);
  EXPECT_EQ(ended("npx jest", "Tests:       1 failed, 2 skipped, 9 passed, 12 total").counts->passed, 9);
  EXPECT_EQ(ended("go test ./...", "ok  \tx/y\t0.1s\nFAIL\tx/z\t0.2s\nFAIL").outcome, Outcome::failed);
  EXPECT_EQ(ended("go test ./...", "ok  \tx/y\t0.1s").outcome, Outcome::passed);
  EXPECT_EQ(ended("ctest", "97% tests passed, 3 tests failed out of 110").counts->passed, 107);
  EXPECT_EQ(ended("mvn test", "Tests run: 12, Failures: 0, Errors: 0, Skipped: 2").counts->passed, 10);
  EXPECT_EQ(ended("bin/test", "====== tests finished: 38 passed, 1 failed, in 0.78 seconds ======").outcome,
            Outcome::failed);
  EXPECT_EQ(ended("rspec", "12 examples, 1 failure").outcome, Outcome::failed);
}

TEST(Outcomes, AnExitStatusThatContradictsTheReportDecidesNothing) {
  EXPECT_EQ(ended("pytest", "===== 12 passed in 0.10s =====", 1).outcome, Outcome::unknown);
  EXPECT_EQ(ended("pytest", "===== 1 failed in 0.10s =====", 0).outcome, Outcome::failed);
}

TEST(Outcomes, CountsThatAnotherCommandCanHavePrintedDecideNothing) {
  const std::string_view counts = "2 passed in 0.01s";
  for (const char* line : {"pytest -q >/dev/null; echo '2 passed in 0.01s'", "pytest -q | grep -o '2 passed in.*'",
                           "pytest -q | sed s/failed/passed/ | tail -3", "pytest -q &> log; printf '2 passed in 0.01s'",
                           "pytest > log; cat good.txt", "pytest; sed -n 1p good.txt",
                           "bash -c \"pytest >/dev/null; echo '2 passed in 0.01s'\""}) {
    EXPECT_EQ(ended(line, counts, 0).outcome, Outcome::unknown) << line;
    EXPECT_EQ(ended(line, "1 failed, 1 passed in 0.01s", 0).outcome, Outcome::failed) << line;
  }
  for (const char* line :
       {"pytest 2>&1 | tail -20", "pytest | tee log | tail -n 5", "pytest 2>/dev/null; echo \"exit: $?\"",
        "pytest > log 2>&1; tail -n 20 log", "cat test_a.py; pytest; git status", "pytest && echo 'All tests passed'",
        "pytest >/dev/null && echo '2 passed in 0.01s'"}) {
    EXPECT_EQ(ended(line, counts, 0).outcome, Outcome::passed) << line;
  }
}

TEST(Outcomes, WithoutAReportTheExitStatusDecides) {
  EXPECT_EQ(ended("pytest -q", "", 0).outcome, Outcome::passed);
  EXPECT_EQ(ended("pytest -q", "", 2).outcome, Outcome::failed);
  EXPECT_EQ(ended("pytest | tail", "", 0).outcome, Outcome::unknown);
  EXPECT_EQ(ended("pytest", "").outcome, Outcome::unknown);
}

TEST(Outcomes, ExitCodesInTextAreFoundAtItsEnds) {
  EXPECT_EQ(exit_code_in("Exit code 1\nboom"), 1);
  EXPECT_EQ(exit_code_in("ok\n[Command finished with exit code 0]"), 0);
  EXPECT_EQ(exit_code_in("x\n[The command completed with exit code 2.]\n[Current working directory: /x]"), 2);
  EXPECT_EQ(exit_code_in("<returncode>1</returncode>\n<output>x</output>"), 1);
  EXPECT_EQ(exit_code_in("a\n[Command finished with exit code 1]\n" + std::string(1'000, 'x')), std::nullopt);
  EXPECT_EQ(exit_code_in("nothing"), std::nullopt);
}

CallEffects called(std::string_view name, std::string_view kind, std::string_view arguments) {
  const auto document = json::parse(arguments);
  EXPECT_TRUE(document.ok());
  return effects_of_call(name, kind, document->root(), {});
}

TEST(ToolCalls, ShellsOfAgentsAreRead) {
  EXPECT_EQ(called("Bash", "function", R"({"command":"pytest"})").effects.checks.size(), 1U);
  EXPECT_EQ(called("execute_bash", "function", R"({"command":"pytest"})").effects.checks.size(), 1U);
  EXPECT_EQ(called("shell", "function", R"({"command":["bash","-lc","pytest"]})").effects.checks.size(), 1U);
  EXPECT_EQ(called("python", "command", R"({"action":"python -m pytest"})").effects.checks.at(0).check, Check::test);
  EXPECT_EQ(called("bash", "command", R"({"code":"pytest"})").effects.checks.size(), 1U);
  EXPECT_EQ(called("mcp__box__run_command", "mcp", R"({"cmd":"pytest"})").effects.checks.size(), 1U);
}

TEST(ToolCalls, EditorsOfAgentsAreRead) {
  EXPECT_EQ(files_of(called("Write", "function", R"({"file_path":"/r/a.py","content":"pytest"})").effects), "+/r/a.py");
  EXPECT_EQ(files_of(called("str_replace_editor", "function", R"({"command":"str_replace","path":"/r/a.py"})").effects),
            "+/r/a.py");
  EXPECT_EQ(files_of(called("str_replace_editor", "function", R"({"command":"view","path":"/r/a.py"})").effects), "");
  EXPECT_EQ(files_of(called("Read", "function", R"({"file_path":"/r/a.py"})").effects), "");
  EXPECT_EQ(files_of(called("delete_file", "function", R"({"path":"a.py"})").effects), "-a.py");
  EXPECT_EQ(files_of(called("apply_patch", "function",
                            R"({"input":"*** Begin Patch\n*** Update File: a.py\n*** Delete File: b.py\n"})")
                         .effects),
            "+a.py -b.py");
  EXPECT_EQ(called("edit", "function", R"({"action":"edit 1:2\npytest\nend_of_edit"})").effects.checks.size(), 0U);
  EXPECT_EQ(files_of(called("execute_ipython_cell", "function", R"j({"code":"create_file('/r/x.py')"})j").effects),
            "+/r/x.py");
}

TEST(ToolCalls, TheLastWordOfAnAgentIsRead) {
  EXPECT_EQ(called("finish", "function", R"({"message":"All tests pass."})").said, "All tests pass.");
}

}  // namespace
}  // namespace muniment::evidence::run_judge
