#include "adapters/import/spill.hpp"

#include <fmt/format.h>

#include "base/json/json.hpp"
#include "base/limits.hpp"
#include "base/text.hpp"

namespace muniment::cli {
namespace {

// A large value without a long string becomes one JSON artifact.
constexpr std::size_t json_bytes_max = 32 * 1024;

std::size_t bytes_of_long_strings(const json::Value& value) {
  const std::size_t own = value.source().size();
  if (own <= limits::spill_part_bytes_max) return 0;
  if (value.is(json::Kind::string)) return own;
  std::size_t bytes = 0;
  for (const json::Value part : value) bytes += bytes_of_long_strings(part);
  return bytes;
}

class BodyShrinker {
 public:
  BodyShrinker(ImportSink& sink, const std::string& run_id, const ImportedEvent& event)
      : sink_(sink), run_id_(run_id), event_(event) {}

  Result<std::string> run() {
    ASSIGN_OR_RETURN(const json::Document document, json::parse(event_.body));
    json::Writer out;
    out.begin_object();
    for (const json::Value member : document.root()) {
      const std::string name = member.key();
      const bool may_refer = name == (event_.type == "tool.called"     ? "arguments"
                                      : event_.type == "state.patched" ? "patch"
                                      : event_.type == "step.ended"    ? "result"
                                                                       : "");
      if (may_refer && is_long(member)) {
        RETURN_IF_ERROR(write_reference(out.key("ref"), member, json::Value()));
      } else if (member.is(json::Kind::array) && (name == "content" || name == "summary")) {
        RETURN_IF_ERROR(write_parts(out.key(name), member));
      } else {
        const bool is_open = name.starts_with("x_") || event_.type.starts_with("x.");
        RETURN_IF_ERROR(write_plain(out.key(name), member, is_open));
      }
    }
    std::string text = std::move(out.end_object()).text();
    if (text.size() <= sent_body_bytes_max) return text;
    return Error(Errc::too_large,
                 fmt::format("a {} has {} bytes even with its long texts stored as artifacts, limit {}", event_.type,
                             grouped(text.size()), grouped(sent_body_bytes_max)));
  }

 private:
  static bool is_long(const json::Value& value) { return value.source().size() > limits::spill_part_bytes_max; }

  static std::string_view payload_of(std::string_view part_type) {
    if (part_type == "text" || part_type == "reasoning") return "content";
    if (part_type == "tool_call") return "arguments";
    return part_type == "tool_call_response" ? "response" : "";
  }

  Status write_parts(json::Writer& out, const json::Value& parts) {
    out.begin_array();
    for (const json::Value part : parts) {
      const std::string_view payload = payload_of(part["type"].string_or(""));
      if (!payload.empty() && is_long(part[payload])) {
        RETURN_IF_ERROR(write_reference(out, part[payload], part));
      } else {
        out.raw(part.source());
      }
    }
    out.end_array();
    return success();
  }

  // In a closed schema a long string is replaced by a string, the pointer to the artifact. In an open one (`is_open`)
  // it becomes a reference, as do other large values.
  Status write_plain(json::Writer& out, const json::Value& value, bool is_open) {
    if (!is_long(value)) {
      out.raw(value.source());
      return success();
    }
    if (value.is(json::Kind::string)) {
      if (is_open) return write_reference(out, value, json::Value());
      ASSIGN_OR_RETURN(const ImportedArtifact kept, sink_.put(event_.step_id, "text/plain", *value.as_string()));
      out.string(fmt::format("artifact://{}/{}", run_id_, kept.artifact_id));
      return success();
    }
    json::Writer inside;
    RETURN_IF_ERROR(write_inside(inside, value, is_open));
    if (is_open && inside.text().size() > json_bytes_max) return write_reference(out, value, json::Value());
    out.raw(inside.text());
    return success();
  }

  Status write_inside(json::Writer& out, const json::Value& value, bool is_open) {
    if (value.is(json::Kind::object)) {
      out.begin_object();
      for (const json::Value member : value) RETURN_IF_ERROR(write_plain(out.key(member.key()), member, is_open));
      out.end_object();
    } else if (value.is(json::Kind::array)) {
      out.begin_array();
      for (const json::Value item : value) RETURN_IF_ERROR(write_plain(out, item, is_open));
      out.end_array();
    } else {
      out.raw(value.source());
    }
    return success();
  }

  // A content part keeps its type, id and name.
  Status write_reference(json::Writer& out, const json::Value& value, const json::Value& part) {
    const auto string = value.as_string();
    const std::string bytes = string ? *string : std::string(value.source());
    const std::string_view mime_type = string ? "text/plain" : "application/json";
    ASSIGN_OR_RETURN(const ImportedArtifact kept, sink_.put(event_.step_id, std::string(mime_type), bytes));
    out.begin_object().member("artifact_id", kept.artifact_id).member("hash", kept.hash);
    out.member("size_bytes", kept.size_bytes).member("mime_type", mime_type);
    out.member("preview", preview(bytes, limits::preview_bytes_max));
    for (const char* name : {"type", "id", "name"}) {
      if (part[name]) out.raw_member(name, part[name].source());
    }
    out.end_object();
    return success();
  }

  ImportSink& sink_;
  const std::string& run_id_;
  const ImportedEvent& event_;
};

}  // namespace

bool must_shrink(std::string_view body) {
  if (body.size() > sent_body_bytes_max) return true;
  if (body.size() <= limits::event_body_bytes_max) return false;
  const auto document = json::parse(body);
  return document && body.size() - bytes_of_long_strings(document->root()) > limits::event_body_bytes_max;
}

Result<std::string> shrink_body(ImportSink& sink, const std::string& run_id, const ImportedEvent& event) {
  return BodyShrinker(sink, run_id, event).run();
}

}  // namespace muniment::cli
