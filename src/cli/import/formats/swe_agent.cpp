#include "cli/import/formats/swe_agent.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/json/json.hpp"
#include "base/limits.hpp"
#include "base/text.hpp"
#include "cli/import/events.hpp"
#include "cli/import/formats/swe_agent_action.hpp"
#include "cli/import/readable.hpp"

namespace muniment::cli {
namespace {

std::string step_of(std::size_t turn) { return fmt::format("turn-{:04}", turn + 1); }
std::string model_call_of(std::size_t turn) { return fmt::format("model-{:04}", turn + 1); }
std::string tool_call_of(std::size_t turn) { return fmt::format("tool-{:04}", turn + 1); }

std::string text_of(const json::Value& value) { return value.string_or(""); }

class Import {
 public:
  Import(const SourceFile& file, const json::Value& source, ImportSink& sink, std::uint64_t replaced)
      : file_(file), source_(source), sink_(sink), replaced_(replaced) {}

  Status run() {
    for (const json::Value entry : source_["trajectory"]) turns_.push_back(entry);
    for (const json::Value message : source_["history"]) history_.push_back(message);
    ASSIGN_OR_RETURN(const bool wanted, sink_.start(start_params()));
    if (!wanted) return success();
    RETURN_IF_ERROR(begin());
    for (std::size_t turn = 0; turn < turns_.size(); ++turn) RETURN_IF_ERROR(record_turn(turn));
    RETURN_IF_ERROR(record_rest());
    RETURN_IF_ERROR(record_submission());
    return sink_.end({outcome(), summary(), usage()});
  }

 private:
  // The start of the run -------------------------------------------------------------------------

  std::string start_params() const {
    json::Writer params;
    params.begin_object().member("run_id", imported_run_id(file_));
    params.key("agent").begin_object().member("name", "swe-agent").end_object();
    if (const std::string goal = goal_of(); !goal.empty()) params.member("goal", goal);
    params.key("labels").begin_object();
    if (const json::Value environment = source_["environment"]; environment.is(json::Kind::string)) {
      params.member("environment", preview(text_of(environment), 256));
    }
    params.end_object();
    params.member("external_id", preview(file_.name, 1024));
    params.key("import").begin_object().member("format", swe_agent_format);
    params.member("sha256", file_.sha256).member("importer", importer_name).end_object();
    params.end_object();
    return std::move(params).text();
  }

  // Finds the title of the issue on the line after "ISSUE:" in the first message of the user.
  std::string goal_of() const {
    for (const json::Value& message : history_) {
      if (text_of(message["role"]) != "user") continue;
      const std::string content = text_of(message["content"]);
      constexpr std::string_view heading = "ISSUE:\n";
      const std::size_t issue = content.find(heading);
      if (issue == std::string::npos) return {};
      const std::size_t begin = issue + heading.size();
      return preview(content.substr(begin, content.find('\n', begin) - begin), 300);
    }
    return {};
  }

  // Adds the messages before the first answer of the model and the fields of the file that no other event holds.
  Status begin() {
    if (replaced_ > 0) batch_.push_back(repaired_event("repaired", swe_agent_format, 0, replaced_, file_.text));
    RETURN_IF_ERROR(add_rest("file", {}, source_, {"trajectory", "history", "info"}, Placed::any_kind));
    while (next_message_ < history_.size() && !is_turn(history_[next_message_])) {
      RETURN_IF_ERROR(add_message(history_[next_message_], next_message_, {}));
      ++next_message_;
    }
    if (!turns_.empty()) start_step(0);
    return flush(0);
  }

  // Returns whether a message is an answer that the trajectory also contains, unlike a demonstration.
  bool is_turn(const json::Value& message) const {
    if (text_of(message["role"]) != "assistant" || next_turn_ >= turns_.size()) return false;
    if (message["is_demo"].as_bool().value_or(false)) return false;
    return text_of(message["content"]) == text_of(turns_[next_turn_]["response"]);
  }

  // A turn ---------------------------------------------------------------------------------------

  // The previous batch started the step.
  Status record_turn(std::size_t turn) {
    const json::Value entry = turns_[turn];
    const std::string step = step_of(turn);
    add_model_call(turn, step);
    RETURN_IF_ERROR(add_answer(turn, step, entry));
    RETURN_IF_ERROR(add_thought(turn, step, entry));
    RETURN_IF_ERROR(add_tool(turn, step, entry));
    add_effects(turn, step, entry);
    RETURN_IF_ERROR(add_replies(turn, step));
    RETURN_IF_ERROR(end_step(step, entry, turn));
    if (turn + 1 < turns_.size()) start_step(turn + 1);
    return flush(turn + 1);
  }

