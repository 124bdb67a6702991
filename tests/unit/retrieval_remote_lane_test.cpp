// Tests of the engine with a lane of an embedding server: indexing and search while the server is available,
// unavailable, and after its model has changed.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <thread>

#include "retrieval/embed/embedder.hpp"
#include "retrieval/engine/engine.hpp"
#include "support/library.hpp"
#include "support/temporary_folder.hpp"

namespace muniment::retrieval {
namespace {

using namespace std::chrono_literals;
using namespace test;

// Finds synonyms, which the hash embedder, under another name, does not.
class ServerEmbedder : public Embedder {
 public:
  explicit ServerEmbedder(std::string model) : identity_{"http", "1", inner_->identity().dimension, std::move(model)} {}
  const EmbedderIdentity& identity() const override { return identity_; }
  Result<Vectors> embed(std::span<const std::string_view> texts, TextKind kind) override {
    ++calls;
    if (away) return Error(Errc::unavailable, "gone");
    if (slow && kind == TextKind::query) std::this_thread::sleep_for(700ms);
    return inner_->embed(texts, kind);
  }

  // Each line is a part.
  Result<std::vector<Vectors>> embed_parts(std::span<const std::string_view> documents) override {
    std::vector<Vectors> parts;
    for (const std::string_view document : documents) {
      Vectors& vectors = parts.emplace_back();
      for (std::size_t begin = 0; begin < document.size();) {
        const std::size_t end = std::min(document.find('\n', begin), document.size());
        const std::string_view line = document.substr(begin, end - begin);
        ASSIGN_OR_RETURN(Vectors made, embed({&line, 1}, TextKind::document));
        vectors.push_back(std::move(made.at(0)));
        begin = end + 1;
      }
    }
    return parts;
  }

  std::atomic<bool> away = false, slow = false;
  std::atomic<int> calls = 0;

 private:
  const std::unique_ptr<Embedder> inner_ = make_hash_embedder();
  const EmbedderIdentity identity_;
};

class RemoteLane : public ::testing::Test {
 protected:
  std::unique_ptr<Engine> open(std::shared_ptr<Embedder> remote, const std::string& name = "index",
                               const std::string& missing = "") {
    Engine::Options options;
    options.folder = folder_.path() + "/" + name;
    options.remote = std::move(remote);
    options.remote_missing = missing;
    auto engine = Engine::open(options);
    EXPECT_TRUE(engine) << engine.error().message;
    return *std::move(engine);
  }
  static LaneAnswer ask(Engine& engine, const LaneQuery& query) {
    auto searcher = engine.searcher();
    auto answer = (*searcher)->search(query);
    EXPECT_TRUE(answer) << answer.error().message;
    return answer ? *std::move(answer) : LaneAnswer{};
  }
  static bool has_http(const LaneAnswer& answer) {
    return std::ranges::any_of(answer.identities,
                               [](const std::string& identity) { return identity.starts_with("http/"); });
  }
  static std::string said(const LaneAnswer& answer) {
    for (const std::string& text : answer.degraded) {
      if (text.starts_with("http: ")) return text;
    }
    return "";
  }
  static LaneAnswer eventually_joined(Engine& engine, const LaneQuery& query) {
    for (const auto end = std::chrono::steady_clock::now() + 20s; std::chrono::steady_clock::now() < end;
         std::this_thread::sleep_for(2ms)) {
      if (LaneAnswer answer = ask(engine, query); has_http(answer)) return answer;
    }
    ADD_FAILURE() << "the lane does not join";
    return {};
  }

