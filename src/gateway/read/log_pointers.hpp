// Reads log:// pointers: the events of a run, the validations, and the daemon's metrics. pointer.resolve reads them
// page by page; event.subscribe follows them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "evidence/pointer.hpp"
#include "gateway/call.hpp"

namespace muniment::gateway {

// The events that a log:// pointer selects for a caller. For log://validation, root and the daemon's own user see all
// events, other users their own.
struct LogSource {
  bool metrics = false;                // the pointer selects the text of server.metrics instead of events
  std::string run_id{};                // empty: the whole log
  std::vector<std::string> types{};    // empty: all types
  std::optional<std::string> actor{};  // nullopt: any actor
};
LogSource log_source(const Caller& caller, const evidence::Pointer& pointer);

struct LogPage {
  std::string text;    // events in the form of event.list, one per line; or the metrics
  std::string cursor;  // position of the next page; empty after the last page. An empty page may have one
};

// Reads one page of at most `bytes_max` bytes, or a single longer event, of a pointer that resolves. `cursor` is the
// cursor of the previous page, or empty. `as_of` limits the page to events up to this seq. Errors: invalid_argument for
// a cursor of a different list, unavailable.
Result<LogPage> read_log(Call& call, const evidence::Pointer& pointer, const std::string& cursor, std::size_t bytes_max,
                         std::optional<std::int64_t> as_of);

}  // namespace muniment::gateway
