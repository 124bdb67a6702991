// Tests of exec: recorded and omitted data; commands behave as without it.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "bridge/scrub.hpp"
#include "cli/exec/child_command.hpp"
#include "cli/exec/git.hpp"
#include "cli/exec/test_paths.hpp"
#include "cli/exec/tree_digest.hpp"
#include "support/temporary_folder.hpp"

namespace muniment::cli {
namespace {

std::vector<std::string> scrubbed(std::vector<std::string> arguments, std::size_t expected) {
  EXPECT_EQ(bridge::scrub_arguments(arguments), expected);
  return arguments;
}

TEST(Scrub, ObviousSecretsAreReplacedAndCounted) {
  using Words = std::vector<std::string>;
  EXPECT_EQ(scrubbed({"x", "--password=hunter2"}, 1), (Words{"x", "--password=[scrubbed]"}));
  EXPECT_EQ(scrubbed({"x", "--api-token", "abc", "y"}, 1), (Words{"x", "--api-token", "[scrubbed]", "y"}));
  EXPECT_EQ(scrubbed({"env", "AWS_SECRET_ACCESS_KEY=abc", "ls"}, 1),
            (Words{"env", "AWS_SECRET_ACCESS_KEY=[scrubbed]", "ls"}));
  EXPECT_EQ(scrubbed({"psql", "postgresql://ann:pw@db/x"}, 1), (Words{"psql", "postgresql://ann:[scrubbed]@db/x"}));
  EXPECT_EQ(scrubbed({"curl", "-H", "Authorization: Bearer abcdefghij"}, 1),
            (Words{"curl", "-H", "Authorization: Bearer [scrubbed]"}));
  EXPECT_EQ(scrubbed({"sh", "-c", "use ghp_0123456789abcdefghij now"}, 1), (Words{"sh", "-c", "use [scrubbed] now"}));
  EXPECT_EQ(scrubbed({"curl", "-H", "X-Api-Key: abc"}, 1), (Words{"curl", "-H", "X-Api-Key: [scrubbed]"}));
  EXPECT_EQ(
      scrubbed({"sh", "-c", "export A_TOKEN=abc; psql postgresql://ann:pw@db/x --password=pw"}, 3),
      (Words{"sh", "-c", "export A_TOKEN=[scrubbed]; psql postgresql://ann:[scrubbed]@db/x --password=[scrubbed]"}));
  EXPECT_EQ(scrubbed({"h?a=ghp_0123456789abcdefghij&b=ghp_0123456789abcdefghij"}, 2),
            (Words{"h?a=[scrubbed]&b=[scrubbed]"}));
}

TEST(Scrub, TheBodyOfAPrivateKeyAndThePasswordOfALogin) {
  using Words = std::vector<std::string>;
  std::string key = "a\n-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc=\n-----END RSA PRIVATE KEY-----\nb\n";
  EXPECT_EQ(bridge::scrub_text(key), 1U);
  EXPECT_EQ(key, "a\n-----BEGIN RSA PRIVATE KEY-----[scrubbed]-----END RSA PRIVATE KEY-----\nb\n");
  std::string cut = "-----BEGIN PRIVATE KEY-----\nMIIE\n";
  EXPECT_EQ(bridge::scrub_text(cut), 1U);
  EXPECT_EQ(cut, "-----BEGIN PRIVATE KEY-----[scrubbed]");
  std::string certificate = "-----BEGIN CERTIFICATE-----\nMIIE\n-----END CERTIFICATE-----\n";
  EXPECT_EQ(bridge::scrub_text(certificate), 0U);
  EXPECT_EQ(scrubbed({"/usr/bin/curl", "-u", "bob:pw", "https://x"}, 1),
            (Words{"/usr/bin/curl", "-u", "bob:[scrubbed]", "https://x"}));
  EXPECT_EQ(scrubbed({"sh", "-c", "curl -s -u bob:pw https://x"}, 1),
            (Words{"sh", "-c", "curl -s -u bob:[scrubbed] https://x"}));
  EXPECT_EQ(scrubbed({"docker", "run", "-u", "1000:1000", "x"}, 0), (Words{"docker", "run", "-u", "1000:1000", "x"}));
  EXPECT_EQ(scrubbed({"echo", "use a bearer token authentication"}, 0),
            (Words{"echo", "use a bearer token authentication"}));
}

TEST(Scrub, OrdinaryWordsStay) {
  const std::vector<std::string> plain = {"git",
                                          "commit",
                                          "-m",
                                          "turn the key = value map",
                                          "http://h:80/a@b",
                                          "--color=always",
                                          "task-12345678901234567890",
                                          "a=b",
                                          "show the basic usage",
                                          "x  y\n"};
  EXPECT_EQ(scrubbed(plain, 0), plain);
}

TEST(Scrub, ALineOfOutputKeepsItsWordsAndLosesItsSecrets) {
  const auto line = [](std::string text, std::size_t expected) {
    EXPECT_EQ(bridge::scrub_text(text), expected) << text;
    return text;
  };
  EXPECT_EQ(line("  export API_TOKEN=abc; run", 1), "  export API_TOKEN=[scrubbed]; run");
  EXPECT_EQ(line("Authorization: Bearer abc.def  ok", 1), "Authorization: Bearer [scrubbed]  ok");
  EXPECT_EQ(line("{\"password\": \"x\", \"password:\" \"y\"}", 1),
            "{\"password\": \"x\", \"password:\" \"[scrubbed]\"}");
  EXPECT_EQ(line("db password: hunter2", 1), "db password: [scrubbed]");
  EXPECT_EQ(line("two ghp_0123456789abcdefghij and ghp_0123456789abcdefghik", 2), "two [scrubbed] and [scrubbed]");
  EXPECT_EQ(line("API-KEY: x1 token: x2 key: x3", 2), "API-KEY: [scrubbed] token: [scrubbed] key: x3");
  EXPECT_EQ(line("KeyError: 'name' monkey: patched", 0), "KeyError: 'name' monkey: patched");
  EXPECT_EQ(line("", 0), "");
  EXPECT_EQ(line("nothing to see: here\t", 0), "nothing to see: here\t");
}

TEST(Scrub, OnlyAllowedVariablesAreKept) {
  const char* environment[] = {
      "PATH=/bin",      "GITHUB_TOKEN=x", "LC_ALL=C",   "MUNIMENT_DATABASE=postgresql://a:b@c/d",
      "MUNIMENT_KEY=k", "FOO=bar",        "HOME=/root", nullptr};
  std::vector<std::string> names;
  for (const auto& [name, value] : bridge::allowed_environment(environment)) names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{"HOME", "LC_ALL", "PATH"}));
}

