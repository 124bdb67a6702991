// Tests of the vector shard: results, times and filters; that they are the same after a restart and in another shard;
// and that recall stays high while half of the vectors are replaced.
#include "retrieval/vector/vector_shard.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "retrieval/vector/codes.hpp"
#include "support/vector_model.hpp"

namespace muniment::retrieval {
namespace {

using TemporaryFolder = test::QuickFolder;
using namespace test;

// Adds the chunks from … to - 1, in batches of 500.
void fill(VectorShard& shard, const std::string& space, std::size_t dimension, Clusters& points, ChunkId from,
          ChunkId to, VectorModel* model = nullptr) {
  for (ChunkId begin = from; begin < to; begin += 500) {
    Batch batch(space, dimension, begin);
    for (ChunkId id = begin; id < std::min(begin + 500, to); ++id) batch.put(id, points.next());
    write(shard, batch);
    if (model != nullptr) model->apply(batch);
  }
}

double mean_recall(const VectorShard& shard, const std::string& space, Clusters& points, const Filter& filter = {},
                   int queries = 60) {
  double sum = 0;
  for (int i = 0; i < queries; ++i) {
    const FloatVector query = points.next();
    sum += recall(found(shard, space, query, filter, by_graph), found(shard, space, query, filter, exactly));
  }
  return sum / queries;
}

TEST(VectorShard, TheExactSearchIsNearTheFloatVectorsItself) {
  TemporaryFolder folder;
  const auto shard = opened(folder.path());
  Clusters points(96, 20, 1);
  std::vector<FloatVector> vectors(1);
  Batch batch("s", 96, 1);
  for (ChunkId id = 1; id <= 1'500; ++id) {
    vectors.push_back(points.next());
    batch.put(id, vectors.back());
  }
  write(*shard, batch);
  for (int i = 0; i < 20; ++i) {
    const FloatVector query = points.next();
    std::vector<std::pair<double, ChunkId>> order;
    for (ChunkId id = 1; id <= 1'500; ++id) {
      double dot = 0;
      for (std::size_t d = 0; d < 96; ++d) dot += double{query[d]} * double{vectors[id][d]};
      order.emplace_back(-dot, id);
    }
    std::sort(order.begin(), order.end());
    const auto hits = found(*shard, "s", query, {}, exactly);
    ASSERT_EQ(hits.size(), 10u);
    for (std::size_t rank = 0; rank < 10; ++rank) EXPECT_NEAR(hits[rank].score, -order[rank].first, 0.01);
  }
}

TEST(VectorShard, TheGraphFindsWhatTheScanFinds) {
  TemporaryFolder folder;
  const auto shard = opened(folder.path());
  Clusters points(48, 60, 2);
  fill(*shard, "s", 48, points, 1, 8'001);
  const VectorSearch narrow{.k = 10, .beam = 60};
  double sum = 0;
  bool differs = false;
  for (int i = 0; i < 100; ++i) {
    const FloatVector query = points.next();
    const auto exact = found(*shard, "s", query, {}, exactly);
    sum += recall(found(*shard, "s", query, {}, narrow), exact);
    differs = differs || recall(found(*shard, "s", query, {}, {.k = 10, .beam = 10}), exact) < 1;
  }
  EXPECT_GE(sum / 100, 0.95);
  EXPECT_TRUE(differs) << "it scanned: the graph was not tried";
}

TEST(VectorShard, RecallSurvivesTheReplacementOfHalfOfIt) {
  TemporaryFolder folder;
  const auto shard = opened(folder.path());
  Clusters points(48, 60, 3);
  fill(*shard, "s", 48, points, 1, 8'001);
  const double fresh = mean_recall(*shard, "s", points);
  std::mt19937 random(1);
  ChunkId next = 8'001;
  for (std::int64_t turn = 0; turn < 8; ++turn) {
    Batch batch("s", 48, 20'000 + turn);
    for (ChunkId id = static_cast<ChunkId>(turn) * 1'000 + 1; id <= static_cast<ChunkId>(turn) * 1'000 + 1'000;
         id += 2) {
      batch.close.emplace_back(id, 20'000 + turn);
      if (turn % 2 == 0) batch.put(next++, points.next());  // the others are removed without a replacement
    }
    write(*shard, batch);
  }
  EXPECT_EQ(shard->spaces().at(0).vectors, 6'000);
  EXPECT_GE(mean_recall(*shard, "s", points), std::min(0.95, fresh - 0.02)) << "fresh: " << fresh;
}

TEST(VectorShard, SlotsAreUsedAgainAndMemoryDoesNotGrow) {
  TemporaryFolder folder;
  const auto shard = opened(folder.path());
  Clusters points(32, 5, 4);
  fill(*shard, "s", 32, points, 1, 1'001);
  const std::int64_t before = shard->spaces().at(0).bytes_in_memory;
  for (ChunkId turn = 0; turn < 30; ++turn) {
    Batch batch("s", 32, 5'000 + turn);
    for (ChunkId i = 0; i < 20; ++i) {
      batch.put(10'000 + turn * 20 + i, points.next(), labelled("document:s/" + std::to_string(turn)));
      batch.close.emplace_back(turn * 20 + i + 1, 5'000 + turn);
    }
    write(*shard, batch);
  }
  const SpaceStatus status = shard->spaces().at(0);
  EXPECT_EQ(status.vectors, 1'000);
  EXPECT_EQ(status.closed, 600);
  EXPECT_LE(status.bytes_in_memory, before * 3 / 2);
}

struct Sequence {
  explicit Sequence(std::uint32_t seed) : random(seed), points(24, 6, seed) {}

  Batch next() {
    Batch batch("s", 24, ++seq);
    for (std::uint32_t i = below(30); i > 0; --i) {
      Facts facts = labelled("tag:" + std::to_string(below(4)), seq);
      facts.labels.push_back("corpus:c");
      facts.time_us = below(100);
      if (below(3) == 0) facts.labels.push_back("type:x");
      if (below(10) == 0) facts.labels.push_back("type:x");  // a duplicate label has no effect
      const bool again = last > 5 && below(12) == 0;
      batch.put(again ? 1 + below(last) : ++last, below(15) == 0 ? FloatVector(24, 0) : points.next(), facts);
    }
    for (std::uint32_t i = below(8); i > 0 && last > 0; --i) batch.close.emplace_back(1 + below(last), seq);
    for (std::uint32_t i = below(6); i > 2 && last > 0; --i) batch.remove.push_back(1 + below(last));
    return batch;
  }

  Filter filter() {
    Filter any;
    if (below(3) == 0) any.all_of.push_back({"tag:1", "tag:" + std::to_string(below(6))});
    if (below(5) == 0) any.all_of.push_back({"type:x"});
    if (below(4) == 0) any.none_of = {"tag:0", "tag:none"};
    if (below(4) == 0) any.after_us = below(100);
    if (below(4) == 0) any.before_us = below(100);
    if (below(2) == 0) any.as_of = below(static_cast<std::uint32_t>(seq) + 1);
    return any;
  }

  std::uint32_t below(std::uint32_t bound) { return static_cast<std::uint32_t>(random() % bound); }

  std::mt19937 random;
  Clusters points;
  std::int64_t seq = 0;
  ChunkId last = 0;
};

TEST(VectorShard, AnySequenceOfChangesFindsWhatAListFinds) {
  for (std::uint32_t seed = 1; seed <= 12; ++seed) {
    TemporaryFolder folder;
    auto shard = opened(folder.path());
    VectorModel model;
    Sequence sequence(seed);
    for (int turn = 0; turn < 25; ++turn) {
      const Batch batch = sequence.next();
      write(*shard, batch);
      model.apply(batch);
      if (turn % 8 == 7) {
        shard.reset();
        shard = opened(folder.path());
      }
      const SpaceStatus status = shard->spaces().at(0);
      ASSERT_EQ(status.vectors, model.current());
      ASSERT_EQ(status.closed, model.closed());
      ASSERT_EQ(status.next_seq, sequence.seq);
      for (int i = 0; i < 6; ++i) {
        const FloatVector query = sequence.points.next();
        const Filter filter = sequence.filter();
        const std::size_t k = 1 + sequence.below(30);
        ASSERT_EQ(listed(found(*shard, "s", query, filter, {.k = k, .exact = true})),
                  listed(model.search(query, filter, k)))
            << "seed " << seed << " turn " << turn;
      }
    }
  }
}

TEST(VectorShard, TheSameBatchesGiveTheSameAnswersAlsoAfterARestart) {
  TemporaryFolder a, b;
  auto first = opened(a.path()), second = opened(b.path());
  Clusters points(32, 30, 9);
  ChunkId next = 1;
  std::mt19937 random(5);
  for (std::int64_t turn = 1; turn <= 14; ++turn) {
    Batch batch("s", 32, turn);
    for (int i = 0; i < 500; ++i) batch.put(next++, points.next());
    for (int i = 0; i < 120 && turn > 1; ++i)
      batch.close.emplace_back(static_cast<ChunkId>(1 + random() % (next - 500)), turn);
    write(*first, batch);
    write(*second, batch);
    if (turn % 5 == 0) {
      second.reset();
      second = opened(b.path());
    }
  }
  for (int i = 0; i < 100; ++i) {
    const FloatVector query = points.next();
    const VectorSearch narrow{.k = 10, .beam = 12};  // the chunks that the graph misses must also be the same
    ASSERT_EQ(listed(found(*first, "s", query, {}, narrow)), listed(found(*second, "s", query, {}, narrow)));
  }
}

TEST(VectorShard, AsOfFindsWhatWasValidThen) {
  TemporaryFolder folder;
  const auto shard = opened(folder.path());
  Batch batch("s", 2, 5);
  batch.put(1, {1, 0}, valid(3));
  batch.put(2, {0, 1}, valid(1, 4));
  write(*shard, batch);
  Batch update("s", 2, 9);
  update.close = {{1, 8}};
  update.put(3, {1, 0}, valid(8));
  write(*shard, update);
  const auto at = [&](std::optional<std::int64_t> seq) {
    std::vector<ChunkId> ids;
    for (const Hit& hit : found(*shard, "s", {1, 0.1F}, as_of(seq), by_graph)) ids.push_back(hit.chunk);
    return ids;
  };
  using Ids = std::vector<ChunkId>;
  EXPECT_EQ(at(0), Ids{});
  EXPECT_EQ(at(1), Ids{2});
  EXPECT_EQ(at(3), (Ids{1, 2}));
  EXPECT_EQ(at(4), Ids{1});
  EXPECT_EQ(at(7), Ids{1});
  EXPECT_EQ(at(8), Ids{3});
  EXPECT_EQ(at(std::numeric_limits<std::int64_t>::max()), Ids{3});
  EXPECT_EQ(at(std::nullopt), Ids{3});
}

TEST(VectorShard, AFilterThatPassesFewFarAwayStillFillsTheAnswer) {
  TemporaryFolder folder;
  const auto shard = opened(folder.path());
  Clusters points(32, 20, 6);
  fill(*shard, "s", 32, points, 1, 6'001);
  Batch far("s", 32, 9'000);
  for (ChunkId id = 7'001; id <= 7'900; ++id) {  // in the direction opposite to every query below
    FloatVector vector = points.next();
    vector[0] = -3;
    far.put(id, Clusters::unit(vector), labelled("tag:far"));
  }
  write(*shard, far);
  for (int i = 0; i < 20; ++i) {
    FloatVector query = points.next();
    query[0] = 2;
    EXPECT_EQ(found(*shard, "s", query, with_any_of({"tag:far"}), by_graph).size(), 10u);
    EXPECT_EQ(found(*shard, "s", query, with_any_of({"tag:far"}), {.k = 10, .beam = 10}).size(), 10u);
  }
}

TEST(VectorShard, SpacesDoNotMeetAndADroppedOneIsGone) {
  TemporaryFolder folder;
  auto shard = opened(folder.path());
  Batch first("a@notes", 2, 4), second("b@notes", 3, 6);
  first.put(1, {1, 0});
  second.put(1, {1, 0, 0});
  second.put(2, {0, 1, 0});
  write(*shard, first);
  write(*shard, second);
  EXPECT_EQ(found(*shard, "a@notes", {1, 0}, {}, by_graph).size(), 1u);
  EXPECT_EQ(found(*shard, "b@notes", {1, 0, 0}, {}, by_graph).size(), 2u);
  EXPECT_EQ(shard->spaces().at(0).next_seq, 4);
  EXPECT_EQ(shard->spaces().at(1).next_seq, 6);
  ASSERT_TRUE(shard->drop("a@notes"));
  ASSERT_TRUE(shard->drop("a@notes"));
  EXPECT_TRUE(found(*shard, "a@notes", {1, 0}, {}, by_graph).empty());
  shard.reset();
  shard = opened(folder.path());
  ASSERT_EQ(shard->spaces().size(), 1u);
  EXPECT_EQ(found(*shard, "b@notes", {1, 0, 0}, {}, by_graph).size(), 2u);
  Batch anew("a@notes", 5, 1);  // with another dimension, and newer
  anew.put(9, {1, 0, 0, 0, 0});
  write(*shard, anew);
  EXPECT_EQ(found(*shard, "a@notes", {1, 0, 0, 0, 0}, {}, by_graph).at(0).chunk, 9u);
}

TEST(VectorShard, WhatDoesNotFitIsRefusedAndChangesNothing) {
  TemporaryFolder folder;
  const auto shard = opened(folder.path());
  Batch good("s", 3, 5);
  good.put(1, {1, 0, 0});
  write(*shard, good);
  const auto refused = [&](const Batch& batch) {
    const Status status = shard->write(batch);
    return status ? Errc::system_error : status.error().code;
  };
  EXPECT_EQ(refused(Batch("s", 4, 6)), Errc::invalid_argument);
  EXPECT_EQ(refused(Batch("t", 0, 6)), Errc::invalid_argument);
  EXPECT_EQ(refused(Batch("t", 4'097, 6)), Errc::invalid_argument);
  EXPECT_EQ(refused(Batch("", 3, 6)), Errc::invalid_argument);
  EXPECT_EQ(refused(Batch("s", 3, 4)), Errc::conflict);
  Facts many_labels;
  many_labels.labels.assign(1'025, "tag:x");
  Batch shorter("s", 3, 6), nan("s", 3, 6), labels("s", 3, 6), zero_id("s", 3, 6);
  shorter.put(2, {1, 0});
  nan.put(2, {1, 0, NAN});
  zero_id.put(0, {1, 0, 0});
  labels.put(2, {1, 0, 0}, many_labels);
  EXPECT_EQ(refused(shorter), Errc::invalid_argument);
  EXPECT_EQ(refused(nan), Errc::invalid_argument);
  EXPECT_EQ(refused(zero_id), Errc::invalid_argument);
  EXPECT_EQ(refused(labels), Errc::too_large);
  EXPECT_EQ(shard->search("s", FloatVector{1, 0}, {}, {}).error().code, Errc::invalid_argument);
  EXPECT_EQ(shard->search("s", FloatVector{1, 0, INFINITY}, {}, {}).error().code, Errc::invalid_argument);
  EXPECT_TRUE(shard->search("unknown", FloatVector{1, 0}, {}, {}).value().empty());
  EXPECT_TRUE(found(*shard, "s", {1, 0, 0}, {}, {.k = 0}).empty());
  EXPECT_EQ(shard->spaces().size(), 1u);
  EXPECT_EQ(shard->spaces().at(0).next_seq, 5);
  EXPECT_EQ(shard->spaces().at(0).vectors, 1);
}

TEST(VectorShard, AVectorWithoutDirectionIsKeptButNeverFound) {
  TemporaryFolder folder;
  auto shard = opened(folder.path());
  Batch batch("s", 3, 1);
  batch.put(1, {0, 0, 0});
  batch.put(2, {0, 1, 0});
  write(*shard, batch);
  EXPECT_EQ(found(*shard, "s", {1, 1, 1}, {}, exactly).size(), 1u);
  EXPECT_TRUE(found(*shard, "s", {0, 0, 0}, {}, exactly).empty());
  shard.reset();
  shard = opened(folder.path());
  EXPECT_EQ(shard->spaces().at(0).vectors, 2);
  Batch next("s", 3, 2);
  next.close = {{1, 2}};
  next.remove = {2};
  write(*shard, next);
  EXPECT_EQ(shard->spaces().at(0).vectors, 0);
  EXPECT_TRUE(found(*shard, "s", {1, 1, 1}, as_of(1), exactly).empty());
  Batch last("s", 3, 3);  // a graph that has lost its last node is rebuilt
  last.put(3, {0, 1, 0});
  write(*shard, last);
  EXPECT_EQ(found(*shard, "s", {1, 1, 1}, {}, exactly).at(0).chunk, 3u);
}

std::string all_bytes(const std::string& folder) {
  std::string all;
  for (const auto& file : std::filesystem::recursive_directory_iterator(folder)) {
    std::ifstream in(file.path(), std::ios::binary);
    all.append(std::istreambuf_iterator<char>(in), {});
  }
  return all;
}

std::string code_bytes(const FloatVector& vector) {
  const vec::Code code = vec::make_code(vector);
  return std::string(reinterpret_cast<const char*>(code.bytes.data()), code.bytes.size());
}

TEST(VectorShard, WhatIsRemovedIsInNoFileAnyMore) {
  TemporaryFolder folder;
  const auto shard = opened(folder.path());
  Clusters points(64, 5, 8);
  std::vector<FloatVector> vectors(1);
  Batch batch("s", 64, 1);
  for (ChunkId id = 1; id <= 300; ++id) {
    vectors.push_back(points.next());
    batch.put(id, vectors.back());
  }
  write(*shard, batch);
  Batch close("s", 64, 2);
  close.close = {{7, 2}, {8, 2}};
  write(*shard, close);
  const auto on_disk = [&](ChunkId id) {
    return all_bytes(folder.path()).find(code_bytes(vectors[id])) != std::string::npos;
  };
  EXPECT_TRUE(on_disk(5) && on_disk(7) && on_disk(8) && on_disk(9));
  Batch remove("s", 64, 3);
  remove.remove = {5, 7};  // a current one and a closed one
  write(*shard, remove);
  EXPECT_FALSE(on_disk(5));
  EXPECT_FALSE(on_disk(7));
  EXPECT_TRUE(on_disk(8));
  EXPECT_TRUE(on_disk(9));
  ASSERT_TRUE(shard->drop("s"));
  EXPECT_FALSE(on_disk(8) || on_disk(9));
}

TEST(VectorShard, TwoMayNotHaveItOpen) {
  TemporaryFolder folder;
  const auto shard = opened(folder.path());
  EXPECT_EQ(VectorShard::open(folder.path()).error().code, Errc::conflict);
}

TEST(VectorShard, SearchesSeeAWholeBatchOrNoneOfItWhileOneWrites) {
  TemporaryFolder folder;
  const auto shard = opened(folder.path());
  // Each batch replaces the whole previous one: ids of different hundreds are never current together.
  Clusters points(16, 3, 11);
  const auto batch_of = [&](ChunkId hundred) {
    Batch batch("s", 16, hundred + 1);
    for (ChunkId i = 1; i <= 40; ++i) {
      batch.put(hundred * 100 + i, points.next(), labelled("tag:" + std::to_string(i % 3), hundred));
      if (hundred > 0) batch.close.emplace_back((hundred - 1) * 100 + i, hundred);
    }
    return batch;
  };
  write(*shard, batch_of(0));
  std::atomic<bool> done = false;
  std::atomic<int> searches = 0, wrong = 0;
  const auto look = [&](std::uint32_t seed) {
    Clusters queries(16, 3, seed);
    while (!done) {
      Filter filter;
      if (searches % 3 == 1) filter.all_of = {{"tag:1", "tag:2", "tag:0"}};
      if (searches % 3 == 2) filter.as_of = 1'000'000;
      const auto hits = shard->search("s", queries.next(), filter, {.k = 100, .exact = searches % 2 == 0});
      const bool whole = hits && hits->size() == 40 && std::all_of(hits->begin(), hits->end(), [&](const Hit& hit) {
                           return hit.chunk / 100 == hits->front().chunk / 100;
                         });
      if (!whole) ++wrong;
      ++searches;
    }
  };
  std::thread first(look, 21), second(look, 22);
  for (ChunkId hundred = 1; hundred <= 60; ++hundred) write(*shard, batch_of(hundred));
  while (searches < 50) std::this_thread::yield();
  done = true;
  first.join();
  second.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace muniment::retrieval
