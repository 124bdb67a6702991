// audit.redact: lists every copy of an event, an artifact or a run, and erases them.
#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "audit/redaction.hpp"
#include "base/limits.hpp"
#include "base/memory_names.hpp"
#include "base/process/failpoint.hpp"
#include "gateway/access.hpp"
#include "gateway/methods/methods.hpp"
#include "gateway/read/index_wait.hpp"
#include "gateway/services.hpp"
#include "retrieval/service.hpp"

namespace muniment::gateway::methods {
namespace {

constexpr std::size_t listed_max = 1'000;
constexpr std::size_t copies_named_max = 20;

constexpr std::string_view remains =
    "Ids, types, actors, steps and times of the events, the run's id, its parents' records of it, and the hashes stay: "
    "they are hashed into the log; so does an artifact's SHA-256 in records that name it, by which few bytes can be guessed. Backups, exports and the database's write-ahead log hold what was erased until they are "
    "rotated, the free space of its pages until it is used again, and uploads that were not finished keep their pieces until their time is over: docs/runbook.md (erasure).";

Result<store::ErasureTarget> target_of(const json::Value& params) {
  store::ErasureTarget target;
  target.seq = params["seq"].as_int();
  target.artifact_id = parse_uuid(params["artifact_id"].string_or(""));
  target.run_id = params["run_id"].as_string();
  const int named = (target.seq ? 1 : 0) + (target.artifact_id ? 1 : 0) + (target.run_id ? 1 : 0);
  if (named == 1) return target;
  return Error(Errc::invalid_argument, "audit.redact needs exactly one of seq, artifact_id and run_id.");
}

// Erasing needs an event in the same log, and a closed log accepts none.
Error not_erasable(const store::Run& run) {
  Error error(
      Errc::conflict,
      fmt::format(
          "run {} is in log {}, which was restored and is closed: nothing can be erased from it, since the events that record an erasure cannot be appended to "
          "it. To remove the content, delete that database and the backups that hold it; a document that was carried over is "
          "erased in the current log. See docs/runbook.md (erasure, backup)",
          run.run_id, run.closed_log));
  error.run_id = run.run_id;
  return error;
}

Status check_not_closed(Call& call, const store::ErasureTarget& target) {
  if (target.artifact_id) {
    ASSIGN_OR_RETURN(const auto found, find_in_all<store::ArtifactRow>(call, [&](store::Reader& reader) {
                       return reader.artifact(*target.artifact_id);
                     }));
    if (!found.row || found.reader == call.reader) return success();
    // The search includes the closed log's `_log`, which differs from the `_log` of the current log.
    ASSIGN_OR_RETURN(const auto closed, store::find_run(*earlier_log(call.services, found.reader->log_no()),
                                                        *call.reader, found.row->run_id));
    return closed ? Status(not_erasable(*closed)) : success();
  }
  const std::string run_id = target.run_id.value_or("");
  if (run_id.empty() || run_id == log_run_id) return success();
  ASSIGN_OR_RETURN(const auto present, load_run(call, run_id));
  ASSIGN_OR_RETURN(const auto closed, find_earlier_run(call, run_id));
  const bool theirs = closed && (!present || present->view().status == store::RunStatus::absent);
  return theirs ? Status(not_erasable(*closed)) : success();
}

struct Copies {
  std::vector<store::CarriedFrom> places{};
  bool all = true;  // the earlier logs were searched too
};

// Finds copies in closed logs of documents that were carried over; each copy was made from the copy in the preceding
// log. The erasure has to be answered before the deadline, so the search may use half of the remaining time.
Result<Copies> closed_copies(Call& call, const store::ErasurePlan& plan) {
  const Monotonic now = call.services.clock.monotonic();
  const Monotonic until = call.deadline <= now ? now : now + (call.deadline - now) / 2;
  Copies found{plan.carried};
  std::vector<store::CarriedFrom>& copies = found.places;
  for (const store::ErasurePlan& other : plan.elsewhere)
    copies.insert(copies.end(), other.carried.begin(), other.carried.end());
  for (std::size_t i = 0; i < copies.size(); ++i) {
    const store::EarlierLog* const log = earlier_log(call.services, copies[i].log_no);
    if (log == nullptr) continue;
    FAILPOINT("redact.asks_copy");
    found.all = call.services.clock.monotonic() < until;
    if (!found.all) break;
    ASSIGN_OR_RETURN(const auto event, call.reader->of(log->place).event_at(copies[i].seq));
    if (!event || !event->body) continue;
    if (const auto before = store::carried_from(*event->body)) copies.push_back(*before);
  }
  return found;
}

std::string what_remains(const Copies& found) {
  const std::vector<store::CarriedFrom>& copies = found.places;
  std::string words(remains);
  if (copies.empty()) return words;
  words += fmt::format(
      " Closed logs keep copies of what was carried over from them ({} of documents, with their bytes), which cannot be erased (docs/runbook.md, backup):",
      copies.size());
  for (std::size_t i = 0; i < std::min(copies_named_max, copies.size()); ++i) {
    words += fmt::format("{} seq {} of log {}", i == 0 ? "" : ",", copies[i].seq, copies[i].log_no);
  }
  words += copies.size() > copies_named_max ? ", …" : ".";
  return words +
         (found.all
              ? ""
              : " Not all of them were checked within the deadline: documents that were carried over more than once may have more copies in older logs.");
}

// Includes the documents that corpora made of the content. Their events are in the run _log.
void write_plan(json::Writer& out, const store::ErasurePlan& plan, const Copies& copies) {
  std::vector<store::ErasedArtifact> artifacts = plan.artifacts;
  std::int64_t documents = plan.documents;
  for (const store::ErasurePlan& other : plan.elsewhere) {
    artifacts.insert(artifacts.end(), other.artifacts.begin(), other.artifacts.end());
    documents += other.documents;
  }
  out.member("run_id", plan.run_id).member("events", plan.seqs.size()).key("seqs").begin_array();
  for (std::size_t i = 0; i < std::min(listed_max, plan.seqs.size()); ++i) out.number(plan.seqs[i]);
  out.end_array().key("artifacts").begin_array();
  for (std::size_t i = 0; i < std::min(listed_max, artifacts.size()); ++i) {
    const store::ErasedArtifact& artifact = artifacts[i];
    out.begin_object()
        .member("artifact_id", artifact.artifact_id.text())
        .member("path", artifact.path)
        .member("size_bytes", artifact.size_bytes)
        .end_object();
  }
  out.end_array().member("artifact_files", artifacts.size()).member("documents", documents);
  out.member("manifests", plan.manifests).member("claims", plan.claims).member("evidence", plan.evidence);
  out.member("pointers", plan.pointers).member("snapshots", plan.snapshots).key("needed").begin_array();
  for (std::size_t i = 0; i < std::min(listed_max, plan.needed.size()); ++i) out.string(plan.needed[i]);
  out.end_array().key("answers").begin_array();
  for (std::size_t i = 0; i < std::min(listed_max, plan.answers.size()); ++i)
    out.begin_object().member("seq", plan.answers[i].seq).member("run_id", plan.answers[i].run_id).end_object();
  out.end_array().member("remains", what_remains(copies));
}

}  // namespace

Result<Answer> audit_redact(Call& call) {
  if (!call.reader) return Answer(NeedsWorker{});
  RETURN_IF_ERROR(check_admin(call, "erase"));
  audit::RedactionRequest request;
  ASSIGN_OR_RETURN(request.target, target_of(call.params));
  RETURN_IF_ERROR(check_not_closed(call, request.target));
  const bool dry_run = call.params["dry_run"].as_bool().value_or(false);
  json::Writer out;
  out.begin_object().member("dry_run", dry_run);
  if (dry_run) {
    ASSIGN_OR_RETURN(const store::ErasurePlan plan, call.services.redactor.plan(*call.reader, request.target));
    ASSIGN_OR_RETURN(const auto copies, closed_copies(call, plan));
    write_plan(out, plan, copies);
  } else {
    request.reason = call.params["reason"].string_or("");
    request.legal_basis = call.params["legal_basis"].string_or("");
    request.by = call.caller.actor;
    request.begin = [&call] { return call.begin_writing(); };
    ASSIGN_OR_RETURN(const audit::Redacted done, call.services.redactor.redact(*call.reader, request, call.deadline));
    ASSIGN_OR_RETURN(const auto copies, closed_copies(call, done.plan));
    write_plan(out, done.plan, copies);
    out.member("seq", done.seq);
    if (done.snapshot_seq) out.member("snapshot_seq", *done.snapshot_seq);
    // The indexes are updated asynchronously; the reply waits until no query finds the content.
    const bool unindexed = wait_until_searchable(call.services, call.services.tail.next_seq() - 1, call.deadline).ok();
    out.member("unindexed", unindexed);
  }
  return Answer(Reply{std::move(out.end_object()).text(), {}});
}

namespace {

// Adds the artifacts that hold the document's revisions, and nothing else. Errors: as for erase_document.
Status add_files(Call& call, const std::string& corpus, const std::string& document, std::set<Uuid>& files) {
  std::optional<std::int64_t> before;
  do {
    ASSIGN_OR_RETURN(const auto rows, call.reader->document_history(corpus, document, before, limits::page_items_max));
    before = rows.size() < limits::page_items_max ? std::nullopt : std::optional(rows.back().seq);
    for (const store::DocumentRow& row : rows) {
      if (row.ended_by == "erased") continue;
      ASSIGN_OR_RETURN(const auto file, call.reader->artifact(row.artifact_id));
      if (file && (file->run_id != log_run_id || file->size_bytes != row.size_bytes)) {
        return Error(
            Errc::conflict,
            fmt::format("{}/{} shares the artifact {} with other documents or a run. Erase that: audit.redact.", corpus,
                        document, row.artifact_id.text()));
      }
      files.insert(row.artifact_id);
    }
  } while (before);
  return success();
}

}  // namespace

Result<Answer> erase_document(Call& call, const std::string& corpus, const std::string& document) {
  RETURN_IF_ERROR(check_admin(call, "erase"));
  std::set<Uuid> files;
  RETURN_IF_ERROR(add_files(call, corpus, document, files));
  RETURN_IF_ERROR(add_files(call, corpus + std::string(review_ending), document, files));  // the text before its review
  if (files.empty()) return Error(Errc::not_found, fmt::format("no text of {}/{} is left to erase.", corpus, document));
  audit::RedactionRequest request;
  request.reason = call.params["reason"].string_or("");
  request.by = call.caller.actor;
  request.begin = [&call] { return call.begin_writing(); };
  std::int64_t seq = -1;
  std::map<std::int64_t, std::string> answers;  // the runs of those that quote it, by seq
  for (const Uuid& file : files) {
    request.target.artifact_id = file;
    ASSIGN_OR_RETURN(const audit::Redacted done, call.services.redactor.redact(*call.reader, request, call.deadline));
    seq = done.seq;
    for (const store::CitingAnswer& answer : done.plan.answers) answers.emplace(answer.seq, answer.run_id);
  }
  const bool unindexed = wait_until_searchable(call.services, call.services.tail.next_seq() - 1, call.deadline).ok();
  json::Writer out;
  out.begin_object().member("corpus", corpus).member("document", document).member("seq", seq);
  out.member("erased_files", files.size()).member("unindexed", unindexed).key("answers").begin_array();
  for (const auto& [answer, run_id] : answers)
    out.begin_object().member("seq", answer).member("run_id", run_id).end_object();
  out.end_array().end_object();
  return Answer(Reply{std::move(out).text(), {}});
}

}  // namespace muniment::gateway::methods
