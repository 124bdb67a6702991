#include "evidence/resolver.hpp"

#include <fmt/format.h>

#include "base/limits.hpp"
#include "base/utf8.hpp"
#include "evidence/sample_set.hpp"
#include "store/erasure.hpp"

namespace muniment::evidence {
namespace {

constexpr std::int64_t hashed_for_text_bytes_max = 16 << 20;

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
  fail(Reason::hash_mismatch, std::move(where) + " has other bytes there than were hashed when it came");
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
  ASSIGN_OR_RETURN(std::vector<store::ArtifactRow> rows, reader_.artifacts(ids));
  std::map<std::string, store::ArtifactRow> by_id;
  for (store::ArtifactRow& row : rows) by_id.emplace(row.artifact_id.text(), std::move(row));
  for (const Uuid& id : ids) {
    const auto found = by_id.find(id.text());
    ahead_.emplace(id.text(), found == by_id.end() ? std::nullopt : std::optional(found->second));
  }
  return success();
}

Result<std::optional<store::ArtifactRow>> Resolver::artifact_row(const Uuid& artifact_id) {
  if (auto ahead = ahead_.extract(artifact_id.text())) return std::move(ahead.mapped());
  return reader_.artifact(artifact_id);
}

Result<Resolution> Resolver::resolve(std::string_view pointer, Depth depth, bool with_text) {
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
    case PointerKind::log:
      if (!out.parsed->run_id.empty()) RETURN_IF_ERROR(resolve_run(out));
      break;
    case PointerKind::evidence: RETURN_IF_ERROR(resolve_evidence(out, with_text)); break;
  }
  return out;
}

Result<std::shared_ptr<store::Run>> Resolver::find_run(std::string_view run_id) {
  ASSIGN_OR_RETURN(const bool visible, sight_.run(run_id));
  if (!visible) return std::shared_ptr<store::Run>();
  return reader_.load_run(run_id);
}

Status Resolver::check_file(Resolution& out, std::string_view path, std::int64_t size_bytes, const Hash& hash, Depth depth) {
  out.path = path;
  out.expected = to_hex(hash);
  if (depth == Depth::whole) {
    std::int64_t size = 0;
    auto actual = files_.hash(path, &size);
    if (!actual) return out.file_failed(std::move(actual).error());
    if (*actual == hash && size == size_bytes) return success();
    out.actual = to_hex(*actual);
    out.fail(Reason::hash_mismatch, fmt::format("{} has other bytes than were stored ({} bytes, stored were {})", path, size, size_bytes));
    return success();
  }
  auto end = files_.size(path);
  if (!end) return out.file_failed(std::move(end).error());
  if (*end == size_bytes) return success();
  out.expected = fmt::format("{} bytes", size_bytes);
  out.actual = fmt::format("{} bytes", *end);
  out.fail(Reason::hash_mismatch, fmt::format("{} is {} bytes, stored were {}", path, *end, size_bytes));
  return success();
}

Status Resolver::resolve_artifact(Resolution& out, Depth depth, bool with_text) {
  const Pointer& pointer = *out.parsed;
  ASSIGN_OR_RETURN(const auto row, artifact_row(pointer.id));
  ASSIGN_OR_RETURN(const bool visible, sight_.run(pointer.run_id));
  if (!row || row->run_id != pointer.run_id || !visible) {
    out.fail(Reason::not_found, "no artifact " + pointer.id.text() + " in run " + pointer.run_id);
    return success();
  }
  out.size_bytes = row->size_bytes;
  out.path = row->path;
  if (store::is_erased(*row)) {
    out.fail(Reason::not_found, "the artifact was erased");
    return success();
  }
  if (pointer.span && pointer.span->end > row->size_bytes) {
    out.fail(Reason::not_found, fmt::format("the artifact is {} bytes, the span ends at {}", row->size_bytes, pointer.span->end));
    return success();
  }
  // Bytes are handed out only when they are known to be those that were stored.
  with_text = with_text && row->size_bytes <= hashed_for_text_bytes_max;
  if (with_text) depth = Depth::whole;
  RETURN_IF_ERROR(check_file(out, row->path, row->size_bytes, row->hash, depth));
  const ByteSpan span = pointer.span.value_or(ByteSpan{0, row->size_bytes});
  const std::int64_t length = span.end - span.start;
  if (!out.ok() || !with_text || length > static_cast<std::int64_t>(limits::artifact_inline_bytes_max)) return success();
  auto bytes = files_.read(row->path, span.start, length);
  if (!bytes) return out.file_failed(std::move(bytes).error());
  if (first_invalid_utf8(*bytes) == std::string_view::npos) out.text = std::move(*bytes);
  return success();
}

