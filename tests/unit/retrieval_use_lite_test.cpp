// Universal Sentence Encoder lite against what the reference implementation computed, where its weights are installed
// (scripts/fetch_use_lite).
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "retrieval/embed/embedder.hpp"
#include "retrieval/embed/unigram_pieces.hpp"
#include "support/temporary_folder.hpp"

namespace muniment::retrieval {
namespace {

UnigramPieces pieces_of(const std::string& entries) {
  auto pieces = UnigramPieces::read(R"([["?",0],["<s>",0],["</s>",0],["x1",0],["x2",0],["x3",0],)" + entries + "]");
  EXPECT_TRUE(pieces) << pieces.error().message;
  return std::move(pieces).value();
}
using Ids = std::vector<std::uint32_t>;

TEST(UnigramPieces, TheLikeliestCutWins) {
  const UnigramPieces pieces = pieces_of(R"(["▁a",-2],["b",-2],["▁ab",-3],["▁",-1],["ab",-1.5],["a",-9])");
  EXPECT_EQ(pieces.ids("ab"), (Ids{9, 10}));  // -2.5 beats -3, -4 and -12
  EXPECT_EQ(pieces.ids("a b"), (Ids{6, 9, 7}));
  EXPECT_EQ(pieces.ids(""), Ids{});
  EXPECT_EQ(pieces.ids(" \n "), Ids{});
}

TEST(UnigramPieces, WhiteSpaceOfAnyKindIsOneSpace) {
  const UnigramPieces pieces = pieces_of(R"(["▁a",-2],["▁b",-2],["▁",-5],["a",-5],["b",-5])");
  EXPECT_EQ(pieces.ids("  a\t\n b \r\n"), (Ids{6, 7}));
}

TEST(UnigramPieces, UnknownCharactersInARowAreOneId) {
  const UnigramPieces pieces = pieces_of(R"(["▁",-1],["a",-2])");
  EXPECT_EQ(pieces.ids("xyza"), (Ids{6, 0, 7}));
  EXPECT_EQ(pieces.ids("a\xFF\xFF"
                       "a"),
            (Ids{6, 7, 0, 7}));
}

TEST(UnigramPieces, CompatibilityFormsAreOne) {
  const UnigramPieces pieces = pieces_of(R"(["▁fi",-1],["▁é",-1],["▁",-5],["f",-5],["i",-5],["é",-5])");
  EXPECT_EQ(pieces.ids("ﬁ e\u0301"), (Ids{6, 7}));
}

TEST(UnigramPieces, ALongTextIsCut) {
  const UnigramPieces pieces = pieces_of(R"(["▁a",-1],["▁",-5],["a",-5])");
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += "a ";
  EXPECT_EQ(pieces.ids(text).size(), 8'192U);
}

TEST(UnigramPieces, WhatIsNoVocabularyIsCorrupt) {
  for (const std::string text :
       {"", "{}", "[]", "[1]", R"([["a"]])", R"([["",0]])", R"([[1,"a"]])", R"([["a",0],["b",0]])"}) {
    const auto pieces = UnigramPieces::read(text);
    ASSERT_FALSE(pieces) << text;
    EXPECT_EQ(pieces.error().code, Errc::corrupt);
  }
}

class UseLite : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto opened = open_use_lite(folder());
    if (opened) embedder_ = std::move(opened).value();
  }
  static void TearDownTestSuite() { embedder_.reset(); }
  void SetUp() override {
    if (embedder_) return;
    GTEST_SKIP() << "the weights are not in " << folder() << ": run scripts/fetch_use_lite";
  }
  static std::string folder() { return use_lite_default_folder(); }

  static std::vector<float> vector_of(std::string_view text) {
    auto vectors = embedder_->embed({&text, 1}, TextKind::query);
    return std::move(vectors.value()[0]);
  }
  static double similarity(std::string_view a, std::string_view b) {
    const std::vector<float> left = vector_of(a), right = vector_of(b);
    double sum = 0;
    for (std::size_t i = 0; i < left.size(); ++i) sum += static_cast<double>(left[i]) * static_cast<double>(right[i]);
    return sum;
  }

