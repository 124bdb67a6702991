#include "adapters/import/claude_code/claude_code_thread.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "adapters/import/claude_code/claude_code_result.hpp"
#include "adapters/import/readable.hpp"
#include "base/crypto/base64.hpp"
#include "base/crypto/sha256.hpp"
#include "base/text.hpp"
#include "base/utf8.hpp"

namespace muniment::cli {
namespace {

constexpr std::size_t source_id_bytes_max = 240;
constexpr std::size_t source_path_bytes_max = 4'096;
constexpr std::string_view synthetic_model = "<synthetic>";
// Members that nearly every line repeats.
constexpr std::string_view repeated_members[] = {"cwd",      "gitBranch", "sessionId", "session_id",
                                                 "userType", "version",   "slug",      "permissionMode"};

std::string object_of(const std::vector<std::string>& rests) { return "{\"lines\":[" + joined(rests, ",") + "]}"; }

// Returns the members of a line and of its message blocks that no event field holds: JSON or empty.
std::string source_of(const std::string& rest, const std::vector<std::string>& blocks) {
  if (blocks.empty()) return rest == "{}" ? std::string() : rest;
  return "{\"line\":" + rest + ",\"blocks\":[" + joined(blocks, ",") + "]}";
}

std::string part_json(std::string_view type, std::string_view text) {
  json::Writer writer;
  write_part(writer, type, text);
  return std::move(writer).text();
}

}  // namespace

void ClaudeCodeThread::emit(std::uint64_t number, std::string_view part, std::string type, std::string body,
                            const std::string& occurred_at) {
  RunAction action;
  action.child = child_;
  action.event = {fmt::format("{}/{}", line_text(number), part), std::move(type), step_, std::move(body), occurred_at};
  out_->push_back(std::move(action));
  last_number_ = number;
  if (!occurred_at.empty()) last_time_ = occurred_at;
}

std::string ClaudeCodeThread::rest_of(const SessionLine& line, std::initializer_list<std::string_view> placed,
                                      std::initializer_list<std::string_view> placed_in_message) {
  const auto holds = [](auto names, std::string_view name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  json::Writer rest;
  rest.begin_object();
  for (const json::Value member : line.value) {
    const std::string key = member.key();
    if (member.is(json::Kind::null) || key == "type" || holds(placed, key)) continue;
    if (key == "timestamp" && !line.occurred_at.empty()) continue;
    if (std::find(std::begin(repeated_members), std::end(repeated_members), key) != std::end(repeated_members)) {
      std::string& last = repeated_[key];
      if (last == member.source()) continue;
      last = member.source();
    }
    if (key != "message" || !member.is(json::Kind::object)) {
      write_value(rest.key(key), member);
      continue;
    }
    bool any = false;
    for (const json::Value part : member) {
      if (part.is(json::Kind::null) || holds(placed_in_message, part.key())) continue;
      if (!std::exchange(any, true)) rest.key(key).begin_object();
      write_value(rest.key(part.key()), part);
    }
    if (any) rest.end_object();
  }
  return std::move(rest.end_object()).text();
}

void ClaudeCodeThread::begin_answer(const SessionLine& line, const std::string& id) {
  if (compaction_) add_compaction(nullptr);
  const json::Value message = line.value["message"];
  answer_ = Answer{};
  answer_->message_id = id;
  answer_->number = line.number;
  answer_->model = name_or(message["model"].string_or(""), unknown_model);
  if (const auto known = messages_.find(id); known != messages_.end()) {
    answer_->call_id = known->second.call_id;
    answer_->is_more = true;
    return;
  }
  answer_->call_id = fmt::format("model-{:04}", ++answers_);
  if (!id.empty()) messages_[id].call_id = answer_->call_id;
  json::Writer body;
  body.begin_object().member("call_id", answer_->call_id).member("operation", "chat");
  body.member("provider", unknown_model).member("model", answer_->model);
  body.key("parameters").begin_object().end_object().end_object();
  emit(line.number, "model", "model.called", std::move(body).text(),
       {});  // a session records the answer but not the time of the request
}

void ClaudeCodeThread::add_answer(const SessionLine& line) {
  const json::Value message = line.value["message"];
  const std::string id = message["id"].string_or("");
  if (answer_ && (id.empty() || answer_->message_id != id)) close_answer();
  if (message["model"].string_or("") == synthetic_model) return add_placeholder(line);
  if (!answer_ && is_known(id, message["content"])) return add_repeated(line, "message " + id, true);
  if (!answer_) begin_answer(line, id);
  if (!line.occurred_at.empty()) answer_->occurred_at = line.occurred_at;
  std::vector<std::string> unplaced;
  std::unordered_set<std::uint64_t>* const seen = id.empty() ? nullptr : &messages_[id].blocks;
  const auto is_new = [&](const json::Value& block) {
    const bool first = seen == nullptr || seen->insert(short_hash(block.source())).second;
    return first || (!answer_->is_more && block["type"].string_or("") != "tool_use");
  };
  if (const auto text = message["content"].as_string()) {
    if (is_new(message["content"])) answer_->parts.push_back(part_json("text", *text));
  } else {
    for (const json::Value block : message["content"]) {
      if (is_new(block)) take_block(line, block, unplaced);
    }
  }
  if (const std::string reason = message["stop_reason"].string_or(""); !reason.empty())
    answer_->stop_reason = preview(reason, 256);
  // A part that follows the end of the message has a placeholder again.
  std::string usage = usage_json(message["usage"], is_complete(message));
  const bool is_known_better = !answer_->stop_reason.empty() && !is_complete(message);
  if (!usage.empty() && !is_known_better && !is_of_stream(line.value)) answer_->usage = std::move(usage);
  const bool failed = line.value["isApiErrorMessage"].as_bool().value_or(false);
  if (failed) answer_->error = first_text(message["content"]);
  std::string rest = source_of(rest_of(line, {}, {"content", "model", "role", "type", "stop_reason"}), unplaced);
  if (!rest.empty()) answer_->rests.push_back(std::move(rest));
}

// Returns true for an answered message if `content` has no new block.
bool ClaudeCodeThread::is_known(const std::string& id, const json::Value& content) const {
  const auto known = messages_.find(id);
  if (known == messages_.end()) return false;
  const auto is_seen = [&](const json::Value& block) {
    return known->second.blocks.contains(short_hash(block.source()));
  };
  if (!content.is(json::Kind::array)) return is_seen(content);
  for (const json::Value block : content) {
    if (!is_seen(block)) return false;
  }
  return true;
}

// Handles a line that the client writes in place of the model; no model call belongs to it.
void ClaudeCodeThread::add_placeholder(const SessionLine& line) {
  if (compaction_) add_compaction(nullptr);
  const json::Value message = line.value["message"];
  if (line.value["isApiErrorMessage"].as_bool().value_or(false)) {
    ended_turn_ = false;
    json::Writer body;
    body.begin_object().member("error_type", "api_error").member("message", first_text(message["content"]));
    body.raw_member("x_source", rest_of(line, {}, {"role", "type"})).end_object();
    return emit(line.number, "error", "error.raised", std::move(body).text(), line.occurred_at);
  }
  json::Writer body;
  body.begin_object().member("message_id", "line-" + line_text(line.number)).member("role", "assistant");
  body.key("content").begin_array();
  std::vector<std::string> others;
  write_result_parts(body, message["content"], others);
  body.end_array();
  const std::string rest = source_of(rest_of(line, {}, {"content", "role", "type"}), others);
  if (!rest.empty()) body.raw_member("x_source", rest);
  emit(line.number, "message", "message.added", std::move(body.end_object()).text(), line.occurred_at);
}

void ClaudeCodeThread::take_block(const SessionLine& line, const json::Value& block,
                                  std::vector<std::string>& unplaced) {
  const std::string type = block["type"].string_or("");
  const auto keep_rest = [&](std::initializer_list<std::string_view> placed) {
    json::Writer rest;
    rest.begin_object();
    if (write_rest(rest, block, placed)) unplaced.push_back(std::move(rest.end_object()).text());
  };
  if (type == "text" && block["text"].is(json::Kind::string)) {
    answer_->parts.push_back(part_json("text", *block["text"].as_string()));
    keep_rest({"type", "text"});
  } else if (type == "thinking" && block["thinking"].is(json::Kind::string)) {
    answer_->parts.push_back(part_json("reasoning", *block["thinking"].as_string()));
    keep_rest({"type", "thinking"});
  } else if (type == "tool_use") {
    take_call(line, block);
    keep_rest({"type", "id", "name", "input"});
  } else {
    json::Writer whole;
    write_value(whole, block);
    unplaced.push_back(std::move(whole).text());
  }
}

void ClaudeCodeThread::take_call(const SessionLine& line, const json::Value& block) {
  const std::string id = block["id"].string_or("");
  const std::string name = name_or(block["name"].string_or(""), "unknown");
  const std::string call_id = new_call_id(id);
  json::Writer part;
  part.begin_object().member("type", "tool_call").member("id", call_id).member("name", name);
  if (block["input"]) write_value(part.key("arguments"), block["input"]);
  answer_->parts.push_back(std::move(part.end_object()).text());

  constexpr std::string_view mcp = "mcp__";
  json::Writer body;
  body.begin_object().member("call_id", call_id).member("name", name);
  body.member("kind", name == "Bash" ? "command" : name.starts_with(mcp) ? "mcp" : "function");
  if (name.starts_with(mcp)) body.member("server", name.substr(mcp.size(), name.find("__", mcp.size()) - mcp.size()));
  body.member("requested_by", answer_->call_id);
  if (block["input"]) write_value(body.key("arguments"), block["input"]);
  body.end_object();
  const std::string place = fmt::format("tool-{}-{}", line_text(line.number), answer_->tools.size());
  answer_->tools.emplace_back(place, std::move(body).text());
  const json::Value todos = block["input"]["todos"];
  if (name == "TodoWrite" && todos.is(json::Kind::array))
    answer_->plans.emplace_back("plan-" + place, plan_json(todos));
  pending_.insert({id, {call_id, name}});
  if (name == "Task" || name == "Agent") {
    subagent_calls_.push_back({call_id, name_or(block["input"]["subagent_type"].string_or(""), "subagent"),
                               block["input"]["prompt"].string_or("")});
  }
}

std::string ClaudeCodeThread::new_call_id(const std::string& id) {
  std::string call_id = id.empty() ? fmt::format("tool-{}", used_ids_.size() + 1) : preview(id, source_id_bytes_max);
  if (!used_ids_.insert(call_id).second) {
    call_id += fmt::format("~{}", used_ids_.size());
    used_ids_.insert(call_id);
  }
  return call_id;
}

void ClaudeCodeThread::close_answer() {
  if (!answer_) return;
  Answer answer = *std::exchange(answer_, std::nullopt);
  ended_turn_ = answer.tools.empty() && answer.error.empty();
  if (const MessageTotals* const totals = scan_ == nullptr ? nullptr : scan_->totals(answer.message_id)) {
    answer.usage = totals->usage;
    answer.stop_reason = preview(totals->stop_reason, 256);
  }
  json::Writer body;
  body.begin_object();
  if (answer.is_more) {
    body.member("message_id", fmt::format("{}-{}", answer.call_id, line_text(answer.number)))
        .member("role", "assistant")
        .member("call_id", answer.call_id);
  } else {
    const bool is_empty = answer.parts.empty();
    body.member("call_id", answer.call_id)
        .member("status", !answer.error.empty() ? "error"
                          : is_empty            ? unknown_end
                                                : "ok")
        .member("model", answer.model);
    body.key("finish_reasons").begin_array();
    if (!answer.stop_reason.empty()) body.string(answer.stop_reason);
    body.end_array();
    if (!answer.usage.empty()) body.raw_member("usage", answer.usage);
    if (!answer.error.empty())
      body.key("error").begin_object().member("error_type", "api_error").member("message", answer.error).end_object();
  }
  body.raw_member("content", "[" + joined(answer.parts, ",") + "]");
  if (!answer.rests.empty()) body.raw_member("x_source", object_of(answer.rests));
  body.end_object();
  emit(answer.number, "answer", answer.is_more ? "message.added" : "model.answered", std::move(body).text(),
       answer.occurred_at);
  for (const auto& [place, text] : answer.tools) emit(answer.number, place, "tool.called", text, answer.occurred_at);
  for (const auto& [place, text] : answer.plans) emit(answer.number, place, "plan.updated", text, answer.occurred_at);
}

void ClaudeCodeThread::settle() { close_answer(); }

void ClaudeCodeThread::end() {
  close_answer();
  if (compaction_) add_compaction(nullptr);
  end_turn(last_number_, "end");
  step_.clear();
}

void ClaudeCodeThread::add_user(const SessionLine& line) {
  close_answer();
  if (line.value["isCompactSummary"].as_bool().value_or(false)) return add_compaction(&line);
  if (compaction_) add_compaction(nullptr);
  const json::Value content = line.value["message"]["content"];
  std::vector<std::string> parts, others;
  std::vector<ImportedBlob> blobs;
  std::size_t results = 0;
  if (content.is(json::Kind::array)) {
    for (const json::Value block : content) {
      if (block["type"].string_or("") == "tool_result") add_return(line, block, results++);
    }
  }
  take_content(content, parts, others, blobs);
  if (results > 0 && parts.empty() && others.empty()) return;
  const std::string rest = source_of(results > 0 ? "{}" : rest_of(line, {}, {"content", "role"}), others);
  const std::string text = first_text(content);
  const bool is_prompt =
      results == 0 && !line.value["isMeta"].as_bool().value_or(false) && !text.starts_with("[Request interrupted");
  if (is_prompt) begin_turn(line);
  if (is_prompt && first_prompt_.empty()) first_prompt_ = text;
  add_prompt(line, joined(parts, ","), rest, std::move(blobs));
}

void ClaudeCodeThread::add_return(const SessionLine& line, const json::Value& block, std::size_t index) {
  const std::string id = block["tool_use_id"].string_or("");
  const auto known = pending_.contains(id) ? pending_.lower_bound(id) : pending_.end();  // the oldest call with this id
  const Call call = known == pending_.end() ? Call{name_or(id, "unknown"), ""} : known->second;
  if (known != pending_.end()) pending_.erase(known);
  const ToolResult result = judge_result(line.value, block);
  if (result.denied_by) add_denial(line, index, call, *result.denied_by);

  json::Writer body;
  body.begin_object().member("call_id", call.call_id).member("status", result.status);
  if (result.exit_code) body.member("exit_code", *result.exit_code);
  body.key("content").begin_array();
  std::vector<std::string> parts, others;
  std::vector<ImportedBlob> blobs;
  take_content(block["content"], parts, others, blobs);
  for (const std::string& part : parts) body.raw(part);
  body.end_array();
  const std::string rest = source_of(index == 0 ? rest_of(line, {}, {"content", "role"}) : "{}", others);
  if (!rest.empty()) body.raw_member("x_source", rest);
  emit(line.number, fmt::format("returned-{}", index), "tool.returned", std::move(body.end_object()).text(),
       line.occurred_at);
  out_->back().call_id = id;
  out_->back().event.blobs = std::move(blobs);
  if (index == 0) add_file(line, index, call.call_id);
  returned_.push_back({call.call_id, result.status == "error"});
}

// A session records the refusal but not the request for approval.
void ClaudeCodeThread::add_denial(const SessionLine& line, std::size_t index, const Call& call, std::string_view by) {
  json::Writer decided;
  decided.begin_object()
      .member("approval_id", fmt::format("approval-{}-{}", line_text(line.number), index))
      .member("call_id", call.call_id);
  decided.member("decision", "denied")
      .member("by", by)
      .member("x_derived_from", "the refusal in the tool's result")
      .end_object();
  emit(line.number, fmt::format("decided-{}", index), "approval.decided", std::move(decided).text(), line.occurred_at);
}

void ClaudeCodeThread::add_file(const SessionLine& line, std::size_t index, const std::string& call_id) {
  const json::Value result = result_details(line.value);
  json::Writer body;
  if (const auto path = result["filePath"].as_string();
      path && path->size() <= source_path_bytes_max && result["structuredPatch"]) {
    const bool created = result["type"].string_or("") == "create";
    body.begin_object()
        .member("path", *path)
        .member("change", created ? "created" : "modified")
        .member("call_id", call_id);
    if (const auto before = result["originalFile"].as_string()) body.member("before_hash", to_hex(sha256(*before)));
    if (const auto after = result["content"].as_string()) body.member("after_hash", to_hex(sha256(*after)));
    emit(line.number, fmt::format("file-{}", index), "file.changed", std::move(body.end_object()).text(),
         line.occurred_at);
  } else if (const auto read = result["file"]["filePath"].as_string(); read && read->size() <= source_path_bytes_max) {
    body.begin_object().member("path", *read).member("call_id", call_id).end_object();
    emit(line.number, fmt::format("file-{}", index), "file.read", std::move(body).text(), line.occurred_at);
  }
}

// Handles a prompt that a person sent while the model worked; it belongs to the current turn.
bool ClaudeCodeThread::add_queued(const SessionLine& line) {
  const json::Value attachment = line.value["attachment"];
  if (attachment["type"].string_or("") != "queued_command") return false;
  const std::string mode = attachment["commandMode"].string_or("prompt");
  const json::Value prompt = attachment["prompt"];
  if (mode == "task-notification" || (!prompt.is(json::Kind::string) && !prompt.is(json::Kind::array))) return false;
  close_answer();
  std::vector<std::string> parts, others;
  std::vector<ImportedBlob> blobs;
  take_content(prompt, parts, others, blobs);
  json::Writer about;
  about.begin_object();
  for (const json::Value member : attachment) {
    if (member.key() != "prompt") write_value(about.key(member.key()), member);
  }
  others.push_back(std::move(about.end_object()).text());
  add_prompt(line, joined(parts, ","), source_of(rest_of(line, {"attachment"}, {}), others), std::move(blobs));
  return true;
}

void ClaudeCodeThread::add_system(const SessionLine& line) {
  close_answer();
  if (compaction_) add_compaction(nullptr);
  const std::string subtype = line.value["subtype"].string_or("");
  const json::Value about = line.value["compactMetadata"];
  if (subtype == "compact_boundary") {
    compaction_ = Compaction{line.number, line.occurred_at, name_or(about["trigger"].string_or(""), "unknown"),
                             rest_of(line, {}, {}), std::nullopt};
    if (const auto tokens = about["preTokens"].as_int(); tokens && *tokens >= 0) compaction_->tokens_before = tokens;
  } else if (subtype == "api_error") {
    json::Writer body;
    body.begin_object().member("error_type", "api_error");
    body.member("message", line.value["content"].string_or(line.value["error"]["message"].string_or("")));
    const auto attempt = line.value["retryAttempt"].as_int(), at_most = line.value["maxRetries"].as_int();
    if (attempt && at_most) body.member("retryable", *attempt < *at_most);
    body.raw_member("x_source", rest_of(line, {}, {})).end_object();
    emit(line.number, "error", "error.raised", std::move(body).text(), line.occurred_at);
  } else {
    add_raw(line);
  }
}

// Handles the boundary and the summary that follows it; either may be missing.
void ClaudeCodeThread::add_compaction(const SessionLine* line) {
  const Compaction boundary = compaction_.value_or(
      Compaction{line ? line->number : 0, line ? line->occurred_at : "", "unknown", "", std::nullopt});
  compaction_.reset();
  json::Writer body;
  body.begin_object().member("trigger", boundary.trigger);
  if (boundary.tokens_before) body.member("tokens_before", *boundary.tokens_before);
  std::vector<std::string> rests, others;
  if (!boundary.rest.empty()) rests.push_back(boundary.rest);
  body.key("summary").begin_array();
  if (line != nullptr) write_result_parts(body, line->value["message"]["content"], others);
  body.end_array();
  if (line != nullptr) rests.push_back(rest_of(*line, {}, {"content", "role"}));
  body.raw_member("x_source", object_of(rests)).end_object();
  emit(boundary.number, "compacted", "context.compacted", std::move(body).text(), boundary.occurred_at);
}

void ClaudeCodeThread::add_raw(const SessionLine& line) {
  json::Writer body;
  body.begin_object().member("line", line_count(line.number));
  write_value(body.key("source"), line.value);
  emit(line.number, "raw", raw_type(line.value), std::move(body.end_object()).text(), line.occurred_at);
}

void ClaudeCodeThread::add_repeated(const SessionLine& line, const std::string& first, bool is_equal) {
  json::Writer body;
  body.begin_object().member("line", line_count(line.number)).member("repeats", first);
  if (is_equal) {
    const std::string rest = rest_of(line, {"message", "toolUseResult", "tool_use_result"}, {});
    if (rest != "{}") body.raw_member("source", rest);
  } else {
    write_value(body.key("source"), line.value);
  }
  emit(line.number, "repeated", "x.claude_code.repeated", std::move(body.end_object()).text(), line.occurred_at);
}

void ClaudeCodeThread::add_repaired(std::uint64_t number, std::string_view source, std::uint64_t replaced) {
  RunAction action;
  action.child = child_;
  action.event =
      repaired_event(line_text(number) + "/repaired", claude_code_format, line_count(number), replaced, source);
  action.event.step_id = step_;
  out_->push_back(std::move(action));
}

void ClaudeCodeThread::add_unreadable(std::uint64_t number, std::string_view text, std::string_view why) {
  json::Writer body;
  body.begin_object().member("line", line_count(number)).member("why", why);
  const bool is_text = first_invalid_utf8(text) == std::string_view::npos && text.find('\0') == std::string_view::npos;
  if (!text.empty()) body.member(is_text ? "text" : "base64", is_text ? std::string(text) : to_base64(text));
  emit(number, "unreadable", "x.claude_code.unreadable", std::move(body.end_object()).text(), {});
}

}  // namespace muniment::cli
