#include "bridge/sanitiser.hpp"

#include <hs/hs_runtime.h>
#include <re2/re2.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstring>
#include <deque>
#include <optional>

#include "base/limits.hpp"
#include "bridge/check.hpp"
#include "bridge/known_secrets.hpp"
#include "bridge/local_rules.hpp"
#include "bridge/rule.hpp"
#include "bridge/rule_database.hpp"
#include "bridge/text_view.hpp"

namespace muniment::bridge {
namespace {

constexpr std::size_t window_bytes_max = 4'096;        // before the end of a match
constexpr std::size_t window_bytes_unbounded = 1'024;  // the same for a pattern without a greatest length
constexpr int views_depth_max = 3;                     // Base64 in Base64 in the text
constexpr std::int64_t pattern_memory_bytes_max = 16 << 20;
constexpr std::size_t groups_max = 8;
constexpr std::size_t card_bytes_max = 37;  // 19 digits, with a hyphen after each
constexpr std::string_view known_category = "known";

re2::StringPiece piece(std::string_view text) { return {text.data(), text.size()}; }

std::unique_ptr<re2::RE2> compile(const std::string& pattern) {
  re2::RE2::Options options;
  options.set_log_errors(false);
  options.set_encoding(re2::RE2::Options::EncodingLatin1);
  options.set_max_mem(pattern_memory_bytes_max);
  return std::make_unique<re2::RE2>(pattern, options);
}

std::string lower_case(std::string_view text) {
  std::string lowered(text);
  for (char& c : lowered) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lowered;
}

bool contains_any(std::string_view text, const std::vector<std::string>& words) {
  return std::any_of(words.begin(), words.end(),
                     [text](const std::string& word) { return text.find(word) != std::string_view::npos; });
}

bool is_token(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-'; }

// Returns whether the letters are those of a word, with at most one capital letter at its beginning.
bool is_plain_word(std::string_view text) {
  return std::all_of(text.begin() + 1, text.end(),
                     [](char c) { return std::islower(static_cast<unsigned char>(c)) != 0; });
}

bool is_card_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0 || c == '-'; }

// Returns the digits of a card number around a place. In a joined text, those of a table follow each other, and a
// number is only one with all of them.
Span card_digits(std::string_view text, std::size_t at) {
  Span span = {at, at};
  while (span.begin > 0 && is_card_digit(text[span.begin - 1])) --span.begin;
  while (span.end < text.size() && is_card_digit(text[span.end])) ++span.end;
  return span;
}

std::string_view line_of(std::string_view text, Span span) {
  const std::size_t begin = span.begin == 0 ? 0 : text.rfind('\n', span.begin - 1) + 1;
  return text.substr(begin, std::min(text.find('\n', span.end), text.size()) - begin);
}

}  // namespace

// Parts of the implementation, which has linkage.
namespace matching {

// An allowlist with compiled patterns.
struct Exceptions {
  Allowlist list;
  std::vector<std::unique_ptr<re2::RE2>> patterns;

  bool hold(const Rule& rule, std::string_view text, Span match, std::string_view secret) const {
    if (!list.rules.empty() && std::find(list.rules.begin(), list.rules.end(), rule.id) == list.rules.end())
      return false;
    std::string_view target = secret;
    if (list.target == Allowlist::Target::match) target = text.substr(match.begin, match.end - match.begin);
    if (list.target == Allowlist::Target::line) target = line_of(text, match);
    const bool by_pattern = std::any_of(patterns.begin(), patterns.end(), [target](const auto& pattern) {
      return re2::RE2::PartialMatch(piece(target), *pattern);
    });
    const bool by_word = contains_any(lower_case(secret), list.stopwords);
    if (list.all)
      return (by_pattern || patterns.empty()) && (by_word || list.stopwords.empty()) &&
             !(patterns.empty() && list.stopwords.empty());
    return by_pattern || by_word;
  }
};

Result<std::vector<Exceptions>> compile_lists(const std::vector<Allowlist>& lists) {
  std::vector<Exceptions> compiled;
  for (const Allowlist& list : lists) {
    Exceptions& one = compiled.emplace_back();
    one.list = list;
    for (const std::string& regex : list.regexes) {
      one.patterns.push_back(compile(regex));
      if (!one.patterns.back()->ok())
        return Error(Errc::invalid_argument, "an allowlist does not compile: " + one.patterns.back()->error());
    }
  }
  return compiled;
}

// A rule whose patterns are compiled when it is first needed.
struct Matcher {
  Rule rule;
  std::size_t window = window_bytes_unbounded;
  bool wanted = true;  // in this scope, and not disabled
  bool begins_word = false;
  bool is_card = false;
  std::unique_ptr<re2::RE2> pattern;
  std::vector<Exceptions> exceptions;

