#include "adapters/import/otlp/otlp_messages.hpp"

#include <algorithm>
#include <initializer_list>

#include "adapters/import/events.hpp"
#include "adapters/import/otlp/otlp_value.hpp"

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

// Returns the first of the named members that is present.
json::Value first_member(const json::Value& object, std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) {
    if (const json::Value member = object[name]) return member;
  }
  return {};
}

// Texts, also those of providers: {"type": "input_text", "text": …}, {"type": "thinking", "thinking": …}.
struct TextForm {
  std::string_view type;
  std::string_view member;
  std::string_view part;
};
constexpr TextForm text_forms[] = {
    {"text", "content", "text"},          {"text", "text", "text"},
    {"input_text", "text", "text"},       {"output_text", "text", "text"},
    {"refusal", "refusal", "text"},       {"reasoning", "content", "reasoning"},
    {"reasoning", "text", "reasoning"},   {"thinking", "thinking", "reasoning"},
    {"thinking", "content", "reasoning"},
};

class PartConverter {
 public:
  OtlpParts take() && { return std::move(parts_); }
  void unknown() { parts_.whole = false; }

  void add_list(const json::Value& list) {
    if (!list.is(json::Kind::array)) unknown();
    for (const json::Value part : list) add_part(part);
  }

  void add_text(std::string_view type, std::string_view text) {
    json::Writer out;
    write_part(out, type, text);
    add(std::move(out).text());
    if (type == "text" && parts_.text.empty()) parts_.text = text;
  }

  // A text, a list of parts, or one part.
  void add_content(const json::Value& content) {
    if (const auto text = content.as_string()) {
      add_text("text", *text);
    } else if (content.is(json::Kind::array)) {
      add_list(content);
    } else if (content.is(json::Kind::object)) {
      add_part(content);
    } else if (content.present() && !content.is(json::Kind::null)) {
      unknown();
    }
  }

  void add_part(const json::Value& part) {
    if (const auto text = part.as_string()) return add_text("text", *text);
    const std::string type = part["type"].string_or("");
    for (const TextForm& form : text_forms) {
      if (type != form.type || !part[form.member].is(json::Kind::string)) continue;
      add_text(form.part, part[form.member].string_or(""));
      if (!only_has(part, {"type", form.member})) unknown();
      return;
    }
    if (type == "tool_call" || type == "tool-call" || type == "tool_use" || type == "function_call")
      return add_call(part, part);
    if (type == "tool_call_response" || type == "tool-result" || type == "tool_result" ||
        type == "function_call_output")
      return add_response(part);
    if (type == "uri" || type == "file") return add_reference(part, type);
    const json::Value image = part["image"]["image"] ? part["image"]["image"] : part["image"];
    add_image(part["image_url"] ? part["image_url"] : image, part);
  }

  // `holder` has the call's id, `call` its name and arguments.
  void add_call(const json::Value& holder, const json::Value& call) {
    const json::Value id = first_member(holder, {"id", "toolCallId", "tool_call_id", "call_id"});
    const json::Value name = first_member(call, {"name", "toolName"});
    if (!fits(name, part_name_bytes_max, 1) || !id_fits(id)) return unknown();
    json::Writer out;
    out.begin_object().member("type", "tool_call");
    if (id.is(json::Kind::string)) out.member("id", id.string_or(""));
    out.member("name", name.string_or(""));
    if (const json::Value arguments = first_member(call, {"arguments", "args", "input"}))
      write_value(out.key("arguments"), arguments);
    add(std::move(out.end_object()).text());
    parts_.tool_calls.push_back({id.string_or(""), name.string_or("")});
    const bool all = only_has(call, {"type", "id", "name", "arguments", "toolCallId", "tool_call_id", "call_id",
                                     "toolName", "args", "input", "toolCallType"});
    if (!all) unknown();
  }

  void add_tool_calls(const json::Value& calls) {
    if (calls.present() && !calls.is(json::Kind::array) && !calls.is(json::Kind::null)) unknown();
    for (const json::Value call : calls) {
      const bool nested = call["function"].is(json::Kind::object);
      add_call(call, nested ? call["function"] : call);
      if (nested && !only_has(call, {"id", "type", "function"})) unknown();
    }
  }

  void add_response(const json::Value& part) {
    const json::Value id = first_member(part, {"id", "toolCallId", "tool_use_id", "call_id", "tool_call_id"});
    const json::Value response = first_member(part, {"response", "result", "output", "content"});
    if (!id_fits(id) || !response.present()) return unknown();
    json::Writer out;
    out.begin_object().member("type", "tool_call_response");
    if (id.is(json::Kind::string)) out.member("id", id.string_or(""));
    write_value(out.key("response"), response);
    add(std::move(out.end_object()).text());
    for (const json::Value member : part) {
      const std::string key = member.key();
      const bool placed = key == "type" || member.source().data() == id.source().data() ||
                          member.source().data() == response.source().data();
      if (!placed && !member.is(json::Kind::null)) unknown();
    }
  }

 private:
  void add(std::string part) {
    if (parts_.parts.size() == parts_max) return unknown();
    parts_.parts.push_back(std::move(part));
  }

  void add_reference(const json::Value& part, std::string_view type) {
    const std::string_view name = type == "uri" ? "uri" : "file_id";
    const bool plain = fits(part[name], type == "uri" ? part_uri_bytes_max : part_file_id_bytes_max, 1) &&
                       fits(part["mime_type"], part_name_bytes_max) && fits(part["modality"], part_modality_bytes_max);
    if (!plain) return unknown();
    json::Writer out;
    out.begin_object().member("type", type);
    for (const std::string_view member : {name, std::string_view("mime_type"), std::string_view("modality")}) {
      if (const auto text = part[member].as_string()) out.member(member, *text);
    }
    add(std::move(out.end_object()).text());
    if (!only_has(part, {"type", name, "mime_type", "modality"})) unknown();
  }

