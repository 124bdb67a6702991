#include "client/replay/event_replay.hpp"

#include <fmt/format.h>

#include <set>

#include "events/catalogue.hpp"

namespace muniment::cli {
namespace {

std::string without_condition(const std::string& text) {
  const auto document = json::parse(text);
  if (!document) return text;
  json::Writer out;
  out.begin_object();
  for (const json::Value member : document->root()) {
    const std::string name = member.key();
    out.raw_member(name == "expected_state_hash" ? "x_expected_state_hash" : name, member.source());
  }
  return std::move(out.end_object()).text();
}

}  // namespace

void copy_known(json::Writer& out, const json::Value& body, std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) {
    if (const json::Value value = body[name]) out.raw_member(name, value.source());
  }
}

std::string when_of(const json::Value& event) {
  const json::Value occurred =
      event["occurred_at"].is(json::Kind::string) ? event["occurred_at"] : event["recorded_at"];
  return std::string(occurred.string_or(""));
}

std::string EventReplay::item(const json::Value& event, const json::Value& body, std::string* rewritten_body) const {
  std::string text = ids_.rewrite(body.source());
  if (body["expected_state_hash"]) text = without_condition(text);
  json::Writer item;
  item.begin_object().member("type", event["type"].string_or("")).member("event_id", event["event_id"].string_or(""));
  if (const auto step = event["step_id"].as_string()) item.member("step_id", *step);
  item.member("occurred_at", when_of(event)).raw_member("body", text).end_object();
  if (rewritten_body != nullptr) *rewritten_body = std::move(text);
  return std::move(item).text();
}

bool EventReplay::may_not_apply(const json::Value& event, const json::Value& body) {
  if (event["type"].string_or("") != "state.patched") return false;
  if (!body["patch"] && ids_.find(body["ref"]["artifact_id"].string_or("")).empty()) lost_patch();
  return patch_is_gone_;
}

Result<bool> EventReplay::append_patch(const std::string& item) {
  const auto answer =
      client_.call("event.append", fmt::format(R"({{"run_id":{},"events":[{}]}})", json::quote(run_id_), item));
  if (answer) return true;
  const Errc code = answer.error().code;
  if (code == Errc::invalid_argument || code == Errc::not_found || code == Errc::too_large) return false;
  return answer.error();
}

Result<bool> EventReplay::record(const json::Value& event, const json::Value& body) {
  const std::string type = event["type"].string_or("");
  const events::TypeInfo* const info = events::find_type(type);
  if (info == nullptr || info->replay != events::Replay::recorded) return false;
  if (type == "claim.recorded") return record_claim(event, body);
  if (type == "evidence.recorded") return record_evidence(event, body);
  if (type == "evidence.linked") return link_evidence(event, body);
  if (type == "claim.decided") return decide_claim(event, body);
  if (type == "command.started") return start_command(event, body);
  if (type == "command.ended") return end_command(event, body);
  if (type == "run.annotated") return annotate(event, body);
  return false;
}

// A manifest based on a manifest that was not imported lists only additions and would describe a different context.
Result<bool> EventReplay::put_manifest(const json::Value& event, const std::string& old_id,
                                       const std::string& manifest) {
  ASSIGN_OR_RETURN(const json::Document document, json::parse(manifest));
  const auto base = document.root()["base"].as_string();
  if (base && ids_.find(*base).empty()) return false;
  json::Writer params = params_for(event);
  params.raw_member("manifest", ids_.rewrite(manifest));
  RETURN_IF_ERROR(recorded("manifest.put", params, event, old_id, "manifest_id"));
  return true;
}

// A pointer to data that was not imported would halt the run.
Result<bool> EventReplay::record_claim(const json::Value& event, const json::Value& body) {
  json::Writer params = params_for(event);
  params.member("text", body["text"].string_or("")).key("pointers").begin_array();
  for (const json::Value pointer : body["pointers"]) {
    const std::string known = here(pointer.string_or(""));
    if (!known.empty()) params.string(known);
  }
  params.end_array();
  RETURN_IF_ERROR(recorded("claim.record", params, event, body["claim_id"].string_or(""), "claim_id"));
  return true;
}

// Writes the new ids of those that were imported, each once.
void EventReplay::write_mapped(json::Writer& params, std::string_view name, const json::Value& old_ids) const {
  std::set<std::string> known;
  for (const json::Value id : old_ids) {
    if (const std::string now = ids_.find(id.string_or("")); !now.empty()) known.insert(now);
  }
  if (!known.empty()) params.member(name, std::vector<std::string>(known.begin(), known.end()));
}