  void start_step(std::size_t turn) {
    json::Writer body;
    body.begin_object().member("name", fmt::format("turn {}", turn + 1)).member("kind", "turn").end_object();
    add("step", "step.started", step_of(turn), std::move(body).text());
  }

  void add_model_call(std::size_t turn, const std::string& step) {
    json::Writer body;
    body.begin_object().member("call_id", model_call_of(turn)).member("operation", "chat");
    body.member("provider", unknown_model).member("model", unknown_model);
    body.key("parameters").begin_object().end_object().end_object();
    add("call", "model.called", step, std::move(body).text());
  }

  Status add_answer(std::size_t turn, const std::string& step, const json::Value& entry) {
    json::Writer body;
    const std::string response = text_of(entry["response"]);
    body.begin_object().member("call_id", model_call_of(turn)).member("status", response.empty() ? unknown_end : "ok");
    body.member("model", unknown_model).key("finish_reasons").begin_array().end_array();
    RETURN_IF_ERROR(content(body, step, "text", response));
    body.end_object();
    add("answer", "model.answered", step, std::move(body).text());
    return success();
  }

  Status add_thought(std::size_t turn, const std::string& step, const json::Value& entry) {
    const std::string thought = text_of(entry["thought"]);
    if (thought.empty()) return success();
    json::Writer body;
    body.begin_object().member("call_id", model_call_of(turn));
    RETURN_IF_ERROR(content(body, step, "reasoning", thought));
    body.end_object();
    add("thought", "thought.recorded", step, std::move(body).text());
    return success();
  }

  Status add_tool(std::size_t turn, const std::string& step, const json::Value& entry) {
    const std::string action = text_of(entry["action"]);
    const std::string observation = text_of(entry["observation"]);
    json::Writer called;
    called.begin_object().member("call_id", tool_call_of(turn)).member("name", tool_of(action));
    called.member("kind", is_own_tool(tool_of(action)) ? "function" : "command");
    called.member("requested_by", model_call_of(turn));
    if (action.size() > limits::spill_part_bytes_max) {
      called.key("ref");
      RETURN_IF_ERROR(reference(called, step, {}, action));
    } else {
      called.key("arguments").begin_object().member("action", action).end_object();
    }
    called.end_object();
    add("tool", "tool.called", step, std::move(called).text());

    json::Writer returned;
    returned.begin_object().member("call_id", tool_call_of(turn));
    returned.member("status", tool_status(tool_of(action), observation));
    RETURN_IF_ERROR(content(returned, step, "text", observation));
    returned.end_object();
    add("observation", "tool.returned", step, std::move(returned).text());
    return success();
  }

  // Adds the effects of the action on files and on the working directory, as far as the trace shows them.
  void add_effects(std::size_t turn, const std::string& step, const json::Value& entry) {
    const AgentPlace place = place_of(text_of(entry["state"]));
    const auto change = file_change(text_of(entry["action"]), text_of(entry["observation"]));
    if (change) {
      json::Writer body;
      body.begin_object().member("path", preview(change->path, 4096)).member("change", change->change);
      body.member("call_id", tool_call_of(turn)).end_object();
      add("file", "file.changed", step, std::move(body).text());
    }
    if (place == place_ || (place.open_file.empty() && place.working_dir.empty())) return;
    place_ = place;
    json::Writer body;
    body.begin_object().member("format", "merge").key("patch").begin_object();
    body.member("open_file", preview(place.open_file, 4096));
    body.member("working_dir", preview(place.working_dir, 4096)).end_object().end_object();
    add("place", "state.patched", step, std::move(body).text());
  }

  // Adds the messages after this turn's answer in the history, up to the next answer.
  Status add_replies(std::size_t turn, const std::string& step) {
    if (next_message_ < history_.size() && is_turn(history_[next_message_])) {
      RETURN_IF_ERROR(keep_unplaced(history_[next_message_], step, turns_[turn]));
      ++next_message_;
    }
    ++next_turn_;
    while (next_message_ < history_.size() && !is_turn(history_[next_message_])) {
      RETURN_IF_ERROR(add_message(history_[next_message_], next_message_, step));
      ++next_message_;
    }
    return success();
  }

