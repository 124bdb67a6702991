// The tree of the current log, for readers: published tiles, proven to have the newest root, and the newest events.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "audit/publisher.hpp"
#include "store/append/tail.hpp"
#include "store/read/recorded.hpp"

namespace muniment::audit {

class PublishedTree final : public store::RecordedTree {
 public:
  // Both outlive it.
  PublishedTree(const Publisher& publisher, const store::Tail& tail) : publisher_(publisher), tail_(tail) {}

  // Waits for an event that is neither in the tail nor published yet.
  Status holds(const events::Event& event, const Hash& leaf) override;

 private:
  Status prove_tile(std::int64_t tile, const Published& published);

  const Publisher& publisher_;
  const store::Tail& tail_;
  std::mutex mutex_;
  std::map<std::int64_t, std::string> tiles_;  // proven tiles of leaves, full or partial, by index
};

}  // namespace muniment::audit
