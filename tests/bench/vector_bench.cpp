// The vector shard and its peers: run it in the folder that has base.f32, query.f32 and gt.i32 (shared/peers,
// retrieval). Rows have the peers' format; every query is warm and on one thread.
//
//   vector_bench [--batch 1000] [--vectors N] [--folder out/vector-shard] [--keep]
//
// --keep: opens the shard of an earlier run instead of building it.

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "retrieval/vector/vector_shard.hpp"

namespace {

using namespace muniment::retrieval;

constexpr std::size_t dimension = 384, top = 10;
const std::string space = "svd/1@passages";

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

template <typename T>
std::vector<T> read_array(const std::string& path) {
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  if (!in) {
    std::fprintf(stderr, "vector_bench: cannot read %s: see shared/peers/README.md\n", path.c_str());
    std::exit(2);
  }
  std::vector<T> values(static_cast<std::size_t>(in.tellg()) / sizeof(T));
  in.seekg(0);
  in.read(reinterpret_cast<char*>(values.data()), static_cast<std::streamsize>(values.size() * sizeof(T)));
  return values;
}

struct Data {
  std::vector<float> base = read_array<float>("base.f32"), query = read_array<float>("query.f32");
  std::vector<std::int32_t> truth = read_array<std::int32_t>("gt.i32");
  std::size_t size() const { return base.size() / dimension; }
  std::size_t queries() const { return query.size() / dimension; }
  std::span<const float> vector(std::size_t id) const { return {&base[id * dimension], dimension}; }
  std::span<const float> query_vector(std::size_t i) const { return {&query[i * dimension], dimension}; }
};

double cpu_seconds() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

double rss_mb() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    double kb = 0;
    if (word == "VmRSS:" && status >> kb) return kb / 1024;
  }
  return 0;
}

double folder_mb(const std::string& folder) {
  double bytes = 0;
  for (const auto& file : std::filesystem::recursive_directory_iterator(folder))
    bytes += static_cast<double>(file.file_size());
  return bytes / 1e6;
}

template <typename... Values>
std::string text(const char* format, Values... values) {
  char buffer[256];
  std::snprintf(buffer, sizeof buffer, format, values...);
  return buffer;
}

void row(const std::string& label, const std::string& what) {
  std::printf("  %-44s %s\n", label.c_str(), what.c_str());
  std::fflush(stdout);
}

std::string latency(std::vector<double> ms) {
  std::sort(ms.begin(), ms.end());
  const auto at = [&](double share) {
    return ms[std::min(ms.size() - 1, static_cast<std::size_t>(share * static_cast<double>(ms.size())))];
  };
  return text("p50 %8.3f  p95 %8.3f ms", at(0.5), at(0.95));
}

template <typename T>
T must(muniment::Result<T> result) {
  if (!result) {
    std::fprintf(stderr, "vector_bench: %s\n", result.error().message.c_str());
    std::exit(1);
  }
  return std::move(result).value();
}

// Selects the same ids as the peers.
bool chosen(std::size_t id, double share) {
  return static_cast<double>((static_cast<std::uint32_t>(id) * 2654435761u >> 8) % 1000) < std::max(1.0, share * 1000);
}

const std::vector<std::pair<double, std::string>> shares = {
    {0.5, "tag:half"}, {0.1, "tag:tenth"}, {0.01, "tag:hundredth"}, {0.001, "tag:thousandth"}};

VectorEntry entry_of(const Data& data, std::size_t i, ChunkId id) {
  VectorEntry entry;
  entry.id = id;
  entry.vector = data.vector(i);
  entry.facts.labels = {"corpus:passages", "document:passages/" + std::to_string(i / 10)};
  entry.facts.time_us = static_cast<std::int64_t>(i);
  entry.facts.valid_from = id;
  for (const auto& [share, label] : shares) {
    if (chosen(i, share)) entry.facts.labels.push_back(label);
  }
  return entry;
}

VectorBatch batch_at(std::int64_t next_seq) {
  VectorBatch batch;
  batch.space = space;
  batch.dimension = dimension;
  batch.next_seq = next_seq;
  return batch;
}

