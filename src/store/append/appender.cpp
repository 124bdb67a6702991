#include "store/append/appender.hpp"

#include <algorithm>

#include "base/limits.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "store/append/appender_impl.hpp"
#include "store/append/log_end.hpp"
#include "store/read/reader.hpp"

namespace muniment::store {
namespace {

using std::chrono::milliseconds;

// Delay for events whose sender does not wait, so that one commit covers all that arrive meanwhile.
constexpr milliseconds patience{20};
constexpr milliseconds connect_at_most{5'000};

}  // namespace

Status Appender::Impl::submit(AppendRequest request) {
  const std::size_t bytes = bytes_of(request);
  bool wake = false;
  request.queued = std::chrono::steady_clock::now();
  {
    std::lock_guard lock(mutex_);
    if (refusal_) return *refusal_;
    if (stopping_ || ended_) {
      return Error(Errc::unavailable,
                   (ended_ ? ended_->message : "the daemon is stopping") + "; your event was not accepted");
    }
    if (!published_.away.empty()) {
      ++refused_requests_;
      refused_events_ += static_cast<std::int64_t>(request.events.size());
      const std::int64_t since = (clock_.now().micros - published_.since.micros) / 1'000'000;
      Error error(Errc::unavailable, published_.away + " since " + std::to_string(since) +
                                         " s; your event was not accepted. Retry in 2 s with the same event_id.");
      error.retry_after_ms = 2'000;
      return error;
    }
    if (queued_events_ + request.events.size() > limits::append_queue_events_max ||
        queued_bytes_ + bytes > limits::append_queue_bytes_max) {
      Error error(Errc::over_budget, "the append queue is full (" + std::to_string(queued_events_) + " events, " +
                                         std::to_string(queued_bytes_) + " bytes). Retry in 100 ms.");
      error.limit = static_cast<std::int64_t>(limits::append_queue_events_max);
      error.retry_after_ms = 100;
      return error;
    }
    queued_events_ += request.events.size();
    queued_bytes_ += bytes;
    const Monotonic due = request.patient ? request.queued + patience : Monotonic();
    const bool sooner = !due_ || due < *due_;
    if (sooner) due_ = due;
    queue_.push_back(std::move(request));
    wake = sooner && std::exchange(waiting_, false);
  }
  if (wake) wake_.notify_one();
  return success();
}

LogStatus Appender::Impl::status() const {
  const std::int64_t in_flight =
      in_flight_events_;  // read before the size: events committed in between are counted twice, never missed
  std::lock_guard lock(mutex_);
  LogStatus status = published_;
  status.in_flight = in_flight;
  status.size = committed_edge_.size();
  status.root = committed_edge_.root();
  status.queued_events = static_cast<std::int64_t>(queued_events_);
  status.queued_bytes = static_cast<std::int64_t>(queued_bytes_);
  return status;
}

void Appender::Impl::refuse(Error why) {
  log_error("appends are refused until the daemon restarts", {{"error", why.message}});
  std::lock_guard lock(mutex_);
  published_.refused = why.message;
  refusal_ = std::move(why);
}

void Appender::Impl::close() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    waiting_ = false;
  }
  wake_.notify_one();
}

void Appender::Impl::stop() {
  close();
  if (thread_.joinable()) thread_.join();
}

Status Appender::Impl::open() {
  RETURN_IF_ERROR(connection_.connect(connect_at_most));
  ASSIGN_OR_RETURN(const bool locked, connection_.try_lock());
  locked_ = locked;
  if (!locked) {
    const auto known = connection_.lock_holder();
    const std::string holder = known ? *known : "";
    const std::size_t folder = holder.find(":/");
    return Error(Errc::conflict,
                 "log " + std::to_string(options_.log_no) + " of this database is held by another daemon" +
                     (holder.empty() ? "" : ", " + holder) + ". Stop that one first: muniment down --data " +
                     (folder == std::string::npos ? "DIR" : shell_word(holder.substr(folder + 1))));
  }
  ASSIGN_OR_RETURN(const TakenOver taken, connection_.take_over(std::nullopt));
  RETURN_IF_ERROR(connection_.await_standbys(options_.commit_deadline));
  epoch_ = taken.epoch;
  owned_ = true;
  heard_ = std::chrono::steady_clock::now();
  looked_ = Monotonic::min();  // settings were not checked on this connection
  head_.log_id = taken.log_id;
  RETURN_IF_ERROR(catch_up());
  published_.log_id = head_.log_id;
  published_.epoch = epoch_;
  tail_.start_at(head_.next_seq);
  return success();
}

Status Appender::Impl::catch_up() {
  ASSIGN_OR_RETURN(last_committed_, connection_.last_row());
  ASSIGN_OR_RETURN(head_.next_run_no, connection_.next_run_no());
  for (const std::int64_t size : options_.roots_wanted) roots_at_start_.emplace(size, std::nullopt);
  Reader reader({options_.uri, options_.log_no});
  ASSIGN_OR_RETURN(const FoundTree tree,
                   find_tree(connection_, reader, head_.log_id, last_committed_.seq, roots_at_start_));
  checkpoint_size_ = tree.stored_size;
  committed_edge_ = head_.edge = tree.edge;
  head_.next_seq = size_at_start_ = head_.edge.size();
  checkpoint_time_ = last_monotonic_ = clock_.monotonic();
  // A clock behind the end of the log was set back while no daemon ran; the first batch records that.
  EventFilter end;
  end.newest_first = true;
  ASSIGN_OR_RETURN(const auto at_end, reader.events(end, 1));
  last_wall_ = at_end.empty() ? clock_.now() : std::max(clock_.now(), at_end[0].recorded_at);

  auto log_run = runs_.insert(std::make_shared<Run>(std::string(log_run_id)));
  EventFilter newest;
  newest.run_no = 0;
  newest.newest_first = true;
  ASSIGN_OR_RETURN(const auto last, reader.events(newest, 1));
  log_run->head = {0, last.empty() ? 0 : last[0].run_seq + 1, last.empty() ? Hash{} : last[0].run_hash,
                   RunStatus::open};
  log_run->committed(log_run->head.run_seq);
  RunView view;
  view.status = RunStatus::open;
  view.owner = events::daemon_actor;
  view.origin = events::Origin::observed;
  view.run_no = view.first_seq = 0;
  log_run->publish(view);
  return success();
}

Appender::Appender(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) { impl_->owner = this; }
Appender::~Appender() { stop(); }

Result<std::unique_ptr<Appender>> Appender::open(AppenderOptions options, Clock& clock, Tail& tail,
                                                 RunDirectory& runs) {
  auto impl = std::make_unique<Impl>(std::move(options), clock, tail, runs);
  RETURN_IF_ERROR(impl->open());
  std::unique_ptr<Appender> appender(new Appender(std::move(impl)));
  appender->impl_->start();
  return appender;
}

Status Appender::submit(AppendRequest request) { return impl_->submit(std::move(request)); }
ErasureGate& Appender::erasure_gate() { return impl_->erasure_gate(); }
LogStatus Appender::status() const { return impl_->status(); }
std::optional<Hash> Appender::root_at_start(std::int64_t size) const { return impl_->root_at_start(size); }
void Appender::refuse(Error why) { impl_->refuse(std::move(why)); }
void Appender::close() { impl_->close(); }
void Appender::stop() { impl_->stop(); }

}  // namespace muniment::store
