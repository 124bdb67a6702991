// The second level of the query cache, optional: answers in a Redis, where they outlive the daemon. It is never needed
// and never believed: an entry carries a MAC under a key of this daemon, and its passages are verified again when it
// comes back. A server that fails a few times in a row is left alone for a while.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"

namespace muniment::retrieval {

struct SharedCacheOptions {
  std::string address;        // host:port, or the path of a Unix socket; empty: there is none
  std::string password_file;  // may be empty
  std::string secret_file;    // the key of the MACs; made when it is not there
  std::int64_t seconds = 0;   // that an entry is kept
  std::string scope;          // what all entries depend on: the log, the version, the settings
};

class SharedCache {
 public:
  // Errors: those of the two files. Whether there is a server is not asked.
  static Result<std::unique_ptr<SharedCache>> open(SharedCacheOptions options);
  ~SharedCache();

  // nullopt: it is not there, or the server is away. From any thread; blocks for limits::redis_ms_default at most.
  std::optional<std::string> find(std::string_view key);
  void put(std::string_view key, std::string_view value);
  void forget(std::string_view key);  // what came back does not stand any more
  void forget_all();                  // something was erased, and entries may quote it

  struct Counts {
    std::int64_t hits = 0;
    std::int64_t misses = 0;
    std::int64_t refused = 0;  // entries that were not ours, or did not stand any more
    std::int64_t failures = 0;
  };
  Counts counts() const;
  std::string problem() const;  // why it is left alone; empty: it is not

 private:
  class Link;  // a connection; only shared_cache.cpp knows Redis
  SharedCache(SharedCacheOptions options, std::string secret, std::string password);
  std::unique_ptr<Link> take();
  void give_back(std::unique_ptr<Link> link);
  void failed(const std::string& why);
  std::string prefix() const;  // of the names of this daemon's entries
  std::string name_of(std::string_view key) const;
  std::string mac_of(std::string_view key, std::string_view value) const;

  const SharedCacheOptions options_;
  const std::string secret_, password_;
  mutable std::mutex mutex_;  // guards these
  std::vector<std::unique_ptr<Link>> idle_;
  int failures_in_a_row_ = 0;
  Monotonic closed_until_{};
  std::string problem_;
  std::atomic<std::int64_t> hits_ = 0, misses_ = 0, refused_ = 0, failures_ = 0;
};

}  // namespace muniment::retrieval
