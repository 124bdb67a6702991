// Resolves pointers to artifacts, manifests, snapshots, runs and logs, across the current and the earlier logs.
#include "evidence/resolver.hpp"

#include <fmt/format.h>

#include "base/limits.hpp"
#include "base/utf8.hpp"
#include "evidence/sample_set.hpp"
#include "store/files/artifact_row.hpp"
#include "store/logs/erasure.hpp"

namespace muniment::evidence {
namespace {

constexpr std::int64_t read_at_once_bytes_max = 1 << 20;  // a longer span is hashed as it is read

}  // namespace

std::string_view name_of(Reason reason) {
  switch (reason) {
    case Reason::none: return "";
    case Reason::missing_version: return "MISSING_VERSION";
    case Reason::not_found: return "NOT_FOUND";
    case Reason::version_mismatch: return "VERSION_MISMATCH";
    case Reason::hash_mismatch: return "HASH_MISMATCH";
    case Reason::parse_error: return "PARSE_ERROR";
  }
  return "";
}

void Resolution::fail(Reason why, std::string words) {
  reason = why;
  detail = std::move(words);
}

void Resolution::was_erased(std::string words) {
  fail(Reason::not_found, std::move(words));
  erased = true;
}

void Resolution::fail_beyond(std::string words) {
  fail(Reason::not_found, std::move(words));
  beyond = true;
}

Status Resolution::file_failed(Error error) {
  if (error.code == Errc::unavailable) return error;
  fail(Reason::not_found, std::move(error.message));
  return success();
}

void Resolution::take_passage(std::string bytes, const Hash& hash, std::string where) {
  const Hash found = sha256(bytes);
  if (found == hash) {
    text = std::move(bytes);
    return;
  }
  actual = to_hex(found);
  fail(Reason::hash_mismatch, std::move(where) + " does not match the hash recorded at ingestion");
}

Status Resolver::read_ahead(const std::vector<std::string>& pointers) {
  std::vector<Uuid> ids;
  std::vector<Pointer> documents;
  for (const std::string& pointer : pointers) {
    auto parsed = parse_pointer(pointer);
    if (parsed && parsed->kind == PointerKind::artifact) ids.push_back(parsed->id);
    if (parsed && parsed->kind == PointerKind::evidence) documents.push_back(*std::move(parsed));
  }
  RETURN_IF_ERROR(read_documents_ahead(documents));
  if (ids.empty()) return success();
  ASSIGN_OR_RETURN(std::vector<store::ArtifactRow> rows, reader_->artifacts(ids));
  std::map<std::string, store::ArtifactRow> by_id;
  for (store::ArtifactRow& row : rows) by_id.emplace(row.artifact_id.text(), std::move(row));
  for (const Uuid& id : ids) {
    const auto found = by_id.find(id.text());
    ahead_.emplace(id.text(), found == by_id.end() ? std::nullopt : std::optional(found->second));
  }
  return success();
}

Result<std::optional<store::ArtifactRow>> Resolver::artifact_row(const Uuid& artifact_id) {
  if (in_earlier_log()) return reader_->artifact(artifact_id);
  if (auto ahead = ahead_.extract(artifact_id.text())) return std::move(ahead.mapped());
  return reader_->artifact(artifact_id);
}

// An earlier log may have a target that the current log lacks. It may also have the state as of a time before the
// current log began, except that a document revoked or erased since then is withheld for every time.
bool Resolver::goes_on(const Resolution& found) const {
  if (!found.parsed) return false;
  if (!found.recorded) return true;
  return as_of() && *as_of() < 0 && found.superseded && !found.removed;
}

Result<Resolution> Resolver::resolve(std::string_view pointer, Depth depth, bool with_text) {
  ASSIGN_OR_RETURN(Resolution found, resolve_here(pointer, depth, with_text));
  bool more = goes_on(found);
  for (std::size_t i = 0; i < sight_.earlier.size() && more; ++i) {
    reader_ = sight_.earlier[i];
    const Result<bool> known = resolve_earlier(found, *reader_, depth, with_text);
    if (known && *known) more = goes_on(found);
    reader_ = &present_;
    if (!known) return known.error();
  }
  return found;
}

Result<bool> Resolver::resolve_earlier(Resolution& found, store::Reader& reader, Depth depth, bool with_text) {
  as_of_earlier_.reset();
  if (sight_.as_of && sight_.as_of_time) {
    ASSIGN_OR_RETURN(as_of_earlier_, reader.seq_as_of(*sight_.as_of_time));
  }
  ASSIGN_OR_RETURN(Resolution earlier, resolve_here(found.pointer, depth, with_text));
  found.hidden = found.hidden || earlier.hidden;
  if (!earlier.recorded) return false;  // the same reply as for a target of a different owner, which is not disclosed
  const bool is_before = sight_.as_of && *sight_.as_of < 0;
  if (found.current && earlier.ok() && !is_before) {
    earlier.fail(Reason::version_mismatch,
                 "the document has a newer revision in the log that continues after the restore");
    earlier.superseded = true;
    earlier.current = found.current;
  }
  found = std::move(earlier);
  found.log_no = reader.log_no();
  return true;
}

Result<std::set<std::string>> Resolver::needed_before(const std::vector<std::string>& pointers) const {
  std::set<std::string> all;
  for (store::Reader* const reader : sight_.earlier) {
    ASSIGN_OR_RETURN(auto needed, reader->needed(pointers));
    all.merge(needed);
  }
  return all;
}

Result<bool> Resolver::sees_run(std::string_view run_id) const {
  return in_earlier_log() ? sight_.earlier_run(run_id, reader_->log_no()) : sight_.run(run_id);
}

Result<Resolution> Resolver::resolve_here(std::string_view pointer, Depth depth, bool with_text) {
  Resolution out;
  out.pointer = pointer;
  auto parsed = parse_pointer(pointer);
  if (!parsed) {
    out.fail(Reason::parse_error, std::move(parsed).error().message);
    return out;
  }
  out.parsed = std::move(*parsed);
  switch (out.parsed->kind) {
    case PointerKind::artifact: RETURN_IF_ERROR(resolve_artifact(out, depth, with_text)); break;
    case PointerKind::manifest: RETURN_IF_ERROR(resolve_manifest(out)); break;
    case PointerKind::snapshot: RETURN_IF_ERROR(resolve_snapshot(out)); break;
    case PointerKind::run: RETURN_IF_ERROR(resolve_run(out)); break;
    case PointerKind::log: RETURN_IF_ERROR(resolve_log(out)); break;
    case PointerKind::evidence: RETURN_IF_ERROR(resolve_evidence(out, with_text)); break;
  }
  if (!out.damaged() && !out.erased) name_source(out);
  return out;
}

// Sets the source of evidence outside of a corpus, where nothing was chunked. The id serves as revision, because the
// target of an id never changes. A hash in the name would survive an erasure, and short contents could be guessed from
// it.
void Resolver::name_source(Resolution& out) {
  const Pointer& pointer = *out.parsed;
  const bool bytes = pointer.kind == PointerKind::artifact || pointer.kind == PointerKind::manifest ||
                     pointer.kind == PointerKind::snapshot;
  if (!bytes || !out.expected || !out.size_bytes) return;
  out.source = EvidenceSource{std::string(name_of(pointer.kind)), "bytes", pointer.name(),
                              pointer.span.value_or(ByteSpan{0, *out.size_bytes})};
}

Result<std::shared_ptr<store::Run>> Resolver::find_run(Resolution& out) {
  ASSIGN_OR_RETURN(const bool visible, sees_run(out.parsed->run_id));
  out.hidden = !visible;
  if (!visible) return std::shared_ptr<store::Run>();
  return reader_->load_run(out.parsed->run_id);
}

Status Resolution::not_that_file(Error error, store::Difference difference) {
  if (difference.expected.empty()) return file_failed(std::move(error));
  expected = std::move(difference.expected);
  actual = std::move(difference.actual);
  fail(Reason::hash_mismatch, std::move(error.message));
  return success();
}

Status Resolver::check_file(Resolution& out, const store::StoredFile& file) {
  out.path = file.path;
  out.expected = to_hex(file.hash);
  store::Difference difference;
  auto checked = files_.check(file, &difference);
  return checked ? success() : out.not_that_file(std::move(checked).error(), std::move(difference));
}

Status Resolver::read_file(Resolution& out, const store::StoredFile& file, ByteSpan span) {
  out.path = file.path;
  out.expected = to_hex(file.hash);
  store::Difference difference;
  auto bytes = files_.read(file, span.start, span.end - span.start, &difference);
  if (!bytes) return out.not_that_file(std::move(bytes).error(), std::move(difference));
  if (first_invalid_utf8(*bytes) == std::string_view::npos) out.text = *std::move(bytes);
  return success();
}

Status Resolver::resolve_artifact(Resolution& out, Depth depth, bool with_text) {
  const Pointer& pointer = *out.parsed;
  ASSIGN_OR_RETURN(const auto row, artifact_row(pointer.id));
  ASSIGN_OR_RETURN(const bool visible, sees_run(pointer.run_id));
  if (!row || row->run_id != pointer.run_id || !visible) {
    out.hidden = !visible;
    out.fail(Reason::not_found, "no artifact " + pointer.id.text() + " in run " + pointer.run_id);
    return success();
  }
  out.recorded = true;
  out.size_bytes = row->size_bytes;
  out.path = row->path;
  if (store::is_erased(*row)) {
    out.was_erased("the artifact was erased");
    return success();
  }
  if (pointer.span && pointer.span->end > row->size_bytes) {
    out.fail_beyond(fmt::format("the artifact is {} bytes, the span ends at {}", row->size_bytes, pointer.span->end));
    return success();
  }
  const store::StoredFile file = store::file_of(*row);
  const ByteSpan span = pointer.span.value_or(ByteSpan{0, row->size_bytes});
  const bool in_hand = span.end - span.start <= read_at_once_bytes_max;
  if ((depth == Depth::whole && !(in_hand && !pointer.span)) || !in_hand) RETURN_IF_ERROR(check_file(out, file));
  if (!out.ok() || !in_hand) return success();
  RETURN_IF_ERROR(read_file(out, file, span));
  const bool short_enough = span.end - span.start <= static_cast<std::int64_t>(limits::artifact_inline_bytes_max);
  if (!with_text || !short_enough) out.text.reset();
  return success();
}

Status Resolver::resolve_manifest(Resolution& out) {
  ASSIGN_OR_RETURN(const auto row, reader_->manifest(out.parsed->id));
  bool visible = false;
  if (row) {
    ASSIGN_OR_RETURN(visible, sees_run(row->run_id));
  }
  if (!visible) {
    out.hidden = row.has_value();
    out.fail(Reason::not_found, "no manifest " + out.parsed->id.text());
    return success();
  }
  out.recorded = true;
  out.size_bytes = row->size_bytes;
  out.expected = to_hex(row->hash);
  if (!row->salt || !row->manifest) {
    out.was_erased("the manifest was erased");
    return success();
  }
  const std::string_view salt(reinterpret_cast<const char*>(row->salt->data()), row->salt->size());
  const Hash actual = sha256({salt, *row->manifest});
  if (actual == row->hash) return success();
  out.actual = to_hex(actual);
  out.fail(Reason::hash_mismatch, "the manifest does not match the hash recorded when it was stored");
  return success();
}

Status Resolver::resolve_snapshot(Resolution& out) {
  const Pointer& pointer = *out.parsed;
  ASSIGN_OR_RETURN(const auto run, find_run(out));
  std::vector<store::SnapshotRow> rows;
  if (run) {
    ASSIGN_OR_RETURN(rows, reader_->snapshots(run->view().run_no, pointer.seq, 1));
  }
  if (rows.empty() || rows.front().seq != pointer.seq) {
    out.fail(Reason::not_found, fmt::format("run {} has no snapshot at {}", pointer.run_id, pointer.seq));
    return success();
  }
  const store::SnapshotRow& row = rows.front();
  out.recorded = true;
  out.size_bytes = row.size_bytes;
  if (const Status recorded = reader_->confirm(rows); !recorded) {
    if (is_transient(recorded.error().code)) return recorded;
    out.fail(Reason::hash_mismatch, recorded.error().message);
    return success();
  }
  if (!row.salt) {
    out.was_erased("the snapshot was erased");
    return success();
  }
  if (row.artifact_id) {
    ASSIGN_OR_RETURN(const auto artifact, reader_->artifact(*row.artifact_id));
    if (!artifact) {
      out.fail(Reason::not_found, "the artifact of the snapshot is not in the table");
      return success();
    }
    const store::StoredFile file = store::file_of(*artifact);
    if (file.hash == row.state_hash) return check_file(out, file);
    out.expected = to_hex(row.state_hash);
    out.fail(Reason::hash_mismatch, "the artifact of the snapshot has another hash");
    return success();
  }
  out.expected = to_hex(row.state_hash);
  if (!row.state) {
    out.was_erased("the snapshot was erased");
    return success();
  }
  const Hash actual = sha256(*row.state);
  if (actual == row.state_hash && sha256({view(*row.salt), *row.state}) == row.hash) return success();
  out.actual = to_hex(actual);
  out.fail(Reason::hash_mismatch, "the snapshot does not match the hash recorded when it was stored");
  return success();
}

Status Resolver::resolve_run(Resolution& out) {
  out.recorded = out.parsed->run_id == log_run_id;
  if (out.recorded) return success();
  ASSIGN_OR_RETURN(const auto run, find_run(out));
  out.recorded = run != nullptr;
  if (!run) out.fail(Reason::not_found, "no run " + out.parsed->run_id);
  return success();
}

// The existence of the run _log is public; its contents are not.
Status Resolver::resolve_log(Resolution& out) {
  out.recorded = out.parsed->run_id.empty() || out.parsed->run_id == log_run_id;
  if (out.parsed->run_id.empty()) return success();
  if (out.parsed->run_id != log_run_id) return resolve_run(out);
  ASSIGN_OR_RETURN(const bool visible, sight_.run(out.parsed->run_id));
  if (!visible) out.fail(Reason::not_found, "no run " + out.parsed->run_id);
  return success();
}

// The corpus "run" consists of events, "sample" is built in; the other corpora contain documents.
Status Resolver::resolve_evidence(Resolution& out, bool with_text) {
  const Pointer& pointer = *out.parsed;
  if (pointer.revision.empty()) {
    out.fail(Reason::missing_version, "an ev:// pointer needs a revision: add ?v=<revision>");
    return success();
  }
  if (pointer.corpus == "run") return resolve_event(out);
  if (pointer.corpus != sample_corpus) return resolve_document(out, with_text);
  resolve_sample(out);
  return success();
}

}  // namespace muniment::evidence
