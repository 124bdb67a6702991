// What a hook of Claude Code says, as what is recorded of it. Pure: the hook's JSON in, a delivery out. A hook is a
// command that the agent starts at each of its turns' events, with a JSON object on standard input (docs/recording.md
// has the table).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/json/json.hpp"
#include "base/result.hpp"

namespace muniment::cli {

struct RecordedEvent {
  std::string type;
  std::string event_id;
  std::string occurred_at;  // RFC 3339, or empty: now
  std::string body;         // a JSON object
};

// What is sent of one hook: into which run, with what to start it where it is not there yet, and whether that ends it.
struct Delivery {
  std::string run_id;
  std::string start;         // the params of run.start
  std::string parent_start;  // of the run that a subagent's belongs to; or empty
  std::vector<RecordedEvent> events;
  std::string end;        // the params of run.end, or empty
  bool begins = false;    // the run is to be there, even without an event
  bool in_doubt = false;  // it was sent once, and nobody knows what came of it
};

// When the hook was called, and how long the session's file was then: two recorders of one hook see the same file, and
// the same prompt said twice finds a longer one. Absent: there is no such file, and equal hooks are different events.
struct HookPlace {
  Time now;
  std::optional<std::int64_t> transcript_bytes;
};

// Errors: invalid_argument for what is no hook.
Result<Delivery> delivery_of_hook(const json::Value& hook, const HookPlace& place);

// Can its answer stop what the agent is about to do?
bool asks_leave(const json::Value& hook);

// A delivery as a spooled file holds it, and back. `late` marks the events as sent afterwards.
std::string delivery_json(const Delivery& delivery, bool late);
Result<Delivery> delivery_of_json(const json::Value& json);
// The same delivery, but sent afterwards where this one is sent at once, and the other way round.
Delivery with_other_lateness(Delivery delivery);

}  // namespace muniment::cli
