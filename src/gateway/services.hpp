// What methods work with: one of each, made in daemon/wiring.cpp and lent by reference.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "evidence/completion/policy.hpp"
#include "evidence/resolver.hpp"
#include "gateway/read/index_wait.hpp"
#include "gateway/request/refusals.hpp"
#include "gateway/request/request_counts.hpp"
#include "store/append/appender.hpp"
#include "store/append/tail.hpp"
#include "store/files/artifact_files.hpp"
#include "store/logs/earlier_logs.hpp"
#include "store/read/reader.hpp"
#include "store/tables/runs.hpp"

namespace muniment::snapshot {
class Snapshotter;
}
namespace muniment::store {
class Follower;
}
namespace muniment::evidence {
class HaltJournal;
}
namespace muniment::audit {
class Publisher;
class Submitter;
class Redactor;
class Archiver;
class ClosedTree;
}  // namespace muniment::audit

namespace muniment::retrieval {
class Service;
}

namespace muniment::gateway {

// Counted since the start, for server.metrics.
struct Counters {
  std::atomic<std::int64_t> queries = 0;   // of evidence.retrieve
  std::atomic<std::int64_t> pointers = 0;  // that were looked at
  std::array<std::atomic<std::int64_t>, evidence::reasons.size()>
      pointers_bad{};  // those that did not stand, by reason
};

// What the tables come to, as last asked for: summing them may take long.
struct StoreTotals {
  std::mutex mutex;  // guards what follows
  std::optional<store::Totals> known;
  Monotonic asked{};
  std::chrono::steady_clock::duration took{};
};

struct Services {
  Clock& clock;
  store::Appender& appender;
  store::RunDirectory& runs;
  store::Tail& tail;
  store::ArtifactFiles& files;
  snapshot::Snapshotter& snapshots;
  evidence::HaltJournal& halts;
  audit::Publisher& publisher;
  audit::Submitter& submitter;
  audit::Redactor& redactor;
  audit::Archiver& archiver;
  retrieval::Service& retrieval;
  std::string data_dir;
  std::string database_uri;
  std::string socket_path;
  Time started;
  bool index_runs = false;          // of runs that do not say it themselves
  std::size_t connections_max = 0;  // as the limit of open files allows
  Refusals refusals{};              // counted by whoever answers
  Counters counters{};              // likewise
  RequestCounts requests{};         // likewise
  StoreTotals totals{};             // asked for by server.metrics
  IndexWaits index_waits{};
  std::vector<const store::Follower*>
      followers{};               // of the tables run, report and pointer, which nothing here waits for
  store::EarlierLogs earlier{};  // that the present log goes on from
  std::map<std::int16_t, audit::ClosedTree*> closed_trees{};  // theirs, by log_no
  evidence::completion::Policies policies{};  // of completion
  std::function<std::string()> carrying{};  // what is to be said of documents that are carried over from them
};

}  // namespace muniment::gateway
