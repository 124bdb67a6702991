#include "cli/import/otlp/otlp_messages.hpp"

#include <algorithm>
#include <initializer_list>

#include "cli/import/events.hpp"

namespace muniment::cli {
namespace {

constexpr std::size_t parts_max = 1'000;  // parts per content
constexpr std::size_t part_name_bytes_max = 256;
constexpr std::size_t part_uri_bytes_max = 4'096;
constexpr std::size_t part_file_id_bytes_max = 1'024;
constexpr std::size_t part_modality_bytes_max = 64;

bool only_has(const json::Value& object, std::initializer_list<std::string_view> names) {
  for (const json::Value member : object) {
    if (!member.is(json::Kind::null) && std::find(names.begin(), names.end(), member.key()) == names.end())
      return false;
  }
  return true;
}

// Accepts an absent or null value, or a text within the limit; `least` 1 requires a nonempty text.
bool fits(const json::Value& value, std::size_t most, std::size_t least = 0) {
  if (!value.present() || value.is(json::Kind::null)) return least == 0;
  const auto text = value.as_string();
  return text && text->size() >= least && text->size() <= most;
}

// Accepts a call id: absent, null, or 1 to 256 bytes.
bool id_fits(const json::Value& id) {
  return !id.present() || id.is(json::Kind::null) || fits(id, part_name_bytes_max, 1);
}

void write_texts(json::Writer& out, const json::Value& part, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (const auto text = part[name].as_string()) out.member(name, *text);
  }
}

// Returns the part as JSON, or empty if the schema of a part cannot represent it.
std::string part_json(const json::Value& part) {
  const std::string type = part["type"].string_or("");
  json::Writer out;
  out.begin_object().member("type", type);
  if ((type == "text" || type == "reasoning") && part["content"].is(json::Kind::string) &&
      only_has(part, {"type", "content"})) {
    write_texts(out, part, {"content"});
  } else if (type == "tool_call" && fits(part["name"], part_name_bytes_max, 1) && id_fits(part["id"]) &&
             only_has(part, {"type", "id", "name", "arguments"})) {
    write_texts(out, part, {"id", "name"});
    if (part["arguments"]) write_value(out.key("arguments"), part["arguments"]);
  } else if (type == "tool_call_response" && id_fits(part["id"]) &&
             part["response"].present() != part["result"].present() &&
             only_has(part, {"type", "id", "response", "result"})) {
    write_texts(out, part, {"id"});
    write_value(out.key("response"), part["response"] ? part["response"] : part["result"]);
  } else if (type == "uri" && fits(part["uri"], part_uri_bytes_max, 1) &&
             fits(part["mime_type"], part_name_bytes_max) && fits(part["modality"], part_modality_bytes_max) &&
             only_has(part, {"type", "uri", "mime_type", "modality"})) {
    write_texts(out, part, {"uri", "mime_type", "modality"});
  } else if (type == "file" && fits(part["file_id"], part_file_id_bytes_max, 1) &&
             fits(part["mime_type"], part_name_bytes_max) && fits(part["modality"], part_modality_bytes_max) &&
             only_has(part, {"type", "file_id", "mime_type", "modality"})) {
    write_texts(out, part, {"file_id", "mime_type", "modality"});
  } else {
    return {};
  }
  return std::move(out.end_object()).text();
}

void add_part(OtlpParts& parts, std::string json) {
  if (json.empty() || parts.parts.size() == parts_max) {
    parts.whole = false;
  } else {
    parts.parts.push_back(std::move(json));
  }
}

std::string text_part(std::string_view text) {
  json::Writer out;
  write_part(out, "text", text);
  return std::move(out).text();
}

void add_tool_call(OtlpParts& parts, const json::Value& call) {
  const json::Value function = call["function"];
  const bool plain = fits(function["name"], part_name_bytes_max, 1) && fits(call["id"], part_name_bytes_max, 1) &&
                     only_has(call, {"id", "type", "function"}) && only_has(function, {"name", "arguments"});
  if (!plain) {
    parts.whole = false;
    return;
  }
  json::Writer out;
  out.begin_object()
      .member("type", "tool_call")
      .member("id", call["id"].string_or(""))
      .member("name", function["name"].string_or(""));
  if (function["arguments"]) write_value(out.key("arguments"), function["arguments"]);
  add_part(parts, std::move(out.end_object()).text());
  parts.tool_calls.push_back(call["id"].string_or(""));
}

}  // namespace

OtlpParts otlp_parts(const json::Value& list) {
  OtlpParts parts;
  parts.whole = list.is(json::Kind::array);
  for (const json::Value part : list) {
    add_part(parts, part_json(part));
    if (part["type"].string_or("") == "tool_call" && part["id"]) parts.tool_calls.push_back(part["id"].string_or(""));
  }
  return parts;
}

OtlpParts otlp_message_parts(const json::Value& message) {
  OtlpParts parts = otlp_parts(message["parts"]);
  parts.whole = parts.whole && only_has(message, {"role", "parts", "finish_reason"});
  return parts;
}

OtlpParts otlp_body_parts(const json::Value& body) {
  OtlpParts parts;
  const json::Value content = body["content"];
  if (const auto text = content.as_string()) {
    add_part(parts, text_part(*text));
  } else if (content.is(json::Kind::array)) {
    for (const json::Value part : content) {
      const bool plain =
          part["type"].string_or("") == "text" && part["text"].is(json::Kind::string) && part.size() == 2;
      add_part(parts, plain ? text_part(part["text"].string_or("")) : part_json(part));
    }
  } else if (content.present() && !content.is(json::Kind::null)) {
    parts.whole = false;
  }
  for (const json::Value call : body["tool_calls"]) add_tool_call(parts, call);
  parts.whole = parts.whole && only_has(body, {"role", "content", "tool_calls"});
  return parts;
}

std::string_view otlp_role(std::string_view role, bool& known) {
  for (const std::string_view one : {"system", "developer", "user", "assistant", "tool"}) {
    if (role == one) return one;
  }
  known = false;
  return "user";
}

}  // namespace muniment::cli
