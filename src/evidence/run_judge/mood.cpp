// Determines the mood of a claim from the words around it.
#include "evidence/run_judge/mood.hpp"

#include <string>
#include <string_view>

#include "evidence/run_judge/words.hpp"

namespace muniment::evidence::run_judge {
namespace {

struct Moods {
  // "I can see that": the rest of the sentence is asserted.
  Pattern witness{
      R"(\b(?:i|we|you)(?: can| could)?(?: now| also)? (?:see|confirm|verify|say|report|conclude)(?: that)?\b)"
      R"(|\b(?:happy|glad|pleased) to (?:report|say|confirm)(?: that)?\b|\b(?:can|may) (?:now )?confirm(?: that)?\b)"};
  // if_clause governs the rest of the sentence; a comma ends the scope of when_clause.
  Pattern if_clause{
      R"(\b(?:if|once|unless|until|assuming|provided(?: that)?|in case|as soon as|whether|suppose|supposing)\b)"};
  Pattern when_clause{R"(\b(?:when|whenever|after|before|while|by the time|so that|so (?:i|we|you) can)\b)"};
  Pattern trailing_if{R"(^\s*(?:if|once|unless|only if|only when|provided|assuming|as long as)\b)"};
  // "make sure that", "let us check whether": the rest of the sentence is an open question.
  Pattern inquiry{
      R"(\b(?:verify|check|ensures?|ensuring|confirm|see|make certain|make sure|makes sure|making sure|determine|find out|guarantees?|)"
      R"(verifying|checking|confirming|expects?|expecting|wants?|require[sd]?|must|needs?|reproduces?|reproducing|demonstrates?)\b)"};
  Pattern future{
      R"(\b(?:will|would|should|shall|could|might|may|can|cannot|must|going to|gonna|need(?:s|ed)? to|ha(?:ve|s) (?:yet )?to|wants? to|)"
      R"(wanted to|plan(?:s|ned)? to|about to|aims? to|supposed to|let me|let us|to be|please|remains? to|intends? to|in order to|yet to|)"
      R"(try(?:ing)? to|tried to|attempt(?:s|ed|ing)? to|how to|way to|goal|next step|todo|ready to|able to|allow(?:s|ed|ing)?|enabl(?:es?|ed|ing)|lets?|letting|so as to)\b|['’]ll\b|['’]d\b|\blet['’]s\b)"};
  Pattern guess{
      R"(\b(?:seems?|seemed|appears?|appeared|probably|likely|maybe|perhaps|presumably|hopefully|i think|i believe|i guess|i assume|)"
      R"(supposedly|apparently|looks? like|possibly|potentially|potential|hope|hoping|unclear|not sure|unsure|imagine|pretend|for example|e\.g)\b)"};
  Pattern other_state{
      R"(\b(?:previously|originally|used to|beforehand|upstream|before (?:the|my|our|this|any|that) (?:change|fix|edit|patch|commit)s?|)"
      R"(on (?:main|master)|in (?:the )?(?:previous|earlier|older|last) (?:version|release|run)s?)\b)"};
  Pattern others_word{
      R"(\b(?:users?|issue|reports?|bug report|description|ticket|task|instructions?|docs?|documentation|readme|comments?|docstring|changelog|)"
      R"(commit message|message|they|he|she|someone|reviewer|author)s? (?:\w+ )?(?:says?|said|stat(?:es|ed)|describ(?:es|ed)|mention(?:s|ed)|)"
      R"(claim(?:s|ed)|ask(?:s|ed)|requir(?:es|ed)|suggest(?:s|ed)|wants?|wanted|told|wrote|reported)\b|\baccording to\b|\basked (?:me|us) to\b)"};
  Pattern part{
      R"(\b(?:some|most|many|few|half|several|part|nearly all|almost all|only|a couple|majority)(?: of)?(?: the)?(?: \w+)?\s*$|\b(?:nearly|almost|mostly|partially|partly)\b)"};
  Pattern negation{
      R"(\b(?:not|never|cannot|no longer|fail(?:s|ed)? to|no|none|neither|nor|hardly|barely|unable to|nothing|without|isn|aren|wasn|weren|zero)\b|(?:^|\s)0\s|n['’]t\b)"};
  Pattern double_negation{R"(\b(?:not only|no doubt|without (?:a )?doubt|not just|no problem)\b)"};
  Pattern contrast{R"([;:—]|\bbut\b)"};
  // The beginning of a new main clause, which ends the scope of earlier conditions.
  Pattern new_clause{
      R"([;:—(]|\s-\s|\b(?:but|however|because|although|though|since|therefore|thus|and (?:i|we|now|then|they|it|the|all)|, (?:i|we))\b)"};
  Pattern comma{R"([,;:—(]|\b(?:and|but|because|although|though|however|since)\b)"};
};

const Moods& moods() {
  static const Moods patterns;
  return patterns;
}

// Returns the text after the last boundary.
std::string_view after_last(std::string_view text, const Pattern& boundary) {
  const auto last = boundary.find_last(text);
  return last ? text.substr(last->end) : text;
}

// Returns whether the scope of a pattern reaches the end of the text: no comma follows its match.
bool governs_end(std::string_view text, const Pattern& pattern) {
  const auto last = pattern.find_last(text);
  return last && text.find(',', last->end) == std::string_view::npos;
}

bool is_conditional(const Moods& known, std::string_view before, std::string_view after) {
  return known.if_clause.in(after_last(before, known.contrast)) || known.trailing_if.in(after) ||
         governs_end(after_last(before, known.new_clause), known.when_clause);
}

// Returns the text after "I can see that", unless that phrase is part of a condition.
std::string_view after_witness(const Moods& known, std::string_view before) {
  const auto witness = known.witness.find_last(before);
  if (!witness || before.find_first_of(",;", witness->end) != std::string_view::npos) return before;
  const std::string_view lead = before.substr(0, witness->end);
  return known.when_clause.in(lead) || known.if_clause.in(lead) ? before : before.substr(witness->end);
}

}  // namespace

Mood mood_of(const Sentence& sentence, std::size_t begin, std::size_t end, bool own_negation) {
  if (sentence.question) return Mood::open;
  const Moods& known = moods();
  const std::string_view masked = sentence.masked;
  const std::string_view before = after_witness(known, masked.substr(0, begin));
  if (is_conditional(known, before, masked.substr(end))) return Mood::open;
  const std::string_view own = masked.substr(begin, end - begin);
  const std::string_view clause = after_last(before, known.new_clause);
  const std::string spoken = std::string(clause) + std::string(own);
  if (known.future.in(spoken) || known.guess.in(spoken) || governs_end(clause, known.inquiry)) return Mood::open;
  if (known.others_word.in(before) || known.other_state.in(masked)) return Mood::open;
  std::string near = std::string(after_last(before, known.comma));
  if (known.part.in(near)) return Mood::open;
  if (!own_negation) near += own;
  return known.negation.in(near) && !known.double_negation.in(near) ? Mood::denied : Mood::asserted;
}

}  // namespace muniment::evidence::run_judge
