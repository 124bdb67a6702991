// Reads the evidence of a completion, and compares it with the log.
#include "gateway/methods/tasks/pieces.hpp"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "base/crypto/dsse.hpp"
#include "base/crypto/sha256.hpp"
#include "base/limits.hpp"
#include "gateway/access.hpp"
#include "gateway/methods/knowledge/evidence_terms.hpp"
#include "gateway/methods/tasks/command_evidence.hpp"
#include "gateway/services.hpp"
#include "store/files/artifact_row.hpp"

namespace muniment::gateway::methods {
namespace {

using evidence::completion::Piece;

constexpr std::int64_t artifact_bytes_max = 256 * 1024;  // bytes that are read from a pointer's artifact for the checks
constexpr std::size_t accepted_max = 1000;               // pieces of a run that are compared by their shape
constexpr std::size_t twins_max = 100;                   // pieces with the same hash that are compared

class PieceReader {
 public:
  PieceReader(Call& call, const PiecesFor& task) : call_(call), task_(task) {}

  Result<Pieces> read(const std::vector<std::string>& ids) {
    for (const std::string& id : ids) {
      RETURN_IF_ERROR(check_deadline());
      if (const auto again = std::ranges::find(ids, id) - ids.begin(); again < std::ssize(read_.pieces)) {
        read_.pieces.push_back(read_.pieces[static_cast<std::size_t>(again)]);  // a repeated id is read once
        read_.uses.push_back(read_.uses[static_cast<std::size_t>(again)]);
        continue;
      }
      Piece piece;
      piece.evidence_id = id;
      ASSIGN_OR_RETURN(std::optional<EvidenceUse> use, find(id));
      if (use) RETURN_IF_ERROR(fill(piece, *use));
      if (use && !is_erased(use->row)) RETURN_IF_ERROR(look_up_reuse(piece, *use));
      RETURN_IF_ERROR(read_dependencies(piece));
      read_.pieces.push_back(std::move(piece));
      read_.uses.push_back(std::move(use));
    }
    return std::move(read_);
  }

 private:
  // Returns the use in the task's run, otherwise the first one that the caller may see.
  Result<std::optional<EvidenceUse>> find(const std::string& text) {
    const auto id = parse_uuid(text);
    if (!id) return std::optional<EvidenceUse>();
    auto uses = evidence_uses(call_, *id, std::nullopt);
    if (!uses && uses.error().code == Errc::not_found) return std::optional<EvidenceUse>();
    if (!uses) return std::move(uses).error();
    const auto own = std::ranges::find_if(
        *uses, [&](const EvidenceUse& use) { return use.row.run_id == task_.run_id && !is_erased(use.row); });
    return std::optional(own == uses->end() ? uses->front() : *own);
  }

  Status fill(Piece& piece, const EvidenceUse& use) {
    const store::EvidenceRow& row = use.row;
    piece.found = true;
    piece.erased = is_erased(row);
    piece.type = row.type;
    piece.actor = row.actor;
    piece.validator_id = row.validator_id.value_or("");
    piece.names_other_actor = piece.validator_id != row.actor &&
                              (piece.validator_id.starts_with("uid:") || piece.validator_id == events::daemon_actor);
    piece.recorded_at = row.created_at;
    piece.recorded_before_task = task_.opened_at && row.created_at < *task_.opened_at;
    if (piece.erased) return success();
    ASSIGN_OR_RETURN(const auto event, use.reader->event_at(row.seq));
    if (!event || event->type != "evidence.recorded") {
      piece.damage = fmt::format("the log has no evidence.recorded event at seq {}", row.seq);
      return success();
    }
    RETURN_IF_ERROR(compare_with_event(piece, use, *event));
    if (piece.erased) return success();
    if (const Status held = use.reader->confirm(std::vector{*event}); !held && piece.damage.empty()) {
      if (is_transient(held.error().code)) return held;
      piece.damage = held.error().message;
      return success();
    }
    return read_content(piece, use, *event);
  }

  Status check_deadline() const {
    if (call_.services.clock.monotonic() <= call_.deadline) return success();
    return Error(Errc::deadline_exceeded, "the evidence was not read in time. Send fewer pieces.");
  }

  // Reads a dependency once, without what only the checks of a direct piece need.
  Result<Piece> read_dependency(const std::string& id) {
    if (const auto known = dependencies_.find(id); known != dependencies_.end()) return known->second;
    RETURN_IF_ERROR(check_deadline());
    Piece dependency;
    dependency.evidence_id = id;
    ASSIGN_OR_RETURN(const std::optional<EvidenceUse> use, find(id));
    if (use) RETURN_IF_ERROR(fill(dependency, *use));
    dependency.text.clear();
    dependency.content.clear();
    if (dependency.command) {
      dependency.command->argv.clear();
      dependency.command->report.reset();
      dependency.command->tests_changed.clear();
    }
    return dependencies_.emplace(id, std::move(dependency)).first->second;
  }

