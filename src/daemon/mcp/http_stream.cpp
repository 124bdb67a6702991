// Writes MCP messages as the answer to one HTTP request.
#include "daemon/mcp/http_stream.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/crypto/base64.hpp"

namespace muniment::daemon {
namespace {

constexpr std::string_view version_key = "io.modelcontextprotocol/protocolVersion";

// In 2025-11-25, an error has the HTTP status of a success.
int status_of(const mcp::Outgoing& message, bool stateless) {
  if (!stateless) return 200;
  switch (message.error) {
    case mcp::method_not_found: return 404;
    case mcp::invalid_params:
    case mcp::invalid_request:
    case mcp::parse_error:
    case mcp::header_mismatch:
    case mcp::missing_client_capability:
    case mcp::unsupported_version: return 400;
    default: return 200;
  }
}

// Removes the blanks around a value and decodes =?base64?…?=, the form of values that are not plain ASCII.
std::optional<std::string> decoded(std::string value) {
  while (value.ends_with(' ') || value.ends_with('\t')) value.pop_back();
  value.erase(0, std::min(value.find_first_not_of(" \t"), value.size()));
  constexpr std::string_view begin = "=?base64?", end = "?=";
  if (!value.starts_with(begin) || !value.ends_with(end) || value.size() < begin.size() + end.size()) return value;
  return from_base64(std::string_view(value).substr(begin.size(), value.size() - begin.size() - end.size()));
}

mcp::Failure mismatch(std::string_view header, const std::optional<std::string>& value, std::string_view expected) {
  return {mcp::header_mismatch,
          value ? fmt::format("{}: {}, but the body says {}.", header, json::quote(*value), json::quote(expected))
                : fmt::format("{}: this header is required, with the value {}.", header, json::quote(expected))};
}

}  // namespace

HttpStream::HttpStream(std::shared_ptr<http::Exchange> exchange, std::vector<http::Header> headers, bool stateless)
    : exchange_(std::move(exchange)), headers_(std::move(headers)), stateless_(stateless) {
  exchange_->on_closed = [this] {
    closed_ = true;
    if (on_closed) std::exchange(on_closed, nullptr)();
  };
}

// The exchange may report a disconnected client after the stream was destroyed.
HttpStream::~HttpStream() { exchange_->on_closed = nullptr; }

void HttpStream::begin() {
  if (!std::exchange(streaming_, true)) exchange_->begin_events(200, headers_);
}

void HttpStream::send(const mcp::Outgoing& message) {
  if (closed_) return;
  if (message.last && !streaming_) {
    closed_ = true;
    headers_.push_back({"Content-Type", "application/json"});
    return exchange_->reply(status_of(message, stateless_), std::move(headers_), message.text);
  }
  begin();
  exchange_->send_event(message.text);
  if (message.last) end();
}

void HttpStream::keep_alive() {
  if (streaming_ && !closed_) exchange_->send_comment();
}

void HttpStream::end() {
  if (std::exchange(closed_, true)) return;
  if (streaming_) exchange_->end_events();
}

http::Answer http_failure(int status, const mcp::Failure& failure, std::string_view id) {
  return {status, {{"Content-Type", "application/json"}}, mcp::error_message(id, failure)};
}

std::optional<mcp::Failure> check_headers(const http::Request& request, const mcp::Message& message) {
  const auto version = request.header("MCP-Protocol-Version");
  const std::string said = message.meta()[version_key].string_or("");
  if (!said.empty() && version != said) return mismatch("MCP-Protocol-Version", version, said);
  const auto method = request.header("Mcp-Method");
  if (method != message.method) return mismatch("Mcp-Method", method, message.method);
  std::string_view member;
  if (message.method == "tools/call" || message.method == "prompts/get") member = "name";
  if (message.method == "resources/read") member = "uri";
  if (member.empty()) return std::nullopt;
  const auto name = request.header("Mcp-Name");
  const std::string expected = message.params()[member].string_or("");
  if (!name || decoded(*name) != expected) return mismatch("Mcp-Name", name, expected);
  return std::nullopt;
}

}  // namespace muniment::daemon
