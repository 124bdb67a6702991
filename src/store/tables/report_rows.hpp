// Defines the rows of the tables behind the views of schema `report` (migrations/0011_report.sql).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "events/cost.hpp"
#include "events/event.hpp"

namespace muniment::store {

// The event that ended a span, with its values.
struct SpanEnd {
  std::int64_t seq = -1;
  std::optional<Time> at{};
  std::optional<std::string> status{};
  std::optional<std::string> reason{};
  std::optional<std::string> answered_by{};
  std::optional<std::int64_t> exit_code{};
  std::optional<std::int64_t> duration_us{};
  std::optional<std::int64_t> first_token_us{};
  std::optional<std::int64_t> input_tokens{};
  std::optional<std::int64_t> output_tokens{};
  std::optional<std::int64_t> cached_input_tokens{};
  std::optional<std::int64_t> cache_write_tokens{};
  std::optional<std::int64_t> reasoning_tokens{};
  std::optional<events::Picos> cost{};
  std::optional<std::string> currency{};
};

// A call, step, command or approval.
struct SpanRow {
  std::string_view kind;  // model, tool, step, command, approval
  std::int64_t seq = -1;  // seq of its beginning, or of its end if the beginning is unknown
  std::int64_t run_no = 0;
  std::string key;
  std::optional<std::string> step_id{};
  events::Origin origin = events::Origin::reported;
  bool began = false;  // `seq` is its beginning
  std::optional<Time> began_at{};
  std::optional<std::string> name{};
  std::optional<std::string> sort{};
  std::optional<std::string> via{};
  std::optional<std::int64_t> attempt{};
  std::optional<SpanEnd> end{};
};

// The end of a span that the table holds already.
struct EndedSpan {
  std::string_view kind;
  std::int64_t run_no = 0;
  std::int64_t seq = -1;
  SpanEnd end;
};

// The changes that a batch of events makes to a run.
struct ReportRun {
  std::int64_t run_no = 0;
  std::int64_t events = 0;
  std::int64_t last_seq = -1;
  Time last_event_at{};
  std::optional<Time> first_occurred_at{};
  std::optional<Time> last_occurred_at{};
  std::int64_t messages = 0;
  std::int64_t errors = 0;
  std::int64_t model_calls = 0;
  std::int64_t model_errors = 0;
  std::int64_t tool_calls = 0;
  std::int64_t tool_errors = 0;
  std::int64_t steps = 0;
  std::int64_t commands = 0;
  std::int64_t command_errors = 0;
  std::optional<std::int64_t>
      input_tokens{};  // sum over the calls that report it; nullopt: none does; the same for the following members
  std::optional<std::int64_t> output_tokens{};
  std::optional<std::int64_t> cached_input_tokens{};
  std::optional<std::int64_t> reasoning_tokens{};
  std::optional<events::Picos> cost{};
  std::optional<std::string> currency{};  // mixed: several currencies
};

// The position of an event of one of the rarer types.
struct ReportPlace {
  std::string type;
  std::int64_t seq = -1;
  std::int64_t run_no = 0;
};

// An erasure of an event of the run, whose values are cleared.
struct ErasedEvent {
  std::int64_t run_no = 0;
  std::int64_t seq = -1;
};

// The rows derived from a batch of events, in the order in which they are written: an erasure may concern an event of
// the same batch.
struct ReportRows {
  std::vector<ReportRun> runs{};
  std::vector<SpanRow> spans{};
  std::vector<EndedSpan> ended{};
  std::vector<ReportPlace> places{};
  std::vector<ErasedEvent> erased{};
};

}  // namespace muniment::store
