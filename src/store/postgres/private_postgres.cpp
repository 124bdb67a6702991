// Implements private_postgres.hpp. The supervising thread polls the server's pidfd, an eventfd that `stop` writes to,
// and an inotify descriptor of the programs' folder. An idle server therefore causes no wake-ups.
#include "store/postgres/private_postgres.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <mutex>
#include <thread>

#include "base/ids.hpp"
#include "base/process/thread.hpp"
#include "store/postgres/database.hpp"
#include "store/postgres/postgres_cluster.hpp"
#include "store/postgres/postgres_process.hpp"
#include "store/postgres/server_user.hpp"

namespace muniment::store {

namespace {

constexpr std::chrono::milliseconds backoff_first{50};
constexpr std::chrono::milliseconds backoff_max{5'000};
// A package manager replaces many files. The restart waits until no file has changed for this long.
constexpr std::chrono::milliseconds upgrade_settle{3'000};

std::string uri_of(const PostgresPlace& place, std::string_view database) {
  return "postgresql://muniment@/" + std::string(database) + "?host=" + percent_encode(place.socket_folder) +
         "&port=" + std::to_string(place.port);
}

}  // namespace

class PrivatePostgres::Impl {
 public:
  explicit Impl(PrivatePostgresOptions options)
      : options_(std::move(options)),
        stop_event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        programs_watch_(inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) {}
  ~Impl() { stop(shutdown_patience); }

  Status start();
  void stop(std::chrono::milliseconds patience);

  std::string uri() const { return uri_of(place_, "muniment"); }
  std::string log_file() const { return server_log(place_.cluster); }
  int pid() const { return pid_.load(); }
  bool alive() const { return alive_.load(); }

 private:
  Status prepare();
  Status bring_up();
  Status first_launch();
  Status launch();
  Error interrupted();
  void supervise();
  enum class Wake { stop, ended, program_changed };
  Wake wait_for_news();
  void restart();
  void restart_after_upgrade();
  bool stop_within(std::chrono::milliseconds time);
  void note(const std::string& text) const {
    if (options_.notice) options_.notice(text);
  }

  const PrivatePostgresOptions options_;
  const Fd stop_event_;
  const Fd programs_watch_;
  int interrupt_ = -1;  // interrupts waits: first the caller's descriptor in `start`, then a separate one
  PostgresPlace place_;
  bool settings_changed_ = false;           // settings changed since the start of the running server
  std::optional<PostgresProcess> process_;  // used only by the supervising thread while it runs
  std::atomic<int> pid_{0};
  std::atomic<bool> alive_{false};
  std::thread supervisor_;
  std::mutex stop_mutex_;
};

Status PrivatePostgres::Impl::start() {
  interrupt_ = options_.interrupt;
  RETURN_IF_ERROR(prepare());
  RETURN_IF_ERROR(bring_up());
  RETURN_IF_ERROR(make_database(uri_of(place_, "postgres"), "muniment"));
  inotify_add_watch(programs_watch_.get(), place_.programs.c_str(), IN_MOVED_TO | IN_CLOSE_WRITE);
  interrupt_ = stop_event_.get();
  supervisor_ = named_thread("supervisor", [this] { supervise(); });
  return success();
}

// Prepares everything except the server itself: programs, user, cluster, settings, socket folder.
Status PrivatePostgres::Impl::prepare() {
  std::error_code error;
  std::filesystem::create_directories(options_.data_dir, error);
  if (error) {
    return Error(Errc::system_error, "making " + options_.data_dir + ": " + error.message());
  }
  // An operator may have moved the cluster to another disk with a symbolic link.
  place_.cluster = std::filesystem::weakly_canonical(options_.data_dir + "/postgres", error).string();
  ASSIGN_OR_RETURN(place_.programs, find_postgres_programs(place_.cluster));
  ASSIGN_OR_RETURN(place_.user, server_user(place_.cluster));
  if (place_.user) {
    ASSIGN_OR_RETURN(const auto opened, open_way(place_.cluster, *place_.user));
    for (const std::string& folder : opened) {
      note("permitted " + place_.user->name + " to pass through " + folder + " (ACL entry u:" + place_.user->name +
           ":--x), because Postgres does not run as root");
    }
  }
  ASSIGN_OR_RETURN(const auto major, cluster_major(place_.cluster));
  if (!major) {
    RETURN_IF_ERROR(make_cluster(place_.cluster, place_.programs, place_.user));
  } else if (place_.user) {
    RETURN_IF_ERROR(take_from_root(place_.cluster, *place_.user));
  }
  ASSIGN_OR_RETURN(settings_changed_, write_settings(place_.cluster, place_.programs, place_.user, options_.reporter));
  place_.port = port_of(options_.reporter);
  ASSIGN_OR_RETURN(place_.socket_folder, socket_folder(place_.cluster, place_.user));
  return success();
}

// Adopts a running server or launches one.
Status PrivatePostgres::Impl::bring_up() {
  const auto running = running_server(place_.cluster);
  process_ = running ? PostgresProcess::adopt(running->pid) : std::nullopt;
  if (!process_) return first_launch();
  if (process_->program_was_replaced(place_.programs) || settings_changed_) {
    note(settings_changed_ ? "the settings of Postgres changed while it ran; restarting it"
                           : "Postgres was upgraded while it ran; restarting it");
    process_->end(shutdown_patience);
    return first_launch();
  }
  if (!running->socket_folder.empty()) place_.socket_folder = running->socket_folder;
  const auto readiness = process_->wait_until_ready(place_.cluster, interrupt_, options_.start_limit);
  if (readiness == PostgresProcess::Readiness::interrupted) return interrupted();
  if (readiness != PostgresProcess::Readiness::ready) return first_launch();
  note("adopted the Postgres of a previous daemon (pid " + std::to_string(process_->pid()) + ")");
  pid_ = process_->pid();
  alive_ = true;
  return success();
}

// The first start fails if the reporters' port is unavailable, because an operator then reads the error.
Status PrivatePostgres::Impl::first_launch() {
  if (options_.reporter) RETURN_IF_ERROR(can_listen(*options_.reporter));
  return launch();
}

Status PrivatePostgres::Impl::launch() {
  ASSIGN_OR_RETURN(process_, PostgresProcess::launch(place_));
  const auto readiness = process_->wait_until_ready(place_.cluster, interrupt_, options_.start_limit);
  if (readiness == PostgresProcess::Readiness::interrupted) return interrupted();
  if (readiness == PostgresProcess::Readiness::ready) {
    pid_ = process_->pid();
    alive_ = true;
    return success();
  }
  std::string how = "did not take connections within " + std::to_string(options_.start_limit.count()) + " s";
  if (readiness == PostgresProcess::Readiness::ended) {
    how = "ended while starting (" + process_->reap() + ")";
  } else {
    process_->end(shutdown_patience);
  }
  process_.reset();
  const std::string log = log_file();
  return Error(Errc::system_error, "the private Postgres " + how + ". The end of " + log + ":\n" + last_lines(log, 6));
}

Error PrivatePostgres::Impl::interrupted() {
  process_->end(shutdown_patience);
  process_.reset();
  return {Errc::unavailable, "the start of the private Postgres was interrupted"};
}

void PrivatePostgres::Impl::supervise() {
  for (;;) {
    switch (wait_for_news()) {
      case Wake::stop: return;
      case Wake::ended: {
        alive_ = false;
        pid_ = 0;
        const std::string how = process_->reap();
        process_.reset();
        note("Postgres ended (" + how + "); starting it again. Its log is " + log_file());
        restart();
        break;
      }
      case Wake::program_changed: restart_after_upgrade(); break;
    }
    if (!process_) return;  // `stop` was called while no server ran
  }
}

PrivatePostgres::Impl::Wake PrivatePostgres::Impl::wait_for_news() {
  for (;;) {
    std::array<pollfd, 3> watched = {
        {{stop_event_.get(), POLLIN, 0}, {process_->pidfd(), POLLIN, 0}, {programs_watch_.get(), POLLIN, 0}}};
    if (poll(watched.data(), watched.size(), -1) < 0) continue;
    if (watched[0].revents != 0) return Wake::stop;
    if (watched[1].revents != 0) return Wake::ended;
    std::array<char, 4096> events;
    while (read(programs_watch_.get(), events.data(), events.size()) > 0) {
    }
    if (process_->program_was_replaced(place_.programs)) return Wake::program_changed;
  }
}

// Retries until the server runs or `stop` is called. A full disk stops Postgres, which must restart by itself once
// space is available.
void PrivatePostgres::Impl::restart() {
  std::string last_failure;
  for (auto backoff = backoff_first;; backoff = std::min(backoff * 2, backoff_max)) {
    if (stop_within(backoff)) return;
    // The log must continue even while another program uses the reporters' port.
    const Status listening = options_.reporter ? can_listen(*options_.reporter) : success();
    if (!listening) note("Postgres starts without its TCP port: " + listening.error().message);
    place_.without_tcp = !listening;
    const Status launched = launch();
    if (launched) {
      note("Postgres runs again (pid " + std::to_string(pid()) + ")");
      return;
    }
    if (launched.error().message != last_failure) note(launched.error().message);
    last_failure = launched.error().message;
  }
}

void PrivatePostgres::Impl::restart_after_upgrade() {
  std::array<char, 4096> events;
  do {
    if (stop_within(upgrade_settle)) return;
  } while (read(programs_watch_.get(), events.data(), events.size()) > 0);
  note("the Postgres program was replaced (a package upgrade); restarting the server");
  alive_ = false;
  pid_ = 0;
  process_->end(shutdown_patience);
  process_.reset();
  restart();
}

bool PrivatePostgres::Impl::stop_within(std::chrono::milliseconds time) {
  pollfd stopped{stop_event_.get(), POLLIN, 0};
  return poll(&stopped, 1, static_cast<int>(time.count())) > 0;
}

void PrivatePostgres::Impl::stop(std::chrono::milliseconds patience) {
  const std::lock_guard lock(stop_mutex_);
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t ignored = write(stop_event_.get(), &one, sizeof one);
  if (supervisor_.joinable()) supervisor_.join();
  alive_ = false;
  pid_ = 0;
  if (process_) process_->end(patience);
  process_.reset();
}

PrivatePostgres::PrivatePostgres(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
PrivatePostgres::~PrivatePostgres() = default;

Result<std::unique_ptr<PrivatePostgres>> PrivatePostgres::start(PrivatePostgresOptions options) {
  auto impl = std::make_unique<Impl>(std::move(options));
  RETURN_IF_ERROR(impl->start());
  return std::unique_ptr<PrivatePostgres>(new PrivatePostgres(std::move(impl)));
}

std::string PrivatePostgres::uri() const { return impl_->uri(); }
std::string PrivatePostgres::log_file() const { return impl_->log_file(); }
int PrivatePostgres::pid() const { return impl_->pid(); }
bool PrivatePostgres::alive() const { return impl_->alive(); }
void PrivatePostgres::stop(std::chrono::milliseconds patience) { impl_->stop(patience); }

}  // namespace muniment::store
