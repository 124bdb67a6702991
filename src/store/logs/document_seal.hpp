// Seals the document tables outside the database: up to which position they were written, and a keyed hash of the lives
// of their revisions (store/read/document_lives.hpp). A start that finds no seal of what the tables hold compares them
// with the log. The file is not synced: after a power failure the seal may be outdated.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/ids.hpp"

namespace muniment::store {

// For the follower's thread.
class DocumentSeal {
 public:
  // `key` is secret.
  DocumentSeal(std::string path, std::string key, const Uuid& log_id)
      : path_(std::move(path)), key_(std::move(key)), log_id_(log_id) {}

  // Called before tables with this digest are committed; the seal of the committed ones remains until `keep`.
  void note(std::int64_t next_seq, std::string_view digest);
  void keep() { kept_ = 1 - kept_; }
  // Returns whether tables with this digest were sealed at this position, and keeps that seal.
  bool matches(std::int64_t next_seq, std::string_view digest);

 private:
  std::string record(std::int64_t next_seq, std::string_view digest) const;

  const std::string path_;
  const std::string key_;
  const Uuid log_id_;
  int kept_ = 0;  // place of the seal of the committed tables
  bool failed_ = false;
};

}  // namespace muniment::store
