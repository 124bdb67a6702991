// Encodes and decodes the records of a shard.
#include "retrieval/vector/records/records.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/limits.hpp"

namespace muniment::retrieval::vec {
namespace {

static_assert(std::endian::native == std::endian::little, "values are copied in the machine's byte order");

constexpr char shard_byte = 0, space_byte = 1;
constexpr std::size_t kind_key_bytes = 6;

template <typename T>
void put_big(std::string& out, T value) {
  for (std::size_t i = sizeof(T); i-- > 0;) out.push_back(static_cast<char>(value >> (8 * i) & 0xff));
}

template <typename T>
T get_big(std::string_view bytes) {
  T value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) value = static_cast<T>(value << 8 | static_cast<unsigned char>(bytes[i]));
  return value;
}

// Negative numbers sort before the others.
std::uint64_t sortable(std::int64_t value) { return static_cast<std::uint64_t>(value) ^ std::uint64_t{1} << 63; }

template <typename T>
void put(std::string& out, const T& value) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof value);
  out.append(bytes, sizeof bytes);
}

class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}
  template <typename T>
  bool get(T& value) {
    if (rest_.size() < sizeof value) return false;
    std::memcpy(&value, rest_.data(), sizeof value);
    rest_.remove_prefix(sizeof value);
    return true;
  }
  std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
};

std::string_view id_part(std::string_view key, RecordKind kind, std::size_t size) {
  const bool fits = key.size() == kind_key_bytes + size && key[0] == space_byte && key[5] == static_cast<char>(kind);
  return fits ? key.substr(kind_key_bytes) : std::string_view();
}

}  // namespace

std::string shard_key() { return std::string(1, shard_byte); }

std::string space_begin(std::uint32_t space) {
  std::string key(1, space_byte);
  put_big(key, space);
  return key;
}

std::string space_end(std::uint32_t space) { return space_begin(space + 1); }

std::string kind_key(std::uint32_t space, RecordKind kind) { return space_begin(space) + static_cast<char>(kind); }

std::string header_key(std::uint32_t space) { return kind_key(space, RecordKind::header); }

std::string node_key(std::uint32_t space, Slot slot) {
  std::string key = kind_key(space, RecordKind::node);
  put_big(key, slot);
  return key;
}

std::string links_key(std::uint32_t space, Slot slot, int level) {
  std::string key = kind_key(space, RecordKind::links);
  put_big(key, slot);
  put_big(key, static_cast<std::uint8_t>(level));
  return key;
}

std::string history_key(std::uint32_t space, std::int64_t valid_to, ChunkId chunk) {
  std::string key = kind_key(space, RecordKind::history);
  put_big(key, sortable(valid_to));
  put_big(key, chunk);
  return key;
}

std::string closed_at_key(std::uint32_t space, ChunkId chunk) {
  std::string key = kind_key(space, RecordKind::closed_at);
  put_big(key, chunk);
  return key;
}

std::optional<Slot> parse_node_key(std::string_view key) {
  const std::string_view id = id_part(key, RecordKind::node, 4);
  return id.empty() ? std::nullopt : std::optional(get_big<Slot>(id));
}

std::optional<LinksKey> parse_links_key(std::string_view key) {
  const std::string_view id = id_part(key, RecordKind::links, 5);
  if (id.empty()) return std::nullopt;
  return LinksKey{get_big<Slot>(id), static_cast<unsigned char>(id[4])};
}

std::optional<HistoryKey> parse_history_key(std::string_view key) {
  const std::string_view id = id_part(key, RecordKind::history, 12);
  if (id.empty()) return std::nullopt;
  return HistoryKey{static_cast<std::int64_t>(get_big<std::uint64_t>(id) ^ std::uint64_t{1} << 63),
                    get_big<ChunkId>(id.substr(8))};
}

std::string encode(const ShardHeader& header) {
  std::string out;
  put(out, format_version);
  put(out, header.next_number);
  put(out, header.spaces);
  put(out, header.headers_digest);
  put(out, header.erasing);
  return out;
}

std::optional<ShardHeader> decode_shard_header(std::string_view bytes) {
  Reader reader(bytes);
  ShardHeader header;
  std::uint32_t version = 0;
  const bool whole = reader.get(version) && version == format_version && reader.get(header.next_number) &&
                     reader.get(header.spaces) && reader.get(header.headers_digest) && reader.get(header.erasing) &&
                     header.erasing <= 1 && reader.rest().empty();
  return whole ? std::optional(header) : std::nullopt;
}

