// artifact.put: receives bytes within the request or after its line, at once or in resumable pieces, and appends one
// artifact.stored event with its row. Equal bytes in one step are stored once.
#include <fmt/format.h>

#include "base/crypto/base64.hpp"
#include "base/limits.hpp"
#include "base/process/failpoint.hpp"
#include "gateway/access.hpp"
#include "gateway/methods/knowledge/artifact_rows.hpp"
#include "gateway/methods/methods.hpp"
#include "gateway/read/pointing.hpp"
#include "gateway/services.hpp"

namespace muniment::gateway::methods {
namespace {

// The checked parameters of a put.
struct Put {
  std::shared_ptr<store::Run> run;
  std::string step_id;
  std::string mime_type;
  std::string metadata;
  std::optional<Uuid> upload_id;  // internal id, used for the files
  std::string upload_name;        // id that the client sent
  std::int64_t offset = 0;
  bool final = true;  // the artifact is complete after this piece
};

Result<Put> read_put(Call& call) {
  Put put;
  const json::Value& params = call.params;
  ASSIGN_OR_RETURN(put.run, find_run(call, params["run_id"].string_or("")));
  put.step_id = params["step_id"].string_or(default_step);
  put.mime_type = params["mime_type"].string_or(params["text"] ? "text/plain" : "application/octet-stream");
  RETURN_IF_ERROR(check_mime_type(put.mime_type));
  RETURN_IF_ERROR(check_metadata(params["metadata"]));
  put.metadata = params["metadata"] ? params["metadata"].source() : "{}";
  if (const auto name = params["upload_id"].as_string()) {
    // The id includes the actor and the run, so that another user cannot continue the upload by guessing its name.
    put.upload_id = make_uuid_v8("upload/" + call.caller.actor + "/" + put.run->run_id + "/" + *name);
    put.upload_name = *name;
    put.offset = params["offset"].as_int().value_or(0);
    put.final = params["final"].as_bool().value_or(false);
  } else if (params["offset"] || params["final"]) {
    return Error(Errc::invalid_argument, "offset and final belong to a resumable upload: name it with upload_id.");
  }
  return put;
}

std::string put_reply(const store::ArtifactRow& row, std::int64_t seq, bool duplicate) {
  json::Writer out;
  out.begin_object()
      .member("artifact_id", row.artifact_id.text())
      .member("path", row.path)
      .member("hash", to_hex(row.hash))
      .member("size_bytes", row.size_bytes)
      .member("mime_type", row.mime_type)
      .member("pointer", artifact_pointer(row.run_id, row.artifact_id))
      .member("seq", seq)
      .member("duplicate", duplicate)
      .end_object();
  return std::move(out).text();
}

std::string upload_reply(const Put& put, std::int64_t offset) {
  json::Writer out;
  out.begin_object().member("upload_id", put.upload_name).member("offset", offset).end_object();
  return std::move(out).text();
}

// Returns the reply for an artifact with these bytes that the step already holds. The file is verified first, because
// the reply states that the bytes are kept.
Result<std::optional<Answer>> find_first(Call& call, const Put& put, const Hash& hash) {
  if (!put.run->maybe_stored(put.step_id, hash)) return std::optional<Answer>();
  ASSIGN_OR_RETURN(const auto first, call.reader->artifact_with_hash(put.run->run_id, put.step_id, hash));
  if (!first) return std::optional<Answer>();
  if (auto checked = call.services.files.check(store::file_of(*first)); !checked) {
    const Error error = artifact_damage(*first, std::move(checked).error());
    if (error.code != Errc::corrupt) return error;
    ASSIGN_OR_RETURN(auto answer, answer_damage(call, error.pointer, {.run = put.run}, error));
    if (answer) return answer;
  }
  return std::optional<Answer>(Reply{put_reply(*first, first->seq, true), {}});
}

Answer record(Call& call, const Put& put, const store::StoredFile& file, std::int64_t asked_at);

// Called once the file is durable: records its event and its row. If the step already holds these bytes, the new file
// is removed.
Result<Answer> record_unless_first(Call& call, const Put& put, const store::StoredFile& file) {
  const std::int64_t asked_at = put.run->next_run_seq();
  auto first = find_first(call, put, file.hash);
  if (first && !*first) return record(call, put, file, asked_at);
  call.services.files.abandon(file);
  if (!first) return std::move(first).error();
  return std::move(**first);
}

Answer record(Call& call, const Put& put, const store::StoredFile& file, std::int64_t asked_at) {
  FAILPOINT("put.asked");
  const store::ArtifactRow row = store::artifact_row(file, put.run->run_id, put.step_id, put.mime_type, put.metadata);
  const std::string_view step = call.params["step_id"] ? std::string_view(put.step_id) : std::string_view();
  PendingAppend append;
  append.request.actor = call.caller.actor;
  append.request.events.push_back(
      {put.run, make_event(call, *put.run, "artifact.stored", store::artifact_stored_body(row), step)});
  append.request.rows.push_back({0, row});
  append.request.contents_asked_at = asked_at;
  append.finish = [row](Services& services, const std::vector<events::Receipt>& receipts) -> Result<Reply> {
    services.files.committed(row.artifact_id);
    return Reply{put_reply(row, receipts.front().seq, false), {}};
  };
  append.refused = [file](Services& services, Error error) -> Result<Reply> {
    services.files.abandon(file);
    return error;
  };
  append.again = [put, file](Call& again) { return record_unless_first(again, put, file); };
  append.even_if_answered = put.upload_id.has_value();  // the finished upload is removed, so its bytes must be recorded
  return append;
}

Result<Answer> finish_upload(Call& call, const Put& put) {
  store::ArtifactFiles& files = call.services.files;
  if (!put.final) {
    auto size = files.upload_size(*put.upload_id);
    if (!size && size.error().code != Errc::not_found) return std::move(size).error();
    return Answer(Reply{upload_reply(put, size ? *size : 0), {}});
  }
  ASSIGN_OR_RETURN(const store::StoredFile file,
                   files.upload_publish(*put.upload_id, put.run->run_id, put.step_id,
                                        make_uuid_v7(call.services.clock.now()), put.mime_type));
  return record_unless_first(call, put, file);
}

// Returns the bytes that the request itself contains, if any.
Result<std::optional<std::string>> inline_bytes(const json::Value& params) {
  if (params["text"] && params["base64"]) return Error(Errc::invalid_argument, "send text or base64, not both.");
  if (params["text"]) return params["text"].as_string();
  if (!params["base64"]) return std::optional<std::string>();
  auto bytes = from_base64(params["base64"].string_or(""));
  if (!bytes)
    return Error(Errc::invalid_argument,
                 "base64: not base64 with padding and without line breaks (RFC 4648, section 4).");
  return bytes;
}

class PutSink final : public BodySink {
 public:
  PutSink(Put put, std::unique_ptr<store::ArtifactWrite> write) : put_(std::move(put)), write_(std::move(write)) {}
  Status write(std::string_view chunk) override { return write_->append(chunk); }
  Result<Answer> finish(Call& call) override {
    ASSIGN_OR_RETURN(
        const store::StoredFile file,
        write_->publish(put_.run->run_id, put_.step_id, make_uuid_v7(call.services.clock.now()), put_.mime_type));
    write_.reset();
    return record_unless_first(call, put_, file);
  }

