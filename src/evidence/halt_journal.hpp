// The halt journal: when Postgres cannot take a halt, the run stops all the same. The halt is
// written to a file of its own under <data>/halts, synced, and latched in memory at once; as soon
// as Postgres answers it goes into the log, also after a restart, before anything is served.
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

// What would have been appended.
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

// An event that the daemon writes of its own accord; imported where its run is.
store::Addressed daemon_event(const std::shared_ptr<store::Run>& run, std::string_view type, std::string body,
                              const Uuid& event_id, bool event_id_is_ours);

class HaltJournal {
 public:
  struct Options {
    std::string folder;  // <data>/halts; made if it is not there
    store::LogPlace place;
  };

  // Latches what the folder holds and appends it; what cannot be appended yet is kept and tried
  // again. Errors: corrupt for a file that cannot be read, system_error for the folder.
  static Result<std::unique_ptr<HaltJournal>> open(Options options, store::Appender& appender,
                                                   store::RunDirectory& runs);

  // Durable and latched when it returns. Errors: system_error (the run is latched all the same).
  Status record(PendingHalt pending);

  std::size_t waiting() const;  // halts that are not in the log yet
  bool holds(std::string_view run_id) const;

 private:
  HaltJournal(Options options, store::Appender& appender, store::RunDirectory& runs);
  Status load();
  Result<std::shared_ptr<store::Run>> run_of(const std::string& run_id);
  // Success: it is in the log, or was before. Otherwise try again later.
  Status append(const PendingHalt& pending);
  Status append_once(const PendingHalt& pending, bool ids_checked);
  void bring_back();
  std::string file_of(const PendingHalt& pending) const;

  const Options options_;
  store::Appender& appender_;
  store::RunDirectory& runs_;
  store::Reader reader_;  // the thread's; `open`'s before it starts

  std::vector<PendingHalt> waiting_;  // guarded by the worker's lock
  WorkerThread worker_;
};

}  // namespace muniment::evidence
