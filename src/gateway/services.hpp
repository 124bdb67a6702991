// The objects that methods work with: one of each, created in daemon/wiring.cpp and passed by reference.
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
#include "base/crypto/signed_note.hpp"
#include "base/limits.hpp"
#include "base/result.hpp"
#include "evidence/completion/policy.hpp"
#include "evidence/resolver.hpp"
#include "gateway/request/refusals.hpp"
#include "gateway/request/request_counts.hpp"
#include "gateway/request/worker_slots.hpp"
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
namespace muniment::bridge {
class Cloud;
}
namespace muniment::webhook {
class Sender;
}

namespace muniment::gateway {

// Counts since the start, for server.metrics.
struct Counters {
  std::atomic<std::int64_t> queries = 0;   // number of queries in evidence.retrieve
  std::atomic<std::int64_t> pointers = 0;  // number of resolved or validated pointers
  std::array<std::atomic<std::int64_t>, evidence::reasons.size()>
      pointers_bad{};  // number of pointers that did not resolve, by reason
};

// The tables' totals as last computed: computing them may take long.
struct StoreTotals {
  std::mutex mutex;  // guards the following members
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
  bool index_runs = false;                                      // default for runs that do not set it
  std::size_t connections_max = 0;                              // derived from the limit of open files
  Refusals refusals{};                                          // updated by the thread that answers
  Counters counters{};                                          // updated by the thread that answers
  RequestCounts requests{};                                     // updated by the thread that answers
  StoreTotals totals{};                                         // computed for server.metrics
  WorkerSlots index_waits{};                                    // waits until the search indexes have reached an event
  WorkerSlots validator_runs{};                                 // runs of custom validators of the completion policy
  WorkerSlots tree_digests{};                                   // digests of working trees
  WorkerSlots cloud_calls{limits::cloud_calls_at_once_max, 0};  // questions to cloud services
  // Followers of the tables run, report and pointer; no method waits for them.
  std::vector<const store::Follower*> followers{};
  const webhook::Sender* webhooks = nullptr;                  // nullptr: none, in tests
  bridge::Cloud* cloud = nullptr;                             // nullptr: none, in tests
  store::EarlierLogs earlier{};                               // logs that the current one continues
  std::map<std::int16_t, audit::ClosedTree*> closed_trees{};  // trees of the earlier logs, by log_no
  evidence::completion::Policies policies{};                  // policies of task completion
  std::vector<VerifierKey> attestation_keys{};                // keys whose attestations count as recorded commands
  std::function<std::string()> carrying{};  // describes the documents that are carried over from earlier logs
  std::string executor{};                   // socket of the executor; empty: commands are not observed
};

}  // namespace muniment::gateway
