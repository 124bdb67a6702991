// Archiving a sealed partition: its bodies go to files (store/files/body_archive.hpp), 256 at a time, beside
// the tiles and the bundles of entries that the publisher has made of it; each file is held against the
// rows; log.archived says it; then one transaction takes the bodies out of the database. Every step may
// be done again: a call does what it can until its time is up, and the next one goes on from there.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include "audit/publisher.hpp"
#include "base/clock.hpp"
#include "base/result.hpp"
#include "store/append/appender.hpp"
#include "store/files/body_archive.hpp"
#include "store/files/sealed_partition.hpp"
#include "store/tables/runs.hpp"

namespace muniment::audit {

struct ArchiveProgress {
  store::SealedPartition partition;
  std::int64_t exported = 0;  // events whose bodies are in files
  std::int64_t checked = 0;   // and were held against the rows
};

class Archiver {
 public:
  Archiver(store::LogPlace place, Clock& clock, store::Appender& appender, store::RunDirectory& runs, store::Tail& tail,
           Publisher& publisher, store::BodyArchive& archive);

  // The partition of this number, or the oldest that is not archived. Errors: not_found when it is not full yet;
  // conflict when a run in it is under a legal hold, or it is archived already; deadline_exceeded while its
  // tiles are not on the disk; unavailable while somebody's transaction reads the log; corrupt when a body is not what
  // was hashed. `by`: the actor who asked.
  Result<ArchiveProgress> advance(store::Reader& reader, std::optional<std::int64_t> number, const std::string& by,
                                  Deadline until);

 private:
  Result<store::SealedPartition> sealed(store::Reader& reader, std::optional<std::int64_t> number) const;
  Status check_holds(store::Reader& reader, const store::SealedPartition& partition) const;
  Status begin(store::Reader& reader, const store::SealedPartition& partition, const std::string& by);
  Status export_until(store::Reader& reader, const store::SealedPartition& partition, Deadline until);
  Status check_until(store::Reader& reader, const store::SealedPartition& partition, Deadline until);
  Status announce(store::Reader& reader, const store::SealedPartition& partition, const std::string& by);

  const store::LogPlace place_;
  Clock& clock_;
  store::Appender& appender_;
  store::RunDirectory& runs_;
  store::Tail& tail_;
  Publisher& publisher_;
  store::BodyArchive& archive_;
  store::Connection redactor_;
  std::mutex mutex_;           // one at a time
  std::int64_t number_ = -1;   // what the next two are of; a new daemon begins anew, and finds the files
  std::int64_t exported_ = 0;  // bundles
  std::int64_t checked_ = 0;
};

}  // namespace muniment::audit
