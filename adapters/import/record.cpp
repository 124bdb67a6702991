#include "adapters/import/record.hpp"

#include <fmt/format.h>

#include <utility>

#include "adapters/import/spill.hpp"
#include "adapters/mcp/scrub_json.hpp"
#include "base/ids.hpp"
#include "base/limits.hpp"
#include "base/text.hpp"
#include "bridge/scrub.hpp"
#include "client/connect/pages.hpp"
#include "client/connect/upload.hpp"

namespace muniment::cli {

namespace {

bool is_text(std::string_view mime_type) {
  return mime_type.starts_with("text/") || mime_type.ends_with("json") || mime_type.ends_with("xml");
}

constexpr std::string_view file_event_type = "x.import.file";
constexpr std::string_view step_ended = "step.ended";

std::string event_id_of(std::string_view source, std::size_t place, std::string_view kind) {
  return make_uuid_v8(fmt::format("{}/{}/{}", source, place, kind)).text();
}

}  // namespace

ImportRecorder::ImportRecorder(Client& client, std::string run_id, std::string source, bool scrub, bool grows)
    : client_(client), run_id_(std::move(run_id)), source_(std::move(source)), scrub_(scrub), grows_(grows) {}

// Starts the run without a lookup before, since most runs do not exist yet.
Result<bool> ImportRecorder::start(const std::string& params) {
  std::string sent = params;
  if (const auto given = json::parse(std::string_view(params)))
    file_sha256_ = given->root()["import"]["sha256"].string_or("");
  if (scrub_) scrub_json(sent);
  const auto answer = client_.call("run.start", sent);
  started_ = answer.ok();
  if (answer && grows_ && answer->result()["resumed"]) RETURN_IF_ERROR(load_known());
  if (answer) return true;
  if (grows_) start_ = std::move(sent);
  if (answer.error().code != Errc::conflict) return answer.error();
  // The run has ended or belongs to another user.
  const auto known = client_.call("run.get", fmt::format("{{\"run_id\":{}}}", json::quote(run_id_)));
  if (!known) return answer.error();
  ended_before_ = grows_ && known->result()["run"]["status"].string_or("") == "ended";
  if (!ended_before_) return false;
  ASSIGN_OR_RETURN(const bool imported, has_file());
  if (!imported) RETURN_IF_ERROR(load_known());
  return !imported;
}

// The run of a session has an event for each state of its file that was imported.
Result<bool> ImportRecorder::has_file() {
  bool found = false;
  const std::string params = fmt::format(R"({{"run_id":{},"types":["{}"],"limit":{}}})", json::quote(run_id_),
                                         file_event_type, limits::page_items_max);
  RETURN_IF_ERROR(each_item(client_, "event.list", params, "events", [&](const json::Value& event) -> Result<bool> {
    found = event["body"]["sha256"].string_or("") == file_sha256_;
    return !found;
  }));
  return found;
}

Status ImportRecorder::load_known() {
  const std::string params = fmt::format(R"({{"run_id":{},"fields":["event_id","type","step_id"],"limit":{}}})",
                                         json::quote(run_id_), limits::page_items_max);
  return each_item(client_, "event.list", params, "events", [&](const json::Value& event) -> Result<bool> {
    known_.insert(event["event_id"].string_or(""));
    if (event["type"].string_or("") == step_ended) ended_steps_.insert(event["step_id"].string_or(""));
    return true;
  });
}

Status ImportRecorder::reopen() {
  if (!ended_before_) return success();
  RETURN_IF_ERROR(client_.call("run.start", start_.substr(0, start_.size() - 1) +
                                                R"(,"reopen":true,"why":"the session went on after its import"})"));
  ended_before_ = false;
  started_ = true;
  return success();
}

Result<ImportedArtifact> ImportRecorder::put(const std::string& step_id, const std::string& mime_type,
                                             std::string_view bytes) {
  Upload upload;
  upload.run_id = run_id_;
  upload.step_id = step_id;
  upload.mime_type = mime_type;
  std::string scrubbed;
  if (scrub_ && is_text(mime_type)) {
    scrubbed = bytes;
    bridge::scrub_text(scrubbed);
    bytes = scrubbed;
  }
  ASSIGN_OR_RETURN(const Message answer, put_bytes(client_, upload, bytes));
  ++artifacts_;
  const json::Value result = answer.result();
  return ImportedArtifact{result["artifact_id"].string_or(""), result["hash"].string_or(""),
                          result["size_bytes"].as_int().value_or(0)};
}

Status ImportRecorder::append(std::size_t place, const std::vector<ImportedEvent>& events) {
  // Below the limit of a request line, with room for the rest of the request.
  constexpr std::size_t bytes_max = limits::request_line_bytes_max - 4096;
  std::string list;
  std::size_t count = 0;
  for (const ImportedEvent& event : events) {
    // The end of the file was the end of its last step, too.
    if (grows_ && (known_.contains(event_id_of(source_, place, event.kind)) ||
                   (event.type == step_ended && ended_steps_.contains(event.step_id))))
      continue;
    RETURN_IF_ERROR(reopen());
    if (event.type.starts_with("x.") && event.type.ends_with(".repaired")) ++repaired_;
    tally_.add(event);
    ASSIGN_OR_RETURN(const std::string text, event_json(place, event));
    if (count == limits::events_per_request_max || list.size() + text.size() + 1 > bytes_max) {
      RETURN_IF_ERROR(send(list, count));
      list.clear();
      count = 0;
    }
    if (count++ > 0) list.push_back(',');
    list += text;
  }
  return count > 0 ? send(list, count) : success();
}

Result<std::string> ImportRecorder::event_json(std::size_t place, const ImportedEvent& event) {
  json::Writer writer;
  writer.begin_object().member("type", event.type);
  writer.member("event_id", event_id_of(source_, place, event.kind));
  if (!event.step_id.empty()) writer.member("step_id", event.step_id);
  if (!event.occurred_at.empty()) writer.member("occurred_at", event.occurred_at);
  std::string body = event.body;
  if (scrub_) scrub_json(body);
  if (must_shrink(body)) {
    ImportedEvent large = event;
    large.body = std::move(body);
    ASSIGN_OR_RETURN(body, shrink_body(*this, run_id_, large));
  }
  if (!event.blobs.empty()) {
    ASSIGN_OR_RETURN(body, body_with_blobs(event, body));
  }
  writer.raw_member("body", body);
  writer.end_object();
  return std::move(writer).text();
}

Result<std::string> ImportRecorder::body_with_blobs(const ImportedEvent& event, const std::string& body) {
  ASSIGN_OR_RETURN(const json::Document document, json::parse(std::string_view(body)));
  const bool has_content = document.root()["content"].is(json::Kind::array);
  std::vector<std::string> references;
  for (const ImportedBlob& blob : event.blobs) {
    ASSIGN_OR_RETURN(const ImportedArtifact kept, put(event.step_id, blob.mime_type, blob.bytes));
    json::Writer out;
    out.begin_object().member("artifact_id", kept.artifact_id).member("hash", kept.hash);
    out.member("size_bytes", kept.size_bytes).member("mime_type", blob.mime_type);
    if (has_content) out.member("type", blob.mime_type.substr(0, blob.mime_type.find('/')));
    references.push_back(std::move(out.end_object()).text());
  }
  json::Writer out;
  out.begin_object();
  for (const json::Value member : document.root()) {
    out.key(member.key());
    if (!has_content || member.key() != "content") {
      out.raw(member.source());
      continue;
    }
    out.begin_array();
    for (const json::Value part : member) out.raw(part.source());
    for (const std::string& reference : references) out.raw(reference);
    out.end_array();
  }
  if (!has_content) out.raw_member("original", references.front());
  return std::move(out.end_object()).text();
}

Status ImportRecorder::send(const std::string& events, std::size_t count) {
  ASSIGN_OR_RETURN(const Message answer,
                   client_.call("event.append", fmt::format(R"({{"run_id":{},"spill":true,"events":[{}]}})",
                                                            json::quote(run_id_), events)));
  const json::Value receipts = answer.result()["receipts"];
  if (receipts.size() != count) {
    return Error(Errc::system_error,
                 fmt::format("{} events were sent but {} receipts were returned", count, receipts.size()));
  }
  events_ += count;
  for (const json::Value receipt : receipts) {
    if (receipt["spilled"]) artifacts_ += receipt["spilled"].size();
  }
  return success();
}

std::uint64_t events_upto(const Message& end) {
  return static_cast<std::uint64_t>(end.result()["run_seq"].as_int().value_or(-1) + 1);
}

Status ImportRecorder::end(const RunEnd& end) {
  if (ended_before_) return success();
  if (grows_) {
    const ImportedEvent file{
        "file-" + file_sha256_, std::string(file_event_type), {}, fmt::format(R"({{"sha256":"{}"}})", file_sha256_)};
    RETURN_IF_ERROR(append(0, {file}));
  }
  json::Writer params;
  params.begin_object().member("run_id", run_id_).member("outcome", end.outcome);
  std::string summary = end.summary;
  if (scrub_) bridge::scrub_text(summary);
  params.member("summary", summary);
  if (!end.usage.empty()) params.raw_member("usage", end.usage);
  params.end_object();
  ASSIGN_OR_RETURN(const Message answer, client_.call("run.end", params.text()));
  events_ = events_upto(answer);
  started_ = false;
  return success();
}

Error ImportRecorder::broke_off(Error error) {
  if (!started_ || is_transient(error.code)) return error;
  // A failure here is ignored, since the original error matters more.
  (void)end({std::string(unknown_end), "partly imported: " + preview(error.message, 1'000)}).ok();
  error.message += fmt::format(" (run {} is partly imported)", run_id_);
  return error;
}

namespace {

Result<bool> send_run(ImportRecorder& recorder, const TranslatedRun& translated, std::string_view format) {
  const ImportedRun& run = translated.run;
  ASSIGN_OR_RETURN(const bool wanted, recorder.start(start_params(run, translated.source, format)));
  if (!wanted) return false;
  RETURN_IF_ERROR(recorder.append(0, run.events));
  if (recorder.is_unchanged()) return false;
  if (!run.submission.empty()) RETURN_IF_ERROR(recorder.put({}, "text/x-diff", run.submission));
  RETURN_IF_ERROR(recorder.end(run.end));
  return true;
}

}  // namespace

Result<RecordedRun> record_run(Client& client, const TranslatedRun& translated, std::string_view format, bool scrub) {
  const SourceFile& source = translated.source;
  const bool grows = !source.session.empty();
  ImportRecorder recorder(client, imported_run_id(source), grows ? source.session : source.sha256, scrub, grows);
  const auto added = send_run(recorder, translated, format);
  if (!added) return recorder.broke_off(added.error());
  RecordedRun recorded{recorder.run_id(),   *added,          recorder.events(), recorder.artifacts(),
                       recorder.repaired(), recorder.tally()};
  if (*added) recorded.tally.expect_members(translated.run.members);
  return recorded;
}

}  // namespace muniment::cli
