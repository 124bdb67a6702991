// Tests of the search child and its client, with real processes: this program, started again, is the child. Queries
// tell its engine how to behave (support/misbehaving_engine.hpp).
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <cstring>
#include <future>
#include <map>
#include <random>

#include "retrieval/child/search/search_client.hpp"
#include "support/misbehaving_engine.hpp"
#include "support/temporary_folder.hpp"

namespace muniment::test {
namespace {

using namespace std::chrono_literals;

Deadline within(std::chrono::milliseconds time) { return std::chrono::steady_clock::now() + time; }

LaneQuery asking(const std::string& text) {
  LaneQuery query;
  query.text = text;
  query.k = 3;
  return query;
}

class SearchChild : public ::testing::Test {
 protected:
  void start(const std::function<void(SearchClientOptions&)>& change = [](SearchClientOptions&) {}) {
    SearchClientOptions options;
    options.engine.folder = folder_.path() + "/index";
    std::filesystem::create_directories(options.engine.folder);
    change(options);
    auto started = SearchClient::start(std::move(options));
    ASSERT_TRUE(started) << started.error().message;
    client_ = *std::move(started);
  }
  Result<LaneAnswer> search(const std::string& text, std::chrono::milliseconds time = 20s) {
    return client_->search(asking(text), within(time));
  }
  Errc code_of(const std::string& text, std::chrono::milliseconds time = 20s) {
    const auto answer = search(text, time);
    EXPECT_FALSE(answer.ok());
    return answer ? Errc::system_error : answer.error().code;
  }
  std::uintmax_t runs(const std::string& name) {
    std::error_code none;
    const auto size = std::filesystem::file_size(file("ran-" + name), none);
    return none ? 0 : size;
  }
  std::string file(const std::string& name) const { return folder_.path() + "/index/" + name; }
  bool eventually(const std::function<bool()>& true_now) {
    for (const Deadline end = within(20s); std::chrono::steady_clock::now() < end; std::this_thread::sleep_for(5ms)) {
      if (true_now()) return true;
    }
    return false;
  }