std::string encode(const SpaceHeader& header) {
  std::string out;
  put(out, header.dimension);
  put(out, header.slots);
  put(out, header.entry);
  put(out, header.vectors);
  put(out, header.next_seq);
  put(out, header.closed);
  put(out, header.live_digest);
  put(out, header.closed_digest);
  return out + header.name;
}

std::optional<SpaceHeader> decode_space_header(std::string_view bytes, std::uint32_t number) {
  Reader reader(bytes);
  SpaceHeader header;
  header.number = number;
  const bool whole = reader.get(header.dimension) && reader.get(header.slots) && reader.get(header.entry) &&
                     reader.get(header.vectors) && reader.get(header.next_seq) && reader.get(header.closed) &&
                     reader.get(header.live_digest) && reader.get(header.closed_digest);
  header.name = reader.rest();
  const bool fits = header.dimension > 0 && header.dimension <= limits::vector_dimensions_max &&
                    header.vectors <= header.slots && (header.entry == no_slot || header.entry < header.slots);
  return whole && fits ? std::optional(std::move(header)) : std::nullopt;
}

std::string encode(const VectorRecord& record) {
  std::string out;
  out.reserve(28 + record.labels.size() * 8 + record.code.size());
  put(out, record.chunk);
  put(out, record.level);
  put(out, std::uint8_t{0});
  put(out, static_cast<std::uint16_t>(record.labels.size()));
  put(out, record.scale);
  put(out, record.time_us);
  put(out, record.valid_from);
  for (const std::uint64_t label : record.labels) put(out, label);
  out.append(reinterpret_cast<const char*>(record.code.data()), record.code.size());
  return out;
}

std::optional<VectorRecord> decode_vector(std::string_view bytes, std::size_t padded) {
  Reader reader(bytes);
  VectorRecord record;
  std::uint8_t zero = 0;
  std::uint16_t labels = 0;
  if (!reader.get(record.chunk) || !reader.get(record.level) || !reader.get(zero) || !reader.get(labels) ||
      !reader.get(record.scale) || !reader.get(record.time_us) || !reader.get(record.valid_from) ||
      reader.rest().size() != labels * sizeof(std::uint64_t) + padded) {
    return std::nullopt;
  }
  record.labels.resize(labels);
  for (std::uint64_t& label : record.labels) reader.get(label);
  const bool ascending =
      std::adjacent_find(record.labels.begin(), record.labels.end(), std::greater_equal<>()) == record.labels.end();
  record.code = {reinterpret_cast<const std::int8_t*>(reader.rest().data()), padded};
  const bool fits = record.chunk != 0 && zero == 0 && ascending && std::isfinite(record.scale) && record.scale >= 0;
  return fits ? std::optional(std::move(record)) : std::nullopt;
}

std::string encode_links(std::span<const Slot> links) {
  const auto count = static_cast<std::size_t>(std::find(links.begin(), links.end(), no_slot) - links.begin());
  return std::string(reinterpret_cast<const char*>(links.data()), count * sizeof(Slot));
}

bool decode_links(std::string_view bytes, int level, Links& out) {
  if (bytes.size() % sizeof(Slot) != 0 || bytes.size() > links_max(level) * sizeof(Slot)) return false;
  out.fill(no_slot);
  std::memcpy(out.data(), bytes.data(), bytes.size());
  return true;
}

std::string encode_seq(std::int64_t seq) {
  std::string out;
  put(out, seq);
  return out;
}

std::optional<std::int64_t> decode_seq(std::string_view bytes) {
  Reader reader(bytes);
  std::int64_t seq = 0;
  return reader.get(seq) && reader.rest().empty() ? std::optional(seq) : std::nullopt;
}

std::uint64_t record_hash(std::string_view key, std::string_view value) {
  constexpr std::uint64_t factor = 0x9e37'79b9'7f4a'7c15;
  std::uint64_t hash = (key.size() << 32 | value.size()) * factor;
  for (std::string_view part : {key, value}) {
    std::uint64_t word = 0;
    const auto mix = [&] {
      hash = (hash ^ word) * factor;
      hash ^= hash >> 32;
    };
    for (; part.size() >= sizeof word; part.remove_prefix(sizeof word)) {
      std::memcpy(&word, part.data(), sizeof word);
      mix();
    }
    if (part.empty()) continue;
    word = 0;
    std::memcpy(&word, part.data(), part.size());
    mix();
  }
  return hash;
}

}  // namespace muniment::retrieval::vec
