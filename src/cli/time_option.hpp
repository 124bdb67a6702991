// Declares options that take a time: an age (90s, 15m, 1h, 2d), a date in UTC, or RFC 3339. The value is parsed once,
// with the command line, so that all pages of a list use the same time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "base/result.hpp"

namespace CLI {
class App;
}

namespace muniment::cli {

// Returns the time as RFC 3339. Errors: invalid_argument, with the accepted forms.
Result<std::string> read_time(std::string_view text, Time now);

// Returns the seconds of a duration: 90s, 15m, 1h, 2d; nullopt for any other text.
std::optional<std::int64_t> read_duration(std::string_view text);

// Sets `value` to RFC 3339; it stays empty if the option is not given.
void add_time(CLI::App& command, const std::string& name, std::string& value, const std::string& text);

// Declares an option for a position in the log: `value` may also be the seq of an event.
void add_asof_option(CLI::App& command, std::string& value, const std::string& text);

}  // namespace muniment::cli
