// JSON-RPC messages of MCP: parses one from a host's text, and writes one for a host.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json/json.hpp"

namespace muniment::mcp {

enum class MessageKind : std::uint8_t { request, notification, response };

// Error codes of JSON-RPC 2.0 and of the two MCP revisions.
inline constexpr int parse_error = -32700;
inline constexpr int invalid_request = -32600;
inline constexpr int method_not_found = -32601;
inline constexpr int invalid_params = -32602;
inline constexpr int internal_error = -32603;
inline constexpr int resource_not_found = -32002;  // until 2025-11-25; then invalid_params
inline constexpr int header_mismatch = -32020;     // since 2026-07-28, like those below
inline constexpr int missing_client_capability = -32021;
inline constexpr int unsupported_version = -32022;

// A request's error: `data` is JSON text, or empty.
struct Failure {
  int code = internal_error;
  std::string message;
  std::string data{};
};

// A message, with the text that its values point into.
struct Message {
  std::string text;
  json::Document document;
  MessageKind kind = MessageKind::request;
  std::string id;      // id_text of the id; empty for a notification
  std::string method;  // empty for a response

  json::Value root() const { return document.root(); }
  json::Value params() const { return root()["params"]; }
  json::Value meta() const { return params()["_meta"]; }
};

using MessagePtr = std::shared_ptr<const Message>;

// Either a message or a failure. `id` is the JSON text of the id to answer, also of a text that is refused.
struct Parsed {
  MessagePtr message;
  std::optional<Failure> failure;
  std::string id;
};

// JSON text of an id, normalized; 1 and "1" differ. Empty for an invalid id.
std::string id_text(const json::Value& id);

// Accepts strict JSON (base/json/json.hpp) that is one JSON-RPC message; refuses a batch. Replaces NUL, lone surrogates
// and bytes that are not UTF-8 by U+FFFD first, because a host cannot know which characters the log refuses.
Parsed parse_message(std::string text);

// Returns the texts of a batch's messages. Errors: a text that is no complete JSON array, or an empty one.
struct Batch {
  std::vector<std::string> messages;
  std::optional<Failure> failure;
};
Batch split_batch(std::string_view text);

// True if a line opens an MCP conversation: its method is one of MCP's. Native method names contain a dot.
bool is_mcp_line(std::string_view line);

// Messages without a line feed. `id`, `result`, `params` are JSON text.
std::string result_message(std::string_view id, std::string_view result);
std::string error_message(std::string_view id, const Failure& failure);
std::string request_message(std::string_view id, std::string_view method, std::string_view params);
std::string notification_message(std::string_view method, std::string_view params);

}  // namespace muniment::mcp
