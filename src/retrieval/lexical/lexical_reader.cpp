// Searches the lexical index.
#include "retrieval/lexical/lexical_reader.hpp"

#include <xapian.h>
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <tuple>

#include "base/limits.hpp"
#include "base/text.hpp"
#include "retrieval/lexical/layout.hpp"
#include "retrieval/lexical/query_terms.hpp"
#include "retrieval/lexical/spelling.hpp"
#include "retrieval/lexical/word_match.hpp"
#include "retrieval/lexical/xapian_guard.hpp"
#include "retrieval/query/function_words.hpp"

namespace muniment::retrieval {
namespace {

using Xapian::Query;

Xapian::BM25Weight bm25_weight() { return Xapian::BM25Weight(bm25::k1, 0, bm25::k3, bm25::b, bm25::least_length); }

Query any_of(const Labels& labels) { return Query(Query::OP_OR, labels.terms.begin(), labels.terms.end()); }

Query at_least(unsigned slot, std::int64_t number) { return Query(Query::OP_VALUE_GE, slot, sortable(number)); }
Query at_most(unsigned slot, std::int64_t number) { return Query(Query::OP_VALUE_LE, slot, sortable(number)); }

// A bound at the end of the value range excludes everything: the empty query matches nothing.
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
    if (!labels.all) require(any_of(labels));
  }
  if (filter.after_us) require(more_than(layout::time_slot, *filter.after_us));
  if (filter.before_us) require(less_than(layout::time_slot, *filter.before_us));
  if (filter.as_of) {
    require(at_most(layout::valid_from_slot, *filter.as_of));
    require(more_than(layout::valid_to_slot, *filter.as_of));
  }
  const Labels unwanted(filter.none_of, database);
  return unwanted.terms.empty() ? query : Query(Query::OP_AND_NOT, query, any_of(unwanted));
}

// One generation of the databases, as last opened or reopened.
struct View {
  Xapian::Database live;
  Xapian::Database history;
  Xapian::Database both;  // live and history, for as_of: docids alternate
  std::int64_t watermark = 0;
  Languages languages;  // languages of the live chunks, most frequent first
};

class XapianReader final : public LexicalReader {
 public:
  XapianReader(OpenDatabases databases, std::shared_ptr<IndexChanges> changes)
      : databases_(std::move(databases)), changes_(std::move(changes)) {}

  Status start() {
    return on_newest("opening a reader", [&] { return open(); });
  }

  Result<std::vector<Hit>> search(const LexicalQuery& query, const Filter& filter, std::size_t k) override {
    return fresh<std::vector<Hit>>("searching",
                                   [&] { return find(query, filter, std::min(k, limits::lexical_hits_max)); });
  }

  Result<std::int64_t> count_unfiltered(const LexicalQuery& query) override {
    return fresh<std::int64_t>("counting", [&]() -> Result<std::int64_t> {
      const QueryTerms terms = terms_of(query, view_.live);
      const Query wanted = asked(terms, known_words(terms.groups, view_.live));
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
      for (const Hit& hit : hits) words.push_back(words_of_chunk(hit.chunk));
      return words;
    });
  }

  std::int64_t watermark() const override { return view_.watermark; }

 private:
  static constexpr Xapian::doccount counted_at_least = 1'000;
  static constexpr std::uint64_t never = ~std::uint64_t{0};
  static constexpr int attempts_max = 5;
  static constexpr Xapian::doccount usual_share = 100;  // a language of fewer than one in so many chunks is not usual

  // Runs `work` on the last commit.
  template <typename T, typename Work>
  Result<T> fresh(const char* doing, Work work) {
    return on_newest(doing, [&]() -> Result<T> {
      RETURN_IF_ERROR(reopen_if_committed());
      return work();
    });
  }

  // A writer that commits twice during the work reuses blocks; then the work runs again on the newest state.
  template <typename Work>
  auto on_newest(const char* doing, Work work) -> decltype(work()) {
    return guarded(doing, [&]() -> decltype(work()) {
      for (int attempt = 1;; attempt++) {
        try {
          return work();
        } catch (const Xapian::DatabaseModifiedError&) {
          if (attempt == attempts_max) throw;
          seen_ = never;
        }
      }
    });
  }

  Status open() {
    const std::lock_guard lock(changes_->places);
    rewritten_seen_ = changes_->rewritten.load(std::memory_order_acquire);
    seen_ = changes_->commits.load(std::memory_order_acquire);
    std::tie(view_.live, view_.history) = databases_();
    view_.both = view_.live;
    view_.both.add_database(view_.history);
    return look();
  }