  // Reads the dependencies by their distance. An id occurs once, even if the same pointer was recorded in several runs
  // with different dependencies.
  Status read_dependencies(Piece& piece) {
    std::set<std::string> seen{piece.evidence_id};
    std::vector<std::string> level = piece.depends_on;
    for (std::size_t depth = 0; !level.empty(); ++depth) {
      std::vector<std::string> next;
      for (const std::string& id : level) {
        if (!seen.insert(id).second) continue;
        piece.dependencies_cut =
            depth == limits::evidence_dependency_depth_max ||
            piece.dependencies.size() == limits::evidence_dependencies_max ||
            (!dependencies_.contains(id) && dependencies_.size() == limits::evidence_dependencies_request_max);
        if (piece.dependencies_cut) return success();
        ASSIGN_OR_RETURN(Piece dependency, read_dependency(id));
        next.insert(next.end(), dependency.depends_on.begin(), dependency.depends_on.end());
        piece.dependencies.push_back(std::move(dependency));
      }
      level = std::move(next);
    }
    return success();
  }

  // Returns the key that vouches for imported evidence: the one of the import or, if it is no longer trusted, another
  // one that signed the same envelope. Empty: none.
  std::string trusted_signer(const json::Value& body) const {
    const json::Value attestation = body["attestation"];
    if (!attestation) return {};
    const auto& keys = call_.services.attestation_keys;
    std::string key = attestation["key"].string_or("");
    if (std::ranges::find(keys, key, &VerifierKey::text) != keys.end()) return key;
    const auto envelope = Envelope::parse(body["content"]["attestation"]["envelope"].string_or(""));
    if (!envelope || to_hex(sha256(envelope->payload)) != attestation["payload"].string_or("")) return {};
    const VerifierKey* const signer = signer_of(*envelope, keys);
    return signer != nullptr ? signer->text() : std::string();
  }

  // Checks that the row equals the event, and that the event's body matches the hash that the chain covers.
  Status compare_with_event(Piece& piece, const EvidenceUse& use, const events::Event& event) {
    const store::EvidenceRow& row = use.row;
    piece.erased = !event.body || !event.salt;
    if (piece.erased) return success();
    if (sha256({view(*event.salt), *event.body}) != event.body_hash) {
      piece.damage = fmt::format("the body of event {} does not match its hash", row.seq);
      return success();
    }
    ASSIGN_OR_RETURN(const json::Document document, json::parse(*event.body));
    const json::Value body = document.root();
    const bool same =
        parse_uuid(body["evidence_id"].string_or("")) == row.evidence_id && body["type"].string_or("") == row.type &&
        body["hash"].string_or("") == to_hex(row.hash) && body["pointer"].as_string() == row.pointer &&
        body["validator_id"].as_string() == row.validator_id && body["task_id"].as_string() == row.task_id &&
        parse_uuid(body["command_id"].string_or("")) == row.command_id && event.actor == row.actor &&
        body["corpus_id"].as_string() == row.corpus_id && body["index_id"].as_string() == row.index_id &&
        body["chunk_id"].as_string() == row.chunk_id && body["span"].as_string() == row.span &&
        event.run_id == row.run_id && event.recorded_at == row.created_at &&
        (!row.content || body["content"].source() == *row.content);
    if (!same) piece.damage = fmt::format("the ledger differs from event {}", row.seq);
    if (same) piece.attested_by = trusted_signer(body);
    if (same && (body["command_id"].present() || !piece.attested_by.empty()))
      piece.command = command_of(body["content"]);
    if (const auto seconds = body["expires_in_seconds"].as_int())
      piece.expires_at = expiry_of(row.created_at, *seconds);
    for (const json::Value item : body["depends_on"]) {
      const auto id = parse_uuid(item.string_or(""));
      if (id) piece.depends_on.push_back(id->text());
    }
    if (const json::Value source = body["source"]) {
      piece.imported = true;
      piece.stated_at = parse_time(source["timestamp"].string_or(""));
    }
    return success();
  }

  Status read_content(Piece& piece, const EvidenceUse& use, const events::Event& event) {
    if (use.row.content) {
      ASSIGN_OR_RETURN(const json::Document document, json::parse(*use.row.content));
      piece.content = *use.row.content;
      piece.text = document.root()["text"].as_string().value_or(json::canonical(document.root()));
    }
    ASSIGN_OR_RETURN(evidence::Outcome outcome, look_at_evidence(call_, use, event));
    const evidence::Resolution* const found = own_pointer(use.row, outcome);
    ASSIGN_OR_RETURN(const EvidenceState state, compare_evidence(call_, use.row, outcome));
    if (!state.ok && piece.damage.empty()) piece.damage = state.detail.empty() ? state.reason : state.detail;
    piece.erased = std::ranges::any_of(outcome.items, [](const auto& item) { return item.resolution.erased; });
    if (found != nullptr && state.ok) RETURN_IF_ERROR(read_pointer(piece, *found));
    add(std::move(outcome));
    return success();
  }

