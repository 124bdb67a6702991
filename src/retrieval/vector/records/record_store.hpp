// The shard's records on disk, behind an interface that hides RocksDB. Every read verifies checksums; every write is
// one synced batch.
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
  // Opens the store. Errors: conflict (another process has it open), corrupt.
  static Result<std::unique_ptr<RecordStore>> open(const std::string& folder);
  ~RecordStore();

  bool created() const { return created_; }  // this open created it, so it is empty

  // A snapshot of the store, valid for the lifetime of the value.
  class Moment;
  std::shared_ptr<const Moment> now() const;

  // Reads as of the moment, or the current state if it is null.
  Result<std::optional<std::string>> get(std::string_view key, const Moment* at = nullptr) const;
  // Visits the keys [from, to) in order. Stops at the first error and returns it.
  using Visit = std::function<Status(std::string_view key, std::string_view value)>;
  Status scan(std::string_view from, std::string_view to, const Visit& visit, const Moment* at = nullptr) const;

  Status write(const Changes& changes);
  // Ensures that no file of the store contains removed records. No moment from before the removal may be held. Rewrites
  // the data that changed since the last call: a second for 100,000 vectors.
  Status erase_for_good();

 private:
  struct Database;
  RecordStore() = default;
  std::unique_ptr<Database> database_;
  bool created_ = false;
};

}  // namespace muniment::retrieval::vec
