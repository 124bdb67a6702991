#include "cli/workflow/confinement.hpp"

#include <fcntl.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <iterator>

#include "base/process/sandbox.hpp"
#include "cli/workflow/watched_calls.hpp"

namespace muniment::cli {
namespace {

namespace fs = std::filesystem;

constexpr unsigned long mount_flags = MS_NOSUID | MS_NODEV;

bool write_text(const char* path, const std::string& text) {
  const int file = ::open(path, O_WRONLY | O_CLOEXEC);
  const bool good = file >= 0 && ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (file >= 0) ::close(file);
  return good;
}

// An ordinary user gets the right to mount in a user namespace, in which it keeps its own id.
std::string map_user(uid_t user, gid_t group) {
  if (::unshare(CLONE_NEWUSER) != 0) return "user namespace";
  const std::string uid = std::to_string(user), gid = std::to_string(group);
  const bool mapped = write_text("/proc/self/setgroups", "deny") &&
                      write_text("/proc/self/uid_map", uid + " " + uid + " 1") &&
                      write_text("/proc/self/gid_map", gid + " " + gid + " 1");
  return mapped ? "" : "user namespace";
}

std::string unshare_as_user(int kinds) {
  const uid_t user = ::geteuid();
  const gid_t group = ::getegid();
  if (user != 0) {
    if (std::string failed = map_user(user, group); !failed.empty()) return failed;
  }
  return ::unshare(kinds) == 0 ? "" : "namespaces";
}

bool mount_processes(const std::string& folder) {
  return ::mount("proc", folder.c_str(), "proc", mount_flags | MS_NOEXEC, nullptr) == 0;
}

// Creates a mount point for `source` below `root` and binds `source` there. A missing `source` is skipped.
bool bind_path(const std::string& root, const std::string& source, bool writable) {
  struct stat about {};
  if (::lstat(source.c_str(), &about) != 0) return errno == ENOENT;
  const std::string target = root + source;
  std::error_code failed;
  fs::create_directories(fs::path(target).parent_path(), failed);
  if (S_ISLNK(about.st_mode)) {
    fs::copy_symlink(source, target, failed);
    return !failed || failed == std::errc::file_exists;
  }
  if (S_ISDIR(about.st_mode)) {
    fs::create_directories(target, failed);
  } else {
    const int file = ::open(target.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0444);
    if (file >= 0) ::close(file);
  }
  if (::mount(source.c_str(), target.c_str(), nullptr, MS_BIND | MS_REC, nullptr) != 0) return false;
  // MS_REC also binds the mounts below `source`. Flags that are already set are kept.
  mount_attr attributes{};
  attributes.attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | (writable ? 0 : MOUNT_ATTR_RDONLY);
  return ::syscall(SYS_mount_setattr, AT_FDCWD, target.c_str(), AT_RECURSIVE, &attributes, sizeof attributes) == 0;
}

std::string add_devices(const std::string& root) {
  for (const char* device : {"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}) {
    const std::string target = root + device;
    std::error_code failed;
    fs::create_directories(root + "/dev", failed);
    const int file = ::open(target.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0666);
    if (file >= 0) ::close(file);
    if (::mount(device, target.c_str(), nullptr, MS_BIND, nullptr) != 0) return device;
  }
  for (const auto& [name, target] :
       {std::pair("/dev/ptmx", "pts/ptmx"), std::pair("/dev/fd", "/proc/self/fd"),
        std::pair("/dev/stdin", "/proc/self/fd/0"), std::pair("/dev/stdout", "/proc/self/fd/1"),
        std::pair("/dev/stderr", "/proc/self/fd/2")}) {
    if (::symlink(target, (root + name).c_str()) != 0) return name;
  }
  return {};
}

// Mounts one file system, whose size limits /tmp and /dev/shm together, and terminals of the view's own.
std::string add_private_files(const std::string& root, std::int64_t bytes_max) {
  const std::string place = root + "/private";
  std::error_code failed;
  for (const char* folder : {"/private", "/tmp", "/dev/shm", "/dev/pts"}) fs::create_directories(root + folder, failed);
  const std::string size = "mode=755,size=" + std::to_string(bytes_max);
  if (::mount("tmpfs", place.c_str(), "tmpfs", mount_flags, size.c_str()) != 0) return "/tmp";
  for (const auto& [name, target] : {std::pair("/tmp", "/tmp"), std::pair("/shm", "/dev/shm")}) {
    const std::string folder = place + name;
    if (::mkdir(folder.c_str(), 0700) != 0 || ::chmod(folder.c_str(), 01777) != 0 ||
        ::mount(folder.c_str(), (root + target).c_str(), nullptr, MS_BIND, nullptr) != 0)
      return target;
  }
  if (::umount2(place.c_str(), MNT_DETACH) != 0 || ::rmdir(place.c_str()) != 0) return "/tmp";
  const std::string terminals = root + "/dev/pts";
  if (::mount("devpts", terminals.c_str(), "devpts", MS_NOSUID | MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0620") != 0)
    return "/dev/pts";
  return {};
}

constexpr std::uint32_t number(long call) { return static_cast<std::uint32_t>(call); }

}  // namespace

std::vector<std::string> system_view() { return {"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc"}; }

std::string enter_namespaces(const View& view) {
  return unshare_as_user(CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | (view.network ? 0 : CLONE_NEWNET));
}

std::string enter_own_processes() { return unshare_as_user(CLONE_NEWNS | CLONE_NEWPID); }

std::string mount_private(const std::string& folder, std::int64_t bytes_max) {
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) != 0) return "private mounts";
  const std::string size = "mode=700,size=" + std::to_string(bytes_max);
  if (::mount("tmpfs", folder.c_str(), "tmpfs", mount_flags, size.c_str()) != 0) return "mount of " + folder;
  return mount_processes("/proc") ? "" : "mount of /proc";
}

std::string enter_view(const View& view, const std::string& root) {
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return "private mounts";
  if (::mount("tmpfs", root.c_str(), "tmpfs", mount_flags, "mode=755,size=16m") != 0) return "mount of the view";
  if (std::string folder = add_private_files(root, view.tmp_bytes_max); !folder.empty()) return "mount of " + folder;
  for (const std::string& path : system_view()) {
    if (!bind_path(root, path, false)) return "mount of " + path;
  }
  for (const std::string& path : view.reads) {
    if (!bind_path(root, path, false)) return "mount of " + path;
  }
  for (const std::string& path : view.writes) {
    if (!bind_path(root, path, true)) return "mount of " + path;
  }
  if (std::string device = add_devices(root); !device.empty()) return "mount of " + device;
  std::error_code failed;
  fs::create_directories(root + "/proc", failed);
  if (!mount_processes(root + "/proc")) return "mount of /proc";
  if (::chdir(root.c_str()) != 0 || ::syscall(SYS_pivot_root, ".", ".") != 0) return "pivot_root";
  if (::umount2(".", MNT_DETACH) != 0 || ::chdir("/") != 0) return "detaching the old root";
  return {};
}

std::string drop_privileges() {
  if (::geteuid() == 0) {
    if (::setgroups(0, nullptr) != 0 || ::setresgid(confined_uid, confined_uid, confined_uid) != 0 ||
        ::setresuid(confined_uid, confined_uid, confined_uid) != 0)
      return "unprivileged user";
  }
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return "no_new_privs";
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {};
  if (::syscall(SYS_capset, &header, none) != 0) return "capabilities";
  return {};
}

Result<int> restrict_changes(const View& view) {
  FileRules rules;
  rules.read_only = {"/"};
  rules.read_write = view.writes;
  rules.programs = true;
  rules.network = view.network;
  rules.read_write.insert(rules.read_write.end(), {"/tmp", "/dev"});
  rules.terminals = {"/dev/pts"};
  return confine_files(rules);
}

namespace {

#if defined(__x86_64__)
constexpr std::uint32_t own_architecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr std::uint32_t own_architecture = AUDIT_ARCH_AARCH64;
#else
#error "add the architecture's AUDIT_ARCH value"
#endif

constexpr sock_filter load_argument = BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args));
constexpr sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
constexpr sock_filter notify = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF);

