// Decodes an entry (docs/format.md, Entry) into its event.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "base/ids.hpp"
#include "base/result.hpp"

namespace muniment::verify {

struct Entry {
  Uuid log_id;
  std::int64_t seq = 0;
  std::int64_t run_no = 0;
  std::string run_id;
  std::int64_t run_seq = 0;
  Time recorded_at;
  std::optional<Time> occurred_at;
  int origin = 0;
  std::string type;
  std::int64_t schema_version = 0;
  std::optional<std::string> step_id;
  std::string actor;
  Uuid event_id;
  std::string previous;   // 32 bytes
  std::string body_hash;  // 32 bytes
};

// Errors: corrupt unless `bytes` is exactly one entry.
Result<Entry> decode_entry(std::string_view bytes);

}  // namespace muniment::verify