  Status prepare() {
    if (pattern) return success();
    begins_word = rule.begins_word();
    is_card = rule.has("card");
    pattern = compile(rule.pattern());
    if (!pattern->ok())
      return Error(Errc::invalid_argument, "rule " + rule.id + " does not compile: " + pattern->error());
    if (pattern->NumberOfCapturingGroups() < rule.secret_group)
      return Error(Errc::invalid_argument, "rule " + rule.id + " has no group " + std::to_string(rule.secret_group));
    ASSIGN_OR_RETURN(exceptions, compile_lists(rule.allowlists));
    return success();
  }
};

// The patterns of Vectorscan with their memory.
class Database {
 public:
  // Without `bytes`, or on a processor that Vectorscan does not support, it matches nothing and is not usable.
  explicit Database(std::string_view bytes) {
    if (hs_deserialize_database(bytes.data(), bytes.size(), &database_) != HS_SUCCESS) return;
    if (hs_alloc_scratch(database_, &scratch_) != HS_SUCCESS) scratch_ = nullptr;
  }
  ~Database() {
    hs_free_scratch(scratch_);
    hs_free_database(database_);
  }
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  bool usable() const { return scratch_ != nullptr; }
  bool scan(std::string_view text, match_event_handler on_match, void* context) const {
    return hs_scan(database_, text.data(), static_cast<unsigned>(text.size()), 0, scratch_, on_match, context) ==
           HS_SUCCESS;
  }

 private:
  hs_database_t* database_ = nullptr;
  hs_scratch_t* scratch_ = nullptr;
};

}  // namespace matching

using namespace matching;

class Sanitiser::Impl {
 public:
  explicit Impl(Scope scope)
      : scope_(scope),
        plain_(rule_database(scope == Scope::output ? RuleSet::output : RuleSet::outbound)),
        split_(rule_database(RuleSet::split)),
        reversed_(rule_database(RuleSet::reversed)) {
    const auto file = read_rules(rule_texts());
    // The build has read this text before.
    for (std::size_t i = 0; file && i < file->rules.size(); ++i) {
      Matcher& matcher = matchers_.emplace_back();
      matcher.rule = file->rules[i];
      matcher.wanted = is_wanted(matcher.rule);
      const std::uint32_t width = rule_width(i);
      if (width != rule_width_unbounded) matcher.window = std::min<std::size_t>(width, window_bytes_max);
    }
    built_in_ = matchers_.size();
  }

  Status add_rules(const RuleFile& file) {
    for (const Rule& rule : file.rules) {
      Matcher matcher;
      matcher.rule = rule;
      matcher.wanted = is_wanted(rule);
      RETURN_IF_ERROR(matcher.prepare());
      matchers_.push_back(std::move(matcher));
    }
    ASSIGN_OR_RETURN(auto lists, compile_lists(file.allowlists));
    std::move(lists.begin(), lists.end(), std::back_inserter(exceptions_));
    for (std::size_t i = 0; i < built_in_; ++i) {
      const auto& disabled = file.disabled_rules;
      if (std::find(disabled.begin(), disabled.end(), matchers_[i].rule.id) != disabled.end())
        matchers_[i].wanted = false;
    }
    return success();
  }

  Status use(const LocalRules& local) {
    known_ = local.secrets;
    return add_rules(local.rules);
  }

  std::vector<Finding> find(std::string_view text) {
    findings_.clear();
    for (std::size_t at = 0; at < text.size();) {
      std::size_t size = std::min(text.size() - at, limits::sanitised_piece_bytes_max);
      if (at + size < text.size()) {
        const std::size_t line = text.rfind('\n', at + size - 1);
        if (line != std::string_view::npos && line >= at) size = line + 1 - at;
      }
      offset_ = at;
      scan(TextView::of(text.substr(at, size)), 0);
      at += size;
    }
    std::sort(findings_.begin(), findings_.end(), [](const Finding& a, const Finding& b) {
      return std::pair(a.offset, b.length) < std::pair(b.offset, a.length);
    });
    findings_.erase(std::unique(findings_.begin(), findings_.end(),
                                [](const Finding& a, const Finding& b) {
                                  return a.rule == b.rule && a.offset == b.offset && a.length == b.length;
                                }),
                    findings_.end());
    return std::move(findings_);
  }