  TemporaryFolder folder_;
  std::unique_ptr<SearchClient> client_;
};

TEST_F(SearchChild, AnswersComeFromAnotherProcess) {
  start();
  const auto answer = search("hello");
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_NE(::getpid(), answer->watermark);
  EXPECT_EQ(client_->health().pid, answer->watermark);
  ASSERT_EQ(3U, answer->candidates.size());
  EXPECT_EQ(3U, answer->candidates[2].chunk);
  EXPECT_EQ("hello", answer->identities.at(0));
}

TEST_F(SearchChild, WhatTheEngineRefusesIsAnAnswer) {
  start();
  EXPECT_EQ(Errc::invalid_argument, code_of("wrong"));
  EXPECT_EQ(0, client_->health().restarts);
}

TEST_F(SearchChild, SeesNoFileOutsideItsFolder) {
  start();
  const auto answer = search("passwd");
  ASSERT_TRUE(answer);
  if (!client_->health().degraded.empty()) GTEST_SKIP() << client_->health().degraded[0];
  EXPECT_EQ(-1, answer->watermark);
}

TEST_F(SearchChild, AQueryInFlightSurvivesAKill) {
  start();
  ASSERT_TRUE(search("hello"));
  const pid_t first = client_->health().pid;
  auto slow = std::async(std::launch::async, [this] { return search("sleep:300"); });
  ASSERT_TRUE(eventually([&] { return runs("sleep") == 1; }));
  ::kill(first, SIGKILL);
  const auto answer = slow.get();
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_NE(first, answer->watermark);
  EXPECT_EQ(2U, runs("sleep"));
  EXPECT_EQ(1, client_->health().restarts);
}

TEST_F(SearchChild, AQueryThatCrashesItIsTriedTwiceAndNoMore) {
  start();
  const auto answer = search("crash");
  ASSERT_FALSE(answer);
  EXPECT_EQ(Errc::unavailable, answer.error().code);
  EXPECT_EQ(2U, runs("crash"));
  EXPECT_TRUE(search("hello"));
}

TEST_F(SearchChild, AQueryThatCrashesItTakesNobodyElsesWithIt) {
  start();
  std::vector<std::future<Result<LaneAnswer>>> others;
  for (int i = 0; i < 3; ++i) others.push_back(std::async(std::launch::async, [this] { return search("sleep:200"); }));
  ASSERT_TRUE(eventually([&] { return runs("sleep") == 3; }));
  EXPECT_EQ(Errc::unavailable, code_of("crash"));
  for (auto& other : others) EXPECT_TRUE(other.get());
}

TEST_F(SearchChild, NonsenseFromItEndsItAndTheQueryIsAnsweredByTheNext) {
  for (const char* how : {"garbage", "huge", "another-call", "a-question", "half", "corrupt"}) {
    SCOPED_TRACE(how);
    start();
    const auto answer = search(how);
    ASSERT_TRUE(answer) << answer.error().message;
    EXPECT_EQ(how, answer->identities.at(0));
    EXPECT_EQ(2U, runs(how));
    EXPECT_EQ(1, client_->health().restarts);
  }
}

TEST_F(SearchChild, AnAnswerThatCannotBeIsNotBelieved) {
  start();
  EXPECT_EQ(Errc::unavailable, code_of("not-finite"));
  EXPECT_EQ(Errc::too_large, code_of("big"));
  EXPECT_TRUE(search("hello"));
}

TEST_F(SearchChild, OneThatHangsIsKilledAndItsQueryRepeated) {
  start([](SearchClientOptions& options) { options.search_hang = 300ms; });
  const auto answer = search("hang-once");
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(1, client_->health().restarts);
}

TEST_F(SearchChild, AnImpatientCallerKillsNobody) {
  start();
  ASSERT_TRUE(search("hello"));
  for (int i = 0; i < 8; ++i) EXPECT_EQ(Errc::deadline_exceeded, code_of("sleep:200", 20ms));
  const auto answer = search("hello");
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(0, client_->health().restarts);
  EXPECT_EQ("hello", answer->identities.at(0));  // not the answer to an abandoned query
}

TEST_F(SearchChild, OneThatHangsIsKilledAlsoWhenItsCallerIsGone) {
  start([](SearchClientOptions& options) { options.search_hang = 300ms, options.search_channels = 1; });
  ASSERT_TRUE(search("hello"));
  EXPECT_EQ(Errc::deadline_exceeded, code_of("hang", 100ms));
  EXPECT_TRUE(search("hello"));
  EXPECT_EQ(1, client_->health().restarts);
}

TEST_F(SearchChild, WhoWaitsForAChildGivesUpAtTheDeadline) {
  start([](SearchClientOptions& options) { options.search_channels = 1; });
  auto slow = std::async(std::launch::async, [this] { return search("sleep:2000"); });
  ASSERT_TRUE(eventually([&] { return runs("sleep") == 1; }));
  EXPECT_EQ(Errc::deadline_exceeded, code_of("hello", 50ms));
  EXPECT_EQ(std::future_status::timeout, slow.wait_for(0s)) << "it gave up before the child was free";
  EXPECT_TRUE(slow.get());
}

TEST_F(SearchChild, SixtyFourThreadsAreAllAnsweredEachItsOwn) {
  start();
  std::vector<std::thread> threads;
  std::atomic<int> right = 0;
  for (int thread = 0; thread < 64; ++thread) {
    threads.emplace_back([&, thread] {
      for (int i = 0; i < 20; ++i) {
        const std::string text = "query:" + std::to_string(thread) + "." + std::to_string(i);
        const auto answer = search(text);
        right += answer && answer->identities == std::vector{text} ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(64 * 20, right);
}

TEST_F(SearchChild, SearchesAreServedInTheOrderOfTheirArrival) {
  start([](SearchClientOptions& options) { options.search_channels = 1; });
  ASSERT_TRUE(search("hello"));
  std::mutex mutex;
  std::vector<int> order;
  std::vector<std::thread> threads;
  threads.emplace_back([&] { (void)search("sleep:300").ok(); });
  ASSERT_TRUE(eventually([&] { return runs("sleep") == 1; }));
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      (void)search("sleep:5").ok();
      const std::lock_guard lock(mutex);
      order.push_back(i);
    });
    std::this_thread::sleep_for(15ms);
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ((std::vector{0, 1, 2, 3, 4, 5, 6, 7}), order);
}

// No query is lost, whenever the child is killed. The seed is printed.
TEST_F(SearchChild, KilledAtRandomUnderLoadItCostsNoQueryItsAnswer) {
  start();
  ASSERT_TRUE(search("hello"));
  const unsigned seed = std::random_device()();
  RecordProperty("seed", std::to_string(seed));
  std::mt19937 random(seed);
  std::atomic<bool> over = false;
  std::atomic<int> answered = 0;
  std::mutex mutex;
  std::map<std::string, int> failures;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 8; ++thread) {
    threads.emplace_back([&] {
      while (!over) {
        const auto answer = search("sleep:2");
        if (answer) {
          ++answered;
          continue;
        }
        const std::lock_guard lock(mutex);
        ++failures[answer.error().message];
      }
    });
  }
  int kills = 0;
  for (const Deadline end = within(3s); std::chrono::steady_clock::now() < end;) {
    const int before = answered;
    // Kills again only after the lost queries were repeated: the client does not promise to survive two kills during
    // one query.
    ASSERT_TRUE(eventually([&] { return answered > before + 16; }));
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 20'000));
    if (const pid_t pid = client_->health().pid; pid > 0 && ::kill(pid, SIGKILL) == 0) ++kills;
  }
  over = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(kills, 3);
  EXPECT_GT(answered, 100);
  for (const auto& [what, count] : failures) ADD_FAILURE() << count << " × " << what << "; seed " << seed;
}

TEST_F(SearchChild, ABatchIsTakenOnlyByWhoKnowsWhereTheIndexIs) {
  start();
  EngineBatch batch;
  batch.next_seq = 5;
  EXPECT_EQ(Errc::unavailable, client_->index(batch).error().code);
  ASSERT_TRUE(client_->status(within(20s)));
  EXPECT_TRUE(client_->index(batch));
  ::kill(client_->health().pid, SIGKILL);
  ASSERT_TRUE(eventually([&] { return client_->health().restarts == 1; }));
  batch.next_seq = 9;
  EXPECT_EQ(Errc::unavailable, client_->index(batch).error().code);
  const auto status = client_->status(within(20s));
  ASSERT_TRUE(status);
  EXPECT_EQ(5, status->lexical_next_seq);
  EXPECT_TRUE(client_->index(batch));
  EXPECT_EQ(9, client_->status(within(20s))->lexical_next_seq);
}

TEST_F(SearchChild, ABatchThatCrashesItIsNotRepeated) {
  start();
  ASSERT_TRUE(client_->status(within(20s)));
  EngineBatch batch;
  batch.add.emplace_back().text = "crash";
  EXPECT_EQ(Errc::unavailable, client_->index(batch).error().code);
  ASSERT_TRUE(client_->status(within(20s)));
  EXPECT_EQ(1, client_->health().restarts);
}

TEST_F(SearchChild, ABatchThatIsTooLargeIsRefusedAndTheChildLives) {
  start();
  ASSERT_TRUE(client_->status(within(20s)));
  EngineBatch batch;
  batch.add.emplace_back().text.assign(65 << 20, 'x');
  const auto refused = client_->index(batch);
  ASSERT_FALSE(refused);
  EXPECT_EQ(Errc::too_large, refused.error().code);
  EXPECT_EQ(64 << 20, refused.error().limit);
  batch.add[0].text.resize(60 << 20);
  EXPECT_TRUE(client_->index(batch));
  EXPECT_EQ(0, client_->health().restarts);
}

TEST_F(SearchChild, OneThatCannotOpenItsIndexesIsGivenUpForAWhileAndSaysWhy) {
  std::filesystem::create_directories(folder_.path() + "/index");
  std::ofstream(file("refuse")) << "x";
  start([](SearchClientOptions& options) { options.restart.give_up_for = 500ms; });
  const auto answer = search("hello");
  ASSERT_FALSE(answer);
  EXPECT_EQ(Errc::unavailable, answer.error().code);
  EXPECT_NE(std::string::npos, answer.error().message.find("somebody else has it")) << answer.error().message;
  EXPECT_EQ(500, answer.error().retry_after_ms);
  EXPECT_NE(std::string::npos, client_->health().reason.find("somebody else has it"));
  std::filesystem::remove(file("refuse"));
  EXPECT_TRUE(eventually([&] { return search("hello").ok(); }));
}

TEST_F(SearchChild, IndexesThatCrashWhoeverOpensThemAreThrownAway) {
  std::filesystem::create_directories(folder_.path() + "/index");
  std::ofstream(file("crash-at-open")) << "x";
  start();
  const auto status = client_->status(within(20s));
  ASSERT_TRUE(status) << status.error().message;
  EXPECT_EQ((std::vector<std::string>{"lexical", "vector"}), status->rebuilt);
  EXPECT_EQ(2, client_->health().restarts);
}

TEST_F(SearchChild, AProgramThatIsNotThereIsSaidAtOnce) {
  SearchClientOptions options;
  options.engine.folder = folder_.path();
  options.command = {"/nowhere/munimentd"};
  const auto started = SearchClient::start(options);
  ASSERT_FALSE(started);
  EXPECT_EQ(Errc::unavailable, started.error().code);
}

TEST_F(SearchChild, AStopLetsWaitersGoAndLeavesNoProcess) {
  start([](SearchClientOptions& options) { options.search_channels = 1, options.stop_patience = 300ms; });
  ASSERT_TRUE(search("hello"));
  const pid_t pid = client_->health().pid;
  auto stuck = std::async(std::launch::async, [this] { return search("hang"); });
  ASSERT_TRUE(eventually([&] { return runs("hang") == 1; }));
  auto waiting = std::async(std::launch::async, [this] { return search("hello"); });
  client_->stop();
  EXPECT_EQ(Errc::unavailable, stuck.get().error().code);
  EXPECT_EQ(Errc::unavailable, waiting.get().error().code);
  EXPECT_EQ(-1, ::kill(pid, 0));
  EXPECT_EQ(Errc::unavailable, code_of("hello"));
}

}  // namespace
}  // namespace muniment::test

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "--search-child") == 0) {
    std::_Exit(muniment::retrieval::serve_search({muniment::test::open_misbehaving}, muniment::first_handed_over));
  }
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
