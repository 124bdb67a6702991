// The one place that knows TOML. Values are handed on as text, so that a flag, the environment and
// the file are all read by the same rules. Debian's library throws; what it throws ends here.
#include <toml++/toml.h>

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include "base/config.hpp"

namespace muniment {
namespace {

Result<std::string> text_of_node(const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* number = node.as_integer()) return std::to_string(number->get());
  if (const auto* items = node.as_array()) {
    std::string joined;
    for (const toml::node& item : *items) {
      if (item.is_array()) break;
      ASSIGN_OR_RETURN(std::string text, text_of_node(item));
      joined += joined.empty() ? text : "," + text;
    }
    return joined;
  }
  return Error(Errc::invalid_argument, "a value is a text, a whole number or a list of numbers");
}

}  // namespace

Status read_config_file(const std::string& path,
                        const std::function<void(std::string_view, Result<std::string>)>& take) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return Error(Errc::not_found, fmt::format("cannot read the configuration file {}: {}", path,
                                              std::strerror(errno)));
  }
  std::ostringstream text;
  text << file.rdbuf();
  try {
    const toml::table parsed = toml::parse(text.str(), path);
    for (const auto& [key, node] : parsed) take(key.str(), text_of_node(node));
    return success();
  } catch (const toml::parse_error& failure) {
    const toml::source_position at = failure.source().begin;
    return Error(Errc::invalid_argument,
                 fmt::format("{}:{}:{}: {}", path, at.line, at.column, failure.description()));
  }
}

}  // namespace muniment
