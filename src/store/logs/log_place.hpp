// Describes the location of one log: its database, its number and the folders of its files. A data folder begins with
// log 1. After a restore it may continue with a new log, and the old one remains unchanged.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.hpp"
#include "store/read/connection.hpp"

namespace muniment::store {

class Recorded;

struct LogPlace {
  std::string uri;
  std::int16_t log_no = 1;
  std::string archive{};  // store/files/body_archive.hpp; empty: nothing was archived
  // Number of events of a closed log: rows beyond it in the database do not belong to the log. Unlimited for an open
  // log.
  std::int64_t size = INT64_MAX;
  std::shared_ptr<Connections>
      connections{};  // the daemon's list, to which readers add their connections; nullptr: none
  // The log as its writer knows it (store/read/recorded.hpp). nullptr: rows are not held against it.
  std::shared_ptr<Recorded> recorded{};
};

// Returns the folder of a log's keys, tiles, archive, index and journals: the data folder itself for log 1,
// <data>/log-2 for log 2.
std::string log_folder(const std::string& data, std::int16_t log_no);

// Returns the log that the daemon of this data folder writes: the number in <data>/log_no, or 1 without that file.
// Errors: corrupt.
Result<std::int16_t> read_log_no(const std::string& data);

}  // namespace muniment::store
