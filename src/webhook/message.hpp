// Builds and signs the messages that webhooks send, in the format of Standard Webhooks
// (https://www.standardwebhooks.com).
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/config/webhooks.hpp"
#include "base/result.hpp"
#include "events/event.hpp"

namespace muniment::webhook {

// A webhook with its secret, which no message shows.
struct Webhook {
  WebhookSetting setting;
  std::string secret;  // the key's bytes
};

// Parses the setting, checks the event types against the catalogue, and reads the secrets. Errors: invalid_argument;
// denied if other users may read a secret; those of reading.
Result<std::vector<Webhook>> read_webhooks(std::string_view setting);

// Parses "whsec_" and Base64, or only Base64. Errors: invalid_argument.
Result<std::string> parse_secret(std::string_view text);

bool matches(const std::vector<std::string>& types, std::string_view type);

// Returns the id by which a receiver recognizes a repeated delivery.
std::string message_id(std::string_view webhook, const events::Event& event);
// Returns the JSON body. It has the members of the event's entry in the log, but not its body, which could be erased
// later.
std::string message_body(const events::Event& event, const Uuid& log_id);
// Returns the value of the header webhook-signature. `timestamp`: seconds since 1970.
std::string signature(std::string_view secret, std::string_view id, std::int64_t timestamp, std::string_view body);

// Returns the pause after this many consecutive failures: doubled each time up to webhook_retry_ms_max, of which a
// random part of at most half is omitted, so that several webhooks do not retry at the same time.
std::chrono::milliseconds retry_pause(int failures, std::uint32_t random);

}  // namespace muniment::webhook
