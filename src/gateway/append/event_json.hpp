// Events and receipts as the socket answers them. Both are written straight into the line: at tens
// of thousands a second, a tree of values in between would cost more than the append.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/ids.hpp"
#include "base/json/json.hpp"
#include "base/result.hpp"
#include "events/event.hpp"

namespace muniment::gateway {

// Which members of an event are answered: one bit a member, in the order of `event_field_names`.
using EventFields = std::uint32_t;
inline constexpr EventFields all_event_fields = ~EventFields{0};

// The members that `names`, an array of strings, asks for; all of them where it is absent.
Result<EventFields> event_fields(const json::Value& names);

// Appends {"seq":…, "run_id":…, …}; the body as it was sent. Of an erased event, body and salt are
// null and `redacted` is true.
void append_event_json(std::string& out, const events::Event& event, EventFields fields = all_event_fields);
std::string event_json(const events::Event& event, EventFields fields = all_event_fields);

// Appends a receipt's object. `more` is put in front of the closing brace: ,"spilled":[…]
void append_receipt_json(std::string& out, const events::Receipt& receipt, std::string_view more = {});

}  // namespace muniment::gateway
