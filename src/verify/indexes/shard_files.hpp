// Reads the vector shard (docs/format.md, Vector shard). It writes nothing; a daemon may write to the shard at the same
// time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "verify/indexes/index_rows.hpp"

namespace muniment::verify {

struct ShardSpace {
  std::uint32_t number = 0;
  std::string name;  // <identity>@<corpus>, or mark:<owner of the position>
  std::uint32_t dimension = 0;
  std::int64_t next_seq = 0;
  std::uint64_t vectors = 0, closed = 0;
  std::uint64_t live_digest = 0, closed_digest = 0;
};

class ShardFiles {
 public:
  // Opens one state of the shard. Errors: not_found; corrupt; unavailable if files disappeared while they were opened,
  // which is worth a retry.
  static Result<ShardFiles> open(const std::string& folder);
  ShardFiles(ShardFiles&&) noexcept;
  ~ShardFiles();

  const std::vector<ShardSpace>& spaces() const;
  bool erasing() const;  // a file may still hold removed records

  // Visits every vector of a space. Errors: corrupt, also for missing, stale or malformed records.
  using Visit = std::function<void(bool live, std::int64_t chunk, const IndexedFacts& facts)>;
  Status visit(const ShardSpace& space, const Visit& visit) const;

 private:
  struct Impl;
  explicit ShardFiles(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace muniment::verify
