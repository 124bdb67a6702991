#include "cli/import/record.hpp"

#include <fmt/format.h>

#include <utility>

#include "base/ids.hpp"
#include "base/limits.hpp"
#include "base/text.hpp"
#include "cli/import/spill.hpp"
#include "cli/upload.hpp"

namespace muniment::cli {

ImportRecorder::ImportRecorder(Client& client, std::string run_id, std::string source_sha256)
    : client_(client), run_id_(std::move(run_id)), source_(std::move(source_sha256)) {}

// Asked first whether it is there, the daemon would look it up twice: most are not.
Result<bool> ImportRecorder::start(const std::string& params) {
  const auto answer = client_.call("run.start", params);
  started_ = answer.ok();
  if (answer) return true;
  if (answer.error().code != Errc::conflict) return answer.error();
  // It has ended, or it is somebody else's.
  const auto known = client_.call("run.get", fmt::format("{{\"run_id\":{}}}", json::quote(run_id_)));
  return known ? Result<bool>(false) : answer.error();
}

Result<ImportedArtifact> ImportRecorder::put(const std::string& step_id, const std::string& mime_type,
                                             std::string_view bytes) {
  Upload upload;
  upload.run_id = run_id_;
  upload.step_id = step_id;
  upload.mime_type = mime_type;
  ASSIGN_OR_RETURN(const Message answer, put_bytes(client_, upload, bytes));
  ++artifacts_;
  const json::Value result = answer.result();
  return ImportedArtifact{result["artifact_id"].string_or(""), result["hash"].string_or(""),
                          result["size_bytes"].as_int().value_or(0)};
}

Result<std::vector<std::int64_t>> ImportRecorder::append(std::size_t place,
                                                         const std::vector<ImportedEvent>& events) {
  // Below a line's limit, with room for what stands around the events.
  constexpr std::size_t bytes_max = limits::request_line_bytes_max - 4096;
  std::vector<std::int64_t> places;
  std::string list;
  std::size_t count = 0;
  for (const ImportedEvent& event : events) {
    ASSIGN_OR_RETURN(const std::string text, event_json(place, event));
    if (count == limits::events_per_request_max || list.size() + text.size() + 1 > bytes_max) {
      RETURN_IF_ERROR(send(list, places));
      list.clear();
      count = 0;
    }
    if (count++ > 0) list.push_back(',');
    list += text;
  }
  if (count > 0) RETURN_IF_ERROR(send(list, places));
  if (places.size() != events.size()) {
    return Error(Errc::system_error, fmt::format("{} events were sent, {} receipts came back", events.size(),
                                                 places.size()));
  }
  return places;
}

Result<std::string> ImportRecorder::event_json(std::size_t place, const ImportedEvent& event) {
  json::Writer writer;
  writer.begin_object().member("type", event.type);
  writer.member("event_id", make_uuid_v8(fmt::format("{}/{}/{}", source_, place, event.kind)).text());
  if (!event.step_id.empty()) writer.member("step_id", event.step_id);
  if (!event.occurred_at.empty()) writer.member("occurred_at", event.occurred_at);
  if (event.body.size() <= sent_body_bytes_max) {
    writer.raw_member("body", event.body);
  } else {
    ASSIGN_OR_RETURN(const std::string body, shrink_body(*this, run_id_, event));
    writer.raw_member("body", body);
  }
  writer.end_object();
  return std::move(writer).text();
}

Status ImportRecorder::send(const std::string& events, std::vector<std::int64_t>& places) {
  ASSIGN_OR_RETURN(const Message answer,
                   client_.call("event.append", fmt::format(R"({{"run_id":{},"spill":true,"events":[{}]}})",
                                                            json::quote(run_id_), events)));
  for (const json::Value receipt : answer.result()["receipts"]) {
    places.push_back(receipt["run_seq"].as_int().value_or(-1));
    ++events_;
    if (receipt["spilled"]) artifacts_ += receipt["spilled"].size();
  }
  return success();
}

// The daemon derives the event's id from this: the same source asks for the same event.
std::string ImportRecorder::meta(std::string_view what) const {
  return fmt::format("{{\"idempotency_key\":{}}}", json::quote(fmt::format("{}/{}", source_, what)));
}

Result<std::string> ImportRecorder::manifest(std::size_t place, const std::string& step_id,
                                             const std::string& manifest) {
  json::Writer params;
  params.begin_object().member("run_id", run_id_).member("step_id", step_id);
  params.raw_member("manifest", manifest);
  params.raw_member("_meta", meta(fmt::format("manifest-{}", place))).end_object();
  ASSIGN_OR_RETURN(const Message answer, client_.call("manifest.put", params.text()));
  ++events_;
  return answer.result()["manifest_id"].string_or("");
}

Status ImportRecorder::claim(const std::string& text, const std::string& pointer) {
  json::Writer params;
  params.begin_object().member("run_id", run_id_).member("text", text);
  params.key("pointers").begin_array().string(pointer).end_array();
  params.raw_member("_meta", meta("claim")).end_object();
  RETURN_IF_ERROR(client_.call("claim.record", params.text()));
  ++events_;
  return success();
}

Status ImportRecorder::end(const std::string& outcome, const std::string& summary) {
  json::Writer params;
  params.begin_object().member("run_id", run_id_).member("outcome", outcome);
  params.member("summary", summary).end_object();
  RETURN_IF_ERROR(client_.call("run.end", params.text()));
  started_ = false;
  return success();
}

Error ImportRecorder::broke_off(Error error) {
  if (!started_ || is_transient(error.code)) return error;
  // What this says matters more than whether it could be written, too.
  (void)end("abandoned", "imported in part: " + preview(error.message, 1'000)).ok();
  error.message += fmt::format(" (run {} is imported in part)", run_id_);
  return error;
}

Result<bool> record_run(ImportRecorder& recorder, const ImportedRun& run, const SourceFile& source, std::string_view format) {
  ASSIGN_OR_RETURN(const bool wanted, recorder.start(start_params(run, source, format)));
  if (!wanted) return false;
  RETURN_IF_ERROR(recorder.append(0, run.events));
  if (!run.submission.empty()) {
    ASSIGN_OR_RETURN(const ImportedArtifact patch, recorder.put({}, "text/x-diff", run.submission));
    RETURN_IF_ERROR(recorder.claim(run.claim, fmt::format("artifact://{}/{}", imported_run_id(source), patch.artifact_id)));
  }
  RETURN_IF_ERROR(recorder.end(run.outcome, run.summary));
  return true;
}

}  // namespace muniment::cli
