// audit.checkpoint, audit.prove: what an auditor takes away. audit.key: the key that signs.
// audit.verified: somebody verified the log, and that is an event too.
#include <fmt/format.h>

#include "audit/proof.hpp"
#include "audit/publisher.hpp"
#include "audit/submitter.hpp"
#include "gateway/access.hpp"
#include "gateway/methods/methods.hpp"
#include "gateway/services.hpp"

namespace muniment::gateway::methods {
namespace {

void write_keys(json::Writer& out, const audit::Publisher& publisher) {
  out.key("keys").begin_array();
  for (const VerifierKey& key : publisher.keys()) out.string(key.text());
  out.end_array();
}

void write_hashes(json::Writer& out, const std::vector<Hash>& hashes) {
  out.key("hashes").begin_array();
  for (const Hash& hash : hashes) out.string(to_hex(hash));
  out.end_array();
}

// Who keeps checkpoints outside, how far, and what the witnesses signed.
void write_keepers(json::Writer& out, const audit::Submitter& submitter) {
  out.key("kept_by").begin_array();
  for (const audit::KeeperStatus& keeper : submitter.status()) {
    out.begin_object().member("name", keeper.name).member("size", keeper.size);
    if (keeper.at.micros > 0) out.member("at", format_time(keeper.at));
    if (!keeper.problem.empty()) out.member("problem", keeper.problem);
    out.end_object();
  }
  out.end_array().key("cosigned").begin_array();
  for (const std::string& note : submitter.cosigned()) out.string(note);
  out.end_array();
}

// The event that is to be proven, which its asker may see.
Result<events::Event> event_to_prove(Call& call) {
  const json::Value params = call.params;
  std::optional<events::Event> event;
  if (const auto seq = params["seq"].as_int()) {
    ASSIGN_OR_RETURN(event, call.reader->event_at(*seq));
    if (event) RETURN_IF_ERROR(find_run(call, event->run_id));
  } else {
    ASSIGN_OR_RETURN(const auto run, find_run(call, params["run_id"].string_or("")));
    const std::int64_t run_no = run->view().run_no;
    if (const auto id = params["event_id"].as_string()) {
      const auto event_id = parse_uuid(*id);
      if (!event_id) return Error(Errc::invalid_argument, "event_id is not a UUID.");
      ASSIGN_OR_RETURN(event, call.reader->event_by_id(run_no, *event_id));
    } else {
      store::EventFilter last;
      last.run_no = run_no;
      last.newest_first = true;
      ASSIGN_OR_RETURN(auto events, call.reader->events(last, 1));
      if (!events.empty()) event = std::move(events.front());
    }
  }
  if (!event) return Error(Errc::not_found, "no such event.");
  return *std::move(event);
}

Result<Answer> prove_growth(Call& call, std::int64_t first) {
  const std::int64_t second = call.params["second"].as_int().value_or(call.services.publisher.newest().checkpoint.size);
  ASSIGN_OR_RETURN(const auto hashes, audit::prove_consistency(call.services.publisher, first, second));
  json::Writer out;
  out.begin_object().member("first", first).member("second", second);
  write_hashes(out, hashes);
  return Answer(Reply{std::move(out.end_object()).text(), {}});
}

PendingAppend log_event(Call& call, std::string_view type, std::string body) {
  const auto log_run = call.services.runs.find(log_run_id);
  PendingAppend append;
  append.request.actor = call.caller.actor;
  append.request.events.push_back({log_run, make_event(call, *log_run, type, std::move(body)), false});
  return append;
}

std::string key_json(const audit::Publisher& publisher) {
  json::Writer out;
  out.begin_object().member("origin", publisher.origin());
  write_keys(out, publisher);
  return std::move(out.end_object()).text();
}

// The event that announces a key makes it ours. A log whose private key was lost starts with a first one again.
Result<Answer> change_key(Call& call, bool first) {
  RETURN_IF_ERROR(check_admin(call, "change the key"));
  audit::Publisher& publisher = call.services.publisher;
  const std::vector<VerifierKey> keys = publisher.keys();
  if (first && publisher.can_sign()) return Error(Errc::conflict, "the log has a key: " + keys.back().text() + ". Change it with: muniment audit key rotate");
  if (!first && !publisher.can_sign()) return Error(Errc::conflict, "the log has no key yet. Make one with: muniment audit key init");
  ASSIGN_OR_RETURN(const VerifierKey made, publisher.prepare_key());
  json::Writer body;
  body.begin_object();
  if (!keys.empty()) body.member("old_key", keys.back().text());
  body.member("new_key", made.text());
  if (call.params["reason"]) body.member("reason", call.params["reason"].string_or(""));
  PendingAppend append = log_event(call, "key.rotated", std::move(body.end_object()).text());
  append.finish_on_worker = true;
  append.finish = [](Services& services, const std::vector<events::Receipt>&) -> Result<Reply> {
    RETURN_IF_ERROR(services.publisher.adopt_key());
    return Reply{key_json(services.publisher), {}};
  };
  append.refused = [](Services& services, Error error) -> Result<Reply> {
    services.publisher.drop_key();
    return error;
  };
  return Answer(std::move(append));
}

}  // namespace

Result<Answer> audit_checkpoint(Call& call) {
  const audit::Publisher& publisher = call.services.publisher;
  const audit::Published newest = publisher.newest();
  json::Writer out;
  out.begin_object()
      .member("origin", newest.checkpoint.origin)
      .member("size", newest.checkpoint.size)
      .member("root", to_hex(newest.checkpoint.root))
      .member("signed", !newest.note.empty());
  if (!newest.note.empty()) out.member("note", newest.note);
  write_keys(out, publisher);
  if (const std::string problem = publisher.problem(); !problem.empty()) out.member("problem", problem);
  write_keepers(out, call.services.submitter);
  return Reply{std::move(out.end_object()).text(), {}};
}

Result<Answer> audit_prove(Call& call) {
  if (!call.reader) return NeedsWorker{};
  const bool one = call.params["seq"] || call.params["run_id"];
  if (const auto first = call.params["first"].as_int(); first && !one) return prove_growth(call, *first);
  if (!one || call.params["first"] || call.params["second"] || (call.params["seq"] && call.params["run_id"])) {
    return Error(Errc::invalid_argument, "say what to prove: seq, or run_id (with event_id for another than its last event), or first and second.");
  }
  ASSIGN_OR_RETURN(const events::Event event, event_to_prove(call));
  ASSIGN_OR_RETURN(const audit::InclusionProof proof, audit::prove_inclusion(call.services.publisher, *call.reader, event, call.deadline));
  json::Writer out;
  out.begin_object()
      .member("seq", proof.seq)
      .member("run_id", event.run_id)
      .member("run_seq", event.run_seq)
      .member("size", proof.checkpoint.size)
      .member("root", to_hex(proof.checkpoint.root))
      .member("leaf_hash", to_hex(proof.leaf));
  write_hashes(out, proof.hashes);
  if (!proof.file.empty()) out.member("proof", proof.file);
  return Answer(Reply{std::move(out.end_object()).text(), {}});
}

Result<Answer> audit_key(Call& call) {
  if (!call.reader) return NeedsWorker{};
  const std::string action = std::string(call.params["action"].string_or("show"));
  if (action == "show") return Answer(Reply{key_json(call.services.publisher), {}});
  return change_key(call, action == "init");
}

Result<Answer> audit_verified(Call& call) {
  json::Writer body;
  body.begin_object().member("verdict", call.params["verdict"].string_or(""));
  if (const auto upto = call.params["upto"].as_int()) body.member("upto", *upto);
  if (call.params["tool"]) body.member("tool", call.params["tool"].string_or(""));
  body.member("by", call.caller.actor);
  PendingAppend append = log_event(call, "log.verified", std::move(body.end_object()).text());
  append.finish = [](Services&, const std::vector<events::Receipt>& receipts) -> Result<Reply> {
    return Reply{json::Writer().begin_object().member("seq", receipts.front().seq).end_object().text(), {}};
  };
  return Answer(std::move(append));
}

}  // namespace muniment::gateway::methods
