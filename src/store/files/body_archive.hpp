// Bodies that left the database (docs/format.md, Archive): when a sealed partition is archived its
// rows stay, and most bodies move to files of 256 each, which can be rewritten when one of them is
// erased. A row tells where its body is: in the row; nowhere (`salt` is NULL too: erased); or here.
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

// Puts the archived bodies into these events. `folder`: of LogPlace. Errors: corrupt when one is missing or
// is not what was hashed.
Status fill_archived(const std::string& folder, std::span<events::Event> events);

class BodyArchive {
 public:
  explicit BodyArchive(std::string folder) : folder_(std::move(folder)) {}

  bool has(std::int64_t index) const;
  Result<BodyBundle> read(std::int64_t index) const;

  // Writes what `rows` reads, durably. An erasure takes the rows first and the files then: nothing is erased
  // here between the reading and the writing, so that nothing erased comes back.
  Status write(std::int64_t index, const std::function<Result<BodyBundle>()>& rows);

  // Takes the bodies of these events, in order, out of the files that have them.
  Status erase(const std::vector<std::int64_t>& seqs);

 private:
  Status replace(std::int64_t index, const BodyBundle& bundle);

  const std::string folder_;
  std::mutex moving_;
};

}  // namespace muniment::store
