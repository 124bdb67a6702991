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
#include <span>
#include <utility>

#include "base/limits.hpp"
#include "base/process/passed_descriptors.hpp"
#include "base/process/sandbox.hpp"
#include "cli/workflow/descendants.hpp"
#include "cli/workflow/folder_watch.hpp"
#include "cli/workflow/notifier.hpp"
#include "client/connect/upload.hpp"

namespace muniment::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int poll_ms = 100;
constexpr auto kill_patience = std::chrono::seconds(10);
constexpr int kill_interval_ms = 1;
constexpr std::int64_t private_surplus_bytes = 1 << 20;

enum class ReportKind : int { failed, folder, ready, unstarted, ended, alone };

// The processes that a command can reach.
enum class Reach {
  all,       // no namespaces are permitted: this process must find what the command leaves behind
  own,       // a process namespace, and a folder in memory
  confined,  // a view
};

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
  Child(const StepPlan& plan, Reach reach, int socket, int out, int err)
      : plan_(plan), reach_(reach), socket_(socket), out_(out), err_(err) {
    for (const std::string& word : plan.argv) argv_.push_back(const_cast<char*>(word.c_str()));
    for (const std::string& variable : plan.environment) environment_.push_back(const_cast<char*>(variable.c_str()));
    argv_.push_back(nullptr);
    environment_.push_back(nullptr);
  }

  [[noreturn]] void run(pid_t parent) {
    if (!end_with_parent(parent)) ::_exit(1);
    ::setsid();
    ::sigfillset(&all_);
    ::sigprocmask(SIG_SETMASK, &all_, nullptr);
    ::signal(SIGPIPE, SIG_DFL);
    const int null = ::open("/dev/null", O_RDONLY);
    ::dup2(null, STDIN_FILENO);
    ::dup2(out_, STDOUT_FILENO);
    ::dup2(err_, STDERR_FILENO);
    // The socket becomes descriptor 3; no other descriptor is inherited.
    if (socket_ != kept) ::dup2(socket_, kept);
    ::fcntl(kept, F_SETFD, FD_CLOEXEC);
    close_descriptors_from(kept + 1);
    ::prctl(PR_SET_DUMPABLE,
            1);  // so that an ordinary user may set the user namespace up; nothing is inherited any more
    if (reach_ == Reach::confined) fail_if(enter_namespaces(plan_.view));
    if (reach_ == Reach::own) fail_if(enter_own_processes());
    if (!end_with_parent(parent)) ::_exit(1);  // a change of the user clears it
    const pid_t self = ::getpid();
    const pid_t first = ::fork();
    if (first < 0) fail_if("fork");
    if (first == 0) be_first(self);
    // Process 1 has ended when every process of its namespace has.
    while (::waitpid(first, nullptr, WNOHANG) != first) {
      siginfo_t got{};
      if (::sigwaitinfo(&all_, &got) == SIGTERM) ::kill(first, SIGKILL);
    }
    ::_exit(0);
  }

 private:
  static constexpr int kept = 3;

  void fail_if(const std::string& step) const {
    if (step.empty()) return;
    ChildReport report{.kind = ReportKind::failed, .value = errno};
    std::strncpy(report.text, step.c_str(), sizeof report.text - 1);
    send_report(kept, report);
    ::_exit(1);
  }

  // Process 1 of a process namespace: when it exits, the kernel kills every process of the namespace. That of a command
  // without one adopts what the command leaves behind, and reports when the parent has killed all of it.
  [[noreturn]] void be_first(pid_t parent) const {
    ::prctl(PR_SET_PDEATHSIG, reach_ == Reach::all ? SIGTERM : SIGKILL);
    // In a new process namespace, the parent is not visible: its id is 0.
    if (const pid_t now = ::getppid(); now != 0 && now != parent) ::_exit(1);
    if (reach_ == Reach::confined) fail_if(enter_view(plan_.view, plan_.view_folder));
    if (reach_ == Reach::own) make_private_folder();
    if (reach_ == Reach::all) adopt_orphans();
    const pid_t command = ::fork();
    if (command < 0) fail_if("fork");
    if (command == 0) be_command();
    for (bool alone = false;;) {
      int status = 0;
      const pid_t ended = ::waitpid(-1, &status, WNOHANG);
      if (ended == command) send_report(kept, {.kind = ReportKind::ended, .value = status});
      if (ended == command && reach_ != Reach::all) ::_exit(0);
      if (ended > 0) continue;
      if (ended < 0 && errno == ECHILD && !std::exchange(alone, true)) send_report(kept, {.kind = ReportKind::alone});
      siginfo_t got{};
      if (::sigwaitinfo(&all_, &got) != SIGTERM || reach_ != Reach::all) continue;
      end_own_descendants();  // the parent was killed
      ::_exit(0);
    }
  }

  void make_private_folder() const {
    // A little more than the limit, so that the limit is noticed.
    fail_if(mount_private(plan_.private_folder, plan_.limits.disk_bytes + private_surplus_bytes));
    const int folder = ::open(plan_.private_folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) fail_if("private folder");
    send_report(kept, {.kind = ReportKind::folder}, folder);
    ::close(folder);
  }

  [[noreturn]] void be_command() const {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    set_limits();
    int notifier = -1;
    ChildReport report{.kind = ReportKind::ready};
    if (reach_ == Reach::confined) {
      fail_if(drop_privileges());
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // a change of the user clears it
      const auto abi = restrict_changes(plan_.view);
      report.landlock = abi ? *abi : 0;
      notifier = install_notifier();
      report.value = notifier < 0 ? errno : 0;
      if (notifier < 0) install_filter();
    }
    send_report(kept, report, notifier);
    if (notifier >= 0) ::close(notifier);
    char go = 0;
    if (::recv(kept, &go, 1, 0) != 1) ::_exit(1);  // the parent does not accept this isolation
    if (::chdir(plan_.folder.c_str()) != 0) fail_if("working folder");
    ::execve(argv_[0], argv_.data(), environment_.data());
    send_report(kept, {.kind = ReportKind::unstarted, .value = errno});
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
    if (reach_ == Reach::confined) set(RLIMIT_NPROC, limits::workflow_processes_max);
  }

  const StepPlan& plan_;
  const Reach reach_;
  const int socket_, out_, err_;
  sigset_t all_{};
  std::vector<char*> argv_, environment_;
};

