#include "base/log.hpp"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>

#include "base/clock.hpp"
#include "base/files/file.hpp"
#include "base/json/json.hpp"
#include "base/metrics.hpp"
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

// The sink of the process, which has one standard error.
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

// Example: src/store/append/appender.cpp → appender.
std::string_view component_of(LogSite site) {
  std::string_view file = site.file;
  file.remove_prefix(file.rfind('/') + 1);
  return file.substr(0, file.find('.'));
}

void write(LogLevel level, std::string_view message, LogFields fields, LogSite site) {
  Log& to = log();
  if (!to.logger.should_log(spdlog_level(level))) return;
  metrics::process().log_lines[static_cast<std::size_t>(level)].add();
  const std::string line = log_line(to.format.load(std::memory_order_relaxed), level, format_time(Clock().now()),
                                    component_of(site), message, fields);
  to.logger.log(spdlog_level(level), spdlog::string_view_t(line.data(), line.size()));
}

}  // namespace

std::string log_line(LogFormat format, LogLevel level, std::string_view time, std::string_view component,
                     std::string_view message, LogFields fields) {
  if (format == LogFormat::json) {
    json::Writer writer;
    writer.begin_object()
        .member("time", time)
        .member("level", name_of(level))
        .member("component", component)
        .member("message", message);
    for (const LogField& field : fields) {
      field.number ? writer.raw_member(field.key, field.value) : writer.member(field.key, field.value);
    }
    return escape_json_for_terminal(std::move(writer.end_object()).text());
  }
  std::string line = "time=";
  line.append(time)
      .append(" level=")
      .append(name_of(level))
      .append(" component=")
      .append(component)
      .append(" msg=")
      .append(quoted_if_needed(message));
  for (const LogField& field : fields) {
    line.append(" ").append(field.key).append("=").append(quoted_if_needed(field.value));
  }
  return line;
}

void set_log_level(std::string_view level) {
  LogLevel chosen = level == "warn" ? LogLevel::warning : LogLevel::info;  // the spelling of the configuration
  for (LogLevel known : {LogLevel::debug, LogLevel::warning, LogLevel::error, LogLevel::off}) {
    if (level == name_of(known)) chosen = known;
  }
  log().logger.set_level(spdlog_level(chosen));
}

void set_log_format(LogFormat format) { log().format.store(format, std::memory_order_relaxed); }

std::string log_settings() {
  std::string level = "off";
  for (LogLevel known : {LogLevel::error, LogLevel::warning, LogLevel::info, LogLevel::debug}) {
    if (log().logger.should_log(spdlog_level(known))) level = name_of(known);
  }
  return (log().format == LogFormat::json ? "json " : "text ") + level;
}

void take_log_settings(std::string_view settings) {
  const std::size_t blank = settings.find(' ');
  if (blank == std::string_view::npos) return;
  set_log_format(settings.starts_with("json ") ? LogFormat::json : LogFormat::logfmt);
  set_log_level(settings.substr(blank + 1));
}

void log_debug(std::string_view message, LogFields fields, LogSite site) {
  write(LogLevel::debug, message, fields, site);
}
void log_info(std::string_view message, LogFields fields, LogSite site) {
  write(LogLevel::info, message, fields, site);
}
void log_warning(std::string_view message, LogFields fields, LogSite site) {
  write(LogLevel::warning, message, fields, site);
}
void log_error(std::string_view message, LogFields fields, LogSite site) {
  write(LogLevel::error, message, fields, site);
}

// Truncates instead of renaming, because the writers hold the file open and append at its current end.
Status keep_log_within(const std::string& path, std::int64_t bytes_max) {
  const Fd file(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file.open()) return errno == ENOENT ? success() : Status(file_error("opening", path, errno));
  const off_t size = ::lseek(file.get(), 0, SEEK_END);
  if (size <= bytes_max) return success();
  const std::int64_t kept = std::min<std::int64_t>(size, bytes_max / 2);
  ASSIGN_OR_RETURN(std::string end, read_at(file, size - kept, static_cast<std::size_t>(kept)));
  if (const std::size_t line = end.find('\n'); kept < size && line != std::string::npos) end.erase(0, line + 1);
  const std::string old = path + ".1";
  const Fd copy(::open(old.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!copy.open()) return file_error("opening", old, errno);
  RETURN_IF_ERROR(write_all(copy.get(), end, old));
  if (::ftruncate(file.get(), 0) != 0) return file_error("cutting", path, errno);
  return success();
}

}  // namespace muniment
