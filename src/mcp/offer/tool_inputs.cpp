// Converts the arguments of tools to native parameters.
#include "mcp/offer/tool_inputs.hpp"

#include <algorithm>
#include <array>
#include <set>

#include <fmt/format.h>

#include "base/clock.hpp"
#include "base/crypto/sha256.hpp"
#include "base/ids.hpp"
#include "base/json/schema.hpp"
#include "base/limits.hpp"
#include "base/memory_names.hpp"
#include "mcp/offer/tools.hpp"

namespace muniment::mcp {
namespace {

constexpr int cards_shown = 5;  // by default: a model reads all of them

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

// Names that models give to the text of a message or a thought.
constexpr std::array<std::string_view, 5> said_names{"content", "text", "message", "thought", "thinking"};

bool is_said(std::string_view name) { return std::ranges::find(said_names, name) != said_names.end(); }

// Returns whether a member of a message or a thought was written beside its type instead of in its body.
bool is_misplaced(const json::Value& event, std::string_view key) {
  return !event["body"] && (is_said(key) || key == "role" || key == "message_id");
}

// Writes the body of a message or a thought, of which models often know only the text: it may be the body itself, have
// another name, or be a member of the event. A message has a new id and the role assistant unless others are given.
void write_said(json::Writer& out, const json::Value& event, bool is_message) {
  const json::Value body = event["body"] ? event["body"] : event;
  const bool has_content = body["content"].present();
  json::Value said = body.is(json::Kind::string) ? body : json::Value();
  out.begin_object();
  for (const json::Value member : body) {
    const std::string key = member.key();
    if (!body.is(json::Kind::object) || (!event["body"] && !is_misplaced(event, key))) continue;
    if (is_said(key) && (key == "content" || !has_content)) {
      said = member;
    } else {
      out.raw_member(key, member.source());
    }
  }
  if (is_message && !body["message_id"]) out.member("message_id", make_uuid_v7(Clock().now()).text());
  if (is_message && !body["role"]) out.member("role", "assistant");
  if (said && !said.is(json::Kind::null)) write_content(out, said);
  out.end_object();
}

// The bodies of x. types are not converted.
void write_event_members(json::Writer& out, const json::Value& event) {
  const std::string type = event["type"].string_or("");
  const bool is_message = type == "message.added", says = is_message || type == "thought.recorded";
  if (says) {
    out.key("body");
    write_said(out, event, is_message);
  }
  for (const json::Value member : event) {
    const std::string key = member.key();
    if (key == "_meta" || key == "spill" || key == "events") continue;
    if (says && (key == "body" || is_misplaced(event, key))) continue;
    out.key(key);
    if (key == "body" && member.is(json::Kind::object) && !type.starts_with("x.")) {
      write_body(out, member);
    } else {
      out.raw(member.source());
    }
  }
}

// Writes the properties of a method's schema, `renamed` under another name, and members of `more` after them.
std::string renamed_input(std::string_view method, std::string_view name, std::string_view renamed,
                          std::string_view description) {
  const std::string schema = plain_schema(method, "params");
  const auto document = json::parse(schema);
  json::Writer out;
  out.begin_object().member("type", "object").key("properties").begin_object();
  for (const json::Value member : document->root()["properties"]) {
    const std::string key = member.key();
    if (key == "corpus") {
      out.key(key).begin_object().member("type", "string").member("maxLength", limits::corpus_name_bytes_max);
      out.member("description", "The corpus (default: memory)").end_object();
    } else if (key == name) {
      out.key(renamed).begin_object().member("type", "string");
      out.member("description", description).end_object();
    } else {
      out.raw_member(key, member.source());
    }
  }
  out.end_object();
  if (!renamed.empty()) out.key("required").begin_array().string(renamed).end_array();
  return std::move(out.member("additionalProperties", false).end_object()).text();
}

bool names_subject(const json::Value& arguments) {
  return arguments["subject"] || arguments["id"] || arguments["document"];
}

Error no_subject() { return {Errc::invalid_argument, "subject is required: that of the fact, as memories lists it."}; }

// Writes the arguments with the native name of the subject, and with the default corpus.
void write_memory_members(json::Writer& out, const json::Value& arguments) {
  out.member("corpus", arguments["corpus"].string_or(memory_corpus));
  for (const json::Value member : arguments) {
    const std::string key = member.key();
    if (key != "corpus" && key != "_meta")
      out.raw_member(key == "subject" || key == "id" ? "document" : key, member.source());
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
  out.key("subject").begin_object().member("type", "string").member("maxLength", limits::document_id_bytes_max);
  out.member("description", "What the fact is about, such as home or project/parser/owner").end_object();
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

// Without a subject, a file is named by its path and a text by its hash, so the same text is the same document. A
// source that is a pointer is what the text was derived from, so that the text is not trusted more than it.
Result<std::string> remember_params(const json::Value& arguments, const Setting& setting) {
  const auto text = arguments["text"].as_string();
  const auto path = arguments["path"].as_string();
  if (!text && !path && !arguments["artifact_id"])
    return Error(Errc::invalid_argument, "give the document as text, path or artifact_id.");
  json::Writer out;
  // A text that waits for review does not replace a known one: until it is accepted it is in a corpus of its own.
  const std::string corpus = arguments["corpus"].string_or(memory_corpus);
  const bool apart = setting.review && !corpus.ends_with(review_ending);
  out.begin_object().member("corpus", apart ? corpus + std::string(review_ending) : corpus);
  out.key("documents").begin_array().begin_object();
  if (arguments["subject"]) {
    out.raw_member("id", arguments["subject"].source());
  } else if (!arguments["id"]) {
    out.member("id", path ? *path : "note-" + to_hex(sha256(text.value_or(""))).substr(0, 16));
  }
  const std::string source = arguments["source"].string_or("");
  const bool derived = source.starts_with("ev://") && !arguments["derived_from"];
  if (setting.review) out.member("trust", "quarantined");
  if (derived) out.key("derived_from").begin_array().string(source).end_array();
  for (const json::Value member : arguments) {
    const std::string key = member.key();
    if (key == "corpus" || key == "wait" || key == "_meta" || key == "subject" || (key == "source" && derived) ||
        (key == "id" && arguments["subject"]) || (key == "trust" && setting.review))
      continue;
    out.raw_member(key, member.source());
  }
  out.end_object().end_array().member("wait", arguments["wait"].as_bool().value_or(true)).member("known", true);
  write_meta(out);
  return std::move(out.end_object()).text();
}

Result<std::string> retrieve_params(const json::Value& arguments, const Setting& setting) {
  if (!arguments["queries"])
    return Error(Errc::invalid_argument, R"(queries is required: [{"query": "the question", "corpus": "memory"}].)");
  const std::string params = plain_params("evidence.retrieve", arguments, setting.run_id);
  if (arguments["topK"]) return params;
  return fmt::format("{{\"topK\":{},{}", cards_shown, std::string_view(params).substr(1));
}

std::string recall_input() {
  return renamed_input("context.build", "query", "question", "What is to be recalled, in plain words");
}

Result<std::string> recall_params(const json::Value& arguments, const Setting& setting) {
  if (!arguments["question"] && !arguments["query"] && !arguments["queries"])
    return Error(Errc::invalid_argument, "question is required: what is to be recalled, in plain words.");
  json::Writer out;
  out.begin_object();
  for (const json::Value member : arguments) {
    const std::string key = member.key();
    if (key != "_meta") out.raw_member(key == "question" ? "query" : key, member.source());
  }
  if (!setting.run_id.empty() && !arguments["run_id"]) out.member("run_id", setting.run_id);
  write_meta(out);
  return std::move(out.end_object()).text();
}

std::string forget_input() {
  return renamed_input("document.retract", "document", "subject", "Subject of the fact, as memories lists it");
}

Result<std::string> forget_params(const json::Value& arguments, const Setting&) {
  if (!names_subject(arguments)) return no_subject();
  json::Writer out;
  out.begin_object();
  write_memory_members(out, arguments);
  if (!arguments["reason"]) out.member("reason", "forgotten on request");
  write_meta(out);
  return std::move(out.end_object()).text();
}

std::string memories_input() { return renamed_input("document.list", "", "", ""); }
std::string history_input() {
  return renamed_input("document.history", "document", "subject", "Subject of the fact, as memories lists it");
}

Result<std::string> history_params(const json::Value& arguments, const Setting& setting) {
  if (!names_subject(arguments)) return no_subject();
  return memories_params(arguments, setting);
}

Result<std::string> memories_params(const json::Value& arguments, const Setting&) {
  json::Writer out;
  out.begin_object();
  write_memory_members(out, arguments);
  if (!arguments["summaries"]) out.member("summaries", true);
  write_meta(out);
  return std::move(out.end_object()).text();
}

Result<std::string> event_params(const json::Value& arguments, const Setting& setting) {
  if (setting.run_id.empty() && !arguments["run_id"])
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
  if (!setting.run_id.empty() && !arguments["run_id"]) out.member("run_id", setting.run_id);
  out.member("spill", arguments["spill"].as_bool().value_or(true));
  write_meta(out);
  return std::move(out.end_object()).text();
}

std::string status_input() {
  return R"({"type":"object","properties":{"handle":{"type":"string","maxLength":100,)"
         R"("description":"Handle of a call that took long: return its result"}},"additionalProperties":false})";
}

}  // namespace muniment::mcp
