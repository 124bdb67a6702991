// Parses a request line and checks it against the method's schema.
#include "gateway/request/request_line.hpp"

#include <algorithm>

#include "base/crypto/sha256.hpp"
#include "base/limits.hpp"
#include "base/text.hpp"
#include "gateway/method_table.hpp"

namespace muniment::gateway {
namespace {

constexpr std::size_t id_bytes_max = 256;

Error unknown_method(std::string_view name) {
  std::vector<std::string_view> names;
  for (const MethodInfo& method : method_table()) names.push_back(method.name);
  std::string text = "unknown method \"" + std::string(name.substr(0, 100)) + "\".";
  if (const std::string_view near = nearest(name, names); !near.empty())
    text += " Did you mean \"" + std::string(near) + "\"?";
  return Error(Errc::invalid_argument, text);
}

// Returns the id's JSON text if JSON-RPC allows it; otherwise nullopt.
std::optional<std::string> id_of(const json::Value& id) {
  if (!id || id.is(json::Kind::boolean) || id.is(json::Kind::object) || id.is(json::Kind::array)) return std::nullopt;
  if (id.source().size() > id_bytes_max) return std::nullopt;
  return std::string(id.source());
}

// Returns the error that refuses the id.
Error no_id(const json::Value& id) {
  if (!id)
    return {Errc::invalid_argument, "notifications are refused: give the request an id, so that it can be answered."};
  const bool allowed = id.is(json::Kind::string) || id.is(json::Kind::number) || id.is(json::Kind::null);
  if (!allowed) return {Errc::invalid_argument, "id: expected a string, a number or null."};
  Error error(Errc::too_large,
              "id: " + std::to_string(id.source().size()) + " bytes, limit " + std::to_string(id_bytes_max) + ".");
  error.limit = static_cast<std::int64_t>(id_bytes_max);
  return error;
}

// Returns whether raw bytes may follow a malformed line, because these must never be read as requests. The line may not
// be JSON, so the escapes that could spell the name are decoded here.
bool may_have_bytes(std::string_view line) {
  constexpr std::string_view escape = "\\u00";
  std::string plain;
  for (std::size_t at = 0; at < line.size();) {
    const auto byte = line.substr(at).starts_with(escape)
                          ? from_hex(line.substr(std::min(at + escape.size(), line.size()), 2))
                          : std::nullopt;
    plain += byte && !byte->empty() ? *byte : std::string(1, line[at]);
    at += byte && !byte->empty() ? escape.size() + 2 : 1;
  }
  return plain.find("body_bytes") != std::string::npos;
}

// Returns whether the line has its number of raw bytes, if any, in the only valid place.
bool can_say_bytes(const json::Value& root) {
  const json::Value params = root["params"];
  return root.is(json::Kind::object) && !root["body_bytes"] && (!params || params.is(json::Kind::object));
}

}  // namespace

Result<std::chrono::milliseconds> read_request_line(Exchange& exchange, const SchemaSet& schemas, RequestHead& head) {
  auto document = json::parse(exchange.line);
  head.close = !(document && can_say_bytes(document->root())) && may_have_bytes(exchange.line);
  if (!document) return std::move(document).error();
  exchange.document = *std::move(document);
  const json::Value root = exchange.document.root();
  if (root.is(json::Kind::array)) {
    return Error(Errc::invalid_argument,
                 "JSON-RPC batches are not supported: send one request per line (event.append takes many events).");
  }
  if (!root.is(json::Kind::object))
    return Error(Errc::invalid_argument, "a request is a JSON object. Send one per line.");
  const json::Value params = root["params"];
  if (root["body_bytes"])
    return Error(Errc::invalid_argument, "body_bytes: it has to be a member of params. The connection is closed.");
  if (const json::Value body = params["body_bytes"]) {
    const auto bytes = body.as_int();
    if (!bytes || *bytes < 0) {
      head.close = true;
      if (auto text = id_of(root["id"])) head.id = *text;
      return Error(Errc::invalid_argument, "body_bytes: expected the number of raw bytes that follow the line, got " +
                                               std::string(body.source().substr(0, 40)) +
                                               ". The connection is closed.");
    }
    head.body_bytes = *bytes;
  }
  const std::optional<std::string> given_id = id_of(root["id"]);
  if (given_id) head.id = *given_id;
  exchange.id = head.id;
  if (root["jsonrpc"].string_or("") != "2.0") return Error(Errc::invalid_argument, "jsonrpc: expected \"2.0\".");
  const auto name = root["method"].as_string();
  if (!name) return Error(Errc::invalid_argument, "method: expected the name of a method.");
  exchange.method = find_method(*name);
  if (!exchange.method) return unknown_method(*name);
  if (!given_id) return no_id(root["id"]);
  if (params && !params.is(json::Kind::object)) return Error(Errc::invalid_argument, "params: expected an object.");
  static const json::Document no_params = *json::parse("{}");
  exchange.params = params ? params : no_params.root();
  const auto schema = schemas.find("rpc/" + *name + "#params");
  if (schema) RETURN_IF_ERROR(schema->validate(exchange.params));
  if (head.body_bytes > 0 && !exchange.method->open_body) {
    return Error(Errc::invalid_argument, *name + " takes no raw bytes. Omit body_bytes.");
  }

  const json::Value meta = exchange.params["_meta"];
  exchange.key_storage = meta["idempotency_key"].string_or("");
  exchange.idempotency_key = exchange.key_storage;
  const std::int64_t wanted = meta["deadline_ms"].as_int().value_or(limits::deadline_ms_default);
  return std::chrono::milliseconds(std::clamp<std::int64_t>(wanted, 1, limits::deadline_ms_max));
}

}  // namespace muniment::gateway
