// claim.record, claim.list, evidence.record and evidence.list: the ledger. The pointers of a claim or of evidence are
// critical: they are resolved before the record is written, and one that does not resolve stops the run.
#include <algorithm>
#include <charconv>
#include <limits>
#include <set>

#include <fmt/format.h>

#include "base/limits.hpp"
#include "gateway/access.hpp"
#include "gateway/append/first_receipts.hpp"
#include "gateway/methods/knowledge/evidence_terms.hpp"
#include "gateway/methods/knowledge/ledger_rows.hpp"
#include "gateway/methods/methods.hpp"
#include "gateway/methods/tasks/command_evidence.hpp"
#include "gateway/methods/tasks/workflow_evidence.hpp"
#include "gateway/read/pointing.hpp"
#include "gateway/services.hpp"
#include "store/files/artifact_row.hpp"

namespace muniment::gateway::methods {
namespace {

constexpr std::int64_t hashed_span_bytes_max = 16 << 20;

Status check_body_size(const std::string& body) {
  return events::check_body_size(body.size(), "the event", "Put the text into an artifact and pass its pointer.");
}

// Returns the members of the reply that rate a command's evidence, with a leading comma.
std::string command_members(Call& call, const evidence::completion::Command& command, const std::string& type) {
  const auto policy = call.services.policies.of_type("");
  const CommandResult result = judge_command(command, type, policy, call.services.clock.now());
  json::Writer out;
  out.begin_object().member("passed", result.passed).member("reason", result.reason);
  if (const auto& report = command.report) {
    out.key("report").begin_object().member("format", report->format).member("total", report->counts.total);
    out.member("passed", report->counts.passed).member("failed", report->counts.failed);
    out.member("skipped", report->counts.skipped);
    if (report->deselected > 0) out.member("deselected", report->deselected);
    out.end_object();
  }
  return "," + std::move(out).text().substr(1);
}

// Returns the first reply to a repeated request, regardless of later changes to the run and the pointers; nullopt if it
// was not recorded. `sent` names the members of the event's body that come from the request. Errors: conflict if they
// differ.
Result<std::optional<Reply>> recorded_before(Call& call, const store::Run& run, const RecordIds& ids,
                                             std::string_view id_name, const std::vector<std::string_view>& sent) {
  const std::int64_t run_no = run.view().run_no;
  if (!ids.event_id || run_no < 0) return std::optional<Reply>();
  ASSIGN_OR_RETURN(const auto known, call.reader->event_by_id(run_no, *ids.event_id));
  if (!known) return std::optional<Reply>();
  if (!known->body) return used_key(*known);
  ASSIGN_OR_RETURN(const json::Document document, json::parse(*known->body));
  const json::Value body = document.root();
  // Equal texts may be escaped differently.
  const auto same_value = [](json::Value held, json::Value said) {
    if (held.is(json::Kind::string) && said.is(json::Kind::string)) return held.as_string() == said.as_string();
    return held.present() == said.present() && (!held.present() || held.source() == said.source());
  };
  const bool same_step = known->step_id.value_or("") == call.params["step_id"].string_or("");
  const bool same =
      std::ranges::all_of(sent, [&](std::string_view name) { return same_value(body[name], call.params[name]); });
  if (!same || !same_step) return used_key(*known);
  const auto id = parse_uuid(body[id_name].string_or(""));
  const auto hash = hash_from_hex(body["hash"].string_or(""));
  const std::string more =
      body["command_id"] ? command_members(call, command_of(body["content"]), body["type"].string_or("")) : "";
  return std::optional(
      Reply{recorded_json(id_name, id.value_or(ids.id), hash ? &*hash : nullptr, known->seq, true, more), {}});
}

// Returns the id of the run that records the evidence: the named run, or the pointer's; empty: _log.
std::string run_of_evidence(Call& call, const std::optional<std::string>& pointer) {
  std::string run_id = call.params["run_id"].string_or("");
  if (run_id.empty() && pointer) {
    const auto parsed = evidence::parse_pointer(*pointer);
    if (parsed) run_id = parsed->run_id;
  }
  return run_id;
}

std::size_t rows_limit(const json::Value& params) {
  return static_cast<std::size_t>(std::clamp<std::int64_t>(
      params["limit"].as_int().value_or(limits::page_items_default), 1, limits::page_items_max));
}

Error bad_cursor() { return {Errc::invalid_argument, "cursor: expected a cursor that this method returned."}; }

// Writes {"<name>": [rows…], "cursor"?} with as many rows as fit a page; the cursor names the last one.
template <typename Rows, typename Write, typename PlaceOf>
std::string page_json(std::string_view name, const Rows& rows, std::size_t limit, Write write, PlaceOf place_of) {
  json::Writer out;
  out.begin_object().key(name).begin_array();
  std::size_t count = 0;
  while (count < rows.size() && count < limit && out.text().size() < limits::page_bytes_max) write(out, rows[count++]);
  out.end_array();
  if (count > 0 && count < rows.size()) out.member("cursor", place_of(rows[count - 1]));
  out.end_object();
  return std::move(out).text();
}

void write_claim(json::Writer& out, const store::ClaimRow& row, const std::vector<store::EvidenceLinkRow>& links) {
  out.begin_object().member("claim_id", row.claim_id.text()).member("run_id", row.run_id);
  if (row.step_id) out.member("step_id", *row.step_id);
  out.member("text", row.text)
      .raw_member("pointers", row.pointers)
      .member("status", row.status)
      .member("created_at", format_time(row.created_at))
      .member("seq", row.seq)
      .key("evidence")
      .begin_array();
  for (const store::EvidenceLinkRow& link : links) {
    if (link.claim_id != row.claim_id) continue;
    out.begin_object()
        .member("evidence_id", link.evidence_id.text())
        .member("relation", link.relation)
        .member("seq", link.seq)
        .end_object();
  }
  out.end_array().end_object();
}

// Answers with the run's recorded use of the evidence if the request matches it. Errors: conflict.
Result<Reply> answer_known(Call& call, const store::EvidenceRow& known, const store::EvidenceRow& row) {
  ASSIGN_OR_RETURN(const bool same_terms, has_same_terms(call, known.seq));
  if (!is_erased(known) && same_terms && known.type == row.type && known.validator_id == row.validator_id) {
    return Reply{recorded_json("evidence_id", known.evidence_id, &known.hash, known.seq, true), {}};
  }
  Error error(
      Errc::conflict,
      is_erased(known)
          ? fmt::format(
                "run {} recorded this evidence at seq {}, and it was erased. A run records evidence once: omit it.",
                row.run_id, known.seq)
          : fmt::format("run {} recorded this evidence at seq {} as {}{}. A run records evidence once: link it with "
                        "evidence.link.",
                        row.run_id, known.seq, known.type,
                        same_terms ? "" : ", with a different expiry or different dependencies"));
  error.run_id = row.run_id;
  return error;
}

// Returns the run's recorded use of the pointer's target, regardless of later changes to either; nullopt: none.
Result<std::optional<Reply>> known_by_pointer(Call& call, const store::EvidenceRow& row) {
  if (!row.pointer) return std::optional<Reply>();
  // Evidence without a run is visible only to its recorder.
  const auto actor = row.run_id == log_run_id ? std::optional(row.actor) : std::nullopt;
  ASSIGN_OR_RETURN(const auto known, call.reader->evidence_of_pointer(row.run_id, *row.pointer, actor));
  if (!known) return std::optional<Reply>();
  ASSIGN_OR_RETURN(Reply reply, answer_known(call, *known, row));
  return std::optional(std::move(reply));
}

// Like `known_by_pointer`, but by the id, which several pointers may share. Also finds an erased use.
Result<std::optional<Reply>> known_by_id(Call& call, const store::EvidenceRow& row) {
  ASSIGN_OR_RETURN(const auto uses,
                   call.reader->evidence_uses(row.evidence_id, row.run_id, std::nullopt, limits::page_items_max));
  const auto use = std::ranges::find_if(
      uses, [&](const store::EvidenceRow& other) { return row.run_id != log_run_id || other.actor == row.actor; });
  if (use == uses.end()) return std::optional<Reply>();
  ASSIGN_OR_RETURN(Reply reply, answer_known(call, *use, row));
  return std::optional(std::move(reply));
}

// Sets the id, corpus, index, chunk and span of a pointer's evidence.
void name_source(store::EvidenceRow& row, const evidence::EvidenceSource& source) {
  row.evidence_id = evidence::evidence_id(source);
  row.corpus_id = source.corpus_id;
  row.index_id = source.index_id;
  row.chunk_id = source.chunk_id;
  if (source.span) row.span = source.span_text();
}

// The source of evidence, which accompanies its row.
struct RecordedSource {
  evidence::Outcome outcome;        // outcome of resolving its pointer, and the artifacts that the client names
  std::set<std::string> artifacts;  // ids of the artifacts on which it rests
  std::string reply_members;        // members of the reply, for a command

