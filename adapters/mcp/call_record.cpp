#include "adapters/mcp/call_record.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <utility>

#include "adapters/mcp/scrub_json.hpp"
#include "base/crypto/base64.hpp"
#include "base/json/json.hpp"
#include "base/json/message_skim.hpp"
#include "base/limits.hpp"
#include "base/text.hpp"
#include "base/utf8.hpp"
#include "bridge/scrub.hpp"

namespace muniment::cli {
namespace {

constexpr std::size_t inline_bytes_max = 64 * 1024;       // limit per value; the daemon spills values over 8 KiB
constexpr std::size_t inline_all_bytes_max = 256 * 1024;  // limit per event, so that its request fits a line
constexpr std::size_t recorded_parts_max = 900;           // below the limit of 1,000 parts per content
constexpr std::size_t name_bytes_max = 256;
constexpr std::size_t error_bytes_max = 8 * 1024;
constexpr std::size_t reason_bytes_max = 1000;

constexpr std::string_view json_mime_type = "application/json";

// Returns whether the log accepts the value at the most deeply nested place of a body.
bool log_accepts(std::string_view value) {
  const std::string nested = fmt::format("[[[[[[{}]]]]]]", value);
  const auto document = json::parse(std::string_view(nested));
  if (!document) return false;
  json::Value level = document->root();
  for (int i = 0; i < 6; ++i) {
    if (level.size() != 1) return false;  // no value, or several
    level = *level.begin();
  }
  return true;
}

// Returns the beginning of unparsed bytes as text that the log accepts.
std::string shown(std::string_view bytes, std::size_t bytes_max) {
  std::string text = preview(bytes, bytes_max);
  std::replace(text.begin(), text.end(), '\0', '?');
  for (std::size_t bad = 0; (bad = first_invalid_utf8(text)) != std::string::npos;) text[bad] = '?';
  return text;
}

// Returns whether the text is a MIME type. Other text, possibly from a hostile server, is not repeated.
bool is_mime_type(std::string_view text) {
  const auto plain = [](unsigned char c) {
    return std::isalnum(c) != 0 || (c != 0 && std::strchr("/+-._;= ", c) != nullptr);
  };
  return text.size() <= name_bytes_max && text.find('/') != std::string_view::npos &&
         std::all_of(text.begin(), text.end(), plain);
}

std::string mark() { return std::string(1, reference_mark); }

std::string_view without_braces(std::string_view object) { return object.substr(1, object.size() - 2); }

std::string members(const json::Writer& object) { return std::string(without_braces(object.text())); }

// Writes content parts and collects the bytes to store as artifacts.
class ContentWriter {
 public:
  ContentWriter(const CallRules& rules, DraftEvent& event) : rules_(rules), event_(event) { out_.begin_array(); }

  void add_item(std::string_view item) {
    if (++parts_ > recorded_parts_max) return;
    const std::string type = json::string_of(json::member_of(item, "type")).value_or("");
    const std::string_view text = json::member_of(item, "text");
    const std::string mime_type = mime_type_of(item);
    if (type == "text" && !text.empty()) {
      add_text(item, text);
    } else if ((type == "image" || type == "audio") && add_bytes(json::member_of(item, "data"), mime_type, type)) {
      return;
    } else if (type == "resource_link" && add_uri(item, mime_type)) {
      return;
    } else if (type == "resource") {
      add_resource(item);
    } else {
      add_json(item);
    }
  }

  void add_json(std::string_view value) {
    std::string text(value);
    scrubbed_ += rules_.keep_secrets ? 0 : scrub_json(text);
    if (!log_accepts(text)) {
      left_out_ = "the log does not accept the JSON of a part; its bytes are an artifact";
      store(std::string(json_mime_type), std::move(text), "tool_call_response");
    } else if (!fits(text.size())) {
      store(std::string(json_mime_type), std::move(text), "tool_call_response");
    } else {
      out_.begin_object().member("type", "tool_call_response").raw_member("response", text).end_object();
    }
  }

