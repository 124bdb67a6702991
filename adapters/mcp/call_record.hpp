// Creates the events of a tool call: the bodies of tool.called and tool.returned from MCP messages.
//
// A body contains only data that the log accepts. Other data (arguments nested too deeply, duplicate keys, images,
// texts over 64 KiB) becomes an artifact that is stored before the event, and the body refers to it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace muniment::cli {

// Bytes to store before the event.
struct DraftArtifact {
  std::string mime_type;
  std::string bytes;
  std::string part_type;  // type of a content part: text, image, …; or empty
};

struct DraftEvent {
  std::string type;
  std::string head;  // members that are always recorded, without braces
  std::string rest;  // members that the log may refuse, with a `reference_mark` for each artifact
  std::vector<DraftArtifact> artifacts;

  std::string body() const;
};

// Placeholder for the reference to an artifact; JSON text cannot contain this byte.
inline constexpr char reference_mark = '\x01';

// Returns the reference to a stored artifact, as JSON.
std::string reference_json(const DraftArtifact& artifact, std::string_view artifact_id, std::string_view hash,
                           std::int64_t size_bytes);

// Returns the event for a refused body: `refused` becomes an artifact, and `why` is recorded.
DraftEvent reduced(const DraftEvent& event, std::string refused, std::string_view why);

struct CallRules {
  std::string server;
  bool keep_secrets = false;
};

struct ToolCall {
  std::string call_id;
  std::string request_id;  // as written by the host
};

DraftEvent draft_called(const CallRules& rules, const ToolCall& call, std::string_view params);
// Returns the event for a reply. `result` and `error` are the members of the reply; one of them is empty.
DraftEvent draft_returned(const CallRules& rules, const ToolCall& call, std::string_view result, std::string_view error,
                          std::int64_t duration_us);
// Returns the event for a call without a recordable reply.
DraftEvent draft_unanswered(const ToolCall& call, std::string_view status, std::string_view why,
                            std::int64_t duration_us);

}  // namespace muniment::cli
