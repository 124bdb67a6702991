// Encodes and hashes entries and the tree (docs/format.md, Entry, Tree) without the writer's code, so that an error in
// that code is found.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/crypto/sha256.hpp"
#include "base/ids.hpp"

namespace muniment::verify {

// A row of `event`. The views point into the row that was read.
struct EventView {
  std::int64_t seq = 0;
  std::int64_t run_no = 0;
  std::int64_t run_seq = 0;
  Time recorded_at;
  std::optional<Time> occurred_at;
  std::int64_t origin = 0;
  std::string_view type;
  std::int64_t schema_version = 0;
  std::optional<std::string_view> step_id;
  std::string_view actor;
  std::string_view event_id;   // 16 bytes
  std::string_view body_hash;  // 32 bytes
  std::optional<std::string_view> salt;
  std::optional<std::string_view> body;
  std::string_view run_hash;     // 32 bytes
  std::string_view why_no_body;  // reason why the archived body could not be read
  bool erased_since = false;     // the archive lost the body after the row was read
};

// Encodes the parts before and after the previous run_hash, which may become known later.
void encode_before_previous(const Uuid& log_id, std::string_view run_id, const EventView& event, std::string& out);

struct EntryHashes {
  Hash run_hash;
  Hash leaf_hash;
};
EntryHashes hash_entry(std::string_view before, std::string_view previous, std::string_view body_hash);

// An RFC 6962 tree that grows leaf by leaf. It stores one hash for each set bit of its size.
class Tree {
 public:
  // Builds the tree of this size from its perfect subtrees; nullopt if their number does not match the size.
  static std::optional<Tree> from_edge(std::int64_t size, std::string_view edge);

  void add(const Hash& leaf);
  std::int64_t size() const { return size_; }
  Hash root() const;
  std::string edge() const;  // roots of the perfect subtrees, the largest first

 private:
  std::int64_t size_ = 0;
  std::vector<Hash> subtrees_;
};

Hash node_hash(const Hash& left, const Hash& right);

// Computes the root of a tree of `size` leaves from an inclusion proof (RFC 9162, 2.1.3.2) that starts with the leaf's
// sibling; nullopt if the length of the proof does not match the leaf.
std::optional<Hash> root_of_proof(const Hash& leaf, std::int64_t index, std::int64_t size,
                                  const std::vector<Hash>& hashes);

}  // namespace muniment::verify
