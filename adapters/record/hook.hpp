// Translates a hook of Claude Code to a delivery; a pure function of the hook's JSON and its HookPlace. A hook is a
// command that the agent starts at events of its turns, with a JSON object on standard input (docs/recording.md has the
// table).
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
  std::string occurred_at;  // RFC 3339; empty: now
  std::string body;         // a JSON object
};

// The requests for one hook: the run, its start if it does not exist, its events and its end.
struct Delivery {
  std::string run_id;
  std::string start;         // params of run.start
  std::string parent_start;  // params of run.start of a subagent's parent, or empty
  std::vector<RecordedEvent> events;
  std::string end;        // params of run.end, or empty
  bool begins = false;    // start the run even without an event
  bool in_doubt = false;  // the delivery was sent before and its outcome is unknown
};

// Time of the hook and length of the session file at that time. Two recorders of one hook see the same length, while a
// repeated prompt sees a longer file. Absent if there is no file; then equal hooks are different events.
struct HookPlace {
  Time now;
  std::optional<std::int64_t> transcript_bytes;
};

// Errors: invalid_argument if the text is not a hook.
Result<Delivery> delivery_of_hook(const json::Value& hook, const HookPlace& place);

// Returns whether the answer to the hook can block the agent's next action.
bool asks_leave(const json::Value& hook);

// Converts a delivery to the text of a spooled file. `late` marks the events as sent afterwards.
std::string delivery_json(const Delivery& delivery, bool late);
Result<Delivery> delivery_of_json(const json::Value& json);
// Returns the delivery with the mark for late events toggled.
Delivery with_other_lateness(Delivery delivery);

}  // namespace muniment::cli
