#include "base/json/json.hpp"

#include <fmt/format.h>
#include <simdjson.h>

#include <charconv>
#include <limits>

#include "base/json/json_walk.hpp"
#include "base/utf8.hpp"

namespace muniment::json {
namespace {

// Texts up to this size share a parser and a node array in each thread, so that a request costs one allocation. Memory
// for larger texts is freed after the parse.
constexpr std::size_t workspace_text_bytes_max = 128 * 1024;

struct Workspace {
  simdjson::dom::parser parser;
  std::vector<Node> nodes;
};

std::string_view inside_quotes(std::string_view text, std::uint32_t begin, std::uint32_t end) {
  return text.substr(begin + 1, end - begin - 2);
}

// simdjson reports the error without its position; a walk over the text finds it.
Error name_the_place(simdjson::error_code code, std::string_view text, std::size_t depth_max, Workspace& workspace) {
  if (const std::size_t at = first_invalid_utf8(text); at != std::string_view::npos) {
    return {Errc::invalid_argument,
            fmt::format("JSON at byte {}: not UTF-8. Send other bytes as an artifact or base64.", at)};
  }
  if (auto walked = walk(text, depth_max, workspace.nodes); !walked) return std::move(walked).error();
  if (code == simdjson::NUMBER_ERROR) {
    return {Errc::invalid_argument, "JSON has a number beyond 1.797e308, the largest. Send it as a string."};
  }
  if (code == simdjson::MEMALLOC) return {Errc::unavailable, "no memory to parse JSON."};
  return {Errc::invalid_argument, fmt::format("not JSON: {}.", simdjson::error_message(code))};
}

Status parse_into(std::string_view text, std::size_t depth_max, Workspace& workspace) {
  const auto judged = workspace.parser.parse(text.data(), text.size(), true);
  if (judged.error() != simdjson::SUCCESS) return name_the_place(judged.error(), text, depth_max, workspace);
  return walk(text, depth_max, workspace.nodes);
}

}  // namespace

Result<Document> parse(std::string_view text, std::size_t depth_max) {
  if (text.empty()) return Error(Errc::invalid_argument, "empty text, expected a JSON value.");
  // Node offsets have 32 bits, and simdjson has the same limit.
  if (text.size() > std::numeric_limits<std::uint32_t>::max() - 64) {
    return Error(Errc::too_large, fmt::format("JSON of {} bytes, limit 4 GiB.", text.size()));
  }
  Document document;
  document.text_ = text;
  if (text.size() > workspace_text_bytes_max) {
    Workspace workspace;
    RETURN_IF_ERROR(parse_into(text, depth_max, workspace));
    document.nodes_ = std::move(workspace.nodes);
    document.nodes_.shrink_to_fit();
    return document;
  }
  thread_local Workspace workspace;
  RETURN_IF_ERROR(parse_into(text, depth_max, workspace));
  document.nodes_ = workspace.nodes;  // a copy of exactly the needed size
  return document;
}

Value Document::root() const { return nodes_.empty() ? Value() : Value(this, 0); }

const Node& Value::node() const { return document_->nodes_[index_]; }

Kind Value::kind() const { return present() ? node().kind : Kind::null; }

std::string_view Value::source() const {
  if (!present()) return {};
  return document_->text_.substr(node().begin, node().end - node().begin);
}

Value Value::operator[](std::string_view key) const {
  if (!is(Kind::object)) return {};
  const std::uint32_t end = node().next;
  for (std::uint32_t i = index_ + 1; i < end; i = document_->nodes_[i].next) {
    const Node& member = document_->nodes_[i];
    const std::string_view name = inside_quotes(document_->text_, member.key, member.key_end);
    if (member.key_escaped ? unescape(name) == key : name == key) return Value(document_, i);
  }
  return {};
}

std::size_t Value::size() const {
  std::size_t count = 0;
  for (auto it = begin(), last = end(); it != last; ++it) ++count;
  return count;
}

std::optional<bool> Value::as_bool() const {
  if (!is(Kind::boolean)) return std::nullopt;
  return source() == "true";
}

std::optional<std::int64_t> Value::as_int() const {
  if (!is(Kind::number)) return std::nullopt;
  const std::string_view token = source();
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), value);
  // "-0" is a number that an integer cannot represent.
  if (error != std::errc{} || end != token.data() + token.size() || token == "-0") {
    return std::nullopt;
  }
  return value;
}

std::optional<double> Value::as_double() const {
  if (!is(Kind::number)) return std::nullopt;
  const std::string_view token = source();
  double value = 0;
  const auto read = std::from_chars(token.data(), token.data() + token.size(), value);
  if (read.ec != std::errc{}) return std::nullopt;
  return value;
}

std::optional<std::string> Value::as_string() const {
  if (!is(Kind::string)) return std::nullopt;
  const std::string_view text = inside_quotes(document_->text_, node().begin, node().end);
  return node().escaped ? unescape(text) : std::string(text);
}

std::optional<std::string_view> Value::as_plain_string() const {
  if (!is(Kind::string) || node().escaped) return std::nullopt;
  return inside_quotes(document_->text_, node().begin, node().end);
}

std::string Value::string_or(std::string_view fallback) const {
  auto text = as_string();
  return text ? *std::move(text) : std::string(fallback);
}

Value::Iterator& Value::Iterator::operator++() {
  index_ = document_->nodes_[index_].next;
  return *this;
}

Value::Iterator Value::begin() const {
  const bool holds_values = is(Kind::object) || is(Kind::array);
  return {document_, holds_values ? index_ + 1 : index_};
}

Value::Iterator Value::end() const {
  const bool holds_values = is(Kind::object) || is(Kind::array);
  return {document_, holds_values ? node().next : index_};
}

std::string Value::key() const {
  if (!present() || node().key == 0) return {};
  const std::string_view name = inside_quotes(document_->text_, node().key, node().key_end);
  return node().key_escaped ? unescape(name) : std::string(name);
}

std::optional<std::string_view> Value::plain_key() const {
  if (!present() || node().key == 0 || node().key_escaped) return std::nullopt;
  return inside_quotes(document_->text_, node().key, node().key_end);
}

}  // namespace muniment::json
