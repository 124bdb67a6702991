// Tests of the engine with its real parts: both indexes, the hash and lsa embedders, the profiles.
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "retrieval/embed/embedder.hpp"
#include "retrieval/engine/engine.hpp"
#include "support/library.hpp"
#include "support/temporary_folder.hpp"

namespace muniment::retrieval {
namespace {

namespace fs = std::filesystem;
using namespace test;

bool holds(const LaneAnswer& answer, ChunkId id) {
  const auto found = ids(answer);
  return std::find(found.begin(), found.end(), id) != found.end();
}

bool names(const std::vector<std::string>& texts, const std::string& beginning) {
  return std::any_of(texts.begin(), texts.end(), [&](const std::string& text) { return text.starts_with(beginning); });
}

class EngineTest : public ::testing::Test {
 protected:
  std::unique_ptr<Engine> open(const std::string& name = "index") {
    auto engine = Engine::open({folder_.path() + "/" + name, models_, false});
    EXPECT_TRUE(engine) << engine.error().message;
    return *std::move(engine);
  }
  LaneAnswer ask(Engine& engine, const LaneQuery& query) {
    auto searcher = engine.searcher();
    EXPECT_TRUE(searcher) << searcher.error().message;
    auto answer = (*searcher)->search(query);
    EXPECT_TRUE(answer) << answer.error().message;
    return answer ? *std::move(answer) : LaneAnswer{};
  }
  void index(Engine& engine, const EngineBatch& batch) {
    const auto done = engine.index(batch);
    ASSERT_TRUE(done) << done.error().message;
  }
  std::string path(const std::string& name) const { return folder_.path() + "/" + name; }

