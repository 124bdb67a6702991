// An event: one immutable fact. A NewEvent comes from a request, checked and with its body hashed; the appender numbers
// it and makes it an Event. docs/format.md specifies the bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/crypto/sha256.hpp"
#include "base/ids.hpp"
#include "base/result.hpp"

namespace muniment::events {

// The source that vouches for an event; the numbers are hashed and stored.
enum class Origin : std::uint8_t { observed = 1, reported = 2, imported = 3 };
std::string_view name_of(Origin origin);
std::optional<Origin> origin_named(std::string_view name);

// The actor of events that the daemon writes on its own behalf.
inline constexpr std::string_view daemon_actor = "munimentd";

struct NewEvent {
  std::string type;
  std::int16_t schema_version = 1;
  std::string body;  // source text of a JSON object
  std::optional<std::string> step_id;
  Uuid event_id;
  bool event_id_is_ours = false;  // the daemon made the id, so the event cannot be a repeat
  std::optional<Time> occurred_at;
  Origin origin = Origin::reported;
  Salt salt{};
  Hash body_hash{};  // sha256(salt ‖ body)
};

// Checks the size of a body. In the message, `what` names the body and `advice` is the next step. Errors: too_large.
Status check_body_size(std::size_t size, std::string_view what, std::string_view advice);

// Draws the salt and computes the hash of a final body.
void seal(NewEvent& event);

struct Event {
  std::int64_t seq = 0;
  std::int64_t run_no = 0;
  std::string run_id;
  std::int64_t run_seq = 0;
  Time recorded_at;
  std::optional<Time> occurred_at;
  Origin origin = Origin::reported;
  std::string type;
  std::int16_t schema_version = 1;
  std::optional<std::string> step_id;
  std::string actor;
  Uuid event_id;
  Hash body_hash{};
  std::optional<Salt> salt;  // nullopt: redacted, like the body
  std::optional<std::string> body;
  Hash run_hash{};
};

// The client's part: enough to recompute the hashes of its own event.
struct Receipt {
  Uuid event_id;
  std::int64_t seq = 0;
  std::int64_t run_seq = 0;
  Time recorded_at;
  Hash body_hash{};
  Salt salt{};
  Hash run_hash{};
  Hash leaf_hash{};
  bool duplicate = false;
};

}  // namespace muniment::events
