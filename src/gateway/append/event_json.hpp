// Writes events and receipts as JSON, in the form of the socket's replies. The text is written directly into the line:
// at tens of thousands of events a second, an intermediate tree of values would cost more than the append.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/ids.hpp"
#include "base/json/json.hpp"
#include "base/result.hpp"
#include "events/event.hpp"

namespace muniment::gateway {

// A set of members of an event: one bit for each member, in the order of `event_field_names`.
using EventFields = std::uint32_t;
inline constexpr EventFields all_event_fields = ~EventFields{0};

// Returns the members that `names`, an array of strings, lists; all members if it is absent. Errors: invalid_argument.
Result<EventFields> event_fields(const json::Value& names);

// Appends {"seq":…, "run_id":…, …}, with the body as sent. For an erased event, body and salt are null and `redacted`
// is true.
void append_event_json(std::string& out, const events::Event& event, EventFields fields = all_event_fields);
std::string event_json(const events::Event& event, EventFields fields = all_event_fields);

// Appends a receipt's object. `more` is inserted before the closing brace: ,"spilled":[…]
void append_receipt_json(std::string& out, const events::Receipt& receipt, std::string_view more = {});

}  // namespace muniment::gateway
