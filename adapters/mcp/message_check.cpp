#include "adapters/mcp/message_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <set>

#include "base/json/message_skim.hpp"

namespace muniment::cli {
namespace {

constexpr std::string_view envelope_members[] = {"jsonrpc", "id", "method", "params", "result", "error"};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Each of the following functions parses a part of the JSON grammar (RFC 8259) at `at` and returns false if it does not
// match.
bool take_string(std::string_view text, std::size_t& at) {
  if (at >= text.size() || text[at] != '"') return false;
  for (++at; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '"') return ++at, true;
    if (static_cast<unsigned char>(c) < 0x20) return false;
    if (c != '\\') continue;
    if (++at >= text.size()) return false;
    if (text[at] == 'u') {
      const std::string_view hex = text.substr(at + 1, 4);
      if (hex.size() < 4 || !std::all_of(hex.begin(), hex.end(), [](unsigned char d) { return std::isxdigit(d) != 0; }))
        return false;
    } else if (std::string_view("\"\\/bfnrt").find(text[at]) == std::string_view::npos) {
      return false;
    }
  }
  return false;
}

bool take_digits(std::string_view text, std::size_t& at) {
  const std::size_t begin = at;
  while (at < text.size() && is_digit(text[at])) ++at;
  return at > begin;
}

bool take_scalar(std::string_view text, std::size_t& at) {
  for (const std::string_view word : {"true", "false", "null"}) {
    if (text.substr(at).starts_with(word)) return at += word.size(), true;
  }
  if (at < text.size() && text[at] == '-') ++at;
  const std::size_t begin = at;
  if (!take_digits(text, at) || (text[begin] == '0' && at > begin + 1)) return false;
  if (at < text.size() && text[at] == '.' && !take_digits(text, ++at)) return false;
  if (at >= text.size() || (text[at] != 'e' && text[at] != 'E')) return true;
  if (++at < text.size() && (text[at] == '+' || text[at] == '-')) ++at;
  return take_digits(text, at);
}

bool take_key(std::string_view text, std::size_t& at) {
  at = json::skip_blanks(text, at);
  if (!take_string(text, at)) return false;
  at = json::skip_blanks(text, at);
  return at < text.size() && text[at++] == ':';
}

// Returns whether the text is one JSON value of any depth.
bool is_json(std::string_view text) {
  std::string open;  // open brackets around `at`
  for (std::size_t at = 0;;) {
    at = json::skip_blanks(text, at);
    if (at >= text.size()) return false;
    const char first = text[at];
    if (first == '{' || first == '[') {
      open += first == '{' ? '}' : ']';
      at = json::skip_blanks(text, at + 1);
      if (at >= text.size()) return false;
      if (text[at] != open.back()) {
        if (first == '{' && !take_key(text, at)) return false;
        continue;
      }
    } else if (!(first == '"' ? take_string(text, at) : take_scalar(text, at))) {
      return false;
    }
    for (bool ended = true; ended;) {
      at = json::skip_blanks(text, at);
      if (open.empty()) return at == text.size();
      if (at >= text.size()) return false;
      const char next = text[at++];
      ended = next == open.back();
      if (ended) {
        open.pop_back();
      } else if (next != ',' || (open.back() == '}' && !take_key(text, at))) {
        return false;
      }
    }
  }
}

// Detects duplicate members, also with names that differ only in case, which Go's parser treats as equal.
std::string doubt_about_members(std::string_view object, bool is_message) {
  std::set<std::string> seen;
  std::string doubt;
  json::each_member(object, [&](std::string_view key, std::string_view) {
    const std::string name = json::string_of(key).value_or(std::string(key));
    std::string lower = name;
    for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    const bool known =
        std::find(std::begin(envelope_members), std::end(envelope_members), lower) != std::end(envelope_members);
    if (is_message && known && lower != name) doubt = fmt::format("it writes {} as {}", lower, name);
    if (!seen.insert(lower).second) doubt = fmt::format("{} occurs twice", name);
  });
  return doubt;
}

std::string doubt_about_message(std::string_view message) {
  const std::size_t begin = json::skip_blanks(message, 0);
  if (begin >= message.size() || message[begin] != '{') return "it is not a JSON object";
  if (std::string doubt = doubt_about_members(message, true); !doubt.empty()) return doubt;
  const json::Envelope envelope = json::skim_message(message);
  for (const std::string_view object : {envelope.params, envelope.result, envelope.error}) {
    if (std::string doubt = doubt_about_members(object, false); !doubt.empty()) return doubt;
  }
  if (!json::member_of(message, "method").empty() && envelope.method.empty()) return "its method is not a string";
  if (!envelope.method.empty() && !(envelope.result.empty() && envelope.error.empty()))
    return "it is both a request and a response";
  if (envelope.has_id() && !is_request_id(envelope.id)) return "its id is neither a string nor a number";
  if (envelope.method == "tools/call" && !envelope.has_id()) return "it is a tools/call without an id";
  return {};
}

}  // namespace

bool is_request_id(std::string_view value) {
  const bool begins = !value.empty() && (value.front() == '"' || value.front() == '-' || is_digit(value.front()));
  return begins && is_json(value);
}

std::string doubt_about(std::string_view line) {
  if (line.ends_with('\n')) line.remove_suffix(1);
  if (line.ends_with('\r')) line.remove_suffix(1);
  if (line.find('\r') != std::string_view::npos) return "it contains a carriage return";
  if (json::skip_blanks(line, 0) == line.size()) return {};
  if (!is_json(line)) return "it is not exactly one JSON value";
  for (const std::string_view message : json::messages_of(line)) {
    if (std::string doubt = doubt_about_message(message); !doubt.empty()) return doubt;
  }
  return {};
}

}  // namespace muniment::cli