std::string contents(int file) {
  std::string text(1 << 20, '\0');
  const ssize_t got = ::pread(file, text.data(), text.size(), 0);
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return text;
}

TEST(ChildCommand, BothStreamsAndTheExitCodeAreKept) {
  auto outcome = run_command({"sh", "-c", "echo out; echo err >&2; exit 7"}, 0);
  ASSERT_TRUE(outcome.ok());
  EXPECT_EQ(outcome->exit_code, 7);
  EXPECT_EQ(outcome->signal, 0);
  EXPECT_EQ(contents(outcome->stdout_file.get()), "out\n");
  EXPECT_EQ(contents(outcome->stderr_file.get()), "err\n");
}

TEST(ChildCommand, ASignalThatEndsItIsNamed) {
  auto outcome = run_command({"sh", "-c", "kill -TERM $$"}, 0);
  ASSERT_TRUE(outcome.ok());
  EXPECT_EQ(signal_name(outcome->signal), "SIGTERM");
}

TEST(ChildCommand, WhatCannotBeStartedAnswersAsAShellWould) {
  auto missing = run_command({"/nonexistent/program"}, 0);
  ASSERT_TRUE(missing.ok());
  EXPECT_EQ(missing->exit_code, 127);
  auto folder = run_command({"/tmp"}, 0);
  ASSERT_TRUE(folder.ok());
  EXPECT_EQ(folder->exit_code, 126);
}