  // Reopening reads files even if nothing has changed.
  Status reopen_if_committed() {
    if (changes_->rewritten.load(std::memory_order_acquire) != rewritten_seen_) return open();
    const std::uint64_t commits = changes_->commits.load(std::memory_order_acquire);
    if (commits == seen_) return success();
    view_.history.reopen();
    if (view_.live.reopen()) RETURN_IF_ERROR(look());
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
    view_.languages = {};
    for (std::size_t i = 0; i < counted.size() && i < limits::index_languages_max; i++) {
      const auto& [chunks, language] = counted[i];
      view_.languages.stemmed.push_back(language);
      if (chunks * usual_share >= view_.live.get_doccount()) view_.languages.usual |= language_bit(language);
    }
    if (view_.languages.stemmed.empty()) view_.languages.stemmed.emplace_back("none");
    view_.watermark = *watermark;
    learn_chunks();
    return success();
  }

  // Reads the chunks that were added since the last call. A chunk without an entry in these lists is read individually.
  void learn_chunks() {
    const std::lock_guard lock(changes_->learning);
    if (changes_->learned == 0) learn_chunks_after(0, view_.history);
    learn_chunks_after(changes_->learned, view_.live);
    changes_->learned = std::max(changes_->learned, view_.live.get_lastdocid());
  }

  void learn_chunks_after(Xapian::docid last, const Xapian::Database& database) {
    auto at = database.postlist_begin("");
    if (at != database.postlist_end("") && *at <= last) at.skip_to(last + 1);
    for (; at != database.postlist_end(""); ++at) changes_->tables.put_length(*at, at.get_doclength());
    auto time = database.valuestream_begin(layout::time_slot);
    const auto end = database.valuestream_end(layout::time_slot);
    if (time != end && time.get_docid() <= last) time.skip_to(last + 1);
    for (; time != end; ++time) changes_->tables.put_time(time.get_docid(), number_of(*time));
  }

  Result<std::vector<Hit>> find(const LexicalQuery& query, const Filter& filter, std::size_t k) {
    if (k == 0) return std::vector<Hit>();
    const Xapian::Database& database = filter.as_of ? view_.both : view_.live;
    const QueryTerms terms = terms_of(query, database);
    const std::vector<WordGroup> words = known_words(terms.groups, database);
    auto hits =
        terms.phrases.empty() && !words.empty() ? find_words(words, filter, k) : find_phrases(terms, words, filter, k);
    if (hits && filter.as_of) drop_repeated(*hits);
    return hits;
  }

  Result<std::vector<Hit>> find_words(const std::vector<WordGroup>& words, const Filter& filter, std::size_t k) {
    WordMatch match(words, filter.as_of ? view_.both : view_.live, changes_->tables, sums_, k);
    match.search(view_.live, filter);
    if (filter.as_of) match.search(view_.history, filter);
    return std::move(match).best();
  }

  // Only Xapian's matcher uses word positions.
  Result<std::vector<Hit>> find_phrases(const QueryTerms& terms, const std::vector<WordGroup>& words,
                                        const Filter& filter, std::size_t k) const {
    std::vector<Hit> hits;
    const Xapian::Database& database = filter.as_of ? view_.both : view_.live;
    const Query wanted = asked(terms, words);
    if (wanted.empty()) return hits;
    Xapian::Enquire enquire(database);
    enquire.set_weighting_scheme(bm25_weight());
    enquire.set_query(restricted(wanted, filter, database));
    const Xapian::MSet found = enquire.get_mset(0, static_cast<Xapian::doccount>(k));
    for (auto at = found.begin(); at != found.end(); ++at) {
      if (!std::isfinite(at.get_weight())) return lexical_error(Errc::corrupt, "searching", "a score is not a number");
      hits.push_back({filter.as_of ? (*at - 1) / 2 + 1 : *at, at.get_weight()});
    }
    return hits;
  }

  std::uint32_t words_of_chunk(ChunkId chunk) const {
    const std::uint32_t length = changes_->tables.lengths.find(chunk);
    if (length == 0) return unknown_words;
    return length > ballast_words ? length - ballast_words : 0;
  }

  // A chunk is in both databases while a move is incomplete.
  static void drop_repeated(std::vector<Hit>& hits) {
    std::vector<ChunkId> seen;
    std::erase_if(hits, [&seen](const Hit& hit) {
      if (std::find(seen.begin(), seen.end(), hit.chunk) != seen.end()) return true;
      seen.push_back(hit.chunk);
      return false;
    });
  }

