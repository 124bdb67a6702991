// Writes the program's log: lines on standard error, each with a message and named values, as logfmt or JSON.
// |   log_warning("append in doubt", {{"epoch", epoch}, {"error", error.message}});
//   time=2026-11-21T14:02:11.000123Z level=warning component=appender msg="append in doubt" epoch=7 error="server …"
//   {"time":"2026-11-21T14:02:11.000123Z","level":"warning","component":"appender","message":"append in doubt",
//    "epoch":7,…}
// | The component is the name of the source file. Common names of values are run_id, seq, method, follower and error.
// Bodies, keys and passwords are never logged. The event log, not this log, holds everything that must be provable.
// Control, ANSI and bidirectional characters in values are escaped.
#pragma once

#include <concepts>
#include <initializer_list>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace muniment {

enum class LogLevel { debug, info, warning, error, off };
enum class LogFormat { logfmt, json };

struct LogField {
  LogField(std::string_view k, std::string_view v) : key(k), value(v) {}
  LogField(std::string_view k, const std::string& v) : key(k), value(v) {}
  LogField(std::string_view k, const char* v) : key(k), value(v) {}
  template <typename Number>
  requires(std::integral<Number> && !std::same_as<Number, bool>) LogField(std::string_view k, Number v)
      : key(k), value(std::to_string(v)), number(true) {}
  LogField(std::string_view k, bool v) : key(k), value(v ? "true" : "false"), number(true) {}

  std::string_view key;  // a name from the code, [a-z_.]
  std::string value;
  bool number = false;  // not quoted in JSON
};
using LogFields = std::initializer_list<LogField>;

// Sets the level for the whole process; the default is `info` as logfmt. `level`: "debug", "info", "warning", "error"
// or "off"; any other text means "info".
void set_log_level(std::string_view level);
void set_log_format(LogFormat format);
// Returns the format and the level as one text, "json warning", for a child process that logs in the same way.
std::string log_settings();
void take_log_settings(std::string_view settings);

// The source file that logs; its name is the component. clang 14 has no std::source_location.
struct LogSite {
  const char* file;
  static constexpr LogSite current(const char* file = __builtin_FILE()) { return {file}; }
};
void log_debug(std::string_view message, LogFields fields = {}, LogSite site = LogSite::current());
void log_info(std::string_view message, LogFields fields = {}, LogSite site = LogSite::current());
void log_warning(std::string_view message, LogFields fields = {}, LogSite site = LogSite::current());
void log_error(std::string_view message, LogFields fields = {}, LogSite site = LogSite::current());

// Formats the line without its line feed.
std::string log_line(LogFormat format, LogLevel level, std::string_view time, std::string_view component,
                     std::string_view message, LogFields fields);

// Limits the size of a log file that other processes hold open for appending. Beyond `bytes_max`, its last whole lines,
// at most half of the limit, move to `path`.1, and the file is truncated. Lines written in the meantime are lost.
Status keep_log_within(const std::string& path, std::int64_t bytes_max);

}  // namespace muniment
