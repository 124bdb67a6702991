// Reads archived bodies (docs/format.md, Archive) from the files of the data folder.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/files/body_bundle.hpp"
#include "base/result.hpp"

namespace muniment::cli {

class ExportArchive {
 public:
  // `folder` is <data>/archive of the exported log.
  explicit ExportArchive(std::string folder) : folder_(std::move(folder)) {}

  // Returns the salt and body of the event, valid until the next call; nullptr if erased. Each file is read once if
  // events are requested in order of seq. Errors: as read_bodies.
  Result<const ArchivedBody*> find(std::int64_t seq);

 private:
  const std::string folder_;
  std::int64_t index_ = -1;  // index of the file in memory
  std::optional<Result<BodyBundle>> bodies_;
};

}  // namespace muniment::cli
