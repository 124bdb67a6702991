// Extracts the status and text of a tool result from a line of a Claude Code session.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json/json.hpp"
#include "cli/import/source.hpp"

namespace muniment::cli {

struct ToolResult {
  std::string_view status = "ok";  // status of tool.returned
  std::optional<std::int64_t> exit_code;
  std::optional<std::string_view> denied_by;  // "human", or "code" if a rule or a missing answer denied the call
};

// `line` is the whole line, `block` its tool_result.
ToolResult judge_result(const json::Value& line, const json::Value& block);

// Returns the text of a message or of its first text block.
std::string first_text(const json::Value& content);

// The bytes of a picture or a document that a block holds in base64; nullopt for any other block.
std::optional<ImportedBlob> blob_of(const json::Value& block);
// Such a block as JSON, without its bytes.
std::string without_data(const json::Value& block);

// Texts become parts and pictures artifacts; the JSON of anything else but tools' results is added to `others`.
void take_content(const json::Value& content, std::vector<std::string>& parts, std::vector<std::string>& others,
                  std::vector<ImportedBlob>& blobs);

// The type of a line as the name of an event's type may hold it: x.claude_code.<type>.
std::string raw_type(const json::Value& line);
// The todos of a TodoWrite call as the body of plan.updated.
std::string plan_json(const json::Value& todos);

// The usage of a call as JSON, from that of a message; empty where it has none.
std::string usage_json(const json::Value& usage);

// The texts in `content` as parts; the JSON of what is none is added to `others`.
void write_result_parts(json::Writer& body, const json::Value& content, std::vector<std::string>& others);

}  // namespace muniment::cli
