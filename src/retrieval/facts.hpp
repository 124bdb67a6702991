// The facts by which a chunk can be filtered, and a filter. Both indexes store a chunk's facts and apply the same
// filter, so that a lane does not search for hits that would be dropped later.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace muniment::retrieval {

using ChunkId = std::uint32_t;  // from 1, in log order; never reused

inline constexpr std::int64_t still_valid = std::numeric_limits<std::int64_t>::max();

// A label is "<kind>:<value>", such as corpus:notes, tag:legal, type:markdown, source:…, run:r1, trust:untrusted,
// owner:uid:1000, document:<corpus>/<id>.
struct Facts {
  std::vector<std::string> labels;
  std::int64_t time_us = 0;             // the document's own time, or its recording time; µs since 1970
  std::int64_t valid_from = 0;          // seq of the event that made the revision current
  std::int64_t valid_to = still_valid;  // seq of the event that ended it (half-open interval)
};

// Requires all of `all_of` (at least one label of each group), none of `none_of`, and the times.
struct Filter {
  std::vector<std::vector<std::string>> all_of;
  std::vector<std::string> none_of;
  std::optional<std::int64_t> after_us;   // time_us > it
  std::optional<std::int64_t> before_us;  // time_us < it
  std::optional<std::int64_t> as_of;      // validity at this seq; nullopt: validity now

  bool empty() const { return all_of.empty() && none_of.empty() && !after_us && !before_us && !as_of; }
};

struct Hit {
  ChunkId chunk = 0;
  double score = 0;  // higher is better; the meaning depends on the lane
};

}  // namespace muniment::retrieval
