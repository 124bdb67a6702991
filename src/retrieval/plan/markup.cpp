// Parses the markup of queries.
#include "retrieval/plan/markup.hpp"

#include <array>

#include "base/limits.hpp"
#include "base/text.hpp"

namespace muniment::retrieval {
namespace {

constexpr std::int64_t day_us = std::int64_t{86'400} * 1'000'000;

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v'; }

class Parser {
 public:
  explicit Parser(std::string_view query) : rest_(query) {}

  Result<Markup> run() {
    while (skip_space(), !rest_.empty()) {
      if (take_phrase()) continue;
      const std::optional<std::string_view> key = take_key();
      if (!key) {
        take_text();
        continue;
      }
      RETURN_IF_ERROR(apply(*key, take_value()));
    }
    return std::move(markup_);
  }

 private:
  void skip_space() {
    while (!rest_.empty() && is_space(rest_.front())) rest_.remove_prefix(1);
  }

  // Returns the quoted text; nullopt if a quote is not closed, which makes it plain text.
  std::optional<std::string_view> take_quoted() {
    if (!rest_.starts_with('"')) return std::nullopt;
    const std::size_t end = rest_.find('"', 1);
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view inside = rest_.substr(1, end - 1);
    rest_.remove_prefix(end + 1);
    return inside;
  }

  bool take_phrase() {
    const auto phrase = take_quoted();
    if (!phrase) return false;
    if (markup_.phrases.size() < limits::query_phrases_max) {
      if (phrase->find_first_not_of(" \t\r\n") != std::string_view::npos) markup_.phrases.emplace_back(*phrase);
    } else {
      add_text(*phrase);
    }
    return true;
  }

  // "in" of "in:notes", but not of "in::x" or "in://x", which are names.
  std::optional<std::string_view> take_key() {
    static constexpr std::array<std::string_view, 7> keys = {"in", "type", "tag", "run", "before", "after", "asof"};
    for (const std::string_view key : keys) {
      if (!rest_.starts_with(key) || rest_.size() <= key.size() || rest_[key.size()] != ':') continue;
      const std::string_view behind = rest_.substr(key.size() + 1);
      if (behind.starts_with(':') || behind.starts_with("//")) return std::nullopt;
      rest_ = behind;
      return key;
    }
    return std::nullopt;
  }

  std::string_view take_word() {
    std::size_t end = 0;
    while (end < rest_.size() && !is_space(rest_[end])) end++;
    const std::string_view word = rest_.substr(0, end);
    rest_.remove_prefix(end);
    return word;
  }

  std::string_view take_value() {
    const auto quoted = take_quoted();
    return quoted ? *quoted : take_word();
  }

  void take_text() { add_text(take_word()); }

  void add_text(std::string_view word) {
    if (!markup_.text.empty()) markup_.text += ' ';
    markup_.text += word;
  }

  Status apply(std::string_view key, std::string_view value) {
    if (++filters_ > limits::query_filters_max) {
      return Error(Errc::invalid_argument,
                   "a query has at most " + std::to_string(limits::query_filters_max) + " filters");
    }
    if (value.empty()) return wrong(key, "has no value: write " + std::string(key) + ":VALUE without a space");
    if (key == "in") markup_.corpora.emplace_back(value);
    if (key == "type") markup_.types.emplace_back(value);
    if (key == "tag") markup_.tags.emplace_back(value);
    if (key == "run") markup_.runs.emplace_back(value);
    if (key != "before" && key != "after" && key != "asof") return success();

    const std::optional<Date> date = parse_date(value);
    if (!date)
      return wrong(key, "\"" + preview(value, 40) + "\" is not a date: write 2026-01-31 or 2026-01-31T18:00:00Z");
    std::optional<Time>& time = key == "before" ? markup_.before : key == "after" ? markup_.after : markup_.as_of;
    if (time) return wrong(key, "is given twice");
    time = key == "before" ? date->begin : date->end;
    if (key == "asof") markup_.as_of_begin = date->begin;
    return success();
  }

  static Error wrong(std::string_view key, const std::string& what) {
    return Error(Errc::invalid_argument, "filter " + std::string(key) + ": " + what);
  }

  std::string_view rest_;
  Markup markup_;
  std::size_t filters_ = 0;
};

void require_any(Filter& filter, std::string_view kind, const std::vector<std::string>& values) {
  std::vector<std::string> labels;
  for (const std::string& value : values) labels.push_back(std::string(kind) + ":" + value);
  if (!labels.empty()) filter.all_of.push_back(std::move(labels));
}

}  // namespace

Result<Markup> parse_markup(std::string_view query) { return Parser(query).run(); }

Filter filter_of(const Markup& markup) {
  Filter filter;
  require_any(filter, "corpus", markup.corpora);
  require_any(filter, "type", markup.types);
  require_any(filter, "run", markup.runs);
  for (const std::string& tag : markup.tags) filter.all_of.push_back({"tag:" + tag});
  if (markup.before) filter.before_us = markup.before->micros;
  if (markup.after) filter.after_us = markup.after->micros;
  return filter;
}

std::optional<Date> parse_date(std::string_view text) {
  if (text.size() == std::string_view("2026-01-31").size()) {
    const auto begin = parse_time(std::string(text) + "T00:00:00Z");
    if (!begin) return std::nullopt;
    return Date{*begin, Time{begin->micros + day_us - 1}};
  }
  const auto time = parse_time(text);
  if (!time) return std::nullopt;
  return Date{*time, *time};
}

}  // namespace muniment::retrieval
