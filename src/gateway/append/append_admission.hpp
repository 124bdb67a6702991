// What event.append brings, made into events: checked one by one on the text that came, not yet
// sealed, since a body may still be spilled.
#pragma once

#include <string_view>
#include <vector>

#include "base/json/json.hpp"
#include "base/result.hpp"
#include "events/event.hpp"
#include "gateway/call.hpp"

namespace muniment::gateway {

struct AdmittedEvent {
  events::NewEvent event;  // body and hash are set by `seal_bodies`
  json::Value body;
};

struct AdmittedAppend {
  std::vector<AdmittedEvent> events;
  bool several = false;  // `events` was given: the reply is a list of receipts
};

// Checks types, bodies and ids. Errors: invalid_argument, denied; of one among several with its
// place in front.
Result<AdmittedAppend> admit_append(const json::Value& params, const Caller& caller, std::string_view idempotency_key,
                                    events::Origin origin, Time now);

// The id that an idempotency key makes for the event at that place of a request.
Uuid appended_id(const Caller& caller, std::string_view idempotency_key, std::size_t index);

// Takes the bytes of every body that was not replaced by a spilled one, and seals the events.
// Errors: too_large.
Result<std::vector<events::NewEvent>> seal_bodies(AdmittedAppend admitted);

}  // namespace muniment::gateway
