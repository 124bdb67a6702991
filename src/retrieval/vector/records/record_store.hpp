// The shard's records on disk: RocksDB, and nothing but it, behind what the shard needs of it. Every
// read verifies checksums, every write is one batch and synced.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace muniment::retrieval::vec {

// Puts and deletes that are written together.
class Changes {
 public:
  Changes();
  ~Changes();
  void put(std::string_view key, std::string_view value);
  void remove(std::string_view key);
  void remove_range(std::string_view from, std::string_view to);

 private:
  friend class RecordStore;
  struct Batch;
  std::unique_ptr<Batch> batch_;
};

class RecordStore {
 public:
  // Errors: conflict (somebody has it open), corrupt.
  static Result<std::unique_ptr<RecordStore>> open(const std::string& folder);
  ~RecordStore();

  bool created() const { return created_; }  // by this open: it holds nothing yet

  // A moment of the store, for as long as the value lives.
  class Moment;
  std::shared_ptr<const Moment> now() const;

  // As of the moment, or as of now where it is null.
  Result<std::optional<std::string>> get(std::string_view key, const Moment* at = nullptr) const;
  // In order of the keys, [from, to). Stops at the first error, which it answers.
  using Visit = std::function<Status(std::string_view key, std::string_view value)>;
  Status scan(std::string_view from, std::string_view to, const Visit& visit, const Moment* at = nullptr) const;

  Status write(const Changes& changes);
  // Afterwards what was removed is in no file of the store any more. A moment from before the removal
  // must not be held. Rewrites what has changed since the last time: a second for 100,000 vectors.
  Status erase_for_good();

 private:
  struct Database;
  RecordStore() = default;
  std::unique_ptr<Database> database_;
  bool created_ = false;
};

}  // namespace muniment::retrieval::vec
