// Implements the sandbox. The order matters: descriptors and limits first; then no_new_privs, which the rest requires;
// then Landlock, which opens the permitted folders; the call filter last, because it refuses calls that the earlier
// steps need.
#include "base/process/sandbox.hpp"

#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "base/files/file.hpp"

namespace muniment {

// Landlock as documented by the kernel (Documentation/userspace-api/landlock.rst). The headers of Debian 12 define ABI
// 2, but newer kernels support more, so that the numbers are defined here.
namespace landlock {

enum Right : std::uint64_t {
  execute = 1U << 0,
  write_file = 1U << 1,
  read_file = 1U << 2,
  read_dir = 1U << 3,
  remove_dir = 1U << 4,
  remove_file = 1U << 5,
  make_char = 1U << 6,
  make_dir = 1U << 7,
  make_reg = 1U << 8,
  make_sock = 1U << 9,
  make_fifo = 1U << 10,
  make_block = 1U << 11,
  make_sym = 1U << 12,
  refer = 1U << 13,
  truncate_file = 1U << 14,
  ioctl_dev = 1U << 15,
};
inline constexpr std::uint64_t rights_of_abi[] = {
    0, refer - 1, truncate_file - 1, ioctl_dev - 1, ioctl_dev - 1, ioctl_dev | (ioctl_dev - 1)};
constexpr std::uint64_t reading = read_file | read_dir;
constexpr std::uint64_t writing =
    reading | write_file | remove_dir | remove_file | make_dir | make_reg | refer | truncate_file;
constexpr std::uint64_t of_programs = execute | make_sym | make_fifo | make_sock;
constexpr std::uint64_t rights_of_a_file = execute | write_file | read_file | truncate_file | ioctl_dev;
constexpr std::uint64_t bind_tcp = 1, connect_tcp = 2;
constexpr std::uint64_t abstract_sockets = 1, signals = 2;
constexpr std::uint32_t version_flag = 1;
constexpr int rule_path_beneath = 1;

struct Ruleset {
  std::uint64_t files = 0;
  std::uint64_t network = 0;  // from ABI 4
  std::uint64_t scopes = 0;   // from ABI 6
};

struct PathRule {
  std::uint64_t allowed = 0;
  std::int32_t folder = -1;
};

}  // namespace landlock

namespace {

using landlock::Ruleset, landlock::PathRule;

std::string sandbox_reason() { return std::generic_category().message(errno); }

std::uint64_t file_rights(int abi) {
  constexpr int known = static_cast<int>(std::size(landlock::rights_of_abi)) - 1;
  return landlock::rights_of_abi[abi < known ? abi : known];
}

Status allow(int ruleset, const std::string& path, std::uint64_t rights, bool must_be_there) {
  const Fd place(::open(path.c_str(), O_PATH | O_CLOEXEC));
  if (!place.open()) {
    if (errno == ENOENT && !must_be_there) return success();
    return file_error("the sandbox opens", path, errno);
  }
  struct stat about {};
  if (::fstat(place.get(), &about) != 0) return file_error("the sandbox examines", path, errno);
  PathRule rule;
  rule.allowed = S_ISDIR(about.st_mode) ? rights : rights & landlock::rights_of_a_file;
  rule.folder = place.get();
  if (::syscall(SYS_landlock_add_rule, ruleset, landlock::rule_path_beneath, &rule, 0) != 0) {
    return Error(Errc::unavailable, "Landlock: " + path + ": " + sandbox_reason());
  }
  return success();
}

}  // namespace

Result<int> confine_files(const FileRules& rules) {
  const int abi = static_cast<int>(::syscall(SYS_landlock_create_ruleset, nullptr, 0, landlock::version_flag));
  if (abi < 1) return Error(Errc::unavailable, "Landlock: " + sandbox_reason());
  Ruleset handled;
  handled.files = file_rights(abi);
  if (abi >= 4 && !rules.network) handled.network = landlock::bind_tcp | landlock::connect_tcp;
  if (abi >= 6) handled.scopes = landlock::abstract_sockets | landlock::signals;
  const std::size_t size = abi >= 6 ? 24 : abi >= 4 ? 16 : 8;
  const Fd ruleset(static_cast<int>(::syscall(SYS_landlock_create_ruleset, &handled, size, 0)));
  if (!ruleset.open()) return Error(Errc::unavailable, "Landlock: " + sandbox_reason());
  std::uint64_t reading = landlock::reading, writing = landlock::writing;
  if (rules.programs) {
    reading |= landlock::execute;
    writing |= landlock::of_programs;
  }
  for (const std::string& path : rules.read_only)
    RETURN_IF_ERROR(allow(ruleset.get(), path, reading & handled.files, false));
  for (const std::string& path : rules.read_write)
    RETURN_IF_ERROR(allow(ruleset.get(), path, writing & handled.files, true));
  for (const std::string& path : rules.terminals)
    RETURN_IF_ERROR(allow(ruleset.get(), path, (writing | landlock::ioctl_dev) & handled.files, false));
  if (::syscall(SYS_landlock_restrict_self, ruleset.get(), 0) != 0) {
    return Error(Errc::unavailable, "Landlock: " + sandbox_reason());
  }
  return abi;
}

namespace {

void limit(__rlimit_resource which, std::int64_t value) {
  rlimit both{static_cast<rlim_t>(value), static_cast<rlim_t>(value)};
  rlimit now{};
  if (::getrlimit(which, &now) == 0 && now.rlim_max != RLIM_INFINITY && now.rlim_max < both.rlim_max)
    both = {now.rlim_max, now.rlim_max};
  ::setrlimit(which, &both);  // lowering a limit is never refused
}

void limit_all(const SandboxPolicy& policy) {
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_NOFILE, policy.open_files_max);
  limit(RLIMIT_MEMLOCK, 0);
  limit(RLIMIT_MSGQUEUE, 0);
  // The limit counts all threads of the user, so that a number above zero would depend on the user's other processes.
  if (!policy.threads) limit(RLIMIT_NPROC, 0);
  if (policy.files.read_write.empty()) limit(RLIMIT_FSIZE, 0);
#if !defined(MUNIMENT_ADDRESS_SANITIZER) && !defined(MUNIMENT_THREAD_SANITIZER)
  // The shadow memory of a sanitizer has terabytes of address space.
  if (policy.address_space_bytes_max > 0) limit(RLIMIT_AS, policy.address_space_bytes_max);
#endif
  if (policy.cpu_seconds_max > 0) limit(RLIMIT_CPU, policy.cpu_seconds_max);
}

// A child of root keeps one capability, to bypass the modes of files, because a data folder may belong to another user.
// Landlock limits the files.
bool drop_capabilities() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {};
  if (::syscall(SYS_capget, &header, data) != 0) return false;
  constexpr std::uint32_t kept = 1U << CAP_DAC_OVERRIDE;
  data[0] = {data[0].effective & kept, data[0].permitted & kept, 0};
  data[1] = {};
  return ::syscall(SYS_capset, &header, data) == 0;
}

