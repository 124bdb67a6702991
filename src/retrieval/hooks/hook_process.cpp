// Runs a hook's process and collects its output.
#include "retrieval/hooks/hook_process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include <fmt/format.h>

#include "base/files/file.hpp"
#include "base/files/memory_file.hpp"
#include "base/limits.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "store/postgres/child_process.hpp"

namespace muniment::retrieval {
namespace {

constexpr std::size_t logged_bytes_max = 2'000;  // logged bytes of a hook's standard error
constexpr std::int64_t cpu_seconds_max = 600;    // limit of a hook that outlives a crashed daemon

Error failed(std::string why) { return Error(Errc::unavailable, std::move(why)); }
Error failed_call(const char* call) { return failed(std::string(call) + ": " + store::errno_text(errno)); }

// A process group; the destructor kills it and waits for its leader.
class Group {
 public:
  explicit Group(pid_t leader) : leader_(leader), ended_(static_cast<int>(::syscall(SYS_pidfd_open, leader, 0))) {}
  ~Group() {
    if (leader_ > 0) end();
  }
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  const Fd& ended() const { return ended_; }  // readable once the leader has ended by itself
  void kill() const { ::kill(-leader_, SIGKILL); }
  // Reaps the leader only now, because until then its number belongs to the group.
  int end() {
    kill();
    int status = 0;
    while (::waitpid(leader_, &status, 0) < 0 && errno == EINTR) {
    }
    leader_ = 0;
    return status;
  }

 private:
  pid_t leader_;
  Fd ended_;
};

// The output from a pipe; `open` is true until its end was read.
struct Stream {
  Fd pipe;
  std::string text;
  std::size_t kept_max = 0;
  bool open = true;
  bool too_much = false;  // more than kept_max arrived; the rest is discarded

  // Reads what is available, at most one full pipe, without blocking.
  void take() {
    char buffer[64 * 1024];
    const ssize_t got = ::read(pipe.get(), buffer, sizeof buffer);
    if (got < 0) {
      open = errno == EAGAIN || errno == EINTR;
      return;
    }
    open = got > 0;
    const std::size_t room = kept_max - text.size(), count = static_cast<std::size_t>(got);
    text.append(buffer, std::min(room, count));
    too_much = too_much || count > room;
  }
};

struct Ends {
  Stream reading;
  Fd writing;
};

Result<Ends> make_pipe(std::size_t kept_max) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return failed_call("pipe");
  Ends made{{Fd(ends[0]), {}, kept_max}, Fd(ends[1])};
  if (::fcntl(ends[0], F_SETFL, O_NONBLOCK) != 0) return failed_call("pipe");
  return made;
}

std::vector<std::string> environment() {
  const char* home = std::getenv("HOME");
  return {"PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8", std::string("HOME=") + (home != nullptr ? home : "/")};
}

// Returns when the hook has ended, is late, or has written too much.
Status attend(const Group& group, Stream& answer, Stream& errors, Deadline deadline) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
    if (left <= 0) return Error(Errc::deadline_exceeded, "");
    pollfd waited[] = {{group.ended().get(), POLLIN, 0},
                       {answer.open ? answer.pipe.get() : -1, POLLIN, 0},
                       {errors.open ? errors.pipe.get() : -1, POLLIN, 0}};
    if (::poll(waited, std::size(waited), static_cast<int>(std::min<std::int64_t>(left, 60'000))) < 0 && errno != EINTR)
      return failed_call("poll");
    if (waited[1].revents != 0) answer.take();
    if (waited[2].revents != 0) errors.take();
    if (answer.too_much)
      return failed(fmt::format("an answer of more than {} bytes", grouped(limits::hook_answer_bytes_max)));
    if (waited[0].revents != 0) break;
  }
  // Once the group is killed no process writes, so the pipes hold the rest.
  group.kill();
  while (answer.open && !answer.too_much) {
    const std::size_t before = answer.text.size();
    answer.take();
    if (answer.text.size() == before) break;
  }
  errors.take();
  if (answer.too_much)
    return failed(fmt::format("an answer of more than {} bytes", grouped(limits::hook_answer_bytes_max)));
  return success();
}

}  // namespace

Result<std::string> run_hook(const HookCommand& command, std::string_view input, Deadline deadline) {
  const Monotonic begin = std::chrono::steady_clock::now();
  deadline = std::min(deadline, begin + command.limit);
  ASSIGN_OR_RETURN(const Fd given, memory_file("hook-input", input));
  ASSIGN_OR_RETURN(Ends answer, make_pipe(limits::hook_answer_bytes_max));
  ASSIGN_OR_RETURN(Ends errors, make_pipe(logged_bytes_max));
  store::Command start;
  start.argv = command.argv;
  start.input = given.get();
  start.output = answer.writing.get();
  start.errors = errors.writing.get();
  start.environment = environment();
  start.cpu_seconds_max = cpu_seconds_max;
  start.core_dumps = false;
  start.ends_with_thread = true;
  const auto pid = store::spawn(start);
  if (!pid) return failed(pid.error().message);
  answer.writing.reset();
  errors.writing.reset();
  Group group(*pid);
  if (!group.ended().open()) return failed_call("pidfd_open");
  const Status attended = attend(group, answer.reading, errors.reading, deadline);
  const int status = store::exit_status_of(group.end());
  if (!errors.reading.text.empty()) {
    log_info(command.name, {{"stderr", errors.reading.text}, {"cut", errors.reading.too_much}});
  }
  if (!attended && attended.error().code == Errc::deadline_exceeded) {
    return failed(
        fmt::format("no answer within {} ms", std::chrono::ceil<std::chrono::milliseconds>(deadline - begin).count()));
  }
  if (!attended) return attended.error();
  if (status != 0)
    return failed(status > 128 ? fmt::format("it was ended by signal {}", status - 128)
                               : fmt::format("exit status {}", status));
  return std::move(answer.reading.text);
}

}  // namespace muniment::retrieval
