// Converts the arguments of tools to native parameters.
#include "mcp/offer/tool_inputs.hpp"

#include <set>

#include <fmt/format.h>

#include "base/crypto/sha256.hpp"
#include "base/json/schema.hpp"
#include "base/limits.hpp"
#include "mcp/offer/tools.hpp"

namespace muniment::mcp {
namespace {

constexpr std::string_view default_corpus = "memory";

// Sets the method's own time limit to its maximum, so that it does not end before the host's.
void write_meta(json::Writer& out) {
  out.key("_meta").begin_object().member("deadline_ms", limits::deadline_ms_max).end_object();
}

std::set<std::string_view> methods_with_run() {
  std::set<std::string_view> methods;
  for (const Tool& tool : tool_table()) {
    const std::string schema = plain_schema(tool.method, "params");
    const auto document = json::parse(schema);
    if (document && document->root()["properties"]["run_id"]) methods.insert(tool.method);
  }
  return methods;
}

// Returns whether the native method has a parameter run_id. Cached, since reading a schema takes up to 30 µs.
bool takes_run(std::string_view method) {
  static const std::set<std::string_view> methods = methods_with_run();
  return methods.contains(method);
}

void copy_members(json::Writer& out, const json::Value& object) {
  for (const json::Value member : object) {
    if (const std::string key = member.key(); key != "_meta") out.raw_member(key, member.source());
  }
}

void write_text_part(json::Writer& out, const json::Value& text) {
  out.begin_object().member("type", "text").raw_member("content", text.source()).end_object();
}

void write_part(json::Writer& out, const json::Value& part) {
  if (part.is(json::Kind::string)) return write_text_part(out, part);
  if (part["type"].string_or("") == "text" && part["text"].is(json::Kind::string) && !part["content"])
    return write_text_part(out, part["text"]);
  out.raw(part.source());
}

void write_content(json::Writer& out, const json::Value& content) {
  out.key("content").begin_array();
  if (content.is(json::Kind::array)) {
    for (const json::Value part : content) write_part(out, part);
  } else {
    write_part(out, content);
  }
  out.end_array();
}

void write_body(json::Writer& out, const json::Value& body) {
  out.begin_object();
  for (const json::Value member : body) {
    const std::string key = member.key();
    if (key == "content" && !member.is(json::Kind::null)) {
      write_content(out, member);
    } else {
      out.raw_member(key, member.source());
    }
  }
  out.end_object();
}

// The bodies of x. types are not converted.
bool has_content(const json::Value& event) {
  return event["body"].is(json::Kind::object) && !event["type"].string_or("").starts_with("x.");
}

void write_event_members(json::Writer& out, const json::Value& event) {
  for (const json::Value member : event) {
    const std::string key = member.key();
    if (key == "_meta" || key == "spill" || key == "events") continue;
    out.key(key);
    if (key == "body" && has_content(event)) {
      write_body(out, member);
    } else {
      out.raw(member.source());
    }
  }
}

}  // namespace

std::string plain_params(std::string_view method, const json::Value& arguments, std::string_view run_id) {
  json::Writer out;
  out.begin_object();
  copy_members(out, arguments);
  if (!run_id.empty() && !arguments["run_id"] && takes_run(method)) out.member("run_id", run_id);
  write_meta(out);
  return std::move(out.end_object()).text();
}

std::string remember_input() {
  const std::string schema = plain_schema("corpus.ingest", "params");
  const auto document = json::parse(schema);
  const json::Value properties = document->root()["properties"];
  json::Writer out;
  out.begin_object().member("type", "object").key("properties").begin_object();
  out.key("corpus").begin_object().member("type", "string").member("maxLength", limits::corpus_name_bytes_max);
  out.member("description", "The corpus (default: memory)").end_object();
  for (const json::Value member : properties["documents"]["items"]["properties"]) {
    if (member.key() != "path") {
      out.raw_member(member.key(), member.source());
      continue;
    }
    out.key("path").begin_object().member("type", "string").raw_member("maxLength", member["maxLength"].source());
    out.member("description", "Path of a file below a folder that the operator named (--files, mcp_files)")
        .end_object();
  }
  out.raw_member("wait", properties["wait"].source()).end_object();
  return std::move(out.member("additionalProperties", false).end_object()).text();
}

// Without an id, a file is named by its path and a text by its hash, so the same text is the same document.
Result<std::string> remember_params(const json::Value& arguments, std::string_view) {
  const auto text = arguments["text"].as_string();
  const auto path = arguments["path"].as_string();
  if (!text && !path && !arguments["artifact_id"])
    return Error(Errc::invalid_argument, "give the document as text, path or artifact_id.");
  json::Writer out;
  out.begin_object().member("corpus", arguments["corpus"].string_or(default_corpus));
  out.key("documents").begin_array().begin_object();
  if (!arguments["id"]) out.member("id", path ? *path : "note-" + to_hex(sha256(text.value_or(""))).substr(0, 16));
  for (const json::Value member : arguments) {
    const std::string key = member.key();
    if (key != "corpus" && key != "wait" && key != "_meta") out.raw_member(key, member.source());
  }
  out.end_object().end_array().member("wait", arguments["wait"].as_bool().value_or(true));
  write_meta(out);
  return std::move(out.end_object()).text();
}

Result<std::string> retrieve_params(const json::Value& arguments, std::string_view run_id) {
  if (!arguments["queries"])
    return Error(Errc::invalid_argument, R"(queries is required: [{"query": "the question", "corpus": "memory"}].)");
  return plain_params("evidence.retrieve", arguments, run_id);
}

Result<std::string> event_params(const json::Value& arguments, std::string_view run_id) {
  if (run_id.empty() && !arguments["run_id"])
    return Error(Errc::invalid_argument,
                 "run_id is required: this session has no run. Call run_start, and give its run_id.");
  json::Writer out;
  out.begin_object();
  write_event_members(out, arguments);
  if (arguments["events"].is(json::Kind::array)) {
    out.key("events").begin_array();
    for (const json::Value event : arguments["events"]) {
      out.begin_object();
      write_event_members(out, event);
      out.end_object();
    }
    out.end_array();
  } else if (arguments["events"]) {
    out.raw_member("events", arguments["events"].source());
  }
  if (!run_id.empty() && !arguments["run_id"]) out.member("run_id", run_id);
  out.member("spill", arguments["spill"].as_bool().value_or(true));
  write_meta(out);
  return std::move(out.end_object()).text();
}

std::string status_input() {
  return R"({"type":"object","properties":{"handle":{"type":"string","maxLength":100,)"
         R"("description":"Handle of a call that took long: return its result"}},"additionalProperties":false})";
}

}  // namespace muniment::mcp
