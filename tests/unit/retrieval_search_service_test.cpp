// Tests of the real engine in the real child: Xapian and RocksDB inside the sandbox, killed and damaged during writes
// and queries.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <random>
#include <thread>

#include "retrieval/child/search/search_client.hpp"
#include "support/library.hpp"
#include "support/temporary_folder.hpp"

namespace muniment::test {
namespace {

using namespace std::chrono_literals;

Deadline within(std::chrono::milliseconds time) { return std::chrono::steady_clock::now() + time; }

class SearchService : public ::testing::Test {
 protected:
  void SetUp() override {
    SearchClientOptions options;
    options.engine.folder = folder_.path() + "/index";
    options.restart.open_crashes_max = 1;
    auto client = SearchClient::start(std::move(options));
    ASSERT_TRUE(client) << client.error().message;
    client_ = *std::move(client);
  }

  // Fills the indexes as an indexer does: from their position, in batches, retrying after each failure.
  ::testing::AssertionResult fill(const std::vector<EngineChunk>& chunks, std::int64_t end, std::int64_t step) {
    std::int64_t from = -1;
    for (const Deadline deadline = within(60s); std::chrono::steady_clock::now() < deadline;) {
      if (from < 0) {
        const auto status = client_->status(within(20s));
        if (!status) continue;
        from = std::min(status->lexical_next_seq, status->vector_next_seq);
      }
      if (from >= end) return ::testing::AssertionSuccess();
      const std::int64_t next = std::min(end, from + step);
      const auto done = client_->index(batch_of(chunks, from, next));
      from = done ? next : -1;
    }
    return ::testing::AssertionFailure() << "the indexes are not filled: " << client_->health().reason;
  }

  // Returns the answer of an engine that was never disturbed.
  LaneAnswer expected(const std::vector<EngineChunk>& chunks, std::int64_t end, const LaneQuery& query) {
    auto engine = Engine::open({folder_.path() + "/quiet", "", true});
    EXPECT_TRUE((*engine)->index(batch_of(chunks, 0, end)));
    return *(*(*engine)->searcher())->search(query);
  }

  TemporaryFolder folder_;
  std::unique_ptr<SearchClient> client_;
};

TEST_F(SearchService, WorksInsideTheSandbox) {
  const auto chunks = library(60);
  ASSERT_TRUE(fill(chunks, 61, 20));
  const auto answer = client_->search(asking("captain dough", 40), within(20s));
  ASSERT_TRUE(answer) << answer.error().message;
  expect_equal(expected(chunks, 61, asking("captain dough", 40)), *answer);
  EXPECT_EQ(0, client_->health().restarts);
  if (!client_->health().degraded.empty()) GTEST_SKIP() << "but for the sandbox: " << client_->health().degraded[0];
}

TEST_F(SearchService, KilledWhileItIndexesAndAnswersItLosesNothing) {
  const auto chunks = library(300);
  ASSERT_TRUE(fill(chunks, 31, 30));
  std::atomic<bool> over = false;
  std::atomic<int> answered = 0;
  std::mutex mutex;
  std::map<std::string, int> failures;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      while (!over) {
        const auto answer = client_->search(asking("captain dough", 5), within(30s));
        const std::lock_guard lock(mutex);
        if (answer && answer->candidates.size() == 5)
          ++answered;
        else
          ++failures[answer ? "an answer that is short" : answer.error().message];
        std::this_thread::sleep_for(1ms);
      }
    });
  }
  std::thread killer([&] {
    for (int kills = 0; kills < 5 && !over;) {
      const int before = answered;
      while (!over && answered < before + 12) std::this_thread::sleep_for(2ms);
      if (const pid_t pid = client_->health().pid; pid > 0 && ::kill(pid, SIGKILL) == 0) ++kills;
    }
  });
  EXPECT_TRUE(fill(chunks, 301, 15));
  killer.join();
  over = true;
  for (std::thread& thread : threads) thread.join();
  for (const auto& [what, count] : failures) ADD_FAILURE() << count << " × " << what;
  ASSERT_TRUE(fill(chunks, 301, 15));
  EXPECT_GE(client_->health().restarts, 5);
  const auto answer = client_->search(asking("captain dough", 60), within(20s));
  ASSERT_TRUE(answer) << answer.error().message;
  expect_equal(expected(chunks, 301, asking("captain dough", 60)), *answer);
}

