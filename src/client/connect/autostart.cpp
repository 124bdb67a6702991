#include "client/connect/autostart.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "client/connect/client.hpp"

namespace muniment::cli {
namespace {

// The first start creates the Postgres cluster, possibly on a slow disk.
constexpr std::chrono::seconds start_patience{120};
constexpr std::chrono::milliseconds start_poll{20};
// Two commands may start a daemon at the same time. The second daemon then exits, and the first one answers soon.
constexpr std::chrono::seconds other_patience{3};

Error os_error(std::string_view what) {
  return Error(Errc::unavailable, fmt::format("{}: {}", what, std::strerror(errno)));
}

std::string last_lines(const std::string& path, std::size_t count, std::uintmax_t from) {
  std::ifstream file(path);
  file.seekg(static_cast<std::streamoff>(from));
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) {
    lines.push_back(std::move(line));
    if (lines.size() > count) lines.erase(lines.begin());
  }
  std::string text;
  for (const std::string& line : lines) text += "\n  " + line;
  return text;
}

// Runs in the child between fork and exec, so only async-signal-safe calls are allowed.
[[noreturn]] void become_daemon(const char* program, char* const* arguments, int log) {
  ::setsid();
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);  // exec keeps the signal mask, but the daemon must receive signals
  const int null = ::open("/dev/null", O_RDONLY);
  ::dup2(null, STDIN_FILENO);
  ::dup2(log, STDOUT_FILENO);
  ::dup2(log, STDERR_FILENO);
  ::syscall(SYS_close_range, 3U, ~0U, 0U);
  if (::chdir("/") != 0) ::_exit(127);
  ::execv(program, arguments);
  ::_exit(127);
}

std::vector<std::string> daemon_arguments(const std::string& program, const Config& config, const ConfigInputs& inputs,
                                          bool continue_restored) {
  std::vector<std::string> arguments = {program, "--data", config.data};
  // The daemon does not read the system configuration by itself once a data folder is named.
  if (const std::string file = load_config(inputs).file; !file.empty()) {
    arguments.insert(arguments.end(), {"--config", std::filesystem::absolute(file).string()});
  }
  for (const auto& [key, value] : inputs.flags) {
    if (key == "socket") arguments.insert(arguments.end(), {"--socket", config.socket});
    if (key == "database") arguments.insert(arguments.end(), {"--database", value});
  }
  if (continue_restored) arguments.emplace_back("--continue-restored");
  return arguments;
}

// Waits until the daemon `pid` answers on the socket or has exited.
Status await_daemon(const Config& config, pid_t pid, const std::string& log_path, std::uintmax_t log_from) {
  auto until = std::chrono::steady_clock::now() + start_patience;
  bool exited = false;
  while (std::chrono::steady_clock::now() < until) {
    if (auto client = Client::connect(config.socket); client && client->call("server.health", "{}")) {
      return success();
    }
    if (!exited && ::waitpid(pid, nullptr, WNOHANG) == pid) {
      exited = true;
      until = std::chrono::steady_clock::now() + other_patience;
    }
    std::this_thread::sleep_for(start_poll);
  }
  if (exited) {
    return Error(Errc::unavailable, fmt::format("munimentd did not start (see {}, or: muniment doctor):{}", log_path,
                                                last_lines(log_path, 5, log_from)));
  }
  return Error(Errc::unavailable, fmt::format("munimentd (pid {}) does not answer after {} s. See {}", pid,
                                              start_patience.count(), log_path));
}

}  // namespace

Result<std::string> find_daemon() {
  std::error_code failed;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", failed);
  const std::string beside = (self.parent_path() / "munimentd").string();
  if (!failed && ::access(beside.c_str(), X_OK) == 0) return beside;
  const char* path = std::getenv("PATH");
  std::string_view folders = path == nullptr ? "" : path;
  while (!folders.empty()) {
    const std::size_t colon = folders.find(':');
    const std::string candidate = std::string(folders.substr(0, colon)) + "/munimentd";
    if (::access(candidate.c_str(), X_OK) == 0) return candidate;
    folders = colon == std::string_view::npos ? std::string_view() : folders.substr(colon + 1);
  }
  return Error(Errc::not_found, fmt::format("munimentd was found neither at {} nor in PATH", beside));
}

Result<std::int32_t> start_daemon(const Config& config, const ConfigInputs& inputs, bool continue_restored) {
  ASSIGN_OR_RETURN(const std::string program, find_daemon());
  std::error_code failed;
  if (!std::filesystem::exists(config.data, failed)) {
    std::filesystem::create_directories(config.data, failed);
    if (!failed) ::chmod(config.data.c_str(), 0700);
  }
  struct stat about {};
  const bool there = ::stat(config.data.c_str(), &about) == 0;
  if (there && !S_ISDIR(about.st_mode))
    return Error(Errc::invalid_argument, config.data + " is not a folder. Name the data folder: --data DIR");
  // A daemon of another user would create files that the service cannot read.
  if (there && about.st_uid != ::geteuid()) {
    return Error(
        Errc::unavailable,
        fmt::format("no daemon listens at {}, and only uid {}, the owner of {}, may start it. To start the service: "
                    "systemctl start munimentd.socket",
                    config.socket, about.st_uid, config.data));
  }
  const std::string log_path = config.data + "/munimentd.log";
  const int log = ::open(log_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (log < 0) return os_error("cannot write " + log_path);
  const std::uintmax_t log_from = std::filesystem::file_size(log_path, failed);

  const std::vector<std::string> arguments = daemon_arguments(program, config, inputs, continue_restored);
  std::vector<char*> pointers;
  for (const std::string& argument : arguments) pointers.push_back(const_cast<char*>(argument.c_str()));
  pointers.push_back(nullptr);
  const pid_t pid = ::fork();
  if (pid == 0) become_daemon(program.c_str(), pointers.data(), log);
  ::close(log);
  if (pid < 0) return os_error("cannot start munimentd");
  RETURN_IF_ERROR(await_daemon(config, pid, log_path, log_from));
  return pid;
}

Status stop_daemon(std::int32_t pid, std::chrono::milliseconds patience) {
  // Uses a descriptor of the process, so that a reused pid is never signalled.
  const int process = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
  if (process < 0) return errno == ESRCH ? success() : Status(os_error("cannot watch munimentd"));
  // Does not signal a foreign process that holds the socket, or one that cannot be inspected.
  std::string name;
  std::getline(std::ifstream(fmt::format("/proc/{}/comm", pid)), name);
  Status outcome = success();
  if (name != "munimentd") {
    outcome = Error(
        Errc::unavailable,
        fmt::format(
            "the socket is held by {} (pid {}). To stop the service: systemctl stop munimentd.socket munimentd.service",
            name.empty() ? "another process" : name, pid));
  } else if (::syscall(SYS_pidfd_send_signal, process, SIGTERM, nullptr, 0) != 0 && errno != ESRCH) {
    outcome = Error(Errc::denied, fmt::format("cannot stop munimentd (pid {}): {}", pid, std::strerror(errno)));
  } else {
    pollfd wait{process, POLLIN, 0};
    if (::poll(&wait, 1, static_cast<int>(patience.count())) == 0) {
      outcome = Error(Errc::deadline_exceeded,
                      fmt::format("munimentd (pid {}) is still running after {} s; it ends when its queue is "
                                  "written",
                                  pid, patience.count() / 1000));
    }
  }
  ::close(process);
  return outcome;
}

}  // namespace muniment::cli
