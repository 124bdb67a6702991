#include "adapters/import/formats/log.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "adapters/import/guess.hpp"
#include "adapters/import/record.hpp"
#include "adapters/import/records.hpp"
#include "adapters/import/source.hpp"
#include "base/files/file.hpp"
#include "base/ids.hpp"
#include "base/limits.hpp"
#include "base/text.hpp"
#include "client/connect/upload.hpp"
#include "client/replay/event_replay.hpp"
#include "events/catalogue.hpp"

namespace muniment::cli {
namespace {

constexpr std::string_view snapshot_mime_type = "application/vnd.muniment.state+json";
constexpr std::size_t log_batch_events_max = 512;
constexpr std::size_t log_batch_bytes_max = limits::request_line_bytes_max / 2;
constexpr std::size_t problems_max = 20;
constexpr std::size_t suffix_digits = 8;

class LogImport {
 public:
  LogImport(Client& client, const std::string& path, const std::string& artifacts, std::string sha256)
      : client_(client), path_(path), artifacts_(artifacts), sha256_(std::move(sha256)) {}

  Result<ImportedLog> run(const std::function<void(std::int64_t, std::int64_t)>& progress) {
    ASSIGN_OR_RETURN(RecordReader reader, RecordReader::open_lines(path_));
    for (;;) {
      const auto record = reader.next();
      if (!record && record.error().code != Errc::too_large) return record.error();
      if (!record) {
        complain(record.error().message);
        continue;
      }
      if (!*record) break;
      if (const Status done = take((*record)->text); !done) {
        if (done.error().code != Errc::invalid_argument) return done.error();
        complain(fmt::format("line {}: {}", (*record)->line, done.error().message));
      }
      progress(reader.position(), reader.size());
    }
    RETURN_IF_ERROR(start_pending(json::Value()));
    for (auto& [id, target] : targets_) RETURN_IF_ERROR(close(target));
    return std::move(result_);
  }

 private:
  // A run of the export and its target in this log.
  struct Target {
    explicit Target(EventReplay of) : replay(std::move(of)) {}
    EventReplay replay;
    ImportedLog::Run run;
    std::vector<std::string> batch;
    std::size_t bytes = 0;
    std::int64_t next_run_seq = 0;
    RunEnd end{std::string(unknown_end), "the run had not ended when it was exported"};
    std::string error;
    std::string ended_at;  // empty: the run had not ended
    bool closed = false;
  };
  // A run whose start is known and whose next line is awaited: a child.started of its parent adds details.
  struct Pending {
    std::string old_id;
    std::string params;  // parameters of run.start, without the closing brace
    std::string new_id;
    std::string parent;  // id in the export
    std::string parent_run_seq;
  };

  void complain(std::string message) {
    ++result_.bad_lines;
    if (result_.problems.size() < problems_max) result_.problems.push_back(std::move(message));
  }

  Status take(std::string_view text) {
    ASSIGN_OR_RETURN(const json::Document document, json::parse(text));
    const json::Value event = document.root();
    const std::string old_id = event["run_id"].string_or("");
    const std::string type = event["type"].string_or("");
    const auto run_seq = event["run_seq"].as_int();
    if (old_id.empty() || type.empty() || !run_seq || !event["body"].present() ||
        !parse_uuid(event["event_id"].string_or(""))) {
      return Error(Errc::invalid_argument, "not an event of an export" + looks_like(event));
    }
    RETURN_IF_ERROR(start_pending(event));
    if (old_id == log_run_id) return leave(type);
    const auto known = targets_.find(old_id);
    if (known == targets_.end()) {
      RETURN_IF_ERROR(prepare(event, old_id));
      if (type == "run.started") return success();
      RETURN_IF_ERROR(start_pending(json::Value()));
    }
    Target& target = targets_.at(old_id);
    if (!target.run.added) return success();
    if (*run_seq > target.next_run_seq)
      target.run.missing += static_cast<std::uint64_t>(*run_seq - target.next_run_seq);
    target.next_run_seq = *run_seq + 1;
    return record(target, event, type);
  }

  Status leave(const std::string& type) {
    ++result_.left_out[type];
    return success();
  }

  // An erased event has no salt; an archived event has one.
  Status leave_without_body(Target& target, const json::Value& event, const std::string& type) {
    if (type == "state.patched") target.replay.lost_patch();
    const bool archived = event["salt"].is(json::Kind::string);
    if (type == "run.ended")
      target.end.summary =
          archived ? "how the run ended is in an archive that was not exported" : "how the run ended was erased";
    if (!archived) return leave("erased " + type);
    ++target.run.archived;
    return leave("archived " + type);
  }

