// Groups the pieces of an artifact that a connection reads for one use into one reading. A reading ends when the read
// of a different artifact or use begins, when a piece is requested again, or when the connection closes. One instance
// per connection; any thread.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <set>
#include <string>

namespace muniment::gateway {

class Reading {
 public:
  // The position of a reading's event.
  struct Place {
    std::optional<std::int64_t> run_seq{};  // nullopt: the event is in _log
  };

  // Returns the event of the current reading if the piece at `offset` belongs to it; nullopt if the piece begins a new
  // reading. `what` names the artifact and the use.
  std::optional<Place> goes_on(const std::string& what, std::int64_t offset);
  void begin(std::string what, std::int64_t offset, Place place);

 private:
  std::mutex mutex_;                // guards the following members
  std::string what_;                // empty: no reading
  std::set<std::int64_t> offsets_;  // offsets of the pieces read so far
  Place place_;
};

}  // namespace muniment::gateway
