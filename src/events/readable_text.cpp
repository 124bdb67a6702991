// Extracts the readable text of events, by type.
#include "events/readable_text.hpp"

#include <algorithm>

namespace muniment::events {
namespace {

// Returns a string's text, or the source of any other value.
std::string words_of(const json::Value& value) {
  if (!value) return {};
  return value.as_string().value_or(std::string(value.source()));
}

class TextWriter {
 public:
  explicit TextWriter(ReadableText& out) : out_(out) {}

  void text(std::string words) {
    if (!words.empty()) out_.parts.push_back({std::move(words), std::nullopt});
  }

  // {"artifact_id": …, "mime_type": "text/…", "preview": …}
  void reference(const json::Value& ref) {
    const std::string mime_type = ref["mime_type"].string_or("");
    const auto id = parse_uuid(ref["artifact_id"].string_or(""));
    const bool is_text = mime_type.starts_with("text/") || mime_type == "application/json";
    if (id && is_text && ref["preview"]) out_.parts.push_back({{}, id});
  }

  void content(const json::Value& parts) {
    for (const json::Value part : parts) {
      const std::string type = part["type"].string_or("");
      if (part["artifact_id"]) {
        reference(part);
      } else if (type == "text" || type == "reasoning") {
        text(words_of(part["content"]));
      } else if (type == "tool_call") {
        call(part["name"], part["arguments"]);
      } else if (type == "tool_call_response") {
        text(words_of(part["response"]));
      }
    }
  }

  void call(const json::Value& name, const json::Value& arguments) {
    const std::string given = words_of(arguments);
    text(name.string_or("") + (given.empty() ? "" : " " + given));
  }

  // "ValueError: no such column", then the stack.
  void error(const json::Value& error) {
    if (!error) return;
    const std::string type = error["error_type"].string_or("");
    const std::string message = error["message"].string_or("");
    text(type.empty() ? message : type + ": " + message);
    text(error["stack"].string_or(""));
    out_.failed = true;
  }

 private:
  ReadableText& out_;
};

std::string command_line(const json::Value& argv) {
  std::string line;
  for (const json::Value word : argv) line.append(line.empty() ? "" : " ").append(word.string_or(""));
  return line;
}

// An unknown end does not count as a failure.
bool has_failed(std::string_view status) { return status != "ok" && status != "unknown"; }

void read_tool(std::string_view type, const json::Value& body, TextWriter& out, ReadableText& about) {
  if (type == "tool.called") {
    about.name = body["name"].string_or("");
    out.call(body["name"], body["arguments"]);
    if (body["ref"]) out.reference(body["ref"]);
  } else {
    about.failed = has_failed(body["status"].string_or(""));
    out.content(body["content"]);
    out.error(body["error"]);
  }
}

void read_command(std::string_view type, const json::Value& body, TextWriter& out, ReadableText& about) {
  if (type == "command.started") {
    out.text(command_line(body["argv"]));
  } else {
    about.failed = body["exit_code"].as_int().value_or(0) != 0 || body["signal"];
    if (body["stdout"]) out.reference(body["stdout"]);
    if (body["stderr"]) out.reference(body["stderr"]);
  }
}

}  // namespace

bool is_readable(std::string_view type) { return std::ranges::binary_search(readable_types, type); }

ReadableText readable_text(std::string_view type, const json::Value& body) {
  ReadableText about;
  TextWriter out(about);
  if (type == "message.added") {
    about.name = body["role"].string_or("");
    out.content(body["content"]);
  } else if (type == "thought.recorded") {
    out.content(body["content"]);
  } else if (type == "model.answered") {
    about.name = body["model"].string_or("");
    about.failed = has_failed(body["status"].string_or(""));
    out.content(body["content"]);
    out.error(body["error"]);
  } else if (type.starts_with("tool.")) {
    read_tool(type, body, out, about);
  } else if (type.starts_with("command.")) {
    read_command(type, body, out, about);
  } else if (type == "error.raised") {
    about.name = body["error_type"].string_or("");
    out.error(body);
  } else if (type == "step.ended") {
    out.error(body["error"]);
  } else if (type == "run.ended") {
    about.failed = body["outcome"].string_or("") == "failure";
    out.text(body["summary"].string_or(""));
    out.error(body["error"]);
  } else if (type == "run.halted") {
    about.name = body["code"].string_or("");
    about.failed = true;
    out.text(body["reason"].string_or(""));
  } else if (type == "context.compacted") {
    out.content(body["summary"]);
  }
  return about;
}

}  // namespace muniment::events