  test::TemporaryFolder folder_;
};

TEST_F(RemoteLane, JoinsWithItsIdentityOnceItHasEverything) {
  const auto server = std::make_shared<ServerEmbedder>("a");
  server->away = true;
  auto engine = open(server);
  ASSERT_TRUE(engine->index(batch_of(library(30), 0, 31)));
  EXPECT_EQ(31, engine->status().vector_next_seq);
  LaneAnswer answer = ask(*engine, asking("captain anchor"));
  EXPECT_FALSE(has_http(answer));
  EXPECT_FALSE(answer.passing);
  EXPECT_EQ(std::vector<std::string>{"http"}, answer.waiting);
  EXPECT_NE("", said(answer));
  LaneQuery lanes = asking("captain anchor");
  lanes.only_lanes = true;
  EXPECT_EQ(std::vector<std::string>{"http"}, ask(*engine, lanes).waiting);
  lanes.mode = Mode::lexical;
  EXPECT_EQ(std::vector<std::string>{}, ask(*engine, lanes).waiting) << "it would not be asked";
  lanes.mode = Mode::hybrid;
  server->away = false;
  LaneQuery query = asking("captain anchor");
  query.explain = true;
  answer = eventually_joined(*engine, query);
  EXPECT_EQ("", said(answer));
  EXPECT_EQ(std::vector<std::string>{}, answer.waiting);
  const LaneAnswer none = ask(*engine, lanes);
  EXPECT_EQ(std::vector<std::string>{}, none.waiting);
  EXPECT_TRUE(none.candidates.empty() && none.identities.empty()) << "nothing was looked for";
  ASSERT_EQ(2U, answer.identities.size());
  EXPECT_EQ(0U, answer.identities[0].find("http/1/512/a"));
  ASSERT_EQ(2U, answer.lists.size());
  EXPECT_EQ("lexical", answer.lists[0].lane);
  EXPECT_NEAR(1, answer.lists[0].weight + answer.lists[1].weight, 1e-12);
  EXPECT_EQ("http", answer.lists[1].lane);
}

TEST_F(RemoteLane, AChunkOfSeveralPartsHasTheScoreOfItsBestPart) {
  auto engine = open(std::make_shared<ServerEmbedder>("a"));
  EngineBatch batch;
  batch.from_seq = 0;
  batch.next_seq = 4;
  const auto add = [&](ChunkId id, const std::string& text, const std::string& corpus) {
    batch.add.push_back({id, corpus, text, "", "", "en", {{}, 0, static_cast<std::int64_t>(id) - 1, still_valid}});
  };
  add(1, "the bread is baked in the morning\nthe captain has an anchor\nthe telescope is on the roof", "notes");
  add(2, "the captain has an anchor", "notes");
  add(3, "flour and water", "notes");
  add(4, "the roof of the lighthouse\nthe captain has an anchor", "others");
  ASSERT_TRUE(engine->index(batch));
  LaneQuery query = asking("the captain has an anchor");
  query.mode = Mode::vector;
  query.explain = true;
  query.corpora = {"notes", "others"};
  const auto scores = [&](const LaneAnswer& answer) {
    std::map<ChunkId, double> found;
    for (const Hit& hit : answer.lists.at(0).hits) EXPECT_TRUE(found.emplace(hit.chunk, hit.score).second) << hit.chunk;
    return found;
  };
  const auto found = scores(eventually_joined(*engine, query));
  EXPECT_NEAR(1, found.at(1), 0.02);
  EXPECT_NEAR(1, found.at(2), 0.02);
  EXPECT_NEAR(1, found.at(4), 0.02);
  EXPECT_LT(found.contains(3) ? found.at(3) : 0, 0.9);

  EngineBatch ending;
  ending.from_seq = 4;
  ending.next_seq = 6;
  ending.close = {{1, 5}};
  ending.remove = {4};
  ASSERT_TRUE(engine->index(ending));
  const auto left = scores(eventually_joined(*engine, query));
  EXPECT_FALSE(left.contains(1) || left.contains(4)) << "no part of a chunk outlives it";
  EXPECT_TRUE(left.contains(2));
  query.filter.as_of = 4;
  EXPECT_TRUE(scores(eventually_joined(*engine, query)).contains(1));
}

TEST_F(RemoteLane, WhereItFailsTheAnswerIsThatOfTheOthers) {
  const auto server = std::make_shared<ServerEmbedder>("a");
  auto with = open(server);
  auto without = open(nullptr, "plain");
  ASSERT_TRUE(with->index(batch_of(library(30), 0, 31)));
  ASSERT_TRUE(without->index(batch_of(library(30), 0, 31)));
  LaneQuery query = asking("captain anchor tide", 20);
  query.vector_expansions = {"ship storm", "sailor"};
  query.explain = true;
  eventually_joined(*with, query);
  server->away = true;
  for (const Mode mode : {Mode::hybrid, Mode::vector, Mode::lexical}) {
    query.mode = mode;
    const int before = server->calls;
    const LaneAnswer answer = ask(*with, query), expected = ask(*without, query);
    expect_equal(answer, expected);
    ASSERT_EQ(expected.lists.size(), answer.lists.size());
    for (std::size_t i = 0; i < answer.lists.size(); ++i) {
      EXPECT_EQ(expected.lists[i].lane, answer.lists[i].lane);
      EXPECT_EQ(expected.lists[i].weight, answer.lists[i].weight);
    }
    EXPECT_EQ(mode == Mode::lexical ? "" : "http: gone", said(answer));
    EXPECT_EQ(mode != Mode::lexical, answer.passing);
    EXPECT_EQ(mode == Mode::lexical ? 0 : 1, server->calls - before) << "one failure is enough for a query";
  }
  server->away = false;
  query.mode = Mode::hybrid;
  EXPECT_TRUE(has_http(ask(*with, query)));
}

TEST_F(RemoteLane, ASlowServerIsNotAskedForEveryExpansion) {
  const auto server = std::make_shared<ServerEmbedder>("a");
  auto engine = open(server);
  ASSERT_TRUE(engine->index(batch_of(library(9), 0, 10)));
  LaneQuery query = asking("captain");
  eventually_joined(*engine, query);
  query.vector_expansions.assign(8, "ship");
  server->slow = true;
  const int before = server->calls;
  const LaneAnswer answer = ask(*engine, query);
  EXPECT_TRUE(has_http(answer));
  EXPECT_TRUE(answer.passing);
  EXPECT_EQ("http: too slow to be asked for every expansion", said(answer));
  EXPECT_LE(server->calls - before, 4);
}

TEST_F(RemoteLane, OneThatIsNotKnownYetIsSaidToBeSo) {
  auto engine = open(nullptr, "index", "http: not known yet");
  ASSERT_TRUE(engine->index(batch_of(library(9), 0, 10)));
  const LaneAnswer answer = ask(*engine, asking("captain"));
  EXPECT_EQ("http: not known yet", said(answer));
  EXPECT_TRUE(answer.passing);
  EXPECT_TRUE(engine->status().degraded.empty());  // an unknown lane is a temporary state
}

TEST_F(RemoteLane, AnotherModelIsEmbeddedAnewAndTheVectorsBeforeAreDropped) {
  auto engine = open(std::make_shared<ServerEmbedder>("a"));
  ASSERT_TRUE(engine->index(batch_of(library(30), 0, 31)));
  eventually_joined(*engine, asking("captain"));
  engine.reset();
  const auto other = std::make_shared<ServerEmbedder>("b");
  other->away = true;
  engine = open(other);
  EXPECT_EQ(0, engine->status().vector_next_seq);
  LaneAnswer answer = ask(*engine, asking("captain"));
  EXPECT_FALSE(has_http(answer));
  EXPECT_EQ("http: behind (at 0 of 31)", said(answer));
  ASSERT_TRUE(engine->index(batch_of(library(30), 0, 31)));
  other->away = false;
  answer = eventually_joined(*engine, asking("captain"));
  EXPECT_EQ(0U, answer.identities[0].find("http/1/512/b"));
  engine.reset();
  engine = open(std::make_shared<ServerEmbedder>("a"));
  EXPECT_EQ(0, engine->status().vector_next_seq) << "nothing of it was kept";
}

TEST_F(RemoteLane, WhatHappenedWhileThereWasNoServerIsMadeUpFor) {
  const auto server = std::make_shared<ServerEmbedder>("a");
  auto engine = open(server);
  ASSERT_TRUE(engine->index(batch_of(library(30), 0, 31)));
  eventually_joined(*engine, asking("captain"));
  engine.reset();
  engine = open(nullptr);
  EngineBatch batch = batch_of(library(40), 31, 41);
  batch.close = {{1, 40}};
  batch.remove = {4};
  ASSERT_TRUE(engine->index(batch));
  engine.reset();
  server->calls = 0;
  engine = open(server);
  EXPECT_EQ(31, engine->status().vector_next_seq);
  ASSERT_TRUE(engine->index(batch));
  LaneQuery query = asking("captain ship anchor", 40);
  query.mode = Mode::vector;
  eventually_joined(*engine, query);
  const auto found = ids(ask(*engine, query));
  EXPECT_EQ(38U, found.size());
  EXPECT_EQ(0, std::ranges::count(found, 1U) + std::ranges::count(found, 4U));
}

}  // namespace
}  // namespace muniment::retrieval
