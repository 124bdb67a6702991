// Turns the parameters of event.append into events. Each event is checked on the received text. The events are not
// sealed yet, since a body may still be spilled.
#pragma once

#include <string_view>
#include <vector>

#include "base/json/json.hpp"
#include "base/result.hpp"
#include "events/event.hpp"
#include "gateway/call.hpp"

namespace muniment::gateway {

struct AdmittedEvent {
  events::NewEvent event;  // `seal_bodies` sets body and hash
  json::Value body;
};

struct AdmittedAppend {
  std::vector<AdmittedEvent> events;
  bool several = false;  // the request has `events`, so the reply is a list of receipts
};

// Checks types, bodies and ids. Errors: invalid_argument, denied; if the request has several events, the message begins
// with the event's place.
Result<AdmittedAppend> admit_append(const json::Value& params, const Caller& caller, std::string_view idempotency_key,
                                    events::Origin origin, Time now);

// Derives the event id from an idempotency key and the event's place in the request.
Uuid appended_id(const Caller& caller, std::string_view idempotency_key, std::size_t index);

// Copies the bytes of every body that was not replaced by spilling, and seals the events. Errors: too_large.
Result<std::vector<events::NewEvent>> seal_bodies(AdmittedAppend admitted);

}  // namespace muniment::gateway