 private:
  const Put put_;
  std::unique_ptr<store::ArtifactWrite> write_;
};

// Adds each chunk to the upload as it arrives, so that a disconnected client resumes after the last received byte.
class UploadSink final : public BodySink {
 public:
  UploadSink(Put put, store::ArtifactFiles& files, WriteState* write_state)
      : put_(std::move(put)), files_(files), write_state_(write_state), offset_(put_.offset) {}
  Status write(std::string_view chunk) override {
    RETURN_IF_ERROR(files_.upload_append(*put_.upload_id, offset_, chunk));
    offset_ += static_cast<std::int64_t>(chunk.size());
    if (write_state_ != nullptr) write_state_->has_written();
    return success();
  }
  Result<Answer> finish(Call& call) override { return finish_upload(call, put_); }
  bool keeps_pieces() const override { return true; }

 private:
  const Put put_;
  store::ArtifactFiles& files_;
  WriteState* const write_state_;  // owned by the request, which outlives its bytes
  std::int64_t offset_;
};

}  // namespace

Result<Answer> artifact_put(Call& call) {
  if (!call.reader) return Answer(NeedsWorker{});
  ASSIGN_OR_RETURN(const Put put, read_put(call));
  ASSIGN_OR_RETURN(const auto bytes, inline_bytes(call.params));
  store::ArtifactFiles& files = call.services.files;
  if (put.upload_id) {
    RETURN_IF_ERROR(check_open(*put.run));
    RETURN_IF_ERROR(call.begin_writing());
    if (bytes) {
      RETURN_IF_ERROR(files.upload_append(*put.upload_id, put.offset, *bytes));
      if (!bytes->empty()) call.has_written();
    }
    return finish_upload(call, put);
  }
  if (!bytes) {
    return Error(Errc::invalid_argument,
                 "an artifact needs bytes: send text, base64, or body_bytes and the raw bytes after the line.");
  }
  ASSIGN_OR_RETURN(auto first, find_first(call, put, sha256(*bytes)));
  if (first) return std::move(*first);  // needs no file, and is independent of the run's status
  RETURN_IF_ERROR(check_open(*put.run));
  ASSIGN_OR_RETURN(const store::StoredFile file, files.store(*bytes, put.run->run_id, put.step_id,
                                                             make_uuid_v7(call.services.clock.now()), put.mime_type));
  return record_unless_first(call, put, file);
}

Result<std::unique_ptr<BodySink>> artifact_put_body(Call& call, std::int64_t body_bytes) {
  if (call.params["text"] || call.params["base64"]) {
    return Error(Errc::invalid_argument, "send the bytes once: text, base64 or body_bytes.");
  }
  ASSIGN_OR_RETURN(Put put, read_put(call));
  RETURN_IF_ERROR(check_open(*put.run));
  if (put.upload_id) {
    RETURN_IF_ERROR(call.begin_writing());
    // Checks the offset before any byte arrives.
    RETURN_IF_ERROR(call.services.files.upload_append(*put.upload_id, put.offset, {}));
    return std::unique_ptr<BodySink>(
        std::make_unique<UploadSink>(std::move(put), call.services.files, call.write_state));
  }
  ASSIGN_OR_RETURN(auto write, call.services.files.begin(body_bytes));
  return std::unique_ptr<BodySink>(std::make_unique<PutSink>(std::move(put), std::move(write)));
}

}  // namespace muniment::gateway::methods
