// Implements capsule import.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <utility>

#include "base/ids.hpp"
#include "base/limits.hpp"
#include "base/text.hpp"
#include "base/utf8.hpp"
#include "capsule/index.hpp"
#include "cli/commands/capsule/transfer.hpp"
#include "client/connect/upload.hpp"

namespace muniment::cli {
namespace {

constexpr std::string_view capsule_format = "muniment-capsule", capsule_importer = "muniment " MUNIMENT_VERSION;
const std::string retraction = "retracted";
constexpr std::size_t documents_max = 256;  // of a request
constexpr std::size_t noted_max = 128;      // frames that one event names
constexpr std::size_t inline_bytes_max = limits::request_line_bytes_max / 8;

class CapsuleImport {
 public:
  CapsuleImport(Client& client, const CapsuleSource& source) : client_(client), source_(source) {}

  Result<ImportedCapsule> run() {
    ASSIGN_OR_RETURN(sha256_, sha256_of_file(source_.path));
    ASSIGN_OR_RETURN(file_, capsule::CapsuleFile::open(source_.path, capsule::Access::read));
    if (file_->lost_bytes() > 0)
      return Error(Errc::corrupt,
                   source_.path +
                       " ends before its newest commit. Copy it again, or cut it back: muniment capsule compact FILE");
    RETURN_IF_ERROR(file_->verify());
    RETURN_IF_ERROR(check_documents());
    ASSIGN_OR_RETURN(const bool wanted, start());
    result_.already = !wanted;
    if (!wanted) return result_;
    RETURN_IF_ERROR(each_frame([this](const capsule::Frame& frame) { return take(frame); }));
    RETURN_IF_ERROR(flush());
    RETURN_IF_ERROR(note(true));
    json::Writer end;
    end.begin_object().member("run_id", result_.run_id).member("outcome", "unknown");
    RETURN_IF_ERROR(client_.call("run.end", end.end_object().text()));
    return result_;
  }

 private:
  template <typename Take>
  Status each_frame(Take take_frame) {
    for (std::uint64_t at = capsule::file_header_bytes; at < file_->end();) {
      ASSIGN_OR_RETURN(const capsule::Frame frame, file_->frame_at(at));
      if (capsule::is_data(frame.header.type)) RETURN_IF_ERROR(take_frame(frame));
      at += frame.header.bytes();
    }
    return success();
  }

  std::string corpus_of(const std::string& collection) const {
    return source_.corpus.empty() ? collection : source_.corpus;
  }

  // Refuses the capsule before anything is sent, and learns which revisions the corpora have.
  Status check_documents() {
    std::map<std::string, std::string> collection_of;  // by the id of a document in a corpus
    return each_frame([&](const capsule::Frame& frame) -> Status {
      if (frame.header.type != capsule::FrameType::document) return success();
      ASSIGN_OR_RETURN(const capsule::Revision revision, capsule::revision_of(frame));
      const store::DocumentRow& row = revision.row;
      if (static_cast<std::int64_t>(revision.bytes.size()) > limits::document_bytes_max ||
          row.document.size() > limits::document_id_bytes_max)
        return Error(Errc::too_large,
                     fmt::format("{}/{} is larger than a log takes; nothing was imported", row.corpus, row.document));
      const auto [known, added] = collection_of.emplace(row.document, row.corpus);
      if (known->second != row.corpus && !source_.corpus.empty())
        return Error(Errc::conflict,
                     fmt::format("{} is in the collections {} and {}; nothing was imported. Omit --corpus",
                                 row.document, known->second, row.corpus));
      if (added || source_.corpus.empty()) return learn_history(corpus_of(row.corpus), row.document);
      return success();
    });
  }

