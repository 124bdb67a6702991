// Parses and writes JSON-RPC messages.
#include "mcp/message.hpp"

#include <utility>

#include "base/json/message_skim.hpp"
#include "base/json/readable_characters.hpp"

namespace muniment::mcp {
namespace {

constexpr std::size_t id_bytes_max = 256;

Failure bad_request(std::string text) { return {invalid_request, std::move(text)}; }

std::optional<Failure> classify(Message& message) {
  const json::Value root = message.root();
  if (root.is(json::Kind::array))
    return bad_request("batches exist only in the revision 2025-03-26: send one message at a time.");
  if (!root.is(json::Kind::object)) return bad_request("a message is a JSON object.");
  const json::Value id = root["id"];
  if (id) message.id = id.source().size() <= id_bytes_max ? id_text(id) : std::string();
  if (id && message.id.empty()) return bad_request("id: expected a string or an integer of at most 256 bytes.");
  if (root["jsonrpc"].string_or("") != "2.0") return bad_request("jsonrpc: expected \"2.0\".");
  const json::Value method = root["method"];
  if (!method) {
    if (!id || (!root["result"] && !root["error"])) return bad_request("method: expected the name of a method.");
    message.kind = MessageKind::response;
    return std::nullopt;
  }
  if (!method.is(json::Kind::string)) return bad_request("method: expected the name of a method.");
  message.method = method.string_or("");
  message.kind = id ? MessageKind::request : MessageKind::notification;
  if (message.params() && !message.params().is(json::Kind::object))
    return Failure{invalid_params, "params: expected an object."};
  return std::nullopt;
}

json::Writer head() {
  json::Writer writer;
  writer.begin_object().member("jsonrpc", "2.0");
  return writer;
}

}  // namespace

// JSON-RPC also allows null and fractions as ids. MCP does not.
std::string id_text(const json::Value& id) {
  if (id.is(json::Kind::string)) return json::quote(id.string_or(""));
  const auto number = id.is(json::Kind::number) ? id.as_int() : std::nullopt;
  return number ? std::to_string(*number) : std::string();
}

Parsed parse_message(std::string text) {
  auto message = std::make_shared<Message>();
  message->text = std::move(text);
  auto document = json::parse(message->text);
  std::string original;  // empty: the text is as the sender wrote it
  if (!document) {
    original = std::exchange(message->text, with_readable_characters(message->text).text);
    document = json::parse(message->text);
  }
  const std::string& written = original.empty() ? message->text : original;
  if (!document) return {nullptr, Failure{parse_error, document.error().message}, json::id_to_answer(written)};
  message->document = *std::move(document);
  if (auto failure = classify(*message)) return {nullptr, std::move(failure), json::id_to_answer(written)};
  std::string id = original.empty() ? std::string() : json::id_to_answer(original);  // the sender knows this spelling
  if (message->kind == MessageKind::request && !id.empty()) message->id = id;
  id = message->id;
  return {std::move(message), std::nullopt, std::move(id)};
}

Batch split_batch(std::string_view text) {
  Batch batch;
  const std::size_t begin = json::skip_blanks(text, 0), end = json::skip_value(text, begin);
  if (json::skip_blanks(text, end) != text.size() || !text.substr(begin, end - begin).ends_with(']')) {
    batch.failure = Failure{parse_error, "a batch is one JSON array of messages."};
    return batch;
  }
  for (const std::string_view item : json::items_of(text)) batch.messages.emplace_back(item);
  if (batch.messages.empty()) batch.failure = bad_request("a batch has at least one message.");
  return batch;
}

bool is_mcp_line(std::string_view line) {
  const std::string method = json::skim_message(line).method;
  return method == "initialize" || method == "ping" || method.find('/') != std::string::npos;
}

std::string result_message(std::string_view id, std::string_view result) {
  return head().raw_member("id", id).raw_member("result", result).end_object().text();
}

std::string error_message(std::string_view id, const Failure& failure) {
  json::Writer writer = head();
  if (!id.empty()) writer.raw_member("id", id);
  writer.key("error").begin_object().member("code", failure.code).member("message", failure.message);
  if (!failure.data.empty()) writer.raw_member("data", failure.data);
  return std::move(writer.end_object().end_object()).text();
}

std::string request_message(std::string_view id, std::string_view method, std::string_view params) {
  return head().raw_member("id", id).member("method", method).raw_member("params", params).end_object().text();
}

std::string notification_message(std::string_view method, std::string_view params) {
  json::Writer writer = head();
  writer.member("method", method);
  if (!params.empty()) writer.raw_member("params", params);
  return std::move(writer.end_object()).text();
}

}  // namespace muniment::mcp
