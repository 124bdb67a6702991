// Implements capsule export.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "base/crypto/sha256.hpp"
#include "base/limits.hpp"
#include "base/text.hpp"
#include "capsule/capsule.hpp"
#include "cli/commands/capsule/transfer.hpp"
#include "cli/show/describe.hpp"
#include "client/connect/pages.hpp"

namespace muniment::cli {
namespace {

// A frame to write, by the seq of its event.
struct Planned {
  capsule::FrameType type = capsule::FrameType::document;
  Time time;
  std::string uri;  // of a document or retraction
};

class CapsuleExport {
 public:
  CapsuleExport(Client& client, const CapsuleOrder& order) : client_(client), order_(order) {}

  Result<ExportedCapsule> run() {
    RETURN_IF_ERROR(capsule::check_new(order_.path));
    ASSIGN_OR_RETURN(const Message status, client_.call("server.status", "{}"));
    log_id_ = status.result()["log"]["log_id"].string_or("");
    as_of_ = parse_decimal(order_.asof);
    if (!order_.corpora.empty()) RETURN_IF_ERROR(plan_documents());
    for (const std::string& run : order_.runs) RETURN_IF_ERROR(plan_messages(run));
    if (planned_.empty())
      return Error(Errc::not_found, "these corpora and runs hold no documents or messages. See: muniment corpus list");
    const Status written = capsule::write_new(order_.path, capsule::CapsuleFile::new_header(),
                                              [this](capsule::CapsuleFile& file) -> Status {
                                                for (const auto& [seq, planned] : planned_)
                                                  RETURN_IF_ERROR(write(file, seq, planned));
                                                return success();
                                              });
    RETURN_IF_ERROR(written);
    return result_;
  }

