#include "retrieval/lexical/lexical_reader.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <xapian.h>

#include "base/limits.hpp"
#include "base/text.hpp"
#include "retrieval/lexical/layout.hpp"
#include "retrieval/lexical/query_terms.hpp"
#include "retrieval/lexical/xapian_guard.hpp"

namespace muniment::retrieval {
namespace {

using Xapian::Query;

// Unlike Xapian's own parameters (b .5, lengths of half the mean and below taken as equal), with the full
// normalisation by length: short turns stand beside long logs. Since every chunk has its ballast (terms.cpp),
// repeated words may count for more than the k1 of 1.2 that is best without it.
Xapian::BM25Weight bm25() { return Xapian::BM25Weight(2, 0, 8, .9, .01); }

// Those of the labels that some chunk has. One that every chunk has says all: nothing is to be looked up for it.
struct Labels {
  std::vector<std::string> terms;
  bool all = false;

  Labels(const std::vector<std::string>& labels, const Xapian::Database& database) {
    for (const std::string& label : labels) {
      std::string term = label_term(label);
      const Xapian::doccount chunks = database.get_termfreq(term);
      all = all || chunks == database.get_doccount();
      if (chunks > 0) terms.push_back(std::move(term));
    }
  }
  Query any() const { return Query(Query::OP_OR, terms.begin(), terms.end()); }
};

Query at_least(unsigned slot, std::int64_t number) { return Query(Query::OP_VALUE_GE, slot, sortable(number)); }
Query at_most(unsigned slot, std::int64_t number) { return Query(Query::OP_VALUE_LE, slot, sortable(number)); }

// Nothing is beyond the ends of time: an empty query matches nothing.
Query more_than(unsigned slot, std::int64_t number) {
  return number == std::numeric_limits<std::int64_t>::max() ? Query() : at_least(slot, number + 1);
}
Query less_than(unsigned slot, std::int64_t number) {
  return number == std::numeric_limits<std::int64_t>::min() ? Query() : at_most(slot, number - 1);
}

Query restricted(Query query, const Filter& filter, const Xapian::Database& database) {
  const auto require = [&query](const Query& part) { query = Query(Query::OP_FILTER, query, part); };
  for (const auto& group : filter.all_of) {
    const Labels labels(group, database);
    if (!labels.all) require(labels.any());
  }
  if (filter.as_of) {
    if (filter.after_us) require(more_than(layout::time_slot, *filter.after_us));
    if (filter.before_us) require(less_than(layout::time_slot, *filter.before_us));
    require(at_most(layout::valid_from_slot, *filter.as_of));
    require(more_than(layout::valid_to_slot, *filter.as_of));
  }
  const Labels unwanted(filter.none_of, database);
  return unwanted.terms.empty() ? query : Query(Query::OP_AND_NOT, query, unwanted.any());
}

// The times of a filter, for the live chunks. Xapian's own range would read the time of every chunk that has the words;
// this is asked for those only that are good enough for the answer, and mostly knows.
class InTime final : public Xapian::MatchDecider {
 public:
  InTime(const Filter& filter, ChunkNumbers& seconds) : filter_(filter), seconds_(seconds) {}

  bool wanted() const { return !filter_.as_of && (filter_.after_us || filter_.before_us); }

  bool operator()(const Xapian::Document& document) const override {
    const ChunkId chunk = document.get_docid();
    if (const auto known = seconds_.find(chunk)) {
      // Unless one of the filter's times lies within its second, that second says it.
      const std::int64_t first = std::int64_t{*known} * micros, last = first + micros - 1;
      if (is_after(first) == is_after(last) && is_before(first) == is_before(last)) return is_after(first) && is_before(first);
    }
    const std::int64_t time_us = number_of(document.get_value(layout::time_slot));
    const std::int64_t second = time_us / micros;
    if (time_us >= 0 && second <= std::numeric_limits<std::uint32_t>::max()) seconds_.put(chunk, static_cast<std::uint32_t>(second));
    return is_after(time_us) && is_before(time_us);
  }

 private:
  static constexpr std::int64_t micros = 1'000'000;

  bool is_after(std::int64_t time_us) const { return !filter_.after_us || time_us > *filter_.after_us; }
  bool is_before(std::int64_t time_us) const { return !filter_.before_us || time_us < *filter_.before_us; }

  const Filter& filter_;
  ChunkNumbers& seconds_;
};

// One generation of the databases, as it was opened or reopened last.
struct View {
  Xapian::Database live;
  Xapian::Database both;  // live and history, for as_of: docids alternate
  std::int64_t watermark = 0;
  std::vector<std::string> languages;  // of the live chunks, the most frequent first
};

class XapianReader final : public LexicalReader {
 public:
  XapianReader(std::string folder, std::shared_ptr<IndexChanges> changes) : folder_(std::move(folder)), changes_(std::move(changes)) {}

