// Reads pages of events for log:// pointers.
#include "gateway/read/log_pointers.hpp"

#include <algorithm>

#include "base/limits.hpp"
#include "gateway/access.hpp"
#include "gateway/append/event_json.hpp"
#include "gateway/methods/custody/server_state.hpp"
#include "gateway/read/cursor.hpp"
#include "gateway/services.hpp"

namespace muniment::gateway {
namespace {

// Maximum number of events to search for one page of a log:// pointer over the whole log; no database index supports
// that search.
constexpr std::int64_t searched_events_max = 250'000;

// The source of a log:// pointer, its reader, and the last seq to read.
struct PageAsked {
  store::EventFilter filter;
  store::Reader* reader = nullptr;
  std::int64_t newest = -1;
  std::int64_t next_run_seq = 0;  // of the run, as its writer knows it
};

Result<PageAsked> page_asked(Call& call, const LogSource& source, std::optional<std::int64_t> as_of) {
  ASSIGN_OR_RETURN(const std::int64_t size, call.reader->log_size());
  PageAsked asked{.filter = {}, .reader = call.reader, .newest = std::min(size - 1, as_of.value_or(INT64_MAX))};
  store::EventFilter& filter = asked.filter;
  filter.types = source.types;
  filter.actor = source.actor;
  if (source.run_id.empty()) return asked;
  ASSIGN_OR_RETURN(const ReadRun found, find_run_to_read(call, source.run_id));
  call.read_log = 0;  // each item names its own log
  filter.run_no = found.run->view().run_no;
  asked.reader = found.reader;
  asked.next_run_seq = found.run->next_run_seq();
  const store::EarlierLog* const closed = earlier_log(call.services, found.run->closed_log);
  if (closed == nullptr) return asked;
  asked.newest = closed->size - 1;
  // A negative as_of is a time before the first event of the current log, which may be within this closed log. Any
  // other position is after the closed log's end.
  if (!as_of || *as_of >= 0) return asked;
  ASSIGN_OR_RETURN(const auto as_of_there, asof_seq(call, *found.reader));
  if (as_of_there) asked.newest = std::min(asked.newest, *as_of_there);
  return asked;
}

}  // namespace

LogSource log_source(const Caller& caller, const evidence::Pointer& pointer) {
  if (pointer.text == "log://metrics") return {.metrics = true};
  if (!pointer.run_id.empty()) return {.run_id = pointer.run_id};
  LogSource source{.types = {"pointer.*"}};
  if (!caller.admin) source.actor = caller.actor;
  return source;
}

Result<LogPage> read_log(Call& call, const evidence::Pointer& pointer, const std::string& cursor, std::size_t bytes_max,
                         std::optional<std::int64_t> as_of) {
  const LogSource source = log_source(call.caller, pointer);
  if (source.metrics) {
    if (!cursor.empty()) return Error(Errc::invalid_argument, "cursor: log://metrics is one page.");
    return LogPage{methods::metrics_text(call.services, call.reader), {}};
  }
  ASSIGN_OR_RETURN(PageAsked asked, page_asked(call, source, as_of));
  store::EventFilter& filter = asked.filter;
  if (!cursor.empty()) {
    ASSIGN_OR_RETURN(filter.from_seq, read_cursor(cursor, pointer.text));
  }
  const std::int64_t newest = asked.newest;
  filter.to_seq = filter.run_no ? newest : std::min(newest, filter.from_seq + searched_events_max - 1);
  LogPage page;
  // The reader's own byte limit may exceed the space left in the page, so the loop checks the size of each line.
  ASSIGN_OR_RETURN(const auto events,
                   asked.reader->events(filter, limits::page_items_max, bytes_max + limits::event_body_bytes_max));
  // The chain shows events that are missing between these, but not after them.
  RETURN_IF_ERROR(asked.reader->confirm(events));
  if (filter.run_no && !as_of)
    RETURN_IF_ERROR(asked.reader->check_run(*filter.run_no, asked.next_run_seq - 1, asked.next_run_seq));
  std::int64_t next = events.size() < limits::page_items_max ? *filter.to_seq + 1 : events.back().seq + 1;
  for (const events::Event& event : events) {
    const std::string line = event_json(event);
    if (!page.text.empty() && page.text.size() + line.size() + 1 > bytes_max) {
      next = event.seq;
      break;
    }
    page.text.append(line).push_back('\n');
  }
  if (next <= newest) page.cursor = make_cursor(next, pointer.text);
  return page;
}

}  // namespace muniment::gateway
