// A run and the runs that it started, recorded side by side: what a translation asks for, action by action, becomes
// batches of events, and a child run begins and ends where its parent's events say so.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "cli/connect/client.hpp"
#include "cli/import/record.hpp"

namespace muniment::cli {

struct ImportedChild {
  std::string run_id;
  std::string parent;        // its run
  bool added = false;        // false: it was there already
  std::uint64_t events = 0;  // as of ImportRecorder
  std::uint64_t artifacts = 0;
};

class RunTree {
 public:
  // Runs are named by `name` and the hash; `format` is what run.started says of them.
  RunTree(Client& client, std::string name, std::string sha256, std::string_view format);

  // False: the run is there and complete; nothing is left to do.
  Result<bool> start(const ImportedRun& head);
  // Empties `actions`. Events wait in batches, of which all together hold tree_bytes_max at most.
  Status carry_out(std::vector<RunAction>& actions);
  // The source's own run, once its children have ended.
  Status end(const RunEnd& end);
  // ImportRecorder::broke_off of the source's own run.
  Error broke_off(Error error) { return root_->recorder.broke_off(std::move(error)); }

  const std::string& run_id() const { return root_->recorder.run_id(); }
  std::uint64_t events() const { return root_->recorder.events(); }  // of the source's own run …
  std::uint64_t artifacts() const { return root_->recorder.artifacts(); }
  std::uint64_t repaired() const { return root_->recorder.repaired(); }
  const std::vector<ImportedChild>& children() const {
    return ended_;
  }  // … and of its children, in the order of their ends

 private:
  // A run, and what waits to be appended to it.
  struct Target {
    Target(Client& client, std::string run_id, const std::string& sha256)
        : recorder(client, std::move(run_id), sha256) {}
    ImportRecorder recorder;
    std::vector<ImportedEvent> batch;
    std::size_t bytes = 0;
    std::string parent;
    bool wanted = true;  // false: this child is there already
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
  const std::string_view format_;
  std::unique_ptr<Target> root_;
  std::map<std::string, std::unique_ptr<Target>> children_;  // that are open
  std::size_t bytes_ = 0;                                    // in all batches
  std::vector<ImportedChild> ended_;
};

}  // namespace muniment::cli
