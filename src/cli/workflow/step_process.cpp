// The child has three processes: one that enters the namespaces, process 1 of the new process namespace, which builds
// the view and waits, and the command. They send reports to this process over a socket.
#include "cli/workflow/step_process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <limits>
#include <span>

#include "base/limits.hpp"
#include "base/process/passed_descriptors.hpp"
#include "base/process/sandbox.hpp"
#include "cli/connect/upload.hpp"
#include "cli/workflow/descendants.hpp"

namespace muniment::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int poll_ms = 100;
constexpr auto disk_interval = std::chrono::milliseconds(200);
constexpr auto kill_patience = std::chrono::seconds(10);
constexpr int kill_interval_ms = 1;

enum class ReportKind : int { failed, ready, unstarted, ended, alone };

struct ChildReport {
  ReportKind kind = ReportKind::failed;
  int value = 0;     // errno, or the status of waitpid()
  int landlock = 0;  // ABI of the rules that apply; 0: none
  char text[48] = "";
};

void send_report(int socket, const ChildReport& report, int descriptor = -1) {
  const std::span<const int> passed(&descriptor, descriptor >= 0 ? 1 : 0);
  send_message(socket, {reinterpret_cast<const char*>(&report), sizeof report}, passed);
}

// Returns false at the end of the socket. `descriptor` receives a passed descriptor.
bool receive_report(int socket, ChildReport& report, Fd& descriptor) {
  PassedMessage message = receive_message(socket, {reinterpret_cast<char*>(&report), sizeof report});
  if (message.size != sizeof report) return false;
  if (!message.descriptors.empty()) descriptor = std::move(message.descriptors.front());
  return true;
}

// The processes of the child.
class Child {
 public:
  Child(const StepPlan& plan, bool confined, int socket, int out, int err)
      : plan_(plan), confined_(confined), socket_(socket), out_(out), err_(err) {
    for (const std::string& word : plan.argv) argv_.push_back(const_cast<char*>(word.c_str()));
    for (const std::string& variable : plan.environment) environment_.push_back(const_cast<char*>(variable.c_str()));
    argv_.push_back(nullptr);
    environment_.push_back(nullptr);
  }

  [[noreturn]] void run(pid_t parent) {
    if (!end_with_parent(parent)) ::_exit(1);
    ::setsid();
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::signal(SIGPIPE, SIG_DFL);
    const int null = ::open("/dev/null", O_RDONLY);
    ::dup2(null, STDIN_FILENO);
    ::dup2(out_, STDOUT_FILENO);
    ::dup2(err_, STDERR_FILENO);
    // The socket becomes descriptor 3; no other descriptor is inherited.
    if (socket_ != kept_) ::dup2(socket_, kept_);
    ::fcntl(kept_, F_SETFD, FD_CLOEXEC);
    close_descriptors_from(kept_ + 1);
    ::prctl(PR_SET_DUMPABLE,
            1);  // so that an ordinary user may set the user namespace up; nothing is inherited any more
    if (confined_) fail_if(enter_namespaces(plan_.view));
    const pid_t self = ::getpid();
    const pid_t first = ::fork();
    if (first < 0) fail_if("fork");
    if (first == 0) be_first(self);
    int status = 0;
    while (::waitpid(first, &status, 0) < 0 && errno == EINTR) continue;
    ::_exit(0);
  }

 private:
  static constexpr int kept_ = 3;

  void fail_if(const std::string& step) const {
    if (step.empty()) return;
    ChildReport report{.kind = ReportKind::failed, .value = errno};
    std::strncpy(report.text, step.c_str(), sizeof report.text - 1);
    send_report(kept_, report);
    ::_exit(1);
  }

  // Process 1 of a confined command: when it exits, the kernel kills every process of the namespace. That of an
  // unconfined command adopts what the command leaves behind, and reports when the parent has killed all of it.
  [[noreturn]] void be_first(pid_t parent) const {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    // In a new process namespace, the parent is not visible: its id is 0.
    if (const pid_t now = ::getppid(); now != 0 && now != parent) ::_exit(1);
    if (confined_) fail_if(enter_view(plan_.view, plan_.view_folder));
    if (!confined_) adopt_orphans();
    const pid_t command = ::fork();
    if (command < 0) fail_if("fork");
    if (command == 0) be_command();
    for (;;) {
      int status = 0;
      const pid_t ended = ::waitpid(-1, &status, 0);
      if (ended == command) send_report(kept_, {.kind = ReportKind::ended, .value = status});
      if (ended == command && confined_) ::_exit(0);
      if (ended < 0 && errno == ECHILD) break;
    }
    send_report(kept_, {.kind = ReportKind::alone});
    for (;;) ::pause();  // until it is killed
  }

