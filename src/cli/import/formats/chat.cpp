#include "cli/import/formats/chat.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"

namespace muniment::cli {
namespace {

constexpr std::size_t chat_call_id_bytes_max = 240;  // leaves room for a suffix that makes ids unique
constexpr std::size_t uri_bytes_max = 4'096;

bool is_role(std::string_view role) {
  return role == "system" || role == "developer" || role == "user" || role == "assistant" || role == "tool";
}

// Writes content that is a text or a list of texts and links; returns true if all of it was written.
bool write_chat_parts(json::Writer& body, const json::Value& content) {
  if (const auto text = content.as_string()) {
    write_part(body, "text", *text);
    return true;
  }
  bool all = !content.present() || content.is(json::Kind::null) || content.is(json::Kind::array);
  for (const json::Value part : content) {
    const std::string uri = part["image_url"]["url"].string_or("");
    if (part["type"].string_or("") == "text" && part.size() == 2 && part["text"].is(json::Kind::string)) {
      write_part(body, "text", part["text"].string_or(""));
    } else if (!uri.empty() && uri.size() <= uri_bytes_max && part.size() == 2 && part["image_url"].size() == 1) {
      body.begin_object().member("type", "uri").member("uri", uri).member("modality", "image").end_object();
    } else {
      all = false;
    }
  }
  return all;
}

// If some parts are unknown, the original content is kept in addition.
void write_message_rest(json::Writer& body, const json::Value& message, bool content_placed,
                        std::initializer_list<std::string_view> placed) {
  if (content_placed) {
    write_rest(body, message, placed);
    return;
  }
  std::vector<std::string_view> names;
  std::copy_if(placed.begin(), placed.end(), std::back_inserter(names),
               [](std::string_view name) { return name != "content"; });
  write_rest(body, message, names);
}

// Returns whether the calls contain only members that become part of the answer.
bool is_plain_call(const json::Value& call) {
  for (const json::Value member : call) {
    const std::string key = member.key();
    const bool known = key == "id" || key == "function" || (key == "type" && member.string_or("") == "function");
    if (!known && !member.is(json::Kind::null)) return false;
  }
  for (const json::Value member : call["function"]) {
    if (member.key() != "name" && member.key() != "arguments") return false;
  }
  return call["function"].is(json::Kind::object);
}

bool are_plain_calls(const json::Value& calls) {
  if (!calls.is(json::Kind::array)) return !calls.present() || calls.is(json::Kind::null);
  for (const json::Value call : calls) {
    if (!is_plain_call(call)) return false;
  }
  return true;
}

std::string chat_text(const json::Value& content) {
  if (const auto text = content.as_string()) return *text;
  std::string all;
  for (const json::Value part : content) all += part["text"].string_or("");
  return all;
}

}  // namespace

void ChatTrace::add(std::string_view what, std::string type, std::string body) {
  events_.push_back({fmt::format("{}/{}", messages_, what), std::move(type), step_, std::move(body)});
}

void ChatTrace::begin_step() {
  if (!step_.empty()) add("step-end", "step.ended", unknown_step_end);
  step_ = fmt::format("turn-{:04}", ++steps_);
  json::Writer body;
  body.begin_object().member("name", fmt::format("turn {}", steps_)).member("kind", "turn").end_object();
  add("step", "step.started", std::move(body).text());
}

void ChatTrace::end() {
  if (!step_.empty()) add("end", "step.ended", unknown_step_end);
  step_.clear();
}

void ChatTrace::add(const json::Value& message) {
  ++messages_;
  const std::string role = message["role"].string_or("");
  if (role == "assistant") return add_answer(message);
  if (role == "tool" || role == "function") {
    if (const std::string call = take_pending(message); !call.empty()) return add_return(message, call);
  }
  add_message(message, role);
}

void ChatTrace::add_text(std::string_view role, std::string_view text) {
  ++messages_;
  json::Writer body;
  if (role == "assistant") {
    begin_step();
    const std::string call_id = fmt::format("model-{:04}", steps_);
    call_model(call_id);
    body.begin_object().member("call_id", call_id).member("status", "ok").member("model", unknown_model);
    body.key("finish_reasons").begin_array().end_array();
  } else {
    body.begin_object()
        .member("message_id", fmt::format("m{}", messages_))
        .member("role", is_role(role) ? role : "user");
  }
  body.key("content").begin_array();
  write_part(body, "text", text);
  body.end_array().end_object();
  add("text", role == "assistant" ? "model.answered" : "message.added", std::move(body).text());
}

void ChatTrace::call_model(const std::string& call_id) {
  json::Writer called;
  called.begin_object().member("call_id", call_id).member("operation", "chat");
  called.member("provider", unknown_model).member("model", unknown_model);
  called.key("parameters").begin_object().end_object().end_object();
  add("model", "model.called", std::move(called).text());
}

void ChatTrace::add_answer(const json::Value& message) {
  begin_step();
  const std::string call_id = fmt::format("model-{:04}", steps_);
  call_model(call_id);
  json::Writer body;
  body.begin_object().member("call_id", call_id).member("status", "ok").member("model", unknown_model);
  body.key("finish_reasons").begin_array().end_array().key("content").begin_array();
  const bool all = write_chat_parts(body, message["content"]);
  for (const json::Value call : message["tool_calls"]) {
    body.begin_object()
        .member("type", "tool_call")
        .member("name", name_or(call["function"]["name"].string_or(""), "unknown"));
    if (const std::string id = call["id"].string_or(""); !id.empty()) body.member("id", preview(id, 256));
    if (const json::Value arguments = call["function"]["arguments"]) write_value(body.key("arguments"), arguments);
    body.end_object();
  }
  body.end_array();
  const bool calls_placed = are_plain_calls(message["tool_calls"]);
  write_message_rest(body, message, all, {"role", "content", calls_placed ? "tool_calls" : "content"});
  body.end_object();
  add("answer", "model.answered", std::move(body).text());
  add_calls(message, call_id);
}

void ChatTrace::add_calls(const json::Value& message, const std::string& model_call) {
  for (const json::Value call : message["tool_calls"]) add_call(call["function"], call["id"].string_or(""), model_call);
  if (const json::Value call = message["function_call"]; call.is(json::Kind::object)) add_call(call, {}, model_call);
}

void ChatTrace::add_call(const json::Value& function, const std::string& source_id, const std::string& model_call) {
  const std::string call_id = new_call_id(source_id);
  json::Writer body;
  body.begin_object().member("call_id", call_id).member("name", name_or(function["name"].string_or(""), "unknown"));
  body.member("kind", "function").member("requested_by", model_call);
  if (const json::Value arguments = function["arguments"]) write_arguments(body, arguments);
  body.end_object();
  add(fmt::format("tool-{}", calls_), "tool.called", std::move(body).text());
  pending_.push_back({source_id, call_id});
}

std::string ChatTrace::new_call_id(const std::string& source_id) {
  ++calls_;
  std::string id = source_id.empty() ? fmt::format("tool-{:04}", calls_) : preview(source_id, chat_call_id_bytes_max);
  if (!used_ids_.insert(id).second) {
    id += fmt::format("~{}", calls_);
    used_ids_.insert(id);
  }
  return id;
}

// Returns the call that a tool message answers: the oldest open call with its id, or the oldest of all if it has no id.
// Empty: none.
std::string ChatTrace::take_pending(const json::Value& message) {
  const std::string id = message["tool_call_id"].string_or("");
  const auto found = std::find_if(pending_.begin(), pending_.end(),
                                  [&](const Call& call) { return id.empty() || call.source_id == id; });
  if (found == pending_.end()) return {};
  std::string call_id = found->call_id;
  pending_.erase(found);
  return call_id;
}

void ChatTrace::add_return(const json::Value& message, const std::string& call_id) {
  const std::string text = chat_text(message["content"]);
  ToolOutcome outcome;
  if (!text.empty()) outcome = judge_(text);
  json::Writer body;
  body.begin_object().member("call_id", call_id).member("status", outcome.status);
  if (outcome.exit_code) body.member("exit_code", *outcome.exit_code);
  body.key("content").begin_array();
  const bool all = write_chat_parts(body, message["content"]);
  body.end_array();
  write_message_rest(body, message, all, {"role", "content"});
  body.end_object();
  add("returned", "tool.returned", std::move(body).text());
}

void ChatTrace::add_message(const json::Value& message, const std::string& role) {
  json::Writer body;
  body.begin_object().member("message_id", fmt::format("m{}", messages_)).member("role", is_role(role) ? role : "user");
  body.key("content").begin_array();
  const bool all = write_chat_parts(body, message["content"]);
  body.end_array();
  write_message_rest(body, message, all, {"content", is_role(role) ? "role" : "content"});
  body.end_object();
  add("message", "message.added", std::move(body).text());
}

}  // namespace muniment::cli
