// Tests of the lexical index filled again, which gives bit-identical answers, and damaged, which it reports or
// survives.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>

#include "retrieval/lexical/lexical_index.hpp"
#include "support/temporary_folder.hpp"

namespace muniment::retrieval {
namespace {

// Replays a history of additions, closings and removals, committed in batches of this size.
void replay(LexicalIndex& index, std::uint32_t seed, std::size_t batch) {
  std::mt19937 random(seed);
  for (ChunkId id = 1; id <= 120; id++) {
    std::string text;
    for (std::size_t words = 3 + random() % 20; words > 0; words--)
      text += "word" + std::to_string(random() % 40) + " ";
    LexicalChunk chunk;
    chunk.id = id;
    chunk.text = text;
    chunk.language = random() % 4 == 0 ? "none" : "en";
    chunk.facts.valid_from = id;
    ASSERT_TRUE(index.add(chunk).ok());
    const auto older = static_cast<ChunkId>(1 + random() % id);
    if (random() % 5 == 0) {
      ASSERT_TRUE(index.close(older, id).ok());
    }
    if (random() % 20 == 0) {
      ASSERT_TRUE(index.remove(older).ok());
    }
    if (id % batch == 0) {
      ASSERT_TRUE(index.commit(id).ok());
    }
  }
  ASSERT_TRUE(index.commit(121).ok());
}

TEST(LexicalProperty, ARebuildAnswersExactlyTheSameHoweverItIsBatched) {
  for (std::uint32_t seed = 1; seed <= 8; seed++) {
    test::TemporaryFolder folder;
    std::vector<std::unique_ptr<LexicalReader>> readers;
    for (const std::size_t batch : {std::size_t{17}, std::size_t{1'000}}) {
      auto index = LexicalIndex::open(folder.path() + "/" + std::to_string(batch));
      ASSERT_TRUE(index.ok());
      replay(**index, seed, batch);
      readers.push_back(std::move((*index)->reader()).value());
    }
    for (std::uint32_t i = 0; i < 20; i++) {
      LexicalQuery query;
      query.text = "word" + std::to_string(i) + " word" + std::to_string(seed % 40) + " words";
      Filter filter;
      if (i % 2 == 1) filter.as_of = seed * 31 % 120;
      const auto first = readers[0]->search(query, filter, 50), second = readers[1]->search(query, filter, 50);
      ASSERT_TRUE(first.ok() && second.ok());
      ASSERT_EQ(first->size(), second->size());
      for (std::size_t at = 0; at < first->size(); at++) {
        EXPECT_EQ((*first)[at].chunk, (*second)[at].chunk);
        EXPECT_EQ((*first)[at].score, (*second)[at].score);  // bit-identical
      }
    }
  }
}

// Outcomes of a process that opens and uses the index. Xapian may crash on some damage, which is why the engine runs in
// a child; it must neither hang nor fill the memory.
enum class Outcome { answered, error, crashed, hung };

Outcome outcome_of_use(const std::string& folder) {
  const pid_t child = ::fork();
  if (child == 0) {
#if !defined(MUNIMENT_ADDRESS_SANITIZER) && !defined(MUNIMENT_THREAD_SANITIZER)  // sanitizers map terabytes at start
    const rlimit memory = {std::uint64_t{4} << 30, std::uint64_t{4} << 30};
    ::setrlimit(RLIMIT_AS, &memory);
#endif
    ::alarm(20);
    auto index = LexicalIndex::open(folder);
    if (!index) ::_exit(1);
    bool failed = false;
    auto reader = (*index)->reader();
    if (!reader) ::_exit(1);
    for (const char* text : {"word1 word2", "word3", "\"word4 word5\""}) {
      LexicalQuery query;
      query.text = text;
      Filter filter;
      if (text[4] == '3') filter.as_of = 60;
      failed = !(*reader)->search(query, filter, 20).ok() || failed;
    }
    LexicalChunk chunk;
    chunk.id = 200;
    chunk.text = "word1";
    failed = !(*index)->add(chunk).ok() || !(*index)->close(3, 300).ok() || !(*index)->commit(500).ok() || failed;
    ::_exit(failed ? 1 : 0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) return WTERMSIG(status) == SIGALRM ? Outcome::hung : Outcome::crashed;
  return WEXITSTATUS(status) == 0 ? Outcome::answered : Outcome::error;
}

class DamagedLexical : public testing::Test {
 protected:
  void SetUp() override {
    auto index = LexicalIndex::open(sound_);
    ASSERT_TRUE(index.ok());
    replay(**index, 5, 40);
  }
  std::string copy() {
    const std::string path = folder_.path() + "/copy";
    std::filesystem::remove_all(path);
    std::filesystem::copy(sound_, path, std::filesystem::copy_options::recursive);
    return path;
  }
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(sound_)) {
      if (entry.is_regular_file()) names.push_back(std::filesystem::relative(entry.path(), sound_).string());
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  test::TemporaryFolder folder_;
  std::string sound_ = folder_.path() + "/sound";
};

TEST_F(DamagedLexical, ASoundCopyAnswers) { EXPECT_EQ(outcome_of_use(copy()), Outcome::answered); }

TEST_F(DamagedLexical, AMissingFileIsAnErrorOrTheRestAnswers) {
  const std::vector<std::string> names = files();
  ASSERT_GE(names.size(), 8u);
  for (const std::string& name : names) {
    const std::string path = copy();
    std::filesystem::remove(path + "/" + name);
    const Outcome outcome = outcome_of_use(path);
    EXPECT_TRUE(outcome == Outcome::error || outcome == Outcome::answered) << name;
  }
  const std::string path = copy();
  std::filesystem::remove_all(path + "/history");
  // The index would be created again without history, so that asof would find nothing.
  EXPECT_EQ(outcome_of_use(path), Outcome::error);
}

TEST_F(DamagedLexical, FlippedBitsAndCutFilesNeverHang) {
  const std::vector<std::string> names = files();
  std::mt19937 random(1);
  int errors = 0;
  for (int round = 0; round < 60; round++) {
    const std::string path = copy();
    const std::string name = names[random() % names.size()];
    const std::string file = path + "/" + name;
    const std::uintmax_t size = std::filesystem::file_size(file);
    if (size == 0) continue;
    if (round % 5 == 0) {
      std::filesystem::resize_file(file, random() % size);
    } else {
      std::fstream bytes(file, std::ios::in | std::ios::out | std::ios::binary);
      for (int flips = 0; flips < 20; flips++) {
        const auto at = static_cast<std::streamoff>(random() % size);
        bytes.seekg(at);
        const int was = bytes.get();
        bytes.seekp(at);
        bytes.put(static_cast<char>(was ^ (1 << random() % 8)));
      }
    }
    const Outcome outcome = outcome_of_use(path);
    EXPECT_NE(outcome, Outcome::hung) << name << " in round " << round;
    errors += outcome == Outcome::error;
  }
  EXPECT_GT(errors, 0);
}

}  // namespace
}  // namespace muniment::retrieval