  [[noreturn]] void be_command() const {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    set_limits();
    int notifier = -1;
    ChildReport report{.kind = ReportKind::ready};
    if (confined_) {
      fail_if(drop_privileges());
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // a change of the user clears it
      const auto abi = restrict_changes(plan_.view);
      report.landlock = abi ? *abi : 0;
      notifier = install_notifier();
      report.value = notifier < 0 ? errno : 0;
    }
    send_report(kept_, report, notifier);
    if (notifier >= 0) ::close(notifier);
    char go = 0;
    if (::recv(kept_, &go, 1, 0) != 1) ::_exit(1);  // the parent does not accept this isolation
    if (::chdir(plan_.folder.c_str()) != 0) fail_if("working folder");
    ::execve(argv_[0], argv_.data(), environment_.data());
    send_report(kept_, {.kind = ReportKind::unstarted, .value = errno});
    ::_exit(127);
  }

  void set_limits() const {
    const auto set = [](__rlimit_resource which, std::int64_t value) {
      const rlimit both{static_cast<rlim_t>(value), static_cast<rlim_t>(value)};
      ::setrlimit(which, &both);
    };
    set(RLIMIT_CORE, 0);
    set(RLIMIT_FSIZE, plan_.limits.disk_bytes);
    set(RLIMIT_AS, plan_.limits.memory_bytes);
    set(RLIMIT_NOFILE, limits::workflow_open_files_max);
    if (confined_) set(RLIMIT_NPROC, limits::workflow_processes_max);
  }

  const StepPlan& plan_;
  const bool confined_;
  const int socket_, out_, err_;
  std::vector<char*> argv_, environment_;
};

// An empty file occupies the disk too.
constexpr std::int64_t entry_bytes = 512;

constexpr std::int64_t infinite_bytes = std::numeric_limits<std::int64_t>::max();

bool too_deep(const std::error_code& failed) {
  return failed == std::errc::filename_too_long || failed == std::errc::too_many_files_open;
}

// Returns the size of all files below the folders. A folder that is nested too deep to be read counts as infinite.
std::int64_t size_of(const std::vector<std::string>& folders) {
  std::int64_t size = 0;
  for (const std::string& folder : folders) {
    std::error_code failed;
    std::filesystem::recursive_directory_iterator entries(
        folder, std::filesystem::directory_options::skip_permission_denied, failed);
    for (; !failed && entries != std::filesystem::recursive_directory_iterator(); entries.increment(failed)) {
      std::error_code unknown;
      size += entry_bytes;
      if (!entries->is_regular_file(unknown) || entries->is_symlink(unknown)) continue;
      const auto bytes = entries->file_size(unknown);
      if (too_deep(unknown)) return infinite_bytes;
      if (!unknown) size += static_cast<std::int64_t>(bytes);
    }
    if (too_deep(failed)) return infinite_bytes;
  }
  return size;
}

// One of the two outputs.
struct Capture {
  Fd source, file;
};

class StepRun {
 public:
  StepRun(const StepPlan& plan, StopSignals& stop, bool confined)
      : plan_(plan),
        stop_(stop),
        confined_(confined),
        notifier_(seen(plan.view), std::filesystem::path(plan.view_folder).parent_path().string(), plan.view.network) {}
  ~StepRun() { static_cast<void>(kill_all()); }

  Result<StepOutcome> run() {
    RETURN_IF_ERROR(start());
    pump();
    const Status alone = kill_all();
    if (ended_by_.empty() && size_of(plan_.writes) > plan_.limits.disk_bytes) end("disk_bytes");
    drain();
    if (!failure_.empty())
      return Error(Errc::unavailable,
                   fmt::format("the command cannot be isolated: {}: {}", failure_, std::strerror(failure_errno_)));
    if (!refused_isolation_.empty()) return Error(Errc::denied, refused_isolation_);
    if (unstarted_ != 0) return file_error("starting", plan_.argv.front(), unstarted_);
    RETURN_IF_ERROR(alone);
    return outcome();
  }

