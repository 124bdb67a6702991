// Tests of the sandbox. Each test enters it in a process of its own, forked while the test has one thread, and tries
// forbidden operations there.
#include "base/process/sandbox.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include "support/temporary_folder.hpp"

namespace muniment {
namespace {

// Returns the exit status of `work` in the sandbox; 100 if the process could not enter it as the policy requires.
int in_sandbox(const SandboxPolicy& policy, const std::function<int(const SandboxReport&)>& work) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    const auto report = enter_sandbox(policy);
    ::_exit(report ? work(*report) : 100);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

SandboxPolicy strict() {
  SandboxPolicy policy;
  policy.needs_file_rules = policy.needs_call_filter = true;
  return policy;
}

bool refused(long answer) { return answer < 0 && (errno == EPERM || errno == EACCES); }

// Skips the tests if the kernel has no Landlock or a container forbids it.
class Sandbox : public ::testing::Test {
 protected:
  void SetUp() override {
    if (in_sandbox(strict(), [](const SandboxReport&) { return 0; }) == 100)
      GTEST_SKIP() << "Landlock or seccomp cannot be had here";
  }
  test::TemporaryFolder folder_;
};

TEST_F(Sandbox, AFileOutsideIsRefusedAndOneInsideIsNot) {
  const std::string inside = folder_.path() + "/inside", outside = folder_.path() + "/outside";
  std::filesystem::create_directory(inside);
  std::filesystem::create_directory(outside);
  std::ofstream(outside + "/secret") << "x";
  SandboxPolicy policy = strict();
  policy.files.read_write = {inside};
  EXPECT_EQ(0, in_sandbox(policy, [&](const SandboxReport& report) {
              if (report.landlock_abi < 1 || !report.call_filter || !report.missing.empty()) return 1;
              if (!refused(::open((outside + "/secret").c_str(), O_RDONLY))) return 2;
              if (!refused(::open((outside + "/new").c_str(), O_WRONLY | O_CREAT, 0600))) return 3;
              if (!refused(::open("/etc/passwd", O_RDONLY))) return 4;
              if (!refused(::rename((outside + "/secret").c_str(), (inside + "/secret").c_str()))) return 5;
              const int file = ::open((inside + "/new").c_str(), O_RDWR | O_CREAT, 0600);
              if (file < 0 || ::write(file, "text", 4) != 4) return 6;
              if (::rename((inside + "/new").c_str(), (inside + "/newer").c_str()) != 0) return 7;
              return ::unlink((inside + "/newer").c_str()) == 0 ? 0 : 8;
            }));
}

TEST_F(Sandbox, WhatIsReadOnlyIsNotWritten) {
  std::ofstream(folder_.path() + "/weights") << "x";
  SandboxPolicy policy = strict();
  policy.files.read_only = {folder_.path(), folder_.path() + "/is-not-there"};
  EXPECT_EQ(0, in_sandbox(policy, [&](const SandboxReport&) {
              const std::string path = folder_.path() + "/weights";
              if (::open(path.c_str(), O_RDONLY) < 0) return 1;
              if (!refused(::open(path.c_str(), O_WRONLY))) return 2;
              if (!refused(::truncate(path.c_str(), 0))) return 3;
              return refused(::unlink(path.c_str())) ? 0 : 4;
            }));
}

TEST_F(Sandbox, NoProgramIsRunAndNoProcessMade) {
  EXPECT_EQ(0, in_sandbox(strict(), [](const SandboxReport&) {
              char name[] = "/bin/true";
              char* const arguments[] = {name, nullptr};
              if (::execv(name, arguments) != -1 || !refused(-1)) return 1;
              return refused(::fork()) ? 0 : 2;
            }));
}

TEST_F(Sandbox, NoSocketIsMadeButTheInheritedOneSpeaks) {
  int ends[2];
  ASSERT_EQ(0, ::socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
  EXPECT_EQ(0, in_sandbox(strict(), [&](const SandboxReport&) {
              if (!refused(::socket(AF_INET, SOCK_STREAM, 0))) return 1;
              if (!refused(::socket(AF_UNIX, SOCK_STREAM, 0))) return 2;
              sockaddr_in nobody{};
              if (!refused(::connect(ends[0], reinterpret_cast<const sockaddr*>(&nobody), sizeof nobody))) return 3;
              return ::send(ends[0], "x", 1, 0) == 1 ? 0 : 4;
            }));
  char byte = 0;
  EXPECT_EQ(1, ::recv(ends[1], &byte, 1, 0));
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_F(Sandbox, OtherProcessesAreOutOfReach) {
  const pid_t other = ::getpid();
  EXPECT_EQ(0, in_sandbox(strict(), [&](const SandboxReport&) {
              if (!refused(::kill(other, 0))) return 1;
              if (!refused(::ptrace(PTRACE_ATTACH, other, nullptr, nullptr))) return 2;
              if (!refused(::mount("none", "/tmp", "tmpfs", 0, nullptr))) return 3;
              return ::open(("/proc/" + std::to_string(other) + "/environ").c_str(), O_RDONLY) < 0 ? 0 : 4;
            }));
}

TEST_F(Sandbox, ThreadsStartWhereThePolicyAllowsThemAndAreHeldToo) {
  SandboxPolicy policy = strict();
  policy.threads = true;
  EXPECT_EQ(0, in_sandbox(policy, [](const SandboxReport&) {
              int failed = 1;
              std::thread([&] { failed = refused(::open("/etc/passwd", O_RDONLY)) ? 0 : 2; }).join();
              return failed;
            }));
}

TEST_F(Sandbox, ItsLimitsHold) {
  SandboxPolicy policy = strict();
  policy.open_files_max = 16;
  EXPECT_EQ(0, in_sandbox(policy, [](const SandboxReport&) {
              rlimit core{}, files{};
              ::getrlimit(RLIMIT_CORE, &core);
              ::getrlimit(RLIMIT_NOFILE, &files);
              if (core.rlim_max != 0 || files.rlim_max != 16) return 1;
              for (int i = 0; i < 16; ++i) {
                if (::dup(0) < 0) return errno == EMFILE ? 0 : 2;
              }
              return 3;
            }));
}

TEST_F(Sandbox, AnAbortStillEndsTheProcess) {
  EXPECT_EQ(128 + SIGABRT, in_sandbox(strict(), [](const SandboxReport&) -> int { std::abort(); }));
}

TEST_F(Sandbox, IsNotEnteredByOneThreadOfSeveral) {
  EXPECT_EQ(7, [] {
    const pid_t pid = ::fork();
    if (pid == 0) {
      std::thread other([] { ::pause(); });
      const auto report = enter_sandbox(SandboxPolicy{});
      ::_exit(!report && report.error().code == Errc::conflict ? 7 : 8);
    }
    int status = 0;
    ::waitpid(pid, &status, 0);
    return WEXITSTATUS(status);
  }());
}

}  // namespace
}  // namespace muniment
