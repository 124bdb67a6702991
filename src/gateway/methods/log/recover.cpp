// run.recover lists the damaged dependencies of a run, restores a file, and resumes the run once none is damaged.
// server.rebuild makes the derived tables again from the log.
#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "base/files/file.hpp"
#include "base/files/memory_file.hpp"
#include "base/limits.hpp"
#include "evidence/halt_journal.hpp"
#include "evidence/pointer_follower.hpp"
#include "evidence/rebuild.hpp"
#include "gateway/access.hpp"
#include "gateway/methods/methods.hpp"
#include "gateway/read/corpora.hpp"
#include "gateway/read/pointing.hpp"
#include "gateway/read/survey.hpp"
#include "gateway/services.hpp"
#include "retrieval/corpus/document_follower.hpp"
#include "store/files/artifact_row.hpp"

namespace muniment::gateway::methods {
namespace {

// The document and the reader of its log, which may be a closed log.
struct FoundDocument {
  store::CitedDocument cited;
  store::Reader* reader = nullptr;
};

Result<FoundDocument> find_document(Call& call, const evidence::Pointer& pointer) {
  for (store::Reader* const reader : readers_of_all(call)) {
    ASSIGN_OR_RETURN(const auto cited, reader->cited({{pointer.corpus, pointer.document, pointer.revision, -1}}));
    const store::CitedDocument& found = cited.front();
    if (found.document && may_see_corpus(call.caller, found.owner)) return FoundDocument{found, reader};
  }
  return Error(Errc::not_found, "no document " + pointer.text);
}

// The result for a named file: it was restored, or it was intact. A copy that does not match is an error in either
// case.
enum class Repair : std::uint8_t { put_back, as_recorded };

struct Named {
  std::string pointer;  // empty: no file was named
  Repair repair = Repair::put_back;
};

Result<Repair> put_back(Call& call, const store::ArtifactRow& row, const std::string& file) {
  ASSIGN_OR_RETURN(const bool was_put_back, call.services.files.repair(store::file_of(row), file));
  return was_put_back ? Repair::put_back : Repair::as_recorded;
}

// Repairs a document whose bytes are a span of an artifact: writes the artifact with that span replaced.
Result<Repair> repair_document(Call& call, const evidence::Pointer& pointer, const std::string& file) {
  ASSIGN_OR_RETURN(const FoundDocument found, find_document(call, pointer));
  const store::DocumentRow& row = *found.cited.document;
  ASSIGN_OR_RETURN(const auto artifact, found.reader->artifact(row.text_artifact()));
  if (!artifact) return Error(Errc::corrupt, "no artifact " + row.text_artifact().text());
  if (row.text_artifact_id || row.size_bytes == artifact->size_bytes) return put_back(call, *artifact, file);
  ASSIGN_OR_RETURN(const std::string copy, read_named(file, static_cast<std::size_t>(limits::document_bytes_max)));
  if (std::ssize(copy) != row.size_bytes) {
    return Error(Errc::invalid_argument, fmt::format("{} is {} bytes, {} is {}. Nothing was changed.", file,
                                                     copy.size(), pointer.document, row.size_bytes));
  }
  std::string repaired;
  const auto repair = [&](std::string_view bytes) {
    repaired = bytes;
    repaired.replace(static_cast<std::size_t>(row.start_byte), copy.size(), copy);
    return sha256(repaired);
  };
  const auto fits =
      call.services.files.read_hashed(artifact->path, 0, artifact->size_bytes, artifact->hash, nullptr, repair);
  if (!fits && repaired.empty()) return fits.error();
  if (!fits) {
    return Error(
        Errc::invalid_argument,
        fmt::format(
            "{} differs from the ingested bytes, or other documents of its artifact {} are damaged too. Nothing was changed.",
            file, artifact->artifact_id.text()));
  }
  ASSIGN_OR_RETURN(const Fd whole, memory_file("repair", repaired));
  return put_back(call, *artifact, fmt::format("/proc/self/fd/{}", whole.get()));
}

Result<Repair> repair(Call& call, const json::Value& repair) {
  const std::string text = repair["pointer"].string_or("");
  ASSIGN_OR_RETURN(const evidence::Pointer pointer, evidence::parse_pointer(text));
  if (pointer.kind == evidence::PointerKind::evidence && pointer.corpus != "run")
    return repair_document(call, pointer, repair["file"].string_or(""));
  if (pointer.kind != evidence::PointerKind::artifact) {
    return Error(
        Errc::invalid_argument,
        text +
            " is neither an artifact nor a document: only files can be repaired. Manifests and snapshots are stored in Postgres: restore the database from a backup.");
  }
  // The artifact may be in a closed log, but the reply does not name that log.
  ASSIGN_OR_RETURN(const auto found, find_in_all<store::ArtifactRow>(
                                         call, [&](store::Reader& reader) { return reader.artifact(pointer.id); }));
  const auto& row = found.row;
  if (!row || row->run_id != pointer.run_id) return Error(Errc::not_found, "no artifact " + text);
  ASSIGN_OR_RETURN(const bool visible, sees_run(call, row->run_id, found.reader->log_no()));
  if (!visible) return Error(Errc::not_found, "no artifact " + text);
  return put_back(call, *row, repair["file"].string_or(""));
}

std::string_view status_name(store::RunStatus status) {
  switch (status) {
    case store::RunStatus::absent: return "absent";
    case store::RunStatus::open: return "open";
    case store::RunStatus::ended: return "ended";
    case store::RunStatus::halted: return "halted";
  }
  return "";
}

std::string recover_json(const store::Run& run, const Survey& found, const Named& named,
                         std::optional<std::int64_t> resumed_seq) {
  const store::RunView view = run.view();
  json::Writer out;
  out.begin_object().member("run_id", run.run_id).member("status", resumed_seq ? "open" : status_name(view.status));
  if (view.halt) {
    out.key("halt")
        .begin_object()
        .member("code", view.halt->code)
        .member("reason", view.halt->reason)
        .member("pointer", view.halt->pointer)
        .member("since", format_time(view.halt->at))
        .member("seq", view.halt->seq)
        .end_object();
  }
  out.member("checked", found.checked).key("damage").begin_array();
  for (const Damage& damage : found.damage) {
    json::Writer item;
    write_resolution(item, damage.found, true);
    std::string text = std::move(item).text();
    text.pop_back();  // removes the closing brace; the dependents are added inside
    json::Writer needed_by;
    needed_by.begin_array();
    for (const std::string& needed : damage.needed_by) needed_by.string(needed);
    needed_by.end_array();
    out.raw(text + ",\"needed_by\":" + needed_by.text() + "}");
  }
  out.end_array();
  if (!named.pointer.empty()) out.member(named.repair == Repair::put_back ? "repaired" : "as_recorded", named.pointer);
  out.member("resumed", resumed_seq.has_value());
  if (resumed_seq) out.member("seq", *resumed_seq);
  out.end_object();
  return std::move(out).text();
}

}  // namespace

Result<Answer> run_recover(Call& call) {
  if (!call.reader) return Answer(NeedsWorker{});
  const json::Value& params = call.params;
  ASSIGN_OR_RETURN(const auto run, find_run(call, params["run_id"].string_or("")));
  Named named;
  if (params["repair"]) {
    RETURN_IF_ERROR(check_admin(call, "let the daemon read a file"));
    RETURN_IF_ERROR(call.begin_writing());
    ASSIGN_OR_RETURN(named.repair, repair(call, params["repair"]));
    call.has_written();
    named.pointer = params["repair"]["pointer"].string_or("");
  }
  ASSIGN_OR_RETURN(const Survey found, survey(call, *run));
  const bool wanted = params["resume"].as_bool().value_or(true);
  if (run->view().status != store::RunStatus::halted || !found.damage.empty() || !wanted) {
    return Answer(Reply{recover_json(*run, found, named, std::nullopt), {}});
  }
  if (run->fail_stopped() || call.services.halts.holds(run->run_id)) {
    Error error(Errc::unavailable, "the halt of " + run->run_id +
                                       " is in the halt journal and not yet in the log. Retry when Postgres answers.");
    error.retry_after_ms = 2'000;
    return error;
  }
  const bool put_back = !named.pointer.empty() && named.repair == Repair::put_back;
  const std::string fallback =
      put_back ? "put back " + named.pointer
               : fmt::format("{} critical pointers were checked, and none is damaged", found.checked);
  json::Writer body;
  body.begin_object().member("kind", "recovered").member("why", params["why"].string_or(fallback)).end_object();
  PendingAppend append;
  append.request.actor = call.caller.actor;
  append.request.events.push_back({run, make_event(call, *run, "run.resumed", body.text())});
  append.finish = [run, found, named](Services&, const std::vector<events::Receipt>& receipts) -> Result<Reply> {
    return Reply{recover_json(*run, found, named, receipts.front().seq), {}};
  };
  return Answer(std::move(append));
}

Result<Answer> server_rebuild(Call& call) {
  if (!call.reader) return Answer(NeedsWorker{});
  if (!call.caller.admin) return Error(Errc::denied, "only root and the daemon's own user may rebuild its tables.");
  std::vector<std::string> tables;
  for (const json::Value item : call.params["tables"]) tables.push_back(item.string_or(""));
  RETURN_IF_ERROR(call.begin_writing());
  retrieval::IndexedRuns runs;
  ASSIGN_OR_RETURN(
      const evidence::RebuildReport report,
      evidence::rebuild(call.reader->place(), call.services.tail.next_seq(), tables, [&](const events::Event& event) {
        return retrieval::corpus_change(event, runs, *call.reader, call.services.files);
      }));
  json::Writer out;
  out.begin_object().member("upto", report.upto).member("equal", report.equal()).key("tables").begin_array();
  for (const store::RebuiltTable& table : report.tables) {
    out.begin_object()
        .member("name", table.name)
        .member("rows", table.rows)
        .member("missing", table.missing)
        .member("unexpected", table.unexpected)
        .member("equal", table.equal())
        .member("replaced", table.replaced)
        .end_object();
  }
  out.end_array().end_object();
  return Answer(Reply{std::move(out).text(), {}});
}

}  // namespace muniment::gateway::methods
