// Parses the markup of queries.
#include "retrieval/plan/markup.hpp"

#include <algorithm>
#include <array>

#include "base/limits.hpp"
#include "base/text.hpp"

namespace muniment::retrieval {
namespace {

constexpr std::int64_t day_us = std::int64_t{86'400} * 1'000'000;

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v'; }

// A format, or a type of event of a run: message.added.
bool is_type(std::string_view value) {
  static constexpr std::array<std::string_view, 7> formats = {"text", "markdown", "code", "html",
                                                              "json", "jsonl",    "pdf"};
  if (std::ranges::find(formats, value) != formats.end()) return true;
  const std::size_t dot = value.find('.');
  const bool plain = value.find_first_not_of("abcdefghijklmnopqrstuvwxyz_.") == std::string_view::npos;
  return plain && dot != std::string_view::npos && dot > 0 && dot + 1 < value.size() &&
         value.find('.', dot + 1) == std::string_view::npos;
}

void append_word(std::string& text, std::string_view word) {
  if (!text.empty()) text += ' ';
  text += word;
}

// Returns the number of words in a text whose words are separated by single blanks.
std::size_t count_words(std::string_view text) {
  return text.empty() ? 0 : 1 + static_cast<std::size_t>(std::ranges::count(text, ' '));
}

// A collection of a capsule may be named by its URI: aether://notes/.
std::string_view collection_of(std::string_view value) {
  constexpr std::string_view scheme = "aether://";
  if (!value.starts_with(scheme)) return value;
  value.remove_prefix(scheme.size());
  if (value.ends_with('/')) value.remove_suffix(1);
  return value;
}

class Parser {
 public:
  Parser(std::string_view query, std::size_t phrases_max) : rest_(query), phrases_max_(phrases_max) {}

  Markup run() {
    while (skip_space(), !rest_.empty()) {
      if (!take_phrase() && !take_filter()) append_word(markup_.text, take_word());
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
    if (markup_.phrases.size() < phrases_max_) {
      if (phrase->find_first_not_of(" \t\r\n") != std::string_view::npos) markup_.phrases.emplace_back(*phrase);
    } else {
      append_word(markup_.text, *phrase);
    }
    return true;
  }

  std::string_view take_word() {
    std::size_t end = 0;
    while (end < rest_.size() && !is_space(rest_[end])) end++;
    const std::string_view word = rest_.substr(0, end);
    rest_.remove_prefix(end);
    return word;
  }

  // Takes "in:notes", but not "in::x" or "in://x", which are names, nor a name without a valid value.
  bool take_filter() {
    static constexpr std::array<std::string_view, 7> keys = {"in", "type", "tag", "run", "before", "after", "asof"};
    const std::string_view before = rest_;
    for (const std::string_view key : keys) {
      if (!rest_.starts_with(key) || rest_.size() <= key.size() || rest_[key.size()] != ':') continue;
      rest_.remove_prefix(key.size() + 1);
      if (rest_.starts_with(':') || rest_.starts_with("//")) break;
      const auto quoted = take_quoted();
      const std::string_view value = quoted ? *quoted : take_word();
      if (markup_.filters.size() < limits::query_filters_max && !value.empty() && apply(key, value)) {
        markup_.filters.emplace_back(before.substr(0, before.size() - rest_.size()));
        return true;
      }
      break;
    }
    rest_ = before;
    return false;
  }

  bool apply(std::string_view key, std::string_view value) {
    if (key == "in") return add(markup_.corpora, collection_of(value));
    if (key == "tag") return add(markup_.tags, value);
    if (key == "run") return add(markup_.runs, value);
    if (key == "type") return is_type(value) && add(markup_.types, value);
    const std::optional<Date> date = parse_date(value);
    if (!date) return false;
    if (key == "before") {
      markup_.before = markup_.before && *markup_.before < date->begin ? *markup_.before : date->begin;
    } else if (key == "after") {
      markup_.after = markup_.after && date->end < *markup_.after ? *markup_.after : date->end;
    } else if (!markup_.as_of || date->end < *markup_.as_of) {
      markup_.as_of = date->end;
      markup_.as_of_begin = date->begin;
    }
    return true;
  }

  static bool add(std::vector<std::string>& list, std::string_view value) {
    list.emplace_back(value);
    return true;
  }

  std::string_view rest_;
  std::size_t phrases_max_;  // further ones are text
  Markup markup_;
};

void require_any(Filter& filter, std::string_view kind, const std::vector<std::string>& values) {
  std::vector<std::string> labels;
  for (const std::string& value : values) labels.push_back(std::string(kind) + ":" + value);
  if (!labels.empty()) filter.all_of.push_back(std::move(labels));
}

}  // namespace

Markup parse_markup(std::string_view query) {
  Markup markup = Parser(query, limits::query_phrases_max).run();
  const bool quotes = !markup.phrases.empty() && count_words(markup.text) > limits::phrase_other_words_max;
  return quotes ? Parser(query, 0).run() : markup;
}

void take_tag_as_text(Markup& markup, std::string_view tag) {
  std::erase(markup.tags, tag);
  const auto is_of_tag = [&](std::string_view filter) {
    return filter.starts_with("tag:") &&
           (filter.substr(4) == tag || filter.substr(4) == "\"" + std::string(tag) + "\"");
  };
  for (const std::string& filter : markup.filters) {
    if (is_of_tag(filter)) append_word(markup.text, filter);
  }
  std::erase_if(markup.filters, is_of_tag);
}

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
