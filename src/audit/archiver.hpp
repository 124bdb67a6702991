// Archives a sealed partition: writes its bodies to files of 256 (store/files/body_archive.hpp) beside the publisher's
// tiles and bundles of entries, compares each file with the rows, appends log.archived, and removes the bodies from the
// database in one transaction. Every step is repeatable: a call works until its deadline, and the next one continues.
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
  std::int64_t checked = 0;   // events whose files were compared with the rows
};

class Archiver {
 public:
  Archiver(store::LogPlace place, Clock& clock, store::Appender& appender, store::RunDirectory& runs, store::Tail& tail,
           Publisher& publisher, store::BodyArchive& archive);

  // Archives the partition of this number, or the oldest that is not archived. `by` is the requesting actor. Errors:
  // not_found if it is not full yet; conflict if a run in it is under a legal hold, or it is archived already;
  // deadline_exceeded while its tiles are not durable; unavailable while another transaction reads the log; corrupt if
  // a body does not match its hash.
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
  std::mutex mutex_;  // one call at a time
  std::int64_t number_ =
      -1;  // partition that the next two members refer to; a new daemon starts over and finds the files
  std::int64_t exported_ = 0;  // bundles
  std::int64_t checked_ = 0;
};

}  // namespace muniment::audit
