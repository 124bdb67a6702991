// Builds one frame of `muniment top` from two samples of a daemon, as lines and as JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/json/json.hpp"
#include "cli/connect/late_followers.hpp"
#include "cli/show/metrics_text.hpp"
#include "client/output.hpp"

namespace muniment::cli {

struct TopRun {
  std::string run_id, agent, last_type;
  std::int64_t last_run_seq = -1;
  std::optional<Time> last_at;
};

// One sample.
struct TopLook {
  Metrics metrics;
  Monotonic at{};
  Time now;
  std::vector<std::string> degraded;
  std::vector<LateFollower> late;
  std::vector<TopRun> runs;  // open runs, newest first
};

struct TopRate {
  double per_second = 0;
  std::optional<double> p50_s, p99_s;  // nullopt: no samples
};

struct TopFrame {
  std::string version;
  Time now;
  std::int64_t uptime_s = 0, events = 0, signed_events = 0;
  double events_per_second = 0, requests_per_second = 0, errors_per_second = 0;
  TopRate append, commit, wait, query;
  std::optional<double> batch_events;  // average per commit
  std::int64_t queue_events = 0, queue_bytes = 0;
  std::int64_t connections = 0, subscriptions = 0, workers_busy = 0, workers = 0, workers_wanted = 0;
  std::int64_t runs_open = 0, runs_halted = 0, log_warnings = 0, log_errors = 0, search_restarts = 0;
  std::int64_t search_waiting_chunks = 0;
  std::int64_t disk_free_bytes = 0, disk_reserve_bytes = 0, resident_bytes = 0;
  double cpu_share = 0;  // share of one processor
  bool database_up = false;
  std::vector<std::pair<std::string, std::int64_t>> lags;  // lag per follower, largest first
  std::vector<LateFollower> late;
  std::vector<std::string> degraded;
  std::vector<TopRun> runs;
};

TopFrame frame_of(const TopLook& before, const TopLook& after);
// Returns at most `height` lines of at most out.width() columns; text from the daemon is escaped for a terminal.
std::vector<std::string> lines_of(const TopFrame& frame, const Output& out, std::size_t height);
std::string json_of(const TopFrame& frame);

}  // namespace muniment::cli
