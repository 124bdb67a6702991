// Where one log lies: its database, its number there, and the folders of its own files. A data folder begins with log
// 1; after a restore it may go on with another one, beside which the old one stays as it is.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.hpp"
#include "store/read/connection.hpp"

namespace muniment::store {

struct LogPlace {
  std::string uri;
  std::int16_t log_no = 1;
  std::string archive{};  // store/files/body_archive.hpp; empty: nothing of it was archived
  // Of a closed log, its events: a row that lies past them in the database is not of it. Otherwise none is too many.
  std::int64_t size = INT64_MAX;
  std::shared_ptr<Connections>
      connections{};  // the daemon's, to which whoever reads here adds its own; nullptr: there is none
};

// The folder of a log's keys, tiles, archive, index and journals: the data folder itself for log 1, <data>/log-2 for
// log 2.
std::string log_folder(const std::string& data, std::int16_t log_no);

// Which log the daemon of this data folder writes: <data>/log_no, and without it 1. Errors: corrupt.
Result<std::int16_t> read_log_no(const std::string& data);

}  // namespace muniment::store
