// Checks the events of an event.append request: times, ids, types and bodies.
#include "gateway/append/append_admission.hpp"

#include <algorithm>

#include "base/limits.hpp"
#include "events/catalogue.hpp"
#include "gateway/access.hpp"

namespace muniment::gateway {
namespace {

constexpr std::string_view append_method = "event.append";

// Returns the string's text, without a copy if it holds no escape; otherwise `storage` holds the copy.
std::string_view text_of(const json::Value& value, std::string& storage) {
  if (const auto plain = value.as_plain_string()) return *plain;
  storage = value.string_or("");
  return storage;
}

class Admission {
 public:
  Admission(const Caller& caller, std::string_view idempotency_key, events::Origin origin, Time now)
      : caller_(caller), idempotency_key_(idempotency_key), origin_(origin), now_(now) {}

  Result<AdmittedEvent> admit(const json::Value& item, std::size_t index) const {
    std::string storage;
    const std::string_view type = text_of(item["type"], storage);
    RETURN_IF_ERROR(events::check_client_may_write(type));
    AdmittedEvent admitted;
    admitted.body = item["body"];
    RETURN_IF_ERROR(events::check_body(type, admitted.body));

    events::NewEvent& event = admitted.event;
    event.type = type;
    if (const auto* info = events::find_type(type)) event.schema_version = info->schema_version;
    event.origin = origin_;
    if (const json::Value step = item["step_id"]) {
      std::string step_storage;
      event.step_id = text_of(step, step_storage);
      RETURN_IF_ERROR(check_step_id(*event.step_id));
    }
    if (const json::Value occurred = item["occurred_at"]) {
      event.occurred_at = parse_time(occurred.string_or(""));
      if (!event.occurred_at) return Error(Errc::invalid_argument, "occurred_at: not a time");
    }
    RETURN_IF_ERROR(set_id(event, item["event_id"], index));
    return admitted;
  }

 private:
  Status set_id(events::NewEvent& event, const json::Value& given, std::size_t index) const {
    if (given) {
      const auto id = parse_uuid(given.string_or(""));
      if (!id) return Error(Errc::invalid_argument, "event_id: expected a UUID");
      event.event_id = *id;
    } else if (!idempotency_key_.empty()) {
      event.event_id = appended_id(caller_, idempotency_key_, index);
    } else {
      event.event_id = make_uuid_v7(now_);
      event.event_id_is_ours = true;
    }
    return success();
  }

  const Caller& caller_;
  const std::string_view idempotency_key_;
  const events::Origin origin_;
  const Time now_;
};

// A repeated id within one request is a mistake of the client.
Status check_ids_differ(const std::vector<AdmittedEvent>& events) {
  std::vector<std::pair<Uuid, std::size_t>> ids;
  for (std::size_t i = 0; i < events.size(); ++i) {
    if (!events[i].event.event_id_is_ours) ids.emplace_back(events[i].event.event_id, i);
  }
  std::sort(ids.begin(), ids.end());
  const auto twice =
      std::adjacent_find(ids.begin(), ids.end(), [](const auto& a, const auto& b) { return a.first == b.first; });
  if (twice == ids.end()) return success();
  return Error(Errc::invalid_argument, "events[" + std::to_string(std::next(twice)->second) +
                                           "] has the event_id of events[" + std::to_string(twice->second) +
                                           "]: " + twice->first.text() + ". Give every event an id of its own.");
}

std::string place(std::size_t index) { return "events[" + std::to_string(index) + "]"; }

}  // namespace

Result<AdmittedAppend> admit_append(const json::Value& params, const Caller& caller, std::string_view idempotency_key,
                                    events::Origin origin, Time now) {
  const Admission admission(caller, idempotency_key, origin, now);
  AdmittedAppend admitted;
  const json::Value several = params["events"];
  if (!several) {
    if (!params["type"] || !params["body"]) {
      return Error(Errc::invalid_argument, "an event needs type and body. Send several events as events: [...].");
    }
    ASSIGN_OR_RETURN(AdmittedEvent event, admission.admit(params, 0));
    admitted.events.push_back(std::move(event));
    return admitted;
  }
  for (const char* name : {"type", "body", "step_id", "event_id", "occurred_at"}) {
    if (params[name]) {
      return Error(Errc::invalid_argument, std::string(name) + " belongs to one event: put it into each of events.");
    }
  }
  admitted.several = true;
  admitted.events.reserve(std::min(several.size(), limits::events_per_request_max));
  for (json::Value item : several) {
    const std::size_t index = admitted.events.size();
    auto event = admission.admit(item, index);
    if (!event) return std::move(event).error().within(place(index));
    admitted.events.push_back(*std::move(event));
  }
  RETURN_IF_ERROR(check_ids_differ(admitted.events));
  return admitted;
}

Uuid appended_id(const Caller& caller, std::string_view idempotency_key, std::size_t index) {
  return idempotent_id(caller, append_method, idempotency_key, index);
}

Result<std::vector<events::NewEvent>> seal_bodies(AdmittedAppend admitted) {
  std::vector<events::NewEvent> events;
  events.reserve(admitted.events.size());
  for (AdmittedEvent& item : admitted.events) {
    if (item.event.body.empty()) item.event.body = item.body.source();
    if (Status fits = events::check_body_size(
            item.event.body.size(), "body", "Send it with spill: true, or store it with artifact.put and refer to it.");
        !fits) {
      if (admitted.several) return std::move(fits).error().within(place(events.size()));
      return std::move(fits).error();
    }
    events::seal(item.event);
    events.push_back(std::move(item.event));
  }
  return events;
}

}  // namespace muniment::gateway