  // Writes the member content and the notes about omitted parts.
  void finish(json::Writer& rest) {
    if (parts_ > recorded_parts_max)
      left_out_ = fmt::format("{} parts after the first {}", parts_ - recorded_parts_max, recorded_parts_max);
    rest.raw_member("content", out_.end_array().text());
    if (scrubbed_ > 0) rest.member("x_scrubbed", scrubbed_);
    if (!left_out_.empty()) rest.member("x_left_out", left_out_);
  }

 private:
  static std::string mime_type_of(std::string_view item) {
    const std::string said = json::string_of(json::member_of(item, "mimeType")).value_or("");
    return is_mime_type(said) ? said : "application/octet-stream";
  }

  bool fits(std::size_t bytes) {
    if (bytes > inline_bytes_max || inline_bytes_ + bytes > inline_all_bytes_max) return false;
    inline_bytes_ += bytes;
    return true;
  }

  void store(std::string mime_type, std::string bytes, std::string part_type) {
    event_.artifacts.push_back({std::move(mime_type), std::move(bytes), std::move(part_type)});
    out_.raw(mark());
  }

  void add_text(std::string_view item, std::string_view literal) {
    auto text = json::string_of(literal);
    if (!text) return add_json(item);
    scrubbed_ += rules_.keep_secrets ? 0 : bridge::scrub_text(*text);
    if (fits(text->size())) {
      out_.begin_object().member("type", "text").member("content", *text).end_object();
    } else {
      store("text/plain", std::move(*text), "text");
    }
  }

  bool add_bytes(std::string_view literal, const std::string& mime_type, const std::string& part_type) {
    const auto text = json::string_of(literal);
    auto bytes = text ? from_base64(*text) : std::nullopt;
    if (!bytes) return false;
    store(mime_type, std::move(*bytes), part_type);
    return true;
  }

  bool add_uri(std::string_view item, const std::string& mime_type) {
    std::string uri = json::string_of(json::member_of(item, "uri")).value_or("");
    if (uri.empty() || uri.size() > 4096) return false;
    scrubbed_ += rules_.keep_secrets ? 0 : bridge::scrub_text(uri);
    out_.begin_object().member("type", "uri").member("uri", uri);
    if (!json::member_of(item, "mimeType").empty()) out_.member("mime_type", mime_type);
    out_.end_object();
    return true;
  }

  // A blob is stored with its own type; its name follows as a separate part.
  void add_resource(std::string_view item) {
    const std::string_view resource = json::member_of(item, "resource");
    const std::string_view blob = json::member_of(resource, "blob");
    if (blob.empty() || !add_bytes(blob, mime_type_of(resource), "resource")) return add_json(item);
    const std::string uri = json::string_of(json::member_of(resource, "uri")).value_or("");
    if (!uri.empty() && uri.size() <= 4096) out_.begin_object().member("type", "uri").member("uri", uri).end_object();
  }