// Vector i is chunk i + 1, and chunk i + updated after its update.
constexpr ChunkId updated = 1'000'000;
ChunkId first_id(ChunkId chunk) { return chunk >= updated ? chunk - updated + 1 : chunk; }

void build(VectorShard& shard, const Data& data, std::size_t count, std::size_t batch_size) {
  const double start = now(), cpu = cpu_seconds(), rss = rss_mb();
  std::vector<double> ms;
  for (std::size_t first = 0; first < count; first += batch_size) {
    VectorBatch batch = batch_at(static_cast<std::int64_t>(std::min(first + batch_size, count)));
    for (std::size_t i = first; i < std::min(first + batch_size, count); ++i)
      batch.add.push_back(entry_of(data, i, static_cast<ChunkId>(i + 1)));
    const double begun = now();
    must(shard.write(batch));
    ms.push_back((now() - begun) * 1e3);
  }
  const double secs = now() - start;
  row(text("build, 1 thread, %zu a batch, each synced", batch_size),
      text("%.1f s  %.0f vectors/s  rss +%.0f MB  cpu %.1f s", secs, static_cast<double>(count) / secs, rss_mb() - rss,
           cpu_seconds() - cpu));
  row("  of a batch", latency(ms));
}

// Runs all queries twice; the second round counts.
template <typename Truth>
void measure(const std::string& label, const VectorShard& shard, const Data& data, const Filter& filter,
             const VectorSearch& how, std::size_t queries, const Truth& truth) {
  std::vector<double> ms;
  std::size_t right = 0, wanted = 0;
  for (int round = 0; round < 2; ++round) {
    ms.clear();
    right = wanted = 0;
    for (std::size_t i = 0; i < std::min(queries, data.queries()); ++i) {
      const double start = now();
      const std::vector<Hit> hits = must(shard.search(space, data.query_vector(i), filter, how));
      ms.push_back((now() - start) * 1e3);
      const std::vector<ChunkId>& expected = truth(i);
      wanted += expected.size();
      for (const Hit& hit : hits) {
        right += static_cast<std::size_t>(std::count_if(
            expected.begin(), expected.end(), [&](ChunkId id) { return first_id(id) == first_id(hit.chunk); }));
      }
    }
  }
  row(label,
      latency(ms) +
          (wanted == 0 ? "" : text("  recall@10 %.4f", static_cast<double>(right) / static_cast<double>(wanted))));
}

std::vector<std::vector<ChunkId>> exact_under(const VectorShard& shard, const Data& data, const Filter& filter,
                                              std::size_t queries) {
  std::vector<std::vector<ChunkId>> all(queries);
  for (std::size_t i = 0; i < queries; ++i) {
    for (const Hit& hit : must(shard.search(space, data.query_vector(i), filter, {.k = top, .exact = true})))
      all[i].push_back(hit.chunk);
  }
  return all;
}

