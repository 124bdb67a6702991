// Bodies that archiving took out of the database (docs/format.md, Archive), read back from the files of the data
// folder.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/files/body_bundle.hpp"
#include "base/result.hpp"

namespace muniment::cli {

class ExportArchive {
 public:
  // `folder`: <data>/archive of the log that is exported.
  explicit ExportArchive(std::string folder) : folder_(std::move(folder)) {}

  // The event's salt and body, until the next one is asked for; nullptr: erased. Each file is read once where events
  // come in the order of seq. Errors: as read_bodies.
  Result<const ArchivedBody*> find(std::int64_t seq);

 private:
  const std::string folder_;
  std::int64_t index_ = -1;  // of the file that is read
  std::optional<Result<BodyBundle>> bodies_;
};

}  // namespace muniment::cli
