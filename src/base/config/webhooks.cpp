#include "base/config/webhooks.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/json/json.hpp"
#include "base/limits.hpp"

namespace muniment {
namespace {

constexpr std::string_view types_default[] = {"evidence.recorded", "run.ended", "run.halted", "task.completed",
                                              "task.validated"};

Error bad_webhook(std::string_view name, std::string_view why) {
  return Error(Errc::invalid_argument, fmt::format("webhooks.{}: {}", name, why));
}

bool is_name(std::string_view name) {
  return !name.empty() && name.size() <= limits::webhook_name_bytes_max && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
}

Status check_url(std::string_view name, std::string_view url) {
  const std::size_t scheme_bytes = url.starts_with("https://") ? 8 : 7;
  if (!url.starts_with("http://") && !url.starts_with("https://"))
    return bad_webhook(name, "url: give http://… or https://…");
  if (url.size() > limits::webhook_url_bytes_max)
    return bad_webhook(name, fmt::format("url: it has {} bytes, limit {}", url.size(), limits::webhook_url_bytes_max));
  const bool plain = std::ranges::all_of(url, [](char c) { return c > ' ' && c < '\x7f' && c != '\\' && c != '#'; });
  if (!plain) return bad_webhook(name, "url: percent-encode spaces, \\, # and characters beyond ASCII");
  const std::string_view host = url.substr(scheme_bytes, url.find_first_of("/?", scheme_bytes) - scheme_bytes);
  if (host.find('@') != std::string_view::npos)
    return bad_webhook(name,
                       "url has a user or a password in it. Omit them: the receiver checks the signature, whose secret "
                       "is in secret_file");
  return host.empty() ? Status(bad_webhook(name, "url: the host is missing")) : success();
}

Result<std::vector<std::string>> types_of(std::string_view name, const json::Value& value) {
  std::vector<std::string> types;
  for (const json::Value item : value) {
    const std::string type = item.string_or("");
    const std::size_t star = type.find('*');
    const bool fits = !type.empty() && type.size() <= limits::event_type_bytes_max &&
                      (star == std::string::npos || star + 1 == type.size());
    if (!fits) return bad_webhook(name, fmt::format("types: {} is neither a type nor a prefix with *", item.source()));
    types.push_back(type);
  }
  if (!value.is(json::Kind::array) || types.empty() || types.size() > limits::webhook_types_max)
    return bad_webhook(name, fmt::format("types: give a list of 1 to {} event types: [\"evidence.recorded\", "
                                         "\"task.*\"]",
                                         limits::webhook_types_max));
  return types;
}

Result<WebhookSetting> webhook_of(const std::string& name, const json::Value& value) {
  if (!is_name(name))
    return bad_webhook(json::quote(name), fmt::format("a name has 1 to {} characters a-z, 0-9, \"_\" and \"-\"",
                                                      limits::webhook_name_bytes_max));
  if (!value.is(json::Kind::object)) return bad_webhook(name, "it is not a table. Write [webhooks." + name + "]");
  WebhookSetting webhook{name, "", "", {std::begin(types_default), std::end(types_default)}};
  for (const json::Value member : value) {
    const std::string key = member.key();
    if (key == "types") {
      ASSIGN_OR_RETURN(webhook.types, types_of(name, member));
    } else if (key == "url") {
      webhook.url = member.string_or("");
    } else if (key == "secret_file") {
      webhook.secret_file = member.string_or("");
    } else {
      return bad_webhook(
          name, fmt::format("unknown key {}. Expected url, secret_file and types; other settings precede the first "
                            "[table]",
                            json::quote(key)));
    }
  }
  RETURN_IF_ERROR(check_url(name, webhook.url));
  if (!webhook.secret_file.starts_with('/'))
    return bad_webhook(name, "secret_file: give the absolute path of the file with the signing secret");
  return webhook;
}

}  // namespace

Result<std::vector<WebhookSetting>> parse_webhooks(std::string_view text) {
  std::vector<WebhookSetting> webhooks;
  if (text.empty()) return webhooks;
  const auto parsed = json::parse(text);
  if (!parsed || !parsed->root().is(json::Kind::object))
    return Error(Errc::invalid_argument, "webhooks: give a table for each webhook: [webhooks.NAME]");
  if (parsed->root().size() > limits::webhooks_max)
    return Error(Errc::invalid_argument,
                 fmt::format("webhooks: {} webhooks, limit {}", parsed->root().size(), limits::webhooks_max));
  for (const json::Value member : parsed->root()) {
    ASSIGN_OR_RETURN(WebhookSetting webhook, webhook_of(member.key(), member));
    webhooks.push_back(std::move(webhook));
  }
  return webhooks;
}

std::string shown_url(std::string_view url) {
  const std::size_t host = url.find("//") == std::string_view::npos ? 0 : url.find("//") + 2;
  const std::size_t end = url.find_first_of("/?", host);
  return std::string(url.substr(0, end)) + (end == std::string_view::npos || end + 1 == url.size() ? "" : "/…");
}

std::string shown_webhooks(const std::string& text) {
  const auto webhooks = parse_webhooks(text);
  if (!webhooks || webhooks->empty()) return {};
  json::Writer out;
  out.begin_object();
  for (const WebhookSetting& one : *webhooks) {
    out.key(one.name).begin_object().member("url", shown_url(one.url)).member("secret_file", one.secret_file);
    out.member("types", one.types).end_object();
  }
  return std::move(out.end_object()).text();
}

}  // namespace muniment
