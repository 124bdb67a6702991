#include "cli/bead/bd_program.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>

#include "base/files/file.hpp"
#include "base/json/json.hpp"
#include "base/process/sandbox.hpp"
#include "base/text.hpp"

namespace muniment::cli {
namespace {

using Clock = std::chrono::steady_clock;

struct Pipe {
  Fd reads, writes;
};

Result<Pipe> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return file_error("creating", "a pipe for bd", errno);
  Pipe made{Fd(ends[0]), Fd(ends[1])};
  ::fcntl(made.reads.get(), F_SETFL, O_NONBLOCK);
  return made;
}

// Appends the available bytes to `text`, which keeps at most `bytes_max` of them; the number of all bytes is added to
// `total`. Returns false at the end of the stream.
bool drain(const Fd& stream, std::string& text, std::size_t bytes_max, std::size_t& total) {
  char piece[64 * 1024];
  while (total <= limits::bd_output_bytes_max) {
    const ssize_t got = ::read(stream.get(), piece, sizeof piece);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno == EAGAIN;
    if (got == 0) return false;
    const auto bytes = static_cast<std::size_t>(got);
    text.append(piece, std::min(bytes, bytes_max - std::min(bytes_max, text.size())));
    total += bytes;
  }
  return true;
}

// One run of bd.
class BdCall {
 public:
  BdCall(const BdProgram& program, const std::vector<std::string>& words)
      : program_(program), name_("bd " + words.front()) {}

  Status start(std::vector<std::string> words) {
    ASSIGN_OR_RETURN(out_, make_pipe());
    ASSIGN_OR_RETURN(err_, make_pipe());
    words.insert(words.begin(), program_.path);
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    ASSIGN_OR_RETURN(Pipe failure, make_pipe());
    const pid_t self = ::getpid();
    pid_ = ::fork();
    if (pid_ == 0) become_bd(arguments.data(), self, failure.writes.get());
    if (pid_ < 0) return file_error("starting", name_, errno);
    out_.writes.reset();
    err_.writes.reset();
    failure.writes.reset();
    ::fcntl(failure.reads.get(), F_SETFL, 0);
    int failed = 0;  // errno of exec, which closes the pipe if it succeeds
    if (::read(failure.reads.get(), &failed, sizeof failed) != static_cast<ssize_t>(sizeof failed)) return success();
    ::waitpid(pid_, nullptr, 0);
    return Error(failed == ENOENT ? Errc::not_found : Errc::denied,
                 fmt::format("{}: {}. Install Beads (https://github.com/steveyegge/beads), or name its program: --bd "
                             "PROGRAM or MUNIMENT_BD",
                             shell_word(program_.path), std::strerror(failed)));
  }

  // Errors: as run_bd.
  Result<std::string> finish() {
    Status ended = wait();
    if (!ended) ::kill(-pid_, SIGKILL);
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) continue;
    if (!ended) return std::move(ended).error();
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return std::move(output_);
    return Error(Errc::conflict, fmt::format("{} failed ({}){}", name_,
                                             WIFSIGNALED(status) ? fmt::format("signal {}", WTERMSIG(status))
                                                                 : fmt::format("exit code {}", WEXITSTATUS(status)),
                                             said()));
  }

 private:
  // Runs in the child. bd ends with this process, in whatever way this one ends.
  [[noreturn]] void become_bd(char* const* arguments, pid_t parent, int failure) const {
    ::setpgid(0, 0);
    if (!end_with_parent(parent)) ::_exit(127);
    const int null = ::open("/dev/null", O_RDONLY);
    ::dup2(null, STDIN_FILENO);
    ::dup2(out_.writes.get(), STDOUT_FILENO);
    ::dup2(err_.writes.get(), STDERR_FILENO);
    ::execvp(arguments[0], arguments);
    const int reason = errno;
    if (::write(failure, &reason, sizeof reason) < 0) ::_exit(126);
    ::_exit(127);
  }

  // Reads both streams until the process ends: a process that it started may keep them open.
  Status wait() {
    const Fd process(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
    if (!process.open()) return file_error("waiting for", name_, errno);
    const auto until = Clock::now() + std::chrono::seconds(program_.seconds_max);
    for (bool ended = false; !ended;) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
      if (left <= 0) {
        return Error(
            Errc::deadline_exceeded,
            fmt::format("{} did not end within {} s and was killed. Run it by hand to find the cause, or allow "
                        "more time: --timeout SECONDS",
                        name_, program_.seconds_max));
      }
      pollfd waiting[3] = {{out_.reads.get(), POLLIN, 0}, {err_.reads.get(), POLLIN, 0}, {process.get(), POLLIN, 0}};
      if (::poll(waiting, 3, static_cast<int>(left)) < 0 && errno != EINTR) return file_error("reading", name_, errno);
      ended = (waiting[2].revents & POLLIN) != 0;
      if (!drain(out_.reads, output_, limits::bd_output_bytes_max, total_)) out_.reads.reset();
      if (!drain(err_.reads, message_, limits::bd_message_bytes_max, total_)) err_.reads.reset();
      if (total_ > limits::bd_output_bytes_max) {
        return Error(Errc::too_large, fmt::format("{} printed more than {} and was killed", name_,
                                                  human_size(limits::bd_output_bytes_max)));
      }
    }
    return success();
  }

  // Returns the message of a failed bd: JSON with the member error on either stream, or the text of standard error.
  std::string said() const {
    for (const std::string& text : {output_, message_}) {
      const auto document = json::parse(text);
      if (!document) continue;
      const json::Value root = document->root();
      const json::Value error = root["error"] ? root["error"] : root["data"]["error"];
      if (error.is(json::Kind::string)) return ": " + error.string_or("").substr(0, limits::bd_message_bytes_max);
    }
    const std::size_t end = message_.find_last_not_of(" \t\r\n");
    return end == std::string::npos ? "" : ": " + message_.substr(0, end + 1);
  }

  const BdProgram& program_;
  const std::string name_;  // in errors
  Pipe out_, err_;
  pid_t pid_ = -1;
  std::string output_;   // standard output
  std::string message_;  // the beginning of standard error
  std::size_t total_ = 0;
};

}  // namespace

Result<std::string> run_bd(const BdProgram& program, std::vector<std::string> words) {
  BdCall call(program, words);
  words.emplace_back("--json");
  RETURN_IF_ERROR(call.start(std::move(words)));
  return call.finish();
}

}  // namespace muniment::cli