  const CallRules& rules_;
  DraftEvent& event_;
  json::Writer out_;
  std::size_t parts_ = 0;
  std::size_t inline_bytes_ = 0;
  std::size_t scrubbed_ = 0;
  std::string left_out_;
};

std::string returned_head(const ToolCall& call, std::string_view status, std::int64_t duration_us) {
  json::Writer head;
  head.begin_object().member("call_id", call.call_id).member("status", status);
  head.member("duration_us", duration_us).end_object();
  return members(head);
}

std::string_view status_of(std::string_view result, std::string_view error) {
  if (!error.empty() || json::member_of(result, "isError") == "true") return "error";
  // The server requests input: the host obtains it and repeats the call.
  if (json::string_of(json::member_of(result, "resultType")) == "input_required") return "interrupted";
  return "ok";
}

void write_error(json::Writer& rest, const CallRules& rules, std::string_view error) {
  std::string message = json::string_of(json::member_of(error, "message")).value_or("");
  if (message.empty()) message = "the server returned an error without a message";
  if (!rules.keep_secrets) bridge::scrub_text(message);
  const std::string_view code = json::member_of(error, "code");
  rest.key("error").begin_object();
  if (!code.empty()) rest.member("error_type", shown(code, name_bytes_max));
  rest.member("message", preview(message, error_bytes_max)).end_object();
}

}  // namespace

std::string DraftEvent::body() const {
  return fmt::format("{{{}{}{}}}", head, head.empty() || rest.empty() ? "" : ",", rest);
}

std::string reference_json(const DraftArtifact& artifact, std::string_view artifact_id, std::string_view hash,
                           std::int64_t size_bytes) {
  json::Writer out;
  out.begin_object().member("artifact_id", artifact_id).member("hash", hash).member("size_bytes", size_bytes);
  out.member("mime_type", artifact.mime_type);
  const bool is_text = artifact.mime_type == json_mime_type || artifact.mime_type.starts_with("text/");
  if (is_text) out.member("preview", shown(artifact.bytes, limits::preview_bytes_max));
  if (!artifact.part_type.empty()) out.member("type", artifact.part_type);
  return std::move(out.end_object()).text();
}

DraftEvent reduced(const DraftEvent& event, std::string refused, std::string_view why) {
  DraftEvent out{event.type, event.head, {}, {}};
  const bool called = event.type == "tool.called";
  json::Writer rest;
  rest.begin_object();
  if (called) {
    rest.raw_member("ref", mark());
  } else {
    rest.key("content").begin_array().raw(mark()).end_array();
  }
  rest.member("x_left_out", shown(why, reason_bytes_max)).end_object();
  out.rest = members(rest);
  out.artifacts.push_back({std::string(json_mime_type), std::move(refused), called ? "" : "tool_call_response"});
  return out;
}

DraftEvent draft_called(const CallRules& rules, const ToolCall& call, std::string_view params) {
  DraftEvent event;
  event.type = "tool.called";
  std::string name = preview(json::string_of(json::member_of(params, "name")).value_or(""), name_bytes_max);
  if (name.empty()) name = "(no name)";
  json::Writer head;
  head.begin_object().member("call_id", call.call_id).member("name", name).member("kind", "mcp");
  head.member("server", rules.server).member("x_request_id", shown(call.request_id, name_bytes_max)).end_object();
  event.head = members(head);

  json::Writer rest;
  rest.begin_object();
  std::string arguments(json::member_of(params, "arguments"));
  const std::size_t scrubbed = rules.keep_secrets ? 0 : scrub_json(arguments);
  if (scrubbed > 0) rest.member("x_scrubbed", scrubbed);
  const bool accepted = arguments.empty() || log_accepts(arguments);
  if (!accepted)
    rest.member("x_left_out", "the log does not accept the JSON of the arguments; their bytes are an artifact");
  if (!arguments.empty() && accepted && arguments.size() <= inline_bytes_max) {
    rest.raw_member("arguments", arguments);
  } else if (!arguments.empty()) {
    rest.raw_member("ref", mark());
    event.artifacts.push_back({std::string(json_mime_type), std::move(arguments), ""});
  }
  event.rest = members(rest.end_object());
  return event;
}

DraftEvent draft_returned(const CallRules& rules, const ToolCall& call, std::string_view result, std::string_view error,
                          std::int64_t duration_us) {
  DraftEvent event;
  event.type = "tool.returned";
  event.head = returned_head(call, status_of(result, error), duration_us);
  json::Writer rest;
  rest.begin_object();
  ContentWriter content(rules, event);
  if (!error.empty()) {
    write_error(rest, rules, error);
    if (const std::string_view data = json::member_of(error, "data"); !data.empty()) content.add_json(data);
  } else {
    const std::string_view items = json::member_of(result, "content");
    const std::string_view structured = json::member_of(result, "structuredContent");
    const bool has_items = !items.empty() && items.front() == '[';
    if (has_items) {
      for (const std::string_view item : json::items_of(items)) content.add_item(item);
    }
    if (!structured.empty()) content.add_json(structured);
    if (!has_items && structured.empty() && !result.empty()) content.add_json(result);
  }
  content.finish(rest);
  event.rest = members(rest.end_object());
  return event;
}

DraftEvent draft_unanswered(const ToolCall& call, std::string_view status, std::string_view why,
                            std::int64_t duration_us) {
  json::Writer rest;
  rest.begin_object().key("content").begin_array().end_array();
  rest.key("error").begin_object().member("message", preview(why, error_bytes_max)).end_object().end_object();
  return {"tool.returned", returned_head(call, status, duration_us), members(rest), {}};
}

}  // namespace muniment::cli