  // Scores any of the words; requires all of the phrases.
  static Query asked(const QueryTerms& terms, const std::vector<WordGroup>& groups) {
    const Query words = scored(groups);
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

  // Code and data have no language: their words are indexed without stemming beside those of any language.
  Languages languages_of(const LexicalQuery& query) const {
    if (query.language.empty()) return view_.languages;
    Languages languages{{query.language}, language_bit(query.language)};
    if (query.language != "none" && std::ranges::find(view_.languages.stemmed, "none") != view_.languages.stemmed.end())
      languages.stemmed.emplace_back("none");
    return languages;
  }

  QueryTerms terms_of(const LexicalQuery& query, const Xapian::Database& database) {
    const Languages languages = languages_of(query);
    QueryTerms terms = query_terms(query, languages, stemmers_);
    std::size_t corrected = 0;
    for (TermGroup& group : terms.groups) {
      if (corrected == limits::corrected_words_max) break;
      if (std::ranges::any_of(group.forms, [&](const auto& form) { return database.term_exists(form); })) continue;
      ++corrected;
      if (!join(group, languages.stemmed, database) && !group.typed.empty())
        correct(group, languages.stemmed, database);
    }
    return terms;
  }

  // Gives a word that is in no chunk the forms of its compound with the next word, if that is in one.
  bool join(TermGroup& group, const std::vector<std::string>& languages, const Xapian::Database& database) {
    const std::string& first = group.forms.back();  // as one word: W and the text
    if (group.next.empty() || first.front() != whole_prefix) return false;
    std::vector<std::string> forms =
        forms_of({Word::Kind::plain, 0, {}, first.substr(1) + group.next}, languages, stemmers_);
    if (std::ranges::none_of(forms, [&](const auto& form) { return database.term_exists(form); })) return false;
    group.forms = std::move(forms);
    return true;
  }

  // Gives a word that is in no chunk the forms of the most frequent words at one edit.
  void correct(TermGroup& group, const std::vector<std::string>& languages, const Xapian::Database& database) {
    std::vector<std::pair<Xapian::doccount, std::string>> found;
    for (std::string& word : words_at_one_edit(group.typed)) {
      if (const Xapian::doccount chunks = database.get_termfreq(word)) found.emplace_back(chunks, std::move(word));
    }
    std::ranges::stable_sort(found, [](const auto& a, const auto& b) { return a.first > b.first; });
    if (found.size() > limits::corrections_max) found.resize(limits::corrections_max);
    for (auto& [chunks, text] : found) {
      for (std::string& form : forms_of({Word::Kind::plain, 0, {}, std::move(text)}, languages, stemmers_)) {
        if (std::ranges::find(group.forms, form) == group.forms.end()) group.forms.push_back(std::move(form));
      }
    }
  }

  // Uses the rarest words of a long query: they decide the ranking, and a megabyte costs no more than a page.
  static std::vector<WordGroup> known_words(const std::vector<TermGroup>& groups, const Xapian::Database& database) {
    std::vector<WordGroup> words;
    const double all = database.get_doccount();
    for (const TermGroup& group : groups) {
      WordGroup word{{}, group.count, 0};
      double stemmed = 0, others = 0;
      for (const std::string& form : group.forms) {
        const double chunks = database.get_termfreq(form);
        if (chunks == 0) continue;
        // A chunk has the stems of one language only; otherwise the forms are assumed to occur independently.
        form[0] == stem_prefix ? stemmed += chunks : others += chunks - others * chunks / all;
        word.forms.push_back(form);
      }
      stemmed = std::min(stemmed, all);
      word.chunks = stemmed + others - stemmed * others / all;
      if (!word.forms.empty()) words.push_back(std::move(word));
    }
    if (words.size() <= limits::query_terms_max) return words;
    std::vector<std::size_t> rarest(words.size());
    std::iota(rarest.begin(), rarest.end(), 0);
    std::ranges::stable_sort(rarest, {}, [&](std::size_t i) { return words[i].chunks; });
    rarest.resize(limits::query_terms_max);
    std::ranges::sort(rarest);
    std::vector<WordGroup> kept;
    for (const std::size_t i : rarest) kept.push_back(std::move(words[i]));
    return kept;
  }

  static Query scored(const std::vector<WordGroup>& words) {
    std::vector<Query> queries;
    for (const WordGroup& word : words) {
      std::vector<Query> forms;
      for (const std::string& form : word.forms) forms.emplace_back(form, word.count);
      queries.push_back(forms.size() == 1 ? forms.front() : Query(Query::OP_SYNONYM, forms.begin(), forms.end()));
    }
    return Query(Query::OP_OR, queries.begin(), queries.end());
  }

  const OpenDatabases databases_;
  const std::shared_ptr<IndexChanges> changes_;
  std::uint64_t seen_ = never;  // number of commits when the view was opened
  std::uint64_t rewritten_seen_ = never;
  View view_;
  Stemmers stemmers_;
  WordMatch::Sums sums_;
};

}  // namespace

Result<std::unique_ptr<LexicalReader>> open_lexical_reader(OpenDatabases databases,
                                                           std::shared_ptr<IndexChanges> changes) {
  auto reader = std::make_unique<XapianReader>(std::move(databases), std::move(changes));
  RETURN_IF_ERROR(reader->start());
  return std::unique_ptr<LexicalReader>(std::move(reader));
}

}  // namespace muniment::retrieval
