// The vector shard as it lies on the disk (docs/format.md, Vector shard). It is only read; a daemon may be writing to
// it.
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
  std::string name;  // <identity>@<corpus>, or mark:<what a position is of>
  std::uint32_t dimension = 0;
  std::int64_t next_seq = 0;
  std::uint64_t vectors = 0, closed = 0;
  std::uint64_t live_digest = 0, closed_digest = 0;
};

class ShardFiles {
 public:
  // One moment. Errors: not_found; corrupt; unavailable where files went while it was opened: again.
  static Result<ShardFiles> open(const std::string& folder);
  ShardFiles(ShardFiles&&) noexcept;
  ~ShardFiles();

  const std::vector<ShardSpace>& spaces() const;
  bool erasing() const;  // something that was removed may still lie in a file

  // Every vector of a space. Errors: corrupt, also where records are missing, stale or not as they are written.
  using Visit = std::function<void(bool live, std::int64_t chunk, const IndexedFacts& facts)>;
  Status visit(const ShardSpace& space, const Visit& visit) const;

 private:
  struct Impl;
  explicit ShardFiles(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace muniment::verify
