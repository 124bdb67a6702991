// Bodies that left the database when their partition was archived (docs/format.md, Archive): the row
// has a salt and no body, and the body lies in a file beside those of its neighbours.
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
  // `folder`: the archive's. One thread at a time.
  ArchivedBodies(const std::string& folder, const SharedSnapshot& snapshot, std::int64_t log_no)
      : folder_(folder), snapshot_(snapshot), log_no_(log_no) {}

  // The body of event `seq`, valid until the next call. Errors: corrupt when it is not to be had, with the reason;
  // gone when it was erased since the snapshot was taken, by a daemon that is at work; unavailable.
  Result<std::string_view> body(std::int64_t seq);

 private:
  Result<const BodyBundle*> bundle(std::int64_t index);
  Result<bool> erased_since(std::int64_t seq);

  const std::string& folder_;
  const SharedSnapshot& snapshot_;
  const std::int64_t log_no_;
  std::unordered_map<std::int64_t, BodyBundle> read_;  // the last ones, because a run's events are scattered
  std::size_t held_bytes_ = 0;
};

}  // namespace muniment::verify