  // Reads the pointer's target as text; for a whole artifact, only its beginning.
  Status read_pointer(Piece& piece, const evidence::Resolution& found) {
    if (found.text) {
      piece.text = *found.text;
      return success();
    }
    if (!found.parsed || found.parsed->kind != evidence::PointerKind::artifact) return success();
    const Uuid& id = found.parsed->id;
    ASSIGN_OR_RETURN(const auto artifact, find_in_all<store::ArtifactRow>(
                                              call_, [&](store::Reader& reader) { return reader.artifact(id); }));
    if (!artifact.row) return success();
    ASSIGN_OR_RETURN(piece.text, call_.services.files.read(store::file_of(*artifact.row), 0,
                                                           std::min(artifact.row->size_bytes, artifact_bytes_max)));
    return success();
  }

  // Finds a task that was completed with this piece or a copy of it, and an earlier copy that is older than the task.
  Status look_up_reuse(Piece& piece, const EvidenceUse& use) {
    const bool little = says_little(piece);
    ASSIGN_OR_RETURN(const auto spent, use.reader->spent_on_another(use.row, !little, task_.run_id, task_.task_id));
    if (spent) piece.spent_on = spent->task_id;
    if (use.reader != call_.reader || use.row.pointer || little) return success();
    RETURN_IF_ERROR(look_up_resembling(piece, use));
    ASSIGN_OR_RETURN(const auto twins, call_.reader->evidence_with_hash(use.row.hash, use.row.seq, twins_max));
    for (const store::EvidenceUse& twin : twins) {
      if (twin.actor != use.row.actor) continue;
      if (task_.opened_at && !piece.recorded_before_task && twin.created_at < *task_.opened_at)
        piece.copied_from = twin.evidence_id.text();
    }
    return success();
  }

  // Short values such as {"reviewer": "ann", "approved": true} are naturally alike and do not count as copies.
  static bool says_little(const Piece& piece) {
    const auto content = json::parse(std::string_view(piece.content));
    return content && !content->root()["text"].present() && evidence::completion::shape_of(piece.text).empty();
  }

  // Finds evidence that completed another task of the run and differs only in its numbers.
  Status look_up_resembling(Piece& piece, const EvidenceUse& use) {
    const std::string shape = evidence::completion::shape_of(piece.text);
    if (shape.empty() || task_.run_id.empty() || piece.command || !piece.spent_on.empty()) return success();
    RETURN_IF_ERROR(read_accepted());
    for (const auto& [id, accepted] : *accepted_) {
      if (id != use.row.evidence_id && accepted == shape) piece.resembles = id.text();
    }
    return success();
  }

  // Reads the shapes of the accepted evidence of the task's run.
  Status read_accepted() {
    if (accepted_) return success();
    accepted_.emplace();
    store::EvidenceFilter filter;
    filter.run_id = task_.run_id;
    filter.held = false;
    ASSIGN_OR_RETURN(const auto rows, call_.reader->evidence(filter, accepted_max));
    std::vector<std::int64_t> seqs;
    for (const store::EvidenceRow& row : rows) seqs.push_back(row.seq);
    ASSIGN_OR_RETURN(const auto spent, call_.reader->evidence_spent(seqs));
    for (const store::EvidenceRow& row : rows) {
      const bool accepted = std::ranges::any_of(
          spent, [&](const auto& one) { return one.evidence_seq == row.seq && one.task_id != task_.task_id; });
      if (!accepted || !row.content || row.command_id) continue;
      ASSIGN_OR_RETURN(const json::Document content, json::parse(*row.content));
      const std::string text = content.root()["text"].as_string().value_or(json::canonical(content.root()));
      accepted_->emplace_back(row.evidence_id, evidence::completion::shape_of(text));
    }
    return success();
  }

  // The texts are dropped: up to half a megabyte for each piece and dependency would remain until the reply.
  void add(evidence::Outcome outcome) {
    for (auto& item : outcome.items) item.resolution.text.reset();
    std::ranges::move(outcome.items, std::back_inserter(read_.outcome.items));
    std::ranges::move(outcome.events, std::back_inserter(read_.outcome.events));
    std::ranges::move(outcome.halts, std::back_inserter(read_.outcome.halts));
  }

  Call& call_;
  const PiecesFor& task_;
  Pieces read_;
  std::map<std::string, Piece> dependencies_;                          // those read so far, by id
  std::optional<std::vector<std::pair<Uuid, std::string>>> accepted_;  // evidence and its shape; nullopt: not read yet
};

}  // namespace

Result<Pieces> read_pieces(Call& call, const std::vector<std::string>& ids, const PiecesFor& task) {
  return PieceReader(call, task).read(ids);
}

}  // namespace muniment::gateway::methods
