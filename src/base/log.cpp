#include "base/log.hpp"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <algorithm>

namespace muniment {
namespace {

spdlog::logger& logger() {
  static const std::shared_ptr<spdlog::logger> shared = [] {
    auto made = std::make_shared<spdlog::logger>("muniment", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made->set_pattern("%Y-%m-%dT%H:%M:%S.%eZ level=%l %v", spdlog::pattern_time_type::utc);
    return made;
  }();
  return *shared;
}

bool is_plain(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return c > ' ' && c != '"' && c != '=' && c != '\\' && static_cast<unsigned char>(c) < 0x7f;
  });
}

void write(spdlog::level::level_enum level, std::string_view message, LogFields fields) {
  if (!logger().should_log(level)) return;
  std::string line = log_field("msg", message);
  for (const auto& [key, value] : fields) line.append(" ").append(log_field(key, value));
  logger().log(level, "{}", line);
}

}  // namespace

std::string log_field(std::string_view key, std::string_view value) {
  std::string out(key);
  out.push_back('=');
  if (is_plain(value)) return out.append(value);
  static constexpr char digits[] = "0123456789abcdef";
  out.push_back('"');
  for (char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out.push_back('\\');
      out.push_back(c);
    } else if (byte < 0x20 || byte == 0x7f) {
      out.append("\\x").push_back(digits[byte >> 4]);
      out.push_back(digits[byte & 15]);
    } else {
      out.push_back(c);
    }
  }
  out.push_back('"');
  return out;
}

void log_debug(std::string_view message, LogFields fields) { write(spdlog::level::debug, message, fields); }
void log_info(std::string_view message, LogFields fields) { write(spdlog::level::info, message, fields); }
void log_warning(std::string_view message, LogFields fields) { write(spdlog::level::warn, message, fields); }
void log_error(std::string_view message, LogFields fields) { write(spdlog::level::err, message, fields); }

void set_log_level(std::string_view level) {
  if (level == "debug") return logger().set_level(spdlog::level::debug);
  if (level == "warning") return logger().set_level(spdlog::level::warn);
  if (level == "error") return logger().set_level(spdlog::level::err);
  logger().set_level(spdlog::level::info);
}

}  // namespace muniment
