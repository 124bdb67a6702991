// The log as its writer knows it, against which rows are held when they are read. The database is not trusted: its
// superuser may change any row, with its hashes, but not the tree whose root the writer signed or computed.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/clock.hpp"
#include "base/ids.hpp"
#include "base/result.hpp"
#include "events/event.hpp"

namespace muniment::store {

class ArtifactFiles;
class DocumentLives;
class DocumentSeal;

// The tree of a log. Any thread.
class RecordedTree {
 public:
  virtual ~RecordedTree() = default;
  // Returns success if the tree has this leaf at the event's seq. Leaf and run_hash were computed from the event. Waits
  // until the deadline for an event that is not published yet. Errors: corrupt if the tree has another leaf, or none;
  // unavailable; deadline_exceeded.
  virtual Status holds(const events::Event& event, const Hash& leaf, Deadline until) = 0;
};

// The facts that the readers of a log hold rows against. They are set once, before the log is served.
class Recorded {
 public:
  struct Facts {
    Uuid log_id;
    std::shared_ptr<RecordedTree> tree;
    ArtifactFiles* files = nullptr;  // hold the chunk lists of long documents
    std::shared_ptr<DocumentLives> lives{};
    std::shared_ptr<DocumentSeal> seal{};
  };

  // `facts.files` must outlive the readers.
  void set(Facts facts) {
    facts_ = std::move(facts);
    known_.store(true, std::memory_order_release);
  }
  // Returns nullptr before they are set: at the start, and in programs without a tree.
  const Facts* facts() const { return known_.load(std::memory_order_acquire) ? &facts_ : nullptr; }

 private:
  Facts facts_{};
  std::atomic<bool> known_{false};
};

}  // namespace muniment::store