  // Returns the artifacts as a further member of the event's body, JSON text with a leading comma.
  std::string artifacts_member() const {
    if (artifacts.empty()) return {};
    std::string ids;
    for (const std::string& id : artifacts) ids += (ids.empty() ? "" : ",") + json::quote(id);
    return ",\"artifacts\":[" + ids + "]";
  }
};

}  // namespace

RecordIds ids_for(Call& call, const store::Run& run, std::string_view method) {
  if (call.idempotency_key.empty()) return {make_uuid_v7(call.services.clock.now()), std::nullopt};
  return {idempotent_id_in(run, call.caller, method, call.idempotency_key, 0),
          idempotent_id_in(run, call.caller, method, call.idempotency_key, 1)};
}

std::string recorded_json(std::string_view id_name, const Uuid& id, const Hash* hash, std::int64_t seq, bool duplicate,
                          std::string_view more) {
  json::Writer out;
  out.begin_object().member(id_name, id.text());
  if (hash != nullptr) out.member("hash", to_hex(*hash));
  out.member("seq", seq).member("duplicate", duplicate);
  return std::move(out).text() + std::string(more) + "}";
}

Result<std::string> recorded_body(const store::EvidenceRow& row, std::string_view more) {
  json::Writer out;
  out.begin_object().member("evidence_id", row.evidence_id.text()).member("type", row.type);
  if (row.content) out.raw_member("content", *row.content);
  if (row.pointer) out.member("pointer", *row.pointer);
  if (row.chunk_id)
    out.member("corpus_id", *row.corpus_id).member("index_id", *row.index_id).member("chunk_id", *row.chunk_id);
  if (row.span) out.member("span", *row.span);
  out.member("hash", to_hex(row.hash));
  if (row.validator_id) out.member("validator_id", *row.validator_id);
  if (row.task_id) out.member("task_id", *row.task_id);
  if (row.command_id) out.member("command_id", row.command_id->text());
  std::string body = std::move(out).text() + std::string(more) + "}";
  RETURN_IF_ERROR(check_body_size(body));
  return body;
}

Hash hash_of_content(const json::Value& content) {
  bool text_alone = content["text"].is(json::Kind::string);
  for (const json::Value member : content) {
    const std::string name = member.key();
    text_alone = text_alone && (name == "text" || name == "metadata");
  }
  return sha256(text_alone ? content["text"].string_or("") : json::canonical(content));
}

Answer record_entry(Call& call, LedgerEntry entry, const RecordIds& ids, const evidence::Outcome& outcome) {
  PendingAppend append;
  append.request.actor = call.caller.actor;
  if (ids.event_id) {
    entry.event.event_id = *ids.event_id;
    entry.event.event_id_is_ours = false;
    append.request.ids_checked = true;  // checked by recorded_before
  }
  append.request.events.push_back({entry.run, std::move(entry.event)});
  append.request.rows.push_back({0, std::move(entry.row)});
  log_outcome(outcome, append.request);
  append.finish = [name = std::string(entry.id_name), id = entry.id, sum = entry.hash, more = entry.reply_members](
                      Services&, const std::vector<events::Receipt>& receipts) -> Result<Reply> {
    return Reply{recorded_json(name, id, sum ? &*sum : nullptr, receipts.back().seq, false, more), {}};
  };
  return Answer(std::move(append));
}

bool is_erased(const store::EvidenceRow& row) { return row.hash == Hash{}; }

void write_evidence(json::Writer& out, const store::EvidenceRow& row, const std::vector<store::EvidenceTerms>& terms) {
  out.begin_object()
      .member("evidence_id", row.evidence_id.text())
      .member("run_id", row.run_id)
      .member("type", row.type);
  if (row.content) out.raw_member("content", *row.content);
  if (row.pointer) out.member("pointer", *row.pointer);
  if (row.chunk_id)
    out.member("corpus_id", *row.corpus_id).member("index_id", *row.index_id).member("chunk_id", *row.chunk_id);
  if (const auto span = row.span ? evidence::parse_span(*row.span) : std::nullopt) {
    out.key("span").begin_object().member("start", span->start).member("end", span->end).end_object();
  }
  out.member("hash", to_hex(row.hash));
  if (row.validator_id) out.member("validator_id", *row.validator_id);
  if (row.task_id) out.member("task_id", *row.task_id);
  write_terms(out, row, terms);
  out.member("actor", row.actor).member("created_at", format_time(row.created_at)).member("seq", row.seq).end_object();
}

Result<Hash> hash_of_evidence(Call& call, const evidence::Resolution& found) {
  if (found.parsed->kind == evidence::PointerKind::run || found.parsed->kind == evidence::PointerKind::log) {
    return Error(Errc::invalid_argument,
                 "a pointer of evidence must name bytes (an artifact, a manifest, a snapshot or an event), not " +
                     found.pointer);
  }
  if (found.parsed->span) {
    const auto [start, end] = *found.parsed->span;
    if (end - start > hashed_span_bytes_max) {
      return Error(Errc::too_large,
                   fmt::format("the span is {} bytes, limit {}. Use a smaller span, or the whole artifact.",
                               end - start, hashed_span_bytes_max));
    }
    const Uuid& id = found.parsed->id;
    ASSIGN_OR_RETURN(const auto artifact,
                     find_in_all<store::ArtifactRow>(call, [&](store::Reader& reader) { return reader.artifact(id); }));
    if (!artifact.row) return Error(Errc::not_found, "no artifact " + id.text());
    ASSIGN_OR_RETURN(const std::string bytes,
                     call.services.files.read(store::file_of(*artifact.row), start, end - start));
    return sha256(bytes);
  }
  if (found.parsed->kind == evidence::PointerKind::evidence && found.text) return sha256(*found.text);
  const auto hash = found.expected ? hash_from_hex(*found.expected) : std::nullopt;
  if (!hash) return Error(Errc::invalid_argument, found.pointer + " does not name bytes with a hash.");
  return *hash;
}

Result<Answer> claim_record(Call& call) {
  if (!call.reader) return Answer(NeedsWorker{});
  const json::Value& params = call.params;
  ASSIGN_OR_RETURN(const auto run, find_run(call, params["run_id"].string_or("")));
  RETURN_IF_ERROR(begin_referring(call));
  const RecordIds ids = ids_for(call, *run, "claim.record");
  ASSIGN_OR_RETURN(auto before, recorded_before(call, *run, ids, "claim_id", {"text", "pointers"}));
  if (before) return Answer(*std::move(before));
  RETURN_IF_ERROR(check_open(*run));
  std::vector<std::string> pointers;
  for (const json::Value item : params["pointers"]) pointers.push_back(item.string_or(""));
  ASSIGN_OR_RETURN(const evidence::Outcome outcome, resolve_needed(call, pointers, run));
  if (outcome.damage() != nullptr) return stop(outcome, run);

  store::ClaimRow row;
  row.claim_id = ids.id;
  row.run_id = run->run_id;
  row.step_id = params["step_id"].as_string();
  row.text = params["text"].string_or("");
  row.pointers = params["pointers"] ? std::string(params["pointers"].source()) : "[]";
  json::Writer body;
  body.begin_object()
      .member("claim_id", ids.id.text())
      .member("text", row.text)
      .raw_member("pointers", row.pointers)
      .end_object();
  RETURN_IF_ERROR(check_body_size(body.text()));
  events::NewEvent event = make_event(call, *run, "claim.recorded", body.text(), params["step_id"].string_or(""));
  return record_entry(call, {run, std::move(event), std::move(row), "claim_id", ids.id, std::nullopt}, ids, outcome);
}

// Checks on the first page of a list that none of the run's events or rows was deleted. The run _log is not checked,
// since it has the events of all documents.
static Status check_complete(const Call& call, const ReadRun& found, bool evidence) {
  const std::int64_t run_no = found.run->view().run_no;
  if (call.params["cursor"] || run_no <= 0) return success();
  RETURN_IF_ERROR(found.reader->check_run(run_no, 0, found.run->next_run_seq()));
  store::EventFilter all;
  all.run_no = run_no;
  RETURN_IF_ERROR(found.reader->confirm_run(all, 0, std::numeric_limits<std::int64_t>::max()));
  return found.reader->check_ledger(run_no, found.run->run_id, evidence);
}

Result<Answer> claim_list(Call& call) {
  if (!call.reader) return Answer(NeedsWorker{});
  ASSIGN_OR_RETURN(const ReadRun found, find_run_to_read(call, call.params["run_id"].string_or("")));
  std::optional<Uuid> after;
  if (const auto cursor = call.params["cursor"].as_string()) {
    after = parse_uuid(*cursor);
    if (!after) return bad_cursor();
  }
  const std::size_t limit = rows_limit(call.params);
  RETURN_IF_ERROR(check_complete(call, found, false));
  ASSIGN_OR_RETURN(const auto rows, found.reader->claims(found.run->run_id, after, limit + 1));
  std::vector<Uuid> ids;
  for (const store::ClaimRow& row : rows) ids.push_back(row.claim_id);
  ASSIGN_OR_RETURN(const auto links, found.reader->evidence_links(ids));
  const auto write = [&](json::Writer& out, const store::ClaimRow& row) { write_claim(out, row, links); };
  return Answer(Reply{
      page_json("claims", rows, limit, write, [](const store::ClaimRow& row) { return row.claim_id.text(); }), {}});
}

namespace {

// Resolves the pointer and the artifacts that the client names, on which the evidence will rest.
Status resolve_source(Call& call, const std::shared_ptr<store::Run>& run, const store::EvidenceRow& row,
                      RecordedSource& source) {
  std::vector<std::string> pointers;
  if (row.pointer) pointers.push_back(*row.pointer);
  for (const json::Value item : call.params["artifacts"]) {
    if (run->run_id == log_run_id)
      return Error(Errc::invalid_argument, "artifacts: evidence without a run has none. Send run_id.");
    ASSIGN_OR_RETURN(const store::ArtifactRow artifact, artifact_of_run(call, *run, item.string_or("")));
    const std::string id = artifact.artifact_id.text();
    if (source.artifacts.insert(id).second) pointers.push_back("artifact://" + run->run_id + "/" + id);
  }
  if (pointers.empty()) return success();
  ASSIGN_OR_RETURN(source.outcome, resolve_needed(call, pointers, run, row.pointer.has_value()));
  return success();
}

// Fills in the row from the content, pointer or command. Errors: those of its source.
Status fill_row(Call& call, const std::shared_ptr<store::Run>& run, store::EvidenceRow& row, RecordedSource& source) {
  const json::Value& params = call.params;
  RETURN_IF_ERROR(resolve_source(call, run, row, source));
  if (source.outcome.damage() != nullptr) return success();
  if (row.pointer) {
    const evidence::Resolution& found = source.outcome.items.front().resolution;
    ASSIGN_OR_RETURN(row.hash, hash_of_evidence(call, found));
    if (found.source) name_source(row, *found.source);
    return success();
  }
  if (params["content"]) {
    row.content = params["content"].source();
    row.hash = hash_of_content(params["content"]);
    return success();
  }
  ASSIGN_OR_RETURN(const CommandEvidence made, command_evidence(call, *run));
  row.content = made.content;
  source.artifacts.insert(made.artifacts.begin(), made.artifacts.end());
  row.command_id = parse_uuid(params["command_id"].string_or(""));
  ASSIGN_OR_RETURN(const json::Document content, json::parse(*row.content));
  row.hash = hash_of_content(content.root());
  source.reply_members = command_members(call, made.command, row.type);
  return success();
}

}  // namespace

Result<Answer> evidence_record(Call& call) {
  if (!call.reader) return Answer(NeedsWorker{});
  const json::Value& params = call.params;
  const auto pointer = params["pointer"].as_string();
  if (pointer.has_value() + params["content"].present() + params["command_id"].present() != 1) {
    return Error(Errc::invalid_argument, "evidence is content, a pointer or a command_id: send one of them.");
  }
  const std::string run_id = run_of_evidence(call, pointer);
  const Result<std::shared_ptr<store::Run>> place =
      run_id.empty() ? call.services.runs.find(log_run_id) : find_run(call, run_id);
  ASSIGN_OR_RETURN(const auto run, place);
  RETURN_IF_ERROR(begin_referring(call));
  RecordIds ids = ids_for(call, *run, "evidence.record");
  const std::string_view source_name = params["command_id"] ? "command_id" : "content";
  ASSIGN_OR_RETURN(auto before, recorded_before(call, *run, ids, "evidence_id",
                                                {"type", source_name, "pointer", "validator_id", "task_id",
                                                 "expires_in_seconds", "depends_on"}));
  if (before) {
    ASSIGN_OR_RETURN(const auto known, call.reader->event_by_id(run->view().run_no, *ids.event_id));
    ASSIGN_OR_RETURN(const bool same_terms, has_same_terms(call, known ? known->seq : -1));
    if (!same_terms && known) return used_key(*known);
    return Answer(*std::move(before));
  }
  store::EvidenceRow row;
  row.run_id = run->run_id;
  row.type = params["type"].string_or("");
  row.pointer = pointer;
  row.validator_id = params["validator_id"].as_string();
  row.task_id = params["task_id"].as_string();
  row.actor = call.caller.actor;
  ASSIGN_OR_RETURN(before, known_by_pointer(call, row));
  if (before) return Answer(*std::move(before));
  if (!run_id.empty()) RETURN_IF_ERROR(check_open(*run));
  RecordedSource source;
  RETURN_IF_ERROR(fill_row(call, run, row, source));
  if (source.outcome.damage() != nullptr) return stop(source.outcome, run);
  if (row.chunk_id) ids.id = row.evidence_id;
  row.evidence_id = ids.id;
  if (row.chunk_id) {
    ASSIGN_OR_RETURN(before, known_by_id(call, row));
    if (before) return Answer(*std::move(before));
  }
  ASSIGN_OR_RETURN(const std::string terms, terms_of_request(call, ids.id));
  ASSIGN_OR_RETURN(std::string body, recorded_body(row, terms + source.artifacts_member()));
  const Hash hash = row.hash;
  events::NewEvent event =
      make_event(call, *run, "evidence.recorded", std::move(body), params["step_id"].string_or(""));
  return record_entry(
      call, {run, std::move(event), std::move(row), "evidence_id", ids.id, hash, std::move(source.reply_members)}, ids,
      source.outcome);
}

Result<Answer> evidence_list(Call& call) {
  if (!call.reader) return Answer(NeedsWorker{});
  const auto run_id = call.params["run_id"].as_string();
  ASSIGN_OR_RETURN(store::Reader * reader, reader_named(call));
  if (run_id) {
    ASSIGN_OR_RETURN(const ReadRun found, find_run_to_read(call, *run_id));
    RETURN_IF_ERROR(check_complete(call, found, true));
    reader = found.reader;
  } else if (!call.caller.admin) {
    return Error(Errc::invalid_argument,
                 "run_id: missing. Only root and the daemon's own user may list the evidence of all runs.");
  }
  std::int64_t after = -1;
  if (const auto cursor = call.params["cursor"].as_string()) {
    const auto end = std::from_chars(cursor->data(), cursor->data() + cursor->size(), after);
    if (end.ec != std::errc() || end.ptr != cursor->data() + cursor->size()) return bad_cursor();
  }
  const std::size_t limit = rows_limit(call.params);
  store::EvidenceFilter filter{run_id, call.params["type"].as_string(), call.params["task_id"].as_string(),
                               call.params["validator"].as_string(), after};
  filter.held = false;  // with its terms
  ASSIGN_OR_RETURN(const auto rows, reader->evidence(filter, limit + 1));
  ASSIGN_OR_RETURN(const auto terms, reader->evidence_terms(rows));
  const auto write = [&](json::Writer& out, const store::EvidenceRow& row) { write_evidence(out, row, terms); };
  return Answer(Reply{
      page_json("evidence", rows, limit, write, [](const store::EvidenceRow& row) { return std::to_string(row.seq); }),
      {}});
}

}  // namespace muniment::gateway::methods
