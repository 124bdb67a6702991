// Tests of a process that gives up being root, in processes of their own.
#include "base/process/user.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <string>

namespace muniment {
namespace {

constexpr uid_t other_user = 65'533;

int in_child(const std::function<int()>& work) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(work());
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// Starts a program as the other user, and returns whether another process of that user can read its memory.
int other_process_reads(bool guarded) {
  if (!become_user(other_user, other_user, {})) return 100;
  std::string name = "sleep", seconds = "600";
  char* const words[] = {name.data(), seconds.data(), nullptr};
  pid_t program = 0;
  int started = 0;
  if (guarded) {
    const UntraceableChildren guard;
    started = ::posix_spawn(&program, "/bin/sleep", nullptr, nullptr, words, environ);
  } else {
    started = ::posix_spawn(&program, "/bin/sleep", nullptr, nullptr, words, environ);
  }
  if (started != 0) return 101;
  const std::string path = "/proc/" + std::to_string(program) + "/environ";
  const int read = in_child([&] {
    // The test itself keeps the capability until it starts a program.
    ::execlp("sh", "sh", "-c", ("cat " + path + " > /dev/null 2>&1").c_str(), nullptr);
    return 102;
  });
  ::kill(program, SIGKILL);
  return read;
}

TEST(User, AnotherProcessOfTheUserReadsOnlyUnguardedChildren) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  EXPECT_EQ(in_child([] { return other_process_reads(false); }), 0);
  EXPECT_EQ(in_child([] { return other_process_reads(true); }), 1);
}

TEST(User, RootIsGivenUpForGood) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  EXPECT_EQ(in_child([] {
              if (!become_user(other_user, other_user, {})) return 1;
              return ::setuid(0) == 0 || ::open("/etc/shadow", O_RDONLY) >= 0 ? 2 : 0;
            }),
            0);
}

}  // namespace
}  // namespace muniment
