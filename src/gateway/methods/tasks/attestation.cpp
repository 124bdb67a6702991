// evidence.attest, and evidence.import of an attestation: test results as in-toto statements in DSSE envelopes.
#include "gateway/methods/tasks/attestation.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "audit/publisher.hpp"
#include "base/crypto/dsse.hpp"
#include "base/crypto/sha256.hpp"
#include "base/limits.hpp"
#include "base/process/failpoint.hpp"
#include "evidence/attestation/statement.hpp"
#include "gateway/access.hpp"
#include "gateway/methods/knowledge/ledger_rows.hpp"
#include "gateway/methods/methods.hpp"
#include "gateway/methods/tasks/pieces.hpp"
#include "gateway/methods/tasks/task_record.hpp"
#include "gateway/read/pointing.hpp"
#include "gateway/services.hpp"

namespace muniment::gateway::methods {
namespace {

namespace attestation = evidence::attestation;

constexpr std::string_view test_type = "test_output";

// A piece that may be attested.
struct Candidate {
  EvidenceUse use;
  evidence::completion::Piece piece;

  // A recorded command, or an imported one whose key is still trusted, as its event says.
  bool holds_test_result() const { return use.row.type == test_type && !piece.erased && piece.command; }
};

Result<Candidate> candidate_of(Call& call, const std::string& evidence_id) {
  const auto id = parse_uuid(evidence_id);
  if (!id) return Error(Errc::invalid_argument, "evidence_id: expected a UUID.");
  ASSIGN_OR_RETURN(Pieces read, read_pieces(call, {id->text()}, {}));
  if (!read.uses.front())
    return Error(Errc::not_found, fmt::format("no evidence {}. List it: evidence.list", id->text()));
  return Candidate{*std::move(read.uses.front()), std::move(read.pieces.front())};
}

// Returns the first piece that completed the task and holds a test result.
Result<Candidate> candidate_of_task(Call& call) {
  const std::string task_id = call.params["task_id"].string_or("");
  ASSIGN_OR_RETURN(const ReadRun found, find_run_to_read(call, call.params["run_id"].string_or("")));
  ASSIGN_OR_RETURN(const auto task, find_task(*found.reader, found.run->run_id, task_id));
  if (!task || !task->completed_seq)
    return Error(Errc::not_found, fmt::format("run {} has no completed task {}. List them: task.list",
                                              found.run->run_id, json::quote(task_id)));
  for (const std::string& id : task->evidence_ids) {
    auto candidate = candidate_of(call, id);
    if (candidate && candidate->holds_test_result()) return candidate;
  }
  return Error(Errc::conflict,
               fmt::format("no intact evidence of task {} is a recorded test result.", json::quote(task_id)));
}

// Returns the envelope that was imported with the evidence.
Result<std::string> imported_envelope(const store::EvidenceRow& row) {
  ASSIGN_OR_RETURN(const json::Document content, json::parse(std::string_view(*row.content)));
  return content.root()["attestation"]["envelope"].string_or("");
}

Result<std::string> signed_envelope(Call& call, const store::EvidenceRow& row) {
  Envelope envelope;
  envelope.payload_type = attestation::payload_type;
  ASSIGN_OR_RETURN(envelope.payload,
                   attestation::write_statement(*row.content, row.evidence_id.text(), to_hex(row.hash)));
  ASSIGN_OR_RETURN(const NoteSignature signature, call.services.publisher.sign_text(envelope.signed_text()));
  sign_envelope(envelope, signature);
  return envelope.text();
}

// Returns the content with the envelope and the key.
std::string content_with(const std::string& content, const std::string& envelope, const VerifierKey& key) {
  json::Writer out;
  out.begin_object();
  const auto document = json::parse(std::string_view(content));
  for (const json::Value member : document->root()) {
    if (member.key() != "attestation") out.raw_member(member.key(), member.source());
  }
  out.key("attestation").begin_object().member("key", key.text()).member("envelope", envelope).end_object();
  return std::move(out.end_object()).text();
}

// Returns the id of the evidence: one for a command, however often it was recorded and exported, otherwise one for a
// payload. The signer's name is that of its log, which remains when the key is replaced.
Uuid id_of(const attestation::TestStatement& statement, const VerifierKey& key, const std::string& digest) {
  if (statement.command_id.empty()) return make_uuid_v8("attestation/" + digest);
  return make_uuid_v8("attestation/" + key.name + "/" + statement.command_id);
}

// Returns the digest of the payload from which the evidence was recorded; empty: from none, or it was erased.
Result<std::string> attested_payload(const EvidenceUse& use) {
  ASSIGN_OR_RETURN(const auto event, use.reader->confirmed(use.reader->event_at(use.row.seq)));
  if (!event || !event->body) return std::string();
  ASSIGN_OR_RETURN(const json::Document body, json::parse(*event->body));
  return body.root()["attestation"]["payload"].string_or("");
}

// Answers an import whose evidence the caller may read. A different record with the id, which a client may choose, is a
// conflict.
Result<Answer> attested_before(const std::vector<EvidenceUse>& uses, const std::string& digest) {
  for (const EvidenceUse& use : uses) {
    ASSIGN_OR_RETURN(const std::string payload, attested_payload(use));
    if (payload != digest) continue;
    const std::string where = ",\"run_id\":" + json::quote(use.row.run_id);
    return Answer(
        Reply{recorded_json("evidence_id", use.row.evidence_id, &use.row.hash, use.row.seq, true, where), {}});
  }
  const store::EvidenceRow& row = uses.front().row;
  if (is_erased(row))
    return Error(Errc::conflict,
                 fmt::format("evidence {} was erased, and is not recorded again.", row.evidence_id.text()));
  return Error(Errc::conflict,
               fmt::format("evidence {} was recorded by {} with other content than the attestation's. A command is "
                           "imported once: use that evidence, or run the tests again.",
                           row.evidence_id.text(), row.actor));
}

// Refuses a test result that another user imported. Records that a client made with its id do not count; of an erased
// one, nobody knows. An import of the same user that was committed meanwhile is found when the request is made again.
Status check_not_imported(Call& call, const Uuid& id) {
  for (store::Reader* const reader : readers_of_all(call)) {
    ASSIGN_OR_RETURN(const auto rows, reader->evidence_uses(id, std::nullopt, std::nullopt, limits::page_items_max));
    for (const store::EvidenceRow& row : rows) {
      if (row.actor == call.caller.actor) continue;
      ASSIGN_OR_RETURN(const std::string payload, attested_payload({row, reader}));
      if (is_erased(row) || !payload.empty())
        return Error(Errc::conflict,
                     "the test result was imported by another user, and counts once. Run the tests again");
    }
  }
  return success();
}

}  // namespace

Result<Answer> evidence_attest(Call& call) {
  if (!call.reader) return Answer(NeedsWorker{});
  const bool by_task = call.params["task_id"].present();
  if (by_task == call.params["evidence_id"].present() || by_task != call.params["run_id"].present())
    return Error(Errc::invalid_argument, "give evidence_id, or run_id and task_id.");
  ASSIGN_OR_RETURN(const Candidate found,
                   by_task ? candidate_of_task(call) : candidate_of(call, call.params["evidence_id"].string_or("")));
  const auto& [use, piece] = found;
  if (!piece.damage.empty())
    return Error(Errc::conflict, fmt::format("evidence {} is damaged and is not attested: {}",
                                             use.row.evidence_id.text(), piece.damage));
  if (!found.holds_test_result())
    return Error(
        Errc::conflict,
        fmt::format("evidence {} of type {} is not a recorded test result. Record one: muniment exec --evidence "
                    "test_output -- COMMAND",
                    use.row.evidence_id.text(), json::quote(use.row.type)));
  if (piece.expires_at || !piece.depends_on.empty())
    return Error(Errc::conflict,
                 fmt::format("evidence {} expires or depends on other evidence, which an attestation cannot state. "
                             "Record the command without these terms",
                             use.row.evidence_id.text()));
  ASSIGN_OR_RETURN(const std::string envelope,
                   piece.attested_by.empty() ? signed_envelope(call, use.row) : imported_envelope(use.row));
  note_log(call, *use.reader);
  json::Writer out;
  out.begin_object().member("evidence_id", use.row.evidence_id.text()).member("envelope", envelope).end_object();
  return Answer(Reply{std::move(out).text(), {}});
}

Result<Answer> import_attestation(Call& call, const std::shared_ptr<store::Run>& run) {
  const std::string text = call.params["envelope"].string_or("");
  ASSIGN_OR_RETURN(const Envelope envelope, Envelope::parse(text));
  const VerifierKey* const key = signer_of(envelope, call.services.attestation_keys);
  if (key == nullptr)
    return Error(
        Errc::denied,
        call.services.attestation_keys.empty()
            ? std::string("the daemon trusts no key for attestations. The operator can name a file of keys with "
                          "the setting attestation_keys")
            : "no key that the daemon trusts (setting attestation_keys) signed the attestation. Nothing was "
              "recorded");
  if (signer_of(envelope, call.services.publisher.keys()) != nullptr)
    return Error(Errc::invalid_argument,
                 "this log signed the attestation, and has its test result. Use the evidence that was exported");
  if (!attestation::is_statement_type(envelope.payload_type))
    return Error(Errc::invalid_argument, "the payloadType is not application/vnd.in-toto+json");
  ASSIGN_OR_RETURN(const attestation::TestStatement statement, attestation::parse_statement(envelope.payload));
  const std::string digest = to_hex(sha256(envelope.payload));
  const Uuid id = id_of(statement, *key, digest);
  const std::int64_t known_upto = call.services.appender.status().size;
  const auto uses = evidence_uses(call, id, std::nullopt);
  if (uses) return attested_before(*uses, digest);
  if (uses.error().code != Errc::not_found) return uses.error();
  FAILPOINT("attestation.unknown");
  RETURN_IF_ERROR(check_not_imported(call, id));
  RETURN_IF_ERROR(check_open(*run));
  RETURN_IF_ERROR(begin_referring(call));
  store::EvidenceRow row;
  row.evidence_id = id;
  row.run_id = run->run_id;
  row.type = test_type;
  row.content = content_with(content_of(statement, format_time(call.services.clock.now())), text, *key);
  row.validator_id = key->name;
  row.actor = call.caller.actor;
  ASSIGN_OR_RETURN(const json::Document content, json::parse(std::string_view(*row.content)));
  row.hash = hash_of_content(content.root());
  const Hash hash = row.hash;
  json::Writer vouched;
  vouched.begin_object().member("key", key->text()).member("payload", digest).end_object();
  ASSIGN_OR_RETURN(std::string body, recorded_body(row, ",\"attestation\":" + vouched.text()));
  events::NewEvent event =
      make_event(call, *run, "evidence.recorded", std::move(body), call.params["step_id"].string_or(""));
  Answer answer = record_entry(call, {run, std::move(event), std::move(row), "evidence_id", id, hash}, {id, {}}, {});
  // The second of two simultaneous imports, into any runs, is made again and finds the first.
  store::AppendRequest& request = std::get<PendingAppend>(answer).request;
  request.names = {"imports " + id.text()};
  request.names_known_upto = known_upto;
  request.names_run = call.services.runs.find(log_run_id);
  FAILPOINT("attestation.looked_up");
  return answer;
}

}  // namespace muniment::gateway::methods