  static std::unique_ptr<Embedder> embedder_;
};
std::unique_ptr<Embedder> UseLite::embedder_;

TEST_F(UseLite, ItsPiecesAndItsVectorAreThoseOfTheReference) {
  std::ifstream file(folder() + "/vocab.json");
  const std::string vocabulary{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(UnigramPieces::read(vocabulary)->ids("How old are you?"), (Ids{728, 446, 31, 19, 54}));
  const std::vector<float> vector = vector_of("How old are you?");
  ASSERT_EQ(vector.size(), 512U);
  const double expected[] = {0.038685, 0.050444, -0.045524, 0.056079, -0.060077};
  for (std::size_t i = 0; i < std::size(expected); ++i) EXPECT_NEAR(static_cast<double>(vector[i]), expected[i], 1e-6);
}

TEST_F(UseLite, WhatMeansTheSameIsNear) {
  const double same = similarity("How old are you?", "What is your age?");
  EXPECT_GT(same, 0.7);
  EXPECT_LT(similarity("How old are you?", "The mountain railway was built in 1912."), same - 0.3);
}

TEST_F(UseLite, BatchesAndThreadsChangeNothing) {
  std::vector<std::string> texts = {"", "one", "How old are you?", std::string(5'000, 'w') + " tail"};
  for (int i = 0; i < 40; ++i) texts.push_back("a sentence of some words, number " + std::to_string(i));
  const std::vector<std::string_view> views(texts.begin(), texts.end());
  const Vectors together = embedder_->embed(views, TextKind::document).value();
  ASSERT_EQ(together.size(), texts.size());
  std::vector<std::thread> threads;
  std::vector<std::size_t> equal(2);
  for (std::size_t t = 0; t < equal.size(); ++t) {
    threads.emplace_back([&, t] {
      for (std::size_t i = 0; i < views.size(); ++i) equal[t] += vector_of(views[i]) == together[i] ? 1U : 0U;
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::size_t count : equal) EXPECT_EQ(count, texts.size());
  EXPECT_EQ(together[0], std::vector<float>(512));  // the empty text
  for (std::size_t i = 1; i < together.size(); ++i) {
    double sum = 0;
    for (const float x : together[i]) sum += static_cast<double>(x) * static_cast<double>(x);
    EXPECT_NEAR(sum, 1, 1e-6);
  }
}

TEST_F(UseLite, OnlyTheFirst128PiecesCount) {
  std::string text;
  for (int i = 0; i < 128; ++i) text += " the";
  EXPECT_EQ(vector_of(text), vector_of(text + " mountain railway"));
  EXPECT_NE(vector_of(text), vector_of("mountain" + text));
}

TEST_F(UseLite, FilesThatWereChangedAreRefused) {
  const test::TemporaryFolder copy;
  std::filesystem::copy(folder(), copy.path(),
                        std::filesystem::copy_options::recursive | std::filesystem::copy_options::overwrite_existing);
  ASSERT_TRUE(open_use_lite(copy.path()));
  {
    std::fstream shard(copy.path() + "/group1-shard3of7", std::ios::in | std::ios::out | std::ios::binary);
    shard.seekp(1'000'000);
    shard.put('\x55');
  }
  const auto opened = open_use_lite(copy.path());
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Errc::corrupt);
  EXPECT_NE(opened.error().message.find("scripts/setup"), std::string::npos);
  std::filesystem::remove(copy.path() + "/group1-shard3of7");
  EXPECT_EQ(open_use_lite(copy.path()).error().code, Errc::not_found);
}

TEST(UseLiteAbsent, AnEmptyFolderIsNotFound) {
  const auto opened = open_use_lite("/nonexistent/use-lite");
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Errc::not_found);
}

}  // namespace
}  // namespace muniment::retrieval