  void add_image(const json::Value& image, const json::Value& part) {
    const json::Value url = image.is(json::Kind::object) ? image["url"] : image;
    if (!fits(url, part_uri_bytes_max, 1)) return unknown();
    json::Writer out;
    out.begin_object().member("type", "uri").member("uri", url.string_or("")).member("modality", "image");
    add(std::move(out.end_object()).text());
    if (part.size() > 2 || (image.is(json::Kind::object) && image.size() != 1)) unknown();
  }

  OtlpParts parts_;
};

// Role of a message, also of the messages of LangChain and of the items of OpenAI's Responses API, which have a type
// instead.
std::string message_role(const json::Value& message) {
  if (const auto role = message["role"].as_string()) return *role;
  std::string type = message["type"].string_or("");
  if (type == "human" || type == "ai" || type == "system" || type == "tool") return type;
  if (type == "function_call" || type == "reasoning") return message["id"] || message["call_id"] ? "assistant" : "";
  return type == "function_call_output" ? "tool" : "";
}

// {"system": …, "messages": […]} and {"prompt": …}, as requests of models are written.
bool write_request(json::Writer& out, const json::Value& request) {
  bool any = false;
  const std::pair<const char*, const char*> texts[] = {
      {"system", "system"}, {"instructions", "system"}, {"prompt", "user"}};
  for (const auto& [name, role] : texts) {
    if (const auto text = request[name].as_string(); text && !text->empty()) {
      out.begin_object().member("role", role).member("content", *text).end_object();
      any = true;
    }
  }
  for (const char* name : {"prompt", "messages", "input"}) {
    if (!request[name].is(json::Kind::array)) continue;
    for (const json::Value message : request[name]) {
      any = true;
      write_value(out, message);
    }
  }
  return any;
}

}  // namespace

std::string otlp_message_list(const json::Value& any, std::string_view role) {
  const std::string text = any_text(any);
  if (text.empty() || text == "null") return {};
  const auto document = json::parse(text);
  const json::Value root = document ? document->root() : json::Value();
  json::Writer out;
  out.begin_array();
  const auto write_text = [&](std::string_view words) {
    out.begin_object().member("role", role).member("content", words).end_object();
  };
  if (root.is(json::Kind::array)) {
    bool are_parts = root.size() > 0;
    for (const json::Value one : root)
      are_parts = are_parts && one["type"].is(json::Kind::string) && message_role(one).empty();
    if (are_parts) {
      write_value(out.begin_object().member("role", role).key("parts"), root);
      out.end_object();
    }
    for (const json::Value one : root) {
      if (are_parts) break;
      if (one.is(json::Kind::object)) {
        write_value(out, one);
      } else if (one.is(json::Kind::array)) {
        for (const json::Value inner : one) write_value(out, inner);
      } else {
        write_text(one.string_or(one.source()));
      }
    }
  } else if (root["role"] || root["parts"]) {
    write_value(out, root);
  } else if (!root.is(json::Kind::object) || !write_request(out, root)) {
    write_text(root.string_or(text));
  }
  return std::move(out.end_array()).text();
}

OtlpParts otlp_message_parts(const json::Value& message) {
  PartConverter converter;
  if (message.is(json::Kind::string)) converter.add_content(message);
  const json::Value reasoning = first_member(message, {"reasoning_content", "reasoning"});
  if (const auto text = reasoning.as_string()) converter.add_text("reasoning", *text);
  if (message["parts"].present()) converter.add_list(message["parts"]);
  const json::Value content = first_member(message, {"content", "contents", "text"});
  const bool is_result = message["role"].string_or("") == "tool" && message["tool_call_id"].is(json::Kind::string);
  if (is_result && content.is(json::Kind::string)) {
    json::Writer part;
    part.begin_object().member("type", "tool_call_response").member("id", message["tool_call_id"].string_or(""));
    part.member("response", content.string_or("")).end_object();
    const auto document = json::parse(part.text());
    if (document) converter.add_response(document->root());
  } else {
    converter.add_content(content);
  }
  converter.add_tool_calls(message["tool_calls"]);
  const std::string type = message["type"].string_or("");
  const bool is_item = type == "function_call" || type == "function_call_output";
  if (is_item) converter.add_part(message);
  const json::Value legacy = message["function_call"];
  if (legacy.is(json::Kind::object)) converter.add_call({}, legacy);
  OtlpParts parts = std::move(converter).take();
  if (!message.is(json::Kind::object) || is_item) return parts;
  parts.whole = parts.whole && !(message["content"] && message["contents"]) &&
                only_has(message, {"role", "parts", "finish_reason", "content", "contents", "text", "tool_calls",
                                   "function_call", is_result ? "tool_call_id" : "role",
                                   reasoning.is(json::Kind::string) ? reasoning.key() : "role"});
  return parts;
}

std::string_view otlp_role(const json::Value& message, bool& known, std::string_view absent) {
  const std::string role = message_role(message);
  for (const std::string_view one : {"system", "developer", "user", "assistant", "tool"}) {
    if (role == one) return one;
  }
  known = false;
  if (role == "ai" || role == "model" || role == "bot") return "assistant";
  if (role == "function") return "tool";
  return role.empty() ? absent : "user";
}

}  // namespace muniment::cli