  // Keeps the id of the run unless another run has it.
  Result<std::string> name_run(const std::string& old_id) {
    if (!check_run_id(old_id)) return Error(Errc::invalid_argument, "invalid run_id: " + preview(old_id, 200));
    const auto first = client_.call("event.get", fmt::format(R"({{"run_id":{},"run_seq":0}})", json::quote(old_id)));
    if (!first && first.error().code != Errc::not_found) return first.error();
    if (!first || first->result()["event"]["body"]["import"]["sha256"].string_or("") == sha256_) return old_id;
    const std::string suffix = "-" + sha256_.substr(0, suffix_digits);
    return old_id.substr(0, limits::run_id_bytes_max - suffix.size()) + suffix;
  }

  Status prepare(const json::Value& event, const std::string& old_id) {
    Pending pending;
    pending.old_id = old_id;
    ASSIGN_OR_RETURN(pending.new_id, name_run(old_id));
    const bool is_start = event["type"].string_or("") == "run.started";
    const json::Value body = is_start ? event["body"] : json::Value();
    json::Writer params;
    params.begin_object().member("run_id", pending.new_id);
    if (body["agent"])
      params.raw_member("agent", body["agent"].source());
    else
      params.key("agent").begin_object().member("name", "unknown").end_object();
    copy_known(params, body, {"goal", "labels", "external_id", "client", "cwd", "vcs"});
    params.key("import").begin_object().member("format", log_format).member("sha256", sha256_);
    params.member("importer", importer_name).end_object();
    params.member("indexed", body["indexed"].as_bool().value_or(false));
    if (const std::string when = when_of(event); is_start && !when.empty())
      params.key("_meta").begin_object().member("occurred_at", when).end_object();
    pending.params = params.text();
    pending.parent = body["parent"]["run_id"].string_or("");
    pending.parent_run_seq = body["parent"]["run_seq"].source();
    pending_ = std::move(pending);
    return success();
  }

  // `next` is the line after the start; absent at the end of the file.
  Status start_pending(const json::Value& next) {
    if (!pending_) return success();
    const Pending pending = *std::exchange(pending_, std::nullopt);
    std::string params = pending.params;
    const auto parent = targets_.find(pending.parent);
    const bool has_parent = parent != targets_.end() && parent->second.run.added && !parent->second.closed;
    if (has_parent) {
      RETURN_IF_ERROR(flush(parent->second));
      json::Writer member;
      member.begin_object().member("run_id", parent->second.run.run_id).raw_member("run_seq", pending.parent_run_seq);
      if (next["type"].string_or("") == "child.started" && next["body"]["run_id"].string_or("") == pending.old_id) {
        copy_known(member, next["body"], {"kind", "call_id"});
      }
      params += ",\"parent\":" + std::move(member.end_object()).text();
      children_.insert(pending.old_id);
    }
    Target target(EventReplay(client_, pending.new_id, pending.old_id, sha256_ + "/" + pending.old_id));
    target.run.run_id = pending.new_id;
    target.next_run_seq = 1;
    const auto answer = client_.call("run.start", params + "}");
    if (!answer && answer.error().code != Errc::conflict) return answer.error();
    target.run.added = answer.ok();
    targets_.emplace(pending.old_id, std::move(target));
    return success();
  }

  Status record(Target& target, const json::Value& event, const std::string& type) {
    const json::Value body = event["body"];
    if (type == "run.ended" && !target.closed) target.ended_at = when_of(event);
    if (!body.is(json::Kind::object)) return leave_without_body(target, event, type);
    if (type == "run.started") return success();
    if (target.closed) return leave(type);
    // The daemon writes the parent's events about a child at the start and end of the child.
    if ((type == "child.started" || type == "child.ended") && children_.contains(body["run_id"].string_or("")))
      return success();
    const events::TypeInfo* const info = events::find_type(type);
    if (info != nullptr && info->replay == events::Replay::omitted) return leave(type);
    if (events::check_client_may_write(type)) return append(target, event, body);
    if (type == "run.ended") {
      target.end = {body["outcome"].string_or(unknown_end), body["summary"].string_or(""),
                    std::string(body["usage"].source())};
      if (body["error"]) target.error = body["error"].source();
      return close(target);
    }
    if (type == "artifact.stored") return put_artifact(target, event, body);
    RETURN_IF_ERROR(flush(target));
    if (type == "manifest.recorded") return put_manifest(target, event, body);
    ASSIGN_OR_RETURN(const bool anew, target.replay.record(event, body));
    return anew ? success() : leave(type);
  }

  Status append(Target& target, const json::Value& event, const json::Value& body) {
    std::string item = target.replay.item(event, body);
    if (target.replay.may_not_apply(event, body)) {
      RETURN_IF_ERROR(flush(target));
      ASSIGN_OR_RETURN(const bool applied, target.replay.append_patch(item));
      return applied ? success() : leave("state.patched on missing state");
    }
    if (target.bytes + item.size() > log_batch_bytes_max || target.batch.size() == log_batch_events_max)
      RETURN_IF_ERROR(flush(target));
    target.bytes += item.size();
    target.batch.push_back(std::move(item));
    return success();
  }

