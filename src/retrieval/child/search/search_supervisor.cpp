// Runs the thread that starts, watches and ends search children.
#include "retrieval/child/search/search_supervisor.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>

#include "base/log.hpp"
#include "base/process/thread.hpp"
#include "retrieval/child/search/search_child.hpp"

namespace muniment::retrieval {

namespace {

// Time that a start waits for the remote server's dimension.
constexpr std::chrono::milliseconds remote_patience{1'000};

int patience_until(Deadline deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - steady_now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 60'000));
}

// A fault of the child itself, possibly caused by damaged files, as opposed to a kill from outside.
bool is_crash(int signal) {
  return signal == SIGSEGV || signal == SIGBUS || signal == SIGABRT || signal == SIGILL || signal == SIGFPE ||
         signal == SIGSYS;
}

}  // namespace

SearchSupervisor::SearchSupervisor(const SearchClientOptions& options, ChannelPool& pool)
    : options_(options), pool_(pool), wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (options.remote.open) embeds_ = std::make_unique<EmbedServer>(options.remote, [this] { wake(); });
}

SearchSupervisor::~SearchSupervisor() { stop(); }

Status SearchSupervisor::start() {
  if (!wake_.open()) return Error(Errc::unavailable, "no descriptor is left for the search child");
  thread_ = named_thread("search child", [this] { run(); });
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return tried_; });
  if (first_failure_) return *first_failure_;
  return success();
}

void SearchSupervisor::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  wake();
  if (thread_.joinable()) thread_.join();
  if (embeds_) embeds_->stop();
}

void SearchSupervisor::wake() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t ignored = ::write(wake_.get(), &one, sizeof one);
}

void SearchSupervisor::clear_wake() const {
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t ignored = ::read(wake_.get(), &count, sizeof count);
}

void SearchSupervisor::lost(const std::shared_ptr<SearchProcess>& process, const Error& why) {
  pool_.close(process);
  {
    const std::lock_guard lock(mutex_);
    if (process != process_ || lost_) return;
    lost_ = why;
  }
  wake();
}

Result<std::shared_ptr<SearchProcess>> SearchSupervisor::serving(Deadline deadline) {
  std::unique_lock lock(mutex_);
  const bool known =
      changed_.wait_until(lock, deadline, [this] { return (process_ && !lost_) || refusal_ || stopping_; });
  if (!known) return Error(Errc::deadline_exceeded, "the search child is being started");
  if (stopping_) return Error(Errc::unavailable, "search is stopped");
  if (process_ && !lost_) return process_;
  return *refusal_;
}

SearchHealth SearchSupervisor::health() const {
  const std::string problem = embeds_ ? embeds_->problem() : std::string();
  const std::lock_guard lock(mutex_);
  SearchHealth health = health_;
  health.embedding_problem = problem;
  return health;
}

bool SearchSupervisor::stopping() const {
  const std::lock_guard lock(mutex_);
  return stopping_;
}

void SearchSupervisor::run() {
  RestartPace pace(options_.restart);
  while (!stopping()) {
    const RestartPace::Death death = live_and_die();
    if (stopping()) break;
    const RestartPace::Verdict verdict = pace.after(death, steady_now());
    empty_first_ = verdict.empty_first;
    rest(verdict);
  }
  pool_.refuse(Error(Errc::unavailable, "search is stopped"));
}

// Runs one child from its start to its end.
RestartPace::Death SearchSupervisor::live_and_die() {
  SearchSetup setup{options_.engine,
                    static_cast<std::uint32_t>(options_.search_channels),
                    options_.needs_sandbox,
                    options_.address_space_bytes_max,
                    {},
                    0};
  setup.engine.empty_first = setup.engine.empty_first || empty_first_;
  name_remote(setup);
  auto started = SearchProcess::start(options_.command, setup, embeds_.get());
  {
    const std::lock_guard lock(mutex_);
    if (!tried_ && !started) first_failure_ = started.error();
    tried_ = true;
    health_.pid = started ? (*started)->pid() : 0;
  }
  changed_.notify_all();
  if (!started) return failed_start(started.error());
  const std::shared_ptr<SearchProcess> process = *std::move(started);
  const auto hello = await_hello(*process);
  if (!hello) {
    {
      const std::lock_guard lock(mutex_);
      lost_ = hello.error();
    }
    return bury(process, false);
  }
  open(process, *hello);
  watch(process);
  return bury(process, true);
}

// A child receives the address of the embedding server when it starts. A child that started before the address was
// known reports this in its answers until it is replaced.
void SearchSupervisor::name_remote(SearchSetup& setup) {
  if (!embeds_) return;
  const auto identity = embeds_->first_identity(steady_now() + remote_patience);
  has_remote_ = identity.has_value();
  if (identity)
    setup.remote = *identity;
  else
    setup.engine.remote_missing = "http: the server's dimension is not known yet";
  setup.query_ms = options_.remote.query_patience.count();
}

bool SearchSupervisor::lacks_remote() const { return embeds_ && !has_remote_ && embeds_->identity(); }

RestartPace::Death SearchSupervisor::failed_start(const Error& why) {
  log_error("the search child cannot be started", {{"error", why.message}});
  const std::lock_guard lock(mutex_);
  health_.reason = why.message;
  return {};
}

