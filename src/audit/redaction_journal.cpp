// Writes, reads and removes the journals of erasures.
#include "audit/redaction_journal.hpp"

#include <algorithm>
#include <filesystem>

#include "base/files/file.hpp"
#include "base/json/json.hpp"

namespace muniment::audit {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t journal_bytes_max = 1 << 30;

}  // namespace

std::string RedactionJournal::text() const {
  json::Writer out;
  out.begin_object()
      .member("id", id.text())
      .member("request", request.text())
      .member("run_no", run_no)
      .member("run_id", run_id);
  out.member("reason", reason).member("legal_basis", legal_basis).member("by", by);
  out.key("seqs").begin_array();
  for (const std::int64_t seq : seqs) out.number(seq);
  out.end_array().key("artifacts").begin_array();
  for (const store::ErasedArtifact& artifact : artifacts) {
    out.begin_object()
        .member("artifact_id", artifact.artifact_id.text())
        .member("path", artifact.path)
        .member("size_bytes", artifact.size_bytes)
        .end_object();
  }
  return std::move(out.end_array().end_object()).text();
}

Result<RedactionJournal> RedactionJournal::parse(std::string_view text) {
  ASSIGN_OR_RETURN(const json::Document document, json::parse(text));
  const json::Value root = document.root();
  RedactionJournal journal;
  const auto id = parse_uuid(root["id"].string_or(""));
  if (!id) return Error(Errc::corrupt, "no id");
  journal.id = *id;
  journal.request = parse_uuid(root["request"].string_or("")).value_or(*id);  // older journals have no request id
  journal.run_no = root["run_no"].as_int().value_or(-1);
  journal.run_id = root["run_id"].string_or("");
  journal.reason = root["reason"].string_or("");
  journal.legal_basis = root["legal_basis"].string_or("");
  journal.by = root["by"].string_or("");
  for (const json::Value seq : root["seqs"]) journal.seqs.push_back(seq.as_int().value_or(-1));
  for (const json::Value item : root["artifacts"]) {
    const auto artifact_id = parse_uuid(item["artifact_id"].string_or(""));
    if (!artifact_id) return Error(Errc::corrupt, "an artifact without id");
    journal.artifacts.push_back({*artifact_id, item["path"].string_or(""), item["size_bytes"].as_int().value_or(0)});
  }
  if (journal.run_no < 0 || journal.run_id.empty() || journal.seqs.empty())
    return Error(Errc::corrupt, "no run or no events");
  return journal;
}

std::vector<RedactionJournal::Announcement> RedactionJournal::announcements() const {
  std::vector<Announcement> all;
  const auto add = [&](std::string_view type, std::string_view name, const std::string& value, bool quoted) {
    json::Writer body;
    body.begin_object().raw_member(name, quoted ? json::quote(value) : value).member("reason", reason);
    if (!legal_basis.empty()) body.member("legal_basis", legal_basis);
    body.member("by", by).end_object();
    all.push_back({type, std::move(body).text(), make_uuid_v8(id.text() + " " + std::string(type) + " " + value)});
  };
  for (const std::int64_t seq : seqs) add("event.redacted", "seq", std::to_string(seq), false);
  for (const store::ErasedArtifact& artifact : artifacts)
    add("artifact.redacted", "artifact_id", artifact.artifact_id.text(), true);
  return all;
}

Result<std::vector<RedactionJournal>> read_redaction_journals(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(folder, failed)) {
    if (entry.path().extension() == ".json") paths.push_back(entry.path());
  }
  if (failed) return Error(Errc::system_error, "listing " + folder + ": " + failed.message());
  std::ranges::sort(paths);  // names are ids, which sort by time
  std::vector<RedactionJournal> journals;
  for (const std::string& path : paths) {
    ASSIGN_OR_RETURN(const std::string text, read_file(path, journal_bytes_max));
    auto journal = RedactionJournal::parse(text);
    if (!journal) {
      return Error(Errc::corrupt, "the journal of an erasure " + path + " cannot be read: " + journal.error().message +
                                      ". Check that erasure before moving the file away: docs/runbook.md (erasure).");
    }
    journals.push_back(*std::move(journal));
  }
  return journals;
}

}  // namespace muniment::audit
