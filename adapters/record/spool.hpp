// Stores deliveries that a recorder cannot send: a folder with one file per delivery, each durable before the recorder
// continues, named by time so that they are sent in order. Repeated sending is harmless, so recorders need no lock.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "adapters/record/hook.hpp"
#include "base/clock.hpp"
#include "base/result.hpp"

namespace muniment::cli {

// Limits of the spool. Above them a recorder reports lost events instead of filling the disk.
inline constexpr std::uint64_t spool_bytes_max = 64U << 20;
inline constexpr std::size_t spool_files_max = 20'000;

struct Spooled {
  std::size_t sent = 0;
  std::size_t refused = 0;  // permanently refused by the daemon and kept as *.refused
  std::size_t left = 0;
  std::string why;  // last refusal, or reason for stopping
};

class Spool {
 public:
  explicit Spool(std::string folder) : folder_(std::move(folder)) {}

  const std::string& folder() const { return folder_; }

  // Stores a delivery; it is durable on return. Errors: over_budget if the spool is full; those of writing a file.
  Status keep(const Delivery& delivery, Time now) const;

  // Sends deliveries, oldest first, until all are sent, `until` is reached, or the daemon does not answer.
  Spooled send(const std::function<Status(const Delivery&)>& deliver, Monotonic until) const;

 private:
  std::string folder_;
};

}  // namespace muniment::cli
