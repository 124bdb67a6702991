#include "cli/ingest/ingest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/limits.hpp"
#include "client/connect/pages.hpp"
#include "client/connect/upload.hpp"

namespace muniment::cli {
namespace {

constexpr std::size_t notes_max = 1'000;
constexpr std::size_t batch_bytes_max =
    limits::request_line_bytes_max - 4'096;  // leaves room for the rest of the request
constexpr std::int64_t batch_artifact_bytes_max = 16 << 20;

std::string text_of(const IngestTarget& target, const std::string& id, const std::string& source,
                    const FileCandidate& file, std::string_view bytes_member, const std::string& bytes) {
  json::Writer out;
  out.begin_object()
      .member("id", id)
      .member(bytes_member, bytes)
      .member("source", source)
      .member("trust", target.trust);
  if (!target.tags.empty()) out.member("tags", target.tags);
  if (!target.language.empty()) out.member("language", target.language);
  out.member("timestamp", format_time(file.modified())).end_object();
  return std::move(out).text();
}

// Returns whether one document may be the reason of a refused request.
bool may_be_of_a_document(const Error& error) {
  return error.code == Errc::invalid_argument || error.code == Errc::too_large;
}

}  // namespace

void Notes::add(std::string_view path, std::string_view why) {
  ++count;
  if (first.size() < notes_max) first.emplace_back(path, why);
}

KnownDocuments::Key KnownDocuments::key_of(const Hash& hash) {
  Key key;
  std::memcpy(&key.a, hash.data(), sizeof key.a);
  std::memcpy(&key.b, hash.data() + sizeof key.a, sizeof key.b);
  return key;
}

Status KnownDocuments::load(Client& client, const IngestTarget& target,
                            const std::function<void(const json::Value&)>& visit) {
  json::Writer params;
  params.begin_object().member("corpus", target.corpus).member("limit", limits::page_items_max).end_object();
  const auto add = [&](const json::Value& row) -> Result<bool> {
    Known known;
    if (const auto hash = hash_from_hex(row["hash"].string_or(""))) known.revision = key_of(*hash);
    known.source = key_of(sha256(row["source"].string_or("")));
    const std::string chunker = row["chunker"].string_or("");
    const auto named = std::ranges::find(chunkers_, chunker);
    known.chunker = static_cast<std::uint32_t>(named - chunkers_.begin());
    if (named == chunkers_.end()) chunkers_.push_back(chunker);
    std::vector<std::string> have;
    for (const json::Value tag : row["tags"]) have.push_back(tag.string_or(""));
    known.as_described = have == target.tags && row["trust"].string_or("") == target.trust &&
                         (target.language.empty() || row["language"].string_or("") == target.language);
    known_[key_of(sha256(row["document"].string_or("")))] = known;
    visit(row);
    return true;
  };
  const Status loaded = each_item(client, "document.list", params.text(), "documents", add);
  // A corpus that does not exist yet is treated as empty.
  return !loaded && loaded.error().code == Errc::not_found ? success() : loaded;
}

KnownDocuments::Standing KnownDocuments::of(std::string_view id, const Hash& bytes_hash,
                                            std::string_view source) const {
  const auto found = known_.find(key_of(sha256(id)));
  if (found == known_.end()) return Standing::absent;
  const Known& known = found->second;
  if (!known.as_described || known.source != key_of(sha256(source))) return Standing::other;
  // docs/format.md: a revision's hash is SHA-256(SHA-256 of its bytes ‖ the chunker's name)
  const Hash revision = sha256({view(bytes_hash), chunkers_[known.chunker]});
  return known.revision == key_of(revision) ? Standing::same : Standing::other;
}

IngestSender::IngestSender(Client& client, IngestTarget target, IngestReport& report)
    : client_(client), target_(std::move(target)), report_(report) {
  client_.set_patience(std::chrono::milliseconds(limits::deadline_ms_max));
}

Status IngestSender::add(const std::string& id, const std::string& source, FileCandidate& file, bool is_new) {
  std::string text;
  std::int64_t artifact_bytes = 0;
  if (file.inlined) text = text_of(target_, id, source, file, "text", file.text);
  if (!file.inlined || text.size() > batch_bytes_max) {
    ASSIGN_OR_RETURN(const std::string artifact_id, upload(id, file));
    if (artifact_id.empty()) return success();
    text = text_of(target_, id, source, file, "artifact_id", artifact_id);
    artifact_bytes = file.size();
  }
  const bool fits = batch_bytes_ + batch_.size() + text.size() < batch_bytes_max &&
                    batch_.size() < limits::documents_per_ingest_max &&
                    artifact_bytes_ + artifact_bytes <= batch_artifact_bytes_max;
  if (!batch_.empty() && !fits) RETURN_IF_ERROR(send(false));
  batch_bytes_ += text.size();
  artifact_bytes_ += artifact_bytes;
  batch_.push_back({id, std::move(text), is_new, file.size()});
  return success();
}

// Returns the id of the artifact; empty if the file failed.
Result<std::string> IngestSender::upload(const std::string& id, FileCandidate& file) {
  if (report_.run_id.empty()) {
    json::Writer params;
    params.begin_object().key("agent").begin_object().member("name", "muniment ingest").end_object();
    params.member("goal", "files for the corpus " + target_.corpus).end_object();
    ASSIGN_OR_RETURN(const Message answer, client_.call("run.start", params.text()));
    report_.run_id = answer.result()["run_id"].string_or("");
  }
  Upload upload;
  upload.run_id = report_.run_id;
  upload.mime_type = mime_type_of(id);
  const auto put = put_open_file(client_, upload, file.fd.get());
  if (!put && !may_be_of_a_document(put.error())) return put.error();
  if (put && put->result()["hash"].string_or("") == to_hex(file.hash))
    return put->result()["artifact_id"].string_or("");
  report_.failed.add(id, put ? "changed while it was read; retry when it is stable" : put.error().message);
  return std::string();
}

Status IngestSender::send(bool wait) {
  const auto answer = request(batch_, wait);
  if (answer) {
    count(answer->result());
  } else if (may_be_of_a_document(answer.error())) {
    RETURN_IF_ERROR(send_each(wait, answer.error()));
  } else {
    return answer.error();
  }
  batch_.clear();
  batch_bytes_ = 0;
  artifact_bytes_ = 0;
  return success();
}

// Sends the documents of a refused request one by one, so that the faulty one is named and the others are ingested. If
// each of the first documents is refused for the same reason, the call itself is at fault, and the refusal is returned.
Status IngestSender::send_each(bool wait, const Error& refused) {
  const bool first = report_.added + report_.changed + report_.unchanged == 0;
  std::vector<std::pair<std::string, std::string>> failed;
  for (const Queued& document : batch_) {
    const auto answer = batch_.size() == 1 ? Result<Message>(refused) : request({&document, 1}, wait);
    if (answer) {
      count(answer->result());
    } else if (may_be_of_a_document(answer.error())) {
      failed.emplace_back(document.id, answer.error().message);
    } else {
      return answer.error();
    }
  }
  const auto same = std::ranges::count(failed, refused.message, &std::pair<std::string, std::string>::second);
  if (first && batch_.size() > 1 && static_cast<std::size_t>(same) == batch_.size()) return refused;
  for (const auto& [id, why] : failed) report_.failed.add(id, why);
  return success();
}

Result<Message> IngestSender::request(std::span<const Queued> documents, bool wait) {
  std::string params = "{\"corpus\":" + json::quote(target_.corpus) + ",\"documents\":[";
  for (const Queued& document : documents) {
    if (&document != documents.data()) params += ',';
    params += document.text;
  }
  params += ']';
  if (wait) params += ",\"wait\":true";
  params += fmt::format(",\"_meta\":{{\"deadline_ms\":{}}}}}", limits::deadline_ms_max);
  return client_.call("corpus.ingest", params);
}

void IngestSender::count(const json::Value& result) {
  for (const json::Value document : result["documents"]) {
    const auto sent = std::ranges::find(batch_, document["id"].string_or(""), &Queued::id);
    if (sent == batch_.end()) continue;
    if (document["unchanged"].as_bool().value_or(false)) {
      ++report_.unchanged;
      continue;
    }
    ++(sent->is_new ? report_.added : report_.changed);
    report_.bytes += static_cast<std::uint64_t>(sent->bytes);
    report_.sent.emplace_back(sent->id, document["chunks"].as_int().value_or(0));
  }
  for (const json::Value error : result["errors"])
    report_.failed.add(error["id"].string_or(""), error["message"].string_or(""));
  report_.seq = std::max(report_.seq, result["seq"].as_int().value_or(-1));
}

Status IngestSender::finish(bool wait) {
  if (!batch_.empty()) RETURN_IF_ERROR(send(wait));
  if (report_.run_id.empty()) return success();
  json::Writer params;
  params.begin_object().member("run_id", report_.run_id).member("outcome", "success").end_object();
  RETURN_IF_ERROR(client_.call("run.end", params.text()));
  return success();
}

}  // namespace muniment::cli
