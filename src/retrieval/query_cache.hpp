// L1: answers by everything that they are a function of (retriever.hpp, key). Bounded by bytes, the least
// recently used goes first. The key holds the index' position, so that a stale answer cannot come out of it.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace muniment::retrieval {

class QueryCache {
 public:
  explicit QueryCache(std::size_t bytes_max) : bytes_max_(bytes_max) {}

  struct Counts {
    std::int64_t hits = 0;
    std::int64_t misses = 0;
    std::int64_t entries = 0;
    std::int64_t bytes = 0;
  };

  std::shared_ptr<const std::string> find(const std::string& key);
  void put(const std::string& key, std::string value);
  Counts counts() const;

 private:
  struct Entry {
    std::string key;
    std::shared_ptr<const std::string> value;
  };
  static std::size_t bytes_of(const Entry& entry) { return entry.key.size() + entry.value->size() + 128; }

  const std::size_t bytes_max_;
  mutable std::mutex mutex_;
  std::list<Entry> entries_;   // the most recently used first
  std::unordered_map<std::string_view, std::list<Entry>::iterator> by_key_;
  std::size_t bytes_ = 0;
  std::int64_t hits_ = 0;
  std::int64_t misses_ = 0;
};

}  // namespace muniment::retrieval
