// audit.checkpoint and audit.prove return what an auditor keeps. audit.key changes the signing key. audit.verified
// records that a client verified the log.
#include <fmt/format.h>

#include "audit/closed_tree.hpp"
#include "audit/proof.hpp"
#include "audit/publisher.hpp"
#include "audit/witness/submitter.hpp"
#include "gateway/access.hpp"
#include "gateway/append/first_receipts.hpp"
#include "gateway/methods/methods.hpp"
#include "gateway/services.hpp"

namespace muniment::gateway::methods {
namespace {

void write_keys(json::Writer& out, const std::vector<VerifierKey>& keys) {
  out.key("keys").begin_array();
  for (const VerifierKey& key : keys) out.string(key.text());
  out.end_array();
}

void write_hashes(json::Writer& out, const std::vector<Hash>& hashes) {
  out.key("hashes").begin_array();
  for (const Hash& hash : hashes) out.string(to_hex(hash));
  out.end_array();
}

// Writes the witnesses, folders and buckets, the size that each has reached, and the witnesses' signatures.
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

// The event to prove, and the reader of its log.
struct ToProve {
  events::Event event;
  store::Reader* reader = nullptr;
};

// Errors: not_found, also if the caller may not see the event.
Result<ToProve> event_to_prove(Call& call) {
  const json::Value params = call.params;
  std::optional<events::Event> event;
  ASSIGN_OR_RETURN(store::Reader * reader, reader_named(call));
  if (const auto seq = params["seq"].as_int()) {
    ASSIGN_OR_RETURN(event, find_event(call, *seq));
  } else {
    ASSIGN_OR_RETURN(const ReadRun found, find_run_to_read(call, params["run_id"].string_or("")));
    const std::int64_t run_no = found.run->view().run_no;
    reader = found.reader;
    if (const auto id = params["event_id"].as_string()) {
      const auto event_id = parse_uuid(*id);
      if (!event_id) return Error(Errc::invalid_argument, "event_id is not a UUID.");
      ASSIGN_OR_RETURN(event, reader->event_by_id(run_no, *event_id));
    } else {
      store::EventFilter last;
      last.run_no = run_no;
      last.newest_first = true;
      ASSIGN_OR_RETURN(auto events, reader->events(last, 1));
      if (!events.empty()) event = std::move(events.front());
    }
  }
  if (!event) return Error(Errc::not_found, "no such event.");
  return ToProve{*std::move(event), reader};
}

// For a closed log, the proof covers the whole tree, whose root log.restored of the next log names.
Result<Answer> prove_growth(Call& call, std::int64_t first) {
  ASSIGN_OR_RETURN(store::Reader* const reader, reader_named(call));
  const audit::Publisher& publisher = call.services.publisher;
  std::optional<audit::TreeToProve> tree;
  if (reader == call.reader) {
    tree.emplace(audit::TreeToProve{publisher.log_id(), publisher.tiles(), publisher.newest()});
  } else {
    ASSIGN_OR_RETURN(const audit::ClosedTree::Proven* const closed, closed_tree(call, reader->log_no()));
    tree.emplace(closed->whole);
  }
  const std::int64_t second = call.params["second"].as_int().value_or(tree->published.checkpoint.size);
  ASSIGN_OR_RETURN(const auto hashes, audit::prove_consistency(*tree, first, second));
  json::Writer out;
  out.begin_object().member("first", first).member("second", second);
  write_hashes(out, hashes);
  return Answer(Reply{std::move(out.end_object()).text(), {}});
}

// An event of a closed log that no signed checkpoint covers is proven against the root in log.restored of the next log,
// which is signed there.
Result<audit::InclusionProof> proof_of(Call& call, const ToProve& found) {
  if (found.reader == call.reader)
    return audit::prove_inclusion(call.services.publisher, *call.reader, found.event, call.deadline);
  ASSIGN_OR_RETURN(const audit::ClosedTree::Proven* const closed, closed_tree(call, found.reader->log_no()));
  const bool is_signed = found.event.seq < closed->signed_tree.published.checkpoint.size;
  if (!is_signed && found.event.seq >= closed->whole.published.checkpoint.size) {
    return Error(Errc::corrupt, fmt::format("event {} came to log {} after it was closed. Run muniment-verify --log {}",
                                            found.event.seq, found.reader->log_no(), found.reader->log_no()));
  }
  return audit::prove_inclusion(is_signed ? closed->signed_tree : closed->whole, *found.reader, found.event);
}

// Returns the signed checkpoint of a closed log or, without one, its final size and root.
Result<Answer> closed_checkpoint(Call& call, std::int16_t log_no) {
  ASSIGN_OR_RETURN(const audit::ClosedTree::Proven* const closed, closed_tree(call, log_no));
  const bool is_signed = !closed->signed_tree.published.note.empty();
  const audit::Published& shown = (is_signed ? closed->signed_tree : closed->whole).published;
  json::Writer out;
  out.begin_object()
      .member("origin", shown.checkpoint.origin)
      .member("size", shown.checkpoint.size)
      .member("root", to_hex(shown.checkpoint.root));
  out.member("signed", is_signed);
  if (is_signed) out.member("note", shown.note);
  write_keys(out, closed->keys);
  out.key("kept_by").begin_array().end_array().key("cosigned").begin_array().end_array();
  return Answer(Reply{std::move(out.end_object()).text(), {}});
}

PendingAppend log_event(Call& call, std::string_view type, std::string body) {
  const auto log_run = call.services.runs.find(log_run_id);
  PendingAppend append;
  append.request.actor = call.caller.actor;
  append.request.events.push_back({log_run, make_event(call, *log_run, type, std::move(body)), false});
  return append;
}

Uuid verified_id(const Call& call) { return idempotent_id(call.caller, "audit.verified", call.idempotency_key); }

// Returns the first reply to a repeated request; nullopt if it was not recorded. Errors: conflict if the request
// differs from the recorded one.
Result<std::optional<Reply>> verified_before(Call& call, std::string_view body) {
  ASSIGN_OR_RETURN(const auto found, find_in_log_runs(call, verified_id(call)));
  if (!found.row) return std::optional<Reply>();
  if (found.row->body != body) return used_key(*found.row);
  note_log(call, *found.reader);
  return std::optional(Reply{
      json::Writer().begin_object().member("seq", found.row->seq).member("duplicate", true).end_object().text(), {}});
}

std::string key_json(const audit::Publisher& publisher) {
  json::Writer out;
  out.begin_object().member("origin", publisher.origin());
  write_keys(out, publisher.keys());
  return std::move(out.end_object()).text();
}

// The event that announces a key activates it. A log whose private key was lost gets a first key again.
Result<Answer> change_key(Call& call, bool first) {
  RETURN_IF_ERROR(check_admin(call, "change the key"));
  audit::Publisher& publisher = call.services.publisher;
  const std::vector<VerifierKey> keys = publisher.keys();
  if (first && publisher.can_sign())
    return Error(Errc::conflict,
                 "the log has a key: " + keys.back().text() + ". Change it with: muniment audit key rotate");
  if (!first && !publisher.can_sign() && keys.empty())
    return Error(Errc::conflict, "the log has no signing key. Create one with: muniment audit key init");
  if (!first && !publisher.can_sign()) {
    return Error(
        Errc::conflict,
        "the private key is missing, and a new key requires its signature. Restore keys/log.key or, if it is lost, see: docs/runbook.md#checkpoints");
  }
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
  if (call.params["log_no"]) {
    if (!call.reader) return NeedsWorker{};
    ASSIGN_OR_RETURN(const store::Reader* const reader, reader_named(call));
    if (reader != call.reader) return closed_checkpoint(call, reader->log_no());
  }
  const audit::Publisher& publisher = call.services.publisher;
  const audit::Published newest = publisher.newest();
  json::Writer out;
  out.begin_object()
      .member("origin", newest.checkpoint.origin)
      .member("size", newest.checkpoint.size)
      .member("root", to_hex(newest.checkpoint.root))
      .member("signed", !newest.note.empty());
  if (!newest.note.empty()) out.member("note", newest.note);
  write_keys(out, publisher.keys());
  if (const std::string problem = publisher.problem(); !problem.empty()) out.member("problem", problem);
  write_keepers(out, call.services.submitter);
  return Reply{std::move(out.end_object()).text(), {}};
}

Result<Answer> audit_prove(Call& call) {
  if (!call.reader) return NeedsWorker{};
  const bool one = call.params["seq"] || call.params["run_id"];
  if (const auto first = call.params["first"].as_int(); first && !one) return prove_growth(call, *first);
  if (!one || call.params["first"] || call.params["second"] || (call.params["seq"] && call.params["run_id"])) {
    return Error(
        Errc::invalid_argument,
        "nothing to prove: send seq, or run_id (with event_id unless its last event is meant), or first and second.");
  }
  ASSIGN_OR_RETURN(const ToProve found, event_to_prove(call));
  const events::Event& event = found.event;
  ASSIGN_OR_RETURN(const audit::InclusionProof proof, proof_of(call, found));
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
  const bool repeatable = !call.idempotency_key.empty();
  if (repeatable && !call.reader) return NeedsWorker{};
  json::Writer body;
  body.begin_object().member("verdict", call.params["verdict"].string_or(""));
  if (const auto upto = call.params["upto"].as_int()) body.member("upto", *upto);
  if (call.params["tool"]) body.member("tool", call.params["tool"].string_or(""));
  body.member("by", call.caller.actor).end_object();
  if (repeatable) {
    ASSIGN_OR_RETURN(auto first, verified_before(call, body.text()));
    if (first) return Answer(*std::move(first));
  }
  PendingAppend append = log_event(call, "log.verified", std::move(body).text());
  if (repeatable) {  // a second, concurrent request is returned for retry and finds the first
    events::NewEvent& event = append.request.events.back().event;
    event.event_id = verified_id(call);
    event.event_id_is_ours = false;
    append.request.ids_checked = call.check_ids;
  }
  append.finish = [](Services&, const std::vector<events::Receipt>& receipts) -> Result<Reply> {
    return Reply{json::Writer().begin_object().member("seq", receipts.front().seq).end_object().text(), {}};
  };
  return Answer(std::move(append));
}

}  // namespace muniment::gateway::methods
