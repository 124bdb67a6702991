// What a connection reads of an artifact, piece by piece, for one use. A reading goes on until another artifact, or
// another use, is begun, a piece is asked for once more, or the connection closes. One a connection; from any thread.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <set>
#include <string>

namespace muniment::gateway {

class Reading {
 public:
  // Where the event of a reading is.
  struct Place {
    std::optional<std::int64_t> run_seq{};  // nullopt: in _log
  };

  // `what`: the artifact and the use. nullopt: the piece from `offset` begins another reading.
  std::optional<Place> goes_on(const std::string& what, std::int64_t offset);
  void begin(std::string what, std::int64_t offset, Place place);

 private:
  std::mutex mutex_;                // guards what follows
  std::string what_;                // empty: nothing is read
  std::set<std::int64_t> offsets_;  // of its pieces
  Place place_;
};

}  // namespace muniment::gateway
