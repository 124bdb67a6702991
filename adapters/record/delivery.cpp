#include "adapters/record/delivery.hpp"

#include "base/text.hpp"
#include "client/connect/upload.hpp"

namespace muniment::cli {
namespace {

// Limit for a body in a request line of at most 1 MiB; longer content is stored as an artifact first.
constexpr std::size_t inline_body_bytes_max = 512 * 1024;
constexpr std::size_t ref_preview_bytes_max = 400;

// Stores the bytes as an artifact and returns the reference that replaces them.
Result<std::string> kept_ref(Client& client, const std::string& run_id, std::string_view bytes,
                             std::string_view mime_type, std::string_view part_type) {
  Upload upload;
  upload.run_id = run_id;
  upload.mime_type = std::string(mime_type);
  ASSIGN_OR_RETURN(const Message answer, put_bytes(client, upload, bytes));
  const json::Value result = answer.result();
  json::Writer out;
  out.begin_object()
      .member("artifact_id", result["artifact_id"].string_or(""))
      .member("hash", result["hash"].string_or(""));
  out.raw_member("size_bytes", result["size_bytes"].source()).member("mime_type", mime_type);
  out.member("preview", preview(bytes, ref_preview_bytes_max));
  if (!part_type.empty()) out.member("type", part_type);
  out.end_object();
  return std::move(out).text();
}

// Returns the body with its long part replaced by a reference: the text of its content, its arguments, or the whole
// body.
Result<std::string> short_body(Client& client, const std::string& run_id, const RecordedEvent& event) {
  if (event.body.size() <= inline_body_bytes_max) return event.body;
  ASSIGN_OR_RETURN(const json::Document document, json::parse(std::string_view(event.body)));
  const json::Value body = document.root();
  const bool is_own = event.type.starts_with("x.");
  json::Writer out;
  out.begin_object();
  for (const json::Value member : body) {
    const std::string name = member.key();
    if (!is_own && name == "content" && member.size() == 1) {
      const json::Value text = (*member.begin())["content"];
      ASSIGN_OR_RETURN(const std::string ref, kept_ref(client, run_id, text.string_or(""), "text/plain", "text"));
      out.key(name).begin_array().raw(ref).end_array();
    } else if (!is_own && name == "arguments") {
      ASSIGN_OR_RETURN(const std::string ref, kept_ref(client, run_id, member.source(), "application/json", ""));
      out.raw_member("ref", ref);
    } else if (is_own && member.source().size() > inline_body_bytes_max / 2) {
      ASSIGN_OR_RETURN(const std::string ref, kept_ref(client, run_id, member.source(), "application/json", ""));
      out.raw_member(name, ref);
    } else {
      out.raw_member(name, member.source());
    }
  }
  out.end_object();
  return std::move(out).text();
}

Status append_events(Client& client, const Delivery& delivery) {
  json::Writer params;
  params.begin_object().member("run_id", delivery.run_id).member("spill", true).key("events").begin_array();
  for (const RecordedEvent& event : delivery.events) {
    ASSIGN_OR_RETURN(const std::string body, short_body(client, delivery.run_id, event));
    params.begin_object().member("type", event.type).member("event_id", event.event_id);
    if (!event.occurred_at.empty()) params.member("occurred_at", event.occurred_at);
    params.raw_member("body", body).end_object();
  }
  params.end_array().end_object();
  RETURN_IF_ERROR(client.call("event.append", params.text()));
  return success();
}

// Returns the params of run.start that reopen an ended run.
std::string reopening(const std::string& start) { return "{\"reopen\":true," + start.substr(1); }

Status begin_run(Client& client, const Delivery& delivery) {
  if (!delivery.parent_start.empty()) RETURN_IF_ERROR(client.call("run.start", reopening(delivery.parent_start)));
  RETURN_IF_ERROR(client.call("run.start", reopening(delivery.start)));
  return success();
}

bool names_known_events(const Status& status) {
  return !status && status.error().code == Errc::conflict && !status.error().event_ids.empty();
}

// A hook that is configured twice is delivered twice, and one delivery may have been spooled. Its ids are then recorded
// with a body that differs only in the mark for late events. Any other difference is reported as a conflict.
Status append_once(Client& client, const Delivery& delivery) {
  const Status sent = append_events(client, delivery);
  if (!names_known_events(sent)) return sent;
  const Status other = append_events(client, with_other_lateness(delivery));
  if (other || other.error().code != Errc::conflict) return other;
  return delivery.in_doubt ? success() : sent;  // an event erased after the first delivery cannot be compared
}

// The run is usually open, so one request suffices.
Status append_or_start(Client& client, const Delivery& delivery) {
  if (delivery.events.empty()) return delivery.begins ? begin_run(client, delivery) : success();
  const Status sent = append_once(client, delivery);
  if (sent || (sent.error().code != Errc::not_found && sent.error().code != Errc::conflict) || names_known_events(sent))
    return sent;
  RETURN_IF_ERROR(begin_run(client, delivery));
  return append_once(client, delivery);
}

Status close_run(Client& client, const Delivery& delivery) {
  const auto ended = client.call("run.end", delivery.end);
  if (ended || ended.error().code == Errc::conflict) return success();  // already ended
  return ended.error();
}

}  // namespace

Status deliver(Client& client, const Delivery& delivery) {
  // Ends the run without starting it first, which would reopen an ended run.
  const bool only_ends = delivery.events.empty() && !delivery.end.empty();
  if (!only_ends) RETURN_IF_ERROR(append_or_start(client, delivery));
  if (delivery.end.empty()) return success();
  Status ended = close_run(client, delivery);
  if (ended || !only_ends || ended.error().code != Errc::not_found) return ended;
  RETURN_IF_ERROR(begin_run(client, delivery));
  return close_run(client, delivery);
}

}  // namespace muniment::cli
