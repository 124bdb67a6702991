// The program's log: lines on standard error, each a message and named values, as logfmt or JSON.
//
//   log_warning("append in doubt", {{"epoch", epoch}, {"error", error.message}});
//   time=2026-11-21T14:02:11.000123Z level=warning component=appender msg="append in doubt" epoch=7 error="server …"
//   {"time":"2026-11-21T14:02:11.000123Z","level":"warning","component":"appender","message":"append in
//   doubt","epoch":7,…}
//
// The component is the source file that says it. Where they are known, the names of values are run_id, seq,
// method, follower, error. Bodies, keys and passwords are never among them. Not to be confused with the event log: what
// must be proved goes there. Control, ANSI and bidirectional characters of values are shown, never passed on.
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
  bool number = false;  // needs no quotes in JSON
};
using LogFields = std::initializer_list<LogField>;

// What is written, for the whole process; lines at `info` and above as logfmt until then.
// `level` is "debug", "info", "warning", "error" or "off"; anything else is "info".
void set_log_level(std::string_view level);
void set_log_format(LogFormat format);
// Both as one word, "json warning", for a process of our own that is started: it writes as we do.
std::string log_settings();
void take_log_settings(std::string_view settings);

// The source file that logs: its name is the component. clang 14 has no std::source_location.
struct LogSite {
  const char* file;
  static constexpr LogSite current(const char* file = __builtin_FILE()) { return {file}; }
};
void log_debug(std::string_view message, LogFields fields = {}, LogSite site = LogSite::current());
void log_info(std::string_view message, LogFields fields = {}, LogSite site = LogSite::current());
void log_warning(std::string_view message, LogFields fields = {}, LogSite site = LogSite::current());
void log_error(std::string_view message, LogFields fields = {}, LogSite site = LogSite::current());

// The line that these would write, without its line feed.
std::string log_line(LogFormat format, LogLevel level, std::string_view time, std::string_view component,
                     std::string_view message, LogFields fields);

// A log file that others hold open for appending too is kept within `bytes_max`: beyond it, its end goes to
// `path`.1, whole lines of at most half of that, and it begins anew. What is written in between is lost.
Status keep_log_within(const std::string& path, std::int64_t bytes_max);

}  // namespace muniment
