#include <toml++/toml.h>

#include <sstream>

#include "base/config/toml_depth.hpp"
#include "base/limits.hpp"
#include "bridge/rule.hpp"

namespace muniment::bridge {

Result<RuleFile> read_toml_rules(std::string_view toml) {
  if (toml.size() > limits::rule_file_bytes_max) {
    return Error(Errc::too_large,
                 "the file of rules exceeds " + std::to_string(limits::rule_file_bytes_max) + " bytes");
  }
  RETURN_IF_ERROR(check_toml_depth(toml));
  std::ostringstream json;
  try {
    json << toml::json_formatter(toml::parse(toml));
  } catch (const toml::parse_error& error) {
    std::ostringstream what;
    what << "line " << error.source().begin.line << ": " << error.description();
    return Error(Errc::invalid_argument, what.str());
  }
  const std::string text = json.str();
  return read_rules(text);
}

}  // namespace muniment::bridge
