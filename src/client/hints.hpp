// Rewrites advice in messages for the command line: replaces methods in the daemon's messages by the equivalent
// commands, and adds the options that name the current instance to suggested commands.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace muniment::cli {

// Replaces methods by commands: "… List them: artifact.list" becomes "… List them: muniment artifact list". Methods
// without a command are unchanged, and so are names that the caller sent and the message repeats.
std::string with_commands(std::string_view message);

// The options that name the instance, as typed. Every suggested command needs them, because it would otherwise act on
// the default instance.
class Advice {
 public:
  Advice() = default;  // the default instance
  // `to_start` has the options for commands that start a daemon, which also need the data folder.
  Advice(std::string place, std::string to_start) : place_(std::move(place)), to_start_(std::move(to_start)) {}

  // Adds the options: "… Start it: muniment up" becomes "… Start it: muniment --data /srv/m up". Commands that already
  // name an instance and other uses of the word ("the system user muniment is missing") are unchanged.
  std::string with_place(std::string_view text) const;

 private:
  // Returns the command that begins at `at`, "up"; empty if there is none or it already names an instance.
  std::string_view command_at(std::string_view text, std::size_t at) const;

  std::string place_;  // "--data /srv/m", or empty
  std::string to_start_;
};

}  // namespace muniment::cli
