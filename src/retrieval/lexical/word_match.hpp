// The best chunks for words, by BM25: Xapian's posting lists are walked one after the other, window by window, and an
// array sums up what they say of each chunk. Xapian's own matcher goes chunk by chunk, through a tree of lists and the
// list of all lengths, which takes about three times as long.
#pragma once

#include <xapian.h>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "retrieval/facts.hpp"
#include "retrieval/lexical/chunk_filter.hpp"
#include "retrieval/lexical/chunk_table.hpp"

namespace muniment::retrieval {

// Unlike Xapian's own parameters (b .5, lengths of half the mean and below taken as equal), with the full
// normalisation by length: short turns stand beside long logs. Since every chunk has its ballast (terms.cpp),
// repeated words may count for more than the k1 of 1.2 that is best without it.
namespace bm25 {
inline constexpr double k1 = 2, k3 = 8, b = .9, least_length = .01;  // of the mean
}

// What counts as one word of a query.
struct WordGroup {
  std::vector<std::string> forms;  // each is in some chunk
  std::uint32_t count = 1;         // how often the query has it
  double chunks = 0;               // that have one of the forms, about
};

class WordMatch {
 public:
  // What is summed up of a window of chunks: kept between searches, since it is large and must be zeros.
  class Sums {
    friend class WordMatch;
    static constexpr std::size_t window = 1u << 14;
    std::vector<double> scores_;
    std::vector<std::uint32_t> counts_;                 // of a word with several forms
    std::array<std::uint64_t, window / 64> touched_{};  // where scores_ are not 0
    bool zeros_ = false;                                // not after a search that was thrown out of
  };

  // Statistics are those of `collection`, which may be more than what is searched.
  WordMatch(const std::vector<WordGroup>& groups, const Xapian::Database& collection, ChunkTables& tables, Sums& sums,
            std::size_t k);

  // Adds the best of `database`, whose docids are the chunks' ids. Throws what Xapian does.
  void search(const Xapian::Database& database, const Filter& filter);
  std::vector<Hit> best() &&;  // by score, ties by id

 private:
  struct Word {
    std::vector<std::string> forms;
    double weight = 0;
    std::vector<Xapian::PostingIterator> lists;
  };
  static constexpr std::size_t window = Sums::window;

  void walk_all(const Xapian::Database& database, const Filter& filter);
  void score_window(const Xapian::Database& database, ChunkId first);
  void add_score(const Xapian::Database& database, const Word& word, ChunkId first, std::size_t place,
                 std::uint32_t count);
  void keep_best(ChunkId first, ChunkFilter& filter);
  void keep(const Hit& hit);

  std::vector<Word> words_;
  ChunkTables& tables_;
  const double length_factor_;
  const std::size_t k_;
  Sums& sums_;
  std::vector<std::uint16_t> counted_;  // places of a window that have a count
  std::vector<Hit> heap_;               // the worst in front
};

}  // namespace muniment::retrieval
