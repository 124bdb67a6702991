// Implements evidence.get, evidence.verify, evidence.link and claim.decide. Evidence of a pointer has one id in all
// runs and one row per run that uses it; a caller sees only the rows that it may read.
#include <algorithm>

#include <fmt/format.h>

#include "base/limits.hpp"
#include "evidence/pointer_follower.hpp"
#include "gateway/access.hpp"
#include "gateway/append/first_receipts.hpp"
#include "gateway/methods/knowledge/ledger_rows.hpp"
#include "gateway/methods/methods.hpp"
#include "gateway/read/pointing.hpp"
#include "gateway/services.hpp"

namespace muniment::gateway::methods {
namespace {

Result<Uuid> id_of(const json::Value& params, std::string_view name) {
  const auto id = parse_uuid(params[name].string_or(""));
  if (!id) return Error(Errc::invalid_argument, std::string(name) + ": expected a UUID.");
  return *id;
}

// Evidence without a run is visible only to its recorder.
Result<bool> sees(Call& call, const store::EvidenceRow& row, std::int16_t log_no) {
  if (row.run_id == log_run_id) return call.caller.admin || row.actor == call.caller.actor;
  return sees_run(call, row.run_id, log_no);
}

struct Found {
  store::ClaimRow claim;
  std::shared_ptr<store::Run> run;
};

// Returns the claim if the caller may see its run, which must be open.
Result<Found> find_claim(Call& call) {
  ASSIGN_OR_RETURN(const Uuid id, id_of(call.params, "claim_id"));
  const Error none(Errc::not_found, fmt::format("no claim {}. List them: claim.list", id.text()));
  ASSIGN_OR_RETURN(const auto claim,
                   find_in_all<store::ClaimRow>(call, [&](store::Reader& reader) { return reader.claim(id); }));
  if (!claim.row) return none;
  ASSIGN_OR_RETURN(const bool visible, sees_run(call, claim.row->run_id, claim.reader->log_no()));
  if (!visible) return none;  // the same error as for a claim that does not exist
  if (claim.reader != call.reader) {
    ASSIGN_OR_RETURN(const auto closed, store::find_run(*earlier_log(call.services, claim.reader->log_no()),
                                                        *call.reader, claim.row->run_id));
    return closed ? store::closed_error(*closed) : none;
  }
  ASSIGN_OR_RETURN(const auto run, find_run(call, claim.row->run_id));
  return Found{*claim.row, run};
}

std::string receipt_result(const std::string& run_id, std::int64_t seq, std::int64_t run_seq, bool duplicate) {
  json::Writer out;
  out.begin_object()
      .member("run_id", run_id)
      .member("seq", seq)
      .member("run_seq", run_seq)
      .member("duplicate", duplicate)
      .end_object();
  return std::move(out).text();
}

// Returns the reply of the request that made the link.
Result<Answer> link_again(Call& call, const std::string& run_id, const store::EvidenceLinkRow& link) {
  store::EventFilter filter;
  filter.from_seq = link.seq;
  filter.to_seq = link.seq;
  filter.archived_bodies = false;
  ASSIGN_OR_RETURN(const auto events, call.reader->events(filter, 1));
  if (events.empty())
    return Error(Errc::corrupt,
                 fmt::format("the event {} that made the link is not in the log: run muniment-verify", link.seq));
  return Answer(Reply{receipt_result(run_id, link.seq, events.front().run_seq, true), {}});
}

// Checks that the key does not belong to an erased event, whose link can no longer be compared. Errors: conflict.
Status check_key_not_erased(Call& call, const store::Run& run, std::string_view method) {
  if (call.idempotency_key.empty()) return success();
  ASSIGN_OR_RETURN(
      const auto known,
      call.reader->event_by_id(run.view().run_no, idempotent_id_in(run, call.caller, method, call.idempotency_key)));
  return known && !known->body ? Status(used_key(*known)) : success();
}

// Appends one event about a claim with its row; a repeated idempotency key gets the first reply.
Result<Answer> append_about(Call& call, const std::shared_ptr<store::Run>& run, std::string_view method,
                            std::string_view type, std::string body, store::Row row,
                            const evidence::Outcome& outcome = {}) {
  events::NewEvent event = make_event(call, *run, type, std::move(body), call.params["step_id"].string_or(""));
  PendingAppend append;
  append.request.actor = call.caller.actor;
  if (!call.idempotency_key.empty()) {
    event.event_id = idempotent_id_in(*run, call.caller, method, call.idempotency_key);
    event.event_id_is_ours = false;
    ASSIGN_OR_RETURN(const auto first, first_receipts(call, *run, {&event, 1}));
    if (first) return Answer(Reply{receipt_result(run->run_id, first->front().seq, first->front().run_seq, true), {}});
    append.request.ids_checked = true;
  }
  RETURN_IF_ERROR(check_open(*run));
  append.request.events.push_back({run, std::move(event)});
  append.request.rows.push_back({0, std::move(row)});
  log_outcome(outcome, append.request);
  append.finish = [run_id = run->run_id](Services&, const std::vector<events::Receipt>& receipts) -> Result<Reply> {
    return Reply{receipt_result(run_id, receipts.back().seq, receipts.back().run_seq, false), {}};
  };
  return Answer(std::move(append));
}

}  // namespace

Result<std::vector<EvidenceUse>> evidence_uses(Call& call, const Uuid& id, const std::optional<std::string>& run_id) {
  std::vector<store::Reader*> readers = readers_of_all(call);
  if (run_id && *run_id != log_run_id) {
    ASSIGN_OR_RETURN(const ReadRun found, find_run_to_read(call, *run_id));
    readers = {found.reader};
  }
  const auto owner = call.caller.admin ? std::nullopt : std::optional(call.caller.actor);
  std::reverse(readers.begin(), readers.end());
  std::vector<EvidenceUse> rows;
  for (store::Reader* const reader : readers) {
    ASSIGN_OR_RETURN(const auto found, reader->evidence_uses(id, run_id, owner, limits::page_items_max));
    for (const store::EvidenceRow& row : found) {
      ASSIGN_OR_RETURN(const bool visible, sees(call, row, reader->log_no()));
      if (visible) rows.push_back({row, reader});
    }
  }
  if (rows.empty())
    return Error(Errc::not_found, fmt::format("no evidence {}{}. List it: evidence.list", id.text(),
                                              run_id ? " in run " + *run_id : ""));
  std::stable_partition(rows.begin(), rows.end(), [](const EvidenceUse& use) {
    return !is_erased(use.row);
  });  // one use may be erased while a different one still has the content
  return rows;
}

Result<evidence::Outcome> look_at_evidence(Call& call, const EvidenceUse& use, const events::Event& event) {
  std::vector<std::string> pointers = evidence::pointers_of_evidence(event);
  // An event that was changed cannot hide the pointer of the row.
  if (use.row.pointer && (pointers.empty() || pointers.front() != *use.row.pointer))
    pointers.insert(pointers.begin(), *use.row.pointer);
  if (pointers.empty()) return evidence::Outcome{};
  // Evidence without a run, or in a closed log, stops no run.
  const bool stops_none = use.row.run_id == log_run_id || use.reader != call.reader;
  const Result<std::shared_ptr<store::Run>> run =
      stops_none ? call.services.runs.find(log_run_id) : find_run(call, use.row.run_id);
  if (!run) return run.error();
  return look_at_pointers(
      call, pointers,
      {.run = *run, .critical = true, .with_text = use.row.pointer.has_value(), .depth = evidence::Depth::whole});
}

const evidence::Resolution* own_pointer(const store::EvidenceRow& row, const evidence::Outcome& outcome) {
  return row.pointer && !outcome.items.empty() ? &outcome.items.front().resolution : nullptr;
}

Result<EvidenceState> compare_evidence(Call& call, const store::EvidenceRow& row, const evidence::Outcome& outcome) {
  if (is_erased(row)) return EvidenceState{false, "NOT_FOUND", "the evidence was erased", {}};
  const evidence::Resolution* const found = own_pointer(row, outcome);
  for (const auto& [resolution, critical] : outcome.items) {
    if (&resolution == found || (!resolution.damaged() && !resolution.erased)) continue;
    return EvidenceState{false,
                         std::string(name_of(resolution.reason)),
                         fmt::format("{}, on which it rests: {}", resolution.pointer, resolution.detail),
                         {}};
  }
  if (found == nullptr && !row.content)
    return EvidenceState{false, "NOT_FOUND", fmt::format("the ledger has no content of the event {}", row.seq), {}};
  if (found == nullptr) {
    ASSIGN_OR_RETURN(const json::Document content, json::parse(*row.content));
    const Hash now = hash_of_content(content.root());
    if (now == row.hash) return EvidenceState{true, {}, {}, {}};
    return EvidenceState{false, "HASH_MISMATCH", "the content differs from the recorded hash", to_hex(now)};
  }
  if (found->damaged() || found->erased)
    return EvidenceState{false, std::string(name_of(found->reason)), found->detail, found->actual};
  auto now = hash_of_evidence(call, *found);
  if (!now && is_transient(now.error().code)) return std::move(now).error();
  if (!now)
    return EvidenceState{
        false, found->ok() ? "NOT_FOUND" : std::string(name_of(found->reason)), now.error().message, {}};
  if (*now == row.hash)
    return EvidenceState{true, {}, {}, {}};  // checks the recorded revision, even if a newer one exists
  return EvidenceState{false, "HASH_MISMATCH", "the bytes differ from those recorded", to_hex(*now)};
}

Result<Answer> evidence_get(Call& call) {
  if (!call.reader) return Answer(NeedsWorker{});
  ASSIGN_OR_RETURN(const Uuid id, id_of(call.params, "evidence_id"));
  ASSIGN_OR_RETURN(const auto uses, evidence_uses(call, id, call.params["run_id"].as_string()));
  ASSIGN_OR_RETURN(const auto terms, uses.front().reader->evidence_terms({uses.front().row}));
  for (std::size_t i = 1; i < uses.size(); ++i) RETURN_IF_ERROR(uses[i].reader->confirm(std::vector{uses[i].row}));
  json::Writer out;
  write_evidence(out.begin_object().key("evidence"), uses.front().row, terms);
  note_log(call, *uses.front().reader);
  out.key("uses").begin_array();
  for (const auto& [use, reader] : uses) {
    out.begin_object()
        .member("run_id", use.run_id)
        .member("type", use.type)
        .member("actor", use.actor)
        .member("seq", use.seq);
    if (reader != call.reader) out.member("log_no", int{reader->log_no()});
    out.end_object();
  }
  out.end_array().end_object();
  return Answer(Reply{std::move(out).text(), {}});
}

Result<Answer> evidence_verify(Call& call) {
  if (!call.reader) return Answer(NeedsWorker{});
  ASSIGN_OR_RETURN(const Uuid id, id_of(call.params, "evidence_id"));
  ASSIGN_OR_RETURN(const auto uses, evidence_uses(call, id, call.params["run_id"].as_string()));
  const auto& [row, reader] = uses.front();
  note_log(call, *reader);
  ASSIGN_OR_RETURN(const auto event, reader->event_at(row.seq));
  ASSIGN_OR_RETURN(const evidence::Outcome outcome,
                   look_at_evidence(call, uses.front(), event.value_or(events::Event{})));
  const evidence::Resolution* const found = own_pointer(row, outcome);
  ASSIGN_OR_RETURN(EvidenceState verified, compare_evidence(call, row, outcome));
  if (const Status recorded = reader->confirm({row}); !recorded && verified.ok) {
    if (is_transient(recorded.error().code)) return recorded.error();
    verified = EvidenceState{false, "HASH_MISMATCH", recorded.error().message, {}};
  }
  json::Writer out;
  out.begin_object().member("ok", verified.ok);
  if (!verified.ok) out.member("reason", verified.reason).member("detail", verified.detail);
  out.member("evidence_id", id.text()).member("run_id", row.run_id);
  if (!is_erased(row)) out.member("expected_hash", to_hex(row.hash));
  if (verified.actual) out.member("actual_hash", *verified.actual);
  if (found != nullptr && found->current) out.member("current", *found->current);
  write_halted(out, outcome);
  std::string result = std::move(out.end_object()).text();
  if (outcome.events.empty()) return Answer(Reply{std::move(result), {}});
  return Answer(append_outcome(outcome, [result] { return Result<Reply>(Reply{result, {}}); }));
}

Result<Answer> evidence_link(Call& call) {
  if (!call.reader) return Answer(NeedsWorker{});
  RETURN_IF_ERROR(begin_referring(call));
  ASSIGN_OR_RETURN(const Found found, find_claim(call));
  ASSIGN_OR_RETURN(const Uuid id, id_of(call.params, "evidence_id"));
  const std::string& run_id = found.run->run_id;
  RETURN_IF_ERROR(check_key_not_erased(call, *found.run, "evidence.link"));
  ASSIGN_OR_RETURN(const auto uses, call.reader->evidence_uses(id, run_id, std::nullopt, 1));
  if (uses.empty())
    return Error(Errc::not_found,
                 fmt::format("no evidence {} in run {}. Record it there first: evidence.record", id.text(), run_id));
  RETURN_IF_ERROR(call.reader->confirm(uses));
  const std::string relation = call.params["relation"].string_or("");
  ASSIGN_OR_RETURN(const auto links, call.reader->evidence_links({found.claim.claim_id}));
  for (const store::EvidenceLinkRow& link : links) {
    if (link.evidence_id == id && link.relation == relation) return link_again(call, run_id, link);
  }
  if (is_erased(uses.front()))
    return Error(Errc::not_found, fmt::format("evidence {} of run {} was erased. Omit it.", id.text(), run_id));
  RETURN_IF_ERROR(check_open(*found.run));
  evidence::Outcome outcome;
  ASSIGN_OR_RETURN(const auto recorded, call.reader->confirmed(call.reader->event_at(uses.front().seq)));
  const auto pointers = evidence::pointers_of_evidence(recorded.value_or(events::Event{}));
  if (!pointers.empty()) {
    ASSIGN_OR_RETURN(outcome, resolve_needed(call, pointers, found.run));
    if (outcome.damage() != nullptr) return stop(outcome, found.run);
  }
  json::Writer body;
  body.begin_object()
      .member("claim_id", found.claim.claim_id.text())
      .member("evidence_id", id.text())
      .member("relation", relation)
      .end_object();
  return append_about(call, found.run, "evidence.link", "evidence.linked", std::move(body).text(),
                      store::EvidenceLinkRow{found.claim.claim_id, run_id, id, relation}, outcome);
}

Result<Answer> claim_decide(Call& call) {
  if (!call.reader) return Answer(NeedsWorker{});
  RETURN_IF_ERROR(begin_referring(call));
  ASSIGN_OR_RETURN(const Found found, find_claim(call));
  const std::string status = call.params["status"].string_or("");
  if (status == "open")
    return Error(
        Errc::invalid_argument,
        "status: a decision cannot be \"open\". Send the decision: supported, refuted, withdrawn or a word of your own.");
  json::Writer body;
  body.begin_object().member("claim_id", found.claim.claim_id.text()).member("status", status);
  if (const auto reason = call.params["reason"].as_string()) body.member("reason", *reason);
  body.end_object();
  return append_about(call, found.run, "claim.decide", "claim.decided", std::move(body).text(),
                      store::ClaimDecisionRow{found.claim.claim_id, status});
}

}  // namespace muniment::gateway::methods