 private:
  static std::vector<std::string> seen(const View& view) {
    std::vector<std::string> paths = system_view();
    paths.insert(paths.end(), view.reads.begin(), view.reads.end());
    paths.insert(paths.end(), view.writes.begin(), view.writes.end());
    for (const char* own : {"/proc", "/dev"}) paths.emplace_back(own);
    return paths;
  }

  Status start() {
    Fd out_write, err_write, child_end;
    RETURN_IF_ERROR(make_output(out_, out_write));
    RETURN_IF_ERROR(make_output(err_, err_write));
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return no_process("socketpair");
    socket_ = Fd(ends[0]);
    child_end = Fd(ends[1]);
    started_ = Clock::now();
    const pid_t self = ::getpid();
    child_ = ::fork();
    if (child_ < 0) return no_process("fork");
    if (child_ == 0) Child(plan_, confined_, child_end.get(), out_write.get(), err_write.get()).run(self);
    return success();
  }

  static Error no_process(const char* what) {
    return Error(Errc::unavailable, fmt::format("cannot start a process: {}: {}", what, std::strerror(errno)));
  }

  static Status make_output(Capture& output, Fd& write_end) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return no_process("pipe");
    output.source = Fd(ends[0]);
    write_end = Fd(ends[1]);
    ASSIGN_OR_RETURN(output.file, temporary_file());
    return success();
  }

  void pump() {
    Clock::time_point disk_checked = started_;
    while (!ended_) {
      pollfd waits[] = {{stop_.fd(), POLLIN, 0},
                        {socket_.get(), POLLIN, 0},
                        {out_.source.get(), POLLIN, 0},
                        {err_.source.get(), POLLIN, 0},
                        {listener_.get(), POLLIN, 0}};
      if (::poll(waits, std::size(waits), poll_ms) < 0 && errno != EINTR) return end("interrupted");
      if (waits[0].revents != 0 && stop_.take()) return end("interrupted");
      if (waits[4].revents != 0 && ((waits[4].revents & POLLIN) == 0 || !notifier_.serve(listener_.get())))
        listener_.reset();
      if (waits[2].revents != 0) copy(out_);
      if (waits[3].revents != 0) copy(err_);
      if (waits[1].revents != 0) take_report();
      const auto now = Clock::now();
      if (now - started_ > std::chrono::seconds(plan_.limits.seconds)) return end("seconds");
      if (now - disk_checked > disk_interval) {
        disk_checked = now;
        if (size_of(plan_.writes) > plan_.limits.disk_bytes) return end("disk_bytes");
      }
      if (written_ > plan_.limits.output_bytes) return end("output_bytes");
    }
  }

  void end(const char* reason) {
    ended_by_ = reason;
    ended_ = true;
    status_ = SIGKILL;
  }

  void copy(Capture& output) {
    char piece[64 * 1024];
    const ssize_t got = ::read(output.source.get(), piece, sizeof piece);
    if (got < 0 && errno == EINTR) return;
    if (got <= 0) return output.source.reset();
    const std::int64_t left = std::max<std::int64_t>(0, plan_.limits.output_bytes - written_);
    const std::int64_t kept = std::min<std::int64_t>(got, left);
    written_ += got;
    if (!write_all(output.file.get(), {piece, static_cast<std::size_t>(kept)}, "a temporary file")) {
      output.source.reset();
      end("disk_full");
    }
  }

  void take_report() {
    ChildReport report;
    Fd passed;
    if (!receive_report(socket_.get(), report, passed)) {
      socket_.reset();
      if (failure_.empty() && unstarted_ == 0) status_ = SIGKILL;  // the child was killed from outside
      ended_ = true;
      return;
    }
    if (report.kind == ReportKind::failed) {
      failure_.assign(report.text, ::strnlen(report.text, sizeof report.text));
      failure_errno_ = report.value;
      ended_ = true;
    } else if (report.kind == ReportKind::ready) {
      listener_ = std::move(passed);
      judge(report);
    } else if (report.kind == ReportKind::unstarted) {
      unstarted_ = report.value;
    } else {
      status_ = report.value;
      ended_ = true;
      duration_ = Clock::now() - started_;
    }
  }

  // Decides whether the command may start.
  void judge(const ChildReport& report) {
    if (confined_) {
      isolation_.landlock = report.landlock;
      isolation_.level = listener_.open() ? "full" : "partial";
      if (listener_.open()) isolation_.source = "notifier";
      if (!listener_.open()) isolation_.missing.push_back(fmt::format("seccomp: {}", std::strerror(report.value)));
      if (report.landlock == 0) isolation_.missing.emplace_back("Landlock");
    }
    if (confined_ && plan_.isolation == "full" && isolation_.level != "full") {
      refused_isolation_ =
          fmt::format("isolation full is required, and only partial can be reached: {}", isolation_.missing.front());
      ended_ = true;
      return;
    }
    const char go = 1;
    if (::send(socket_.get(), &go, 1, MSG_NOSIGNAL) != 1) ended_ = true;
  }

  Status kill_all() {
    if (child_ <= 0) return success();
    Status alone = confined_ ? success() : end_descendants();
    ::kill(-child_, SIGKILL);
    ::kill(child_, SIGKILL);
    int status = 0;
    while (::waitpid(child_, &status, 0) < 0 && errno == EINTR) continue;
    child_ = -1;
    return alone;
  }

  // Kills what an unconfined command left behind. The kernel decides whether anything is left: process 1 reports that
  // it has no children. If a process that was left behind killed process 1, the socket ends without this report.
  Status end_descendants() {
    const auto end = Clock::now() + kill_patience;
    while (socket_.open() && Clock::now() < end) {
      kill_descendants(child_);
      pollfd wait{socket_.get(), POLLIN, 0};
      if (::poll(&wait, 1, kill_interval_ms) <= 0) continue;
      ChildReport report;
      Fd passed;
      if (!receive_report(socket_.get(), report, passed)) {
        socket_.reset();
      } else if (report.kind == ReportKind::alone) {
        return success();
      }
    }
    if (socket_.open())
      return Error(Errc::unavailable,
                   fmt::format("the command left processes that could not be ended in {} s", kill_patience.count()));
    return Error(Errc::unavailable,
                 "the process that watches the command was killed; the command may have left processes that still run");
  }

  // Reads what remains in the pipes.
  void drain() {
    for (Capture* output : {&out_, &err_}) {
      while (output->source.open() && written_ <= plan_.limits.output_bytes) {
        pollfd wait{output->source.get(), POLLIN, 0};
        if (::poll(&wait, 1, poll_ms) <= 0) break;
        copy(*output);
      }
    }
    if (written_ > plan_.limits.output_bytes && ended_by_.empty()) end("output_bytes");
  }

  StepOutcome outcome() {
    StepOutcome outcome;
    if (WIFSIGNALED(status_)) {
      outcome.signal = WTERMSIG(status_);
    } else {
      outcome.exit_code = WEXITSTATUS(status_);
    }
    outcome.ended_by = ended_by_;
    if (duration_ == Clock::duration::zero()) duration_ = Clock::now() - started_;
    outcome.duration_us = std::chrono::duration_cast<std::chrono::microseconds>(duration_).count();
    outcome.stdout_file = std::move(out_.file);
    outcome.stderr_file = std::move(err_.file);
    outcome.isolation = isolation_;
    outcome.refused = notifier_.total();
    outcome.omitted = notifier_.omitted();
    outcome.refusals = notifier_.take();
    return outcome;
  }

  const StepPlan& plan_;
  StopSignals& stop_;
  const bool confined_;
  Notifier notifier_;
  Capture out_, err_;
  Fd socket_, listener_;
  pid_t child_ = -1;
  Clock::time_point started_;
  Clock::duration duration_{0};
  std::int64_t written_ = 0;
  bool ended_ = false;
  int status_ = 0;
  int unstarted_ = 0;  // errno of a failed exec
  std::string ended_by_, failure_, refused_isolation_;
  int failure_errno_ = 0;
  Isolation isolation_;
};

}  // namespace

Result<StepOutcome> run_step(const StepPlan& plan, StopSignals& stop) {
  auto outcome = StepRun(plan, stop, plan.confined).run();
  const bool free = plan.confined && plan.isolation == "none";
  if (outcome || !free || outcome.error().code != Errc::unavailable) return outcome;
  const std::string reason = outcome.error().message;
  outcome = StepRun(plan, stop, false).run();
  if (outcome) outcome->isolation.missing.push_back(reason);
  return outcome;
}

}  // namespace muniment::cli
