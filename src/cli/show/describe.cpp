#include "cli/show/describe.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <utility>

#include "base/text.hpp"
#include "events/catalogue_types.hpp"

namespace muniment::cli {
namespace {

std::string words_of(const json::Value& value) {
  if (value.is(json::Kind::string)) return value.string_or("");
  return value && !value.is(json::Kind::null) ? std::string(value.source()) : std::string();
}

std::string field(const json::Value& body, std::string_view name) { return words_of(body[name]); }

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

constexpr const char* not_observed = "reported by a client";

std::string program_caveats(const json::Value& program) {
  const std::string own = field(program, "own"), left_out = field(program, "left_out");
  return own + (own.empty() || left_out.empty() ? "" : ", ") + (left_out.empty() ? "" : "leaves out " + left_out);
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

Description evidence_line(const json::Value& body) {
  const std::string text = body["content"]["text"] ? field(body["content"], "text") : field(body, "content");
  return {"§", Tone::dim, "evidence: " + field(body, "type"),
          joined({body["pointer"] ? field(body, "pointer") : text, caveats_of(body["content"])}), Weight::normal};
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

// Describes a recall or a query: its first question, and the number of passages.
Description asked_line(const json::Value& body, std::string_view verb, std::int64_t passages) {
  const std::size_t questions = body["queries"].size();
  std::string head(verb);
  if (questions > 0) head += ": " + field(*body["queries"].begin(), "query");
  if (questions > 1) head += fmt::format(" (+{})", questions - 1);
  std::string tail = passages < 0 ? "" : fmt::format("{} passage{}", passages, passages == 1 ? "" : "s");
  if (const auto left_out = body["left_out"].as_int().value_or(0); left_out > 0)
    tail += fmt::format(", {} left out", left_out);
  if (body["used"])
    tail += fmt::format("{}{} of {} {}", tail.empty() ? "" : ", ", field(body, "used"), field(body, "budget"),
                        body["unit"].string_or("tokens"));
  return {"", Tone::plain, std::move(head), std::move(tail), Weight::normal};
}

Description question_line(const json::Value& body) {
  const Description asked = asked_line(body, "asked", static_cast<std::int64_t>(body["citations"].size()));
  return {"", asked.tone, asked.head, joined({field(body, "answer"), field(body, "drafter")}), Weight::normal};
}

Description started_line(const json::Value& body) {
  const std::string continues = field(body, "continues");
  return {"", Tone::plain, "run started",
          field(body["agent"], "name") + (continues.empty() ? "" : ", continues " + continues), Weight::normal};
}

Description sandbox_line(const json::Value& body) {
  const std::string count = field(body, "count");
  return {"", Tone::plain, joined({"refused", field(body, "operation"), field(body, "path")}),
          joined({field(body, "program"), "(" + field(body, "source") + ")", count.empty() ? "" : count + " times"}),
          Weight::error};
}

Description unresolved_line(const json::Value& body) {
  return {"", Tone::plain, "unresolved " + field(body, "pointer"),
          joined({body["expected"] ? "expected" : "", field(body, "expected"), body["actual"] ? "got" : "",
                  field(body, "actual"), body["expected"] ? "" : field(body, "reason")}),
          Weight::error};
}

using Describe = Description (*)(const json::Value& body);

// Types whose line depends on the values of the body. The others have texts in the catalogue. An empty glyph stands for
// the catalogue's.
constexpr std::pair<events::Type, Describe> rows[] = {
    {events::Type::artifact_read, read_line},
    {events::Type::artifact_stored, artifact_line},
    {events::Type::command_ended, describe_result},
    {events::Type::command_started,
     [](const json::Value& b) -> Description {
       return {"", Tone::plain, argv_text(b["argv"]), joined({field(b, "cwd"), program_caveats(b["program"])}),
               Weight::normal};
     }},
    {events::Type::context_built,
     [](const json::Value& b) { return asked_line(b, "recalled", b["passages"].as_int().value_or(-1)); }},
    {events::Type::evidence_recorded, evidence_line},
    {events::Type::message_added, message_line},
    {events::Type::model_answered, answer_line},
    {events::Type::pointer_rendered, [](const json::Value& b) { return looked_line("cited", b); }},
    {events::Type::pointer_resolved, [](const json::Value& b) { return looked_line("resolved", b); }},
    {events::Type::pointer_unresolved, unresolved_line},
    {events::Type::pointer_validated, [](const json::Value& b) { return looked_line("validated", b); }},
    {events::Type::question_answered, question_line},
    {events::Type::retrieval_answered,
     [](const json::Value& b) { return asked_line(b, "searched", static_cast<std::int64_t>(b["cards"].size())); }},
    {events::Type::run_ended, ended_line},
    {events::Type::run_halted, halt_line},
    {events::Type::run_started, started_line},
    {events::Type::sandbox_refused, sandbox_line},
    {events::Type::snapshot_taken,
     [](const json::Value& b) -> Description {
       return {"", Tone::plain, "snapshot",
               joined({"at seq", field(b, "seq"), size_text(b["size_bytes"].as_int().value_or(0))}), Weight::quiet};
     }},
    {events::Type::state_patched,
     [](const json::Value& b) -> Description {
       return {"", Tone::plain, "", b["ref"] ? field(b["ref"], "preview") : field(b, "patch"), Weight::quiet};
     }},
    {events::Type::step_ended, step_end_line},
    {events::Type::step_started,
     [](const json::Value& b) -> Description {
       const std::int64_t attempt = b["attempt"].as_int().value_or(1);
       const std::string process = b["lease"] ? "process " + field(b["lease"], "pid") : "";
       if (attempt <= 1) return {"", Tone::plain, field(b, "name"), process, Weight::normal};
       return {"", Tone::plain, field(b, "name"),
               fmt::format("attempt {}{}{}", attempt, process.empty() ? "" : ", ", process), Weight::normal};
     }},
    {events::Type::task_opened,
     [](const json::Value& b) -> Description {
       const std::string workflow = b["workflow"] ? "workflow " + field(b, "workflow") : "";
       return {"", Tone::plain, "task: " + field(b, "content"), joined({field(b, "required_type"), workflow}),
               Weight::normal};
     }},
    {events::Type::task_completed,
     [](const json::Value& b) -> Description {
       return {
           "", Tone::plain, "task completed: " + field(b, "verdict"),
           fmt::format("{} piece{} of evidence", b["evidence_ids"].size(), b["evidence_ids"].size() == 1 ? "" : "s"),
           Weight::normal};
     }},
    {events::Type::task_validated, validated_line},
    {events::Type::thought_recorded,
     [](const json::Value& b) -> Description {
       return {"", Tone::plain, "", text_of_content(b["content"]), Weight::normal};
     }},
    {events::Type::tool_called, tool_line},
    {events::Type::tool_returned, describe_result},
};

// Returns the text of a member, the texts of a list, or with "#" the number of its items.
std::string member_text(const json::Value& body, std::string_view path) {
  const bool counted = path.starts_with('#');
  if (counted) path.remove_prefix(1);
  json::Value value = body;
  while (!path.empty()) {
    const std::string_view name = path.substr(0, path.find('.'));
    value = value[name];
    path.remove_prefix(std::min(name.size() + 1, path.size()));
  }
  if (counted) return std::to_string(value.size());
  if (!value.is(json::Kind::array)) return words_of(value);
  std::string texts;
  for (const json::Value item : value) texts = joined({texts, words_of(item)});
  return texts;
}

// Fills in the members that a text of the catalogue names in braces.
std::string filled(std::string_view text, const json::Value& body) {
  std::string out;
  while (true) {
    const std::size_t open = std::min(text.find('{'), text.size());
    out += text.substr(0, open);
    if (open == text.size()) return out;
    const std::size_t close = text.find('}', open);
    out += member_text(body, text.substr(open + 1, close - open - 1));
    text.remove_prefix(close + 1);
  }
}

// The tone of a glyph, for lines that show no failure.
Tone tone_of_glyph(std::string_view glyph) {
  constexpr std::pair<std::string_view, Tone> tones[] = {
      {"●", Tone::bold},  {"▾", Tone::bold},   {"▸", Tone::bold},   {"$", Tone::bold},   {"☐", Tone::bold},
      {"☑", Tone::green}, {"✎", Tone::yellow}, {"?", Tone::yellow}, {"↻", Tone::yellow}, {"⊘", Tone::yellow},
      {"§", Tone::cyan},  {"⑂", Tone::cyan},   {"▤", Tone::plain},  {"☰", Tone::plain},  {"★", Tone::plain},
      {"⌕", Tone::cyan},  {"◆", Tone::cyan}};
  for (const auto& [known, tone] : tones) {
    if (known == glyph) return tone;
  }
  return Tone::dim;
}

}  // namespace

bool is_reported(const json::Value& content) {
  return content["command"].is(json::Kind::object) && !content["command"]["observed"].as_bool().value_or(false);
}

std::string caveats_of(const json::Value& content) {
  const std::string of_program = program_caveats(content["command"]["program"]);
  if (!is_reported(content)) return of_program;
  return of_program.empty() ? not_observed : not_observed + (", " + of_program);
}

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

bool has_own_line(events::Type type) {
  return std::ranges::any_of(rows, [&](const auto& row) { return row.first == type; });
}

Description describe(const json::Value& event) {
  const std::string name = event["type"].string_or("");
  const json::Value body = event["body"];
  if (!body || body.is(json::Kind::null)) return {"▒", Tone::dim, name, "redacted", Weight::normal};
  const events::TypeInfo* const type = events::find_type(name);
  if (type == nullptr) return {"·", Tone::dim, name, std::string(body.source()), Weight::quiet};
  const std::string glyph(type->line.glyph);
  for (const auto& [own, function] : rows) {
    if (own != type->type) continue;
    Description line = function(body);
    if (own == events::Type::command_started && event["origin"].string_or("") == "reported")
      line.tail = joined({line.tail, not_observed});
    if (!line.glyph.empty()) return line;
    line.glyph = glyph;
    line.tone = line.weight >= Weight::error ? Tone::red : tone_of_glyph(glyph);
    return line;
  }
  return {glyph, type->line.weight >= Weight::error ? Tone::red : tone_of_glyph(glyph), filled(type->line.head, body),
          filled(type->line.tail, body), type->line.weight};
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
