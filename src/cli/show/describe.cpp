#include "cli/show/describe.hpp"

#include <fmt/format.h>

#include <initializer_list>
#include <limits>
#include <utility>

#include "base/text.hpp"

namespace muniment::cli {
namespace {

std::string field(const json::Value& body, std::string_view name) {
  const json::Value value = body[name];
  if (value.is(json::Kind::string)) return value.string_or("");
  return value && !value.is(json::Kind::null) ? std::string(value.source()) : std::string();
}

std::string joined(std::initializer_list<std::string> parts) {
  std::string text;
  for (const std::string& part : parts) {
    if (part.empty()) continue;
    if (!text.empty()) text.push_back(' ');
    text += part;
  }
  return text;
}

std::string size_text(std::int64_t bytes) { return human_size(static_cast<std::uint64_t>(bytes < 0 ? 0 : bytes)); }

// Formats arguments for reading: the values, with names if there are several.
std::string arguments_text(const json::Value& arguments) {
  if (arguments.is(json::Kind::string)) return arguments.string_or("");
  if (!arguments.is(json::Kind::object)) return std::string(arguments.source());
  if (const json::Value preview_text = arguments["preview"]) return preview_text.string_or("");
  std::string text;
  for (const json::Value member : arguments) {
    const std::string value = member.is(json::Kind::string) ? member.string_or("") : std::string(member.source());
    if (!text.empty()) text += "  ";
    if (arguments.size() > 1) text += member.key() + "=";
    text += value;
  }
  return text;
}

// The command line may already begin with the name of the tool.
std::string without_name(std::string arguments, const std::string& name) {
  if (arguments.rfind(name, 0) == 0 && arguments.size() > name.size() &&
      (arguments[name.size()] == ' ' || arguments[name.size()] == '\n')) {
    arguments.erase(0, name.size() + 1);
  } else if (arguments == name || arguments == name + "\n") {
    arguments.clear();
  }
  return arguments;
}

std::string argv_text(const json::Value& argv) {
  std::string text;
  for (const json::Value word : argv) {
    const std::string plain = word.string_or("");
    const bool quoted = plain.empty() || plain.find_first_of(" \t\n'\"\\$*?;&|<>()") != std::string::npos;
    if (!text.empty()) text.push_back(' ');
    text += quoted ? "'" + plain + "'" : plain;
  }
  return text;
}

std::string usage_text(const json::Value& usage) {
  std::string text;
  const auto in = usage["input_tokens"].as_int();
  const auto out = usage["output_tokens"].as_int();
  if (in) text += grouped(static_cast<std::uint64_t>(*in)) + " in";
  if (out) text += (text.empty() ? "" : " · ") + grouped(static_cast<std::uint64_t>(*out)) + " out";
  if (const auto amount = usage["cost"]["amount"].as_double()) {
    text += fmt::format("{}{:.2f} {}", text.empty() ? "" : " · ", *amount, usage["cost"]["currency"].string_or(""));
  }
  return text;
}

Description message_line(const json::Value& body) {
  const std::string role = field(body, "role");
  return {role == "user" ? "›" : "‹", Tone::cyan, role, text_of_content(body["content"]), Weight::normal};
}

Description tool_line(const json::Value& body) {
  const std::string name = field(body, "name");
  const json::Value arguments = body["arguments"] ? body["arguments"] : body["ref"];
  return {"▸", Tone::bold, name, arguments ? without_name(arguments_text(arguments), name) : std::string(),
          Weight::normal};
}

Description ended_line(const json::Value& body) {
  const std::string outcome = field(body, "outcome");
  const bool good = outcome == "success";
  return {"■", good ? Tone::green : Tone::yellow, outcome == "unknown" ? "run ended" : "run ended: " + outcome,
          joined({field(body, "summary"), field(body["error"], "message"), usage_text(body["usage"])}), Weight::normal};
}

Description halt_line(const json::Value& body) {
  const std::string reason = field(body, "reason");
  const std::string pointer = field(body, "pointer");
  const bool named = reason.find(pointer) != std::string::npos;
  return {"■", Tone::loud, " HALTED " + field(body, "code") + " ", joined({reason, named ? "" : pointer}),
          Weight::loud};
}

Description step_end_line(const json::Value& body) {
  const std::string status = field(body, "status");
  const bool bad = status == "error" || status == "failure" || status == "failed" || body["error"];
  return {"▴", bad ? Tone::red : Tone::dim, status == "unknown" ? "step ended" : "step " + status,
          field(body["error"], "message"), bad ? Weight::error : Weight::quiet};
}

Description error_line(const json::Value& body) {
  return {"✗", Tone::red, field(body, "error_type"), field(body, "message"), Weight::error};
}

Description claim_line(const json::Value& body) {
  std::string pointers;
  for (const json::Value pointer : body["pointers"]) pointers += " " + pointer.string_or("");
  return {"§", Tone::cyan, "claim: " + field(body, "text"), pointers, Weight::normal};
}

Description evidence_line(const json::Value& body) {
  const std::string text = body["content"]["text"] ? field(body["content"], "text") : field(body, "content");
  return {"§", Tone::dim, "evidence: " + field(body, "type"), body["pointer"] ? field(body, "pointer") : text,
          Weight::normal};
}

Description validated_line(const json::Value& body) {
  const bool good = body["can_complete"].as_bool().value_or(false);
  return {"☐", good ? Tone::dim : Tone::yellow, good ? "task can be completed" : "task is not completed",
          field(body, "reason"), good ? Weight::quiet : Weight::normal};
}

// Describes the pointers in pointer.validated, .rendered and .resolved.
Description looked_line(std::string_view verb, const json::Value& body) {
  const std::int64_t count = body["count"].as_int().value_or(0);
  std::string bad;
  for (const json::Value reason : body["bad"])
    bad += fmt::format("{}{} {}", bad.empty() ? "" : ", ", reason.as_int().value_or(0), reason.key());
  const std::string what = count == 1 && body["pointers"].size() == 1 ? field(*body["pointers"].begin(), "pointer")
                                                                      : fmt::format("{} pointers", count);
  return {"◇", bad.empty() ? Tone::dim : Tone::yellow, fmt::format("{} {}", verb, what), bad,
          bad.empty() ? Weight::quiet : Weight::normal};
}

Description read_line(const json::Value& body) {
  return {"◇", Tone::dim, "read " + field(body, "pointer"), size_text(body["size_bytes"].as_int().value_or(0)),
          Weight::quiet};
}

Description artifact_line(const json::Value& body) {
  return {"·", Tone::dim, "artifact " + field(body, "path"),
          joined({size_text(body["size_bytes"].as_int().value_or(0)), field(body, "mime_type")}), Weight::quiet};
}

Description command_result(const json::Value& body) {
  std::string output;
  for (const std::string_view stream : {"stdout", "stderr"}) {
    const auto size = body[stream]["size_bytes"].as_int();
    if (size) output = joined({output, size_text(*size), std::string(stream)});
  }
  if (body["interrupted"].as_bool().value_or(false)) {
    return {"→", Tone::red, "the recording was interrupted", output, Weight::error};
  }
  if (body["signal"]) return {"→", Tone::red, "ended by " + field(body, "signal"), output, Weight::error};
  const bool good = body["exit_code"].as_int() == 0;
  return {"→", good ? Tone::green : Tone::red, "exit " + field(body, "exit_code"), output,
          good ? Weight::normal : Weight::error};
}

Description answer_line(const json::Value& body) {
  const Description result = describe_result(body);
  if (result.weight >= Weight::error) return result;
  const std::string usage = usage_text(body["usage"]);
  return {"◆", Tone::dim, usage, text_of_content(body["content"]), Weight::normal};
}

using Describe = Description (*)(const json::Value& body);

// Types without a row are shown by their name and body.
constexpr std::pair<std::string_view, Describe> rows[] = {
    {"run.started",
     [](const json::Value& b) -> Description {
       const std::string continues = field(b, "continues");
       return {"●", Tone::bold, "run started",
               field(b["agent"], "name") + (continues.empty() ? "" : ", continues " + continues), Weight::normal};
     }},
    {"run.ended", ended_line},
    {"run.halted", halt_line},
    {"run.resumed",
     [](const json::Value& b) -> Description {
       return {"●", Tone::green, "run " + field(b, "kind"), field(b, "why"), Weight::normal};
     }},
    {"run.interrupted",
     [](const json::Value& b) -> Description {
       return {"●", Tone::yellow, "interrupted",
               fmt::format("the daemon ended without stopping, and started again (log #{})",
                           b["log_seq"].as_int().value_or(0)),
               Weight::normal};
     }},
    {"step.started",
     [](const json::Value& b) -> Description {
       const std::int64_t attempt = b["attempt"].as_int().value_or(1);
       return {"▾", Tone::bold, field(b, "name"), attempt > 1 ? fmt::format("attempt {}", attempt) : "",
               Weight::normal};
     }},
    {"step.ended", step_end_line},
    {"message.added", message_line},
    {"thought.recorded",
     [](const json::Value& b) -> Description {
       return {"…", Tone::dim, "", text_of_content(b["content"]), Weight::normal};
     }},
    {"model.called",
     [](const json::Value& b) -> Description {
       return {"◇", Tone::dim, "", joined({field(b, "provider"), field(b, "model")}), Weight::quiet};
     }},
    {"model.answered", answer_line},
    {"tool.called", tool_line},
    {"tool.returned", describe_result},
    {"command.started",
     [](const json::Value& b) -> Description {
       return {"$", Tone::bold, argv_text(b["argv"]), field(b, "cwd"), Weight::normal};
     }},
    {"command.ended", describe_result},
    {"file.changed",
     [](const json::Value& b) -> Description {
       return {"✎", Tone::yellow, joined({field(b, "change"), field(b, "path")}), "", Weight::normal};
     }},
    {"file.read",
     [](const json::Value& b) -> Description {
       return {"▤", Tone::plain, "read " + field(b, "path"), "", Weight::normal};
     }},
    {"sandbox.refused",
     [](const json::Value& b) -> Description {
       const std::string count = field(b, "count");
       return {"⊘", Tone::yellow, joined({"refused", field(b, "operation"), field(b, "path")}),
               joined({field(b, "program"), "(" + field(b, "source") + ")", count.empty() ? "" : count + " times"}),
               Weight::error};
     }},
    {"error.raised", error_line},
    {"approval.requested",
     [](const json::Value& b) -> Description {
       return {"?", Tone::yellow, "approval: " + field(b, "question"), "", Weight::normal};
     }},
    {"approval.decided",
     [](const json::Value& b) -> Description {
       return {"?", Tone::yellow, joined({field(b, "decision"), "by", field(b, "by")}), field(b, "reason"),
               Weight::normal};
     }},
    {"state.patched",
     [](const json::Value& b) -> Description {
       return {"Δ", Tone::dim, "", b["ref"] ? field(b["ref"], "preview") : field(b, "patch"), Weight::quiet};
     }},
    {"claim.recorded", claim_line},
    {"evidence.recorded", evidence_line},
    {"task.opened",
     [](const json::Value& b) -> Description {
       return {"☐", Tone::bold, "task: " + field(b, "content"), field(b, "required_type"), Weight::normal};
     }},
    {"task.validated", validated_line},
    {"task.completed",
     [](const json::Value& b) -> Description {
       return {
           "☑", Tone::green, "task completed: " + field(b, "verdict"),
           fmt::format("{} piece{} of evidence", b["evidence_ids"].size(), b["evidence_ids"].size() == 1 ? "" : "s"),
           Weight::normal};
     }},
    {"violation.detected",
     [](const json::Value& b) -> Description {
       return {"✗", Tone::red, "violation: " + field(b, "kind"), field(b, "detail"), Weight::error};
     }},
    {"artifact.stored", artifact_line},
    {"manifest.recorded",
     [](const json::Value& b) -> Description {
       return {"·", Tone::dim, "manifest " + field(b, "manifest_id"), "", Weight::quiet};
     }},
    {"snapshot.taken",
     [](const json::Value& b) -> Description {
       return {"·", Tone::dim, "snapshot",
               joined({"at seq", field(b, "seq"), size_text(b["size_bytes"].as_int().value_or(0))}), Weight::quiet};
     }},
    {"child.started",
     [](const json::Value& b) -> Description {
       return {"⑂", Tone::cyan, "child " + field(b, "run_id"), "", Weight::normal};
     }},
    {"child.ended",
     [](const json::Value& b) -> Description {
       return {"⑂", Tone::cyan, joined({"child", field(b, "run_id"), field(b, "outcome")}), "", Weight::normal};
     }},
    {"child.halted",
     [](const json::Value& b) -> Description {
       return {"⑂", Tone::red, joined({"child", field(b, "run_id"), "halted:", field(b, "reason")}), "", Weight::error};
     }},
    {"artifact.read", read_line},
    {"pointer.validated", [](const json::Value& b) { return looked_line("validated", b); }},
    {"pointer.rendered", [](const json::Value& b) { return looked_line("cited", b); }},
    {"pointer.resolved", [](const json::Value& b) { return looked_line("resolved", b); }},
    {"pointer.retried",
     [](const json::Value& b) -> Description {
       return {"↻", Tone::yellow, "retried " + field(b, "pointer"), "", Weight::normal};
     }},
    {"pointer.unresolved",
     [](const json::Value& b) -> Description {
       return {"✗", Tone::red, "unresolved " + field(b, "pointer"),
               joined({b["expected"] ? "expected" : "", field(b, "expected"), b["actual"] ? "got" : "",
                       field(b, "actual"), b["expected"] ? "" : field(b, "reason")}),
               Weight::error};
     }},
};

}  // namespace

Tone tone_of_status(std::string_view status) {
  if (status == "halted") return Tone::loud;
  return status == "open" ? Tone::yellow : Tone::plain;
}

std::string text_of_content(const json::Value& content) {
  std::string text;
  for (const json::Value part : content) {
    if (!text.empty()) text.push_back('\n');
    for (const std::string_view name : {"content", "preview", "response", "arguments", "uri", "file_id"}) {
      if (!part[name]) continue;
      text += field(part, name);
      break;
    }
  }
  return text;
}

std::uint64_t size_of_content(const json::Value& content) {
  std::uint64_t bytes = 0;
  for (const json::Value part : content) {
    if (const auto size = part["size_bytes"].as_int()) {
      bytes += static_cast<std::uint64_t>(*size);
    } else {
      bytes += field(part, part["response"] ? "response" : "content").size();
    }
  }
  return bytes;
}

Description describe_result(const json::Value& event) {
  const json::Value body = event["body"] ? event["body"] : event;
  if (!body["status"]) return command_result(body);
  const std::string status = field(body, "status");
  const bool is_unknown = status == "unknown";
  const bool good = status == "ok" || status == "success" || status.empty() || is_unknown;
  const std::string size = size_text(static_cast<std::int64_t>(size_of_content(body["content"])));
  // A result with unknown status is shown only by its size.
  return {"→",
          is_unknown ? Tone::dim
          : good     ? Tone::green
                     : Tone::red,
          is_unknown       ? ""
          : status.empty() ? "ok"
                           : status,
          joined({size, usage_text(body["usage"]), good ? "" : field(body["error"], "message")}),
          good ? Weight::normal : Weight::error};
}

Description describe(const json::Value& event) {
  const std::string type = event["type"].string_or("");
  const json::Value body = event["body"];
  if (!body || body.is(json::Kind::null)) return {"▒", Tone::dim, type, "redacted", Weight::normal};
  for (const auto& [name, function] : rows) {
    if (name == type) return function(body);
  }
  return {"·", Tone::dim, type, std::string(body.source()), Weight::quiet};
}

void InterruptedSteps::follow(const json::Value& event, Description& description) {
  const std::string type = event["type"].string_or("");
  const std::string step = event["step_id"].string_or("");
  if (type == "run.interrupted") {
    // Steps started by the daemon after the interruption but before this event were not interrupted.
    const std::int64_t restarted = event["body"]["log_seq"].as_int().value_or(std::numeric_limits<std::int64_t>::max());
    for (const auto& [id, begun] : open_) {
      if (begun.seq < restarted) cut_.insert(begun.name);
    }
  } else if (type == "step.started") {
    const std::string name = field(event["body"], "name");
    open_[step] = {name, event["seq"].as_int().value_or(0)};
    if (cut_.erase(name) == 0) return;
    description.glyph = "↻";
    description.tail = joined({"continues after the interruption", description.tail});
  } else if (type == "step.ended") {
    open_.erase(step);
  }
}

std::string summary_of(const json::Value& event) {
  const Description line = describe(event);
  return joined({line.head, line.tail});
}

}  // namespace muniment::cli