  Status start() {
    return guarded("opening a reader", [&] { return open(); });
  }

  Result<std::vector<Hit>> search(const LexicalQuery& query, const Filter& filter, std::size_t k) override {
    return fresh<std::vector<Hit>>("searching", [&] { return find(query, filter, std::min(k, limits::lexical_hits_max)); });
  }

  Result<std::int64_t> count_unfiltered(const LexicalQuery& query) override {
    return fresh<std::int64_t>("counting", [&]() -> Result<std::int64_t> {
      const Query wanted = asked(query, view_.live);
      if (wanted.empty()) return 0;
      Xapian::Enquire enquire(view_.live);
      enquire.set_weighting_scheme(Xapian::BoolWeight());
      enquire.set_query(wanted);
      return enquire.get_mset(0, 0, counted_at_least).get_matches_lower_bound();
    });
  }

  Result<std::vector<std::uint32_t>> words_of(std::span<const Hit> hits) override {
    return fresh<std::vector<std::uint32_t>>("measuring", [&]() -> Result<std::vector<std::uint32_t>> {
      std::vector<std::uint32_t> words;
      for (const Hit& hit : hits) {
        std::optional<std::uint32_t> count = changes_->words.find(hit.chunk);
        if (!count) {
          count = words_of_chunk(hit.chunk);
          if (*count != unknown_words) changes_->words.put(hit.chunk, *count);
        }
        words.push_back(*count);
      }
      return words;
    });
  }

  std::int64_t watermark() const override { return view_.watermark; }

 private:
  static constexpr Xapian::doccount counted_at_least = 1'000;
  static constexpr std::uint64_t never = ~std::uint64_t{0};

  // `work` on what was committed last. A writer that commits twice meanwhile takes blocks away: then once more.
  template <typename T, typename Work>
  Result<T> fresh(const char* doing, Work work) {
    return guarded(doing, [&]() -> Result<T> {
      for (int attempt = 0;; attempt++) {
        try {
          RETURN_IF_ERROR(reopen_if_committed());
          return work();
        } catch (const Xapian::DatabaseModifiedError&) {
          if (attempt == 1) throw;
          seen_ = never;
        }
      }
    });
  }

  Status open() {
    const std::lock_guard lock(changes_->places);
    rewritten_seen_ = changes_->rewritten.load(std::memory_order_acquire);
    seen_ = changes_->commits.load(std::memory_order_acquire);
    view_.live = Xapian::Database(layout::live(folder_));
    view_.both = Xapian::Database(layout::live(folder_));
    view_.both.add_database(Xapian::Database(layout::history(folder_)));
    return look();
  }

  // Reopening reads files, even where there is nothing new.
  Status reopen_if_committed() {
    if (changes_->rewritten.load(std::memory_order_acquire) != rewritten_seen_) return open();
    const std::uint64_t commits = changes_->commits.load(std::memory_order_acquire);
    if (commits == seen_) return success();
    if (view_.live.reopen()) RETURN_IF_ERROR(look());
    view_.both.reopen();
    seen_ = commits;
    return success();
  }