 private:
  Status each_event(const std::string& run_id, std::string_view types,
                    const std::function<Status(std::int64_t seq, Time time, const json::Value& event)>& take) {
    json::Writer params;
    params.begin_object().member("run_id", run_id).raw_member("types", types).member("limit", 1'000);
    params.raw_member("fields", R"(["seq","type","recorded_at","body"])");
    if (!as_of_ && !order_.asof.empty()) params.member("until", order_.asof);
    params.end_object();
    return each_item(client_, "event.list", params.text(), "events", [&](const json::Value& event) -> Result<bool> {
      const std::int64_t seq = event["seq"].as_int().value_or(-1);
      if (as_of_ && seq > *as_of_) return false;
      const auto time = parse_time(event["recorded_at"].string_or(""));
      if (!time) return Error(Errc::corrupt, fmt::format("event {} has no time", seq));
      RETURN_IF_ERROR(take(seq, *time, event));
      return true;
    });
  }

  // A revoked source ends its documents, and the text of those is not handed on.
  Status plan_documents() {
    const std::set<std::string> corpora(order_.corpora.begin(), order_.corpora.end());
    std::set<std::string> revoked;
    const Status read = each_event("_log", R"(["source.revoked"])", [&](std::int64_t, Time, const json::Value& event) {
      revoked.insert(event["body"]["source"].string_or(""));
      return success();
    });
    RETURN_IF_ERROR(read);
    return each_event(
        "_log", R"(["document.revised","document.retracted"])",
        [&](std::int64_t seq, Time time, const json::Value& event) -> Status {
          const json::Value body = event["body"];
          const std::string corpus = body["corpus"].string_or(""), document = body["document"].string_or("");
          if (!corpora.contains(corpus)) return success();  // also an erased revision, which has no body
          const bool is_revision = event["type"].string_or("") == "document.revised";
          std::vector<std::string> sources{body["source"].string_or("")};
          for (const json::Value source : body["sources"]) sources.push_back(source.string_or(""));
          const bool is_revoked =
              std::ranges::any_of(sources, [&](const std::string& one) { return revoked.contains(one); });
          const Status relative = capsule::check_relative(document);
          if (is_revision && (is_revoked || !relative)) {
            result_.left_out.push_back(fmt::format("{}/{} (event {}): {}", corpus, document, seq,
                                                   is_revoked ? "its source was revoked" : relative.error().message));
            return success();
          }
          if (relative)
            planned_[seq] = {is_revision ? capsule::FrameType::document : capsule::FrameType::retraction, time,
                             capsule::uri_of(corpus, document)};
          return success();
        });
  }

  Status plan_messages(const std::string& run) {
    return each_event(run, R"(["message.added"])", [&](std::int64_t seq, Time time, const json::Value& event) {
      if (event["body"]) planned_[seq] = {capsule::FrameType::log, time, ""};
      return success();
    });
  }

  Status write(capsule::CapsuleFile& file, std::int64_t seq, const Planned& planned) {
    ASSIGN_OR_RETURN(const Message answer, client_.call("event.get", fmt::format(R"({{"seq":{}}})", seq)));
    const json::Value event = answer.result()["event"], body = event["body"];
    if (!body) return success();  // erased meanwhile
    if (planned.type == capsule::FrameType::document) return write_document(file, planned, event, body);
    json::Writer about;
    about.begin_object();
    if (planned.type == capsule::FrameType::log) {
      about.member("role", body["role"].string_or("")).member("session", event["run_id"].string_or(""));
      write_recorded(about, event);
      ++result_.messages;
      return append(file, planned, about, text_of_content(body["content"]).substr(0, limits::capsule_log_bytes_max));
    }
    about.member("uri", planned.uri).member("corpus", body["corpus"].string_or(""));
    about.member("document", body["document"].string_or("")).member("revision", body["revision"].string_or(""));
    write_recorded(about, event);
    return append(file, planned, about, {});
  }

  static Status append(capsule::CapsuleFile& file, const Planned& planned, json::Writer& about, std::string_view body) {
    about.end_object();
    const auto frame = file.append(planned.type, planned.time.micros, about.text(), body);
    return frame ? success() : Status(frame.error());
  }

  // The event that the frame was made from.
  void write_recorded(json::Writer& about, const json::Value& event) const {
    about.key("recorded").begin_object().member("log_id", log_id_).raw_member("seq", event["seq"].source());
    about.member("event_id", event["event_id"].string_or(""))
        .member("run_hash", event["run_hash"].string_or(""))
        .end_object();
  }

  // The description is the event's body with the URI of the capsule, and without members that name artifacts.
  Status write_document(capsule::CapsuleFile& file, const Planned& planned, const json::Value& event,
                        const json::Value& body) {
    ASSIGN_OR_RETURN(std::string bytes,
                     read_artifact(body["artifact_id"].string_or(""), body["start_byte"].as_int().value_or(0),
                                   body["size_bytes"].as_int().value_or(0)));
    if (to_hex(sha256(bytes)) != body["bytes_hash"].string_or(""))
      return Error(Errc::corrupt, fmt::format("{} is not what event {} recorded; nothing was exported", planned.uri,
                                              event["seq"].as_int().value_or(-1)));
    std::string chunks(body["chunks"].source());
    if (const auto listed = body["chunks_artifact_id"].as_string()) {
      ASSIGN_OR_RETURN(chunks, read_artifact(*listed, 0, -1));
    }
    if (const auto text = body["text_artifact_id"].as_string()) {
      ASSIGN_OR_RETURN(const std::string extracted, read_artifact(*text, 0, -1));
      bytes += extracted;
    }
    json::Writer about;
    about.begin_object().member("uri", planned.uri);
    for (const json::Value member : body) {
      const std::string name = member.key();
      if (name == "uri" || name == "chunks" || name == "start_byte" || name.ends_with("artifact_id")) continue;
      about.raw_member(name, member.source());
    }
    about.raw_member("chunks", chunks);
    write_recorded(about, event);
    ++result_.documents;
    return append(file, planned, about, bytes);
  }

  // `size` below 0: the whole artifact.
  Result<std::string> read_artifact(const std::string& id, std::int64_t offset, std::int64_t size) {
    std::string out;
    while (size < 0 || std::ssize(out) < size) {
      json::Writer params;
      params.begin_object()
          .member("artifact_id", id)
          .member("offset", offset + std::ssize(out))
          .member("encoding", "raw");
      if (size >= 0) params.member("length", std::min<std::int64_t>(size - std::ssize(out), 1 << 20));
      params.end_object();
      ASSIGN_OR_RETURN(const Message slice, client_.call("artifact.get", params.text()));
      if (slice.raw.empty()) break;
      out += slice.raw;
    }
    return out;
  }

  Client& client_;
  const CapsuleOrder& order_;
  std::string log_id_;
  std::optional<std::int64_t> as_of_;
  std::map<std::int64_t, Planned> planned_;
  ExportedCapsule result_;
};

}  // namespace

Result<ExportedCapsule> export_capsule(Client& client, const CapsuleOrder& order) {
  return CapsuleExport(client, order).run();
}

}  // namespace muniment::cli