  Status flush(Target& target) {
    if (target.batch.empty()) return success();
    const std::string list = joined(std::exchange(target.batch, {}), ",");
    target.bytes = 0;
    RETURN_IF_ERROR(client_.call(
        "event.append", fmt::format(R"({{"run_id":{},"events":[{}]}})", json::quote(target.run.run_id), list)));
    return success();
  }

  Status put_artifact(Target& target, const json::Value& event, const json::Value& body) {
    const std::string id = body["artifact_id"].string_or("");
    const std::string file = artifacts_ + "/" + id;
    Upload upload;
    upload.mime_type = body["mime_type"].string_or("");
    if (upload.mime_type == snapshot_mime_type)
      return success();  // state of a snapshot: the run takes its own snapshots
    if (artifacts_.empty() || !parse_uuid(id) || ::access(file.c_str(), R_OK) != 0)
      return leave("artifact.stored without its file");
    RETURN_IF_ERROR(flush(target));
    upload.run_id = target.run.run_id;
    upload.step_id = event["step_id"].string_or("");
    upload.occurred_at = when_of(event);
    if (const json::Value metadata = body["metadata"]) upload.metadata = metadata.source();
    ASSIGN_OR_RETURN(const Message answer, put_file(client_, upload, file));
    if (answer.result()["hash"].string_or("") != body["hash"].string_or("")) {
      return Error(Errc::corrupt, file + " does not match the hash of the artifact in the export");
    }
    target.replay.ids().map(id, answer.result()["artifact_id"].string_or(""));
    ++target.run.artifacts;
    return success();
  }

  Status put_manifest(Target& target, const json::Value& event, const json::Value& body) {
    const std::string id = body["manifest_id"].string_or("");
    if (artifacts_.empty() || !parse_uuid(id)) return leave("manifest.recorded without its file");
    const auto text = read_file(artifacts_ + "/" + id + ".json", limits::manifest_bytes_max);
    if (!text) return leave("manifest.recorded without its file");
    ASSIGN_OR_RETURN(const bool anew, target.replay.put_manifest(event, id, *text));
    return anew ? success() : leave("manifest.recorded without its base");
  }

  // A run with missing events gets an annotation.
  Status close(Target& target) {
    if (target.closed) return success();
    target.closed = true;
    if (target.run.added) {
      RETURN_IF_ERROR(flush(target));
      const std::string id = json::quote(target.run.run_id);
      if (const std::string lacks = missing_words(target.run); !lacks.empty()) {
        const std::string note = "partly imported: " + lacks;
        RETURN_IF_ERROR(
            client_.call("run.annotate", fmt::format(R"({{"run_id":{},"note":{}}})", id, json::quote(note))));
      }
      json::Writer params;
      params.begin_object().raw_member("run_id", id).member("outcome", target.end.outcome);
      if (!target.end.summary.empty()) params.member("summary", target.end.summary);
      if (!target.end.usage.empty()) params.raw_member("usage", target.end.usage);
      if (!target.error.empty()) params.raw_member("error", target.error);
      if (!target.ended_at.empty())
        params.key("_meta").begin_object().member("occurred_at", target.ended_at).end_object();
      ASSIGN_OR_RETURN(const Message answer, client_.call("run.end", std::move(params.end_object()).text()));
      target.run.events = events_upto(answer);
    }
    result_.runs.push_back(target.run);
    return success();
  }

  Client& client_;
  const std::string path_;
  const std::string artifacts_;
  const std::string sha256_;
  ImportedLog result_;
  std::map<std::string, Target> targets_;  // key: run id in the export
  std::set<std::string> children_;         // runs started as children of a run of this import
  std::optional<Pending> pending_;
};

}  // namespace

bool is_log_event(const json::Value& record) { return record["event_id"] && record["body_hash"] && record["run_seq"]; }

std::string missing_words(const ImportedLog::Run& run) {
  std::vector<std::string> words;
  if (run.missing > 0) words.push_back(fmt::format("the export lacks {} of its events", run.missing));
  if (run.archived > 0)
    words.push_back(fmt::format("the export lacks the archived bodies of {} of its events", run.archived));
  return joined(words, "; ");
}

Result<ImportedLog> import_log(Client& client, const std::string& path, const std::string& artifacts,
                               const std::function<void(std::int64_t, std::int64_t)>& progress) {
  RETURN_IF_ERROR(refuse_other_format(path, log_format));
  ASSIGN_OR_RETURN(std::string sha256, sha256_of_file(path));
  return LogImport(client, path, artifacts, std::move(sha256)).run(progress);
}

}  // namespace muniment::cli
