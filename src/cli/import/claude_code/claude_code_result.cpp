#include "cli/import/claude_code/claude_code_result.hpp"

#include <algorithm>

#include "base/crypto/base64.hpp"
#include "base/text.hpp"
#include "cli/import/events.hpp"

namespace muniment::cli {
namespace {

constexpr std::string_view denied_by_human[] = {
    "The user doesn't want to proceed with this tool use",
    "The user doesn't want to take this action right now",
    "User rejected",
};
constexpr std::string_view denied_by_code[] = {
    "Claude requested permissions to",
    "Permission to use ",
    "Permission for this action was denied",
};

bool begins_with_any(std::string_view text, auto begin, auto end) {
  return std::any_of(begin, end, [&](std::string_view words) { return text.starts_with(words); });
}

// "Exit code 2\n…": how a failed command's output begins.
std::optional<std::int64_t> exit_code_of_text(std::string_view text) {
  constexpr std::string_view words = "Exit code ";
  if (!text.starts_with(words)) return std::nullopt;
  text.remove_prefix(words.size());
  return parse_decimal(text.substr(0, text.find_first_not_of("0123456789")));
}

}  // namespace

ToolResult judge_result(const json::Value& line, const json::Value& block) {
  ToolResult result;
  const json::Value details = line["toolUseResult"];
  if (!block["is_error"].present() && !block["content"].present()) result.status = unknown_end;
  if (details["interrupted"].as_bool().value_or(false)) result.status = "interrupted";
  if (!block["is_error"].as_bool().value_or(false)) return result;
  std::string text = first_text(block["content"]);
  if (constexpr std::string_view tag = "<tool_use_error>"; text.starts_with(tag)) text.erase(0, tag.size());
  result.exit_code = exit_code_of_text(text);
  if (begins_with_any(text, std::begin(denied_by_human), std::end(denied_by_human))) {
    result.denied_by = "human";
  } else if (begins_with_any(text, std::begin(denied_by_code), std::end(denied_by_code))) {
    result.denied_by = "code";
  }
  if (result.denied_by) {
    result.status = "denied";
  } else if (text.starts_with("Command timed out")) {
    result.status = "timeout";
  } else if (result.status != "interrupted") {
    result.status = text.starts_with("[Request interrupted by user") ? "interrupted" : "error";
  }
  return result;
}

std::string first_text(const json::Value& content) {
  if (const auto text = content.as_string()) return *text;
  for (const json::Value block : content) {
    if (const auto text = block["text"].as_string()) return *text;
  }
  return {};
}

// Tokens that came from the cache are tokens read.
std::string usage_json(const json::Value& usage) {
  const auto count = [&](std::string_view name) -> std::optional<std::int64_t> {
    const auto tokens = usage[name].as_int();
    return tokens && *tokens >= 0 && *tokens <= 1'000'000'000'000 ? tokens : std::nullopt;
  };
  const auto input = count("input_tokens"), output = count("output_tokens");
  if (!input || !output) return {};
  const auto cached = count("cache_read_input_tokens"), written = count("cache_creation_input_tokens");
  json::Writer writer;
  writer.begin_object()
      .member("input_tokens", *input + cached.value_or(0) + written.value_or(0))
      .member("output_tokens", *output);
  if (cached) writer.member("cached_input_tokens", *cached);
  if (written) writer.member("cache_write_tokens", *written);
  return std::move(writer.end_object()).text();
}

std::optional<ImportedBlob> blob_of(const json::Value& block) {
  const json::Value source = block["source"];
  if (source["type"].string_or("") != "base64") return std::nullopt;
  const auto data = source["data"].as_string();
  auto bytes = data ? from_base64(*data) : std::nullopt;
  if (!bytes || bytes->empty()) return std::nullopt;
  return ImportedBlob{name_or(source["media_type"].string_or(""), "application/octet-stream"), std::move(*bytes)};
}

std::string without_data(const json::Value& block) {
  json::Writer out;
  out.begin_object();
  for (const json::Value member : block) {
    if (member.key() != "source") {
      write_value(out.key(member.key()), member);
      continue;
    }
    out.key("source").begin_object();
    for (const json::Value part : member) {
      if (part.key() != "data") write_value(out.key(part.key()), part);
    }
    out.end_object();
  }
  return std::move(out.end_object()).text();
}

void write_result_parts(json::Writer& body, const json::Value& content, std::vector<std::string>& others) {
  if (const auto text = content.as_string()) return write_part(body, "text", *text);
  for (const json::Value block : content) {
    if (block["type"].string_or("") == "text" && block["text"].is(json::Kind::string)) {
      write_part(body, "text", *block["text"].as_string());
    } else {
      json::Writer whole;
      write_value(whole, block);
      others.push_back(std::move(whole).text());
    }
  }
}

}  // namespace muniment::cli
