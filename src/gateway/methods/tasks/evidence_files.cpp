// evidence.check, evidence.import and evidence.export: evidence as the object of a file .beads/evidence/{uuid}.json.
// The checksum covers the whole object; an object whose checksum does not match, or that differs from the ledger, was
// edited outside of Muniment.
#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "base/crypto/sha256.hpp"
#include "gateway/access.hpp"
#include "gateway/append/first_receipts.hpp"
#include "gateway/methods/knowledge/ledger_rows.hpp"
#include "gateway/methods/methods.hpp"
#include "gateway/methods/tasks/attestation.hpp"
#include "gateway/methods/tasks/pieces.hpp"
#include "gateway/methods/tasks/task_record.hpp"
#include "gateway/read/pointing.hpp"
#include "gateway/services.hpp"

namespace muniment::gateway::methods {
namespace {

using evidence::completion::Piece;

constexpr std::string_view checksum_prefix = "sha256:";

// Returns the canonical JSON of the members that the checksum covers.
std::string covered_json(const std::string& id, const std::string& type, const std::string& content,
                         const std::string& timestamp, const std::string& validator_id) {
  json::Writer out;
  out.begin_object().member("id", id).member("type", type).raw_member("content", content);
  out.member("timestamp", timestamp).member("validator_id", validator_id).end_object();
  const std::string text = std::move(out).text();
  const auto document = json::parse(std::string_view(text));
  return document ? json::canonical(document->root()) : text;
}

std::string checksum_of(const std::string& covered) { return std::string(checksum_prefix) + to_hex(sha256(covered)); }

struct FileRecord {
  Uuid id;
  std::string type, content, timestamp, validator_id, checksum;
};

Result<FileRecord> parse_record(const json::Value& record) {
  FileRecord file;
  for (const json::Value member : record) {
    const std::string name = member.key();
    if (name != "id" && name != "type" && name != "content" && name != "timestamp" && name != "validator_id" &&
        name != "checksum")
      return Error(
          Errc::invalid_argument,
          fmt::format("record: unknown member {}. Expected id, type, content, timestamp, validator_id, checksum.",
                      json::quote(name)));
  }
  const auto id = parse_uuid(record["id"].string_or(""));
  file.type = record["type"].string_or("");
  file.timestamp = record["timestamp"].string_or("");
  file.validator_id = record["validator_id"].string_or("");
  file.checksum = record["checksum"].string_or("");
  if (!id || file.type.empty() || file.type.size() > 100 || file.validator_id.size() > 256 ||
      !record["content"].is(json::Kind::object))
    return Error(
        Errc::invalid_argument,
        "record: expected id (a UUID), type (1 to 100 bytes), content (an object), timestamp, validator_id (at "
        "most 256 bytes) and checksum.");
  file.id = *id;
  file.content = record["content"].source();
  return file;
}

// Parses a time of the record: RFC 3339, or the same without a zone, meaning UTC.
std::optional<Time> time_of(const std::string& timestamp) {
  if (const auto time = parse_time(timestamp)) return time;
  return parse_time(timestamp + "Z");
}

Error edited(Call& call, const std::shared_ptr<store::Run>& run, const FileRecord& file, const std::string& detail) {
  log_violation(call, run, {"evidence_edited", detail, "", file.id.text()});
  return {Errc::conflict, detail + ". The violation is recorded. Export the evidence again: evidence.export"};
}

std::string validator_of(const store::EvidenceRow& row) { return row.validator_id.value_or(row.actor); }

// Returns the content for a file: the recorded content, or the pointer's target.
std::string content_in_file(const store::EvidenceRow& row) {
  if (!row.pointer) return row.content.value_or("{}");
  json::Writer pointing;
  pointing.begin_object().member("pointer", *row.pointer).member("sha256", to_hex(row.hash));
  return std::move(pointing.end_object()).text();
}

// Returns whether the file states the time of the recording, or the time of the imported record.
Result<bool> states_its_time(const EvidenceUse& use, const FileRecord& file) {
  const auto stated = time_of(file.timestamp);
  if (!stated || *stated == use.row.created_at) return stated.has_value();
  ASSIGN_OR_RETURN(const auto event, use.reader->confirmed(use.reader->event_at(use.row.seq)));
  if (!event || !event->body) return false;
  ASSIGN_OR_RETURN(const json::Document document, json::parse(*event->body));
  return parse_time(document.root()["source"]["timestamp"].string_or("")) == stated;
}

Result<bool> says_the_same(const EvidenceUse& use, const FileRecord& file) {
  const store::EvidenceRow& row = use.row;
  const bool same_validator =
      file.validator_id == validator_of(row) || (!row.validator_id && file.validator_id.empty());
  if (is_erased(row) || row.type != file.type || !same_validator) return false;
  const std::string content = content_in_file(row);
  ASSIGN_OR_RETURN(const json::Document held, json::parse(std::string_view(content)));
  ASSIGN_OR_RETURN(const json::Document said, json::parse(std::string_view(file.content)));
  if (json::canonical(held.root()) != json::canonical(said.root())) return false;
  return states_its_time(use, file);
}

// Handles an id that the ledger already has: the file must equal an export of one of its uses.
Result<Answer> import_again(Call& call, const std::shared_ptr<store::Run>& run, const FileRecord& file,
                            const std::vector<EvidenceUse>& uses) {
  if (is_erased(uses.front().row))
    return Error(Errc::conflict, fmt::format("evidence {} was erased, and is not recorded again.", file.id.text()));
  for (const EvidenceUse& use : uses) {
    ASSIGN_OR_RETURN(const bool same, says_the_same(use, file));
    if (same) {
      const std::string where = ",\"run_id\":" + json::quote(use.row.run_id);
      return Answer(Reply{recorded_json("evidence_id", file.id, &use.row.hash, use.row.seq, true, where), {}});
    }
  }
  return edited(
      call, run, file,
      fmt::format("the file of evidence {} differs from the ledger (seq {})", file.id.text(), uses.front().row.seq));
}

std::string source_member(const FileRecord& file, Time stated) {
  json::Writer out;
  out.begin_object().member("timestamp", format_time(stated)).member("checksum", file.checksum);
  return ",\"source\":" + std::move(out.end_object()).text();
}

void write_dependencies(json::Writer& out, const Piece& piece, std::chrono::seconds fresh_for, Time now) {
  if (piece.expires_at) out.member("expires_at", format_time(*piece.expires_at));
  if (!piece.depends_on.empty()) out.member("depends_on", piece.depends_on);
  const auto broken = evidence::completion::broken_dependency(piece, fresh_for, now);
  if (!broken) return;
  out.key("broken_dependency").begin_object();
  if (!broken->evidence_id.empty()) out.member("evidence_id", broken->evidence_id);
  out.member("code", broken->code).member("reason", broken->text).end_object();
}

}  // namespace

Result<Answer> evidence_check(Call& call) {
  if (!call.reader) return Answer(NeedsWorker{});
  const std::string id = call.params["evidence_id"].string_or("");
  PiecesFor task;
  task.run_id = call.params["run_id"].string_or("");
  ASSIGN_OR_RETURN(const Pieces read, read_pieces(call, {id}, task));
  const Piece& piece = read.pieces.front();
  const auto& use = read.uses.front();
  const bool exists = piece.found && !piece.erased;
  const bool intact = exists && piece.damage.empty();
  const Time now = call.services.clock.now();
  const auto policy = call.services.policies.of_type("");
  Time from = piece.stated_at ? std::min(*piece.stated_at, piece.recorded_at) : piece.recorded_at;
  if (piece.command) from = std::min(from, piece.command->ended_at);
  const bool from_the_future = piece.recorded_at > now || (piece.stated_at && *piece.stated_at > now);
  const bool expired = piece.expires_at && *piece.expires_at <= now;
  const bool fresh = exists && !expired && !from_the_future &&
                     now.micros - from.micros < std::chrono::microseconds(policy.fresh_for).count();
  json::Writer out;
  out.begin_object().member("evidence_id", id).member("exists", exists);
  out.member("intact", intact).member("fresh", fresh);
  if (!piece.found) out.member("reason", "no such evidence. List it: evidence.list");
  if (piece.erased) out.member("reason", "the evidence was erased");
  if (exists && !intact) out.member("reason", piece.damage);
  if (intact && !fresh)
    out.member("reason", expired ? fmt::format("stale: expired at {}", format_time(*piece.expires_at))
                                 : fmt::format("stale: recorded at {}", format_time(from)));
  if (use) {
    note_log(call, *use->reader);
    out.member("type", piece.type).member("actor", piece.actor).member("run_id", use->row.run_id);
    if (!piece.validator_id.empty()) out.member("validator_id", piece.validator_id);
    out.member("created_at", format_time(piece.recorded_at)).member("hash", to_hex(use->row.hash));
    write_dependencies(out, piece, policy.fresh_for, now);
  }
  write_halted(out, read.outcome);
  Reply reply{std::move(out.end_object()).text(), {}};
  if (read.outcome.events.empty()) return Answer(std::move(reply));
  return Answer(append_outcome(read.outcome, [reply] { return Result<Reply>(reply); }));
}

Result<Answer> evidence_export(Call& call) {
  if (!call.reader) return Answer(NeedsWorker{});
  const auto id = parse_uuid(call.params["evidence_id"].string_or(""));
  if (!id) return Error(Errc::invalid_argument, "evidence_id: expected a UUID.");
  ASSIGN_OR_RETURN(const auto uses, evidence_uses(call, *id, call.params["run_id"].as_string()));
  const store::EvidenceRow& row = uses.front().row;
  RETURN_IF_ERROR(uses.front().reader->confirm(std::vector{row}));
  if (is_erased(row)) return Error(Errc::not_found, fmt::format("evidence {} was erased.", id->text()));
  note_log(call, *uses.front().reader);
  const std::string content = content_in_file(row);
  const std::string covered =
      covered_json(id->text(), row.type, content, format_time(row.created_at), validator_of(row));
  json::Writer out;
  out.begin_object().key("record").begin_object();
  out.member("id", id->text()).member("type", row.type).raw_member("content", content);
  out.member("timestamp", format_time(row.created_at)).member("validator_id", validator_of(row));
  out.member("checksum", checksum_of(covered)).end_object().end_object();
  return Answer(Reply{std::move(out).text(), {}});
}

Result<Answer> evidence_import(Call& call) {
  if (!call.reader) return Answer(NeedsWorker{});
  if (call.params["envelope"].present() == call.params["record"].present())
    return Error(Errc::invalid_argument, "give either record or envelope.");
  if (call.params["envelope"]) {
    if (!call.params["run_id"]) return Error(Errc::invalid_argument, "an attestation requires run_id.");
    ASSIGN_OR_RETURN(const auto run, find_run(call, call.params["run_id"].string_or("")));
    return import_attestation(call, run);
  }
  ASSIGN_OR_RETURN(const FileRecord file, parse_record(call.params["record"]));
  const std::string run_id = call.params["run_id"].string_or("");
  const Result<std::shared_ptr<store::Run>> place =
      run_id.empty() ? call.services.runs.find(log_run_id) : find_run(call, run_id);
  ASSIGN_OR_RETURN(const auto run, place);
  const std::string covered = covered_json(call.params["record"]["id"].string_or(""), file.type, file.content,
                                           file.timestamp, file.validator_id);
  if (file.checksum != checksum_of(covered))
    return edited(call, run, file,
                  fmt::format("the checksum of evidence {} does not match its record", file.id.text()));
  const auto stated = time_of(file.timestamp);
  if (!stated) return Error(Errc::invalid_argument, "record: timestamp is not a time. Expected 2025-10-16T12:00:00Z");
  const auto uses = evidence_uses(call, file.id, std::nullopt);
  if (uses) return import_again(call, run, file, *uses);
  if (uses.error().code != Errc::not_found) return uses.error();
  if (!run_id.empty()) RETURN_IF_ERROR(check_open(*run));
  RETURN_IF_ERROR(begin_referring(call));
  store::EvidenceRow row;
  row.evidence_id = file.id;
  row.run_id = run->run_id;
  row.type = file.type;
  row.content = file.content;
  row.validator_id = file.validator_id;
  row.actor = call.caller.actor;
  ASSIGN_OR_RETURN(const json::Document content, json::parse(file.content));
  row.hash = hash_of_content(content.root());
  const Hash hash = row.hash;
  ASSIGN_OR_RETURN(std::string body, recorded_body(row, source_member(file, *stated)));
  events::NewEvent event =
      make_event(call, *run, "evidence.recorded", std::move(body), call.params["step_id"].string_or(""));
  return record_entry(call, {run, std::move(event), std::move(row), "evidence_id", file.id, hash}, {file.id, {}}, {});
}

}  // namespace muniment::gateway::methods