  Status look() {
    const std::string text = view_.live.get_metadata(layout::next_seq_key);
    const auto watermark = text.empty() ? std::int64_t{0} : parse_decimal(text);
    if (!watermark) return lexical_error(Errc::corrupt, "reading its position", preview(text, 40));
    std::vector<std::pair<Xapian::doccount, std::string>> counted;
    const std::string prefix(1, language_prefix);
    for (auto term = view_.live.allterms_begin(prefix); term != view_.live.allterms_end(prefix); ++term) {
      counted.emplace_back(term.get_termfreq(), (*term).substr(1));
    }
    std::stable_sort(counted.begin(), counted.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    view_.languages.clear();
    for (std::size_t i = 0; i < counted.size() && i < limits::index_languages_max; i++) {
      view_.languages.push_back(counted[i].second);
    }
    if (view_.languages.empty()) view_.languages.push_back("none");
    view_.watermark = *watermark;
    return success();
  }

  Result<std::vector<Hit>> find(const LexicalQuery& query, const Filter& filter, std::size_t k) {
    std::vector<Hit> hits;
    const Xapian::Database& database = filter.as_of ? view_.both : view_.live;
    const Query wanted = asked(query, database);
    if (wanted.empty() || k == 0) return hits;
    Xapian::Enquire enquire(database);
    enquire.set_weighting_scheme(bm25());
    enquire.set_query(restricted(wanted, filter, database));
    const InTime in_time(filter, changes_->seconds);
    const Xapian::MSet found = enquire.get_mset(0, static_cast<Xapian::doccount>(k), 0, nullptr, in_time.wanted() ? &in_time : nullptr);
    for (auto at = found.begin(); at != found.end(); ++at) {
      const ChunkId id = filter.as_of ? (*at - 1) / 2 + 1 : *at;
      if (!std::isfinite(at.get_weight())) return lexical_error(Errc::corrupt, "searching", "a score is no number");
      hits.push_back({id, at.get_weight()});
    }
    if (filter.as_of) drop_repeated(hits);
    return hits;
  }

  // In the live database, or else in the history.
  std::uint32_t words_of_chunk(ChunkId chunk) const {
    for (const Xapian::docid first : {1u, 2u}) {
      try {
        const Xapian::termcount length = view_.both.get_doclength((chunk - 1) * 2 + first);
        return length > ballast_words ? length - ballast_words : 0;
      } catch (const Xapian::DocNotFoundError&) {
      }
    }
    return unknown_words;
  }

  // A chunk is in both databases while a move is half done.
  static void drop_repeated(std::vector<Hit>& hits) {
    std::vector<ChunkId> seen;
    std::erase_if(hits, [&seen](const Hit& hit) {
      if (std::find(seen.begin(), seen.end(), hit.chunk) != seen.end()) return true;
      seen.push_back(hit.chunk);
      return false;
    });
  }

  // The words, any of them, scored; the phrases, all of them.
  Query asked(const LexicalQuery& query, const Xapian::Database& database) {
    const QueryTerms terms = query_terms(query, languages_of(query), stemmers_);
    const Query words = scored(terms.groups, database);
    if (terms.phrases.empty() && !words.empty()) return words;
    const auto& required = terms.phrases.empty() ? terms.whole_text : terms.phrases;
    if (required.empty()) return Query();
    Query phrases = Query::MatchAll;
    for (const auto& phrase : required) {
      const Query one(Query::OP_PHRASE, phrase.begin(), phrase.end(), static_cast<Xapian::termcount>(phrase.size()));
      phrases = Query(Query::OP_FILTER, phrases, one);
    }
    return Query(Query::OP_AND_MAYBE, Query(Query::OP_SCALE_WEIGHT, phrases, 0), words);
  }

  // Code and data have no language: their words stand as they are beside those of any language.
  std::vector<std::string> languages_of(const LexicalQuery& query) const {
    if (query.language.empty()) return view_.languages;
    const bool some_without = std::find(view_.languages.begin(), view_.languages.end(), "none") != view_.languages.end();
    if (query.language == "none" || !some_without) return {query.language};
    return {query.language, "none"};
  }

  struct Weighed {
    Xapian::doccount frequency = 0;
    std::size_t order = 0;
    Query query;
  };

  // Of a long query the rarest words: they decide, and a megabyte costs no more than a page.
  static Query scored(const std::vector<TermGroup>& groups, const Xapian::Database& database) {
    std::vector<Weighed> parts;
    for (std::size_t i = 0; i < groups.size(); i++) {
      Weighed part{0, i, {}};
      std::vector<Query> forms;
      for (const std::string& form : groups[i].forms) {
        const Xapian::doccount frequency = database.get_termfreq(form);
        if (frequency == 0) continue;
        part.frequency += frequency;
        forms.emplace_back(form, groups[i].count);
      }
      if (forms.empty()) continue;
      part.query = forms.size() == 1 ? forms.front() : Query(Query::OP_SYNONYM, forms.begin(), forms.end());
      parts.push_back(std::move(part));
    }
    if (parts.size() > limits::query_terms_max) {
      std::stable_sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.frequency < b.frequency; });
      parts.resize(limits::query_terms_max);
      std::sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.order < b.order; });
    }
    std::vector<Query> queries;
    for (Weighed& part : parts) queries.push_back(std::move(part.query));
    return Query(Query::OP_OR, queries.begin(), queries.end());
  }

  std::string folder_;
  const std::shared_ptr<IndexChanges> changes_;
  std::uint64_t seen_ = never;           // the commits, when the view was opened
  std::uint64_t rewritten_seen_ = never;
  View view_;
  std::map<std::string, Stemmer, std::less<>> stemmers_;
};

}  // namespace

Result<std::unique_ptr<LexicalReader>> open_lexical_reader(const std::string& folder, std::shared_ptr<IndexChanges> changes) {
  auto reader = std::make_unique<XapianReader>(folder, std::move(changes));
  RETURN_IF_ERROR(reader->start());
  return std::unique_ptr<LexicalReader>(std::move(reader));
}

}  // namespace muniment::retrieval
