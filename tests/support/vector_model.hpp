// A model of the vector shard as a list: an independent implementation of the codes and scores of
// docs/format.md, with an exhaustive search. The shard's exact search must give identical results, to the last bit.
#pragma once

#include <stdlib.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "retrieval/vector/vector_shard.hpp"

namespace muniment::retrieval::test {

using FloatVector = std::vector<float>;

// Unit vectors around `centres`, similar to the distribution of embeddings.
class Clusters {
 public:
  Clusters(std::size_t dimension, std::size_t centres, std::uint32_t seed) : random_(seed) {
    for (std::size_t i = 0; i < centres; ++i) centres_.push_back(gaussian(dimension, 1));
  }
  FloatVector next() {
    FloatVector point = centres_[random_() % centres_.size()];
    const FloatVector noise = gaussian(point.size(), 0.7F);
    for (std::size_t i = 0; i < point.size(); ++i) point[i] += noise[i];
    return unit(std::move(point));
  }
  static FloatVector unit(FloatVector vector) {
    double squares = 0;
    for (const float value : vector) squares += double{value} * double{value};
    for (float& value : vector) value = static_cast<float>(double{value} / std::sqrt(squares));
    return vector;
  }

 private:
  FloatVector gaussian(std::size_t dimension, float deviation) {
    std::normal_distribution<float> normal(0, deviation);
    FloatVector vector(dimension);
    for (float& value : vector) value = normal(random_);
    return vector;
  }
  std::mt19937 random_;
  std::vector<FloatVector> centres_;
};

class VectorModel {
 public:
  void apply(const VectorBatch& batch) {
    for (const VectorEntry& entry : batch.add)
      chunks_[entry.id] = {FloatVector(entry.vector.begin(), entry.vector.end()), entry.facts};
    for (const auto& [id, valid_to] : batch.close) {
      const auto found = chunks_.find(id);
      if (found != chunks_.end() && found->second.facts.valid_to == still_valid)
        found->second.facts.valid_to = valid_to;
    }
    for (const ChunkId id : batch.remove) chunks_.erase(id);
  }

