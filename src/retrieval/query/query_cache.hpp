// A cache that is bounded by bytes and evicts the least recently used entry. It is the first level for answers and
// rankings: the keys include everything that these depend on (retriever.hpp), so entries cannot be outdated.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace muniment::retrieval {

template <typename Value>
class BoundedCache {
 public:
  explicit BoundedCache(std::size_t bytes_max) : bytes_max_(bytes_max) {}

  struct Counts {
    std::int64_t hits = 0;
    std::int64_t misses = 0;
    std::int64_t entries = 0;
    std::int64_t bytes = 0;
  };

  // Returns nullptr if there is no entry.
  std::shared_ptr<const Value> find(const std::string& key) { return find_first({key}); }

  // Returns the entry of the first of these keys that has one; counts one hit or one miss.
  std::shared_ptr<const Value> find_first(const std::vector<std::string>& keys) {
    const std::lock_guard lock(mutex_);
    for (const std::string& key : keys) {
      const auto found = by_key_.find(key);
      if (found == by_key_.end()) continue;
      ++counts_.hits;
      entries_.splice(entries_.begin(), entries_, found->second);
      return found->second->value;
    }
    ++counts_.misses;
    return nullptr;
  }

  // `bytes` is the size of the value.
  void put(const std::string& key, Value value, std::size_t bytes) {
    bytes += key.size() + bytes_an_entry;
    if (bytes > bytes_max_) return;
    auto shared = std::make_shared<const Value>(std::move(value));
    const std::lock_guard lock(mutex_);
    if (by_key_.contains(key)) return;  // another thread stored the same value
    while (bytes_ + bytes > bytes_max_) {
      bytes_ -= entries_.back().bytes;
      by_key_.erase(entries_.back().key);
      entries_.pop_back();
    }
    bytes_ += bytes;
    entries_.push_front({key, std::move(shared), bytes});
    by_key_.emplace(entries_.front().key, entries_.begin());
  }

  Counts counts() const {
    const std::lock_guard lock(mutex_);
    Counts out = counts_;
    out.entries = static_cast<std::int64_t>(entries_.size());
    out.bytes = static_cast<std::int64_t>(bytes_);
    return out;
  }

 private:
  struct Entry {
    std::string key;
    std::shared_ptr<const Value> value;
    std::size_t bytes = 0;
  };
  static constexpr std::size_t bytes_an_entry = 128;

  const std::size_t bytes_max_;
  mutable std::mutex mutex_;
  std::list<Entry> entries_;  // most recently used first
  std::unordered_map<std::string_view, typename std::list<Entry>::iterator> by_key_;
  std::size_t bytes_ = 0;
  Counts counts_;
};

}  // namespace muniment::retrieval
