#include "base/log.hpp"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <atomic>

#include "base/clock.hpp"
#include "base/json.hpp"
#include "base/text.hpp"

namespace muniment {
namespace {

std::string_view name_of(LogLevel level) {
  switch (level) {
    case LogLevel::debug: return "debug";
    case LogLevel::info: return "info";
    case LogLevel::warning: return "warning";
    case LogLevel::error: return "error";
    case LogLevel::off: return "off";
  }
  return "off";
}

spdlog::level::level_enum spdlog_level(LogLevel level) {
  switch (level) {
    case LogLevel::debug: return spdlog::level::debug;
    case LogLevel::info: return spdlog::level::info;
    case LogLevel::warning: return spdlog::level::warn;
    case LogLevel::error: return spdlog::level::err;
    case LogLevel::off: return spdlog::level::off;
  }
  return spdlog::level::off;
}

std::string quoted_if_needed(std::string_view value) {
  const std::string safe = escape_for_terminal(value);
  const bool plain = !safe.empty() && safe.find_first_of(" =\"\\\n\t") == std::string::npos;
  return plain ? safe : json::quote(safe);
}

// One sink for the process, as there is one standard error.
struct Log {
  Log() : logger("muniment", std::make_shared<spdlog::sinks::stderr_sink_mt>()) {
    logger.set_pattern("%v");
    logger.flush_on(spdlog::level::debug);
  }
  spdlog::logger logger;
  std::atomic<LogFormat> format = LogFormat::logfmt;
};

Log& log() {
  static Log the_log;
  return the_log;
}

void write(LogLevel level, std::string_view message, LogFields fields) {
  Log& to = log();
  if (!to.logger.should_log(spdlog_level(level))) return;
  const std::string line =
      log_line(to.format.load(std::memory_order_relaxed), level, format_time(Clock().now()), message, fields);
  to.logger.log(spdlog_level(level), spdlog::string_view_t(line.data(), line.size()));
}

}  // namespace

std::string log_line(LogFormat format, LogLevel level, std::string_view time, std::string_view message,
                     LogFields fields) {
  if (format == LogFormat::json) {
    json::Writer writer;
    writer.begin_object().member("time", time).member("level", name_of(level)).member("msg", message);
    for (const LogField& field : fields) {
      field.number ? writer.raw_member(field.key, field.value) : writer.member(field.key, field.value);
    }
    return std::move(writer.end_object()).text();
  }
  std::string line = "time=";
  line.append(time).append(" level=").append(name_of(level)).append(" msg=").append(quoted_if_needed(message));
  for (const LogField& field : fields) {
    line.append(" ").append(field.key).append("=").append(quoted_if_needed(field.value));
  }
  return line;
}

void set_log_level(std::string_view level) {
  LogLevel chosen = LogLevel::info;
  for (LogLevel known : {LogLevel::debug, LogLevel::warning, LogLevel::error, LogLevel::off}) {
    if (level == name_of(known)) chosen = known;
  }
  log().logger.set_level(spdlog_level(chosen));
}

void set_log_format(LogFormat format) { log().format.store(format, std::memory_order_relaxed); }

void log_debug(std::string_view message, LogFields fields) { write(LogLevel::debug, message, fields); }
void log_info(std::string_view message, LogFields fields) { write(LogLevel::info, message, fields); }
void log_warning(std::string_view message, LogFields fields) { write(LogLevel::warning, message, fields); }
void log_error(std::string_view message, LogFields fields) { write(LogLevel::error, message, fields); }

}  // namespace muniment