 private:
  void scan(const TextView& view, int depth) {
    match(view, plain_);
    match(TextView::joined(view), split_);
    match(TextView::reversed(view), reversed_);
    if (depth == views_depth_max) return;
    const TextView folded = TextView::folded(view);
    if (!folded.text().empty()) scan(folded, depth + 1);
    for (const TextView& decoded : TextView::decoded(view)) scan(decoded, depth + 1);
  }

  void match(const TextView& view, const Database& database) {
    if (view.text().empty()) return;
    view_ = &view;
    resume_.assign(matchers_.size(), 0);
    const auto on_match = [](unsigned id, unsigned long long, unsigned long long to, unsigned, void* self) {
      static_cast<Impl*>(self)->confirm(id, static_cast<std::size_t>(to));
      return 0;
    };
    const bool scanned = database.usable() && database.scan(view.text(), on_match, this);
    const std::size_t first = scanned ? built_in_ : 0;
    if (first < matchers_.size()) match_slowly(first);
    for (const Span span : known_.find(view.text())) add(known_category, known_category, span, false);
  }

  // Searches for each rule from `first` on whose keywords occur.
  void match_slowly(std::size_t first) {
    const std::string lowered = lower_case(view_->text());
    for (std::size_t i = first; i < matchers_.size(); ++i) {
      const Rule& rule = matchers_[i].rule;
      if (!matchers_[i].wanted) continue;
      if (view_->kind() == TextView::Kind::joined && !rule.has("split")) continue;
      if (view_->kind() == TextView::Kind::reversed && rule.has("forward")) continue;
      if (!rule.keywords.empty() && !contains_any(lowered, rule.keywords)) continue;
      matchers_[i].window = view_->text().size();
      confirm(i, view_->text().size());
    }
  }

  // Finds the matches of a rule that begin before `to`, where Vectorscan saw the end of one.
  void confirm(std::size_t index, std::size_t to) {
    std::size_t& resume = resume_[index];
    if (to <= resume) return;
    Matcher& matcher = matchers_[index];
    if (!matcher.wanted || !matcher.prepare()) return;
    const std::string_view text = view_->text();
    if (matcher.is_card && view_->kind() == TextView::Kind::joined) {
      const Span digits = card_digits(text, to);
      resume = std::max(resume, digits.begin);
      if (digits.end - digits.begin > card_bytes_max) resume = digits.end;
      if (to <= resume) return;
    }
    if (to > matcher.window) resume = std::max(resume, to - matcher.window);
    re2::StringPiece groups[groups_max];
    const int count = std::min<int>(groups_max, 1 + matcher.pattern->NumberOfCapturingGroups());
    // The first search ends where Vectorscan has seen a match, since a search without one would read the rest of the
    // text; the second one extends the match.
    while (resume < to && matcher.pattern->Match(piece(text), resume, to, re2::RE2::UNANCHORED, groups, 1)) {
      const std::size_t start = span_of(groups[0]).begin;
      resume = start + 1;
      if (groups[0].empty() || (matcher.begins_word && !view_->begins_word(start))) continue;
      if (!matcher.pattern->Match(piece(text), start, text.size(), re2::RE2::ANCHOR_START, groups, count)) continue;
      const Span match = span_of(groups[0]);
      if (auto secret = secret_of(matcher, match, groups, count))
        resume = std::max(resume, accept(matcher, match, *secret));
    }
  }

  Span span_of(const re2::StringPiece& group) const {
    const auto begin = static_cast<std::size_t>(group.data() - view_->text().data());
    return {begin, begin + group.size()};
  }

  std::optional<Span> secret_of(const Matcher& matcher, Span match, const re2::StringPiece* groups, int count) const {
    if (const int wanted = matcher.rule.secret_group; wanted > 0)
      return wanted < count && groups[wanted].data() != nullptr ? std::optional(span_of(groups[wanted])) : std::nullopt;
    for (int i = 1; i < count; ++i) {
      if (!groups[i].empty()) return span_of(groups[i]);
    }
    return match;
  }

