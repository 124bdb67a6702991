// Tests of the lane with a slow embedder, over a real shard, with an embedder that blocks until the test lets it
// continue.
#include "retrieval/engine/late_lane.hpp"

#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <thread>

#include "base/clock.hpp"
#include "retrieval/engine/vector_lanes.hpp"
#include "support/temporary_folder.hpp"

namespace muniment::retrieval {
namespace {

using namespace std::chrono_literals;

class Gate {
 public:
  void let(bool through) {
    const std::lock_guard lock(mutex_);
    open_ = through;
    changed_.notify_all();
  }
  void pass() {
    std::unique_lock lock(mutex_);
    ++waiting_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return open_; });
    --waiting_;
  }
  void note(std::span<const std::string_view> texts) {
    const std::lock_guard lock(mutex_);
    for (const std::string_view text : texts) embedded_.emplace_back(text);
  }
  std::vector<std::string> embedded() {
    const std::lock_guard lock(mutex_);
    return embedded_;
  }
  void await_somebody() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return waiting_ > 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
  int waiting_ = 0;
  std::vector<std::string> embedded_;  // texts in the order in which the embedder got them
};

class SlowEmbedder : public Embedder {
 public:
  explicit SlowEmbedder(Gate& gate) : gate_(gate) {}
  const EmbedderIdentity& identity() const override { return inner_->identity(); }
  Result<Vectors> embed(std::span<const std::string_view> texts, TextKind kind) override {
    gate_.note(texts);
    gate_.pass();
    return inner_->embed(texts, kind);
  }

 private:
  Gate& gate_;
  const std::unique_ptr<Embedder> inner_ = make_hash_embedder();
};

EngineBatch one_chunk(ChunkId id, std::int64_t seq, const std::string& corpus = "notes") {
  EngineBatch batch;
  batch.from_seq = seq;
  batch.next_seq = seq + 1;
  batch.add = {{id, corpus, "words of chunk " + std::to_string(id), "", "", "en", {{}, 0, seq, still_valid}}};
  return batch;
}

class LateLaneTest : public ::testing::Test {
 protected:
  void SetUp() override { open(); }
  void TearDown() override {
    gate_.let(true);
    lane_.reset();
  }
  void open() {
    gate_.let(true);
    lane_.reset();
    gate_.let(false);
    shard_.reset();
    auto shard = VectorShard::open(folder_.path() + "/vector");
    ASSERT_TRUE(shard) << shard.error().message;
    shard_ = *std::move(shard);
    lane_ = std::make_unique<LateLane>(std::make_unique<SlowEmbedder>(gate_), *shard_);
  }
  bool eventually_covers(std::int64_t next_seq) {
    for (const Deadline end = std::chrono::steady_clock::now() + 20s; std::chrono::steady_clock::now() < end;
         std::this_thread::sleep_for(2ms)) {
      if (lane_->covers({"notes", "other"}, next_seq)) return true;
    }
    return false;
  }
  std::vector<ChunkId> found(std::optional<std::int64_t> as_of = std::nullopt, const std::string& corpus = "notes") {
    const std::string_view text = "words of chunk";
    const auto vector = make_hash_embedder()->embed({&text, 1}, TextKind::query);
    Filter filter;
    filter.as_of = as_of;
    std::vector<ChunkId> ids;
    const auto hits = shard_->search(space_of(lane_->embedder(), corpus), vector->at(0), filter, {100, true, 0});
    for (const Hit& hit : *hits) ids.push_back(hit.chunk);
    std::sort(ids.begin(), ids.end());
    return ids;
  }

  test::TemporaryFolder folder_;
  Gate gate_;
  std::unique_ptr<VectorShard> shard_;
  std::unique_ptr<LateLane> lane_;
};

