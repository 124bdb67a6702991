// Reads, changes, scans and writes a shard in one piece.
#include "retrieval/vector/packed_shard.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>

#include "base/limits.hpp"
#include "retrieval/vector/codes.hpp"
#include "retrieval/vector/label_index.hpp"
#include "retrieval/vector/live_search.hpp"

namespace muniment::retrieval {
namespace {

using namespace vec;

constexpr std::string_view packed_magic = "MUVEC1\n\0";
constexpr std::size_t packed_unit = 8;  // every part begins at a multiple of it

struct PackedHeader {
  char magic[packed_unit];
  std::uint32_t spaces, sets, rows, zero;
  std::uint64_t labels;
};

// The facts of a chunk, which its vectors in all spaces share.
struct FactRow {
  ChunkId chunk = 0;
  std::uint32_t set = 0;  // of labels
  std::int64_t time_us = 0, valid_from = 0, valid_to = 0;
};

struct PackedSpaceHeader {
  std::uint32_t name_bytes, dimension;
  std::int64_t next_seq;
  std::uint32_t vectors, zero;
};

// An array that is read in place until it changes.
template <typename T>
class Array {
 public:
  void view(std::span<const T> place) { seen_ = place; }
  std::span<const T> all() const { return is_owned_ ? std::span<const T>(owned_) : seen_; }
  std::vector<T>& own() {
    if (!is_owned_) owned_.assign(seen_.begin(), seen_.end());
    is_owned_ = true;
    return owned_;
  }

 private:
  std::span<const T> seen_;
  std::vector<T> owned_;
  bool is_owned_ = false;
};

struct PackedSpace {
  std::string name;
  std::uint32_t dimension = 0;
  std::int64_t next_seq = 0;
  Array<std::uint32_t> rows;  // the row of facts of each vector, ascending
  Array<float> scales;
  Array<std::int8_t> codes;
};

// Reads parts in order; a part that does not fit ends the reading.
class PackedReader {
 public:
  explicit PackedReader(std::string_view bytes) : bytes_(bytes) {}

  template <typename T>
  std::optional<std::span<const T>> take(std::uint64_t count) {
    if (count > bytes_.size() / sizeof(T)) return std::nullopt;
    const std::size_t size = static_cast<std::size_t>(count) * sizeof(T);
    const std::size_t padded = std::min(bytes_.size(), (size + packed_unit - 1) / packed_unit * packed_unit);
    const std::span<const T> part(reinterpret_cast<const T*>(bytes_.data()), static_cast<std::size_t>(count));
    bytes_.remove_prefix(padded);
    return part;
  }
  bool at_end() const { return bytes_.empty(); }

 private:
  std::string_view bytes_;
};

template <typename T>
void append_part(std::string& out, std::span<const T> part) {
  out.append(reinterpret_cast<const char*>(part.data()), part.size_bytes());
  out.resize((out.size() + packed_unit - 1) / packed_unit * packed_unit);
}

Error packed_damage(std::string_view what) {
  return Error(Errc::corrupt, "packed vectors: " + std::string(what) + " is damaged");
}

class MemoryShard final : public PackedShard {
 public:
  Status read(std::string_view bytes);
  Status write(const VectorBatch& batch) override;
  Status drop(std::string_view space) override {
    std::erase_if(spaces_, [&](const PackedSpace& one) { return one.name == space; });
    return success();
  }
  Result<std::vector<Hit>> search(std::string_view space, std::span<const float> vector, const Filter& filter,
                                  const VectorSearch& how) const override;
  bool has(std::string_view space) const override { return find(space) != nullptr; }
  std::vector<SpaceStatus> spaces() const override;
  std::vector<std::string> spaces_with(ChunkId chunk) const override;
  std::string encode() const override;

 private:
  const PackedSpace* find(std::string_view name) const {
    const auto found = std::ranges::find(spaces_, name, &PackedSpace::name);
    return found == spaces_.end() ? nullptr : &*found;
  }
  std::optional<std::uint32_t> row_of(ChunkId chunk) const {
    const auto found = std::ranges::lower_bound(rows_, chunk, {}, &FactRow::chunk);
    if (found == rows_.end() || found->chunk != chunk) return std::nullopt;
    return static_cast<std::uint32_t>(found - rows_.begin());
  }
  Status read_space(PackedReader& reader);
  bool sets_are_sound() const;
  std::uint32_t set_of(const std::vector<std::string>& labels);
  Result<std::uint32_t> put_facts(ChunkId chunk, const Facts& facts);
  Status add(PackedSpace& space, const VectorEntry& entry);
  std::vector<bool> passing_sets(const Filter& filter) const;