Result<SearchHello> SearchSupervisor::await_hello(SearchProcess& process) {
  const Deadline deadline = steady_now() + options_.start_hang;
  while (steady_now() < deadline && !stopping()) {
    pollfd both[] = {{process.socket_of(control_channel), POLLIN, 0}, {wake_.get(), POLLIN, 0}};
    ::poll(both, 2, patience_until(deadline));
    if (both[1].revents != 0) clear_wake();
    if (both[0].revents != 0) return process.hello();
  }
  return Error(Errc::unavailable, "it did not open its indexes in time");
}

void SearchSupervisor::open(const std::shared_ptr<SearchProcess>& process, const SearchHello& hello) {
  {
    const std::lock_guard lock(mutex_);
    process_ = process;
    lost_.reset();
    refusal_.reset();
    health_.serving = true;
    health_.degraded = hello.sandbox_missing;
  }
  pool_.open(process, options_.search_channels);
  changed_.notify_all();
  log_info("the search child serves", {{"pid", process->pid()},
                                       {"lexical", hello.status.lexical_next_seq},
                                       {"vector", hello.status.vector_next_seq},
                                       {"rebuilt", hello.status.rebuilt.size()}});
}

bool SearchSupervisor::ended(const std::shared_ptr<SearchProcess>& process) const {
  const std::lock_guard lock(mutex_);
  return stopping_ || (process == process_ && lost_);
}

// Returns when the child has ended or has to end.
void SearchSupervisor::watch(const std::shared_ptr<SearchProcess>& process) {
  std::vector<ChannelPool::Late> late;
  while (!ended(process)) {
    if (lacks_remote()) {
      lost(process,
           Error(Errc::unavailable, "the search process restarts with the dimension of the embedding server. Retry"));
      return;
    }
    for (ChannelPool::Late& more : pool_.take_late()) {
      if (more.lease.process == process) late.push_back(std::move(more));
    }
    std::vector<pollfd> waited{{wake_.get(), POLLIN, 0}, {process->child().exited().get(), POLLIN, 0}};
    Deadline first_hang = steady_now() + std::chrono::minutes(1);
    for (const ChannelPool::Late& one : late) {
      waited.push_back({process->socket_of(one.lease.channel), POLLIN, 0});
      first_hang = std::min(first_hang, one.hangs_at);
    }
    ::poll(waited.data(), waited.size(), patience_until(first_hang));
    if (waited[0].revents != 0) clear_wake();
    if (waited[1].revents != 0) return;
    if (!settle_late(late)) return;
  }
}

// Discards the late answers and frees their channels. Returns false if the child is lost.
bool SearchSupervisor::settle_late(std::vector<ChannelPool::Late>& late) {
  for (std::size_t i = 0; i < late.size();) {
    const ChannelPool::Lease& lease = late[i].lease;
    if (await_readable(lease.process->socket_of(lease.channel), steady_now())) {
      const auto reply = lease.process->take_late(lease.channel);
      if (reply.state != SearchProcess::Reply::State::answered) {
        lost(lease.process, reply.payload.error());
        return false;
      }
      pool_.give_back(lease);
      late.erase(late.begin() + static_cast<std::ptrdiff_t>(i));
    } else if (steady_now() >= late[i].hangs_at) {
      lost(lease.process, Error(Errc::unavailable, "the search child hangs"));
      return false;
    } else {
      ++i;
    }
  }
  return true;
}

RestartPace::Death SearchSupervisor::bury(const std::shared_ptr<SearchProcess>& process, bool served) {
  pool_.close(process);
  if (stopping()) {
    pool_.refuse(Error(Errc::unavailable, "search is stopped"));
    process->ask_to_stop();
    process->child().wait_until(steady_now() + options_.stop_patience);
  }
  // The signal tells how a child died, so only a child that still lives is killed.
  const bool by_itself = process->child().wait_until(steady_now() + std::chrono::milliseconds(served ? 50 : 200));
  if (!by_itself) process->child().kill();
  const Child::Ending ending = process->child().wait();
  process->ask_to_stop();
  const std::lock_guard lock(mutex_);
  RestartPace::Death death{served, by_itself && is_crash(ending.signal), lost_ && lost_->code == Errc::corrupt};
  health_.reason = by_itself ? "the search child ended: " + ending.text : "the search child was killed";
  if (lost_ && (!by_itself || !served)) health_.reason += ": " + lost_->message;
  process_.reset();
  lost_.reset();
  health_.serving = false;
  health_.pid = 0;
  if (!stopping_) {
    ++health_.restarts;
    log_warning("restarting the search child", {{"error", health_.reason}, {"restarts", health_.restarts}});
  }
  return death;
}

void SearchSupervisor::rest(const RestartPace::Verdict& verdict) {
  std::unique_lock lock(mutex_);
  if (verdict.give_up) {
    refusal_ = Error(Errc::unavailable, "search is down: " + health_.reason);
    refusal_->retry_after_ms = verdict.wait.count();
    health_.reason = refusal_->message;
    pool_.refuse(refusal_);
    changed_.notify_all();
  }
  changed_.wait_for(lock, verdict.wait, [this] { return stopping_; });
  // Searches are refused while starts keep failing; they wait again once a child serves.
}

}  // namespace muniment::retrieval
