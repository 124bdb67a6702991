// The ledger: claim.record, claim.list, evidence.record, evidence.list. What a claim or a piece of
// evidence points at is critical: it is resolved before it is recorded, and a pointer that does not
// resolve stops the run.
#include <algorithm>

#include <fmt/format.h>

#include "base/limits.hpp"
#include "gateway/access.hpp"
#include "gateway/first_receipts.hpp"
#include "gateway/methods/methods.hpp"
#include "gateway/pointing.hpp"
#include "gateway/services.hpp"

namespace muniment::gateway::methods {
namespace {

constexpr std::int64_t hashed_span_bytes_max = 16 << 20;

Status check_body_size(const std::string& body) {
  if (body.size() <= limits::event_body_bytes_max) return success();
  Error error(Errc::too_large, fmt::format("the event is {} bytes, limit {}. Put the text into an artifact and point at it.",
                                           body.size(), limits::event_body_bytes_max));
  error.limit = static_cast<std::int64_t>(limits::event_body_bytes_max);
  return error;
}

// The id of what is recorded, and of its event: the same for the same idempotency key.
struct RecordIds {
  Uuid id;
  std::optional<Uuid> event_id;
};

RecordIds ids_for(Call& call, std::string_view method) {
  if (call.idempotency_key.empty()) return {make_uuid_v7(call.services.clock.now()), std::nullopt};
  return {idempotent_id(call.caller, method, call.idempotency_key, 0), idempotent_id(call.caller, method, call.idempotency_key, 1)};
}

std::string recorded_json(std::string_view id_name, const Uuid& id, const Hash* hash, std::int64_t seq, bool duplicate) {
  json::Writer out;
  out.begin_object().member(id_name, id.text());
  if (hash != nullptr) out.member("hash", to_hex(*hash));
  out.member("seq", seq).member("duplicate", duplicate).end_object();
  return std::move(out).text();
}

// One ledger event with its row, behind what resolving its pointers left to log.
struct Entry {
  std::shared_ptr<store::Run> run;
  events::NewEvent event;
  store::Row row;
  std::string_view id_name;
  Uuid id;
  std::optional<Hash> hash;
};

Result<Answer> record(Call& call, Entry entry, const RecordIds& ids, const evidence::Outcome& outcome) {
  const Hash* hash = entry.hash ? &*entry.hash : nullptr;
  PendingAppend append;
  append.request.actor = call.caller.actor;
  if (ids.event_id) {
    entry.event.event_id = *ids.event_id;
    entry.event.event_id_is_ours = false;
    if (call.check_ids) {
      ASSIGN_OR_RETURN(const auto first, first_receipts(call, *entry.run, std::span(&entry.event, 1)));
      if (first) return Answer(Reply{recorded_json(entry.id_name, entry.id, hash, first->front().seq, true), {}});
      append.request.ids_checked = true;
    }
  }
  append.request.events.push_back({entry.run, std::move(entry.event)});
  append.request.rows.push_back({0, std::move(entry.row)});
  log_outcome(outcome, append.request);
  append.finish = [name = std::string(entry.id_name), id = entry.id, sum = entry.hash](
                      Services&, const std::vector<events::Receipt>& receipts) -> Result<Reply> {
    return Reply{recorded_json(name, id, sum ? &*sum : nullptr, receipts.back().seq, false), {}};
  };
  return Answer(std::move(append));
}

// The pointers did not resolve: the run stops, and the caller is told why.
Result<Answer> stop(const evidence::Outcome& outcome, const std::string& run_id) {
  const Error error = damage_error(*outcome.damage(), run_id);
  if (outcome.events.empty()) return error;  // the run is halted already
  return Answer(append_outcome(outcome, [error]() -> Result<Reply> { return error; }));
}

Status check_parsed(const evidence::Outcome& outcome) {
  for (const auto& item : outcome.items) {
    if (!item.resolution.parsed) return Error(Errc::invalid_argument, "PARSE_ERROR: " + item.resolution.detail);
  }
  return success();
}

// SHA-256 of what the pointer names, whole or in part.
Result<Hash> hash_of(Call& call, const evidence::Resolution& found) {
  if (found.parsed->kind == evidence::PointerKind::run || found.parsed->kind == evidence::PointerKind::log) {
    return Error(Errc::invalid_argument, "evidence points at bytes: an artifact, a manifest, a snapshot or an event, not at " + found.pointer);
  }
  if (found.parsed->span) {
    const auto [start, end] = *found.parsed->span;
    if (end - start > hashed_span_bytes_max) {
      return Error(Errc::too_large, fmt::format("the span is {} bytes, limit {}. Point at a smaller one, or at the whole artifact.", end - start, hashed_span_bytes_max));
    }
    ASSIGN_OR_RETURN(const std::string bytes, call.services.files.read(found.path, start, end - start));
    return sha256(bytes);
  }
  if (found.parsed->kind == evidence::PointerKind::evidence && found.text) return sha256(*found.text);
  const auto hash = found.expected ? hash_from_hex(*found.expected) : std::nullopt;
  if (!hash) return Error(Errc::invalid_argument, found.pointer + " names nothing that has a hash.");
  return *hash;
}

// Where evidence goes: the run that is named, the pointer's, or the log's own.
Result<std::shared_ptr<store::Run>> run_of_evidence(Call& call, const std::optional<std::string>& pointer) {
  std::string run_id = call.params["run_id"].string_or("");
  if (run_id.empty() && pointer) {
    const auto parsed = evidence::parse_pointer(*pointer);
    if (parsed) run_id = parsed->run_id;
  }
  if (run_id.empty()) return call.services.runs.find(log_run_id);
  ASSIGN_OR_RETURN(auto run, find_run(call, run_id));
  RETURN_IF_ERROR(check_open(*run));
  return run;
}

struct LedgerPage {
  std::optional<Uuid> after;
  std::size_t limit = limits::page_items_default;
};

Result<LedgerPage> page_of(const json::Value& params) {
  LedgerPage page;
  if (const auto cursor = params["cursor"].as_string()) {
    page.after = parse_uuid(*cursor);
    if (!page.after) return Error(Errc::invalid_argument, "cursor: not one that this method answered.");
  }
  page.limit = static_cast<std::size_t>(std::clamp<std::int64_t>(params["limit"].as_int().value_or(limits::page_items_default), 1, limits::page_items_max));
  return page;
}

// {"<name>": [rows…], "cursor"?}: as many rows as fit a page; the cursor is the id of the last.
template <typename Rows, typename Write, typename IdOf>
std::string page_json(std::string_view name, const Rows& rows, std::size_t limit, Write write, IdOf id_of) {
  json::Writer out;
  out.begin_object().key(name).begin_array();
  std::size_t count = 0;
  while (count < rows.size() && count < limit && out.text().size() < limits::page_bytes_max) write(out, rows[count++]);
  out.end_array();
  if (count > 0 && count < rows.size()) out.member("cursor", id_of(rows[count - 1]).text());
  out.end_object();
  return std::move(out).text();
}

void write_claim(json::Writer& out, const store::ClaimRow& row) {
  out.begin_object().member("claim_id", row.claim_id.text()).member("run_id", row.run_id);
  if (row.step_id) out.member("step_id", *row.step_id);
  out.member("text", row.text)
      .raw_member("pointers", row.pointers)
      .member("status", row.status)
      .member("created_at", format_time(row.created_at))
      .member("seq", row.seq)
      .end_object();
}

void write_evidence(json::Writer& out, const store::EvidenceRow& row) {
  out.begin_object().member("evidence_id", row.evidence_id.text()).member("run_id", row.run_id).member("type", row.type);
  if (row.content) out.raw_member("content", *row.content);
  if (row.pointer) out.member("pointer", *row.pointer);
  out.member("hash", to_hex(row.hash));
  if (row.validator_id) out.member("validator_id", *row.validator_id);
  out.member("actor", row.actor).member("created_at", format_time(row.created_at)).member("seq", row.seq).end_object();
}

}  // namespace

Result<Answer> claim_record(Call& call) {
  if (!call.reader) return Answer(NeedsWorker{});
  const json::Value& params = call.params;
  ASSIGN_OR_RETURN(const auto run, find_run(call, params["run_id"].string_or("")));
  RETURN_IF_ERROR(check_open(*run));
  std::vector<std::string> pointers;
  for (const json::Value item : params["pointers"]) pointers.push_back(item.string_or(""));
  ASSIGN_OR_RETURN(const evidence::Outcome outcome, resolve_pointers(call, pointers, run, true, false));
  RETURN_IF_ERROR(check_parsed(outcome));
  if (outcome.damage() != nullptr) return stop(outcome, run->run_id);

  const RecordIds ids = ids_for(call, "claim.record");
  store::ClaimRow row;
  row.claim_id = ids.id;
  row.run_id = run->run_id;
  row.step_id = params["step_id"].as_string();
  row.text = params["text"].string_or("");
  row.pointers = params["pointers"] ? std::string(params["pointers"].source()) : "[]";
  json::Writer body;
  body.begin_object().member("claim_id", ids.id.text()).member("text", row.text).raw_member("pointers", row.pointers).end_object();
  RETURN_IF_ERROR(check_body_size(body.text()));
  events::NewEvent event = make_event(call, *run, "claim.recorded", body.text(), params["step_id"].string_or(""));
  return record(call, {run, std::move(event), std::move(row), "claim_id", ids.id, std::nullopt}, ids, outcome);
}

Result<Answer> claim_list(Call& call) {
  if (!call.reader) return Answer(NeedsWorker{});
  ASSIGN_OR_RETURN(const auto run, find_run(call, call.params["run_id"].string_or("")));
  ASSIGN_OR_RETURN(const LedgerPage page, page_of(call.params));
  ASSIGN_OR_RETURN(const auto rows, call.reader->claims(run->run_id, page.after, page.limit + 1));
  return Answer(Reply{page_json("claims", rows, page.limit, write_claim, [](const store::ClaimRow& row) { return row.claim_id; }), {}});
}

Result<Answer> evidence_record(Call& call) {
  if (!call.reader) return Answer(NeedsWorker{});
  const json::Value& params = call.params;
  const auto pointer = params["pointer"].as_string();
  if (pointer.has_value() == params["content"].present()) {
    return Error(Errc::invalid_argument, "evidence is either content or a pointer: send one of them.");
  }
  ASSIGN_OR_RETURN(const auto run, run_of_evidence(call, pointer));
  evidence::Outcome outcome;
  store::EvidenceRow row;
  if (pointer) {
    ASSIGN_OR_RETURN(outcome, resolve_pointers(call, {*pointer}, run, true, true));
    RETURN_IF_ERROR(check_parsed(outcome));
    if (outcome.damage() != nullptr) return stop(outcome, run->run_id);
    ASSIGN_OR_RETURN(row.hash, hash_of(call, outcome.items.front().resolution));
  } else {
    row.content = params["content"].source();
    row.hash = sha256(params["content"]["text"].string_or(""));
  }
  const RecordIds ids = ids_for(call, "evidence.record");
  row.evidence_id = ids.id;
  row.run_id = run->run_id;
  row.type = params["type"].string_or("");
  row.pointer = pointer;
  row.validator_id = params["validator_id"].as_string();
  row.actor = call.caller.actor;
  json::Writer body;
  body.begin_object().member("evidence_id", ids.id.text()).member("type", row.type);
  if (row.content) body.raw_member("content", *row.content);
  if (row.pointer) body.member("pointer", *row.pointer);
  body.member("hash", to_hex(row.hash));
  if (row.validator_id) body.member("validator_id", *row.validator_id);
  body.end_object();
  RETURN_IF_ERROR(check_body_size(body.text()));
  const Hash hash = row.hash;
  events::NewEvent event = make_event(call, *run, "evidence.recorded", body.text(), params["step_id"].string_or(""));
  return record(call, {run, std::move(event), std::move(row), "evidence_id", ids.id, hash}, ids, outcome);
}

Result<Answer> evidence_list(Call& call) {
  if (!call.reader) return Answer(NeedsWorker{});
  const auto run_id = call.params["run_id"].as_string();
  if (run_id) {
    RETURN_IF_ERROR(find_run(call, *run_id));
  } else if (!call.caller.admin) {
    return Error(Errc::invalid_argument, "run_id: say of which run. The evidence of all runs is for the daemon's owner alone.");
  }
  ASSIGN_OR_RETURN(const LedgerPage page, page_of(call.params));
  ASSIGN_OR_RETURN(const auto rows, call.reader->evidence(run_id, call.params["type"].as_string(), page.after, page.limit + 1));
  return Answer(Reply{page_json("evidence", rows, page.limit, write_evidence, [](const store::EvidenceRow& row) { return row.evidence_id; }), {}});
}

}  // namespace muniment::gateway::methods
