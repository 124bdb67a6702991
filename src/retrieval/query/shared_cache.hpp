// The optional second level of the query cache: stores answers in Redis, where they outlive the daemon. It is neither
// required nor trusted: an entry carries a MAC under a key of this daemon, and its passages are verified when it is
// read. After several failures in a row, the server is not used for a while.
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
  std::string address;        // host:port, or the path of a Unix socket; empty: none
  std::string password_file;  // may be empty
  std::string secret_file;    // the key of the MACs; created if it is missing
  std::int64_t seconds = 0;   // lifetime of an entry
  std::string scope;          // identifies the log, the version and the settings, on which all entries depend
};

class SharedCache {
 public:
  // Errors: those of the two files. Does not contact the server.
  static Result<std::unique_ptr<SharedCache>> open(SharedCacheOptions options);
  ~SharedCache();

  // Returns nullopt if there is no entry or the server is unreachable. Any thread; blocks for at most
  // limits::redis_ms_default.
  std::optional<std::string> find(std::string_view key);
  void put(std::string_view key, std::string_view value);
  void forget(std::string_view key);  // the entry is no longer valid
  void forget_all();                  // content was erased that entries may quote

  struct Counts {
    std::int64_t hits = 0;
    std::int64_t misses = 0;
    std::int64_t refused = 0;  // entries that were forged or no longer valid
    std::int64_t failures = 0;
  };
  Counts counts() const;
  std::string problem() const;  // the reason for which the server is not used; empty: it is used

 private:
  class Link;  // a connection; only shared_cache.cpp uses Redis
  SharedCache(SharedCacheOptions options, std::string secret, std::string password);
  std::unique_ptr<Link> take();
  void give_back(std::unique_ptr<Link> link);
  void failed(const std::string& why);
  std::string prefix() const;  // prefix of the names of this daemon's entries
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
