// Reads bodies that left the database when their partition was archived (docs/format.md, Archive). The row of such an
// event has a salt and no body; a file of the archive holds the body.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

#include "base/files/body_bundle.hpp"
#include "base/result.hpp"
#include "verify/postgres/shared_snapshot.hpp"

namespace muniment::verify {

class ArchivedBodies {
 public:
  // `folder` is the folder of the archive. An object serves one thread at a time.
  ArchivedBodies(const std::string& folder, const SharedSnapshot& snapshot, std::int64_t log_no)
      : folder_(folder), snapshot_(snapshot), log_no_(log_no) {}

  // Returns the body of event `seq`, valid until the next call. Errors: corrupt if the body cannot be read, with the
  // reason; gone if a running daemon erased it after the snapshot was taken; unavailable.
  Result<std::string_view> body(std::int64_t seq);

 private:
  Result<const BodyBundle*> bundle(std::int64_t index);
  Result<bool> erased_since(std::int64_t seq);

  const std::string& folder_;
  const SharedSnapshot& snapshot_;
  const std::int64_t log_no_;
  std::unordered_map<std::int64_t, BodyBundle>
      read_;  // the most recently read files, because the events of a run are scattered
  std::size_t held_bytes_ = 0;
};

}  // namespace muniment::verify
