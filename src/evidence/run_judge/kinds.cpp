// Recognises claims in sentences by a table of patterns.
#include "evidence/run_judge/kinds.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include "evidence/run_judge/mood.hpp"
#include "evidence/run_judge/words.hpp"

namespace muniment::evidence::run_judge {
namespace {

// Components of the patterns below.
const std::string adverbs =
    R"((?:(?:now|all|still|also|both|again|just|then|too|currently|fully|correctly|successfully|finally|already|properly|have|has|had|been|each)\s+)*)";
// "I have", "and", or the beginning of a clause: a participle after it is a verb, not an attribute.
const std::string doer =
    R"((?:\b(?:i|we)(?:['’]ve|\s+have|\s+had)?\s+|^\W*|[,;:(]\s*(?:and\s+|then\s+)*|\band\s+))" + adverbs;
const std::string has_been = R"(\s+(?:is|are|was|were|has been|have been|got|gets)\s+)" + adverbs;
const std::string some_words = R"((?:\s+[^\s,;:]+){0,6}?)";
const std::string test_noun =
    R"((?:\b(?:unit|doc|integration)?tests?\b|\btest(?:_\w|q|s?/)[\w./:-]*|\b[\w/-]+_tests?(?:\.\w+)?\b|\bspecs\b|\b(?:test )?suite\b|)"
    R"(\btest (?:suites?|cases?|files?|scripts?|classes|modules?|runs?)\b))";
const std::string about =
    R"((?:\s+(?:in|for|of|from|that|which|i|we|related to|on|with|under|\()\s*[^,;:]{1,80}?\)?)?)";
const std::string faults = R"((?:errors?|warnings?|issues?|problems?|violations?|complaints?|findings?|offen[cs]es))";
const std::string fine = R"((?:success(?:ful)?(?:ly)?|cleanly|fine|without\s+(?:any\s+|further\s+)?)" + faults + R"())";
const std::string passes =
    R"((?:pass(?:es|ed)?|succeed(?:s|ed)?|(?:is|are|was|were|comes? back|came back|runs?|ran)\s+)" + adverbs +
    R"((?:passing|passed|green|successful|succeeding|clean|cleanly|happy|ok|successfully)))";
const std::string fails =
    R"((?:fail(?:s|ed)?|(?:is|are|was|were|keeps?|kept)\s+)" + adverbs + R"((?:failing|failed|red|broken)))";
const std::string trouble =
    R"((?:\b(?:bugs?|issues?|problems?|errors?|defects?|regressions?|crash(?:es)?|failures?|vulnerabilit(?:y|ies)|leaks?|race|deadlock|typos?|warnings?|root cause|exception|test|tests)\b))";
const std::string linter =
    R"((?:\b(?:lint(?:er|ers|ing|s)?|eslint|flake8|ruff|pylint|clippy|clang-tidy|shellcheck|black|prettier|golangci-lint|rubocop|style checks?)\b))";
const std::string type_checker =
    R"((?:\b(?:type[- ]?check(?:s|er|ing)?|mypy|pyright|tsc|type script|typescript|types)\b))";

enum class Names : std::uint8_t { nothing, test, path, path_or_file };

struct Rule {
  Kind kind;
  Names subject;
  bool own_negation;
  Pattern pattern;
};

std::vector<Rule> test_rules() {
  std::vector<Rule> rules;
  const auto add = [&](Kind kind, Names subject, bool own_negation, const std::string& pattern) {
    rules.push_back({kind, subject, own_negation, Pattern(pattern)});
  };
  add(Kind::tests_pass, Names::test, false,
      R"(\b(\d+)(?:/\d+| (?:out )?of (?:the )?\d+)?\s+(?:\w+\s+)?(?:tests?\s+|specs?\s+|assertions?\s+)?)" + adverbs +
          R"((?:are\s+|is\s+)?pass(?:ed|ing|es)?\b)");
  add(Kind::tests_pass, Names::test, false,
      test_noun + about + R"(\s+)" + adverbs + R"((?:do\s+)?(?:not\s+)?)" + passes + R"(\b)");
  add(Kind::tests_pass, Names::test, false,
      test_noun + about + R"(\s+(?:do|did|does|is|are|was|were)(?:n['’]t| not)\s+)" + adverbs + R"(pass(?:ing|ed)?\b)");
  add(Kind::tests_pass, Names::test, false,
      R"(\bpass(?:es|ed|ing)?\s+(?:all|the|every|both)\s+(?:[\w-]+\s+){0,4}?)" + test_noun);
  add(Kind::tests_pass, Names::nothing, false,
      R"(\btests?\b[^;:]{0,80}[,;]?\s+(?:and|which|they|that|all)\s+(?:everything\s+|they\s+|of\s+them\s+|it\s+)?)" +
          adverbs + passes + R"(\b)");
  add(Kind::tests_pass, Names::nothing, true,
      R"(\b(?:no|zero|0|without(?: any)?)\s+(?:[\w-]+\s+)?(?:test failures|failing tests?|failed tests?|tests?\s+(?:\w+\s+)?fail(?:s|ed|ing|ures)?)\b)");
  add(Kind::tests_pass, Names::nothing, false, R"(\b(?:green|successful|passing)\s+test\s+(?:run|suite)s?\b)");
  add(Kind::tests_pass, Names::nothing, false, R"(\b(?:all|every)\s+(?:[\w-]+\s+){0,3}?tests?\s+(?:passing|green)\b)");
  add(Kind::tests_fail, Names::test, false, test_noun + about + R"(\s+)" + adverbs + fails + R"(\b)");
  add(Kind::tests_fail, Names::test, false,
      R"(\b([1-9]\d*)\s+(?:\w+\s+)?(?:tests?\s+)?)" + adverbs + R"((?:are\s+|is\s+)?fail(?:ed|ing|s|ures?)?\b)");
  add(Kind::tests_run, Names::nothing, false,
      R"((?:)" + doer + R"((?:(?:re-?)?ran|executed)|\b(?:have|['’]ve)\s+)" + adverbs +
          R"((?:re-?)?run)\s+(?:all\s+|both\s+)?(?:(?:the|our|these|its|full|whole|entire|existing|relevant|new|your|project|complete)\s+)*(?:[\w-]+\s+){0,3}?)" +
          test_noun);
  return rules;
}

std::vector<Rule> state_rules() {
  std::vector<Rule> rules;
  const auto add = [&](Kind kind, Names subject, bool own_negation, const std::string& pattern) {
    rules.push_back({kind, subject, own_negation, Pattern(pattern)});
  };
  add(Kind::build_succeeds, Names::nothing, false,
      R"(\b(?:build|compilation)\s+)" + adverbs + R"((?:do(?:es)?\s+)?(?:not\s+)?)" + passes + R"(\b)");
  add(Kind::build_succeeds, Names::nothing, true,
      R"(\b(?:builds?|built|compiles?|compiled)\s+)" + adverbs + fine + R"(\b)");
  add(Kind::build_succeeds, Names::nothing, true,
      R"(\b(?:no|zero|0)\s+(?:build|compil(?:e|er|ation))\s+(?:errors?|failures?)\b)");
  add(Kind::build_fails, Names::nothing, false, R"(\b(?:build|compilation)\s+)" + adverbs + fails + R"(\b)");
  add(Kind::build_fails, Names::nothing, true,
      R"(\b(?:do(?:es)?|did|wo|would)(?:n['’]t| not)\s+(?:even\s+)?(?:build|compile)\b)");
  add(Kind::lint_clean, Names::nothing, true,
      R"(\b(?:no|zero|0|without(?: any)?)\s+(?:[\w-]+\s+)?)" + linter + R"(\s+)" + faults + R"(\b)");
  add(Kind::lint_clean, Names::nothing, false,
      linter + R"((?:\s+(?:checks?|errors?))?\s+)" + adverbs + passes + R"(\b)");
  add(Kind::lint_clean, Names::nothing, true,
      linter + R"(\s+(?:now\s+)?(?:reports?|reported|finds?|found|shows?|showed)\s+(?:no|zero|0)\s+(?:\w+\s+)?)" +
          faults + R"(\b)");
  add(Kind::lint_clean, Names::nothing, false,
      R"(\bpass(?:es|ed)?\s+(?:the\s+|all\s+)?)" + linter + R"(|\blint[- ](?:free|clean)\b)");
  add(Kind::types_check, Names::nothing, true,
      R"(\b(?:no|zero|0|without(?: any)?)\s+(?:type|typing|mypy|pyright|typescript)\s+)" + faults + R"(\b)");
  add(Kind::types_check, Names::nothing, false, type_checker + R"((?:\s+checks?)?\s+)" + adverbs + passes + R"(\b)");
  add(Kind::types_check, Names::nothing, true,
      type_checker + R"(\s+(?:now\s+)?(?:reports?|reported|finds?|found|shows?)\s+(?:no|zero|0)\s+(?:\w+\s+)?)" +
          faults + R"(\b)");
  add(Kind::build_succeeds, Names::nothing, false,
      R"(\b(?:code|project|everything|it|crate|program|package|app|application|module|library)\s+)" + adverbs +
          R"((?:compiles|builds)(?:\s+(?:now|again|too))?\s*(?:[.,;!)]|$|\band\b|\bbut\b))");
  add(Kind::lint_clean, Names::nothing, false, linter + R"(\s+and\s+(?:[\w-]+\s+){1,3}?)" + passes + R"(\b)");
  const std::string found_by = R"(\bno\s+)" + faults + R"(\s+(?:were\s+|was\s+|are\s+)?(?:found|reported)\s+by\s+)";
  add(Kind::lint_clean, Names::nothing, true, found_by + linter);
  add(Kind::types_check, Names::nothing, true, found_by + type_checker);
  add(Kind::verified, Names::nothing, false,
      R"(\b(?:(?:all|the)\s+(?:ci\s+)?checks|everything|ci|(?:the\s+)?pipeline)\s+)" + adverbs + passes + R"(\b)");
  add(Kind::verified, Names::nothing, false,
      doer +
          R"((?:verified|confirmed|validated|tested)\s+(?:that\s+)?(?:[\w-]+\s+){0,4}?(?:works?|fix(?:es|ed)?|changes?|solution|implementation|behaviou?r|functionality|correct(?:ly|ness)?|everything|it)\b)");
  add(Kind::verified, Names::nothing, false,
      R"(\b(?:works?|working|behaves?|functions)\s+)" + adverbs +
          R"((?:as\s+(?:expected|intended|required|described)|correctly|fine|properly|perfectly)\b)");
  add(Kind::verified, Names::nothing, true,
      R"(\b(?:runs?|ran|execut(?:es|ed)|completes?|completed|finished)\s+)" + adverbs + fine + R"(\b)");
  return rules;
}

std::vector<Rule> deed_rules() {
  std::vector<Rule> rules;
  const auto add = [&](Kind kind, Names subject, bool own_negation, const std::string& pattern) {
    rules.push_back({kind, subject, own_negation, Pattern(pattern)});
  };
  const std::string mended = R"((?:fixed|resolved|solved|repaired|corrected|eliminated))";
  add(Kind::fixed, Names::nothing, false,
      doer + mended +
          R"(\s+(?:the|a|an|this|that|it|all|both|these|those|your|our|its|my|by|in|one|two|three|q+|#?\d+|\w+)\b)");
  add(Kind::fixed, Names::nothing, true, trouble + some_words + R"((?:\s+\(q+\))?)" + has_been + mended + R"(\b)");
  add(Kind::fixed, Names::nothing, false,
      R"(\b(?:it|this|that|everything)(?:['’]s|\s+(?:is|was|has been))\s+)" + adverbs + mended + R"(\b)");
  add(Kind::fixed, Names::nothing, false,
      R"((?:(?:^\W*|[,;:(]\s*|\band\s+)(?:this|that|it|which)|\b(?:this|that|my|the|our|these)\s+(?:[\w-]+\s+)?(?:change|fix|patch|update|edit|modification|commit)s?)(?:\s+ha(?:s|ve))?\s+)" +
          adverbs +
          R"((?:fix(?:es|ed)|resolv(?:es|ed)|solv(?:es|ed)|corrects)\s+(?:the|this|that|it|all|both|your|our|#?\d+)\b)");
  add(Kind::fixed, Names::nothing, true,
      R"(\bno longer\s+(?:occurs?|happens?|crashes|fails|raises?|throws?|reproduces?|exists?|present|produces?|hangs?|leaks?|appears?|triggers?)\b)");
  const std::string shipped = R"((?:deployed|released|published|shipped|rolled out))";
  add(Kind::deployed, Names::nothing, false, doer + shipped + R"(\b)");
  add(Kind::deployed, Names::nothing, false, has_been + R"((?:)" + shipped + R"(|live)\b)");
  add(Kind::deployed, Names::nothing, false,
      R"(\bdeployment\s+)" + adverbs + R"((?:succeeded|completed?|finished|(?:is|was)\s+)" + adverbs +
          R"((?:complete|successful|live|done|finished))\b)");
  add(Kind::committed, Names::nothing, false, doer + R"(committed\b|)" + has_been + R"(committed\b)");
  add(Kind::pushed, Names::nothing, false,
      doer +
          R"((?:pushed\b|(?:opened|created|submitted|raised)\s+(?:a|the)\s+(?:new\s+)?(?:pull request|merge request|pr|mr)\b)|)" +
          has_been + R"(pushed\s+to\b)");
  add(Kind::installed, Names::nothing, false,
      doer + R"(installed\b|)" + R"(\b(?:dependenc(?:y|ies)|packages?|requirements|q+))" + has_been + R"(installed\b)");
  const std::string made =
      R"((?:created|wrote|written|saved|generated|added|updated|modified|edited|changed|rewrote|rewritten|replaced|refactored|implemented|extended))";
  add(Kind::file_written, Names::path_or_file, false, doer + made + R"(\b)");
  const std::string named_file = R"([\w./q-]+(?:\s+(?:file|script|module|document|page|config(?:uration)?))?)";
  add(Kind::file_written, Names::path, false, named_file + has_been + made + R"(\b)");
  add(Kind::file_written, Names::path, false,
      has_been + R"((?:added|written|saved|appended)\s+(?:to|in|into)\s+(?:the\s+)?[\w./q-]+)");
  const std::string gone = R"((?:removed|deleted|cleaned up))";
  add(Kind::file_deleted, Names::path_or_file, false, doer + gone + R"(\b)");
  add(Kind::file_deleted, Names::path, false, named_file + has_been + gone + R"(\b)");
  return rules;
}

const std::vector<Rule>& rules() {
  static const std::vector<Rule> all = [] {
    std::vector<Rule> made = test_rules();
    for (auto* more : {&state_rules, &deed_rules}) {
      for (Rule& rule : more()) made.push_back(std::move(rule));
    }
    return made;
  }();
  return all;
}

struct Subjects {
  // A file name with a folder, or with an extension that begins with a letter; not a number or an address.
  Pattern path{
      R"((?:^|[\s`'"(\[,])((?:~|\.{0,2}|[\w@.+-]+)?(?:/[\w@.+-]+)+|[\w@+-]*[\w@+-](?:\.[\w+-]+)*\.[a-z][a-z0-9]{0,9}|\.[a-z][\w.-]{2,}|(?:Dockerfile|Makefile|LICENSE))(?:$|[\s`'":,;)\]!?.]))",
      false};
  Pattern test{
      R"((?:^|[\s`'"(\[,])((?:[\w./-]*/)?(?:test_\w+|\w+_test|tests?/[\w./-]+|Test[A-Z]\w+|\w+\.(?:test|spec)\.\w+)[\w./:\[\]-]*))",
      false};
  Pattern suite{
      R"(\b(?:full|entire|whole|complete)\b[^,;:]{0,30}\b(?:test )?suite\b|\ball (?:of )?(?:the )?existing\b)"};
  Pattern file_word{R"(\b(?:files?|scripts?|documents?|modules?)\b)"};
  Pattern clause_end{
      R"([;:—]|\s-\s|\.\s|,\s+(?:and\s+)?(?:i|we|which|so|then|but|ran|run|verified|all|the tests?)\b|\b(?:because|based on|using|similar to|according to|located in|from|so that|but|and then|to (?:run|test|reproduce|verify|check|match|use|call|include|handle|support|see|ensure))\b)"};
};

const Subjects& subjects() {
  static const Subjects patterns;
  return patterns;
}

// Returns whether the name is not a file: "/server_info" is a route, "e.g" an abbreviation, "tom@acme.com" an address.
bool is_route(std::string_view name) {
  static const Pattern address(R"(^[^/]*@[^/]*$|^[\w-]+(?:\.[\w-]+)*\.(?:com|org|net|io)$)");
  if (address.in(name)) return true;
  const bool rooted = name.starts_with('/') && name.find('/', 1) == std::string_view::npos;
  return (rooted && name.find('.') == std::string_view::npos) || name == "e.g" || name == "i.e";
}

std::vector<std::string> all_in(std::string_view text, const Pattern& pattern) {
  std::vector<std::string> found;
  std::size_t from = 0;
  while (found.size() < subjects_max) {
    const auto match = pattern.find(text, from);
    if (!match) break;
    std::string name(match->group);
    while (!name.empty() && (name.back() == '.' || name.back() == ':' || name.back() == ',')) name.pop_back();
    const bool known = std::find(found.begin(), found.end(), name) != found.end();
    if (!name.empty() && !known && !is_route(name)) found.push_back(std::move(name));
    const auto group_end = static_cast<std::size_t>(match->group.data() - text.data()) + match->group.size();
    from = std::max(group_end, match->begin + 1);
  }
  return found;
}

// The words in which the rule's subject is searched: the claim and the object of its verb.
std::string_view reach_of(const Sentence& sentence, const Match& match) {
  const auto end = subjects().clause_end.find(sentence.masked, match.end);
  const std::size_t stop = end ? end->begin + (sentence.masked[end->begin] == '.' ? 1 : 0) : sentence.masked.size();
  return std::string_view(sentence.text).substr(match.begin, stop - match.begin);
}

// The original text of the match, which begins with the mark before a name, because the mark may be part of it.
std::string_view whole_match(const Sentence& sentence, const Match& match) {
  return std::string_view(sentence.text).substr(match.begin, match.end - match.begin);
}

void add_file_claims(std::vector<Said>& claims, const Rule& rule, const Sentence& sentence, const Match& match) {
  std::string_view reach = rule.subject == Names::path ? whole_match(sentence, match) : reach_of(sentence, match);
  // "removed the duplicate from a.py" does not delete a file.
  if (rule.kind == Kind::file_deleted) {
    static const Pattern inside(R"(\b(?:from|in|of|to|for|within|inside)\b)");
    static const Pattern part_of(R"(\b(?:from|in|of|to|for|within|inside)\s+(?:the\s+)?$)");
    if (part_of.in(std::string_view(sentence.masked).substr(0, match.begin))) return;
    if (const auto part = inside.find(reach)) reach = reach.substr(0, part->begin);
  }
  for (std::string& path : all_in(reach, subjects().path)) {
    Said said{.kind = rule.kind, .subject = std::move(path), .count = std::nullopt};
    claims.push_back(std::move(said));
  }
  const bool named = !claims.empty() && claims.back().kind == rule.kind;
  if (rule.subject == Names::path_or_file && !named && subjects().file_word.in(reach)) {
    claims.push_back({.kind = rule.kind, .subject = {}, .count = std::nullopt});
  }
}

bool is_claimed(const std::vector<Said>& claims, Kind kind) {
  return std::any_of(claims.begin(), claims.end(), [kind](const Said& said) { return said.kind == kind; });
}

std::optional<Kind> opposite_of(Kind kind) {
  if (kind == Kind::tests_pass) return Kind::tests_fail;
  if (kind == Kind::tests_fail) return Kind::tests_pass;
  if (kind == Kind::build_succeeds) return Kind::build_fails;
  if (kind == Kind::build_fails) return Kind::build_succeeds;
  return std::nullopt;
}

void add_claims(std::vector<Said>& claims, const Rule& rule, const Sentence& sentence, const Match& match,
                bool denied) {
  if (rule.subject == Names::path || rule.subject == Names::path_or_file) {
    if (!denied) add_file_claims(claims, rule, sentence, match);
    return;
  }
  Said said{.kind = rule.kind, .subject = {}, .count = std::nullopt};
  if (denied) {  // a denial claims the opposite kind, if there is one
    const std::optional<Kind> opposite = opposite_of(rule.kind);
    if (!opposite || is_claimed(claims, *opposite)) return;
    said.kind = *opposite;
  }
  if (rule.subject == Names::test) {
    const std::vector<std::string> tests = all_in(whole_match(sentence, match), subjects().test);
    if (!tests.empty()) said.subject = tests.front();
    std::int64_t count = 0;
    if (!match.group.empty() &&
        std::from_chars(match.group.data(), match.group.data() + match.group.size(), count).ec == std::errc())
      said.count = count;
  }
  static const Pattern service(R"(\b(?:ci|pipeline|workflow|checks)\b)");
  said.service = rule.kind == Kind::verified &&
                 service.in(std::string_view(sentence.masked).substr(match.begin, match.end - match.begin));
  const std::size_t lead = std::min<std::size_t>(match.begin, 40);
  said.whole_suite =
      subjects().suite.in(std::string_view(sentence.masked).substr(match.begin - lead, match.end - match.begin + lead));
  claims.push_back(std::move(said));
}

// Returns whether the count covers only a part of the tests: "3 of 5 tests pass", "2/7 passed".
bool is_part(const Sentence& sentence, const Match& match) {
  static const Pattern fraction(R"((\d+\s*(?:/|of|out of)\s*(?:the\s+)?\d+))");
  const auto found = fraction.find(whole_match(sentence, match));
  if (!found) return false;
  std::int64_t numbers[2] = {0, 0};
  std::size_t count = 0;
  for (std::size_t at = 0; at < found->group.size() && count < 2;) {
    const char* const begin = found->group.data() + at;
    const auto [next, error] = std::from_chars(begin, found->group.data() + found->group.size(), numbers[count]);
    at += error == std::errc() ? static_cast<std::size_t>(next - begin) : 1;
    if (error == std::errc()) ++count;
  }
  return count == 2 && numbers[0] != numbers[1];
}

// Returns whether a claim of the kind states the action of the verb.
bool is_kind_of(Kind kind, std::string_view verb) {
  struct Row {
    Kind kind;
    Pattern verb;
  };
  static const std::vector<Row> rows = [] {
    std::vector<Row> made;
    const auto add = [&](Kind of, const char* pattern) { made.push_back({of, Pattern(pattern)}); };
    add(Kind::deployed, "^(?:deploy|release|publish|ship|promote)$");
    add(Kind::committed, "^commit$");
    add(Kind::pushed, "^(?:push|open|create|submit|raise)$");
    add(Kind::installed, "^install$");
    add(Kind::fixed, "^(?:fix|resolve|correct)$");
    add(Kind::file_written,
        "^(?:create|write|save|generate|add|update|modify|edit|change|rewrite|replace|refactor|implement|append)$");
    add(Kind::file_deleted, "^(?:remove|delete)$");
    return made;
  }();
  return std::any_of(rows.begin(), rows.end(), [&](const Row& row) { return row.kind == kind && row.verb.in(verb); });
}

// Adds the actions of the sentence, to the claims that state them or as claims of their own.
void add_acts(std::vector<Said>& claims, const Sentence& sentence) {
  const std::size_t own = claims.size();
  for (Act& act : acts_in(sentence)) {
    if (act.verb.empty() && own > 0) {
      if (claims.front().kind == Kind::deployed && !claims.front().act) claims.front().act = std::move(act);
      continue;
    }
    bool stated = false;
    for (std::size_t i = 0; i < own; ++i) {
      if (!is_kind_of(claims[i].kind, act.verb)) continue;
      stated = true;
      if (!claims[i].act) claims[i].act = act;
    }
    if (!stated)
      claims.push_back({.kind = Kind::action,
                        .subject = {},
                        .count = std::nullopt,
                        .whole_suite = false,
                        .service = false,
                        .act = std::move(act)});
  }
}

}  // namespace

std::string_view name_of(Kind kind) {
  switch (kind) {
    case Kind::tests_pass: return "tests_pass";
    case Kind::tests_fail: return "tests_fail";
    case Kind::tests_run: return "tests_run";
    case Kind::build_succeeds: return "build_succeeds";
    case Kind::build_fails: return "build_fails";
    case Kind::lint_clean: return "lint_clean";
    case Kind::types_check: return "types_check";
    case Kind::fixed: return "fixed";
    case Kind::verified: return "verified";
    case Kind::deployed: return "deployed";
    case Kind::committed: return "committed";
    case Kind::pushed: return "pushed";
    case Kind::installed: return "installed";
    case Kind::file_written: return "file_written";
    case Kind::file_deleted: return "file_deleted";
    case Kind::action: return "action";
    case Kind::completed: return "completed";
  }
  return "completed";
}

std::vector<std::string> paths_in(std::string_view text) { return all_in(text, subjects().path); }

std::vector<Said> claims_in(const Sentence& sentence) {
  std::vector<Said> claims;
  std::optional<Kind> partial;  // the kind of a claim about a part, which the later rules do not recognise as such
  constexpr std::size_t tries_max = 4;  // matches of one rule in a sentence: the first may be open, the second a claim
  for (const Rule& rule : rules()) {
    if (is_claimed(claims, rule.kind) || partial == rule.kind) continue;
    std::size_t from = 0;
    for (std::size_t tries = 0; tries < tries_max; ++tries) {
      const auto match = rule.pattern.find(sentence.masked, from);
      if (!match) break;
      from = std::max(match->end, match->begin + 1);
      // "2.0.1 failed" counts no tests.
      if (!match->group.empty() && match->begin > 0 &&
          std::string_view(".-,/#$").find(sentence.masked[match->begin - 1]) != std::string_view::npos)
        continue;
      const Mood mood = mood_of(sentence, match->begin, match->end, rule.own_negation);
      if (mood != Mood::open && is_part(sentence, *match)) partial = rule.kind;
      if (mood == Mood::open || partial == rule.kind) continue;
      const std::size_t before = claims.size();
      add_claims(claims, rule, sentence, *match, mood == Mood::denied);
      if (claims.size() > before) break;
    }
  }
  // "2 failed, 10 passed" claims only a failure.
  if (is_claimed(claims, Kind::tests_fail)) {
    std::erase_if(claims, [](const Said& said) { return said.kind == Kind::tests_pass && said.count; });
  }
  add_acts(claims, sentence);
  return claims;
}

std::optional<Said> claim_of_item(std::string_view item) {
  struct Order {
    Kind kind;
    Pattern pattern;
  };
  static const std::vector<Order> orders = [] {
    std::vector<Order> made;
    const auto add = [&](Kind kind, const char* pattern) { made.push_back({kind, Pattern(pattern)}); };
    add(Kind::tests_pass, R"(\b(?:make|get|ensure|verify|check|confirm)\b.*\btests?\b.*\b(?:pass|green|succeed))");
    add(Kind::tests_run, R"(^\W*(?:re-?)?(?:run|execute)\b.*\b(?:tests?|suite|pytest|ctest|specs)\b)");
    add(Kind::build_succeeds, R"(^\W*(?:build|compile)\b)");
    add(Kind::lint_clean, R"(^\W*(?:run\s+)?(?:the\s+)?(?:lint(?:er|ers|ing)?|eslint|flake8|ruff|clippy)\b)");
    add(Kind::fixed, R"(^\W*(?:fix|resolve|solve|repair|correct)\b)");
    add(Kind::deployed, R"(^\W*(?:deploy|release|publish|ship)\b)");
    add(Kind::committed, R"(^\W*commit\b)");
    add(Kind::pushed, R"(^\W*(?:push\b|open (?:a )?(?:pr|pull request)\b))");
    add(Kind::installed, R"(^\W*install\b)");
    add(Kind::verified, R"(^\W*(?:verify|validate|test)\b)");
    add(Kind::file_written, R"(^\W*(?:create|write|add|update|modify|edit|generate|implement)\b)");
    add(Kind::file_deleted, R"(^\W*(?:delete|remove|clean up)\b)");
    return made;
  }();
  item = item.substr(0, sentence_bytes_max);
  for (const Order& order : orders) {
    if (!order.pattern.in(item)) continue;
    Said said{.kind = order.kind, .subject = {}, .count = std::nullopt};
    if (order.kind != Kind::file_written && order.kind != Kind::file_deleted) return said;
    const std::vector<std::string> paths = paths_in(item);
    if (paths.empty() && !subjects().file_word.in(item)) return std::nullopt;
    if (!paths.empty()) said.subject = paths.front();
    return said;
  }
  return std::nullopt;
}

}  // namespace muniment::evidence::run_judge
