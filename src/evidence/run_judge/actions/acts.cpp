// Finds actions by the forms of their verbs.
#include "evidence/run_judge/actions/acts.hpp"

#include <algorithm>
#include <utility>

#include "evidence/run_judge/mood.hpp"
#include "evidence/run_judge/words.hpp"

namespace muniment::evidence::run_judge {
namespace {

const std::string between =
    R"((?:(?:now|also|just|successfully|already|then|both|all|each|since|officially|fully|automatically|finally|promptly|instead|have|has|had|been|gone ahead and|went ahead and|got|gotten)\s+)*)";
const std::string particles = R"((?:\s+(?:up|out|off|back|over|through))?)";

struct Forms {
  Pattern active{R"(\b(?:i|we|i['’]ve|we['’]ve)\s+)" + between + "(" + past_forms() +
                 R"(|rolled back|checked in|signed up|set up)\b)"};
  Pattern other{R"(\b(?:i|we|i['’]ve|we['’]ve)\s+)" + between + R"((?:gone ahead and )?([a-z]{3,}ed)\b)"};
  Pattern idle{
      R"(^(?:(?:re)?(?:check|review|verifi|validat|confirm|look|search|inspect|examin|analy[sz]|compar|calculat|comput|estimat|count|list|identifi|locat|retriev|notic|not|consider|tri|attempt|want|need|us|test|discover|describ|mention|explain|ask|decid|assum|receiv|investigat|explor|reproduc|summari[sz]|provid|includ|prepar|learn|fail|ensur|observ|determin|figur|walk|scann|brows|tracked|trac|load|gather|collect|view|access|consult|query|queri|fetch|extract|cover|outlin|detail|highlight|suggest|recommend|propos|hop|plann|intend|expect|believ|pars|start|finish|help|respond|answer|address|focus|follow|encounter|experienc|misse?|skipp|avoid|limit|wait|watch|stay|appreciat|apologi[sz]|understand|offer|select|pick|prefer|mean|promis|claim|limit|exhaust|inform|appli?|measur|evaluat|assess|studi|debugg|diagnos|pinpoint|narrow|deriv|conclud|shar|presum|guess|accident|mistaken|refus|declin|agre|work|complet|manag|us|happen|indicat|believ|present|display|show)ed)$)"};
  Pattern able{R"(\b(?:i|we)\s+(?:was|were|have been|had been)?\s+(?:(?:successfully|now|also)\s+)*()" + base_forms() +
               R"()\b)"};
  Pattern opening{
      R"(^\W*(?:(?:done|great|great news|good news|okay|ok|sure|perfect|excellent|wonderful|absolutely|all set|all done|success|yes|certainly|of course|update|summary)\b[\s,:;.!–—-]*)?(?:(?:successfully|also|then|just|now)\s+)*()" +
      past_forms() + R"(|rolled back|checked in|signed up)\b)"};
  Pattern further{
      R"((?:,\s*(?:and\s+)?|;\s*|:\s*|—\s*|–\s*|\s-\s|\band\s+)(?:(?:then|also|have|has|finally|just|successfully)\s+)*()" +
      past_forms() + R"(|rolled back|checked in|signed up)\b)"};
  Pattern passive{R"((?:\b(?:is|are|was|were|am|been)|['’]s been|['’](?:re|s|ve been))\s+)" + between + "(" +
                  past_forms() + R"(|rolled back|checked in|signed up)\b)"};
  Pattern nominal{R"(^\W*(?:[^\s,;:.!?]+\s+){1,9}?(?:successfully\s+|now\s+)?()" + past_forms() +
                  R"()(?:\s*$|\s*[.,;:!(–—-]|\s+(?:for|to|on|at|with|from|in|via|successfully|under|as|of)\b))"};
  Pattern state{
      R"((?:\b(?:is|are|was|were|has been|have been|went|has gone|have gone)|['’](?:s|re))\s+(?:(?:now|all|fully|also|already|officially|successfully)\s+)*(complete|done|successful|in place|taken care of|sorted(?: out)?|handled|live|on (?:its|the) way|good to go|through|all set|set|yours)\b|['’]re\s+(now)\s+(?:on|in|at)\b|\b(?:is|are)\s+(now)\s+(?:on|in|at|set)\b)"};
  Pattern finite{
      R"(\b(?:is|are|was|were|will|has|have|had|can|could|should|would|did|does|do|need|needs|i|we|you|they|it|that|which|who|with|after|once|if|when|before)\b)"};
  // Boundaries of the clause of a verb.
  Pattern ends{
      R"(;|—|\b(?:but|however|although|though|because|which|who|so that|so you|you (?:will|can|should|may)|and you|will|please|if|once|let me|unless|instead of|rather than)\b|\.\s)"};
  Pattern earlier{
      R"(\b(?:from|instead of|rather than|previously|was|old|original|originally|replacing|formerly|currently|by|before|within|as of|after|since)\s+(?:the\s+|your\s+|a\s+|an\s+|old\s+|original\s+|previous\s+)*$)"};
  Pattern modest{
      R"(\b(?:request(?:ed|s)?|pending|submitted|queued?|waiting|awaiting|initiated|in progress|approval|draft(?:ed)?|waitlist(?:ed)?|tentative(?:ly)?|being processed|on hold|held|under review|not yet|dry[- ]run|proposed|preview|scheduled to|staged)\b)"};
  Pattern all{R"(\b(?:all|both|every|each|everyone|everybody|entire)\b)"};
  Pattern counted{
      R"((?:^|[\s(])(\d{1,6}|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)\s+(?:of\s+(?:the|your|these|them)\s+)?(?:[\w-]+\s+){0,2}?(?:contacts?|leads?|customers?|accounts?|records?|rows?|invoices?|emails?|messages?|tickets?|deals?|tasks?|users?|bookings?|reservations?|appointments?|meetings?|orders?|invitations?|invites|entries|companies|opportunities|notifications?|cases?|subscribers?|reminders?|files?|refunds?|seats?|rooms?)\b)"};
  Pattern written_here{
      R"(^\s+(?:(?:a|an|the|some|my|your|you|up|this|that|every|any|more)\s+)*(?:[\w-]+\s+){0,1}(?:summary|list|itinerary|outline|overview|explanation|plan|comparison|example|breakdown|options?|suggestions?|recommendations?|notes? below|steps?|sure|sense|progress|mistake|assumption|decision|use|up|effort|attempt)\b)"};
  Pattern others{
      R"(\bby (?:the|your|our|a|an|you|another|someone|their)\b|\b(?:which|that|who|originally|when|before)\s+$)"};
  Pattern history{
      R"(\b(?:ago|within the last|within the past|eligible|window|policy|earlier|upcoming|existing|current|previous|prior|previously|at the time|since (?:the|your|this|it|you))\b)"};
  Pattern label{R"(^\s*(?:at|by|on|date|time)?\s*\W?:)"};
  Pattern past{R"(\b(?:was|were)\s+(?:(?:already|both|all|also)\s+)*$)"};
  Pattern word{R"([A-Za-z][A-Za-z'’-]*)"};
  Pattern preposition{R"(^(?:for|on|to|at|from|with|in|by|of|under|via|using|into|as)$)"};
};

const Forms& forms() {
  static const Forms patterns;
  return patterns;
}

struct Hit {
  std::size_t begin = 0, end = 0;  // of the whole match
  std::size_t verb_begin = 0;
  std::string verb;
  bool active = false;
  bool bare = false;  // a passive without "has been" or "now", or a nominal one
  bool state = false;
};

// Blanks "was able to" and "managed to", which assert the verb after them.
Sentence plainly(const Sentence& sentence) {
  static const Pattern able(R"(\b(?:able to|managed to)\b)");
  Sentence changed = sentence;
  for (std::size_t from = 0;;) {
    const auto found = able.find(changed.masked, from);
    if (!found) return changed;
    std::fill(changed.masked.begin() + static_cast<std::ptrdiff_t>(found->begin),
              changed.masked.begin() + static_cast<std::ptrdiff_t>(found->end), ' ');
    from = found->end;
  }
}

void add_hits(std::vector<Hit>& hits, const Sentence& sentence, const Pattern& pattern, bool active, bool bare) {
  static const Pattern yours(R"(\byou(?:['’]re| are|['’])?\s*\S{0,3}$)");
  const std::string_view masked = sentence.masked;
  for (std::size_t from = 0; hits.size() < 2 * acts_max;) {
    const auto match = pattern.find(masked, from);
    if (!match) return;
    from = std::max(match->end, match->begin + 1);
    Hit hit{.begin = match->begin,
            .end = match->end,
            .verb_begin =
                match->group.empty() ? match->begin : static_cast<std::size_t>(match->group.data() - masked.data()),
            .verb = std::string(match->group),
            .active = active,
            .bare = bare &&
                    lowered(masked.substr(match->begin, match->end - match->begin)).find("been") == std::string::npos &&
                    !yours.in(masked.substr(0, match->begin + 3)),
            .state = false};
    const bool known =
        std::any_of(hits.begin(), hits.end(), [&](const Hit& one) { return one.verb_begin == hit.verb_begin; });
    if (!known) hits.push_back(std::move(hit));
  }
}

std::vector<Hit> hits_in(const Sentence& sentence) {
  const Forms& known = forms();
  std::vector<Hit> hits;
  add_hits(hits, sentence, known.active, true, false);
  add_hits(hits, sentence, known.able, true, false);
  add_hits(hits, sentence, known.other, true, false);
  std::erase_if(hits, [&](const Hit& hit) {
    return base_of(lowered(hit.verb)).empty() && !hit.verb.starts_with("rolled") && known.idle.in(hit.verb);
  });
  add_hits(hits, sentence, known.opening, true, false);
  if (!hits.empty()) {
    const std::size_t first = hits.front().verb_begin;
    add_hits(hits, sentence, known.further, true, false);
    std::erase_if(hits, [&](const Hit& hit) { return hit.verb_begin < first; });
  }
  add_hits(hits, sentence, known.passive, false, true);
  const std::size_t before = hits.size();
  if (before == 0) {
    add_hits(hits, sentence, known.nominal, false, true);
    if (!hits.empty() && (known.finite.in(std::string_view(sentence.masked).substr(0, hits[0].verb_begin)) ||
                          known.finite.in(std::string_view(sentence.masked).substr(hits[0].end, 40))))
      hits.clear();
  }
  // A passive after an active verb reports a content: "a note saying that the budget is approved".
  std::erase_if(hits, [&](const Hit& hit) {
    return hit.bare && !hit.active && std::any_of(hits.begin(), hits.end(), [&](const Hit& one) {
             return one.active && one.verb_begin < hit.verb_begin;
           });
  });
  if (hits.empty()) {
    add_hits(hits, sentence, known.state, false, false);
    for (Hit& hit : hits) hit.state = true;
  }
  std::sort(hits.begin(), hits.end(), [](const Hit& a, const Hit& b) { return a.verb_begin < b.verb_begin; });
  return hits;
}

// Adds the known nouns of the object: after an active verb, before a passive one, up to the first preposition.
void add_nouns(Act& act, std::string_view phrase) {
  const Forms& known = forms();
  constexpr std::size_t words_max = 8;
  std::size_t from = 0;
  for (std::size_t count = 0; count < words_max; ++count) {
    const auto match = known.word.find(phrase, from);
    if (!match) return;
    from = match->end;
    const std::string word = lowered(phrase.substr(match->begin, match->end - match->begin));
    if (known.preposition.in(word)) {
      if (count > 0) return;
      continue;
    }
    const bool pull = word == "request" && !act.nouns.empty() && thing_of(act.nouns.back()) == request_thing;
    if (pull) continue;
    if (thing_of(word) != 0 || effects_of_noun(word) != 0) act.nouns.push_back(word);
  }
}

// Narrows a verb such as "processed" by its object.
void narrow(Act& act) {
  if (act.effects != any_effect || act.unknown) return;
  Effects implied = 0;
  for (const std::string& noun : act.nouns) implied |= effects_of_noun(noun);
  if ((implied & ~creates) != 0) implied &= ~creates;
  if (implied == creates) implied |= updates;
  if (implied != 0) act.effects = implied;
}

void add_values(Act& act) {
  const Forms& known = forms();
  for (const auto& [found, kept] :
       {std::pair{values_in(act.clause), &act.values}, {names_in(act.clause), &act.names}}) {
    for (const Value& value : found) {
      const std::size_t lead = value.begin > 40 ? value.begin - 40 : 0;
      if (known.earlier.in(std::string_view(act.clause).substr(lead, value.begin - lead))) continue;
      kept->push_back(value);
    }
  }
  if (const auto count = known.counted.find(act.clause)) {
    const auto at = static_cast<std::size_t>(count->group.data() - act.clause.data());
    for (const Value& value : act.values) {
      if (value.type == Value::Type::number && value.begin == at) act.count = static_cast<std::int64_t>(value.number);
    }
  }
}

// Returns where the clause ends. A code that is named after a semicolon belongs to it.
std::optional<std::size_t> end_of_clause(std::string_view masked, std::size_t from) {
  static const Pattern code(
      R"(^;\s+(?:the|your|its)\s+(?:new\s+)?(?:confirmation|reference|booking|ticket|order|tracking)\b)");
  for (auto found = forms().ends.find(masked, from); found; found = forms().ends.find(masked, found->end)) {
    if (!code.in(masked.substr(found->begin))) return found->begin;
  }
  return std::nullopt;
}

Act act_of(const Sentence& sentence, const Hit& hit, std::size_t clause_begin, std::size_t clause_end) {
  const Forms& known = forms();
  const std::string_view text = sentence.text;
  const std::string verb = lowered(hit.verb);
  Act act;
  act.verb = hit.state ? "" : std::string(base_of(verb));
  if (act.verb.empty() && !hit.state)
    act.verb = verb.starts_with("rolled") ? "rollback" : verb.starts_with("check") ? "checkin" : verb;
  act.effects = hit.state ? any_effect : effects_of_verb(act.verb);
  act.unknown = act.effects == 0 && act.verb != "rollback";
  if (act.unknown && act.verb.ends_with("ed")) act.verb.resize(act.verb.size() - 2);
  if (act.effects == 0) act.effects = any_effect;
  static const Pattern request(R"(\brequest\b)");
  if (act.verb == "submit" && request.in(sentence.text)) act.effects = any_effect;
  act.verb_at = hit.verb_begin;
  act.clause = std::string(text.substr(clause_begin, clause_end - clause_begin));
  act.active = hit.active;
  // "Paid with Visa: $60" is a line of a list.
  static const Pattern line(R"(^\W*[A-Z][\w /-]{1,40}\W{0,4}:\W{0,4}\s*\S)", false);
  if (hit.begin == 0 && line.in(sentence.text)) act.active = false;
  act.past = !hit.active && known.past.in(std::string_view(sentence.masked).substr(0, hit.verb_begin));
  const std::string_view masked = sentence.masked;
  const std::size_t comma = masked.substr(0, hit.verb_begin).find_last_of(",;:");
  const std::size_t subject = comma == std::string_view::npos ? clause_begin : std::max(clause_begin, comma);
  add_nouns(act, hit.active ? masked.substr(hit.end, clause_end - std::min(hit.end, clause_end))
                            : masked.substr(subject, hit.verb_begin - std::min(subject, hit.verb_begin)));
  narrow(act);
  act.modest = known.modest.in(act.clause);
  act.all = known.all.in(act.clause);
  add_values(act);
  return act;
}

// Returns whether the hit states no action of the agent: an attribute, an action of others, a text in the answer.
bool is_no_act(const Sentence& sentence, const Hit& hit, const Act& act) {
  const Forms& known = forms();
  const std::string_view masked = sentence.masked;
  if (known.others.in(masked.substr(hit.end, 12)) || known.others.in(masked.substr(0, hit.begin))) return true;
  if (!hit.active && known.history.in(masked)) return true;
  if (known.label.in(masked.substr(hit.end, 12)) && hit.begin == 0 && act.nouns.empty()) return true;
  if (hit.state) return act.nouns.empty() && act.values.empty();
  if (hit.bare && act.nouns.empty() && act.values.empty() && act.names.empty()) return true;
  if ((act.verb == "make" || act.verb == "put" || act.verb == "set" || act.verb == "complete" ||
       act.verb == "process" || act.verb == "confirm" || act.verb == "place" || act.verb == "start" ||
       act.verb == "leave" || act.verb == "hold" || act.verb == "file") &&
      act.nouns.empty() && act.values.empty())
    return true;
  if (act.verb == "run" || act.verb == "execute") {
    const bool known_noun = std::any_of(act.nouns.begin(), act.nouns.end(),
                                        [](const std::string& noun) { return effects_of_noun(noun) != 0; });
    if (!known_noun) return true;
  }
  static const Pattern planned(R"(^\s+to\s+(?:depart|arrive|leave|return|start|begin|be|end|take|land|run|expire)\b)");
  if (!hit.active && planned.in(masked.substr(hit.end, 20))) return true;
  static const Pattern nothing(R"(^\s+(?:no|nothing|none|neither)\b)");
  if (nothing.in(masked.substr(hit.end, 12))) return true;
  const std::string_view object = masked.substr(hit.end, 40);
  return act.active && act.nouns.empty() && known.written_here.in(object.substr(0, object.find_first_of(".,;:")));
}

}  // namespace

void add_details(Act& act, const std::string& lines) {
  if (lines.empty()) return;
  const std::size_t sentence = act.clause.size();
  act.clause += " " + lines;
  act.values.clear();
  act.names.clear();
  const auto count = act.count;
  add_values(act);
  act.count = count;
  // An amount in such a line is that of a part.
  std::erase_if(act.values,
                [&](const Value& value) { return value.type == Value::Type::money && value.begin >= sentence; });
}

void add_context(Act& act, std::string_view message) {
  static const Pattern undoing(
      R"(\b(?:cancel|revert|roll(?:ed|ing)? back|rollback|undo|undid|delet|void|remov|restor|reset))");
  static const Pattern pending(
      R"(\b(?:pending|queued?|waiting for|awaiting|draft|waitlist(?:ed)?|not yet|in progress|under review|approval|dry[- ]run|being processed|tentative(?:ly)?|unconfirmed|not been (?:sent|confirmed)|on hold|accepted)\b)");
  static const Pattern failure(
      R"(\b(?:fail(?:ed|s|ure)?|could ?n['’]?o?t|unable|skipped|bounced|except|rejected|errors?|did ?n['’]?o?t|declined|not found|missing|remaining)\b)");
  act.tells_undoing = undoing.in(message);
  act.tells_pending = pending.in(message);
  act.tells_failure = failure.in(message);
}

std::vector<Act> acts_in(const Sentence& original) {
  std::vector<Act> acts;
  if (original.question) return acts;
  const Sentence sentence = plainly(original);
  const std::vector<Hit> hits = hits_in(sentence);
  std::size_t from = 0;
  for (std::size_t i = 0; i < hits.size() && acts.size() < acts_max; ++i) {
    const Hit& hit = hits[i];
    std::size_t end = i + 1 < hits.size() ? std::max(hits[i + 1].active ? hits[i + 1].begin : hit.end, hit.end)
                                          : sentence.masked.size();
    if (const auto boundary = end_of_clause(sentence.masked, hit.end))
      end = std::min(end, std::max(*boundary, hit.end));
    const std::size_t begin = std::min(from, hit.begin);
    from = end;
    if (mood_of(sentence, hit.begin, hit.end, false) != Mood::asserted) continue;
    Act act = act_of(sentence, hit, begin, end);
    if (!is_no_act(sentence, hit, act)) acts.push_back(std::move(act));
  }
  return acts;
}

}  // namespace muniment::evidence::run_judge
