// Evaluates a filter on the posting lists of a database.
#include "retrieval/lexical/chunk_filter.hpp"

#include <algorithm>
#include <limits>

#include "retrieval/lexical/layout.hpp"
#include "retrieval/lexical/terms.hpp"

namespace muniment::retrieval {
namespace {

constexpr std::int64_t first_time = std::numeric_limits<std::int64_t>::min(),
                       last_time = std::numeric_limits<std::int64_t>::max();

// Returns the list's first chunk from `chunk` on; nullopt at its end.
std::optional<ChunkId> skip_to(Xapian::PostingIterator& list, ChunkId chunk) {
  if (list == Xapian::PostingIterator()) return std::nullopt;
  if (*list < chunk) list.skip_to(chunk);
  return list == Xapian::PostingIterator() ? std::nullopt : std::optional<ChunkId>(*list);
}

bool has(Xapian::PostingIterator& list, ChunkId chunk) { return skip_to(list, chunk) == chunk; }

}  // namespace

Labels::Labels(const std::vector<std::string>& labels, const Xapian::Database& database) {
  for (const std::string& label : labels) {
    std::string term = label_term(label);
    const Xapian::doccount chunks = database.get_termfreq(term);
    all = all || chunks == database.get_doccount();
    if (chunks > 0) terms.push_back(std::move(term));
  }
}

ChunkFilter::ChunkFilter(const Filter& filter, const Xapian::Database& database, const ChunkTables& tables)
    : tables_(tables) {
  for (const auto& group : filter.all_of) {
    const Labels labels(group, database);
    if (labels.all) continue;
    if (labels.terms.empty()) nothing_ = true;
    Lists& lists = all_of_.emplace_back();
    for (const std::string& term : labels.terms) lists.push_back(database.postlist_begin(term));
  }
  for (const std::string& term : Labels(filter.none_of, database).terms)
    none_of_.push_back(database.postlist_begin(term));
  // A bound at the end of the value range excludes every chunk.
  nothing_ = nothing_ || filter.after_us == last_time || filter.before_us == first_time || filter.as_of == last_time;
  if (nothing_) return;
  if (filter.after_us) require(database, layout::time_slot, *filter.after_us + 1, last_time);
  if (filter.before_us) require(database, layout::time_slot, first_time, *filter.before_us - 1);
  if (filter.as_of) {
    require(database, layout::valid_from_slot, first_time, *filter.as_of);
    require(database, layout::valid_to_slot, *filter.as_of + 1, last_time);
  }
}

void ChunkFilter::require(const Xapian::Database& database, unsigned slot, std::int64_t least, std::int64_t most) {
  ranges_.push_back(
      {database.valuestream_begin(slot), database.valuestream_end(slot), least, most, slot == layout::time_slot});
}

std::optional<ChunkId> ChunkFilter::first_from(ChunkId chunk) {
  if (nothing_) return std::nullopt;
  for (Lists& lists : all_of_) {
    std::optional<ChunkId> first;
    for (Xapian::PostingIterator& list : lists) {
      const auto next = skip_to(list, chunk);
      if (next && (!first || *next < *first)) first = next;
    }
    if (!first) return std::nullopt;
    chunk = std::max(chunk, *first);
  }
  return chunk;
}

bool ChunkFilter::passes(ChunkId chunk) {
  const auto has_it = [chunk](Xapian::PostingIterator& list) { return has(list, chunk); };
  if (!std::ranges::all_of(all_of_, [&](Lists& lists) { return std::ranges::any_of(lists, has_it); })) return false;
  if (std::ranges::any_of(none_of_, has_it)) return false;
  return std::ranges::all_of(ranges_, [&](Range& range) { return in_range(range, chunk); });
}

bool ChunkFilter::in_range(Range& range, ChunkId chunk) const {
  if (const std::int64_t second = range.of_time ? tables_.seconds.find(chunk) : 0; second != 0) {
    const std::int64_t first = second * 1'000'000, last = first + 999'999;
    if (range.least <= first && last <= range.most) return true;
    if (last < range.least || range.most < first) return false;
  }
  if (range.at == range.end) return false;
  if (range.at.get_docid() < chunk) range.at.skip_to(chunk);
  if (range.at == range.end || range.at.get_docid() != chunk) return false;
  const std::int64_t number = number_of(*range.at);
  return range.least <= number && number <= range.most;
}

}  // namespace muniment::retrieval
