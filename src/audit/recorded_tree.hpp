// The tree of the current log, for readers: published tiles, proven to have the newest root, and the newest events.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "audit/publisher.hpp"
#include "store/append/appender.hpp"
#include "store/append/tail.hpp"
#include "store/read/recorded.hpp"

namespace muniment::audit {

class ClosedTree;

inline constexpr std::size_t proven_tiles_max = 4'096;  // leaves of a million events, 32 MiB

// The leaves of proven tiles, full or partial, by index: those that were used last. One thread at a time.
class ProvenTiles {
 public:
  explicit ProvenTiles(std::size_t tiles_max) : tiles_max_(tiles_max) {}

  const std::string* find(std::int64_t tile);  // nullptr if it is not held
  void put(std::int64_t tile, std::string leaves);

 private:
  struct Tile {
    std::string leaves;
    std::uint64_t used = 0;  // number of the last use
  };

  const std::size_t tiles_max_;
  std::map<std::int64_t, Tile> tiles_;
  std::uint64_t uses_ = 0;
};

class PublishedTree final : public store::RecordedTree {
 public:
  // All outlive it. `restored`: the tree of a restored log, which the publisher does not publish; otherwise nullptr.
  PublishedTree(const Publisher& publisher, const store::Appender& appender, const store::Tail& tail,
                ClosedTree* restored)
      : publisher_(publisher), appender_(appender), tail_(tail), restored_(restored) {}

  // Waits for an event that is neither in the tail nor published yet. An event that this daemon has sent and Postgres
  // has not confirmed is its own: another row in its place would stop the writer.
  Status holds(const events::Event& event, const Hash& leaf, Deadline until) override;

 private:
  Status compare(std::int64_t seq, const Hash& leaf, const Fd& tiles, const Checkpoint& checkpoint);
  Status prove_tile(std::int64_t tile, const Fd& tiles, const Checkpoint& checkpoint);

  const Publisher& publisher_;
  const store::Appender& appender_;
  const store::Tail& tail_;
  ClosedTree* const restored_;
  std::mutex mutex_;
  ProvenTiles tiles_{proven_tiles_max};
};

}  // namespace muniment::audit
