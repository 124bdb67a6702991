#include "cli/bundle/import.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/crypto/sha256.hpp"
#include "base/files/file.hpp"
#include "base/ids.hpp"
#include "base/limits.hpp"
#include "cli/bundle/rows.hpp"
#include "client/connect/upload.hpp"
#include "client/replay/event_replay.hpp"
#include "events/catalogue.hpp"

namespace muniment::cli {
namespace {

constexpr std::string_view bundle_importer = "muniment " MUNIMENT_VERSION;
constexpr std::string_view state_mime_type = "application/vnd.muniment.state+json";
constexpr std::size_t header_bytes_max = 64 << 20;
constexpr std::size_t run_id_hash_digits = 8;
constexpr std::size_t batch_events_max = 128;  // limit at which the references to the originals fit one body
constexpr std::size_t batch_bytes_max = limits::request_line_bytes_max / 2;

// The way in which an event of the bundle was imported.
enum class Way : std::uint8_t { as_it_was, rewritten, by_method, only_in_bundle };

std::string_view name_of(Way way) {
  switch (way) {
    case Way::as_it_was: return "as_it_was";
    case Way::rewritten: return "rewritten";
    case Way::by_method: return "recorded_anew";
    case Way::only_in_bundle: break;
  }
  return "only_in_bundle";
}

class BundleImport {
 public:
  BundleImport(Client& client, const BundleSource& source, MemberLines events, MemberLines manifests, TarReader files,
               std::string header)
      : client_(client),
        source_(source),
        events_(std::move(events)),
        manifests_(std::move(manifests)),
        files_(std::move(files)),
        header_text_(std::move(header)) {}

  Result<ImportedBundle> run() {
    ASSIGN_OR_RETURN(const json::Document header, json::parse(header_text_));
    header_ = header.root();
    name_run();
    replay_.emplace(client_, result_.run_id, header_["run_id"].string_or(""), source_.sha256);
    ASSIGN_OR_RETURN(const bool wanted, start());
    if (!wanted) return result_;
    RETURN_IF_ERROR(keep_bundle());
    for (;;) {
      ASSIGN_OR_RETURN(const std::optional<std::string> line, events_.next());
      if (!line) break;
      RETURN_IF_ERROR(take(*line));
    }
    RETURN_IF_ERROR(record_end(true));
    RETURN_IF_ERROR(flush());
    RETURN_IF_ERROR(end());
    result_.added = true;
    return result_;
  }

 private:
  void name_run() {
    result_.run_id = source_.run_id;
    if (!result_.run_id.empty()) return;
    const std::string suffix = "-" + source_.sha256.substr(0, run_id_hash_digits);
    result_.run_id = header_["run_id"].string_or("").substr(0, limits::run_id_bytes_max - suffix.size()) + suffix;
    if (result_.run_id.starts_with('_')) result_.run_id.insert(0, "run");  // the bundle holds a run _log
  }

  // Returns false if this bundle is already imported.
  Result<bool> start() {
    ASSIGN_OR_RETURN(const std::optional<std::string> line, events_.next());
    if (!line) return Error(Errc::invalid_argument, "the bundle has no event");
    ASSIGN_OR_RETURN(const json::Document document, json::parse(*line));
    const std::string body_text = document.root()["body"].string_or("{}");
    ASSIGN_OR_RETURN(const json::Document started, json::parse(body_text));

    const auto known = client_.call("run.get", fmt::format("{{\"run_id\":{}}}", json::quote(result_.run_id)));
    if (!known && known.error().code != Errc::not_found) return known.error();
    if (known) {
      RETURN_IF_ERROR(check_same(known->result()["run"]));
      if (known->result()["run"]["status"].string_or("") != "open") return false;
    }
    json::Writer params;
    params.begin_object().member("run_id", result_.run_id);
    if (const json::Value agent = started.root()["agent"]) {
      params.raw_member("agent", agent.source());
    } else {
      params.key("agent").begin_object().member("name", "unknown").end_object();
    }
    copy_known(params, started.root(), {"goal", "labels", "external_id", "client", "cwd", "vcs"});
    params.key("import").begin_object().member("format", bundle_format).member("sha256", source_.sha256);
    params.member("importer", bundle_importer).end_object();
    if (const std::string when = when_of(document.root()); !when.empty())
      params.key("_meta").begin_object().member("occurred_at", when).end_object();
    params.end_object();
    RETURN_IF_ERROR(client_.call("run.start", params.text()));
    RETURN_IF_ERROR(came_anew(document.root()));
    return true;
  }

