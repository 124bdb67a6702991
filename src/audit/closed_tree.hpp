// The tree of a closed log (store/logs/earlier_logs.hpp), for proofs of its events, and of a restored log, whose events
// are held against it when they are read. A backup does not contain tiles,
// and the tiles folder may belong to a longer log than the restored one, so the tiles are built from the events once,
// in a separate folder.
#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "audit/proof.hpp"
#include "base/crypto/signed_note.hpp"
#include "base/files/file.hpp"
#include "base/result.hpp"
#include "store/logs/earlier_logs.hpp"

namespace muniment::audit {

class TreeWriter;

class ClosedTree {
 public:
  // `origin` is the setting; the log's own origin is in its notes.
  ClosedTree(const store::EarlierLog& log, std::string origin);
  ~ClosedTree();  // abandons a build in progress

  struct Proven {
    // The tree of the newest signed checkpoint that matches the events; without a note, there is none.
    TreeToProve signed_tree;
    TreeToProve whole;              // the tree of all events, with the root in `log`
    std::vector<VerifierKey> keys;  // from the log's keys/log.pub
  };
  // The first caller starts the build and waits briefly; the tiles of a long log are built in the background. Errors:
  // unavailable while the build runs; deadline_exceeded, without losing progress; corrupt if the events do not yield
  // the root in `log`: the one that log.restored names, or the one with which a restored log was taken over.
  Result<const Proven*> proven(Deadline deadline);

 private:
  void make();
  Result<Proven> made();
  Status fill();
  Result<bool> lay(TreeWriter& writer, bool take);
  Result<std::vector<std::string>> notes() const;

  const store::EarlierLog& log_;
  const std::string origin_;
  Fd tiles_;
  std::thread thread_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  bool waiting_ = false;  // one caller waits; others return at once, or they would occupy every worker
  std::optional<Result<Proven>> made_;
};

}  // namespace muniment::audit
