#include "cli/workflow/notifier.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/limits.hpp"

namespace muniment::cli {
namespace {

constexpr std::size_t path_bytes_max = 4096;

enum class CallKind { path, path_at, two_paths, two_paths_at, address, forbidden };

struct WatchedCall {
  long number;
  const char* name;
  CallKind kind;
};

constexpr WatchedCall watched_calls[] = {
    {SYS_openat, "openat", CallKind::path_at},
    {SYS_openat2, "openat2", CallKind::path_at},
    {SYS_truncate, "truncate", CallKind::path},
    {SYS_linkat, "linkat", CallKind::two_paths_at},
    {SYS_renameat2, "renameat2", CallKind::two_paths_at},
    {SYS_unlinkat, "unlinkat", CallKind::path_at},
    {SYS_connect, "connect", CallKind::address},
    {SYS_ptrace, "ptrace", CallKind::forbidden},
    {SYS_process_vm_readv, "process_vm_readv", CallKind::forbidden},
    {SYS_mount, "mount", CallKind::forbidden},
    {SYS_unshare, "unshare", CallKind::forbidden},
    {SYS_setns, "setns", CallKind::forbidden},
    {SYS_pivot_root, "pivot_root", CallKind::forbidden},
    {SYS_pidfd_getfd, "pidfd_getfd", CallKind::forbidden},
    {SYS_bpf, "bpf", CallKind::forbidden},
    {SYS_process_vm_writev, "process_vm_writev", CallKind::forbidden},
    {SYS_kcmp, "kcmp", CallKind::forbidden},
    {SYS_open_tree, "open_tree", CallKind::forbidden},
    {SYS_move_mount, "move_mount", CallKind::forbidden},
    {SYS_fsopen, "fsopen", CallKind::forbidden},
    {SYS_fsmount, "fsmount", CallKind::forbidden},
    {SYS_perf_event_open, "perf_event_open", CallKind::forbidden},
    {SYS_io_uring_setup, "io_uring_setup", CallKind::forbidden},
    {SYS_keyctl, "keyctl", CallKind::forbidden},
    {SYS_add_key, "add_key", CallKind::forbidden},
    {SYS_request_key, "request_key", CallKind::forbidden},
    {SYS_clone, "clone", CallKind::forbidden},
    {SYS_umount2, "umount2", CallKind::forbidden},
    {SYS_mount_setattr, "mount_setattr", CallKind::forbidden},
    {SYS_fsconfig, "fsconfig", CallKind::forbidden},
    {SYS_fspick, "fspick", CallKind::forbidden},
    {SYS_chroot, "chroot", CallKind::forbidden},
    {SYS_open_by_handle_at, "open_by_handle_at", CallKind::forbidden},
    {SYS_userfaultfd, "userfaultfd", CallKind::forbidden},
    {SYS_process_madvise, "process_madvise", CallKind::forbidden},
    {SYS_io_uring_enter, "io_uring_enter", CallKind::forbidden},
    {SYS_io_uring_register, "io_uring_register", CallKind::forbidden},
    {SYS_kexec_load, "kexec_load", CallKind::forbidden},
    {SYS_init_module, "init_module", CallKind::forbidden},
    {SYS_finit_module, "finit_module", CallKind::forbidden},
    {SYS_delete_module, "delete_module", CallKind::forbidden},
    {SYS_quotactl, "quotactl", CallKind::forbidden},
    {SYS_swapon, "swapon", CallKind::forbidden},
    {SYS_swapoff, "swapoff", CallKind::forbidden},
    {SYS_reboot, "reboot", CallKind::forbidden},
#ifdef SYS_open
    {SYS_open, "open", CallKind::path},
    {SYS_creat, "creat", CallKind::path},
    {SYS_link, "link", CallKind::two_paths},
    {SYS_rename, "rename", CallKind::two_paths},
    {SYS_unlink, "unlink", CallKind::path},
#endif
#ifdef SYS_renameat
    {SYS_renameat, "renameat", CallKind::two_paths_at},
#endif
};

std::string read_memory(std::uint32_t pid, std::uint64_t address, std::size_t size) {
  const Fd memory(::open(fmt::format("/proc/{}/mem", pid).c_str(), O_RDONLY | O_CLOEXEC));
  std::string bytes(size, '\0');
  // A text may end at the end of a mapping, so that the read is shorter.
  const ssize_t got = memory.open() ? ::pread(memory.get(), bytes.data(), size, static_cast<off_t>(address)) : -1;
  bytes.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return bytes;
}

std::string text_at(std::uint32_t pid, std::uint64_t address) {
  std::string text = read_memory(pid, address, path_bytes_max);
  text.resize(std::min(text.size(), text.find('\0')));
  return text;
}

std::string link_of(std::uint32_t pid, const std::string& name) {
  std::error_code failed;
  return std::filesystem::read_symlink(fmt::format("/proc/{}/{}", pid, name), failed).string();
}

bool is_beneath(std::string_view path, std::string_view folder) {
  if (folder == "/") return true;
  return path.starts_with(folder) && (path.size() == folder.size() || path[folder.size()] == '/');
}

// Returns the absolute path, without "." and "..".
std::string absolute(std::uint32_t pid, std::int32_t folder, const std::string& path) {
  if (path.empty()) return {};
  std::filesystem::path whole(path);
  if (whole.is_relative())
    whole =
        std::filesystem::path(folder == AT_FDCWD ? link_of(pid, "cwd") : link_of(pid, fmt::format("fd/{}", folder))) /
        whole;
  return whole.is_absolute() ? whole.lexically_normal().string() : std::string();
}

// Returns the address as text; empty if a confined command may connect to it.
std::string address_text(std::uint32_t pid, std::uint64_t address, std::uint64_t length, bool network) {
  const std::string bytes = read_memory(pid, address, std::min<std::uint64_t>(length, sizeof(sockaddr_storage)));
  sockaddr_storage storage{};
  std::memcpy(&storage, bytes.data(), bytes.size());
  char text[INET6_ADDRSTRLEN] = "";
  if (storage.ss_family == AF_UNIX && bytes.size() > offsetof(sockaddr_un, sun_path)) {
    const std::string path = bytes.substr(offsetof(sockaddr_un, sun_path));
    return path.front() == '\0' ? "" : path.substr(0, path.find('\0'));
  }
  if (network) return {};
  if (storage.ss_family == AF_INET) {
    sockaddr_in in{};
    std::memcpy(&in, &storage, sizeof in);
    ::inet_ntop(AF_INET, &in.sin_addr, text, sizeof text);
    return fmt::format("{}:{}", text, ntohs(in.sin_port));
  }
  if (storage.ss_family == AF_INET6) {
    sockaddr_in6 in{};
    std::memcpy(&in, &storage, sizeof in);
    ::inet_ntop(AF_INET6, &in.sin6_addr, text, sizeof text);
    return fmt::format("[{}]:{}", text, ntohs(in.sin6_port));
  }
  return {};
}

}  // namespace

bool Notifier::in_view(const std::string& path) const {
  const auto known = [&](const std::string& seen) { return is_beneath(path, seen) || is_beneath(seen, path); };
  if (std::any_of(seen_.begin(), seen_.end(), known)) return true;
  if (!is_beneath(path, "/tmp") || is_beneath(path, hidden_)) return false;
  // A path of the private /tmp; if it also exists outside, the command may have looked for that file.
  std::error_code failed;
  return !std::filesystem::exists(std::filesystem::symlink_status(path, failed));
}

void Notifier::record(const char* operation, std::string path, std::uint32_t pid) {
  ++total_;
  const std::tuple key(std::string(operation), std::move(path), link_of(pid, "exe"));
  const auto known = refused_.find(key);
  if (known != refused_.end()) {
    ++known->second;
  } else if (refused_.size() < limits::workflow_refusals_max) {
    refused_.emplace(key, 1);
  } else {
    ++omitted_;
  }
}

bool Notifier::serve(int listener) {
  seccomp_notif asked{};
  if (::ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &asked) != 0) return errno == EINTR || errno == ENOENT;
  seccomp_notif_resp answer{};
  answer.id = asked.id;
  answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
  const auto& args = asked.data.args;
  const auto row = std::find_if(std::begin(watched_calls), std::end(watched_calls),
                                [&](const WatchedCall& call) { return call.number == asked.data.nr; });
  const auto check = [&](std::uint64_t folder, std::uint64_t address) {
    std::string path = absolute(asked.pid, static_cast<std::int32_t>(folder), text_at(asked.pid, address));
    if (!path.empty() && !in_view(path)) record(row->name, std::move(path), asked.pid);
  };
  constexpr auto here = static_cast<std::uint64_t>(AT_FDCWD);
  if (row == std::end(watched_calls) || row->kind == CallKind::forbidden) {
    record(row == std::end(watched_calls) ? "unknown" : row->name, "", asked.pid);
    answer.flags = 0;
    answer.error = -EPERM;
  } else if (row->kind == CallKind::address) {
    std::string target = address_text(asked.pid, args[1], args[2], network_);
    if (!target.empty() && (target.front() != '/' || !in_view(target))) record(row->name, std::move(target), asked.pid);
  } else if (row->kind == CallKind::path) {
    check(here, args[0]);
  } else if (row->kind == CallKind::path_at) {
    check(args[0], args[1]);
  } else if (row->kind == CallKind::two_paths) {
    check(here, args[0]);
    check(here, args[1]);
  } else {
    check(args[0], args[1]);
    check(args[2], args[3]);
  }
  ::ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);  // fails if the process has been killed
  return true;
}

std::vector<Refusal> Notifier::take() {
  std::vector<Refusal> all;
  for (auto& [key, count] : refused_) all.push_back({std::get<0>(key), std::get<1>(key), std::get<2>(key), count});
  refused_.clear();
  return all;
}

}  // namespace muniment::cli