  // A run with this id was imported from this file, or the id is taken.
  Status check_same(const json::Value& run) {
    ASSIGN_OR_RETURN(const Message first, client_.call("event.get", fmt::format(R"({{"run_id":{},"run_seq":0}})",
                                                                                json::quote(result_.run_id))));
    const json::Value import = first.result()["event"]["body"]["import"];
    if (import["sha256"].string_or("") == source_.sha256) return success();
    return Error(Errc::conflict,
                 fmt::format("run {} exists but was not imported from this bundle ({}). Choose another id: --as RUN",
                             result_.run_id, run["origin"].string_or("")));
  }

  // Stores the bundle as an artifact, so that the original proof remains available.
  Status keep_bundle() {
    Upload upload;
    upload.run_id = result_.run_id;
    upload.mime_type = "application/zstd";
    upload.metadata = R"({"name":"run.muniment.tar.zst"})";
    ASSIGN_OR_RETURN(const Message answer, put_file(client_, upload, source_.path));
    if (answer.result()["hash"].string_or("") == source_.sha256) return success();
    return Error(Errc::conflict, source_.path + " changed during the import; the run is incomplete. Import it again");
  }

  Status end() {
    RunEnd ending = ending_;
    if (ending.outcome.empty())
      ending = {std::string(unknown_end), "the run had not ended when the bundle was written"};
    json::Writer params;
    params.begin_object().member("run_id", result_.run_id).member("outcome", ending.outcome);
    if (!ending.summary.empty()) params.member("summary", ending.summary);
    if (!ending.usage.empty()) params.raw_member("usage", ending.usage);
    if (!ended_at_.empty()) params.key("_meta").begin_object().member("occurred_at", ended_at_).end_object();
    params.end_object();
    RETURN_IF_ERROR(client_.call("run.end", params.text()));
    return success();
  }

  Status take(const std::string& line) {
    ASSIGN_OR_RETURN(const json::Document document, json::parse(line));
    const json::Value event = document.root();
    const std::string type = event["type"].string_or("");
    if (type == "run.ended" || type == "run.halted") ended_at_ = when_of(event);
    if (type == "run.resumed") {
      ended_at_.clear();
      RETURN_IF_ERROR(record_end(false));
    }
    if (!event["body"].is(json::Kind::string)) {  // erased
      if (type == "run.ended") ending_ = {std::string(unknown_end), "how the run ended was erased"};
      if (type == "state.patched") replay_->lost_patch();
      return leave(event);
    }
    const std::string body_text = event["body"].string_or("");
    ASSIGN_OR_RETURN(const json::Document body, json::parse(body_text));
    if (events::check_client_may_write(type)) return append(event, body.root());
    if (type == "run.ended") return remember_end(line, body.root());
    if (!batch_.empty()) RETURN_IF_ERROR(flush());
    ASSIGN_OR_RETURN(const Way way, record_anew(event, type, body.root()));
    return way == Way::only_in_bundle ? leave(event) : came_anew(event);
  }

  Status came_anew(const json::Value& event) {
    ++result_.by_method;
    return note_original(event, Way::by_method);
  }

