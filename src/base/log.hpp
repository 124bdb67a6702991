// The daemon's own log: one line an occurrence on standard error, key=value, in UTC. Values are
// quoted and control characters escaped, so that nothing from outside can forge a line.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace muniment {

using LogFields = std::initializer_list<std::pair<std::string_view, std::string>>;

void log_debug(std::string_view message, LogFields fields = {});
void log_info(std::string_view message, LogFields fields = {});
void log_warning(std::string_view message, LogFields fields = {});
void log_error(std::string_view message, LogFields fields = {});

// "debug", "info", "warning", "error"; anything else is "info".
void set_log_level(std::string_view level);

// `key="value"` as a line holds it; the quotes only where the value needs them.
std::string log_field(std::string_view key, std::string_view value);

}  // namespace muniment
