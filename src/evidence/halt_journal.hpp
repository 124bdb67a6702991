// The halt journal stops a run while Postgres cannot record the halt. It writes the halt to a file under <data>/halts,
// syncs it, and applies the halt in memory at once. It appends the halt once Postgres answers, or at the next start,
// before the daemon serves a request.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/process/worker_thread.hpp"
#include "base/result.hpp"
#include "store/append/appender.hpp"
#include "store/read/reader.hpp"
#include "store/tables/runs.hpp"

namespace muniment::evidence {

// A halt with the events that its append would have contained.
struct PendingHalt {
  struct Event {
    std::string run_id;
    std::string type;
    std::string body;
    Uuid event_id;
    bool if_open = false;
  };
  std::string run_id;
  store::Halt halt;
  std::vector<Event> events;
};

// An event that the daemon writes itself; its origin is imported if the run is imported.
store::Addressed daemon_event(const std::shared_ptr<store::Run>& run, std::string_view type, std::string body,
                              const Uuid& event_id, bool event_id_is_ours);

class HaltJournal {
 public:
  struct Options {
    std::string folder;  // <data>/halts; created if it does not exist
    store::LogPlace place;
  };

  // Applies and appends the halts in the folder. A halt that cannot be appended yet is kept and retried. Errors:
  // corrupt for a file that cannot be parsed, system_error for the folder.
  static Result<std::unique_ptr<HaltJournal>> open(Options options, store::Appender& appender,
                                                   store::RunDirectory& runs);

  // On return the halt is durable and applied. Errors: system_error; the run is halted in memory nevertheless.
  Status record(PendingHalt pending);

  std::size_t waiting() const;  // halts that are not in the log yet
  bool holds(std::string_view run_id) const;

 private:
  HaltJournal(Options options, store::Appender& appender, store::RunDirectory& runs);
  Status load();
  Result<std::shared_ptr<store::Run>> run_of(const std::string& run_id);
  // Returns success once the log contains the halt. On an error the caller retries later.
  Status append(const PendingHalt& pending);
  Status append_once(const PendingHalt& pending, bool ids_checked);
  void bring_back();
  std::string file_of(const PendingHalt& pending) const;

  const Options options_;
  store::Appender& appender_;
  store::RunDirectory& runs_;
  store::Reader reader_;  // used by `open` until the worker starts, then by the worker alone

  std::vector<PendingHalt> waiting_;  // guarded by the worker's lock
  WorkerThread worker_;
};

}  // namespace muniment::evidence
