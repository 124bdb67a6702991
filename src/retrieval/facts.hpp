// What a chunk can be filtered by, and a filter. Both indexes keep a chunk's facts beside it and
// answer the same filter, so that a lane never has to look for hits that would be thrown away later.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace muniment::retrieval {

using ChunkId = std::uint32_t;  // from 1, in the order of the log; never used twice

inline constexpr std::int64_t still_valid = std::numeric_limits<std::int64_t>::max();

// A label is "<kind>:<value>", such as corpus:notes, tag:legal, type:markdown, source:…, run:r1,
// trust:untrusted, owner:uid:1000, document:<corpus>/<id>.
struct Facts {
  std::vector<std::string> labels;
  std::int64_t time_us = 0;             // the document's own time, or when it was recorded; µs since 1970
  std::int64_t valid_from = 0;          // the seq of the event that made the revision current …
  std::int64_t valid_to = still_valid;  // … and of the one that ended that: half-open
};

// All of `all_of` (of each group at least one label), none of `none_of`, within the times.
struct Filter {
  std::vector<std::vector<std::string>> all_of;
  std::vector<std::string> none_of;
  std::optional<std::int64_t> after_us;   // time_us > it
  std::optional<std::int64_t> before_us;  // time_us < it
  std::optional<std::int64_t> as_of;      // what was valid at this seq; nullopt: what is valid now

  bool empty() const { return all_of.empty() && none_of.empty() && !after_us && !before_us && !as_of; }
};

struct Hit {
  ChunkId chunk = 0;
  double score = 0;  // higher is better; what it means is the lane's
};

}  // namespace muniment::retrieval