  // The history repeats an answer with its thought and action; differences from the trajectory are kept.
  Status keep_unplaced(const json::Value& message, const std::string& step, const json::Value& entry) {
    std::vector<std::string> placed = {"content"};
    for (const char* name : {"thought", "action"}) {
      if (text_of(message[name]) == text_of(entry[name])) placed.emplace_back(name);
    }
    return add_rest(fmt::format("history-{}", next_message_), step, message, placed);
  }

  Status end_step(const std::string& step, const json::Value& entry, std::size_t turn) {
    RETURN_IF_ERROR(
        add_rest(fmt::format("trajectory-{}", turn), step, entry, {"action", "observation", "response", "thought"}));
    add("end", "step.ended", step, unknown_step_end);
    return success();
  }

  // The end of the run ---------------------------------------------------------------------------

  Status record_rest() {
    for (; next_message_ < history_.size(); ++next_message_) {
      RETURN_IF_ERROR(add_message(history_[next_message_], next_message_, {}));
    }
    RETURN_IF_ERROR(add_rest("info", {}, source_["info"], {"submission"}));
    return flush(turns_.size() + 1);
  }

  Status record_submission() {
    const std::string submission = text_of(source_["info"]["submission"]);
    if (submission.empty()) return success();
    RETURN_IF_ERROR(sink_.put({}, "text/x-diff", submission));
    return success();
  }

  // An agent that submits claims success. "submitted (exit_cost)" is an automatic submission when the budget is
  // exhausted, so its outcome is unknown.
  std::string outcome() const {
    const std::string status = text_of(source_["info"]["exit_status"]);
    if (status == "submitted") return "success";
    return status.empty() || status.starts_with("submitted") ? std::string(unknown_end) : "failure";
  }

  // The trace counts tokens and cost only for the whole run.
  std::string usage() const {
    const json::Value stats = source_["info"]["model_stats"];
    const auto sent = stats["tokens_sent"].as_int();
    const auto received = stats["tokens_received"].as_int();
    if (!sent || !received || *sent < 0 || *received < 0) return {};
    json::Writer usage;
    usage.begin_object().member("input_tokens", *sent).member("output_tokens", *received);
    if (const auto cost = stats["instance_cost"].as_double(); cost && *cost >= 0) {
      usage.key("cost").begin_object().raw_member("amount", stats["instance_cost"].source());
      usage.member("currency", "USD").end_object();
    }
    return std::move(usage.end_object()).text();
  }

  std::string summary() const {
    const std::string status = text_of(source_["info"]["exit_status"]);
    return status.empty() ? "the trace has no exit status" : preview(status, 4096);
  }

  // Bodies ---------------------------------------------------------------------------------------

  Status add_message(const json::Value& message, std::size_t index, const std::string& step) {
    const std::string role = text_of(message["role"]);
    const bool known = role == "system" || role == "user" || role == "assistant" || role == "tool";
    json::Writer body;
    body.begin_object().member("message_id", fmt::format("m{}", index));
    body.member("role", known ? role : "user");
    RETURN_IF_ERROR(content(body, step, "text", text_of(message["content"])));
    std::vector<std::string> placed = {"content"};
    if (known) placed.emplace_back("role");
    RETURN_IF_ERROR(rest(body, step, message, placed));
    body.end_object();
    add(fmt::format("message-{}", index), "message.added", step, std::move(body).text());
    return success();
  }

  // Writes "content" as one part, which becomes a reference from 8 KiB up.
  Status content(json::Writer& body, const std::string& step, std::string_view type, const std::string& text) {
    body.key("content").begin_array();
    if (text.size() > limits::spill_part_bytes_max) {
      RETURN_IF_ERROR(reference(body, step, type, text));
    } else {
      body.begin_object().member("type", type).member("content", text).end_object();
    }
    body.end_array();
    return success();
  }

  Status reference(json::Writer& body, const std::string& step, std::string_view type, const std::string& text) {
    constexpr std::string_view mime_type = "text/plain";
    ASSIGN_OR_RETURN(const ImportedArtifact artifact, sink_.put(step, std::string(mime_type), text));
    body.begin_object().member("artifact_id", artifact.artifact_id).member("hash", artifact.hash);
    body.member("size_bytes", artifact.size_bytes).member("mime_type", mime_type);
    body.member("preview", preview(text, limits::preview_bytes_max));
    if (!type.empty()) body.member("type", type);
    body.end_object();
    return success();
  }

