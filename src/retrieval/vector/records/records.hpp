// The records of a shard in RocksDB: docs/format.md, "The vector shard". Integers in keys are big-endian, so that they
// sort; in values they are little-endian, so that links are read without conversion.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "retrieval/vector/space.hpp"

namespace muniment::retrieval::vec {

inline constexpr std::uint32_t format_version = 1;

// The record of the shard itself.
struct ShardHeader {
  std::uint32_t next_number = 1;  // number of the next space; never reused
  std::uint32_t spaces = 0;
  std::uint64_t headers_digest = 0;  // sum of the hashes of the spaces' headers
  std::uint32_t erasing = 0;         // 1: removed records may remain in a file
};

enum class RecordKind : char { header = 'a', closed_at = 'c', links = 'g', history = 'h', node = 'n' };

std::string shard_key();
std::string kind_key(std::uint32_t space, RecordKind kind);  // the common prefix of all keys of the kind
std::string space_begin(std::uint32_t space);                // first key of a space
std::string space_end(std::uint32_t space);                  // end of a space's keys (exclusive)
std::string header_key(std::uint32_t space);
std::string node_key(std::uint32_t space, Slot slot);
std::string links_key(std::uint32_t space, Slot slot, int level);
std::string history_key(std::uint32_t space, std::int64_t valid_to, ChunkId chunk);
std::string closed_at_key(std::uint32_t space, ChunkId chunk);

struct LinksKey {
  Slot slot = no_slot;
  int level = 0;
};
struct HistoryKey {
  std::int64_t valid_to = 0;
  ChunkId chunk = 0;
};
std::optional<Slot> parse_node_key(std::string_view key);
std::optional<LinksKey> parse_links_key(std::string_view key);
std::optional<HistoryKey> parse_history_key(std::string_view key);

std::string encode(const ShardHeader& header);
std::string encode(const SpaceHeader& header);
std::string encode(const VectorRecord& record);
std::string encode_links(std::span<const Slot> links);  // up to the first no_slot
std::string encode_seq(std::int64_t seq);

// Return nullopt for a malformed value. A decoded record's code points into `bytes`.
std::optional<ShardHeader> decode_shard_header(std::string_view bytes);
std::optional<SpaceHeader> decode_space_header(std::string_view bytes, std::uint32_t number);
std::optional<VectorRecord> decode_vector(std::string_view bytes, std::size_t padded);
bool decode_links(std::string_view bytes, int level, Links& out);
std::optional<std::int64_t> decode_seq(std::string_view bytes);

// The terms of a digest, which detects lost and stale records; RocksDB's checksums protect the content of a record.
std::uint64_t record_hash(std::string_view key, std::string_view value);

}  // namespace muniment::retrieval::vec
