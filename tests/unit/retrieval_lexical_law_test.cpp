// Tests that the answers of the lexical lane equal BM25 computed over each chunk, for any query.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "retrieval/lexical/lexical_index.hpp"
#include "support/temporary_folder.hpp"

namespace muniment::retrieval {
namespace {

constexpr std::int64_t second = 1'000'000;
constexpr double ballast = 20;

struct Made {
  ChunkId id = 0;
  std::array<int, 46> words{};  // counts of the words w0 …; low numbers are frequent
  double length = 0;
  std::set<std::string> labels;
  std::int64_t time_us = 0, valid_from = 1, valid_to = still_valid;
};

struct Asked {
  std::map<std::size_t, int> words;  // word → count
  Filter filter;
  std::size_t k = 10;
};

class LexicalLaw : public testing::Test {
 protected:
  std::int64_t number(std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(random_);
  }

  // Creates ids in several windows of the matcher; times share seconds with each other and with the filters.
  Made chunk(ChunkId id) {
    Made made;
    made.id = id;
    for (std::int64_t i = number(1, 60); i > 0; --i, ++made.length)
      ++made.words[static_cast<std::size_t>(std::min(number(0, 40), number(0, 40)))];
    made.labels.insert("corpus:all");
    made.labels.insert("tag:" + std::to_string(number(0, 3)));
    if (number(0, 9) == 0) made.labels.insert("tag:rare");
    made.time_us = number(0, 5) * second + number(0, 3) * 250'000 - (number(0, 20) == 0 ? 10 * second : 0);
    if (number(0, 4) == 0) made.valid_to = number(3, 9);
    return made;
  }