TEST_F(SearchService, AnIndexDeletedUnderItComesBackWithEqualAnswers) {
  const auto chunks = library(60);
  for (const char* part : {"lexical", "vector"}) {
    SCOPED_TRACE(part);
    ASSERT_TRUE(fill(chunks, 61, 30));
    const auto before = client_->search(asking("captain dough", 40), within(20s));
    ASSERT_TRUE(before);
    std::filesystem::remove_all(folder_.path() + "/index/" + part);
    // The child detects the damage at the next search, and its successor fills the index again; meanwhile, the answer
    // comes from the other index.
    const auto meanwhile = client_->search(asking("captain dough", 40), within(20s));
    ASSERT_TRUE(meanwhile) << meanwhile.error().message;
    EXPECT_FALSE(meanwhile->candidates.empty());
    EXPECT_EQ(0, meanwhile->watermark);
    ASSERT_TRUE(fill(chunks, 61, 30));
    const auto after = client_->search(asking("captain dough", 40), within(20s));
    ASSERT_TRUE(after) << after.error().message;
    expect_equal(*before, *after);
  }
}

TEST_F(SearchService, AnIndexDamagedUnderItIsFilledAgain) {
  const auto chunks = library(200);
  ASSERT_TRUE(fill(chunks, 201, 100));
  const auto before = client_->search(asking("captain dough", 40), within(20s));
  ASSERT_TRUE(before);
  client_->stop();
  // Overwrites every block of the lexical tables except the first: the tables open, but later reads fail.
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_.path() + "/index/lexical")) {
    if (entry.path().extension() != ".glass" || entry.file_size() <= 8'192) continue;
    std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(0);
    const std::string damage(entry.file_size(), '\xa5');
    file.write(damage.data(), static_cast<std::streamsize>(damage.size()));
  }
  SetUp();
  for (int i = 0; i < 20; ++i) {
    (void)client_->search(asking("captain dough", 40), within(20s)).ok();
    ASSERT_TRUE(fill(chunks, 201, 100));
    const auto after = client_->search(asking("captain dough", 40), within(20s));
    if (after && after->candidates.size() == before->candidates.size()) {
      expect_equal(*before, *after);
      return;
    }
  }
  FAIL() << client_->health().reason;
}

// Xapian and RocksDB do not detect most of these bits, and crash on some; hashes detect wrong results later. This test
// checks that the daemon survives and that search recovers by itself.
TEST_F(SearchService, ABitThatFlipsAnywhereEndsNothingForLong) {
  const auto chunks = library(200);
  ASSERT_TRUE(fill(chunks, 201, 100));
  client_->stop();
  const std::string index = folder_.path() + "/index", kept = folder_.path() + "/kept";
  std::filesystem::copy(index, kept, std::filesystem::copy_options::recursive);
  const unsigned seed = std::random_device()();
  std::mt19937 random(seed);
  for (int flip = 0; flip < 12; ++flip) {
    std::filesystem::remove_all(index);
    std::filesystem::copy(kept, index, std::filesystem::copy_options::recursive);
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(index)) {
      if (entry.is_regular_file() && entry.file_size() > 0) files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    const std::filesystem::path& chosen = files[random() % files.size()];
    const auto offset = static_cast<std::streamoff>(random() % std::filesystem::file_size(chosen));
    const char bit = static_cast<char>(1 << (random() % 8));
    {
      std::fstream file(chosen, std::ios::in | std::ios::out | std::ios::binary);
      file.seekg(offset);
      const char changed = static_cast<char>(file.get() ^ bit);
      file.seekp(offset);
      file.put(changed);
    }
    SetUp();
    int tries = 0;
    while (tries < 8 && !client_->search(asking("captain dough", 40), within(20s))) ++tries;
    EXPECT_LT(tries, 8) << chosen << " at " << offset << ", seed " << seed << ": " << client_->health().reason;
    EXPECT_TRUE(fill(chunks, 201, 100)) << chosen << " at " << offset << ", seed " << seed;
    client_->stop();
  }
}

}  // namespace
}  // namespace muniment::test
