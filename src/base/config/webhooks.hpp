// The setting `webhooks`: receivers of HTTP messages about events (docs/operations.md).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace muniment {

struct WebhookSetting {
  std::string name;  // a new name is a new webhook
  std::string url;
  std::string secret_file;         // absolute path
  std::vector<std::string> types;  // exact, or with a trailing *
};

// Parses {"ci": {"url": "https://…", "secret_file": "/…", "types": ["evidence.*"]}}. `types` is optional. An empty text
// means no webhooks. Errors: invalid_argument.
Result<std::vector<WebhookSetting>> parse_webhooks(std::string_view json);

// Returns the scheme and the host: path and query may contain a token.
std::string shown_url(std::string_view url);

// Returns the setting as JSON with shown URLs; empty if there is none.
std::string shown_webhooks(const std::string& text);

}  // namespace muniment
