// What our messages advise: the daemon's name methods, since programs ask it, and who typed a command is told the
// command that does the same; and a command that is advised acts on the instance that was asked about.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace muniment::cli {

// "… List them: artifact.list" → "… List them: muniment artifact list". What no command does stays as it is, and so do
// the names that the caller sent, wherever the message repeats them.
std::string with_commands(std::string_view message);

// The options that name an instance, as they were typed, which every advised command is given, too: without them it
// acts on the default one.
class Advice {
 public:
  Advice() = default;  // the default instance
  // `to_start`: the same for what starts a daemon, which must know the data folder, too.
  Advice(std::string place, std::string to_start, std::vector<std::string> commands)
      : place_(std::move(place)), to_start_(std::move(to_start)), commands_(std::move(commands)) {}

  // "… Start it: muniment up" → "… Start it: muniment --data /srv/m up". A command that names its instance stays as it
  // is, and so does what is no command of ours ("the system user muniment is missing").
  std::string with_place(std::string_view text) const;

 private:
  // The command that begins at `at`, "up"; empty where none does, or where it names its instance itself.
  std::string_view command_at(std::string_view text, std::size_t at) const;

  std::string place_;  // "--data /srv/m", or empty
  std::string to_start_;
  std::vector<std::string> commands_;  // the first words of ours: up, down, run, …
};

}  // namespace muniment::cli
