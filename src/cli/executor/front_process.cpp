#include "cli/executor/front_process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <string>

#include "base/files/file.hpp"

namespace muniment::cli {
namespace {

std::string read_proc(pid_t process, std::string_view name) {
  const Fd file(::open(fmt::format("/proc/{}/{}", process, name).c_str(), O_RDONLY | O_CLOEXEC));
  std::string text(16 * 1024, '\0');
  const ssize_t got = file.open() ? ::read(file.get(), text.data(), text.size()) : -1;
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return text;
}

// Returns the number after "Name:\t" in /proc/PID/status.
std::optional<std::uint64_t> status_value(std::string_view status, std::string_view name, int base) {
  const std::string label = fmt::format("\n{}:\t", name);
  const std::size_t at = status.find(label);
  if (at == std::string_view::npos) return std::nullopt;
  const char* const begin = status.data() + at + label.size();
  std::uint64_t value = 0;
  return std::from_chars(begin, status.data() + status.size(), value, base).ec == std::errc() ? std::optional(value)
                                                                                              : std::nullopt;
}

bool is_same_file(pid_t process, std::string_view name) {
  struct stat theirs {
  }, own{};
  return ::stat(fmt::format("/proc/{}/{}", process, name).c_str(), &theirs) == 0 &&
         ::stat(fmt::format("/proc/self/{}", name).c_str(), &own) == 0 && theirs.st_dev == own.st_dev &&
         theirs.st_ino == own.st_ino;
}

}  // namespace

std::optional<FrontState> front_state(pid_t front) {
  const std::string status = read_proc(front, "status");
  const auto umask = status_value(status, "Umask", 8);
  const auto ignored = status_value(status, "SigIgn", 16);
  const auto blocked = status_value(status, "SigBlk", 16);
  if (!umask || !ignored || !blocked) return std::nullopt;
  return FrontState{static_cast<mode_t>(*umask), *ignored, *blocked};
}

bool in_foreground(pid_t front) {
  const std::string stat = read_proc(front, "stat");
  // After the name in parentheses: state, parent, process group, session, terminal, its foreground group.
  std::size_t at = stat.rfind(')');
  if (at == std::string::npos) return false;
  std::string_view rest = std::string_view(stat).substr(at + 1);
  std::string_view fields[7];
  for (std::string_view& field : fields) {
    rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
    field = rest.substr(0, rest.find(' '));
    rest.remove_prefix(field.size());
  }
  return !fields[2].empty() && fields[2] == fields[5];
}

std::string_view confinement_of(pid_t front) {
  for (const char* name : {"ns/user", "ns/pid", "ns/mnt", "ns/net", "ns/ipc", "ns/uts"}) {
    if (!is_same_file(front, name)) return "your process is in another namespace (a container or a sandbox)";
  }
  if (!is_same_file(front, "root")) return "your process has another root folder";
  const std::string theirs = read_proc(front, "status");
  const std::string own = read_proc(::getpid(), "status");
  for (const char* name : {"NoNewPrivs", "Seccomp", "Seccomp_filters"}) {
    if (status_value(theirs, name, 10) != status_value(own, name, 10))
      return "your process is confined (seccomp, no_new_privs)";
  }
  // Only a root that has given up capabilities would gain them again; any other user's worker has none.
  const auto uid = status_value(theirs, "Uid", 10);
  for (const char* name : {"CapEff", "CapBnd"}) {
    const std::uint64_t missing =
        status_value(own, name, 16).value_or(~0ULL) & ~status_value(theirs, name, 16).value_or(0);
    if (missing != 0 && (uid == 0U || name == std::string_view("CapBnd")))
      return "your process has fewer capabilities than the daemon";
  }
  if (read_proc(front, "attr/current") != read_proc(::getpid(), "attr/current"))
    return "your process has another security label";
  return "";
}

}  // namespace muniment::cli