void searches(const VectorShard& shard, const Data& data) {
  std::vector<std::vector<ChunkId>> truth(data.queries());
  for (std::size_t i = 0; i < data.truth.size(); ++i) truth[i / top].push_back(static_cast<ChunkId>(data.truth[i] + 1));
  const auto float_truth = [&](std::size_t i) -> const std::vector<ChunkId>& { return truth[i]; };
  for (const std::size_t ef : {10u, 20u, 40u, 64u, 100u, 200u, 400u}) {
    measure(text("search ef=%zu", ef), shard, data, {}, {.k = top, .exact = false, .beam = ef}, 1'000, float_truth);
  }
  measure("search, its own choice", shard, data, {}, {.k = top}, 1'000, float_truth);
  measure("exact scan, one thread", shard, data, {}, {.k = top, .exact = true}, 200, float_truth);
}

void filtered(const VectorShard& shard, const Data& data) {
  constexpr std::size_t queries = 200;
  for (const auto& [share, label] : shares) {
    Filter filter;
    filter.all_of = {{label}};
    const auto exact = exact_under(shard, data, filter, queries);
    measure(text("filter, %.1f %% allowed", share * 100), shard, data, filter, {.k = top}, queries,
            [&](std::size_t i) -> const std::vector<ChunkId>& { return exact[i]; });
  }
  Filter times;
  times.after_us = 20'000;
  times.before_us = 70'000;
  const auto exact = exact_under(shard, data, times, queries);
  measure("filter, half by time", shard, data, times, {.k = top}, queries,
          [&](std::size_t i) -> const std::vector<ChunkId>& { return exact[i]; });
}

// Updates a third of the shard: closes chunks, 1,000 a batch, and adds as many under new ids. The truth is an exact
// scan afterwards.
void updates(VectorShard& shard, const Data& data, std::size_t count) {
  constexpr std::size_t batch_size = 1'000;
  const std::int64_t seq = shard.spaces().at(0).next_seq;
  const double start = now();
  const double cpu = cpu_seconds();
  std::vector<double> ms;
  std::size_t replaced = 0;
  for (std::size_t first = 0; first < count; first += 3 * batch_size, replaced += batch_size) {
    VectorBatch batch = batch_at(seq + static_cast<std::int64_t>(first) + 1);
    for (std::size_t i = first; i < std::min(first + 3 * batch_size, count); i += 3) {
      batch.close.emplace_back(static_cast<ChunkId>(i + 1), batch.next_seq);
      batch.add.push_back(entry_of(data, i, updated + static_cast<ChunkId>(i)));
    }
    const double begun = now();
    must(shard.write(batch));
    ms.push_back((now() - begun) * 1e3);
  }
  row("update a third, 1,000 a batch",
      text("%.0f vectors/s  cpu %.1f s", static_cast<double>(replaced) / (now() - start), cpu_seconds() - cpu));
  row("  of a batch", latency(ms));
  const auto exact = exact_under(shard, data, {}, 200);
  const auto truth = [&](std::size_t i) -> const std::vector<ChunkId>& { return exact[i]; };
  measure("search ef=64 afterwards, against exact", shard, data, {}, {.k = top, .exact = false, .beam = 64}, 200,
          truth);
  Filter before;
  before.as_of = seq;
  const auto then = exact_under(shard, data, before, 20);
  measure("as of before the updates", shard, data, before, {.k = top}, 20,
          [&](std::size_t i) -> const std::vector<ChunkId>& { return then[i]; });
}

}  // namespace

int main(int argc, char** argv) {
  std::string folder = "out/vector-shard";
  std::size_t batch_size = 1'000, count = SIZE_MAX;
  bool keep = false;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    const std::string value = i + 1 < argc ? argv[i + 1] : "";
    if (flag == "--keep")
      keep = true;
    else if (flag == "--batch")
      batch_size = std::stoul(value), ++i;
    else if (flag == "--vectors")
      count = std::stoul(value), ++i;
    else if (flag == "--folder")
      folder = value, ++i;
    else {
      std::fprintf(stderr, "vector_bench [--batch 1000] [--vectors N] [--folder out/vector-shard] [--keep]\n");
      return 2;
    }
  }
  const Data data;
  count = std::min(count, data.size());
  if (!keep) {
    std::filesystem::remove_all(folder);
    const auto fresh = must(VectorShard::open(folder));
    build(*fresh, data, count, batch_size);
  }
  const double start = now(), cpu = cpu_seconds(), rss = rss_mb();
  const auto shard = must(VectorShard::open(folder));
  row("open (page cache warm)",
      text("%.3f s  rss +%.0f MB  cpu %.3f s", now() - start, rss_mb() - rss, cpu_seconds() - cpu));
  const SpaceStatus status = shard->spaces().at(0);
  row("size", text("%.1f MB on disk, %.1f MB in memory, %.0f bytes a vector", folder_mb(folder),
                   static_cast<double>(status.bytes_in_memory) / 1e6,
                   static_cast<double>(status.bytes_in_memory) / static_cast<double>(status.vectors)));
  searches(*shard, data);
  filtered(*shard, data);
  if (!keep) updates(*shard, data, count);
}