  std::vector<FactRow> rows_;                                  // by chunk
  Array<std::uint32_t> set_begin_;                             // where the labels of each set begin, and their end
  Array<std::uint64_t> labels_;                                // label_hash, ascending in a set
  std::unordered_map<std::string, std::uint32_t> known_sets_;  // filled by the first change
  std::vector<PackedSpace> spaces_;
  const DotKernel dot_ = dot_kernels().front();
};

bool MemoryShard::sets_are_sound() const {
  const auto begins = set_begin_.all();
  return !begins.empty() && begins.front() == 0 && begins.back() == labels_.all().size() &&
         std::ranges::is_sorted(begins) &&
         std::ranges::all_of(rows_, [&](const FactRow& row) { return row.set + 1 < begins.size(); }) &&
         std::ranges::adjacent_find(rows_, std::ranges::greater_equal(), &FactRow::chunk) == rows_.end();
}

Status MemoryShard::read(std::string_view bytes) {
  if (bytes.empty()) {
    set_begin_.own() = {0};
    return success();
  }
  if (reinterpret_cast<std::uintptr_t>(bytes.data()) % packed_unit != 0) return packed_damage("the place");
  PackedReader reader(bytes);
  const auto header = reader.take<PackedHeader>(1);
  if (!header || std::memcmp((*header)[0].magic, packed_magic.data(), packed_magic.size()) != 0)
    return packed_damage("the header");
  const PackedHeader& counts = (*header)[0];
  const auto rows = reader.take<FactRow>(counts.rows);
  if (!rows) return packed_damage("a row");
  rows_.assign(rows->begin(), rows->end());
  const auto begins = reader.take<std::uint32_t>(std::uint64_t{counts.sets} + 1);
  const auto labels = begins ? reader.take<std::uint64_t>(counts.labels) : std::nullopt;
  if (!labels) return packed_damage("a label");
  set_begin_.view(*begins);
  labels_.view(*labels);
  if (!sets_are_sound()) return packed_damage("a label");
  for (std::uint32_t i = 0; i < counts.spaces; ++i) RETURN_IF_ERROR(read_space(reader));
  return reader.at_end() ? success() : Status(packed_damage("the end"));
}

Status MemoryShard::read_space(PackedReader& reader) {
  const auto header = reader.take<PackedSpaceHeader>(1);
  if (!header) return packed_damage("a space");
  const PackedSpaceHeader& counts = (*header)[0];
  const bool sound = counts.name_bytes > 0 && counts.name_bytes <= limits::vector_space_name_bytes_max &&
                     counts.dimension > 0 && counts.dimension <= limits::vector_dimensions_max;
  const auto name = sound ? reader.take<char>(counts.name_bytes) : std::nullopt;
  const auto rows = name ? reader.take<std::uint32_t>(counts.vectors) : std::nullopt;
  const auto scales = rows ? reader.take<float>(counts.vectors) : std::nullopt;
  const auto codes =
      scales ? reader.take<std::int8_t>(std::uint64_t{counts.vectors} * padded_size(counts.dimension)) : std::nullopt;
  if (!codes || (!rows->empty() && rows->back() >= rows_.size()) ||
      std::ranges::adjacent_find(*rows, std::ranges::greater_equal()) != rows->end() ||
      !std::ranges::all_of(*scales, [](float scale) { return std::isfinite(scale) && scale >= 0; }))
    return packed_damage("a space");
  PackedSpace& space = spaces_.emplace_back();
  space.name.assign(name->begin(), name->end());
  space.dimension = counts.dimension;
  space.next_seq = counts.next_seq;
  space.rows.view(*rows);
  space.scales.view(*scales);
  space.codes.view(*codes);
  return success();
}

std::string MemoryShard::encode() const {
  PackedHeader header{};
  std::memcpy(header.magic, packed_magic.data(), packed_magic.size());
  header.spaces = static_cast<std::uint32_t>(spaces_.size());
  header.sets = static_cast<std::uint32_t>(set_begin_.all().size() - 1);
  header.rows = static_cast<std::uint32_t>(rows_.size());
  header.labels = labels_.all().size();
  std::string out;
  append_part(out, std::span<const PackedHeader>(&header, 1));
  append_part(out, std::span<const FactRow>(rows_));
  append_part(out, set_begin_.all());
  append_part(out, labels_.all());
  for (const PackedSpace& space : spaces_) {
    const PackedSpaceHeader about{static_cast<std::uint32_t>(space.name.size()), space.dimension, space.next_seq,
                                  static_cast<std::uint32_t>(space.rows.all().size()), 0};
    append_part(out, std::span<const PackedSpaceHeader>(&about, 1));
    append_part(out, std::span<const char>(space.name));
    append_part(out, space.rows.all());
    append_part(out, space.scales.all());
    append_part(out, space.codes.all());
  }
  return out;
}

std::uint32_t MemoryShard::set_of(const std::vector<std::string>& labels) {
  const auto key_of = [](std::span<const std::uint64_t> set) {
    return std::string(reinterpret_cast<const char*>(set.data()), set.size_bytes());
  };
  std::vector<std::uint32_t>& begins = set_begin_.own();
  std::vector<std::uint64_t>& all = labels_.own();
  if (known_sets_.empty()) {
    for (std::uint32_t i = 0; i + 1 < begins.size(); ++i)
      known_sets_.emplace(key_of(std::span(all).subspan(begins[i], begins[i + 1] - begins[i])), i);
  }
  std::vector<std::uint64_t> set;
  for (const std::string& label : labels) set.push_back(label_hash(label));
  std::ranges::sort(set);
  set.erase(std::unique(set.begin(), set.end()), set.end());
  const auto [known, is_new] = known_sets_.emplace(key_of(set), static_cast<std::uint32_t>(begins.size() - 1));
  if (is_new) {
    all.insert(all.end(), set.begin(), set.end());
    begins.push_back(static_cast<std::uint32_t>(all.size()));
  }
  return known->second;
}

// Chunks arrive in the order of their ids; another order would move the rows of every space.
Result<std::uint32_t> MemoryShard::put_facts(ChunkId chunk, const Facts& facts) {
  const FactRow row{chunk, set_of(facts.labels), facts.time_us, facts.valid_from, facts.valid_to};
  if (const auto known = row_of(chunk)) {
    const std::int64_t valid_to = std::min(row.valid_to, rows_[*known].valid_to);
    rows_[*known] = row;
    rows_[*known].valid_to = valid_to;
    return *known;
  }
  if (!rows_.empty() && rows_.back().chunk > chunk)
    return Error(Errc::invalid_argument, "packed vectors: chunks are added in the order of their ids");
  rows_.push_back(row);
  return static_cast<std::uint32_t>(rows_.size() - 1);
}

Status MemoryShard::add(PackedSpace& space, const VectorEntry& entry) {
  if (entry.vector.size() != space.dimension ||
      !std::ranges::all_of(entry.vector, [](float value) { return std::isfinite(value); }))
    return Error(Errc::invalid_argument, "vector space " + space.name + ": a vector has another dimension");
  ASSIGN_OR_RETURN(const std::uint32_t row, put_facts(entry.id, entry.facts));
  const Code code = make_code(entry.vector);
  std::vector<std::uint32_t>& rows = space.rows.own();
  std::vector<float>& scales = space.scales.own();
  std::vector<std::int8_t>& codes = space.codes.own();
  const auto place = std::ranges::lower_bound(rows, row);
  const auto at = place - rows.begin();
  const auto size = static_cast<std::ptrdiff_t>(code.bytes.size());
  if (place != rows.end() && *place == row) {
    scales[static_cast<std::size_t>(at)] = code.scale;
    std::ranges::copy(code.bytes, codes.begin() + at * size);
    return success();
  }
  rows.insert(place, row);
  scales.insert(scales.begin() + at, code.scale);
  codes.insert(codes.begin() + at * size, code.bytes.begin(), code.bytes.end());
  return success();
}

Status MemoryShard::write(const VectorBatch& batch) {
  auto space = std::ranges::find(spaces_, batch.space, &PackedSpace::name);
  if (space == spaces_.end()) {
    if (batch.space.empty() || batch.space.size() > limits::vector_space_name_bytes_max || batch.dimension == 0 ||
        batch.dimension > limits::vector_dimensions_max)
      return Error(Errc::invalid_argument, "vector space " + batch.space + ": its name or dimension is not possible");
    spaces_.emplace_back();
    space = std::prev(spaces_.end());
    space->name = batch.space;
    space->dimension = static_cast<std::uint32_t>(batch.dimension);
  }
  for (const VectorEntry& entry : batch.add) RETURN_IF_ERROR(add(*space, entry));
  for (const auto& [chunk, valid_to] : batch.close) {
    if (const auto row = row_of(chunk)) rows_[*row].valid_to = valid_to;
  }
  if (!batch.remove.empty()) return Error(Errc::invalid_argument, "packed vectors: none can be removed");
  space->next_seq = batch.next_seq;
  return success();
}

// Most chunks of a document share a set, so that a filter is evaluated once for them.
std::vector<bool> MemoryShard::passing_sets(const Filter& filter) const {
  std::vector<std::vector<std::uint64_t>> all_of;
  for (const auto& group : filter.all_of) {
    auto& hashes = all_of.emplace_back();
    for (const std::string& label : group) hashes.push_back(label_hash(label));
  }
  std::vector<std::uint64_t> none_of;
  for (const std::string& label : filter.none_of) none_of.push_back(label_hash(label));
  const auto begins = set_begin_.all();
  std::vector<bool> passing(begins.size() - 1);
  for (std::size_t i = 0; i < passing.size(); ++i) {
    const auto set = labels_.all().subspan(begins[i], begins[i + 1] - begins[i]);
    const auto has = [&](std::uint64_t label) { return std::ranges::binary_search(set, label); };
    passing[i] = std::ranges::none_of(none_of, has) &&
                 std::ranges::all_of(all_of, [&](const auto& group) { return std::ranges::any_of(group, has); });
  }
  return passing;
}

Result<std::vector<Hit>> MemoryShard::search(std::string_view name, std::span<const float> vector, const Filter& filter,
                                             const VectorSearch& how) const {
  std::vector<Hit> hits;
  const PackedSpace* const space = find(name);
  if (space == nullptr) return hits;
  if (vector.size() != space->dimension || !std::ranges::all_of(vector, [](float v) { return std::isfinite(v); }))
    return Error(Errc::invalid_argument, "vector space " + space->name + ": the query has another dimension");
  const Probe probe = make_probe(vector);
  if (probe.scale == 0 || how.k == 0) return hits;
  const std::vector<bool> passing = passing_sets(filter);
  const std::size_t padded = padded_size(space->dimension);
  const auto rows = space->rows.all();
  const auto scales = space->scales.all();
  const std::int8_t* const codes = space->codes.all().data();
  BestChunks best(how.k);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const FactRow& row = rows_[rows[i]];
    const bool valid =
        filter.as_of ? row.valid_from <= *filter.as_of && *filter.as_of < row.valid_to : row.valid_to == still_valid;
    if (!valid || scales[i] == 0 || !passing[row.set] || (filter.after_us && row.time_us <= *filter.after_us) ||
        (filter.before_us && row.time_us >= *filter.before_us))
      continue;
    const float score = static_cast<float>(dot_.probe(probe.values.data(), codes + i * padded, padded)) * scales[i];
    if (score >= best.threshold()) best.add(score, row.chunk);
  }
  for (const auto& chunk : std::move(best).sorted())
    hits.push_back({chunk.id, double{chunk.score} * double{probe.scale}});
  return hits;
}

std::vector<SpaceStatus> MemoryShard::spaces() const {
  std::vector<SpaceStatus> out;
  for (const PackedSpace& space : spaces_) {
    SpaceStatus& status = out.emplace_back(SpaceStatus{space.name, space.dimension, space.next_seq});
    for (const std::uint32_t row : space.rows.all())
      ++(rows_[row].valid_to == still_valid ? status.vectors : status.closed);
  }
  return out;
}

std::vector<std::string> MemoryShard::spaces_with(ChunkId chunk) const {
  std::vector<std::string> names;
  const auto row = row_of(chunk);
  for (const PackedSpace& space : spaces_) {
    if (row && rows_[*row].valid_to == still_valid && std::ranges::binary_search(space.rows.all(), *row))
      names.push_back(space.name);
  }
  return names;
}

}  // namespace

Result<std::unique_ptr<PackedShard>> PackedShard::open(std::string_view bytes) {
  auto shard = std::make_unique<MemoryShard>();
  RETURN_IF_ERROR(shard->read(bytes));
  return std::unique_ptr<PackedShard>(std::move(shard));
}

}  // namespace muniment::retrieval
