#include "webhook/message.hpp"

#include <sys/stat.h>

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "base/crypto/base64.hpp"
#include "base/crypto/hmac.hpp"
#include "base/files/file.hpp"
#include "base/json/json.hpp"
#include "base/limits.hpp"
#include "events/catalogue.hpp"

namespace muniment::webhook {
namespace {

constexpr std::string_view secret_prefix = "whsec_";
constexpr std::size_t secret_file_bytes_max = 1'024;

// A misspelt type would never be delivered.
Status check_types(const WebhookSetting& setting) {
  for (const std::string& type : setting.types) {
    const bool is_prefix = type.ends_with('*');
    const std::string_view text = std::string_view(type).substr(0, type.size() - (is_prefix ? 1 : 0));
    const bool known = is_prefix ? text.starts_with(events::foreign_prefix) ||
                                       std::ranges::any_of(events::catalogue(),
                                                           [&](const auto& row) { return row.name.starts_with(text); })
                                 : events::find_type(text) != nullptr || events::is_foreign(text);
    if (known) continue;
    std::vector<std::string_view> names;
    for (const events::TypeInfo& row : events::catalogue()) names.push_back(row.name);
    const std::string_view near = nearest(text, names);
    return Error(Errc::invalid_argument,
                 fmt::format("webhooks.{}: types: no event has the type {}.{}", setting.name, json::quote(type),
                             near.empty() ? " docs/events.md lists them" : fmt::format(" Did you mean \"{}\"?", near)));
  }
  return success();
}

Result<std::string> read_secret(const WebhookSetting& setting) {
  const std::string where = fmt::format("webhooks.{}: secret_file = \"{}\"", setting.name, setting.secret_file);
  auto opened = open_named(setting.secret_file);
  if (!opened) return std::move(opened).error().within(where);
  struct stat about {};
  if (::fstat(opened->fd.get(), &about) != 0) return file_error("examining", setting.secret_file, errno);
  if ((about.st_mode & 077) != 0) {
    return Error(Errc::denied, fmt::format("{}: other users may read it (mode {:03o}). Run: chmod 600 {}", where,
                                           about.st_mode & 0777, setting.secret_file));
  }
  ASSIGN_OR_RETURN(std::string text, read_at(opened->fd, 0, secret_file_bytes_max));
  while (text.ends_with('\n') || text.ends_with('\r')) text.pop_back();
  auto secret = parse_secret(text);
  return secret ? std::move(secret) : std::move(secret).error().within(where);
}

}  // namespace

Result<std::vector<Webhook>> read_webhooks(std::string_view setting) {
  ASSIGN_OR_RETURN(auto settings, parse_webhooks(setting));
  std::vector<Webhook> webhooks;
  for (WebhookSetting& one : settings) {
    RETURN_IF_ERROR(check_types(one));
    ASSIGN_OR_RETURN(std::string secret, read_secret(one));
    webhooks.push_back({std::move(one), std::move(secret)});
  }
  return webhooks;
}

Result<std::string> parse_secret(std::string_view text) {
  if (text.starts_with(secret_prefix)) text.remove_prefix(secret_prefix.size());
  auto secret = from_base64(text);
  if (secret && secret->size() >= limits::webhook_secret_bytes_min &&
      secret->size() <= limits::webhook_secret_bytes_max)
    return *std::move(secret);
  return Error(Errc::invalid_argument,
               fmt::format("the file must hold whsec_ and the Base64 of {} to {} bytes on one line. Make one: echo "
                           "whsec_$(openssl rand -base64 32)",
                           limits::webhook_secret_bytes_min, limits::webhook_secret_bytes_max));
}

bool matches(const std::vector<std::string>& types, std::string_view type) {
  return std::ranges::any_of(types, [&](std::string_view wanted) {
    if (!wanted.ends_with('*')) return type == wanted;
    return type.starts_with(wanted.substr(0, wanted.size() - 1));
  });
}

std::string message_id(std::string_view webhook, const events::Event& event) {
  return fmt::format("{}_{}", webhook, event.event_id.text());
}

std::string message_body(const events::Event& event, const Uuid& log_id) {
  json::Writer out;
  out.begin_object()
      .member("type", event.type)
      .member("timestamp", format_time(event.recorded_at))
      .key("data")
      .begin_object()
      .member("log_id", log_id.text())
      .member("seq", event.seq)
      .member("run_id", event.run_id)
      .member("run_seq", event.run_seq)
      .member("event_id", event.event_id.text());
  if (event.step_id) out.member("step_id", *event.step_id);
  out.member("actor", event.actor)
      .member("origin", events::name_of(event.origin))
      .member("body_hash", to_hex(event.body_hash))
      .end_object()
      .end_object();
  return std::move(out).text();
}

std::string signature(std::string_view secret, std::string_view id, std::int64_t timestamp, std::string_view body) {
  const Hash hash = hmac_sha256(secret, {id, ".", std::to_string(timestamp), ".", body});
  return "v1," + to_base64({reinterpret_cast<const char*>(hash.data()), hash.size()});
}

std::chrono::milliseconds retry_pause(int failures, std::uint32_t random) {
  std::int64_t pause = limits::webhook_retry_ms_min;
  for (int i = 1; i < failures && pause < limits::webhook_retry_ms_max; ++i) pause *= 2;
  pause = std::min(pause, limits::webhook_retry_ms_max);
  return std::chrono::milliseconds(pause - random % (pause / 2 + 1));
}

}  // namespace muniment::webhook