  // The new run ends once, with the last end in the bundle. Earlier ends were followed by a resume.
  Status remember_end(const std::string& line, const json::Value& body) {
    RETURN_IF_ERROR(record_end(false));
    ending_ = {body["outcome"].string_or(""), body["summary"].string_or(""), std::string(body["usage"].source())};
    end_line_ = line;
    return success();
  }

  Status record_end(bool is_last) {
    if (end_line_.empty()) return success();
    const std::string line = std::exchange(end_line_, {});
    ASSIGN_OR_RETURN(const json::Document document, json::parse(line));
    RETURN_IF_ERROR(is_last ? came_anew(document.root()) : leave(document.root()));
    for (std::string& note : std::exchange(behind_end_, {})) RETURN_IF_ERROR(keep_note(std::move(note)));
    return success();
  }

  Status leave(const json::Value& event) {
    ++result_.only_in_bundle[event["type"].string_or("")];
    return note_original(event, Way::only_in_bundle);
  }

  Status append(const json::Value& event, const json::Value& body) {
    std::string text;
    std::string item = replay_->item(event, body, &text);
    const bool is_same = text == body.source();
    if (replay_->may_not_apply(event, body)) {
      RETURN_IF_ERROR(flush());
      ASSIGN_OR_RETURN(const bool applied, replay_->append_patch(item));
      if (!applied) return leave(event);
    } else {
      if (batch_bytes_ + item.size() > batch_bytes_max) RETURN_IF_ERROR(flush());
      batch_bytes_ += item.size();
      batch_.push_back(std::move(item));
    }
    ++result_.events;
    if (!is_same) ++result_.rewritten;
    return note_original(event, is_same ? Way::as_it_was : Way::rewritten);
  }

  Result<Way> record_anew(const json::Value& event, const std::string& type, const json::Value& body) {
    if (type == "artifact.stored") return put_artifact(event, body);
    if (type == "manifest.recorded") return put_manifest(event, body);
    if (type == "run.resumed") ending_ = {};
    if (type == "run.halted") ending_ = {"failure", "the run was halted: " + body["reason"].string_or("")};
    ASSIGN_OR_RETURN(const bool anew, replay_->record(event, body));
    return anew ? Way::by_method : Way::only_in_bundle;
  }

  // The files of the archive are in the order of their events: the next file belongs to this event unless its artifact
  // was erased.
  Result<Way> put_artifact(const json::Value& event, const json::Value& body) {
    const std::string id = body["artifact_id"].string_or("");
    if (!file_) {
      ASSIGN_OR_RETURN(file_, files_.next());
    }
    while (file_ && !file_->path.starts_with("artifacts/")) {
      ASSIGN_OR_RETURN(file_, files_.next());
    }
    if (!file_ || file_->path != "artifacts/" + id) return Way::only_in_bundle;
    Upload upload;
    upload.run_id = result_.run_id;
    upload.step_id = event["step_id"].string_or("");
    upload.occurred_at = when_of(event);
    upload.mime_type = body["mime_type"].string_or("");
    if (const json::Value metadata = body["metadata"]) upload.metadata = metadata.source();
    const std::int64_t size = file_->size_bytes;
    file_.reset();
    if (upload.mime_type == state_mime_type)
      return Way::only_in_bundle;  // state of a snapshot: the new run takes its own snapshots
    ASSIGN_OR_RETURN(const Message answer, put_stream(client_, upload, size, [this] { return files_.read(); }));
    replay_->ids().map(id, answer.result()["artifact_id"].string_or(""));
    return Way::by_method;
  }

  // The rows of manifests are in the order of their events too.
  Result<Way> put_manifest(const json::Value& event, const json::Value& body) {
    const std::string id = body["manifest_id"].string_or("");
    for (;;) {
      ASSIGN_OR_RETURN(const std::optional<std::string> line, manifests_.next());
      if (!line) return Way::only_in_bundle;
      ASSIGN_OR_RETURN(const json::Document row, json::parse(*line));
      if (row.root()["manifest_id"].string_or("") != id) continue;  // its event was erased
      if (!row.root()["manifest"].is(json::Kind::string)) return Way::only_in_bundle;
      ASSIGN_OR_RETURN(const bool anew, replay_->put_manifest(event, id, row.root()["manifest"].string_or("")));
      return anew ? Way::by_method : Way::only_in_bundle;
    }
  }

