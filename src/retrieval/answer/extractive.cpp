// Scores sentences by the weights of the question's words that they have, the words that only their passage, title or
// heading has, and the passage's score.
#include "retrieval/answer/extractive.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/limits.hpp"
#include "retrieval/answer/question_words.hpp"
#include "retrieval/text/document_text.hpp"

namespace muniment::retrieval {
namespace {

constexpr double context_share = .5;       // of a word that the passage has, but not the sentence
constexpr double passage_power = 1;        // of the passage's score, relative to the best one
constexpr double also_share = .8;          // of the best sentence's score, for a further sentence
constexpr std::size_t short_letters = 12;  // a shorter sentence ("Yes.", a heading) answers little
constexpr double short_factor = .5;

struct Scored {
  std::size_t source = 0;
  Span span;
  std::vector<bool> found;  // by word of the question
  double own = 0;           // weight of its words
  double around = 0;        // weight of the words that only its passage has
  double score = 0;
};

constexpr std::size_t ideograph_letters = 3;  // that a character of a script without spaces counts for

std::size_t letters_of(std::string_view text) {
  std::size_t count = 0;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint here = decode_utf8(text, at);
    if (is_letter_or_digit(here.value)) count += is_ideographic(here.value) ? ideograph_letters : 1;
    at += std::max<std::size_t>(here.size, 1);
  }
  return count;
}

// A heading or a rule of Markdown names what follows and does not state it; a question is no answer.
bool states_nothing(std::string_view sentence) {
  const CodePoint last = code_point_before(sentence, sentence.size());
  return sentence.starts_with('#') || letters_of(sentence) == 0 || last.value == '?' || last.value == U'？' ||
         last.value == U'؟';
}

class Extraction {
 public:
  Extraction(QuestionWords& words, std::span<const AnswerSource> sources) : words_(words), sources_(sources) {}

  Draft draft() {
    for (std::size_t i = 0; i < sources_.size(); ++i) read(i);
    std::vector<std::vector<bool>> found;
    for (const Scored& sentence : sentences_) found.push_back(sentence.found);
    words_.weigh(found);
    for (Scored& sentence : sentences_) score(sentence);
    prefer_newer();
    return select();
  }

 private:
  void read(std::size_t number) {
    const AnswerSource& source = sources_[number];
    std::vector<bool> around = words_.found_in(source.title, source.language);
    const std::vector<bool> heading = words_.found_in(source.heading, source.language);
    for (std::size_t word = 0; word < around.size(); ++word) around[word] = around[word] || heading[word];
    for (const Span span : sentences_of(source.text)) {
      Scored sentence{number, span, words_.found_in(piece_of(source.text, span), source.language)};
      for (std::size_t word = 0; word < around.size(); ++word) around[word] = around[word] || sentence.found[word];
      sentences_.push_back(std::move(sentence));
    }
    around_.push_back(std::move(around));
    best_passage_ = std::max(best_passage_, source.score);
  }

  void score(Scored& sentence) const {
    const AnswerSource& source = sources_[sentence.source];
    const std::string_view text = piece_of(source.text, sentence.span);
    for (std::size_t word = 0; word < sentence.found.size(); ++word) {
      if (!sentence.found[word] && !around_[sentence.source][word]) continue;
      (sentence.found[word] ? sentence.own : sentence.around) += words_.weight(word);
    }
    const double passage = best_passage_ > 0 ? std::max(source.score, 0.0) / best_passage_ : 1;
    sentence.score = (sentence.own + context_share * sentence.around) * std::pow(passage, passage_power);
    if (letters_of(text) < short_letters) sentence.score *= short_factor;
    if (states_nothing(text)) sentence.score = 0;
  }

  // Returns the source's sentence with most of the words, which states something; nullptr: it has none. The score does
  // not tell, since the last candidate of a search has the score 0.
  Scored* best_of(std::size_t source) {
    Scored* best = nullptr;
    for (Scored& sentence : sentences_) {
      if (sentence.source != source || states_nothing(piece_of(sources_[source].text, sentence.span))) continue;
      if (best == nullptr || best->own < sentence.own) best = &sentence;
    }
    return best;
  }

  // A newer fact answers as well as the one that it may replace. Newer facts precede older ones, so that a chain of
  // them is followed from its end.
  void prefer_newer() {
    for (std::size_t older = sources_.size(); older-- > 0;) {
      if (!sources_[older].newer) continue;
      const Scored* const before = best_of(older);
      Scored* const now = best_of(*sources_[older].newer);
      if (before == nullptr || now == nullptr || now->score >= before->score) continue;
      now->score = before->score;
      now->own = std::max(now->own, before->own);
    }
  }

  Draft select() {
    std::ranges::stable_sort(sentences_, std::greater<>{}, &Scored::score);
    Draft draft;
    draft.words = words_.size();
    std::vector<const Scored*> chosen;
    std::set<std::string_view> texts;
    for (const Scored& sentence : sentences_) {
      if (chosen.size() == limits::answer_sentences_max || sentence.score <= 0) break;
      if (!chosen.empty() && sentence.score < also_share * chosen.front()->score) break;
      if (texts.insert(piece_of(sources_[sentence.source].text, sentence.span)).second) chosen.push_back(&sentence);
    }
    if (!chosen.empty()) draft.coverage = std::min(chosen.front()->own, 1.0);
    std::ranges::sort(chosen, {}, [](const Scored* one) { return std::pair(one->source, one->span.start); });
    for (const Scored* one : chosen) {
      draft.sentences.push_back(
          {std::string(piece_of(sources_[one->source].text, one->span)), {{one->source, one->span}}, true});
    }
    return draft;
  }

  QuestionWords& words_;
  const std::span<const AnswerSource> sources_;
  std::vector<Scored> sentences_;
  std::vector<std::vector<bool>> around_;  // words of each passage, its title and its heading
  double best_passage_ = 0;
};

}  // namespace

Result<Draft> ExtractiveDrafter::draft(const DraftRequest& request, Deadline) const {
  std::vector<std::string_view> languages;
  for (const AnswerSource& source : request.sources) languages.push_back(source.language);
  QuestionWords words(request.question, languages);
  return Extraction(words, request.sources).draft();
}

}  // namespace muniment::retrieval
