// What log:// pointers hold: the events of a run, what was validated, and what the daemon counts. Read a page at a time
// by pointer.resolve, followed by event.subscribe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "evidence/pointer.hpp"
#include "gateway/call.hpp"

namespace muniment::gateway {

// Which events a log:// pointer holds, for whom. Of log://validation root and the daemon's own user see all, others
// those that are theirs.
struct LogSource {
  bool metrics = false;                // no events: server.metrics' text
  std::string run_id{};                // empty: of the whole log
  std::vector<std::string> types{};    // empty: all
  std::optional<std::string> actor{};  // nullopt: anybody's
};
LogSource log_source(const Caller& caller, const evidence::Pointer& pointer);

struct LogPage {
  std::string text;    // events as event.list has them, a line each; or metrics
  std::string cursor;  // where the next page begins; empty: this was the last. A page may be empty and have one
};

// One page of at most `bytes_max` (or one event that is longer), of a pointer that resolves. `cursor`: of the page
// before, or empty. `as_of`: events up to this seq. Errors: invalid_argument for a cursor of something else,
// unavailable.
Result<LogPage> read_log(Call& call, const evidence::Pointer& pointer, const std::string& cursor, std::size_t bytes_max,
                         std::optional<std::int64_t> as_of);

}  // namespace muniment::gateway
