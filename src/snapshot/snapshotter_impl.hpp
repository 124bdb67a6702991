// Declares the implementation of the snapshotter. snapshotter_thread.cpp follows the log; snapshotter.cpp holds states
// and takes snapshots of them.
#pragma once

#include <atomic>
#include <thread>

#include "snapshot/live_run.hpp"
#include "snapshot/snapshotter.hpp"

namespace muniment::snapshot {

// Estimates a state's size in memory: trees need several times the size of their text.
inline std::size_t estimate(const events::State& state) { return 4'096 + 6 * state.working().bytes(); }

// Delay before a snapshot that was refused or unanswered is retried.
inline constexpr std::chrono::seconds retry_after{5};
inline constexpr std::size_t events_per_batch = 1'024;

class Snapshotter::Impl {
 public:
  Impl(SnapshotterOptions options, Clock& clock, store::Appender& appender, store::RunDirectory& runs,
       store::Tail& tail, store::ArtifactFiles& files)
      : options_(std::move(options)),
        clock_(clock),
        appender_(appender),
        directory_(runs),
        tail_(tail),
        files_(files),
        reader_(options_.place) {}

  void start();
  void stop();
  void flush(std::chrono::milliseconds at_most);
  std::int64_t position() const { return position_.load(); }
  std::string problem() const;
  Result<Taking> take(store::Reader& reader, const std::shared_ptr<store::Run>& run, std::string_view reason,
                      std::string_view actor, Deadline deadline);
  Result<store::CheckedPatches> check_patches(store::Reader& reader, const store::Run& run,
                                              const std::vector<std::string_view>& bodies);
  Result<std::unique_ptr<Hold>> hold(std::int64_t run_no, std::string_view run_id, Deadline deadline);
  Result<Rehydrated> rehydrated(store::Reader& reader, std::int64_t run_no, std::optional<std::int64_t> asof_seq);
  Result<std::optional<Taking>> store(const Rehydrated& had, const std::shared_ptr<store::Run>& run,
                                      std::string_view reason, std::string_view actor, Deadline deadline);

 private:
  // Functions of the thread.
  void follow();
  std::chrono::milliseconds until_due();
  void rest(std::chrono::milliseconds at_most);
  Result<bool> follow_batch();
  Status follow_run(std::int64_t run_no, const std::vector<const events::Event*>& events, bool from_tail);
  Status look_up(LiveRun& run, const events::Event& first);
  void take_due(bool all, std::string_view reason_for_all);
  void take_all(Monotonic until);
  Status take_now(const std::shared_ptr<LiveRun>& run, std::string_view reason);
  void finish_files();
  void keep_position(bool now);
  void set_problem(std::string text);

  // Functions called with run.mutex held.
  Status advance(LiveRun& run, const events::Event& event, store::Reader& reader);  // applies the event and counts it
  Status bring_up_to_date(LiveRun& run, store::Reader& reader);
  Status load(LiveRun& run, store::Reader& reader);
  Result<std::optional<Taking>> begin(const std::shared_ptr<LiveRun>& run, const std::shared_ptr<store::Run>& target,
                                      std::string_view reason, std::string_view actor);

  const SnapshotterOptions options_;
  Clock& clock_;
  store::Appender& appender_;
  store::RunDirectory& directory_;
  store::Tail& tail_;
  store::ArtifactFiles& files_;
  store::Reader reader_;  // used only by the thread

  const std::shared_ptr<LiveRuns> live_ = std::make_shared<LiveRuns>();
  std::atomic<std::int64_t> position_{-1};  // events below this seq were applied to every state in memory
  std::int64_t kept_position_ = -1;
  Monotonic kept_at_{};

  std::thread thread_;
  std::atomic<bool> called_{false};  // stop or flush was requested
  mutable std::mutex mutex_;         // guards the following members
  std::condition_variable changed_;
  bool stopping_ = false;
  std::optional<Monotonic> flush_until_;
  std::string problem_;
};

}  // namespace muniment::snapshot
