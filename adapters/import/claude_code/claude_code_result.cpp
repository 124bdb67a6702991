#include "adapters/import/claude_code/claude_code_result.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "adapters/import/claude_code/claude_code_thread.hpp"
#include "adapters/import/events.hpp"
#include "base/crypto/base64.hpp"
#include "base/text.hpp"

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

constexpr std::size_t raw_type_bytes_max = 40;

std::string text_block_json(std::string_view text) {
  json::Writer writer;
  write_part(writer, "text", text);
  return std::move(writer).text();
}

bool begins_with_any(std::string_view text, auto begin, auto end) {
  return std::any_of(begin, end, [&](std::string_view words) { return text.starts_with(words); });
}

// The output of a failed command begins with "Exit code 2\n…".
std::optional<std::int64_t> exit_code_of_text(std::string_view text) {
  constexpr std::string_view words = "Exit code ";
  if (!text.starts_with(words)) return std::nullopt;
  text.remove_prefix(words.size());
  return parse_decimal(text.substr(0, text.find_first_not_of("0123456789")));
}

}  // namespace

bool is_of_stream(const json::Value& line) { return line["session_id"].is(json::Kind::string) && !line["sessionId"]; }

json::Value result_details(const json::Value& line) {
  return line["toolUseResult"] ? line["toolUseResult"] : line["tool_use_result"];
}

bool is_complete(const json::Value& message) {
  const json::Value reason = message["stop_reason"];
  return !reason.present() || !reason.is(json::Kind::null);
}

RunEnd end_of_stream(const json::Value& line) {
  const std::string subtype = line["subtype"].string_or(""), text = line["result"].string_or("");
  const bool is_well = subtype == "success" && !line["is_error"].as_bool().value_or(false);
  RunEnd end{is_well ? "success" : "failure", preview(text.empty() ? subtype : text, 1'000),
             usage_json(line["usage"], true)};
  if (const auto cost = line["total_cost_usd"].as_double(); cost && *cost >= 0 && !end.usage.empty()) {
    end.usage.pop_back();
    end.usage += fmt::format(R"(,"cost":{{"amount":{},"currency":"USD"}}}})", line["total_cost_usd"].source());
  }
  return end;
}

ToolResult judge_result(const json::Value& line, const json::Value& block) {
  ToolResult result;
  const json::Value details = result_details(line);
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
std::string usage_json(const json::Value& usage, bool with_output) {
  const auto count = [&](std::string_view name) -> std::optional<std::int64_t> {
    const auto tokens = usage[name].as_int();
    return tokens && *tokens >= 0 && *tokens <= 1'000'000'000'000 ? tokens : std::nullopt;
  };
  const auto input = count("input_tokens"), output = count("output_tokens");
  if (!input || !output) return {};
  const auto cached = count("cache_read_input_tokens"), written = count("cache_creation_input_tokens");
  json::Writer writer;
  writer.begin_object().member("input_tokens", *input + cached.value_or(0) + written.value_or(0));
  if (with_output) writer.member("output_tokens", *output);
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

void take_content(const json::Value& content, std::vector<std::string>& parts, std::vector<std::string>& others,
                  std::vector<ImportedBlob>& blobs) {
  if (const auto text = content.as_string()) return parts.push_back(text_block_json(*text));
  for (const json::Value block : content) {
    const std::string type = block["type"].string_or("");
    if (type == "tool_result") continue;
    if (type == "text" && block["text"].is(json::Kind::string)) {
      parts.push_back(text_block_json(*block["text"].as_string()));
    } else if (auto blob = blob_of(block)) {
      others.push_back(without_data(block));
      blobs.push_back(std::move(*blob));
    } else {
      json::Writer whole;
      write_value(whole, block);
      others.push_back(std::move(whole).text());
    }
  }
}

void ClaudeCodeThread::begin_turn(const SessionLine& line) {
  end_turn(line.number, "step-end");
  step_ = fmt::format("turn-{:04}", ++turns_);
  ended_turn_ = false;
  json::Writer body;
  body.begin_object().member("name", fmt::format("turn {}", turns_)).member("kind", "turn").end_object();
  emit(line.number, "step", "step.started", std::move(body).text(), line.occurred_at);
  turn_began_at_ = line.occurred_at;
}

// A turn ends with its last line. If that is also its first one, the time of its end is unknown.
void ClaudeCodeThread::end_turn(std::uint64_t number, std::string_view part) {
  const std::string ended_at = last_time_ == turn_began_at_ ? std::string() : last_time_;
  if (!step_.empty()) emit(number, part, "step.ended", unknown_step_end, ended_at);
}

void ClaudeCodeThread::add_prompt(const SessionLine& line, const std::string& parts, const std::string& rest,
                                  std::vector<ImportedBlob> blobs) {
  json::Writer body;
  body.begin_object().member("message_id", "line-" + line_text(line.number)).member("role", "user");
  body.raw_member("content", "[" + parts + "]");
  if (!rest.empty()) body.raw_member("x_source", rest);
  emit(line.number, "message", "message.added", std::move(body.end_object()).text(), line.occurred_at);
  out_->back().event.blobs = std::move(blobs);
}

std::string raw_type(const json::Value& value) {
  std::string name;
  for (const char c : value["type"].string_or("").substr(0, raw_type_bytes_max)) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    name.push_back(letter ? static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c) : '_');
  }
  return "x.claude_code." + (name.empty() ? "untyped" : name);
}

std::string plan_json(const json::Value& todos) {
  json::Writer body;
  body.begin_object().key("items").begin_array();
  std::size_t index = 0;
  for (const json::Value item : todos) {
    ++index;
    body.begin_object().member("id", name_or(item["id"].string_or(""), fmt::format("{}", index)));
    body.member("text", item["content"].string_or(""))
        .member("status", name_or(item["status"].string_or(""), "pending"))
        .end_object();
  }
  return std::move(body.end_array().end_object()).text();
}

}  // namespace muniment::cli
