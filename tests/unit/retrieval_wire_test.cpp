// Tests that messages on the channels are read back unchanged, and that other bytes are refused.
#include <gtest/gtest.h>

#include <sys/socket.h>

#include "retrieval/child/frame.hpp"
#include "retrieval/child/messages.hpp"
#include "retrieval/child/search/restart_pace.hpp"

namespace muniment::retrieval {
namespace {

using namespace std::chrono_literals;

EngineBatch some_batch() {
  EngineBatch batch;
  batch.next_seq = 42;
  batch.add = {
      {7, "notes", std::string("a\0b", 3), "title", "heading", "en", {{"corpus:notes", "tag:x"}, -5, 3, still_valid}}};
  batch.close = {{3, 41}};
  batch.remove = {1, 2};
  return batch;
}

LaneQuery some_query() {
  LaneQuery query{"text", {"a phrase"}, {"lex"}, {"vec"}, {"notes"}, Mode::vector, {}, 17,
                  7,      "muniment-1", true,    true,    true};
  query.filter = {{{"a", "b"}, {"c"}}, {"d"}, 1, -2, 3};
  return query;
}

LaneAnswer some_answer() {
  LaneAnswer answer;
  answer.candidates = {{9, 0.25, {{"lexical", -1.5}, {"lsa", 1e-300}}, 4}};
  answer.lists = {{"lsa", "text", false, 0.35, {{9, 0.5}, {8, 0.25}}, 1'234}};
  answer.degraded = {"encoder: bge-small-en-v1.5 is not installed"};
  answer.passing = true;
  answer.waiting = {"encoder", "http"};
  answer.identities = {"lsa/1/128/4f2a"};
  answer.watermark = 41;
  answer.unfiltered = 6;
  return answer;
}

// Every member differs from its default, so that a member that members() omits would be detected.
TEST(Wire, ABatchComesBackAsItWas) {
  const auto back = from_wire<EngineBatch>(to_wire(some_batch()));
  ASSERT_TRUE(back);
  EXPECT_EQ(42, back->next_seq);
  const EngineChunk& chunk = back->add.at(0);
  EXPECT_EQ(7U, chunk.id);
  EXPECT_EQ("notes", chunk.corpus);
  EXPECT_EQ(std::string("a\0b", 3), chunk.text);
  EXPECT_EQ("title", chunk.title);
  EXPECT_EQ("heading", chunk.heading);
  EXPECT_EQ("en", chunk.language);
  EXPECT_EQ((std::vector<std::string>{"corpus:notes", "tag:x"}), chunk.facts.labels);
  EXPECT_EQ(-5, chunk.facts.time_us);
  EXPECT_EQ(3, chunk.facts.valid_from);
  EXPECT_EQ(still_valid, chunk.facts.valid_to);
  EXPECT_EQ((std::vector<std::pair<ChunkId, std::int64_t>>{{3, 41}}), back->close);
  EXPECT_EQ((std::vector<ChunkId>{1, 2}), back->remove);
}

TEST(Wire, AQueryComesBackAsItWas) {
  const auto back = from_wire<LaneQuery>(to_wire(some_query()));
  ASSERT_TRUE(back);
  const LaneQuery query = some_query();
  EXPECT_EQ(query.text, back->text);
  EXPECT_EQ(query.phrases, back->phrases);
  EXPECT_EQ(query.lexical_expansions, back->lexical_expansions);
  EXPECT_EQ(query.vector_expansions, back->vector_expansions);
  EXPECT_EQ(query.corpora, back->corpora);
  EXPECT_EQ(Mode::vector, back->mode);
  EXPECT_EQ(query.filter.all_of, back->filter.all_of);
  EXPECT_EQ(query.filter.none_of, back->filter.none_of);
  EXPECT_EQ(1, back->filter.after_us);
  EXPECT_EQ(-2, back->filter.before_us);
  EXPECT_EQ(3, back->filter.as_of);
  EXPECT_EQ(17U, back->k);
  EXPECT_EQ("muniment-1", back->profile);
  EXPECT_TRUE(back->exact);
  EXPECT_TRUE(back->only_lanes);
  EXPECT_TRUE(back->explain);
}

TEST(Wire, AnAnswerComesBackAsItWas) {
  const auto back = from_wire<LaneAnswer>(to_wire(some_answer()));
  ASSERT_TRUE(back);
  EXPECT_EQ(9U, back->candidates.at(0).chunk);
  EXPECT_EQ(0.25, back->candidates[0].score);
  EXPECT_EQ(some_answer().candidates[0].lanes, back->candidates[0].lanes);
  EXPECT_EQ(4, back->candidates[0].best_rank);
  const LaneList& list = back->lists.at(0);
  EXPECT_EQ("lsa", list.lane);
  EXPECT_EQ("text", list.query);
  EXPECT_FALSE(list.original);
  EXPECT_EQ(0.35, list.weight);
  EXPECT_EQ(8U, list.hits.at(1).chunk);
  EXPECT_EQ(0.25, list.hits[1].score);
  EXPECT_EQ(1'234, list.duration_us);
  EXPECT_EQ(some_answer().degraded, back->degraded);
  EXPECT_EQ(some_answer().identities, back->identities);
  EXPECT_EQ(41, back->watermark);
  EXPECT_TRUE(back->passing);
  EXPECT_EQ(some_answer().waiting, back->waiting);
  EXPECT_EQ(6, back->unfiltered);
}

TEST(Wire, ASetupComesBackAsItWas) {
  SearchSetup setup;
  setup.engine.folder = "/index";
  setup.engine.models_folder = "/weights";
  setup.engine.empty_first = true;
  setup.engine.remote_missing = "http: away";
  setup.search_channels = 3;
  setup.needs_sandbox = true;
  setup.address_space_bytes_max = 7;
  setup.remote = {"http", "1", 384, "4f2a"};
  setup.query_ms = 9;
  const auto back = from_wire<SearchSetup>(to_wire(setup));
  ASSERT_TRUE(back);
  EXPECT_EQ("/index", back->engine.folder);
  EXPECT_EQ("/weights", back->engine.models_folder);
  EXPECT_TRUE(back->engine.empty_first);
  EXPECT_EQ("http: away", back->engine.remote_missing);
  EXPECT_EQ(3U, back->search_channels);
  EXPECT_TRUE(back->needs_sandbox);
  EXPECT_EQ(7, back->address_space_bytes_max);
  EXPECT_EQ("http/1/384/4f2a", back->remote.text());
  EXPECT_EQ(9, back->query_ms);
}

TEST(Wire, AnErrorComesBackAsItWas) {
  Error error(Errc::too_large, "it is too large");
  error.limit = 7;
  error.retry_after_ms = 9;
  const auto back = error_from_wire(to_wire(error));
  ASSERT_TRUE(back);
  EXPECT_EQ(Errc::too_large, back->code);
  EXPECT_EQ("it is too large", back->message);
  EXPECT_EQ(7, back->limit);
  EXPECT_EQ(9, back->retry_after_ms);
}

TEST(Wire, WhatIsCutOrLongerIsRefused) {
  const std::string whole = to_wire(some_answer());
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(from_wire<LaneAnswer>(std::string_view(whole).substr(0, size))) << size;
  }
  EXPECT_FALSE(from_wire<LaneAnswer>(whole + "x"));
}

TEST(Wire, NumbersThatAreNoneAreRefused) {
  LaneAnswer answer = some_answer();
  answer.candidates[0].score = std::numeric_limits<double>::infinity();
  EXPECT_FALSE(from_wire<LaneAnswer>(to_wire(answer)));
  std::string query = to_wire(some_query());
  ASSERT_TRUE(from_wire<LaneQuery>(query));
  query.back() = 2;  // explain, neither true nor false
  EXPECT_FALSE(from_wire<LaneQuery>(query));
  LaneQuery strange = some_query();
  strange.mode = static_cast<Mode>(9);
  EXPECT_FALSE(from_wire<LaneQuery>(to_wire(strange)));
}

// A count of four billion allocates no memory: items are created as their bytes are read.
TEST(Wire, ACountWithoutItemsIsRefusedAtOnce) {
  EXPECT_FALSE(from_wire<std::vector<Candidate>>(std::string(4, '\xff')));
  EXPECT_FALSE(from_wire<std::vector<std::string>>(std::string(8, '\xff')));
}

class Frames : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(0, ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends_)); }
  void TearDown() override { ::close(ends_[0]), ::close(ends_[1]); }
  int ends_[2] = {-1, -1};
};

TEST_F(Frames, OneThatIsLargerThanTheSocketsBufferArrives) {
  const std::string payload(3 << 20, 'p');
  std::thread sender([&] { EXPECT_TRUE(send_frame(ends_[0], MessageKind::index, 5, payload, 4 << 20, no_deadline)); });
  const auto frame = receive_frame(ends_[1], 4 << 20, no_deadline);
  sender.join();
  ASSERT_TRUE(frame);
  EXPECT_EQ(MessageKind::index, frame->kind);
  EXPECT_EQ(5U, frame->call);
  EXPECT_EQ(payload, frame->payload);
}

TEST_F(Frames, ALimitHoldsAtItsEdgeOnBothSides) {
  EXPECT_TRUE(send_frame(ends_[0], MessageKind::index, 1, std::string(100, 'x'), 100, no_deadline));
  EXPECT_EQ(Errc::too_large,
            send_frame(ends_[0], MessageKind::index, 1, std::string(101, 'x'), 100, no_deadline).error().code);
  EXPECT_TRUE(receive_frame(ends_[1], 100, no_deadline));
  EXPECT_TRUE(send_frame(ends_[0], MessageKind::index, 1, std::string(100, 'x'), 100, no_deadline));
  EXPECT_EQ(Errc::too_large, receive_frame(ends_[1], 99, no_deadline).error().code);
}

TEST_F(Frames, SilenceEndsAtTheDeadlineAndAGoneEndAtOnce) {
  const auto silent = receive_frame(ends_[1], 100, steady_now() + 30ms);
  EXPECT_EQ(Errc::deadline_exceeded, silent.error().code);
  ::shutdown(ends_[0], SHUT_RDWR);
  EXPECT_EQ(Errc::unavailable, receive_frame(ends_[1], 100, no_deadline).error().code);
  EXPECT_EQ(Errc::unavailable, send_frame(ends_[1], MessageKind::search, 1, "x", 100, no_deadline).error().code);
}

const Monotonic start{std::chrono::hours(10)};

TEST(RestartPace, TheFirstRestartsAreAtOnceAndThenOnesAreEarned) {
  RestartPace pace({});
  for (int i = 0; i < 20; ++i) EXPECT_EQ(0ms, pace.after({.served = true}, start).wait) << i;
  EXPECT_EQ(500ms, pace.after({.served = true}, start).wait);
  EXPECT_EQ(0ms, pace.after({.served = true}, start + 600ms).wait);
}

TEST(RestartPace, AStormEndsInABreak) {
  RestartPace pace({});
  RestartPace::Verdict verdict;
  Monotonic now = start;
  int deaths = 0;
  for (; deaths < 1'000 && !verdict.give_up; ++deaths, now += verdict.wait) verdict = pace.after({.served = true}, now);
  EXPECT_EQ(101, deaths);
  EXPECT_EQ(10s, verdict.wait);
  EXPECT_FALSE(pace.after({.served = true}, now + 10s).give_up);
}

TEST(RestartPace, OneThatNeverServesIsGivenUpSoonAndTriedAgain) {
  RestartPace pace({});
  EXPECT_FALSE(pace.after({}, start).give_up);
  EXPECT_FALSE(pace.after({}, start).give_up);
  EXPECT_TRUE(pace.after({}, start).give_up);
  EXPECT_TRUE(pace.after({}, start + 10s).give_up);
  EXPECT_FALSE(pace.after({.served = true}, start + 20s).give_up);
}

TEST(RestartPace, CrashesThrowTheIndexesAwayButNotTwiceInAnHour) {
  RestartPace pace({});
  const RestartPace::Death crash{.served = true, .crashed = true};
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(pace.after(crash, start).empty_first);
  EXPECT_TRUE(pace.after(crash, start).empty_first);
  for (int i = 0; i < 30; ++i) EXPECT_FALSE(pace.after(crash, start + 55min).empty_first);
  EXPECT_TRUE(pace.after(crash, start + 61min).empty_first);
}

TEST(RestartPace, KillsFromOutsideThrowNothingAway) {
  RestartPace pace({});
  for (int i = 0; i < 90; ++i) EXPECT_FALSE(pace.after({.served = true}, start).empty_first);
}

}  // namespace
}  // namespace muniment::retrieval
