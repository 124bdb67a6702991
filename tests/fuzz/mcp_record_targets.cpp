// Target of recorded MCP calls: whatever a host or an MCP server sends, the record of a call is a valid event body.
#include "adapters/mcp/call_record.hpp"
#include "adapters/mcp/scrub_json.hpp"
#include "base/json/json.hpp"
#include "base/json/message_skim.hpp"
#include "events/catalogue.hpp"
#include "fuzz/target.hpp"

namespace muniment::fuzz {
namespace {

void require_body(const cli::DraftEvent& event) {
  std::string body;
  std::size_t references = 0;
  for (const char c : event.body()) {
    if (c == cli::reference_mark) {
      body += cli::reference_json(event.artifacts.at(references++), "0191e8a0-0000-7000-8000-000000000000",
                                  std::string(64, 'a'), 1);
    } else {
      body += c;
    }
  }
  require(references == event.artifacts.size(), "an artifact is not referred to");
  const auto document = json::parse(std::string_view(body));
  require(document.ok(), document.ok() ? "" : (document.error().message + ": " + body).c_str());
  const auto fits = events::check_body(event.type, document->root());
  require(fits.ok(), fits.ok() ? "" : fits.error().message.c_str());
}

void try_line(const std::string& line) {
  const cli::CallRules rules{"s", line.size() % 2 == 0};
  for (const std::string_view message : json::messages_of(line)) {
    const json::Envelope envelope = json::skim_message(message);
    const cli::ToolCall call{"c", std::string(envelope.id)};
    require_body(cli::draft_called(rules, call, envelope.params));
    require_body(cli::draft_returned(rules, call, envelope.result, envelope.error, 1));
    std::string scrubbed(message);
    cli::scrub_json(scrubbed);
    require(!json::parse(message).ok() || json::parse(std::string_view(scrubbed)).ok(), "scrubbing has broken JSON");
  }
  json::id_of_cut_message(line.substr(0, line.size() / 2), line.substr(line.size() / 2));
  const std::string id = json::id_to_answer(line);
  require(id.find('\n') == std::string::npos, "an id is more than a line");
  const auto document = json::parse(line);
  if (!document || !document->root().is(json::Kind::object)) return;
  const json::Value root = document->root(), written = root["id"];
  const bool is_id = written.is(json::Kind::string) || written.is(json::Kind::number);
  if (!is_id || root["result"] || root["error"]) return;
  require(id == written.source(), "the id of a request is not found");
}

}  // namespace

std::vector<Target> mcp_record_targets() {
  return {
      {"mcp_message",
       try_line,
       {R"({"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"n","arguments":{"password":"x","t":"AKIA0123456789ABCDEF"}}})",
        R"({"jsonrpc":"2.0","id":"a","result":{"content":[{"type":"text","text":"t\n"},{"type":"image","data":"YWJj","mimeType":"image/png"},{"type":"resource_link","uri":"file:///a","name":"a"},{"type":"resource","resource":{"uri":"u","blob":"YWJj"}}],"structuredContent":{"a":1},"isError":true}})",
        R"([{"id":1,"error":{"code":-32602,"message":"m","data":[1]}},{"method":"notifications/x"}])"}}};
}

}  // namespace muniment::fuzz