  std::vector<Hit> search(const FloatVector& query, const Filter& filter, std::size_t k) const {
    const std::size_t steps = std::numeric_limits<std::int32_t>::max() / (127 * query.size());
    const auto [probe, probe_scale] = rounded(query, static_cast<double>(std::min<std::size_t>(32'767, steps)));
    std::vector<std::pair<float, ChunkId>> found;
    for (const auto& [id, chunk] : chunks_) {
      const auto [code, scale] = rounded(chunk.vector, 127);
      if (scale == 0 || probe_scale == 0 || !passes(chunk.facts, filter)) continue;
      std::int64_t dot = 0;
      for (std::size_t i = 0; i < code.size(); ++i) dot += code[i] * probe[i];
      found.emplace_back(static_cast<float>(dot) * scale, id);
    }
    std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) {
      return a.first != b.first ? a.first > b.first : a.second < b.second;
    });
    found.resize(std::min(k, found.size()));
    std::vector<Hit> hits;
    for (const auto& [score, id] : found) hits.push_back({id, double{score} * double{probe_scale}});
    return hits;
  }

  std::int64_t current() const { return count(true); }
  std::int64_t closed() const { return count(false); }
  std::vector<ChunkId> ids() const {
    std::vector<ChunkId> all;
    for (const auto& [id, chunk] : chunks_) all.push_back(id);
    return all;
  }

 private:
  struct Chunk {
    FloatVector vector;
    Facts facts;
  };

  // The components in steps of the largest component / `steps`, and the reciprocal of the rounded vector's length.
  static std::pair<std::vector<std::int64_t>, float> rounded(const FloatVector& vector, double steps) {
    double largest = 0, squares = 0;
    for (const float value : vector) largest = std::max(largest, std::abs(double{value}));
    std::vector<std::int64_t> out;
    for (const float value : vector) out.push_back(largest > 0 ? std::lrint(double{value} / largest * steps) : 0);
    for (const std::int64_t value : out) squares += static_cast<double>(value * value);
    return {out, squares > 0 ? static_cast<float>(1 / std::sqrt(squares)) : 0.0F};
  }

  static bool passes(const Facts& facts, const Filter& filter) {
    const auto has = [&](const std::string& label) {
      return std::count(facts.labels.begin(), facts.labels.end(), label) > 0;
    };
    for (const auto& group : filter.all_of) {
      if (std::none_of(group.begin(), group.end(), has)) return false;
    }
    if (std::any_of(filter.none_of.begin(), filter.none_of.end(), has)) return false;
    if (filter.after_us && facts.time_us <= *filter.after_us) return false;
    if (filter.before_us && facts.time_us >= *filter.before_us) return false;
    if (!filter.as_of) return facts.valid_to == still_valid;
    return facts.valid_from <= *filter.as_of && *filter.as_of < facts.valid_to;
  }

  std::int64_t count(bool current) const {
    return std::count_if(chunks_.begin(), chunks_.end(),
                         [&](const auto& entry) { return (entry.second.facts.valid_to == still_valid) == current; });
  }

  std::map<ChunkId, Chunk> chunks_;
};

inline std::vector<std::pair<ChunkId, double>> listed(const std::vector<Hit>& hits) {
  std::vector<std::pair<ChunkId, double>> list;
  for (const Hit& hit : hits) list.emplace_back(hit.chunk, hit.score);
  return list;
}

inline double recall(const std::vector<Hit>& found, const std::vector<Hit>& exact) {
  std::size_t right = 0;
  for (const Hit& hit : found)
    right += static_cast<std::size_t>(
        std::count_if(exact.begin(), exact.end(), [&](const Hit& e) { return e.chunk == hit.chunk; }));
  return exact.empty() ? 1 : static_cast<double>(right) / static_cast<double>(exact.size());
}

// A folder in memory, if the system has one, so that hundreds of synced writes do not wait for a disk.
class QuickFolder {
 public:
  QuickFolder() {
    char in_memory[] = "/dev/shm/muniment-test-XXXXXX", elsewhere[] = "/tmp/muniment-test-XXXXXX";
    if (::mkdtemp(in_memory) != nullptr)
      path_ = in_memory;
    else if (::mkdtemp(elsewhere) != nullptr)
      path_ = elsewhere;
    else
      throw std::runtime_error("mkdtemp failed");
  }
  ~QuickFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  QuickFolder(const QuickFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

inline std::unique_ptr<VectorShard> opened(const std::string& folder) {
  auto shard = VectorShard::open(folder);
  if (!shard) throw std::runtime_error(shard.error().message);
  return std::move(shard).value();
}

inline std::vector<Hit> found(const VectorShard& shard, const std::string& space, const FloatVector& query,
                              const Filter& filter, const VectorSearch& how) {
  auto hits = shard.search(space, query, filter, how);
  if (!hits) throw std::runtime_error(hits.error().message);
  return std::move(hits).value();
}

inline constexpr VectorSearch exactly{.k = 10, .exact = true};
inline constexpr VectorSearch by_graph{.k = 10};

// A batch with the vectors to which it points.
struct Batch : VectorBatch {
  Batch(const std::string& name, std::size_t size, std::int64_t seq) {
    space = name;
    dimension = size;
    next_seq = seq;
  }
  void put(ChunkId id, FloatVector vector, Facts facts = {}) {
    kept.push_back(std::make_unique<FloatVector>(std::move(vector)));
    add.push_back({id, *kept.back(), std::move(facts)});
  }
  std::vector<std::unique_ptr<FloatVector>> kept;
};

inline void write(VectorShard& shard, const VectorBatch& batch) {
  if (const Status written = shard.write(batch); !written) throw std::runtime_error(written.error().message);
}

// Builders of filters and facts, named after the property under test.
inline Filter as_of(std::optional<std::int64_t> seq) {
  Filter filter;
  filter.as_of = seq;
  return filter;
}
inline Filter with_any_of(std::vector<std::string> labels) {
  Filter filter;
  filter.all_of = {std::move(labels)};
  return filter;
}
inline Facts valid(std::int64_t from, std::int64_t to = still_valid) {
  Facts facts;
  facts.valid_from = from;
  facts.valid_to = to;
  return facts;
}
inline Facts labelled(std::string label, std::int64_t valid_from = 0) {
  Facts facts;
  facts.labels = {std::move(label)};
  facts.valid_from = valid_from;
  return facts;
}

}  // namespace muniment::retrieval::test