  Status note_original(const json::Value& event, Way way) {
    json::Writer out;
    out.begin_object();
    copy_known(out, event, {"seq", "run_seq", "recorded_at", "origin", "actor", "event_id", "run_hash"});
    out.member("came", name_of(way)).end_object();
    if (end_line_.empty()) return keep_note(std::move(out).text());
    behind_end_.push_back(std::move(out).text());  // the notes keep the order of the events
    return success();
  }

  Status keep_note(std::string note) {
    noted_.push_back(std::move(note));
    return noted_.size() < batch_events_max ? success() : flush();
  }

  Status flush() {
    if (noted_.empty()) return success();
    json::Writer note;
    note.begin_object().key("bundle").begin_object().member("format", bundle_format).member("sha256", source_.sha256);
    copy_known(note, header_, {"log_id", "origin", "run_id", "run_no", "size"});
    note.end_object().key("events").begin_array();
    for (const std::string& original : noted_) note.raw(original);
    note.end_array().end_object();
    json::Writer item;
    item.begin_object().member("type", "x.muniment.imported");
    item.member("event_id", make_uuid_v8(fmt::format("{}/imported/{}", source_.sha256, notes_++)).text());
    item.raw_member("body", note.text()).end_object();
    batch_.push_back(std::move(item).text());
    json::Writer params;
    params.begin_object().member("run_id", result_.run_id).key("events").begin_array();
    for (const std::string& event : batch_) params.raw(event);
    params.end_array().end_object();
    RETURN_IF_ERROR(client_.call("event.append", params.text()));
    batch_.clear();
    noted_.clear();
    batch_bytes_ = 0;
    return success();
  }

  Client& client_;
  const BundleSource& source_;
  MemberLines events_;
  MemberLines manifests_;
  TarReader files_;
  std::optional<TarEntry> file_;  // the next artifact; its bytes are not read yet
  const std::string header_text_;
  json::Value header_;
  std::optional<EventReplay> replay_;
  RunEnd ending_;
  std::string ended_at_;                 // empty: the run had not ended
  std::string end_line_;                 // an end that may not be the last one …
  std::vector<std::string> behind_end_;  // … and the notes after it
  ImportedBundle result_;
  std::vector<std::string> batch_;  // events to append
  std::vector<std::string> noted_;  // origins of these and other events
  std::size_t batch_bytes_ = 0;
  std::size_t notes_ = 0;
};

}  // namespace

std::int64_t ImportedBundle::total() const {
  std::int64_t sum = events + by_method;
  for (const auto& [type, count] : only_in_bundle) sum += count;
  return sum;
}

Result<ImportedBundle> import_bundle(Client& client, const BundleSource& source) {
  ASSIGN_OR_RETURN(TarReader first, TarReader::open(source.path));
  RETURN_IF_ERROR(first.next());
  std::string header;
  for (;;) {
    ASSIGN_OR_RETURN(const std::string_view piece, first.read());
    if (piece.empty()) break;
    header += piece;
    if (header.size() > header_bytes_max) return Error(Errc::too_large, "bundle.json is too large");
  }
  ASSIGN_OR_RETURN(MemberLines events, MemberLines::open(source.path, "events.jsonl"));
  ASSIGN_OR_RETURN(MemberLines manifests, MemberLines::open(source.path, "manifests.jsonl"));
  ASSIGN_OR_RETURN(TarReader files, TarReader::open(source.path));
  return BundleImport(client, source, std::move(events), std::move(manifests), std::move(files), std::move(header))
      .run();
}

}  // namespace muniment::cli