  Status learn_history(const std::string& corpus, const std::string& document) {
    if (!asked_.emplace(corpus, document).second) return success();
    json::Writer params;
    params.begin_object().member("corpus", corpus).member("document", document).member("limit", 1'000).end_object();
    const auto answer = client_.call("document.history", params.text());
    if (!answer) return answer.error().code == Errc::not_found ? success() : Status(answer.error());
    std::vector<std::string>& changes = past_[{corpus, document}].changes;
    for (const json::Value revision : answer->result()["revisions"]) {  // newest first
      if (revision["ended_by"].string_or("") == "retracted") changes.push_back(retraction);
      changes.push_back(revision["revision"].string_or("") + " " + revision["hash"].string_or(""));
    }
    std::ranges::reverse(changes);
    return success();
  }

  // Returns false if this file is already imported.
  Result<bool> start() {
    const std::string what = source_.corpus.empty() ? sha256_ : to_hex(sha256(sha256_ + "/" + source_.corpus));
    result_.run_id = fmt::format("capsule-{}-{}", to_hex(file_->header().id).substr(0, 16), what.substr(0, 8));
    const auto known = client_.call("run.get", fmt::format(R"({{"run_id":{}}})", json::quote(result_.run_id)));
    if (!known && known.error().code != Errc::not_found) return known.error();
    if (known && known->result()["run"]["status"].string_or("") != "open") return false;
    json::Writer params;
    params.begin_object()
        .member("run_id", result_.run_id)
        .key("agent")
        .begin_object()
        .member("name", "unknown")
        .end_object();
    params.key("import")
        .begin_object()
        .member("format", capsule_format)
        .member("sha256", sha256_)
        .member("importer", capsule_importer);
    params.end_object().end_object();
    RETURN_IF_ERROR(client_.call("run.start", params.text()));
    Upload upload;
    upload.run_id = result_.run_id;
    upload.metadata = R"({"name":"capsule.mv2"})";
    ASSIGN_OR_RETURN(const Message kept, put_file(client_, upload, source_.path));
    if (kept.result()["hash"].string_or("") == sha256_) return true;
    return Error(Errc::conflict, source_.path + " changed during the import; the run is incomplete. Import it again");
  }

  Status take(const capsule::Frame& frame) {
    switch (frame.header.type) {
      case capsule::FrameType::document: return take_document(frame);
      case capsule::FrameType::retraction: return take_retraction(frame);
      case capsule::FrameType::log: return take_turn(frame);
      case capsule::FrameType::query:
      case capsule::FrameType::feedback:
      case capsule::FrameType::config:
      case capsule::FrameType::signature:
      case capsule::FrameType::segment:
      case capsule::FrameType::commit: break;
    }
    ++result_.only_in_capsule;
    return success();
  }

  Status take_document(const capsule::Frame& frame) {
    ASSIGN_OR_RETURN(const capsule::Revision revision, capsule::revision_of(frame));
    const store::DocumentRow& row = revision.row;
    const std::string corpus = corpus_of(row.corpus);
    current_[{corpus, row.document}] = row.revision;
    if (was_before(corpus, row.document, row.revision + " " + to_hex(row.hash))) {
      ++result_.known;
      return success();
    }
    // The revisions of a document are sent one after another.
    if (corpus != batch_corpus_ || !batch_ids_.insert(row.document).second || batch_.size() >= documents_max ||
        batch_bytes_ > inline_bytes_max) {
      RETURN_IF_ERROR(flush());
      batch_corpus_ = corpus;
      batch_ids_.insert(row.document);
    }
    json::Writer item;
    item.begin_object().member("id", row.document).member("title", row.title).member("mime_type", row.mime_type);
    item.member("language", row.language).member("revision", row.revision);
    if (!row.tags.empty()) item.member("tags", row.tags);
    item.member("source",
                row.source.empty() || row.source == "capsule" ? "capsule:" + to_hex(file_->header().id) : row.source);
    if (row.source_url) item.member("source_url", *row.source_url);
    item.member("timestamp", format_time(row.document_time));
    if (row.expires_at) item.member("expires_at", format_time(*row.expires_at));
    if (row.review_at) item.member("review_at", format_time(*row.review_at));
    item.member("trust", row.trust == "quarantined" ? row.trust : source_.trust);
    if (first_invalid_utf8(revision.bytes) == std::string_view::npos && revision.bytes.size() <= inline_bytes_max) {
      item.member("text", revision.bytes);
      batch_bytes_ += revision.bytes.size();
    } else {
      Upload upload;
      upload.run_id = result_.run_id;
      upload.mime_type = row.mime_type;
      ASSIGN_OR_RETURN(const Message stored, put_bytes(client_, upload, revision.bytes));
      item.member("artifact_id", stored.result()["artifact_id"].string_or(""));
    }
    batch_.push_back(std::move(item.end_object()).text());
    batch_frames_.push_back(note_of(frame, capsule::uri_of(row.corpus, row.document), row.revision));
    return success();
  }

  // Only a revision of this capsule is retracted, and only if it is current in the corpus.
  Status take_retraction(const capsule::Frame& frame) {
    RETURN_IF_ERROR(flush());
    ASSIGN_OR_RETURN(const json::Document about, json::parse(frame.about));
    const json::Value ended = about.root();
    const std::string corpus = corpus_of(ended["corpus"].string_or("")), document = ended["document"].string_or("");
    const std::string revision = ended["revision"].string_or("");
    const auto held = current_.find({corpus, document});
    if (held == current_.end() || held->second != revision) {
      ++result_.only_in_capsule;
      return success();
    }
    current_.erase(held);
    if (was_before(corpus, document, retraction)) return success();
    json::Writer params;
    params.begin_object().member("corpus", corpus).member("document", document).member("base", revision);
    params.member("reason", ended["reason"].string_or("retracted in the capsule")).end_object();
    const auto done = client_.call("document.retract", params.text());
    if (!done && done.error().code != Errc::not_found && done.error().code != Errc::conflict) return done.error();
    if (done) noted_.push_back(note_of(frame, ended["uri"].string_or(""), ""));
    return note(false);
  }

  // Returns whether the corpus had this change of the document before, after those that were asked for earlier. After
  // one that it did not have, the later ones are new.
  bool was_before(const std::string& corpus, const std::string& document, const std::string& change) {
    Past& past = past_[{corpus, document}];
    const auto found =
        std::find(past.changes.begin() + static_cast<std::ptrdiff_t>(past.next), past.changes.end(), change);
    past.next = static_cast<std::size_t>(found - past.changes.begin()) + (found == past.changes.end() ? 0 : 1);
    return past.next > 0 && found != past.changes.end();
  }

  Status take_turn(const capsule::Frame& frame) {
    if (frame.body.size() > inline_bytes_max) {  // longer than a request takes
      ++result_.only_in_capsule;
      return success();
    }
    const auto about = json::parse(frame.about);
    const std::string role = about ? about->root()["role"].string_or("user") : "user";
    const bool has_role =
        role == "system" || role == "user" || role == "assistant" || role == "tool" || role == "developer";
    json::Writer params;
    params.begin_object()
        .member("run_id", result_.run_id)
        .member("type", "message.added")
        .member("event_id", id_of(frame));
    params.member("occurred_at", format_time({frame.header.time_us})).key("body").begin_object();
    params.member("message_id", fmt::format("frame-{}", frame.header.number)).member("role", has_role ? role : "user");
    params.key("content").begin_array().begin_object().member("type", "text").member("content", frame.body);
    params.end_object().end_array().end_object().end_object();
    RETURN_IF_ERROR(client_.call("event.append", params.text()));
    ++result_.messages;
    noted_.push_back(note_of(frame, "", ""));
    return note(false);
  }

  // Ingests the documents that were collected. Errors: that of the first document that is refused.
  Status flush() {
    batch_ids_.clear();
    batch_bytes_ = 0;
    if (batch_.empty()) return success();
    json::Writer params;
    params.begin_object().member("corpus", batch_corpus_).key("documents").begin_array();
    for (const std::string& document : batch_) params.raw(document);
    params.end_array().end_object();
    ASSIGN_OR_RETURN(const Message answer, client_.call("corpus.ingest", params.text()));
    for (const json::Value refused : answer.result()["errors"])
      return Error(Errc::invalid_argument,
                   fmt::format("{}: {} The documents before it are imported; repeat the import to complete it",
                               refused["id"].string_or(""), refused["message"].string_or("")));
    result_.documents += std::ssize(batch_);
    noted_.insert(noted_.end(), batch_frames_.begin(), batch_frames_.end());
    batch_.clear();
    batch_frames_.clear();
    return note(false);
  }

  std::string id_of(const capsule::Frame& frame) const {
    return make_uuid_v8(fmt::format("{}/{}", result_.run_id, frame.header.number)).text();
  }

  static std::string note_of(const capsule::Frame& frame, const std::string& uri, const std::string& revision) {
    json::Writer out;
    out.begin_object()
        .member("frame", static_cast<std::int64_t>(frame.header.number))
        .member("type", capsule::name_of(frame.header.type));
    out.member("time", format_time({frame.header.time_us}))
        .member("sha256", to_hex(frame.header.payload))
        .member("chain", to_hex(frame.header.chain));
    if (!uri.empty()) out.member("uri", uri);
    if (!revision.empty()) out.member("revision", revision);
    return std::move(out.end_object()).text();
  }

  // Records where the imported frames are from.
  Status note(bool last) {
    while (noted_.size() >= noted_max || (last && !noted_.empty())) {
      const std::size_t count = std::min(noted_.size(), noted_max);
      json::Writer params;
      params.begin_object().member("run_id", result_.run_id).member("type", "x.muniment.imported");
      params.member("event_id", make_uuid_v8(fmt::format("{}/imported/{}", result_.run_id, noted_.front())).text());
      params.key("body")
          .begin_object()
          .key("capsule")
          .begin_object()
          .member("format", capsule_format)
          .member("sha256", sha256_);
      params.member("id", to_hex(file_->header().id)).end_object().key("frames").begin_array();
      for (std::size_t i = 0; i < count; ++i) params.raw(noted_[i]);
      params.end_array().end_object().end_object();
      RETURN_IF_ERROR(client_.call("event.append", params.text()));
      noted_.erase(noted_.begin(), noted_.begin() + static_cast<std::ptrdiff_t>(count));
    }
    return success();
  }

  Client& client_;
  const CapsuleSource& source_;
  std::string sha256_;
  std::unique_ptr<capsule::CapsuleFile> file_;
  using Named = std::pair<std::string, std::string>;  // corpus, document
  // Changes of a document that a corpus recorded before the import: revisions and retractions, oldest first.
  struct Past {
    std::vector<std::string> changes;
    std::size_t next = 0;
  };
  std::map<Named, Past> past_;
  std::map<Named, std::string> current_;  // revision in the capsule, up to the frame that is taken
  std::set<Named> asked_;
  std::string batch_corpus_;
  std::vector<std::string> batch_, batch_frames_, noted_;
  std::set<std::string> batch_ids_;
  std::size_t batch_bytes_ = 0;
  ImportedCapsule result_;
};

}  // namespace

Result<ImportedCapsule> import_capsule(Client& client, const CapsuleSource& source) {
  return CapsuleImport(client, source).run();
}

}  // namespace muniment::cli
