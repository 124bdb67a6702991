// Stores bodies outside the database (docs/format.md, Archive). Archiving a sealed partition keeps its rows and moves
// most bodies to files of 256 each, which are rewritten when one of them is erased. A body is in its row, in the
// archive, or erased (`salt` is NULL too).
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/files/body_bundle.hpp"
#include "base/result.hpp"
#include "events/event.hpp"

namespace muniment::store {

// Adds the archived bodies to these events. `folder` is that of LogPlace. Errors: corrupt if a body is missing or does
// not match its hash.
Status fill_archived(const std::string& folder, std::span<events::Event> events);

class BodyArchive {
 public:
  explicit BodyArchive(std::string folder) : folder_(std::move(folder)) {}

  bool has(std::int64_t index) const;
  Result<BodyBundle> read(std::int64_t index) const;

  // Writes the bodies that `rows` returns, durably. An erasure clears the rows before the files. Nothing is erased here
  // between the read and the write, so no erased body reappears.
  Status write(std::int64_t index, const std::function<Result<BodyBundle>()>& rows);

  // Removes the bodies of these events from their files. `seqs` is in ascending order.
  Status erase(const std::vector<std::int64_t>& seqs);

 private:
  Status replace(std::int64_t index, const BodyBundle& bundle);

  const std::string folder_;
  std::mutex moving_;
};

}  // namespace muniment::store
