#include "adapters/import/readable.hpp"

#include <algorithm>

#include "adapters/import/translate/coverage.hpp"

namespace muniment::cli {
namespace {

// Limit of the bytes searched for records on a broken line, as a multiple of its length.
constexpr std::size_t searched_lines_max = 32;

// Returns the offset after the JSON object that begins at `at`; npos if the object does not end.
std::size_t object_end(std::string_view text, std::size_t at) {
  std::size_t depth = 0;
  bool in_string = false;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (in_string) {
      if (c == '\\') ++at;
      in_string = c != '"';
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if ((c == '}' || c == ']') && --depth == 0) {
      return at + 1;
    }
  }
  return std::string_view::npos;
}

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

std::string_view without_blanks(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

// Reads `source` as one record. Returns false and sets `why` if it is not one.
bool take_whole(std::string_view source, const std::function<bool(const json::Value&)>& is_record,
                const std::function<void(const LineRecord&)>& take, std::string& why) {
  const auto strict = json::parse(source);
  if (strict && strict->root().is(json::Kind::object) && is_record(strict->root())) {
    take({strict->root(), source});
    return true;
  }
  why = strict ? "it is not a JSON object" : strict.error().message;
  if (strict) return false;
  const ReadableText repaired = with_readable_characters(source);
  const auto document = json::parse(std::string_view(repaired.text));
  if (!document || !document->root().is(json::Kind::object) || !is_record(document->root())) return false;
  take({document->root(), source, repaired.replaced});
  return true;
}

// True if no JSON continues after the object, so that it is a record and not a member of one.
bool is_followed_by_nothing(std::string_view rest) {
  while (!rest.empty() && (is_blank(rest.front()) || rest.front() == '\0')) rest.remove_prefix(1);
  return rest.empty() || (rest.front() != ',' && rest.front() != '}' && rest.front() != ']');
}

bool names_its_type(const json::Value& value) {
  if (!value["type"].is(json::Kind::string)) return false;
  constexpr std::string_view marks[] = {"uuid", "sessionId", "timestamp", "messageId", "leafUuid"};
  return std::ranges::any_of(marks, [&](std::string_view mark) { return value[mark].present(); });
}

void take_remains(std::string_view text, const std::string& why, const std::function<void(const LineRecord&)>& take) {
  if (without_blanks(text).empty()) return;
  take({json::Value(), text, 0, why});
}

}  // namespace

void read_line_records(std::string_view line, const std::function<void(const LineRecord&)>& take) {
  if (line.starts_with(byte_order_mark)) line.remove_prefix(byte_order_mark.size());
  std::string why, unused;
  const std::string_view inner = without_blanks(line);
  if (take_whole(
          inner.empty() ? line : inner, [](const json::Value&) { return true; }, take, why))
    return;
  std::size_t remains = 0, searched = 0;
  for (std::size_t at = line.find("{\"");
       at != std::string_view::npos && searched <= searched_lines_max * line.size();) {
    const std::size_t end = object_end(line, at);
    searched += (end == std::string_view::npos ? line.size() : end) - at;
    std::size_t next = at + 1;
    if (end != std::string_view::npos && is_followed_by_nothing(line.substr(end))) {
      const auto take_after_remains = [&](const LineRecord& record) {
        take_remains(line.substr(remains, at - remains), why, take);
        take(record);
      };
      if (take_whole(line.substr(at, end - at), names_its_type, take_after_remains, unused)) remains = next = end;
    }
    at = line.find("{\"", next);
  }
  if (remains == 0) return take({json::Value(), line, 0, why});
  take_remains(line.substr(remains), why, take);
}

ImportedEvent repaired_event(std::string kind, std::string_view format, std::int64_t line, std::uint64_t replaced,
                             std::string_view source) {
  json::Writer body;
  body.begin_object();
  if (line > 0) body.member("line", line);
  body.member("replaced", static_cast<std::int64_t>(replaced)).end_object();
  ImportedEvent event{std::move(kind), source_type(format, "repaired"), {}, std::move(body).text()};
  event.blobs.push_back({"application/octet-stream", std::string(source)});
  return event;
}

}  // namespace muniment::cli