constexpr sock_filter fail_with(int error) {
  return BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<std::uint32_t>(error));
}

// Returns what the filter does with a watched call. It ends with a return in any case; empty: the call is permitted.
std::vector<sock_filter> rules_of(const WatchedCall& call, bool notified) {
  // A nested user namespace would give capabilities, and with them more of the kernel to attack.
  constexpr std::uint32_t new_namespaces =
      CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;
  const sock_filter refuse = notified ? notify : fail_with(EPERM);
  if (call.kind == CallKind::family) {
    std::vector<sock_filter> rules{load_argument};
    for (const int family : permitted_families()) {
      rules.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(family), 0, 1));
      rules.push_back(allow);
    }
    rules.push_back(notified ? notify : fail_with(EAFNOSUPPORT));
    return rules;
  }
  if (call.kind == CallKind::namespaces)
    return {load_argument, BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, new_namespaces, 0, 1), refuse, allow};
  if (call.kind == CallKind::none) return {refuse};
  return notified ? std::vector<sock_filter>{notify} : std::vector<sock_filter>();
}

int install(bool notified) {
  std::vector<sock_filter> program = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, own_architecture, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
  };
  const auto add = [&program](long call, const std::vector<sock_filter>& rules) {
    if (rules.empty()) return;
    program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number(call), 0, static_cast<std::uint8_t>(rules.size())));
    program.insert(program.end(), rules.begin(), rules.end());
  };
#if defined(__x86_64__)
  // The calls of the x32 ABI have numbers of their own, which would bypass the list.
  program.push_back(BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 0, 1));
  program.push_back(fail_with(EPERM));
#endif
  for (const WatchedCall& call : watched_calls()) add(call.number, rules_of(call, notified));
  // The flags of clone3 are in memory, which a filter cannot read; ENOSYS makes libraries use clone.
  add(SYS_clone3, {fail_with(ENOSYS)});
  program.push_back(allow);
  const sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
  return static_cast<int>(
      ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, notified ? SECCOMP_FILTER_FLAG_NEW_LISTENER : 0, &filter));
}

}  // namespace

int install_notifier() { return install(true); }

bool install_filter() { return install(false) == 0; }

}  // namespace muniment::cli