TEST_F(LateLaneTest, AnswersForACorpusOnceNothingOfItWaits) {
  ASSERT_TRUE(lane_->take(one_chunk(1, 0)));
  EXPECT_EQ(1, lane_->given());
  EXPECT_FALSE(lane_->covers({"notes"}, 1));
  EXPECT_TRUE(lane_->covers({"other"}, 1));
  EXPECT_FALSE(lane_->covers({"other"}, 2));
  EXPECT_NE("", lane_->behind(1));
  gate_.let(true);
  ASSERT_TRUE(eventually_covers(1));
  EXPECT_EQ("", lane_->behind(1));
  EXPECT_EQ(std::vector<ChunkId>{1}, found());
}

TEST_F(LateLaneTest, TheCorpusOfTheNewestQuestionIsEmbeddedFirst) {
  EngineBatch large = one_chunk(1, 0, "large");
  for (ChunkId id = 2; id <= 40; ++id) large.add.push_back(one_chunk(id, 0, "large").add.front());
  ASSERT_TRUE(lane_->take(large));
  gate_.await_somebody();  // the first chunks of it are being embedded
  ASSERT_TRUE(lane_->take(one_chunk(50, 1, "notes")));
  ASSERT_TRUE(lane_->take(one_chunk(51, 2, "other")));
  ASSERT_TRUE(lane_->take(one_chunk(52, 3, "other")));
  EXPECT_EQ(lane_->waiting(), 43);
  EXPECT_EQ(lane_->behind(4), lane_->name() + ": behind (43 chunks wait)");
  EXPECT_FALSE(lane_->covers({"other"}, 4));
  gate_.let(true);
  ASSERT_TRUE(eventually_covers(4));
  const std::vector<std::string> order = gate_.embedded();
  // The batch that was begun, then the corpus that was asked for, then the smaller one.
  EXPECT_EQ(order.at(16), "words of chunk 51");
  EXPECT_EQ(order.at(18), "words of chunk 50");
}

TEST_F(LateLaneTest, WhatIsRemovedWhileItIsEmbeddedNeverAppears) {
  ASSERT_TRUE(lane_->take(one_chunk(1, 0)));
  ASSERT_TRUE(lane_->take(one_chunk(2, 1)));
  gate_.await_somebody();  // the first chunk is being embedded
  EngineBatch removal;
  removal.from_seq = 2;
  removal.next_seq = 3;
  removal.remove = {1, 2};
  ASSERT_TRUE(lane_->take(removal));
  EXPECT_TRUE(lane_->covers({"notes"}, 3));
  gate_.let(true);
  ASSERT_TRUE(lane_->take(one_chunk(3, 3)));
  ASSERT_TRUE(eventually_covers(4));
  EXPECT_EQ(std::vector<ChunkId>{3}, found());
}

TEST_F(LateLaneTest, WhatIsClosedWhileItWaitsIsFoundAsOfBefore) {
  ASSERT_TRUE(lane_->take(one_chunk(1, 0)));
  gate_.await_somebody();
  EngineBatch closing;
  closing.from_seq = 1;
  closing.next_seq = 3;
  closing.close = {{1, 2}};
  ASSERT_TRUE(lane_->take(closing));
  gate_.let(true);
  ASSERT_TRUE(eventually_covers(3));
  EXPECT_TRUE(found().empty());
  EXPECT_EQ(std::vector<ChunkId>{1}, found(1));
  EXPECT_TRUE(found(2).empty());
}

TEST_F(LateLaneTest, WhatIsClosedOrRemovedAfterwardsIsSoAtOnce) {
  gate_.let(true);
  for (ChunkId id = 1; id <= 3; ++id) ASSERT_TRUE(lane_->take(one_chunk(id, id - 1)));
  ASSERT_TRUE(eventually_covers(3));
  EngineBatch ending;
  ending.from_seq = 3;
  ending.next_seq = 5;
  ending.close = {{1, 3}};
  ending.remove = {2};
  ASSERT_TRUE(lane_->take(ending));
  EXPECT_EQ(std::vector<ChunkId>{3}, found());
  EXPECT_EQ((std::vector<ChunkId>{1, 3}), found(2));
}

