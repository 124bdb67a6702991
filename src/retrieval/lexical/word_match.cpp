// Scores chunks by summing up posting lists in windows.
#include "retrieval/lexical/word_match.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>
#include <utility>

namespace muniment::retrieval {
namespace {

bool better(const Hit& a, const Hit& b) { return a.score != b.score ? a.score > b.score : a.chunk < b.chunk; }

// The weight of a word: lower for words in more chunks, but never zero.
double rarity(double chunks, double all) {
  const double odds = (all - chunks + .5) / (chunks + .5);
  return std::log(odds < 2 ? odds / 2 + 1 : odds);
}

bool ended(const Xapian::PostingIterator& list) { return list == Xapian::PostingIterator(); }

// Calls `visit(place, count)` for the list's entries in the window that begins at `first`.
template <typename Visit>
void walk(Xapian::PostingIterator& list, ChunkId first, std::size_t window, Visit visit) {
  for (; !ended(list); ++list) {
    const std::uint64_t chunk = *list;
    if (chunk >= first + std::uint64_t{window}) return;
    if (chunk < first) throw Xapian::DatabaseCorruptError("a posting list goes backwards");
    visit(static_cast<std::size_t>(chunk - first), list.get_wdf());
  }
}

}  // namespace

WordMatch::WordMatch(const std::vector<WordGroup>& groups, const Xapian::Database& collection, ChunkTables& tables,
                     Sums& sums, std::size_t k)
    : tables_(tables), length_factor_(1 / std::max(1.0, collection.get_avlength())), k_(k), sums_(sums) {
  const double all = collection.get_doccount();
  for (const WordGroup& group : groups) {
    const double said = group.count * (bm25::k3 + 1) / (bm25::k3 + group.count);
    words_.push_back({group.forms, rarity(group.chunks, all) * said * (bm25::k1 + 1), {}});
  }
}

void WordMatch::search(const Xapian::Database& database, const Filter& filter) {
  if (!sums_.zeros_) {
    sums_.scores_.assign(window, 0);
    sums_.counts_.assign(window, 0);
    sums_.touched_ = {};
  }
  sums_.zeros_ = false;
  walk_all(database, filter);
  sums_.zeros_ = true;
}

void WordMatch::walk_all(const Xapian::Database& database, const Filter& filter) {
  ChunkFilter passing(filter, database, tables_);
  for (Word& word : words_) {
    word.lists.clear();
    for (const std::string& form : word.forms) word.lists.push_back(database.postlist_begin(form));
  }
  for (std::uint64_t from = 1; from <= database.get_lastdocid();) {
    const auto first_passing = passing.first_from(static_cast<ChunkId>(from));
    if (!first_passing) return;
    std::optional<ChunkId> first;
    for (Word& word : words_) {
      for (Xapian::PostingIterator& list : word.lists) {
        if (!ended(list) && *list < *first_passing) list.skip_to(*first_passing);
        if (!ended(list) && (!first || *list < *first)) first = *list;
      }
    }
    if (!first) return;
    score_window(database, *first);
    keep_best(*first, passing);
    from = *first + std::uint64_t{window};
  }
}

void WordMatch::score_window(const Xapian::Database& database, ChunkId first) {
  for (Word& word : words_) {
    if (word.lists.size() == 1) {
      walk(word.lists.front(), first, window,
           [&](std::size_t place, std::uint32_t count) { add_score(database, word, first, place, count); });
      continue;
    }
    for (Xapian::PostingIterator& list : word.lists) {
      walk(list, first, window, [&](std::size_t place, std::uint32_t count) {
        if (sums_.counts_[place] == 0) counted_.push_back(static_cast<std::uint16_t>(place));
        sums_.counts_[place] += count;
      });
    }
    for (const std::uint16_t place : counted_)
      add_score(database, word, first, place, std::exchange(sums_.counts_[place], 0));
    counted_.clear();
  }
}

void WordMatch::add_score(const Xapian::Database& database, const Word& word, ChunkId first, std::size_t place,
                          std::uint32_t count) {
  const auto chunk = static_cast<ChunkId>(first + place);
  std::uint32_t length = tables_.lengths.find(chunk);
  if (length == 0) tables_.put_length(chunk, length = std::max<std::uint32_t>(1, database.get_doclength(chunk)));
  const double part = std::max(length * length_factor_, bm25::least_length);
  sums_.scores_[place] += word.weight * (count / (bm25::k1 * (part * bm25::b + (1 - bm25::b)) + count));
  sums_.touched_[place / 64] |= std::uint64_t{1} << place % 64;
}

void WordMatch::keep_best(ChunkId first, ChunkFilter& filter) {
  for (std::size_t i = 0; i < sums_.touched_.size(); ++i) {
    for (std::uint64_t rest = std::exchange(sums_.touched_[i], 0); rest != 0; rest &= rest - 1) {
      const std::size_t place = i * 64 + static_cast<std::size_t>(std::countr_zero(rest));
      const Hit hit{static_cast<ChunkId>(first + place), std::exchange(sums_.scores_[place], 0)};
      if ((heap_.size() < k_ || better(hit, heap_.front())) && filter.passes(hit.chunk)) keep(hit);
    }
  }
}

void WordMatch::keep(const Hit& hit) {
  if (heap_.size() >= k_) {
    std::ranges::pop_heap(heap_, better);
    heap_.pop_back();
  }
  heap_.push_back(hit);
  std::ranges::push_heap(heap_, better);
}

std::vector<Hit> WordMatch::best() && {
  std::ranges::sort_heap(heap_, better);
  return std::move(heap_);
}

}  // namespace muniment::retrieval
