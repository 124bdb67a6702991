// The tree of a log that is closed (store/logs/earlier_logs.hpp), for proofs of its events. Its tiles are not in a
// backup, and what lies in its tiles folder may be of a longer log than the one that was restored: they are made from
// the events, once, beside them.
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
  // `origin`: as the setting has it; the log's own is what its notes say.
  ClosedTree(const store::EarlierLog& log, std::string origin);
  ~ClosedTree();  // gives up what it makes

  struct Proven {
    TreeToProve signed_tree;  // of the newest signed checkpoint that these events give; without a note: there is none
    TreeToProve whole;        // of all events, as log.restored names it
    std::vector<VerifierKey> keys;  // of the log's keys/log.pub
  };
  // The first who asks has the tiles made, and waits a moment for them: those of a long log are made beside it. Errors:
  // unavailable while they are not there yet; deadline_exceeded, with nothing lost; corrupt where the events do not
  // give the root that log.restored names.
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
  bool waiting_ = false;  // somebody does: others are sent away, or they would keep every worker
  std::optional<Result<Proven>> made_;
};

}  // namespace muniment::audit