TEST_F(LateLaneTest, AfterARestartItIsGivenAgainWhatWaited) {
  gate_.let(true);
  ASSERT_TRUE(lane_->take(one_chunk(1, 0)));
  ASSERT_TRUE(eventually_covers(1));
  // The mark is written after the vectors: until then, only the shard itself has this information.
  for (int i = 0; i < 2'000 && shard_->spaces().size() < 2; ++i) std::this_thread::sleep_for(1ms);
  open();
  EXPECT_EQ(1, lane_->given());
  ASSERT_TRUE(lane_->take(one_chunk(2, 1)));
  EXPECT_EQ(2, lane_->given());
  gate_.await_somebody();
  open();
  EXPECT_LE(lane_->given(), 2);
  gate_.let(true);
  ASSERT_TRUE(lane_->take(one_chunk(2, 1)));
  ASSERT_TRUE(eventually_covers(2));
  EXPECT_EQ((std::vector<ChunkId>{1, 2}), found());
}

TEST_F(LateLaneTest, AGapKeepsItBehindUntilItIsFilled) {
  gate_.let(true);
  ASSERT_TRUE(lane_->take(one_chunk(5, 4)));  // the lane has no earlier position
  EXPECT_EQ(0, lane_->given());
  EXPECT_FALSE(lane_->covers({"notes"}, 5));
  EngineBatch unknown = one_chunk(6, 5);
  unknown.from_seq = -1;  // still a gap, although this batch does not state its start
  ASSERT_TRUE(lane_->take(unknown));
  EXPECT_EQ(0, lane_->given());
  for (std::int64_t seq = 0; seq < 6; ++seq) ASSERT_TRUE(lane_->take(one_chunk(static_cast<ChunkId>(seq + 1), seq)));
  ASSERT_TRUE(eventually_covers(6));
  EXPECT_EQ((std::vector<ChunkId>{1, 2, 3, 4, 5, 6}), found());
}

TEST_F(LateLaneTest, WhatItPassedOverItAsksForOnceItHasTheTime) {
  gate_.let(true);
  ASSERT_TRUE(lane_->take(one_chunk(1, 0)));
  ASSERT_TRUE(eventually_covers(1));
  ASSERT_TRUE(lane_->take(one_chunk(5, 4)));  // the lane did not receive 1 to 3
  Status asked = success();
  for (int i = 0; i < 2'000 && asked; ++i, std::this_thread::sleep_for(1ms)) asked = lane_->take(one_chunk(6, 5));
  ASSERT_FALSE(asked);
  EXPECT_EQ(Errc::conflict, asked.error().code);
  for (std::int64_t seq = lane_->given(); seq < 6; ++seq)
    ASSERT_TRUE(lane_->take(one_chunk(static_cast<ChunkId>(seq + 1), seq)));
  ASSERT_TRUE(eventually_covers(6));
  EXPECT_EQ((std::vector<ChunkId>{1, 2, 3, 4, 5, 6}), found());
}

TEST_F(LateLaneTest, ItsSpacesMayHaveMovedWithoutIt) {
  gate_.let(true);
  ASSERT_TRUE(lane_->take(one_chunk(1, 0)));
  ASSERT_TRUE(eventually_covers(1));
  VectorBatch others;  // simulates a document that ended while the embedder was unavailable
  others.space = space_of(lane_->embedder(), "notes");
  others.dimension = lane_->embedder().identity().dimension;
  others.next_seq = 40;
  others.remove = {9};
  ASSERT_TRUE(shard_->write(others));
  ASSERT_TRUE(lane_->take(one_chunk(2, 1)));
  ASSERT_TRUE(eventually_covers(2));
  EXPECT_EQ((std::vector<ChunkId>{1, 2}), found());
}

TEST_F(LateLaneTest, EachCorpusHasItsOwnSpace) {
  gate_.let(true);
  ASSERT_TRUE(lane_->take(one_chunk(1, 0)));
  ASSERT_TRUE(lane_->take(one_chunk(2, 1, "other")));
  ASSERT_TRUE(eventually_covers(2));
  EXPECT_EQ(std::vector<ChunkId>{1}, found());
  EXPECT_EQ(std::vector<ChunkId>{2}, found(std::nullopt, "other"));
}

}  // namespace
}  // namespace muniment::retrieval