  test::TemporaryFolder folder_;
  std::string models_;  // folder of sentence encoders; empty: no encoder
};

TEST_F(EngineTest, WhatIsIndexedIsFoundByItsWords) {
  auto engine = open();
  index(*engine, batch_of(library(30), 0, 31));
  const LaneAnswer answer = ask(*engine, asking("captain anchor tide", 10));
  ASSERT_EQ(10U, answer.candidates.size());
  for (const ChunkId id : ids(answer)) EXPECT_EQ(1U, id % 3) << id;
  EXPECT_EQ(31, answer.watermark);
  EXPECT_EQ(2U, answer.identities.size());
  const EngineStatus status = engine->status();
  EXPECT_EQ(31, status.lexical_next_seq);
  EXPECT_EQ(31, status.vector_next_seq);
  EXPECT_EQ(30, status.chunks);
  EXPECT_TRUE(status.rebuilt.empty());
  EXPECT_TRUE(status.degraded.empty());
}

TEST_F(EngineTest, AnEncoderThatIsNotInstalledIsReported) {
  models_ = path("no-models");
  auto engine = open();
  index(*engine, batch_of(library(30), 0, 31));
  EXPECT_TRUE(names(engine->status().degraded, "encoder: bge-small-en-v1.5 is not installed"));
  EXPECT_TRUE(names(ask(*engine, asking("captain", 10)).degraded, "encoder: bge-small-en-v1.5 is not installed"));
}

TEST_F(EngineTest, AMisspeltWordIsFoundByTheHashLane) {
  auto engine = open();
  index(*engine, batch_of(library(30), 0, 31));
  const LaneAnswer answer = ask(*engine, asking("lighthuose telescoppe", 6));
  ASSERT_FALSE(answer.candidates.empty());
  for (const ChunkId id : ids(answer)) EXPECT_NE(2U, id % 3) << "bread has no lighthouse";
}

TEST_F(EngineTest, TheNewerOneIsFoundAndTheOlderOneAsOfBefore) {
  auto engine = open();
  index(*engine, batch_of(library(30), 0, 31));
  EngineBatch revision;
  revision.from_seq = 31;
  revision.next_seq = 32;
  revision.add = {chunk(31, "notes", "the captain sold the ship with its anchor", 31)};
  revision.close = {{1, 31}};
  index(*engine, revision);
  const LaneAnswer now = ask(*engine, asking("captain ship anchor", 40));
  EXPECT_TRUE(holds(now, 31));
  EXPECT_FALSE(holds(now, 1));
  LaneQuery before = asking("captain ship anchor", 40);
  before.filter.as_of = 30;
  EXPECT_TRUE(holds(ask(*engine, before), 1));
  EXPECT_FALSE(holds(ask(*engine, before), 31));
  before.mode = Mode::vector;
  EXPECT_TRUE(holds(ask(*engine, before), 1));
}

TEST_F(EngineTest, WhatIsRemovedIsNowhere) {
  auto engine = open();
  index(*engine, batch_of(library(30), 0, 31));
  EngineBatch batch;
  batch.from_seq = 31;
  batch.next_seq = 33;
  batch.add = {chunk(31, "notes", "captain", 31)};
  batch.close = {{4, 31}};
  batch.remove = {1, 4, 31};
  index(*engine, batch);
  for (const Mode mode : {Mode::lexical, Mode::vector, Mode::hybrid}) {
    LaneQuery query = asking("captain ship anchor", 40);
    query.mode = mode;
    for (const ChunkId id : {1U, 4U, 31U}) EXPECT_FALSE(holds(ask(*engine, query), id)) << id;
    query.filter.as_of = 5;
    for (const ChunkId id : {1U, 4U, 31U}) EXPECT_FALSE(holds(ask(*engine, query), id)) << id;
  }
}

TEST_F(EngineTest, AReopenedOneAnswersTheSame) {
  const LaneQuery query = asking("rocket payload telescope");
  auto engine = open();
  index(*engine, batch_of(library(60), 0, 61));
  const LaneAnswer before = ask(*engine, query);
  engine.reset();
  engine = open();
  EXPECT_TRUE(engine->status().rebuilt.empty());
  expect_equal(before, ask(*engine, query));
}

TEST_F(EngineTest, TwoThatAreFedTheSameAnswerTheSame) {
  auto one = open("one"), other = open("other");
  for (Engine* engine : {one.get(), other.get()}) {
    index(*engine, batch_of(library(90), 0, 40));
    index(*engine, batch_of(library(90), 40, 91));
  }
  for (const char* text : {"captain", "bread butter", "satellite storm recipe", "lighthuose"}) {
    LaneQuery query = asking(text, 50);
    expect_equal(ask(*one, query), ask(*other, query));
    query.exact = false;
    expect_equal(ask(*one, query), ask(*other, query));
  }
}

TEST_F(EngineTest, HowABatchIsSplitChangesNoAnswer) {
  auto whole = open("whole"), split = open("split");
  const auto chunks = library(90);
  index(*whole, batch_of(chunks, 0, 91));
  std::mt19937 random(3);
  for (std::int64_t from = 0; from < 91;) {
    const std::int64_t next = std::min<std::int64_t>(91, from + 1 + static_cast<std::int64_t>(random() % 20));
    index(*split, batch_of(chunks, from, next));
    from = next;
  }
  for (const char* text : {"captain", "bread butter", "satellite storm recipe"})
    expect_equal(ask(*whole, asking(text, 50)), ask(*split, asking(text, 50)));
}

TEST_F(EngineTest, ABatchThatItHasChangesNothing) {
  auto engine = open();
  const auto chunks = library(40);
  index(*engine, batch_of(chunks, 0, 41));
  const LaneAnswer before = ask(*engine, asking("captain dough", 50));
  index(*engine, batch_of(chunks, 0, 41));
  index(*engine, batch_of(chunks, 7, 13));
  expect_equal(before, ask(*engine, asking("captain dough", 50)));
  EXPECT_EQ(40, engine->status().chunks);
}

// After a crash between the two commits, the lexical index, which is written last, receives the missing chunks in other
// batches.
TEST_F(EngineTest, AnIndexThatFellBehindCatchesUpAndIsLeftOutMeanwhile) {
  auto engine = open();
  const auto chunks = library(60);
  index(*engine, batch_of(chunks, 0, 31));
  engine.reset();
  fs::copy(path("index/lexical"), path("kept"), fs::copy_options::recursive);
  engine = open();
  index(*engine, batch_of(chunks, 31, 61));
  const LaneAnswer all = ask(*engine, asking("captain dough", 60));
  engine.reset();
  fs::remove_all(path("index/lexical"));
  fs::rename(path("kept"), path("index/lexical"));

  engine = open();
  EXPECT_EQ(31, engine->status().lexical_next_seq);
  EXPECT_EQ(61, engine->status().vector_next_seq);
  const LaneAnswer meanwhile = ask(*engine, asking("captain dough", 60));
  EXPECT_TRUE(names(meanwhile.degraded, "lexical: behind"));
  EXPECT_FALSE(meanwhile.candidates.empty());
  EXPECT_EQ(1U, meanwhile.identities.size());
  index(*engine, batch_of(chunks, 31, 47));
  index(*engine, batch_of(chunks, 47, 61));
  expect_equal(all, ask(*engine, asking("captain dough", 60)));
}

// RocksDB opens a truncated log without an error. The lexical index is then ahead, and the engine cannot determine
// which one is correct: both are filled again.
TEST_F(EngineTest, VectorsThatLostTheirEndAreFilledAgainAndTheWordsToo) {
  auto engine = open();
  const auto chunks = library(60);
  index(*engine, batch_of(chunks, 0, 31));
  engine.reset();
  fs::copy(path("index/vector"), path("kept"), fs::copy_options::recursive);
  engine = open();
  index(*engine, batch_of(chunks, 31, 61));
  const LaneAnswer all = ask(*engine, asking("captain dough", 60));
  engine.reset();
  fs::remove_all(path("index/vector"));
  fs::rename(path("kept"), path("index/vector"));

  engine = open();
  EXPECT_EQ(31, engine->status().vector_next_seq);
  EXPECT_EQ(0, engine->status().lexical_next_seq);
  EXPECT_TRUE(names(ask(*engine, asking("captain dough", 60)).degraded, "lexical: behind"));
  index(*engine, batch_of(chunks, 0, 47));
  index(*engine, batch_of(chunks, 47, 61));
  expect_equal(all, ask(*engine, asking("captain dough", 60)));
}

TEST_F(EngineTest, AGapIsRefused) {
  auto engine = open();
  index(*engine, batch_of(library(9), 0, 10));
  const auto refused = engine->index(batch_of(library(30), 20, 31));
  ASSERT_FALSE(refused);
  EXPECT_EQ(Errc::conflict, refused.error().code);
  EXPECT_EQ(10, engine->status().lexical_next_seq);
}

void damage(const fs::path& folder) {
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    std::ofstream(entry.path(), std::ios::trunc) << "damaged";
  }
}

TEST_F(EngineTest, ADamagedIndexIsEmptiedAndFilledAgain) {
  for (const char* part : {"lexical", "vector"}) {
    SCOPED_TRACE(part);
    const std::string name = std::string("index-of-") + part;
    auto engine = open(name);
    const auto chunks = library(45);
    index(*engine, batch_of(chunks, 0, 46));
    const LaneAnswer before = ask(*engine, asking("captain dough", 60));
    engine.reset();
    damage(path(name) + "/" + part);
    engine = open(name);
    EXPECT_EQ(std::vector<std::string>{part}, engine->status().rebuilt);
    EXPECT_EQ(0, std::min(engine->status().lexical_next_seq, engine->status().vector_next_seq));
    index(*engine, batch_of(chunks, 0, 20));
    index(*engine, batch_of(chunks, 20, 46));
    expect_equal(before, ask(*engine, asking("captain dough", 60)));
  }
}

// Simulates one flipped bit in Xapian's metadata: the folder is from another engine with a later position.
TEST_F(EngineTest, ALexicalPositionThatCannotBeIsDamage) {
  const auto chunks = library(60);
  auto further = open("further");
  index(*further, batch_of(chunks, 0, 61));
  further.reset();
  auto engine = open();
  index(*engine, batch_of(chunks, 0, 31));
  engine.reset();
  fs::remove_all(path("index/lexical"));
  fs::rename(path("further/lexical"), path("index/lexical"));
  engine = open();
  EXPECT_EQ(std::vector<std::string>{"lexical"}, engine->status().rebuilt);
  EXPECT_EQ(0, engine->status().lexical_next_seq);
  // If damaged vectors were emptied, the lexical index may be ahead, and is kept.
  index(*engine, batch_of(chunks, 0, 61));
  engine.reset();
  damage(path("index/vector"));
  engine = open();
  EXPECT_EQ(61, engine->status().lexical_next_seq);
  engine.reset();
  engine = open();
  EXPECT_EQ(61, engine->status().lexical_next_seq);
  EXPECT_EQ(0, engine->status().vector_next_seq);
}

TEST_F(EngineTest, AnIndexThatIsTakenAwayIsNoticedAndBegunAnew) {
  auto engine = open();
  const auto chunks = library(30);
  index(*engine, batch_of(chunks, 0, 31));
  auto searcher = engine->searcher();
  ASSERT_TRUE(searcher);
  ASSERT_TRUE((*searcher)->search(asking("captain")));
  fs::remove_all(path("index/lexical"));
  EXPECT_EQ(Errc::corrupt, (*searcher)->search(asking("captain")).error().code);
  EXPECT_EQ(Errc::corrupt, engine->index(batch_of(chunks, 31, 40)).error().code);
  searcher->reset();
  engine.reset();
  engine = open();
  EXPECT_EQ(0, engine->status().lexical_next_seq);
  index(*engine, batch_of(chunks, 0, 31));
  EXPECT_EQ(10U, ask(*engine, asking("captain")).candidates.size());
}

TEST_F(EngineTest, EmptyFirstThrowsBothAway) {
  open()->index(batch_of(library(9), 0, 10)).ok();
  auto engine = Engine::open({path("index"), "", true});
  ASSERT_TRUE(engine);
  EXPECT_EQ((std::vector<std::string>{"lexical", "vector"}), (*engine)->status().rebuilt);
  EXPECT_EQ(0, (*engine)->status().chunks);
}

TEST_F(EngineTest, AFilterHoldsInEveryLaneAndAnEmptyAnswerSaysWhatItHides) {
  auto engine = open();
  index(*engine, batch_of(library(60), 0, 61));
  for (const Mode mode : {Mode::lexical, Mode::vector, Mode::hybrid}) {
    LaneQuery query = asking("captain ship", 100);
    query.mode = mode;
    query.filter.all_of = {{"tag:even"}};
    const LaneAnswer answer = ask(*engine, query);
    EXPECT_FALSE(answer.candidates.empty());
    for (const ChunkId id : ids(answer)) EXPECT_EQ(0U, id % 2) << id;
  }
  LaneQuery nothing = asking("captain ship");
  nothing.filter.all_of = {{"tag:none"}};
  const LaneAnswer answer = ask(*engine, nothing);
  EXPECT_TRUE(answer.candidates.empty());
  EXPECT_GT(answer.unfiltered, 0);
  EXPECT_EQ(0, ask(*engine, asking("")).unfiltered);
}

TEST_F(EngineTest, APhraseMustOccurWhoeverFindsIt) {
  auto engine = open();
  auto chunks = library(30);
  chunks[6].text = "the captain went ashore";
  index(*engine, batch_of(chunks, 0, 31));
  for (const Mode mode : {Mode::lexical, Mode::vector, Mode::hybrid}) {
    LaneQuery query = asking("ship", 50);
    query.mode = mode;
    query.phrases = {"captain went ashore"};
    EXPECT_EQ(std::vector<ChunkId>{7}, ids(ask(*engine, query)));
  }
}

TEST_F(EngineTest, ASmallCorpusBesideALargeOneAnswersInFull) {
  auto engine = open();
  auto chunks = library(200, "large");
  for (const EngineChunk& one : library(12, "small", 201)) chunks.push_back(one);
  index(*engine, batch_of(chunks, 0, 213));
  LaneQuery query = asking("captain anchor", 10);
  query.corpora = {"small"};
  query.filter.all_of = {{"corpus:small"}};
  for (const Mode mode : {Mode::vector, Mode::hybrid}) {
    query.mode = mode;
    const auto found = ids(ask(*engine, query));
    EXPECT_GE(found.size(), 4U);
    for (const ChunkId id : found) EXPECT_GT(id, 200U);
  }
}

TEST_F(EngineTest, ExplainShowsEveryLanesList) {
  auto engine = open();
  index(*engine, batch_of(library(30), 0, 31));
  LaneQuery query = asking("captain anchor");
  query.explain = true;
  query.vector_expansions = {"sailor"};
  const LaneAnswer answer = ask(*engine, query);
  std::vector<std::string> lanes;
  for (const LaneList& list : answer.lists) lanes.push_back(list.lane + (list.original ? ":" : "+") + list.query);
  EXPECT_EQ((std::vector<std::string>{"lexical:captain anchor", "hash:captain anchor", "hash+sailor"}), lanes);
  query.explain = false;
  EXPECT_TRUE(ask(*engine, query).lists.empty());
}

TEST_F(EngineTest, AnUnknownProfileIsTheCallersMistake) {
  auto engine = open();
  LaneQuery query = asking("captain");
  query.profile = "no-such";
  auto searcher = engine->searcher();
  EXPECT_EQ(Errc::invalid_argument, (*searcher)->search(query).error().code);
}

std::string trained_on(const std::vector<EngineChunk>& chunks, std::uint64_t seed) {
  std::vector<std::string_view> texts;
  for (const EngineChunk& one : chunks) texts.push_back(one.text);
  const auto model = train_lsa(texts, {16, seed});
  EXPECT_TRUE(model);
  return model->bytes;
}

TEST_F(EngineTest, AModelAnswersOnceItsVectorsAreThereAndIsKept) {
  auto engine = open();
  const auto chunks = library(60);
  index(*engine, batch_of(chunks, 0, 51));
  ASSERT_TRUE(engine->set_model({"notes", trained_on(library(50), 1)}));
  index(*engine, batch_of(chunks, 51, 61));
  EXPECT_TRUE(names(ask(*engine, asking("captain")).identities, "hash/"));
  ASSERT_EQ(1U, engine->status().models.size());
  EXPECT_FALSE(engine->status().models[0].filled);
  const std::vector<EngineChunk> first(chunks.begin(), chunks.begin() + 30), second(chunks.begin() + 30, chunks.end());
  ASSERT_TRUE(engine->embed_again("notes", first, false));
  engine.reset();
  engine = open();  // half-way, and then from the beginning again
  EXPECT_FALSE(engine->status().models.at(0).filled);
  ASSERT_TRUE(engine->embed_again("notes", first, false));
  ASSERT_TRUE(engine->embed_again("notes", second, true));
  const LaneAnswer answer = ask(*engine, asking("captain", 20));
  EXPECT_TRUE(names(answer.identities, "lsa/"));
  EXPECT_EQ(20U, answer.candidates.size());
  EXPECT_TRUE(engine->status().models.at(0).filled);
  engine.reset();
  engine = open();
  expect_equal(answer, ask(*engine, asking("captain", 20)));
}

TEST_F(EngineTest, AModelThatIsReplacedAnswersUntilTheNextIsFilled) {
  auto engine = open();
  const auto chunks = library(60);
  index(*engine, batch_of(chunks, 0, 61));
  ASSERT_TRUE(engine->set_model({"notes", trained_on(chunks, 1)}));
  ASSERT_TRUE(engine->embed_again("notes", chunks, true));
  const auto before = ask(*engine, asking("captain")).identities;
  auto fewer = chunks;
  fewer.resize(40);
  ASSERT_TRUE(engine->set_model({"notes", trained_on(fewer, 1)}));
  EXPECT_EQ(before, ask(*engine, asking("captain")).identities);
  ASSERT_TRUE(engine->embed_again("notes", chunks, true));
  const auto after = ask(*engine, asking("captain")).identities;
  EXPECT_NE(before, after);
  EXPECT_EQ(1U, engine->status().models.size());
  EXPECT_EQ(Errc::conflict, engine->embed_again("notes", chunks, true).error().code);
  EXPECT_EQ(Errc::invalid_argument, engine->set_model({"notes", "no model"}).error().code);
}

TEST_F(EngineTest, SearchesThatAModelOvertakesAreStillWhole) {
  auto engine = open();
  const auto chunks = library(60);
  index(*engine, batch_of(chunks, 0, 61));
  std::vector<std::string> models;
  for (const std::size_t size : {60U, 50U, 40U}) models.push_back(trained_on(library(size), 1));
  std::atomic<bool> over = false;
  std::atomic<int> short_ones = 0, answered = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      LaneQuery query = asking("captain", 5);
      query.mode = Mode::vector;
      for (auto searcher = engine->searcher(); !over; ++answered) {
        const auto answer = (*searcher)->search(query);
        if (!answer || answer->candidates.size() != 5) ++short_ones;
      }
    });
  }
  for (int round = 0; round < 6; ++round) {
    EXPECT_TRUE(engine->set_model({"notes", models[static_cast<std::size_t>(round) % 3]}));
    EXPECT_TRUE(engine->embed_again("notes", chunks, true));
    for (const int before = answered; answered < before + 4;) std::this_thread::yield();
  }
  over = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(0, short_ones);
}

}  // namespace
}  // namespace muniment::retrieval