TEST(ChildCommand, ASignalToTheRecorderReachesTheCommand) {
  const std::string script = "trap 'echo got it; exit 3' USR1; kill -USR1 $PPID; while :; do sleep 0.01; done";
  auto outcome = run_command({"sh", "-c", script}, 0);
  ASSERT_TRUE(outcome.ok());
  EXPECT_EQ(outcome->exit_code, 3);
  EXPECT_EQ(contents(outcome->stdout_file.get()), "got it\n");
}

TEST(ChildCommand, AProcessThatItLeavesBehindIsNotWaitedFor) {
  auto outcome = run_command({"sh", "-c", "sleep 30 & echo $!"}, 0);
  ASSERT_TRUE(outcome.ok());
  const pid_t left = std::stoi(contents(outcome->stdout_file.get()));
  EXPECT_EQ(::kill(left, SIGKILL), 0) << "it had ended: we waited for it";
}

class TreeTest : public testing::Test {
 protected:
  void SetUp() override {
    char folder[] = "/tmp/muniment-tree-XXXXXX";
    ASSERT_NE(mkdtemp(folder), nullptr);
    folder_ = folder;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  void write(const std::string& name, const std::string& text) { std::ofstream(folder_ + "/" + name) << text; }
  void git(const std::string& words) {
    const std::string command = "git -C " + folder_ + " -c user.name=a -c user.email=a@b " + words + " >/dev/null 2>&1";
    ASSERT_EQ(std::system(command.c_str()), 0) << command;
  }
  std::string folder_;
};

TEST_F(TreeTest, OutsideGitThereIsNone) { EXPECT_EQ(tree_digest(folder_), ""); }

TEST_F(TreeTest, EveryFileThatCountsChangesTheDigestAndNothingElseDoes) {
  git("init -q");
  write(".gitignore", "*.o\n");
  write("a", "one");
  const std::string before = tree_digest(folder_);
  EXPECT_EQ(before.rfind("git:none v3 root:", 0), 0U) << before;
  EXPECT_EQ(tree_digest(folder_), before);
  write("ignored.o", "x");
  EXPECT_EQ(tree_digest(folder_), before);
  write("b", "untracked");
  EXPECT_NE(tree_digest(folder_), before);
  std::filesystem::remove(folder_ + "/b");
  EXPECT_EQ(tree_digest(folder_), before);
  ::chmod((folder_ + "/a").c_str(), 0755);
  EXPECT_NE(tree_digest(folder_), before);
}

TEST_F(TreeTest, FilesOfEvidenceDoNotCount) {
  git("init -q");
  write("a", "one");
  const std::string before = tree_digest(folder_);
  for (const char* folder : {".beads/evidence", "sub/.beads/evidence"}) {
    std::filesystem::create_directories(folder_ + "/" + folder);
    write(std::string(folder) + "/1.json", "{}");
    EXPECT_EQ(tree_digest(folder_), before) << folder;
  }
  for (const char* name :
       {".beads/evidence/code.py", ".beads/1.json", ".beads/evidence/more/1.json", "x.beads/evidence/1.json"}) {
    std::filesystem::create_directories(std::filesystem::path(folder_ + "/" + name).parent_path());
    write(name, "x");
    EXPECT_NE(tree_digest(folder_), before) << name;
    std::filesystem::remove(folder_ + "/" + name);
  }
}

TEST_F(TreeTest, ACommitChangesNoFile) {
  git("init -q");
  write("a", "one");
  const auto files = [&] {
    const std::string digest = tree_digest(folder_);
    return digest.substr(digest.find(" sha256:"));
  };
  const std::string before = files();
  git("add a");
  git("commit -qm first");
  EXPECT_EQ(files(), before);
  git("commit -q --allow-empty -m second");
  EXPECT_EQ(files(), before);
}

TEST_F(TreeTest, TheCommitIsNamed) {
  git("init -q");
  write("a", "one");
  git("add a");
  git("commit -qm first");
  const std::string digest = tree_digest(folder_);
  EXPECT_EQ(digest.size(),
            std::string("git:").size() + 40 + std::string(" v3 root:0123456789abcdef sha256:").size() + 64)
      << digest;
}

TEST(Git, AFifoAmongTheSettingsDoesNotBlock) {
  const test::TemporaryFolder folder;
  ASSERT_TRUE(git_output("/", {"init", "-q", folder.path()}));
  ASSERT_TRUE(git_output(folder.path(), {"rev-parse", "--show-toplevel"}));
  ASSERT_EQ(::mkfifo((folder.path() + "/settings").c_str(), 0600), 0);
  ASSERT_TRUE(git_output(folder.path(), {"config", "include.path", "../settings"}));
  EXPECT_FALSE(git_output(folder.path(), {"rev-parse", "--show-toplevel"}, {}, std::chrono::milliseconds(20)));
}

TEST(TestPaths, NamesOfTestsByTheConventionsOfRunners) {
  for (const char* path :
       {"t/basic.t", "test-add.js", "src/add-test.js", "lib/add_test.exs", "AddTest.kt", "Add.Tests.cs",
        "Shop.AddTests.cs", "add_spec.lua", "src/add.test.ts", "tests.py", "a/tests/data.json"})
    EXPECT_TRUE(is_test_path(path)) << path;
  for (const char* path : {"latest.py", "src/contest.js", "cmd/test.go", "api/openapi-spec.yaml", "protest.t.py"})
    EXPECT_FALSE(is_test_path(path)) << path;
}

TEST(TestPaths, SettingsOfRunnersConfigureTests) {
  for (const char* path :
       {".npmrc", "web/.yarnrc.yml", ".cargo/config.toml", "app/.cargo/config", ".proverc", ".rspec", ".mocharc.json",
        "pytest.toml", ".pytest.toml", "nextest.toml", ".config/nextest.toml", ".mvn/maven.config", ".bazelrc",
        "Directory.Build.props", "ci.runsettings", "META-INF/services/org.junit.platform.launcher.PostDiscoveryFilter"})
    EXPECT_TRUE(is_test_configuration(path)) << path;
  for (const char* path : {".eslintrc.json", ".prettierrc", "src/rc.py", ".cargo/registry/index.json",
                           ".mvn/wrapper/maven-wrapper.jar", ".gitignore"})
    EXPECT_FALSE(is_test_configuration(path)) << path;
  for (const char* path : {"rules.mk", "Makefile.am", "lib/GNUmakefile", "Rakefile", "package.json", "BUILD.bazel"})
    EXPECT_TRUE(may_configure_tests(path)) << path;
}

TEST(TestPaths, ANumberOfAVersionConfiguresNoTests) {
  const auto counts = [](const std::string& removed, const std::string& added, const char* path = "package.json") {
    return diff_configures_tests(
        "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-" + removed + "\n+" + added + "\n", path);
  };
  const std::string line = R"({"name": "x", "version": "1.0.0", "scripts": {"test": "jest"}})";
  const auto with = [&](const char* from, const char* to) {
    return std::string(line).replace(line.find(from), std::strlen(from), to);
  };
  EXPECT_FALSE(counts(line, with("1.0.0", "1.1.0")));
  EXPECT_FALSE(counts(line, with("1.0.0", "2.0.0-rc.1")));
  EXPECT_TRUE(counts(line, with("jest", "jest -t add")));
  EXPECT_TRUE(counts("fail_under = 90", "fail_under = 10", "setup.cfg"));
  EXPECT_TRUE(counts("a: 1.0.0\n-b: 2.0.0", "b: 2.0.0\n+a: 1.0.0"));
  EXPECT_FALSE(counts("VERSION = 1.2.3", "VERSION = 1.2.4", "Makefile"));
  EXPECT_TRUE(diff_configures_tests("@@ -1,0 +2 @@\n+include more.mk\n", "Makefile"));
  EXPECT_FALSE(diff_configures_tests("@@ -1,0 +2 @@\n+  \"left-pad\": \"1.0.0\",\n", "package.json"));
}

}  // namespace
}  // namespace muniment::cli
