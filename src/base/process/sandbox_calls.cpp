// Lists the system calls of a sandboxed child: those for granted files, memory, threads, time, and inherited sockets.
// It cannot create sockets, run programs, inspect other processes, mount, or load anything into the kernel: no such
// call is listed.
//
// The list is an allowlist, so that calls of newer kernels are refused until they are reviewed. A refused call fails
// with EPERM and does not kill the process, because libraries try newer calls and fall back.
#include <seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <sched.h>
#include <cerrno>
#include <memory>
#include <system_error>

#include "base/process/sandbox.hpp"

namespace muniment::sandbox {

namespace {

// Names instead of numbers: libseccomp knows which of them an architecture has. Calls that name a file:
constexpr const char* allowed_with_paths[] = {
    "open",      "openat",     "stat",     "lstat",      "newfstatat", "statx",     "statfs",   "access",
    "faccessat", "faccessat2", "mkdir",    "mkdirat",    "rmdir",      "unlink",    "unlinkat", "rename",
    "renameat",  "renameat2",  "readlink", "readlinkat", "truncate",   "utimensat",
};

constexpr const char* allowed[] = {
    // Open files.
    "close",
    "close_range",
    "read",
    "write",
    "readv",
    "writev",
    "pread64",
    "pwrite64",
    "preadv",
    "pwritev",
    "preadv2",
    "pwritev2",
    "lseek",
    "fstat",
    "fstatfs",
    "getdents64",
    "getcwd",
    "ftruncate",
    "fallocate",
    "fsync",
    "fdatasync",
    "sync_file_range",
    "fadvise64",
    "readahead",
    "flock",
    "fcntl",
    "dup",
    "dup2",
    "dup3",
    "umask",
    "fchmod",
    "copy_file_range",
    // Memory.
    "brk",
    "mmap",
    "munmap",
    "mremap",
    "mprotect",
    "madvise",
    "msync",
    "mincore",
    "membarrier",
    // Threads, signals, exit.
    "futex",
    "set_robust_list",
    "get_robust_list",
    "rseq",
    "set_tid_address",
    "sched_yield",
    "sched_getaffinity",
    "sched_getparam",
    "sched_getscheduler",
    "getcpu",
    "getpriority",
    "setpriority",
    "ioprio_get",
    "ioprio_set",
    "arch_prctl",
    "restart_syscall",
    "rt_sigaction",
    "rt_sigprocmask",
    "rt_sigreturn",
    "rt_sigpending",
    "sigaltstack",
    "exit",
    "exit_group",
    "wait4",
    // Identity and time.
    "getpid",
    "getppid",
    "gettid",
    "getuid",
    "geteuid",
    "getgid",
    "getegid",
    "getrusage",
    "getrlimit",
    "sysinfo",
    "uname",
    "times",
    "clock_gettime",
    "clock_getres",
    "clock_nanosleep",
    "nanosleep",
    "gettimeofday",
    "time",
    "getrandom",
    // Waiting, and inherited sockets.
    "poll",
    "ppoll",
    "select",
    "pselect6",
    "recvfrom",
    "recvmsg",
    "sendto",
    "sendmsg",
    "shutdown",
    "getsockopt",
    "getsockname",
    "getpeername",
    "pipe",
    "pipe2",
    "eventfd2",
};

struct Release {
  void operator()(void* filter) const { seccomp_release(filter); }
};
using CallFilter = std::unique_ptr<void, Release>;

Error refused(const char* what, int negative_errno) {
  return Error(Errc::unavailable,
               std::string("seccomp: ") + what + ": " + std::generic_category().message(-negative_errno));
}

// Skips a call that this architecture does not have.
int add(const CallFilter& filter, std::uint32_t action, const char* name) {
  const int number = seccomp_syscall_resolve_name(name);
  if (number == __NR_SCMP_ERROR) return 0;
  const int failed = seccomp_rule_add(filter.get(), action, number, 0);
  return failed == -EDOM ? 0 : failed;
}

// Calls that are harmless only with certain arguments.
int add_conditional(const CallFilter& filter, bool threads) {
  int failed = 0;
  const auto when = [&](const char* name, scmp_arg_cmp condition) {
    if (failed == 0)
      failed = seccomp_rule_add(filter.get(), SCMP_ACT_ALLOW, seccomp_syscall_resolve_name(name), 1, condition);
  };
  const auto own = static_cast<scmp_datum_t>(::getpid());
  when("tgkill", SCMP_A0(SCMP_CMP_EQ, own));  // abort() and raise()
  when("kill", SCMP_A0(SCMP_CMP_EQ, own));
  when("prlimit64", SCMP_A0(SCMP_CMP_EQ, 0));
  when("prctl", SCMP_A0(SCMP_CMP_EQ, PR_SET_NAME));
  when("prctl", SCMP_A0(SCMP_CMP_EQ, PR_GET_NAME));
  when("prctl", SCMP_A0(SCMP_CMP_EQ, 0x53564d41));  // PR_SET_VMA: glibc and sanitizers name their memory
  if (threads) when("clone", SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, CLONE_THREAD));
  // The arguments of clone3 are in memory, which a filter cannot read. ENOSYS makes glibc use clone instead.
  if (failed == 0)
    failed = seccomp_rule_add(filter.get(), SCMP_ACT_ERRNO(ENOSYS), seccomp_syscall_resolve_name("clone3"), 0);
  return failed;
}

}  // namespace

Status filter_calls(bool threads, bool paths) {
  const CallFilter filter(seccomp_init(SCMP_ACT_ERRNO(EPERM)));
  if (!filter) return Error(Errc::unavailable, "seccomp: no filter can be made");
  for (const char* name : allowed) {
    if (const int failed = add(filter, SCMP_ACT_ALLOW, name); failed != 0) return refused(name, failed);
  }
  for (const char* name : allowed_with_paths) {
    const int failed = paths ? add(filter, SCMP_ACT_ALLOW, name) : 0;
    if (failed != 0) return refused(name, failed);
  }
  // A process without paths has only connected sockets. libcurl 7.88 calls connect for them, and goes on after
  // EINPROGRESS, because it then asks the socket itself. Nothing is connected.
  const int connect =
      paths ? 0
            : seccomp_rule_add(filter.get(), SCMP_ACT_ERRNO(EINPROGRESS), seccomp_syscall_resolve_name("connect"), 0);
  if (connect != 0) return refused("connect", connect);
  if (const int failed = add_conditional(filter, threads); failed != 0) return refused("rules", failed);
  if (const int failed = seccomp_load(filter.get()); failed != 0) return refused("loading", failed);
  return success();
}

}  // namespace muniment::sandbox
