#include "cli/import/guess.hpp"

#include <fmt/format.h>

#include "cli/import/records.hpp"

namespace muniment::cli {

std::string_view guessed_format(const json::Value& record) {
  if (!record.is(json::Kind::object)) return {};
  const auto has = [&](std::string_view name, json::Kind kind) { return record[name].is(kind); };
  if (record["resourceSpans"] || record["resourceLogs"]) return "otlp";
  if (record["event_id"] && record["body_hash"] && record["run_seq"]) return "jsonl";
  if (has("trajectory", json::Kind::array) && record["history"]) return "swe-agent";
  if (has("traj", json::Kind::array) || has("messages_display", json::Kind::string)) return "tau-bench";
  for (const json::Value part : record["content"]) {
    if (part["class_"]) return "openhands";
    break;
  }
  if (record["instance_id"] && has("messages", json::Kind::array)) return "openhands";
  const std::string type = record["type"].string_or("");
  const bool is_line = (type == "user" || type == "assistant") && has("message", json::Kind::object);
  if (is_line || (type == "summary" && record["leafUuid"]) || (type == "system" && record["subtype"] && record["uuid"])) return "claude-code";
  return {};
}

std::string looks_like(const json::Value& record) {
  const std::string_view format = guessed_format(record);
  return format.empty() ? std::string() : fmt::format("; it looks like {} (--format {})", format, format);
}

std::string text_looks_like(std::string_view text) {
  const auto document = json::parse(text);
  return document ? looks_like(document->root()) : std::string();
}

std::string first_record_looks_like(std::string_view text) {
  const auto document = json::parse(text);
  if (!document) return text_looks_like(text.substr(0, text.find('\n')));
  const json::Value root = document->root();
  if (!root.is(json::Kind::array)) return looks_like(root);
  for (const json::Value record : root) return looks_like(record);
  return {};
}

Status refuse_other_format(const std::string& path, std::string_view format) {
  ASSIGN_OR_RETURN(RecordReader reader, RecordReader::open(path));
  const auto record = reader.next();
  const auto document = record && *record ? json::parse((*record)->text) : Result<json::Document>(Error(Errc::invalid_argument, ""));
  const std::string_view found = document ? guessed_format(document->root()) : std::string_view();
  if (found.empty() || found == format) return success();
  return Error(Errc::invalid_argument, fmt::format("this is no {}{}", format, looks_like(document->root())));
}

}  // namespace muniment::cli