Status Resolver::resolve_manifest(Resolution& out) {
  ASSIGN_OR_RETURN(const auto row, reader_.manifest(out.parsed->id));
  bool visible = false;
  if (row) {
    ASSIGN_OR_RETURN(visible, sight_.run(row->run_id));
  }
  if (!visible) {
    out.fail(Reason::not_found, "no manifest " + out.parsed->id.text());
    return success();
  }
  out.size_bytes = row->size_bytes;
  out.expected = to_hex(row->hash);
  if (!row->salt || !row->manifest) {
    out.fail(Reason::not_found, "the manifest was erased");
    return success();
  }
  const std::string_view salt(reinterpret_cast<const char*>(row->salt->data()), row->salt->size());
  const Hash actual = sha256({salt, *row->manifest});
  if (actual == row->hash) return success();
  out.actual = to_hex(actual);
  out.fail(Reason::hash_mismatch, "the manifest has other bytes than were stored");
  return success();
}

Status Resolver::resolve_snapshot(Resolution& out) {
  const Pointer& pointer = *out.parsed;
  ASSIGN_OR_RETURN(const auto run, find_run(pointer.run_id));
  std::vector<store::SnapshotRow> rows;
  if (run) {
    ASSIGN_OR_RETURN(rows, reader_.snapshots(run->view().run_no, pointer.seq, 1));
  }
  if (rows.empty() || rows.front().seq != pointer.seq) {
    out.fail(Reason::not_found, fmt::format("run {} has no snapshot at {}", pointer.run_id, pointer.seq));
    return success();
  }
  const store::SnapshotRow& row = rows.front();
  out.size_bytes = row.size_bytes;
  if (!row.salt) {
    out.fail(Reason::not_found, "the snapshot was erased");
    return success();
  }
  if (row.artifact_id) {
    ASSIGN_OR_RETURN(const auto artifact, reader_.artifact(*row.artifact_id));
    if (!artifact) {
      out.fail(Reason::not_found, "the artifact that holds the snapshot is not in the table");
      return success();
    }
    return check_file(out, artifact->path, artifact->size_bytes, row.state_hash, Depth::whole);
  }
  out.expected = to_hex(row.state_hash);
  if (!row.state) {
    out.fail(Reason::not_found, "the snapshot was erased");
    return success();
  }
  const Hash actual = sha256(*row.state);
  if (actual == row.state_hash) return success();
  out.actual = to_hex(actual);
  out.fail(Reason::hash_mismatch, "the snapshot has other bytes than were stored");
  return success();
}

Status Resolver::resolve_run(Resolution& out) {
  if (out.parsed->run_id == log_run_id) return success();
  ASSIGN_OR_RETURN(const auto run, find_run(out.parsed->run_id));
  if (!run) out.fail(Reason::not_found, "no run " + out.parsed->run_id);
  return success();
}

// The corpus "run" is the events themselves, "sample" is built in; the others hold documents.
Status Resolver::resolve_evidence(Resolution& out, bool with_text) {
  const Pointer& pointer = *out.parsed;
  if (pointer.revision.empty()) {
    out.fail(Reason::missing_version, "an ev:// pointer names its revision: add ?v=<revision>");
    return success();
  }
  if (pointer.corpus == "run") return resolve_event(out);
  if (pointer.corpus != sample_corpus) return resolve_document(out, with_text);
  resolve_sample(out);
  return success();
}

}  // namespace muniment::evidence
