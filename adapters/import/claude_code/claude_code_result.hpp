// Extracts the status and text of a tool result from a line of a Claude Code session.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "adapters/import/source.hpp"
#include "base/json/json.hpp"

namespace muniment::cli {

struct ToolResult {
  std::string_view status = "ok";  // status of tool.returned
  std::optional<std::int64_t> exit_code;
  std::optional<std::string_view> denied_by;  // "human", or "code" if a rule or a missing answer denied the call
};

// Returns whether a line is one that `--output-format stream-json` prints: it has other names, no time, and no usage of
// its own.
bool is_of_stream(const json::Value& line);
// The details of a line with the result of a tool.
json::Value result_details(const json::Value& line);

// `line` is the whole line, `block` its tool_result.
ToolResult judge_result(const json::Value& line, const json::Value& block);

// Returns the text of a message or of its first text block.
std::string first_text(const json::Value& content);

// The bytes of a picture or a document that a block holds in base64; nullopt for any other block.
std::optional<ImportedBlob> blob_of(const json::Value& block);
// Returns the same block as JSON, without its bytes.
std::string without_data(const json::Value& block);

// Appends text blocks to `parts` and images and documents to `blobs`. Appends the JSON of every non-text block except
// tool results to `others` (images without their bytes).
void take_content(const json::Value& content, std::vector<std::string>& parts, std::vector<std::string>& others,
                  std::vector<ImportedBlob>& blobs);

// Returns the event type for a line, x.claude_code.<type>, with the characters that an event type does not allow
// replaced.
std::string raw_type(const json::Value& line);
// The todos of a TodoWrite call as the body of plan.updated.
std::string plan_json(const json::Value& todos);

// Returns whether the client wrote the message after its end. Before it, the number of written tokens is a placeholder.
bool is_complete(const json::Value& message);

// Converts the token usage of a message to the usage JSON of a model call; empty if the message has no usage. The
// number of tokens that it wrote is left out without `with_output`.
std::string usage_json(const json::Value& usage, bool with_output);

// The end of a run as the line `result` of a stream gives it.
RunEnd end_of_stream(const json::Value& line);

// Writes the text blocks of `content` as parts; appends the JSON of every other block to `others`.
void write_result_parts(json::Writer& body, const json::Value& content, std::vector<std::string>& others);

}  // namespace muniment::cli
