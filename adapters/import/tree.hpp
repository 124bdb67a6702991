// Records a run and its child runs: groups the actions of a translation into batches of events, and starts and ends
// each child run at the corresponding place among its parent's events.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "adapters/import/record.hpp"
#include "base/result.hpp"
#include "client/connect/client.hpp"

namespace muniment::cli {

struct ImportedChild {
  std::string run_id;
  std::string parent;        // run id of the parent
  bool added = false;        // false: already imported
  std::uint64_t events = 0;  // as counted by ImportRecorder
  std::uint64_t artifacts = 0;
};

class RunTree {
 public:
  // Run ids consist of `name` and the hash, or the start of the session's key (SourceFile); `format` is stored in
  // run.started.
  RunTree(Client& client, std::string name, std::string sha256, std::string_view format, bool scrub,
          std::string session = {});

  // Returns false if the run is already complete.
  Result<bool> start(const ImportedRun& head);
  // Empties `actions`. Events are buffered in batches of at most tree_bytes_max in total.
  Status carry_out(std::vector<RunAction>& actions);
  // Ends the main run after its children have ended.
  Status end(const RunEnd& end);
  // Calls ImportRecorder::broke_off for the main run.
  Error broke_off(Error error) { return root_->recorder.broke_off(std::move(error)); }

  // Returns whether an earlier import has all events of the main run.
  bool is_unchanged() const { return root_->recorder.is_unchanged(); }
  const std::string& run_id() const { return root_->recorder.run_id(); }
  std::uint64_t events() const { return root_->recorder.events(); }  // events of the main run …
  std::uint64_t artifacts() const { return root_->recorder.artifacts(); }
  std::uint64_t repaired() const { return root_->recorder.repaired(); }
  ImportTally tally() const;  // sum over the main run and its ended children
  const std::vector<ImportedChild>& children() const {
    return ended_;
  }  // … and of its children, in order of their ends

 private:
  // A run and its pending events.
  struct Target {
    Target(Client& client, std::string run_id, const std::string& source, bool scrub, bool grows)
        : recorder(client, std::move(run_id), source, scrub, grows) {}
    ImportRecorder recorder;
    std::vector<ImportedEvent> batch;
    std::size_t bytes = 0;
    std::string parent;
    bool wanted = true;  // false: this child is already imported
  };

  Target& target(const std::string& child) { return child.empty() ? *root_ : *children_.at(child); }
  SourceFile source_of(const std::string& child) const;
  Status add(Target& target, ImportedEvent event);
  Status flush(Target& target);
  Status flush_all();
  Status start_child(const RunAction& action);
  Status end_child(const RunAction& action);

  Client& client_;
  const std::string name_;
  const std::string sha256_;
  const std::string session_;
  const std::string_view format_;
  const bool scrub_;
  std::unique_ptr<Target> root_;
  std::map<std::string, std::unique_ptr<Target>> children_;  // open child runs
  std::size_t bytes_ = 0;                                    // in all batches
  std::vector<ImportedChild> ended_;
  ImportTally ended_tally_;
};

}  // namespace muniment::cli
