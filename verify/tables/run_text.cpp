#include "verify/tables/run_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/ids.hpp"
#include "base/utf8.hpp"

namespace muniment::verify {
namespace {

constexpr std::int64_t text_bytes_max = 2 << 20;
constexpr std::array<std::string_view, 12> readable{
    "command.ended", "command.started", "context.compacted", "error.raised",     "message.added", "model.answered",
    "run.ended",     "run.halted",      "step.ended",        "thought.recorded", "tool.called",   "tool.returned"};

struct Part {
  std::string text;
  std::optional<Uuid> artifact_id;
};
using Parts = std::vector<Part>;

void add(Parts& parts, std::string text) {
  if (!text.empty()) parts.push_back({std::move(text), std::nullopt});
}

std::string said(const json::Value& value) {
  if (!value) return {};
  const auto text = value.as_string();
  return text ? *text : std::string(value.source());
}

void add_reference(Parts& parts, const json::Value& ref) {
  const std::string mime_type = ref["mime_type"].string_or("");
  const auto id = parse_uuid(ref["artifact_id"].string_or(""));
  if (!id || !ref["preview"]) return;
  if (mime_type.starts_with("text/") || mime_type == "application/json") parts.push_back({{}, id});
}

void add_call(Parts& parts, const json::Value& call) {
  const std::string arguments = said(call["arguments"]);
  add(parts, call["name"].string_or("") + (arguments.empty() ? "" : " ") + arguments);
}

void add_error(Parts& parts, const json::Value& error) {
  const std::string type = error["error_type"].string_or("");
  add(parts, type + (type.empty() ? "" : ": ") + error["message"].string_or(""));
  add(parts, error["stack"].string_or(""));
}

void add_content(Parts& parts, const json::Value& content) {
  for (const json::Value item : content) {
    const std::string type = item["type"].string_or("");
    if (item["artifact_id"])
      add_reference(parts, item);
    else if (type == "text" || type == "reasoning")
      add(parts, said(item["content"]));
    else if (type == "tool_call")
      add_call(parts, item);
    else if (type == "tool_call_response")
      add(parts, said(item["response"]));
  }
}

std::string words_of(const json::Value& argv) {
  std::string line;
  for (const json::Value word : argv) line += (line.empty() ? "" : " ") + word.string_or("");
  return line;
}

bool has_failed(std::string_view type, const json::Value& body) {
  if (type == "tool.returned" || type == "model.answered") {
    const std::string status = body["status"].string_or("");
    return (status != "ok" && status != "unknown") || body["error"];
  }
  if (type == "command.ended") return body["exit_code"].as_int().value_or(0) != 0 || body["signal"];
  if (type == "run.ended") return body["outcome"].string_or("") == "failure" || body["error"];
  return type == "error.raised" || type == "run.halted" || (type == "step.ended" && body["error"]);
}

std::string name_in(std::string_view type, const json::Value& body) {
  constexpr std::array<std::array<std::string_view, 2>, 5> members{{{"message.added", "role"},
                                                                    {"model.answered", "model"},
                                                                    {"tool.called", "name"},
                                                                    {"error.raised", "error_type"},
                                                                    {"run.halted", "code"}}};
  for (const auto& [of, member] : members) {
    if (of == type) return body[member].string_or("");
  }
  return {};
}

Parts parts_of(std::string_view type, const json::Value& body) {
  Parts parts;
  if (type == "tool.called") add_call(parts, body);
  if (type == "tool.called") add_reference(parts, body["ref"]);
  if (type == "command.started") add(parts, words_of(body["argv"]));
  if (type == "command.ended") {
    add_reference(parts, body["stdout"]);
    add_reference(parts, body["stderr"]);
  }
  if (type == "run.ended") add(parts, body["summary"].string_or(""));
  if (type == "run.halted") add(parts, body["reason"].string_or(""));
  if (type == "context.compacted") add_content(parts, body["summary"]);
  if (type == "error.raised") add_error(parts, body);
  if (type == "message.added" || type == "thought.recorded" || type == "tool.returned" || type == "model.answered")
    add_content(parts, body["content"]);
  if (type == "tool.returned" || type == "model.answered" || type == "step.ended" || type == "run.ended")
    add_error(parts, body["error"]);
  return parts;
}

// Returns the first `bytes_max` bytes of an artifact of this run; empty if the run has no artifact with that id.
Result<std::optional<std::string>> artifact_text(Connection& connection, const ArtifactRoot& root,
                                                 std::string_view run_id, const Uuid& id, std::int64_t bytes_max) {
  RETURN_IF_ERROR(connection.start_copy(
      fmt::format("SELECT path, size_bytes, run_id FROM artifact WHERE artifact_id = '{}'", id.text())));
  std::optional<std::string> text = "";
  Row row;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, connection.next(row));
    if (!more) return text;
    if (row.text(2) != run_id) continue;
    const std::int64_t wanted = std::min(row.integer(1), bytes_max);
    auto bytes = root.read_span(row.text(0), 0, wanted);
    if (bytes && static_cast<std::int64_t>(bytes->size()) == wanted)
      text = *std::move(bytes);
    else
      text.reset();
  }
}

}  // namespace

bool is_readable(std::string_view type) { return std::binary_search(readable.begin(), readable.end(), type); }

bool RunText::may_lack_row() const {
  if (!text || first_invalid_utf8(*text) != std::string::npos) return true;
  const auto is_odd = [](char c) {
    return (static_cast<unsigned char>(c) < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0x7f;
  };
  const auto is_blank = [](char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; };
  const bool beyond_ascii = std::ranges::any_of(*text, [](char c) { return static_cast<unsigned char>(c) >= 0x80; });
  return text->find("%PDF-") != std::string::npos || std::ranges::any_of(*text, is_odd) ||
         std::ranges::all_of(*text, is_blank) ||
         (beyond_ascii &&
          // May be white space of other scripts
          std::ranges::none_of(*text, [](char c) { return c > ' ' && c < 0x7f; }));
}

Result<RunText> run_text(Connection& connection, const ArtifactRoot& root, std::string_view run_id,
                         std::string_view type, const json::Value& body) {
  RunText out;
  out.name = name_in(type, body);
  if (!out.name.empty()) out.tags.push_back(out.name);
  if (has_failed(type, body)) out.tags.emplace_back("error");
  std::string text;
  for (Part& part : parts_of(type, body)) {
    if (static_cast<std::int64_t>(text.size()) > text_bytes_max) break;
    if (part.artifact_id) {
      ASSIGN_OR_RETURN(auto bytes, artifact_text(connection, root, run_id, *part.artifact_id, text_bytes_max + 1));
      if (!bytes) return out;
      part.text = *std::move(bytes);
    }
    if (part.text.empty()) continue;
    if (!text.empty()) text += "\n\n";
    text += part.text;
  }
  if (static_cast<std::int64_t>(text.size()) > text_bytes_max) {
    text.resize(static_cast<std::size_t>(text_bytes_max));
    const std::size_t odd = first_invalid_utf8(text);
    if (odd != std::string::npos && odd + 4 > text.size()) text.resize(odd);  // a truncated character
  }
  out.text = std::move(text);
  return out;
}

}  // namespace muniment::verify