  // Adds the finding if all conditions hold. Returns where the search continues, or 0.
  std::size_t accept(const Matcher& matcher, Span match, Span secret) {
    const Rule& rule = matcher.rule;
    const std::string_view text = view_->text();
    const bool joined = view_->kind() == TextView::Kind::joined;
    // A token without separators is found in the text itself. With them, words may look like one.
    if (joined && rule.category == "secret") secret.end = std::min(secret.end, end_of_token(matcher, match));
    const Span before_checks = {match.begin, secret.end};
    if (!passes_checks(rule, *view_, secret)) return 0;
    if (joined && !view_->has_gap(before_checks)) return 0;
    const std::string_view value = text.substr(secret.begin, secret.end - secret.begin);
    if (joined && rule.category == "secret" && !is_random(value)) return 0;
    if (rule.entropy > 0 && entropy(value) <= rule.entropy) return 0;
    const auto holds = [&](const Exceptions& one) { return one.hold(rule, text, match, value); };
    if (std::any_of(matcher.exceptions.begin(), matcher.exceptions.end(), holds)) return 0;
    if (std::any_of(exceptions_.begin(), exceptions_.end(), holds)) return 0;
    if (rule.has("pem")) {
      bool open = false;
      const Span body = {secret.end, end_of_key(text, secret.end, scope_ == Scope::output, open)};
      if (body.end > body.begin) add(rule.id, rule.category, body, open);
      return body.end;
    }
    // A longer token than the pattern describes is replaced as a whole.
    if (!joined && rule.category == "secret" && rule.has("split") && secret.end == match.end) {
      while (secret.end < text.size() && is_token(text[secret.end])) ++secret.end;
    }
    add(rule.id, rule.category, secret, false);
    return secret.end;
  }

  // In a joined text, words may follow a token: returns where a complete token is followed by a word.
  std::size_t end_of_token(const Matcher& matcher, Span match) const {
    const std::string_view text = view_->text();
    for (std::size_t at = match.begin + 1; at < match.end; ++at) {
      if (!view_->has_gap({at - 1, at + 1})) continue;
      if (!matcher.pattern->Match(piece(text), match.begin, at, re2::RE2::ANCHOR_START, nullptr, 0)) continue;
      std::size_t next = at + 1;
      while (next < match.end && !view_->has_gap({next - 1, next + 1})) ++next;
      if (is_plain_word(text.substr(at, next - at))) return at;
    }
    return match.end;
  }

  void add(std::string_view rule, std::string_view category, Span span, bool open) {
    const Span place = view_->in_root(span);
    findings_.push_back({rule, category, offset_ + place.begin, place.end - place.begin,
                         open && view_->kind() == TextView::Kind::plain});
  }

  bool is_wanted(const Rule& rule) const {
    return rule.category == "secret" || (rule.category == "announced") == (scope_ == Scope::output);
  }

  Scope scope_;
  Database plain_;
  Database split_;
  Database reversed_;
  std::deque<Matcher> matchers_;  // the built-in rules come first; findings refer to their names
  std::size_t built_in_ = 0;
  std::vector<Exceptions> exceptions_;
  KnownSecrets known_;
  // The current search.
  const TextView* view_ = nullptr;
  std::size_t offset_ = 0;           // of the piece in the text
  std::vector<std::size_t> resume_;  // where the search of each rule continues
  std::vector<Finding> findings_;
};

Sanitiser::Sanitiser(Scope scope) : impl_(std::make_unique<Impl>(scope)) {}
Sanitiser::~Sanitiser() = default;
Status Sanitiser::add_rules(std::string_view toml) {
  ASSIGN_OR_RETURN(const RuleFile file, read_toml_rules(toml));
  return impl_->add_rules(file);
}
Status Sanitiser::use(const LocalRules& local) { return impl_->use(local); }
std::vector<Finding> Sanitiser::find(std::string_view text) { return impl_->find(text); }

std::size_t redact(std::string& text, const std::vector<Finding>& findings,
                   const std::function<std::string(const Finding&)>& replacement) {
  std::string out;
  std::size_t count = 0;
  std::size_t at = 0;
  for (std::size_t i = 0; i < findings.size(); ++count) {
    const Finding& first = findings[i];
    std::size_t end = first.offset + first.length;
    for (++i; i < findings.size() && findings[i].offset < end; ++i)
      end = std::max(end, findings[i].offset + findings[i].length);
    out.append(text, at, first.offset - at);
    out += replacement(first);
    at = end;
  }
  if (count == 0) return 0;
  out.append(text, at);
  text = std::move(out);
  return count;
}

}  // namespace muniment::bridge
