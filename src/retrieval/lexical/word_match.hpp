// Finds the best chunks for words by BM25. It traverses Xapian's posting lists one after the other, window by window,
// and sums the scores of each chunk in an array. Xapian's own matcher proceeds chunk by chunk through a tree of lists
// and the list of all lengths, which takes about three times as long.
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

// Parameters of BM25. Length is normalised almost fully (Xapian's defaults: b .5, equal lengths up to half the mean),
// because short turns compete with long logs. k1 exceeds 1.2, the best value without the ballast that every chunk
// contains (terms.cpp).
namespace bm25 {
inline constexpr double k1 = 2, k3 = 8, b = .9, least_length = .01;  // least_length is relative to the mean
}

// A word of a query, in one or several forms.
struct WordGroup {
  std::vector<std::string> forms;  // each occurs in some chunk
  std::uint32_t count = 1;         // occurrences in the query
  double chunks = 0;               // approximate number of chunks that have one of the forms
};

class WordMatch {
 public:
  // The sums of a window of chunks. Kept between searches, because the arrays are large and must be zero.
  class Sums {
    friend class WordMatch;
    static constexpr std::size_t window = 1u << 14;
    std::vector<double> scores_;
    std::vector<std::uint32_t> counts_;                 // counts for a word with several forms
    std::array<std::uint64_t, window / 64> touched_{};  // marks the scores_ that are not 0
    bool zeros_ = false;                                // false after a search that ended with an exception
  };

  // Uses the statistics of `collection`, which may be larger than the searched database.
  WordMatch(const std::vector<WordGroup>& groups, const Xapian::Database& collection, ChunkTables& tables, Sums& sums,
            std::size_t k);

  // Adds the best chunks of `database`, whose docids are the chunks' ids. Throws Xapian's exceptions.
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
