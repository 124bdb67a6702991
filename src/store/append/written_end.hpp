// Records the last write of a log's writer outside the database and authenticates it with a separate key, so that the
// next start detects foreign events after it (docs/format.md, The written end). A record is one write into an existing
// file, before the announced events are sent to Postgres, and is not synced. After a crash of the process the record is
// exact, because the kernel keeps it; after a power failure it may be slightly outdated. The kernel's boot id in the
// record tells these cases apart.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/files/file.hpp"
#include "base/ids.hpp"
#include "base/result.hpp"
#include "events/merkle.hpp"

namespace muniment::store {

// A size of a log, and the root of its tree.
struct LogEnd {
  std::int64_t size = 0;
  Hash root{};
  friend bool operator==(const LogEnd&, const LogEnd&) = default;
};

class WrittenEnd {
 public:
  struct Record {
    Uuid log_id;
    LogEnd committed;      // end that is certainly committed
    LogEnd intended;       // the end after the commit in flight; equal to `committed` if there was none
    bool stopped = false;  // no write followed, because the daemon shut down or detected another writer
    bool exact = false;    // the machine has not restarted since, so that no newer record can be lost
  };

  // Opens `folder`, <data>/keys, and creates it and the file last_written if they are missing. Generates the key
  // writer.key (0600), and stores it once a record made with it exists. Errors: denied if other users may read the key;
  // corrupt if the file is not a key.
  static Result<std::unique_ptr<WrittenEnd>> open(const std::string& folder);

  // Returns the same record without a change to the folder; nullopt also if a file is missing. Errors: those of `open`.
  static Result<std::optional<Record>> find(const std::string& folder);

  // Returns the record of the previous writer; nullopt if this key authenticates no record.
  const std::optional<Record>& found() const { return found_; }
  // Returns true if the key is stored but its record is missing, which never happens in normal operation.
  bool lost() const { return key_is_kept_ && !found_; }

  // Returns a key for another purpose, which reveals nothing of writer.key.
  std::string key_for(std::string_view purpose) const;

  // Starts the records of the log with this id, marked as not stopped. Durable on return.
  Status begin(const Uuid& log_id, const LogEnd& committed);
  // Called only by the append thread, before the COMMIT of `intended` is sent. A write error is logged once; its
  // consequence is that the next start after a kill refuses the tail of the log, or adopts it after a power failure.
  void note(const events::MerkleEdge& committed, const events::MerkleEdge& intended);
  // Marks the end of all writes. Does nothing without a `begin`, because the log was refused. Durable on return. Called
  // by the append thread, or after it has ended.
  Status stop(const LogEnd& committed);

 private:
  WrittenEnd(std::string folder, Fd file, std::string key, bool key_is_kept)
      : folder_(std::move(folder)), file_(std::move(file)), key_(std::move(key)), key_is_kept_(key_is_kept) {}
  std::optional<Record> read();
  std::optional<Record> record_at(std::int64_t place, std::uint64_t& count) const;
  LogEnd end_of(const events::MerkleEdge& edge);
  Status write(const Record& record);
  Status sync();

  const std::string folder_;
  const Fd file_;
  const std::string key_;
  bool key_is_kept_;
  Uuid log_id_;
  std::uint64_t count_ = 0;  // number of records; the next one goes to the other of two slots
  events::MerkleEdge
      // The last intended end, which usually is the next committed one. Its root costs one hash for each set bit.
      noted_;
  Hash noted_root_ = noted_.root();
  bool begun_ = false;  // true once the found record is no longer needed
  bool failed_ = false;
  std::optional<Record> found_;
};

}  // namespace muniment::store
