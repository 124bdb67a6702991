// Formats the values of settings for display, without passwords and without the paths of webhooks.
#include <algorithm>

#include "base/config/config.hpp"
#include "base/config/webhooks.hpp"
#include "base/json/json.hpp"

namespace muniment {

std::string without_password(std::string text) {
  const std::size_t slashes = text.find("//");
  const std::size_t at = text.rfind('@');
  if (slashes != std::string::npos && at != std::string::npos) {
    const std::size_t colon = text.find(':', slashes);
    if (colon < at) text.replace(colon + 1, at - colon - 1, "***");
  }
  const std::size_t parameter = text.find("password=");
  if (parameter != std::string::npos) {
    const std::size_t begin = parameter + std::string_view("password=").size();
    text.replace(begin, std::min(text.find('&', begin), text.size()) - begin, "***");
  }
  return text;
}

std::string shown_value(const Config& config, const ConfigKey& key) {
  if (const auto* text = std::get_if<std::string Config::*>(&key.field)) {
    if (key.key == "webhooks") return shown_webhooks(config.*(*text));
    return key.key == "database" ? without_password(config.*(*text)) : config.*(*text);
  }
  if (const auto* number = std::get_if<std::int64_t Config::*>(&key.field)) {
    return std::to_string(config.*(*number));
  }
  if (const auto* list = std::get_if<std::vector<std::string> Config::*>(&key.field)) {
    if ((config.*(*list)).empty()) return {};
    json::Writer out;
    out.begin_array();
    for (const std::string& text : config.*(*list)) out.string(text);
    return std::move(out.end_array()).text();
  }
  if (const auto* flag = std::get_if<bool Config::*>(&key.field)) return config.*(*flag) ? "true" : "false";
  std::string joined;
  for (std::int64_t number : config.*std::get<std::vector<std::int64_t> Config::*>(key.field)) {
    joined += (joined.empty() ? "" : ",") + std::to_string(number);
  }
  return joined;
}

}  // namespace muniment