Result<bool> EventReplay::record_evidence(const json::Value& event, const json::Value& body) {
  json::Writer params = params_for(event);
  copy_known(params, body, {"type", "content", "validator_id"});
  if (const auto pointer = body["pointer"].as_string()) {
    const std::string known = here(*pointer);
    if (known.empty()) return false;
    params.member("pointer", known);
  }
  // A file or a piece of evidence that was not imported cannot be watched.
  write_mapped(params, "artifacts", body["artifacts"]);
  write_mapped(params, "depends_on", body["depends_on"]);
  RETURN_IF_ERROR(recorded("evidence.record", params, event, body["evidence_id"].string_or(""), "evidence_id"));
  return true;
}

// These methods find the run by the claim.
Result<bool> EventReplay::link_evidence(const json::Value& event, const json::Value& body) {
  const std::string claim = ids_.find(body["claim_id"].string_or(""));
  const std::string evidence = ids_.find(body["evidence_id"].string_or(""));
  if (claim.empty() || evidence.empty()) return false;
  json::Writer params;
  params.begin_object().member("claim_id", claim).member("evidence_id", evidence);
  copy_known(params, body, {"relation"});
  if (const auto step = event["step_id"].as_string()) params.member("step_id", *step);
  RETURN_IF_ERROR(recorded("evidence.link", params, event, {}, {}));
  return true;
}

Result<bool> EventReplay::decide_claim(const json::Value& event, const json::Value& body) {
  const std::string claim = ids_.find(body["claim_id"].string_or(""));
  if (claim.empty()) return false;
  json::Writer params;
  params.begin_object().member("claim_id", claim);
  copy_known(params, body, {"status", "reason"});
  if (const auto step = event["step_id"].as_string()) params.member("step_id", *step);
  RETURN_IF_ERROR(recorded("claim.decide", params, event, {}, {}));
  return true;
}

Result<bool> EventReplay::start_command(const json::Value& event, const json::Value& body) {
  json::Writer params = params_for(event);
  copy_known(params, body, {"argv", "cwd", "env", "tree_digest", "scrubbed"});
  RETURN_IF_ERROR(recorded("command.start", params, event, body["call_id"].string_or(""), "command_id"));
  return true;
}

Result<bool> EventReplay::end_command(const json::Value& event, const json::Value& body) {
  const std::string command = ids_.find(body["call_id"].string_or(""));
  if (command.empty()) return false;
  json::Writer params;
  params.begin_object().member("run_id", run_id_).member("command_id", command);
  copy_known(params, body, {"exit_code", "signal", "tree_digest", "interrupted", "scrubbed", "duration_us"});
  for (const char* stream : {"stdout", "stderr"}) {
    const std::string id = ids_.find(body[stream]["artifact_id"].string_or(""));
    if (id.empty()) continue;
    params.key(stream).begin_object().member("artifact_id", id);
    copy_known(params, body[stream], {"preview"});
    params.end_object();
  }
  RETURN_IF_ERROR(recorded("command.end", params, event, {}, {}));
  return true;
}

Result<bool> EventReplay::annotate(const json::Value& event, const json::Value& body) {
  if (!body["labels"] && !body["note"]) return false;
  json::Writer params;
  params.begin_object().member("run_id", run_id_);
  copy_known(params, body, {"labels", "note"});
  RETURN_IF_ERROR(recorded("run.annotate", params, event, {}, {}));
  return true;
}

json::Writer EventReplay::params_for(const json::Value& event) const {
  json::Writer params;
  params.begin_object().member("run_id", run_id_);
  if (const auto step = event["step_id"].as_string()) params.member("step_id", *step);
  return params;
}

Status EventReplay::recorded(std::string_view method, json::Writer& params, const json::Value& event,
                             const std::string& old_id, std::string_view id_name) {
  params.key("_meta").begin_object();
  params.member("idempotency_key", fmt::format("{}/{}", key_, event["run_seq"].source()));
  if (const std::string when = when_of(event); !when.empty()) params.member("occurred_at", when);
  params.end_object();
  params.end_object();
  ASSIGN_OR_RETURN(const Message answer, client_.call(method, params.text()));
  if (!old_id.empty()) ids_.map(old_id, answer.result()[id_name].string_or(""));
  return success();
}

// Returns the pointer translated to this run; empty if its target was not imported.
std::string EventReplay::here(const std::string& pointer) const {
  const bool may_lead_here = pointer.starts_with("artifact://") || pointer.starts_with("manifest://");
  std::string now = may_lead_here ? ids_.rewrite(pointer) : std::string();
  return now == pointer ? std::string() : now;
}

}  // namespace muniment::cli
