#include "cli/workflow/notifier.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <span>

#include "base/limits.hpp"
#include "base/process/thread.hpp"

namespace muniment::cli {
namespace {

constexpr std::size_t path_bytes_max = 4096;
constexpr std::size_t page_bytes = 4096;  // the smallest of all architectures

// From Linux 6.6 on: the command and this thread wake each other on the same processor. The headers of Debian 12 are
// older.
constexpr unsigned long set_flags = _IOW('!', 4, std::uint64_t);
constexpr std::uint64_t wake_here = 1;

// Reads up to `size` bytes, fewer at the end of a mapping.
std::size_t read_memory(std::uint32_t pid, std::uint64_t address, char* into, std::size_t size) {
  iovec here{into, size};
  iovec there{reinterpret_cast<void*>(static_cast<std::uintptr_t>(address)), size};
  ssize_t got = ::process_vm_readv(static_cast<pid_t>(pid), &here, 1, &there, 1, 0);
  if (got < 0 && (errno == ENOSYS || errno == EPERM)) {  // some containers refuse the call
    const Fd memory(::open(fmt::format("/proc/{}/mem", pid).c_str(), O_RDONLY | O_CLOEXEC));
    got = memory.open() ? ::pread(memory.get(), into, size, static_cast<off_t>(address)) : -1;
  }
  return got > 0 ? static_cast<std::size_t>(got) : 0;
}

// The text may end at the end of a mapping, so that no read crosses a page.
std::string text_at(std::uint32_t pid, std::uint64_t address) {
  std::string text;
  char page[page_bytes];
  while (text.size() < path_bytes_max) {
    const std::size_t wanted = page_bytes - address % page_bytes;
    const std::size_t got = read_memory(pid, address, page, wanted);
    const std::string_view read(page, got);
    text += read.substr(0, read.find('\0'));
    if (got < wanted || read.find('\0') != std::string_view::npos) break;
    address += got;
  }
  text.resize(std::min(text.size(), path_bytes_max));
  return text;
}

std::string link_of(std::uint32_t pid, const std::string& name) {
  std::error_code failed;
  return std::filesystem::read_symlink(fmt::format("/proc/{}/{}", pid, name), failed).string();
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
  sockaddr_storage storage{};
  const std::size_t wanted = std::min<std::uint64_t>(length, sizeof storage);
  std::string bytes(wanted, '\0');
  bytes.resize(read_memory(pid, address, bytes.data(), wanted));
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

// Returns whether the path, as the process resolves it, is a regular file below `folder`.
bool is_file_below(std::uint32_t pid, const std::string& path, const std::string& folder) {
  const Fd root(::open(fmt::format("/proc/{}/root", pid).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  open_how how{};
  how.flags = O_PATH | O_CLOEXEC;
  how.resolve = RESOLVE_IN_ROOT;
  const Fd file(root.open() ? static_cast<int>(::syscall(SYS_openat2, root.get(), path.c_str(), &how, sizeof how))
                            : -1);
  struct stat about {};
  if (!file.open() || ::fstat(file.get(), &about) != 0 || !S_ISREG(about.st_mode)) return false;
  std::error_code failed;
  return is_beneath(std::filesystem::read_symlink(fmt::format("/proc/self/fd/{}", file.get()), failed).string(),
                    folder);
}

bool exists_outside(const std::string& path) {
  std::error_code failed;
  return std::filesystem::exists(std::filesystem::symlink_status(path, failed));
}

}  // namespace

void Notifier::start(Fd listener) {
  listener_ = std::move(listener);
  stopping_ = Fd(::eventfd(0, EFD_CLOEXEC));
  ::ioctl(listener_.get(), set_flags, wake_here);
  thread_ = named_thread("notifier", [this] { answer_all(); });
}

void Notifier::stop() {
  if (!thread_.joinable()) return;
  const std::uint64_t once = 1;
  static_cast<void>(::write(stopping_.get(), &once, sizeof once));
  thread_.join();
  listener_.reset();  // a call that is still reported fails with ENOSYS
}

void Notifier::answer_all() {
  for (;;) {
    pollfd waits[] = {{listener_.get(), POLLIN, 0}, {stopping_.get(), POLLIN, 0}};
    if (::poll(waits, std::size(waits), -1) < 0 && errno != EINTR) return;
    if (waits[1].revents != 0 || (waits[0].revents & (POLLHUP | POLLERR | POLLNVAL)) != 0) return;
    if ((waits[0].revents & POLLIN) != 0) answer_one();
  }
}

bool Notifier::in_view(const std::string& path) const {
  const auto known = [&](const std::string& seen) { return is_beneath(path, seen) || is_beneath(seen, path); };
  if (std::any_of(watched_.seen.begin(), watched_.seen.end(), known)) return true;
  if (!is_beneath(path, "/tmp") || is_beneath(path, watched_.hidden)) return false;
  // A path of the private /tmp; if it also exists outside, the command may have looked for that file.
  return !exists_outside(path);
}

// Programs look for many files that exist nowhere: in the folders of PATH, and configuration in the folders above.
bool Notifier::is_noticed(const WatchedCall& call, const std::string& path) const {
  if (call.access == Access::open || call.access == Access::change) return true;
  const auto above = [&](const std::string& removed) { return is_beneath(path, removed); };
  return std::any_of(watched_.removed.begin(), watched_.removed.end(), above) || exists_outside(path);
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

void Notifier::judge_path(const WatchedCall& call, std::uint32_t pid, std::uint64_t folder, std::uint64_t address) {
  std::string path = absolute(pid, static_cast<std::int32_t>(folder), text_at(pid, address));
  if (path.empty()) return;
  if (!in_view(path)) {
    if (is_noticed(call, path)) record(call.name, std::move(path), pid);
  } else if (!examined_ && !watched_.examined.empty() &&
             (call.access == Access::open || call.access == Access::execute)) {
    examined_ = is_file_below(pid, path, watched_.examined);
  }
}

// Returns the error of the call; 0: the kernel executes it.
std::int32_t Notifier::judge(const seccomp_notif& asked) {
  constexpr auto here = static_cast<std::uint64_t>(AT_FDCWD);
  const auto& args = asked.data.args;
  const std::span<const WatchedCall> calls = watched_calls();
  const auto call =
      std::find_if(calls.begin(), calls.end(), [&](const WatchedCall& one) { return one.number == asked.data.nr; });
  if (call == calls.end()) {
    record("unknown", "", asked.pid);
    return -EPERM;
  }
  switch (call->kind) {
    case CallKind::path: judge_path(*call, asked.pid, here, args[0]); return 0;
    case CallKind::path_at: judge_path(*call, asked.pid, args[0], args[1]); return 0;
    case CallKind::two_paths:
      judge_path(*call, asked.pid, here, args[0]);
      judge_path(*call, asked.pid, here, args[1]);
      return 0;
    case CallKind::two_paths_at:
      judge_path(*call, asked.pid, args[0], args[1]);
      judge_path(*call, asked.pid, args[2], args[3]);
      return 0;
    case CallKind::address: {
      std::string target = address_text(asked.pid, args[1], args[2], watched_.network);
      if (!target.empty() && (target.front() != '/' || !in_view(target)))
        record(call->name, std::move(target), asked.pid);
      return 0;
    }
    case CallKind::family: record(call->name, family_name(static_cast<int>(args[0])), asked.pid); return -EAFNOSUPPORT;
    case CallKind::namespaces:
    case CallKind::none: break;
  }
  record(call->name, "", asked.pid);
  return -EPERM;
}

void Notifier::answer_one() {
  seccomp_notif asked{};
  if (::ioctl(listener_.get(), SECCOMP_IOCTL_NOTIF_RECV, &asked) != 0) return;  // the process has been killed
  seccomp_notif_resp answer{};
  answer.id = asked.id;
  answer.error = judge(asked);
  if (answer.error == 0) answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
  ::ioctl(listener_.get(), SECCOMP_IOCTL_NOTIF_SEND, &answer);  // likewise
}

std::vector<Refusal> Notifier::take() {
  std::vector<Refusal> all;
  for (auto& [key, count] : refused_) all.push_back({std::get<0>(key), std::get<1>(key), std::get<2>(key), count});
  refused_.clear();
  return all;
}

}  // namespace muniment::cli
