#include "retrieval/query_cache.hpp"

namespace muniment::retrieval {

std::shared_ptr<const std::string> QueryCache::find(const std::string& key) {
  const std::lock_guard lock(mutex_);
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) {
    ++misses_;
    return nullptr;
  }
  ++hits_;
  entries_.splice(entries_.begin(), entries_, found->second);
  return found->second->value;
}

void QueryCache::put(const std::string& key, std::string value) {
  Entry entry{key, std::make_shared<const std::string>(std::move(value))};
  const std::size_t bytes = bytes_of(entry);
  if (bytes > bytes_max_) return;
  const std::lock_guard lock(mutex_);
  if (by_key_.contains(key)) return;  // somebody was faster, with the same answer
  while (bytes_ + bytes > bytes_max_) {
    bytes_ -= bytes_of(entries_.back());
    by_key_.erase(entries_.back().key);
    entries_.pop_back();
  }
  bytes_ += bytes;
  entries_.push_front(std::move(entry));
  by_key_.emplace(entries_.front().key, entries_.begin());
}

QueryCache::Counts QueryCache::counts() const {
  const std::lock_guard lock(mutex_);
  return {hits_, misses_, static_cast<std::int64_t>(entries_.size()), static_cast<std::int64_t>(bytes_)};
}

}  // namespace muniment::retrieval