  // A member has another place if it is named and has the expected kind.
  enum class Placed { strings, any_kind };

  // Writes the members of `object` without another place as "x_source". Returns false if there are none.
  Result<bool> rest(json::Writer& body, const std::string& step, const json::Value& object,
                    const std::vector<std::string>& placed, Placed kind = Placed::strings) {
    constexpr std::size_t inline_bytes_max = 32 * 1024;  // total, below the limit of 60 KiB for a body
    bool any = false;
    for (const json::Value member : object) {
      const std::string key = member.key();
      const bool named = std::find(placed.begin(), placed.end(), key) != placed.end();
      if (named && (kind == Placed::any_kind || member.is(json::Kind::string))) continue;
      if (!any) body.key("x_source").begin_object();
      any = true;
      body.key(key);
      if (member.source().size() <= limits::spill_part_bytes_max && body.text().size() < inline_bytes_max) {
        body.raw(one_line_json(member));
      } else {
        RETURN_IF_ERROR(large_member(body, step, member));
      }
    }
    if (any) body.end_object();
    return any;
  }

  // The JSON text followed by its strings, so that each string is found byte for byte.
  Status large_member(json::Writer& body, const std::string& step, const json::Value& member) {
    body.begin_object().key("json");
    RETURN_IF_ERROR(reference(body, step, {}, std::string(member.source())));
    std::string strings;
    collect_strings(member, strings);
    if (!strings.empty()) {
      body.key("strings");
      RETURN_IF_ERROR(reference(body, step, {}, strings));
    }
    body.end_object();
    return success();
  }

  static void collect_strings(const json::Value& value, std::string& out) {
    if (const auto text = value.as_string()) out += *text + "\n";
    for (const json::Value item : value) {
      if (value.is(json::Kind::object)) out += item.key() + "\n";
      collect_strings(item, out);
    }
  }

  // The same as a separate event, unless there is nothing to keep.
  Status add_rest(const std::string& part, const std::string& step, const json::Value& object,
                  const std::vector<std::string>& placed, Placed kind = Placed::strings) {
    json::Writer body;
    body.begin_object().member("part", part);
    ASSIGN_OR_RETURN(const bool any, rest(body, step, object, placed, kind));
    body.end_object();
    if (any) add(part, "x.swe_agent.source", step, std::move(body).text());
    return success();
  }

  void add(std::string kind, std::string type, const std::string& step, std::string body) {
    batch_.push_back({std::move(kind), std::move(type), step, std::move(body)});
  }

  Status flush(std::size_t place) {
    RETURN_IF_ERROR(sink_.append(place, batch_));
    batch_.clear();
    return success();
  }

  const SourceFile& file_;
  const json::Value source_;
  ImportSink& sink_;
  const std::uint64_t replaced_;  // characters of the file
  std::vector<json::Value> turns_;
  std::vector<json::Value> history_;
  std::size_t next_message_ = 0;  // index in history_
  std::size_t next_turn_ = 0;     // the first turn whose answer has not yet appeared in the history
  std::vector<ImportedEvent> batch_;
  AgentPlace place_;
};

}  // namespace

Status import_swe_agent(const SourceFile& file, ImportSink& sink) {
  auto document = json::parse(file.text);
  ReadableText repaired;
  if (!document) {
    repaired = with_readable_characters(file.text);
    auto readable = json::parse(std::string_view(repaired.text));
    if (!readable) return document.error();
    document = std::move(readable);
  }
  const json::Value source = document->root();
  for (const char* list : {"trajectory", "history"}) {
    for (const json::Value item : source[list]) {
      if (!item.is(json::Kind::object)) {
        return Error(Errc::invalid_argument, fmt::format("\"{}\" holds something that is not an object", list));
      }
    }
  }
  if (source["info"] && !source["info"].is(json::Kind::object)) {
    return Error(Errc::invalid_argument, "\"info\" is not an object");
  }
  if (!source["trajectory"].is(json::Kind::array) || !source["history"].is(json::Kind::array)) {
    return Error(Errc::invalid_argument,
                 "this is not a SWE-agent trajectory: it has no lists "
                 "\"trajectory\" and \"history\"");
  }
  return Import(file, source, sink, repaired.replaced).run();
}

}  // namespace muniment::cli
