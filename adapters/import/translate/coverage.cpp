#include "adapters/import/translate/coverage.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <map>
#include <set>
#include <unordered_set>

#include "base/clock.hpp"
#include "base/limits.hpp"

namespace muniment::cli {
namespace {

constexpr std::size_t structural_bytes_max = 32;

bool is_container(const json::Value& value) { return value.is(json::Kind::object) || value.is(json::Kind::array); }

bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::ranges::find(words, word) != words.end();
}

// A word that describes the structure of a record, such as "type": "function", or the speaker. The translation
// expresses it by the event's type and its role.
bool is_structural(std::string_view key, std::string_view text) {
  if (key == "role" || key == "source") {
    return is_one_of(text, {"system", "developer", "user", "assistant", "tool", "function", "agent", "environment"});
  }
  const auto is_word = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '-' || c == '.';
  };
  return is_one_of(key, {"type", "object", "kind", "class_"}) && text.size() <= structural_bytes_max &&
         std::ranges::all_of(text, is_word);
}

std::optional<Time> time_in(const std::string& text) {
  if (auto time = parse_time(text)) return time;
  return parse_time(text + "Z");
}

// All texts of the runs' events, for exact and for partial matches.
class EventTexts {
 public:
  explicit EventTexts(const std::vector<ImportedRun>& runs) {
    for (const ImportedRun& run : runs) add_run(run);
    std::size_t at = 0;
    const std::string_view all = texts_;
    while (at < all.size()) {
      const std::size_t end = all.find('\0', at);
      whole_.insert(all.substr(at, end - at));
      at = end + 1;
    }
  }

  bool has(const std::string& text) {
    if (whole_.contains(text)) return true;
    if (const auto time = time_in(text); time && times_.contains(time->micros)) return true;
    if (searched_ + texts_.size() > limits::coverage_searched_bytes_max) return false;
    searched_ += texts_.size();
    return texts_.find(text) != std::string::npos;
  }

 private:
  void add(std::string_view text) { (texts_ += text).push_back('\0'); }

  void add_run(const ImportedRun& run) {
    add(run.submission);
    add(run.end.summary);
    add_texts_of(start_params(run, {}, {}));  // shortened texts
    for (const ImportedEvent& event : run.events) {
      add_texts_of(event.body);
      for (const ImportedBlob& blob : event.blobs) add(blob.bytes);
      if (const auto time = parse_time(event.occurred_at)) times_.insert(time->micros);
    }
  }

  void add_texts_of(const std::string& json) {
    if (const auto document = json::parse(std::string_view(json))) add_value(document->root());
  }

  void add_value(const json::Value& value) {
    if (const auto text = value.as_string()) return add(*text);
    for (const json::Value part : value) {
      if (value.is(json::Kind::object)) add(part.key());
      add_value(part);
    }
  }

  std::string texts_;  // each followed by a NUL, which no text contains
  std::unordered_set<std::string_view> whole_;
  std::set<std::int64_t> times_;
  std::size_t searched_ = 0;
};

using LostTexts = std::vector<std::pair<std::string, std::string>>;  // place and text

void find_lost(const json::Value& value, const std::string& place, EventTexts& texts, LostTexts& lost) {
  if (is_container(value)) {
    std::size_t index = 0;
    for (const json::Value part : value) {
      const std::string name = value.is(json::Kind::object) ? part.key() : std::to_string(index++);
      if (value.is(json::Kind::object) && part.is(json::Kind::string) && is_structural(name, part.string_or("")))
        continue;
      find_lost(part, place.empty() ? name : place + "." + name, texts, lost);
    }
    return;
  }
  const auto text = value.as_string();
  if (!text || text->empty() || texts.has(*text)) return;
  // The arguments of a tool may be the text of an object; an event holds the object.
  const auto inner = json::parse(std::string_view(*text));
  if (inner && is_container(inner->root())) return find_lost(inner->root(), place, texts, lost);
  lost.emplace_back(place, *text);
}

bool is_placed(const std::vector<ImportedRun>& runs, std::string_view name) {
  return std::ranges::any_of(
      runs, [&](const ImportedRun& run) { return std::ranges::find(run.placed, name) != run.placed.end(); });
}

std::string body_of(const LostTexts& lost) {
  std::map<std::string, std::size_t> used;  // the texts of an object in a text may have the same place
  json::Writer body;
  body.begin_object().member("part", "not_understood").key("members").begin_object();
  for (const auto& [place, text] : lost) {
    const std::size_t uses = ++used[place];
    body.member(uses == 1 ? place : fmt::format("{}~{}", place, uses), text);
  }
  body.end_object().end_object();
  return std::move(body).text();
}

}  // namespace

std::uint64_t members_in(const json::Value& value) {
  if (!is_container(value)) return value.present() && !value.is(json::Kind::null) && value.source() != "\"\"" ? 1 : 0;
  std::uint64_t count = 0;
  for (const json::Value part : value) count += members_in(part);
  return count;
}

void keep_lost_texts(const json::Value& record, std::string_view format, std::vector<ImportedRun>& runs) {
  if (runs.empty()) return;
  EventTexts texts(runs);
  LostTexts lost;
  if (record.is(json::Kind::object)) {
    for (const json::Value member : record) {
      if (!is_placed(runs, member.key())) find_lost(member, member.key(), texts, lost);
    }
  } else {
    find_lost(record, {}, texts, lost);
  }
  if (lost.empty()) return;
  runs.front().events.push_back({"not-understood", source_type(format, "source"), {}, body_of(lost)});
}

std::string source_type(std::string_view format, std::string_view name) {
  std::string type = fmt::format("x.{}.{}", format, name);
  std::ranges::replace(type, '-', '_');
  return type;
}

}  // namespace muniment::cli
