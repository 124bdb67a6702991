// Translates messages in attributes and events of spans and logs.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "adapters/import/otlp/otlp_trace.hpp"
#include "base/crypto/sha256.hpp"
#include "base/text.hpp"

namespace muniment::cli {
namespace {

constexpr std::size_t choice_parts_max = 100;  // parts of an answer given as events; further ones become messages

// Returns the role in the name of an older event, or empty.
std::string_view role_of_event(std::string_view name) {
  for (const std::string_view role : {"system", "user", "assistant", "tool"}) {
    if (name.size() == role.size() + 15 && name.starts_with("gen_ai.") && name.ends_with(".message") &&
        name.substr(7, role.size()) == role)
      return role;
  }
  return {};
}

bool comes_first(std::string_view name) { return !role_of_event(name).empty(); }

// Returns the body of a message event: the body of a log record, or the JSON in one or several attributes of a span
// event.
std::string body_text(const json::Value& body, const OtlpAttributes& attributes) {
  if (body.present()) return any_json(body);
  const std::string content = attributes.text("gen_ai.event.content");
  if (const auto document = json::parse(content); document && document->root().is(json::Kind::object))
    return one_line_json(document->root());
  json::Writer out;
  out.begin_object();
  for (const char* name : {"role", "content", "id", "tool_calls", "message", "index", "finish_reason"}) {
    const json::Value any = attributes.find(name);
    if (!any) continue;
    const std::string text = any_text(any);
    const bool is_structured = std::string_view(name) == "tool_calls" || std::string_view(name) == "message";
    const std::string structured = is_structured ? text : std::string();
    const auto document = json::parse(structured);
    if (document)
      write_value(out.key(name), document->root());
    else
      write_any(out.key(name), any);
  }
  return std::move(out.end_object()).text();
}

// Returns whether the other attributes only repeat facts of this kind of message.
bool is_plain_event(const OtlpAttributes& attributes, bool has_body) {
  return std::all_of(attributes.all().begin(), attributes.all().end(), [&](const OtlpAttributes::One& one) {
    const bool is_body = !has_body && (one.key == "role" || one.key == "content");
    return is_body || one.key == "event.name";
  });
}

}  // namespace

// Returns the first text of the user in the messages of a span.
std::string OtlpTrace::goal_of(const json::Value& span) const {
  const OtlpAttributes attributes(span["attributes"]);
  const std::string text = otlp_message_list(attributes.find(otlp_input_messages), "user");
  if (const auto document = json::parse(text); document) {
    for (const json::Value message : document->root()) {
      bool known = true;
      if (otlp_role(message, known, "user") != "user") continue;
      if (OtlpParts parts = otlp_message_parts(message); !parts.text.empty()) return std::move(parts.text);
    }
  }
  for (const json::Value event : span["events"]) {
    if (event["name"].string_or("") != "gen_ai.user.message") continue;
    const std::string body = body_text({}, OtlpAttributes(event["attributes"]));
    const auto said = json::parse(body);
    if (said) return said->root()["content"].string_or("");
  }
  return {};
}

void OtlpTrace::add_messages(std::uint32_t item, const OtlpAttributes& attributes, std::string_view what,
                             const std::string& occurred_at, Placed& placed) {
  constexpr std::string_view instructions = "gen_ai.system_instructions";
  if (attributes.find(instructions)) {
    add_message_list(item, attributes.find(instructions), "system", fmt::format("{}-system", what), occurred_at);
    placed.push_back(instructions);
  }
  if (attributes.find(otlp_input_messages)) placed.push_back(otlp_input_messages);
  if (attributes.find(otlp_output_messages)) placed.push_back(otlp_output_messages);
  add_message_list(item, attributes.find(otlp_input_messages), "user", what, occurred_at);
}

void OtlpTrace::add_message_list(std::uint32_t item, const json::Value& list, std::string_view role,
                                 std::string_view what, const std::string& occurred_at) {
  const std::string text = otlp_message_list(list, role);
  const auto document = json::parse(text);
  if (!document) return;
  std::map<std::string, std::uint32_t> counts;
  std::size_t index = 0;
  for (const json::Value message : document->root()) {
    ++index;
    bool known = true;
    const std::string_view named = otlp_role(message, known, role);
    const OtlpParts parts = otlp_message_parts(message);
    const std::string source = parts.whole && known ? std::string() : one_line_json(message);
    if (remember(run_of(item), named, parts, source, &counts))
      add_message(item, index == 1 && role == "system" ? std::string(what) : fmt::format("{}-{}", what, index), named,
                  parts, source, occurred_at);
  }
}

// Every call repeats the dialogue before it, so a message that the run already has as often as this list is not added.
// `counts` counts within the list; without it, one occurrence suffices. Returns true if the message must be added.
bool OtlpTrace::remember(Run& run, std::string_view role, const OtlpParts& parts, std::string_view source,
                         std::map<std::string, std::uint32_t>* counts) {
  const std::string hash(view(sha256({role, "\n", joined(parts.parts, "\n"), "\n", source})).substr(0, 16));
  std::uint32_t& said = run.said[hash];
  if (counts == nullptr) return said++ == 0;
  const std::uint32_t here = ++(*counts)[hash];
  if (here <= said) return false;
  said = here;
  return true;
}

void OtlpTrace::add_message(std::uint32_t item, const std::string& what, std::string_view role, const OtlpParts& parts,
                            std::string_view source, const std::string& occurred_at) {
  json::Writer body;
  body.begin_object().member("message_id", fmt::format("{}-{}", name_of(item), what)).member("role", role);
  body.raw_member("content", "[" + joined(parts.parts, ",") + "]");
  if (!source.empty()) body.raw_member("x_source", source);
  emit(item, what, "message.added", std::move(body.end_object()).text(), occurred_at);
}

// Input messages are placed before the call, all other events before the end.
void OtlpTrace::add_span_events(std::uint32_t item, bool at_begin) {
  if (kind(item) == OtlpKind::log) return;
  std::size_t index = 0;
  const json::Value events = document_->root()["events"];
  if (!events.is(json::Kind::array)) return;
  for (const json::Value value : events) {
    Event event{item,
                fmt::format("event-{}", index++),
                value["name"].string_or(""),
                value,
                OtlpAttributes(value["attributes"]),
                {},
                otlp_time(otlp_nanos(value["timeUnixNano"]))};
    if (comes_first(event.name) == at_begin) add_event(event);
  }
}

// A log record belongs to its span, or to the trace if the span is unknown.
void OtlpTrace::add_log(std::uint32_t item) {
  if (is_lone_call(item)) {
    begin_model(item);
    return end_model(item);
  }
  const json::Value value = document_->root();
  Event event{
      item,          "log",           value["eventName"].string_or(""), value, OtlpAttributes(value["attributes"]),
      value["body"], start_time(item)};
  if (event.name.empty()) event.name = event.attributes.text("event.name");
  add_event(event);
}

void OtlpTrace::add_event(const Event& event) {
  if (const std::string_view role = role_of_event(event.name); !role.empty()) return add_event_message(event, role);
  if (event.name == "gen_ai.choice") return add_choice(event);
  if (event.name == "exception" || event.attributes.find("exception.type").present()) return add_exception(event);
  const auto moved = moved_.find(event.item);
  json::Writer body;
  body.begin_object().key("source");
  if (moved == moved_.end() || moved->second.empty()) {
    write_value(body, event.value);
  } else {
    const Placed placed(moved->second.begin(), moved->second.end());
    body.raw(rest_of(event.value, placed));
  }
  const bool is_log = kind(event.item) == OtlpKind::log;
  emit(event.item, event.what, is_log ? "x.otlp.log" : "x.otlp.event", std::move(body.end_object()).text(),
       event.occurred_at);
}

void OtlpTrace::add_event_message(const Event& event, std::string_view role) {
  const std::string text = body_text(event.body, event.attributes);
  const auto document = json::parse(text);
  const json::Value said = document ? document->root() : json::Value();
  OtlpParts parts = otlp_message_parts(said);
  bool known = true;
  const std::string_view named = said["role"] ? otlp_role(said, known, role) : role;
  const bool plain = parts.whole && known && is_plain_event(event.attributes, event.body.present());
  // A call repeats earlier messages with a different time.
  json::Writer rest, times;
  write_members(rest.begin_object(), event.value,
                {"name", "eventName", "timeUnixNano", "observedTimeUnixNano", "traceId", "spanId"});
  const std::string source = plain ? std::string() : std::move(rest.end_object()).text();
  if (!remember(run_of(event.item), named, parts, source, nullptr)) return;
  times.begin_object();
  for (const char* name : {"timeUnixNano", "observedTimeUnixNano"}) {
    if (const json::Value time = event.value[name]) write_value(times.key(name), time);
  }
  if (!source.empty()) times.raw_member("event", source);
  add_message(event.item, event.what, named, parts, times.end_object().text(), event.occurred_at);
}

// Adds a part to the answer of an open call; otherwise adds a message.
void OtlpTrace::add_choice(const Event& event) {
  const std::uint32_t span = kind(event.item) == OtlpKind::log ? order_.parents[event.item] : event.item;
  const auto open = span == none || kind(span) != OtlpKind::model ? calls_.end() : calls_.find(span);
  if (open == calls_.end() || open->second.parts.size() > choice_parts_max ||
      open->second.sources.size() > choice_parts_max) {
    return add_event_message(event, "assistant");
  }
  const std::string text = body_text(event.body, event.attributes);
  const auto document = json::parse(text);
  const json::Value choice = document ? document->root() : json::Value();
  const json::Value message = choice["message"].is(json::Kind::object) ? choice["message"] : choice;
  OtlpParts parts = otlp_message_parts(message);
  (void)remember(run_of(span), "assistant", parts, {}, nullptr);
  Call& call = open->second;
  note_asked(run_of(span), parts, call.call_id);
  std::move(parts.parts.begin(), parts.parts.end(), std::back_inserter(call.parts));
  if (const auto reason = choice["finish_reason"].as_string(); reason && reason->size() <= 256)
    call.reasons.push_back(*reason);
  json::Writer source;
  write_value(source, event.value);
  call.sources.push_back(std::move(source).text());
}

void OtlpTrace::add_exception(const Event& event) {
  json::Writer body;
  const std::string type = event.attributes.text("exception.type");
  body.begin_object()
      .member("error_type", name_or(type, "exception"))
      .member("message", event.attributes.text("exception.message"));
  Placed placed{"exception.message"};
  if (type.size() <= 256) placed.emplace_back("exception.type");
  if (event.attributes.find("exception.stacktrace")["stringValue"]) {
    body.member("stack", event.attributes.text("exception.stacktrace"));
    placed.emplace_back("exception.stacktrace");
  }
  const std::uint32_t span = kind(event.item) == OtlpKind::log ? order_.parents[event.item] : event.item;
  if (const auto open = calls_.find(span); open != calls_.end()) body.member("call_id", open->second.call_id);
  body.raw_member("x_source", rest_of(event.value, placed)).end_object();
  emit(event.item, event.what, "error.raised", std::move(body).text(), event.occurred_at);
}

// Adds the error of a span that is not a call, unless an exception event describes it.
void OtlpTrace::add_error(std::uint32_t item) {
  const json::Value span = document_->root();
  const json::Value status = span["status"];
  if (status["code"].as_int() != 2 && status["code"].string_or("") != "STATUS_CODE_ERROR") return;
  for (const json::Value event : span["events"]) {
    if (event["name"].string_or("") == "exception") return;
  }
  json::Writer body;
  body.begin_object().member("error_type", name_or(OtlpAttributes(span["attributes"]).text("error.type"), "error"));
  body.member("message", status["message"].string_or("")).end_object();
  emit(item, "error", "error.raised", std::move(body).text(), end_time(item));
}

}  // namespace muniment::cli
