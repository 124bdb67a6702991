// Where a recorder keeps what it cannot send: a folder with one file a delivery, each durable before the recorder goes
// on, named by time so that they are sent in the order in which they came. Sending twice does no harm, so that
// recorders need no lock.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "cli/record/hook.hpp"

namespace muniment::cli {

// What may wait. Beyond it a recorder says that it loses events, rather than filling the disk.
inline constexpr std::uint64_t spool_bytes_max = 64U << 20;
inline constexpr std::size_t spool_files_max = 20'000;

struct Spooled {
  std::size_t sent = 0;
  std::size_t refused = 0;  // by the daemon, for good: kept beside the others as *.refused
  std::size_t left = 0;
  std::string why;  // the last refusal, or why it stopped
};

class Spool {
 public:
  explicit Spool(std::string folder) : folder_(std::move(folder)) {}

  const std::string& folder() const { return folder_; }

  // Durable when it returns. Errors: over_budget when the spool is full; those of writing a file.
  Status keep(const Delivery& delivery, Time now) const;

  // Sends the oldest first until all are sent, `until` has come, or the daemon does not answer.
  Spooled send(const std::function<Status(const Delivery&)>& deliver, Monotonic until) const;

 private:
  std::string folder_;
};

// The folder for what is to go to this socket: ${XDG_STATE_HOME:-~/.local/state}/muniment/spool/<of the socket's path>.
// The agent's user need not be able to write where the daemon keeps its data. Errors: invalid_argument without a home.
Result<std::string> default_spool_folder(const std::string& socket_path);

}  // namespace muniment::cli