int thread_count() {
  struct stat about {};
  return ::stat("/proc/self/task", &about) == 0 ? static_cast<int>(about.st_nlink) - 2 : 1;
}

#ifdef MUNIMENT_THREAD_SANITIZER
constexpr int threads_at_entry_max = 2;  // a sanitizer's runtime has one
#else
constexpr int threads_at_entry_max = 1;
#endif

}  // namespace

Result<SandboxReport> enter_sandbox(const SandboxPolicy& policy) {
  if (const int threads = thread_count(); threads > threads_at_entry_max) {
    return Error(Errc::conflict,
                 "the sandbox is entered before threads are started; there are " + std::to_string(threads));
  }
  SandboxReport report;
  limit_all(policy);
  report.capabilities_dropped = drop_capabilities();
  if (!report.capabilities_dropped) report.missing.push_back("capabilities: " + sandbox_reason());
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
    return Error(Errc::unavailable, "no_new_privs: " + sandbox_reason());
  }
  const auto abi = confine_files(policy.files);
  if (abi) {
    report.landlock_abi = *abi;
    report.network_rules = *abi >= 4;
  } else if (policy.needs_file_rules) {
    return abi.error();
  } else {
    report.missing.push_back(abi.error().message);
  }
  const auto filtered = sandbox::filter_calls(policy.threads, policy.paths);
  report.call_filter = filtered.ok();
  if (!filtered && policy.needs_call_filter) return filtered.error();
  if (!filtered) report.missing.push_back(filtered.error().message);
  return report;
}

std::vector<std::string> system_files() {
  return {"/usr/lib",
          "/usr/lib64",
          "/lib",
          "/lib64",
          "/etc/ld.so.cache",
          "/etc/localtime",
          "/usr/share/zoneinfo",
          "/usr/share/poppler",
          "/usr/share/locale",
          "/dev/null",
          "/dev/urandom",
          "/sys/devices/system/cpu",
          "/proc/cpuinfo",
          "/proc/meminfo"};
}

bool end_with_parent(pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  return ::getppid() == parent;  // otherwise the parent died before the preceding line
}

void close_descriptors_from(int first) { ::close_range(static_cast<unsigned>(first), ~0U, 0); }

}  // namespace muniment