// One of the two outputs.
struct Capture {
  Fd source, file;
};

class StepRun {
 public:
  StepRun(const StepPlan& plan, StopSignals& stop, Reach reach)
      : plan_(plan),
        stop_(stop),
        reach_(reach),
        notifier_(watched(plan)),
        folders_(plan.writes, {plan.limits.disk_bytes, plan.files_max}) {}
  ~StepRun() { static_cast<void>(kill_all()); }

  Result<StepOutcome> run() {
    RETURN_IF_ERROR(start());
    folders_.start();
    pump();
    const Status alone = kill_all();
    notifier_.stop();
    std::vector<std::string> written = plan_.writes;
    if (private_folder_.open()) written.push_back(path_of(private_folder_));
    if (const char* limit = folders_.finish(std::move(written)); limit != nullptr && ended_by_.empty()) end(limit);
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
  static Watched watched(const StepPlan& plan) {
    Watched watched{.seen = system_view(),
                    .hidden = std::filesystem::path(plan.view_folder).parent_path().string(),
                    .removed = plan.removed,
                    .examined = plan.examined,
                    .network = plan.view.network};
    std::vector<std::string>& seen = watched.seen;
    seen.insert(seen.end(), plan.view.reads.begin(), plan.view.reads.end());
    seen.insert(seen.end(), plan.view.writes.begin(), plan.view.writes.end());
    for (const char* own : {"/proc", "/dev"}) seen.emplace_back(own);
    return watched;
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
    if (child_ == 0) Child(plan_, reach_, child_end.get(), out_write.get(), err_write.get()).run(self);
    return success();
  }

  static Error no_process(const char* what) {
    return Error(Errc::unavailable, fmt::format("cannot start a process: {}: {}", what, std::strerror(errno)));
  }

  Status make_output(Capture& output, Fd& write_end) const {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return no_process("pipe");
    output.source = Fd(ends[0]);
    write_end = Fd(ends[1]);
    // A confined command of root has another user, which opens /dev/stderr.
    if (reach_ == Reach::confined && ::geteuid() == 0 && ::fchown(write_end.get(), confined_uid, confined_uid) != 0)
      return no_process("the owner of a pipe");
    ASSIGN_OR_RETURN(output.file, temporary_file());
    return success();
  }

  void pump() {
    while (!ended_) {
      pollfd waits[] = {{stop_.fd(), POLLIN, 0},
                        {socket_.get(), POLLIN, 0},
                        {out_.source.get(), POLLIN, 0},
                        {err_.source.get(), POLLIN, 0}};
      if (::poll(waits, std::size(waits), poll_ms) < 0 && errno != EINTR) return end("interrupted");
      if (waits[0].revents != 0 && stop_.take()) return end("interrupted");
      if (waits[2].revents != 0) copy(out_);
      if (waits[3].revents != 0) copy(err_);
      if (waits[1].revents != 0) take_report();
      if (Clock::now() - started_ > std::chrono::seconds(plan_.limits.seconds)) return end("seconds");
      if (const char* limit = folders_.exceeded(); limit != nullptr) return end(limit);
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
    } else if (report.kind == ReportKind::folder) {
      private_folder_ = std::move(passed);
    } else if (report.kind == ReportKind::ready) {
      judge(report, std::move(passed));
    } else if (report.kind == ReportKind::unstarted) {
      unstarted_ = report.value;
    } else {
      status_ = report.value;
      ended_ = true;
      duration_ = Clock::now() - started_;
    }
  }

  // Decides whether the command may start.
  void judge(const ChildReport& report, Fd listener) {
    if (reach_ == Reach::confined) {
      isolation_.landlock = report.landlock;
      isolation_.level = listener.open() ? "full" : "partial";
      if (listener.open()) isolation_.source = "notifier";
      if (!listener.open()) isolation_.missing.push_back(fmt::format("seccomp: {}", std::strerror(report.value)));
      if (report.landlock == 0) isolation_.missing.emplace_back("Landlock");
    }
    if (reach_ == Reach::confined && plan_.isolation == "full" && isolation_.level != "full") {
      refused_isolation_ =
          fmt::format("isolation full is required, and only partial can be reached: {}", isolation_.missing.front());
      ended_ = true;
      return;
    }
    if (listener.open()) notifier_.start(std::move(listener));
    const char go = 1;
    if (::send(socket_.get(), &go, 1, MSG_NOSIGNAL) != 1) ended_ = true;
  }

  Status kill_all() {
    if (child_ <= 0) return success();
    Status alone = reach_ == Reach::all ? end_descendants() : end_namespace();
    ::kill(-child_, SIGKILL);
    ::kill(child_, SIGKILL);
    while (::waitpid(child_, nullptr, 0) < 0 && errno == EINTR) continue;
    child_ = -1;
    return alone;
  }

  // The child ends when the kernel has ended every process of the namespace.
  Status end_namespace() {
    const auto end = Clock::now() + kill_patience;
    ::kill(child_, SIGTERM);
    while (Clock::now() < end) {
      siginfo_t ended{};
      if (::waitid(P_PID, static_cast<id_t>(child_), &ended, WEXITED | WNOHANG | WNOWAIT) == 0 && ended.si_pid != 0)
        return success();
      ::poll(nullptr, 0, kill_interval_ms);
    }
    return left_processes();
  }

  static Error left_processes() {
    return Error(Errc::unavailable,
                 fmt::format("the command left processes that could not be ended in {} s", kill_patience.count()));
  }

  // Kills what a command without a namespace left behind. The kernel decides whether anything is left: process 1
  // reports that it has no children. If a process that was left behind killed process 1, the socket ends without this
  // report.
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
    if (socket_.open()) return left_processes();
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
    outcome.private_folder = std::move(private_folder_);
    outcome.isolation = isolation_;
    if (!plan_.examined.empty() && !isolation_.source.empty()) outcome.examined = notifier_.examined();
    outcome.refused = notifier_.total();
    outcome.omitted = notifier_.omitted();
    outcome.refusals = notifier_.take();
    return outcome;
  }

  const StepPlan& plan_;
  StopSignals& stop_;
  const Reach reach_;
  Notifier notifier_;
  FolderWatch folders_;
  Capture out_, err_;
  Fd socket_, private_folder_;
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
  const Reach wanted = plan.confined ? Reach::confined : plan.private_folder.empty() ? Reach::all : Reach::own;
  auto outcome = StepRun(plan, stop, wanted).run();
  const bool free = wanted != Reach::all && plan.isolation == "none";
  if (outcome || !free || outcome.error().code != Errc::unavailable) return outcome;
  const std::string reason = outcome.error().message;
  outcome = StepRun(plan, stop, Reach::all).run();
  if (outcome && plan.confined) outcome->isolation.missing.push_back(reason);
  return outcome;
}

}  // namespace muniment::cli
