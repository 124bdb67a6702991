// What the writer of a log wrote last, kept outside the database and under a key of its own: so that at the next start
// events that somebody else put behind it are seen (docs/format.md, The written end). A record is one write into a file
// that is there already, before Postgres is sent what it announces; it is not synced. After the death of the
// process it says exactly where the log ended; after a power cut perhaps where it ended a moment before.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

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
    LogEnd committed;  // for certain
    LogEnd intended;   // once what was being committed is in; the same where nothing was
    bool stopped =
        false;  // nothing was written after that: the daemon ended in order, or found that somebody else writes
  };

  // `folder`: <data>/keys. Makes it and the file last_written where they are missing; the key writer.key (0600) is
  // drawn here, and kept once there is a record that it made. Errors: denied when others may read the key; corrupt when
  // it is none.
  static Result<std::unique_ptr<WrittenEnd>> open(const std::string& folder);

  // As the writer before left it; nullopt: there is none that this key made.
  const std::optional<Record>& found() const { return found_; }
  // There was one, and it is gone: the key is there, and never was without a record.
  bool lost() const { return key_is_kept_ && !found_; }

  // From here on it is the log of this id, and it has not stopped. Durable when it returns.
  Status begin(const Uuid& log_id, const LogEnd& committed);
  // By the append thread alone, before the COMMIT of `intended` is sent. What cannot be written is said once, and costs
  // that the next start calls the tail adopted.
  void note(const events::MerkleEdge& committed, const events::MerkleEdge& intended);
  // Nothing is written after this. Nothing without a `begin`: the log was refused. Durable when it returns. By the
  // append thread, or once it has ended.
  Status stop(const LogEnd& committed);

 private:
  WrittenEnd(std::string folder, Fd file, std::string key, bool key_is_kept)
      : folder_(std::move(folder)), file_(std::move(file)), key_(std::move(key)), key_is_kept_(key_is_kept) {}
  std::optional<Record> read();
  LogEnd end_of(const events::MerkleEdge& edge);
  Status write(const Record& record);
  Status sync();

  const std::string folder_;
  const Fd file_;
  const std::string key_;
  bool key_is_kept_;
  Uuid log_id_;
  std::uint64_t count_ = 0;  // of records: the next goes to the other of two places
  events::MerkleEdge
      noted_;  // what was intended last is mostly what is committed next, and its root costs a hash for each bit
  Hash noted_root_ = noted_.root();
  bool begun_ = false;  // what was found is no longer needed
  bool failed_ = false;
  std::optional<Record> found_;
};

}  // namespace muniment::store