  void fill() {
    auto opened = LexicalIndex::open(folder_.path() + "/lexical");
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    index_ = *std::move(opened);
    ChunkId id = 0;
    for (int i = 0; i < 400; ++i) {
      id += static_cast<ChunkId>(number(0, 30) == 0 ? number(10'000, 40'000) : number(1, 90));
      add(chunk(id));
      if (i % 97 == 0) {
        ASSERT_TRUE(index_->commit(i + 1).ok());
      }
    }
    ASSERT_TRUE(index_->commit(1'000).ok());
    reader_ = *index_->reader();
  }

  void add(Made made) {
    std::string text;
    for (std::size_t word = 0; word < made.words.size(); ++word) {
      for (int i = 0; i < made.words[word]; ++i) text += "w" + std::to_string(word) + " ";
    }
    LexicalChunk chunk{made.id, text, "", "", "none", {}};
    chunk.facts.labels.assign(made.labels.begin(), made.labels.end());
    chunk.facts.time_us = made.time_us;
    chunk.facts.valid_from = made.valid_from;
    ASSERT_TRUE(index_->add(chunk).ok());
    if (made.valid_to != still_valid) {
      ASSERT_TRUE(index_->close(made.id, made.valid_to).ok());
    }
    chunks_.push_back(std::move(made));
  }

  Asked question() {
    Asked asked;
    for (std::int64_t i = number(1, 5); i > 0; --i) asked.words[static_cast<std::size_t>(number(0, 45))]++;
    if (number(0, 1)) asked.filter.all_of.push_back({"corpus:all"});
    if (number(0, 1)) asked.filter.all_of.push_back({"tag:" + std::to_string(number(0, 4)), "tag:rare"});
    if (number(0, 2) == 0) asked.filter.none_of = {"tag:" + std::to_string(number(0, 4)), "nobody:has"};
    if (number(0, 2) == 0) asked.filter.after_us = number(-2, 5) * second + number(0, 3) * 250'000;
    if (number(0, 2) == 0) asked.filter.before_us = number(-2, 5) * second + number(0, 3) * 250'000;
    if (number(0, 3) == 0) asked.filter.as_of = number(0, 10);
    asked.k = static_cast<std::size_t>(number(0, 3) == 0 ? number(1, 500) : 10);
    return asked;
  }

  static bool passes(const Made& made, const Filter& filter) {
    const auto has = [&](const std::string& label) { return made.labels.contains(label); };
    if (!std::ranges::all_of(filter.all_of, [&](const auto& group) { return std::ranges::any_of(group, has); }))
      return false;
    if (std::ranges::any_of(filter.none_of, has)) return false;
    if (filter.after_us && made.time_us <= *filter.after_us) return false;
    if (filter.before_us && made.time_us >= *filter.before_us) return false;
    return !filter.as_of || (made.valid_from <= *filter.as_of && *filter.as_of < made.valid_to);
  }

  // Computes the formula chunk by chunk over the searched chunks: the current ones, or for as_of all that ever existed.
  std::vector<Hit> by_hand(const Asked& asked) const {
    std::vector<const Made*> all;
    for (const Made& made : chunks_) {
      if (asked.filter.as_of || made.valid_to == still_valid) all.push_back(&made);
    }
    const double many = static_cast<double>(all.size());
    double mean = 0;
    for (const Made* made : all) mean += (ballast + made->length) / many;
    std::map<std::size_t, double> weights;
    for (const auto& [word, times] : asked.words) {
      const double chunks =
          static_cast<double>(std::ranges::count_if(all, [w = word](const Made* one) { return one->words[w] > 0; }));
      const double odds = (many - chunks + .5) / (chunks + .5);
      weights[word] = std::log(odds < 2 ? odds / 2 + 1 : odds) * 9 * times / (8.0 + times) * 3;
    }
    std::vector<Hit> hits;
    for (const Made* made : all) {
      double score = 0;
      for (const auto& [word, weight] : weights) {
        const double count = made->words[word];
        score += weight * count / (2 * (.1 + .9 * (ballast + made->length) / mean) + count);
      }
      if (score > 0 && passes(*made, asked.filter)) hits.push_back({made->id, score});
    }
    std::ranges::sort(
        hits, [](const Hit& a, const Hit& b) { return a.score != b.score ? a.score > b.score : a.chunk < b.chunk; });
    if (hits.size() > asked.k) hits.resize(asked.k);
    return hits;
  }

  static std::string text_of(const Asked& asked) {
    std::string text;
    for (const auto& [word, times] : asked.words) {
      for (int i = 0; i < times; ++i) text += "w" + std::to_string(word) + " ";
    }
    return text;
  }

  std::mt19937 random_{20261122};
  test::TemporaryFolder folder_;
  std::unique_ptr<LexicalIndex> index_;
  std::unique_ptr<LexicalReader> reader_;
  std::vector<Made> chunks_;
};

TEST_F(LexicalLaw, TheAnswerIsBm25OverEveryChunkThatPasses) {
  fill();
  int with_hits = 0;
  for (int round = 0; round < 600; ++round) {
    const Asked asked = question();
    const auto found = reader_->search({text_of(asked), {}, "none"}, asked.filter, asked.k);
    ASSERT_TRUE(found.ok()) << found.error().message;
    const std::vector<Hit> wanted = by_hand(asked);
    ASSERT_EQ(found->size(), wanted.size()) << "round " << round << ": " << text_of(asked);
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      ASSERT_NEAR((*found)[i].score, wanted[i].score, 1e-9)
          << "round " << round << ", rank " << i + 1 << ": " << text_of(asked);
      // Two chunks may be exchanged if their scores differ by less than the rounding of sums in another order.
      const bool tie = (i > 0 && wanted[i - 1].score - wanted[i].score < 1e-9) ||
                       (i + 1 < wanted.size() && wanted[i].score - wanted[i + 1].score < 1e-9) || i + 1 == asked.k;
      ASSERT_TRUE(tie || (*found)[i].chunk == wanted[i].chunk)
          << "round " << round << ", rank " << i + 1 << ": " << text_of(asked);
    }
    with_hits += wanted.empty() ? 0 : 1;
    if (round % 100 == 50) {  // also for chunks that were added later
      add(chunk(chunks_.back().id + static_cast<ChunkId>(number(1, 20'000))));
      ASSERT_TRUE(index_->commit(2'000 + round).ok());
    }
  }
  EXPECT_GT(with_hits, 300);
}

}  // namespace
}  // namespace muniment::retrieval
