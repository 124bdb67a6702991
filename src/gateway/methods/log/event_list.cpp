// event.get and event.list: read the log, one page at a time.
#include <algorithm>
#include <limits>

#include "base/limits.hpp"
#include "gateway/access.hpp"
#include "gateway/append/event_json.hpp"
#include "gateway/methods/methods.hpp"
#include "gateway/read/cursor.hpp"
#include "gateway/services.hpp"

namespace muniment::gateway::methods {
namespace {

// Only root and the daemon's own user may list the whole log.
Error no_event(const Call& call, std::string_view which) {
  return Error(Errc::not_found, "no event " + std::string(which) +
                                    (call.caller.admin ? ". See: event.list" : ". See: event.list with a run_id"));
}

// Holds events against the log's tree. The events of a refused log are listed on request only.
Status with_advice(const Call& call, Status confirmed) {
  if (confirmed || is_transient(confirmed.error().code)) return confirmed;
  Error error = confirmed.error();
  if (call.caller.admin) error.message += ". To examine the events: event.list with unconfirmed";
  return error;
}

Status confirm(Call& call, store::Reader& reader, const std::vector<events::Event>& events) {
  return with_advice(call, reader.confirm(events));
}

Result<std::optional<events::Event>> event_named(Call& call) {
  const json::Value& params = call.params;
  if (const auto run_seq = params["run_seq"].as_int(); run_seq && params["run_id"] && !params["seq"]) {
    ASSIGN_OR_RETURN(const ReadRun found, find_run_to_read(call, params["run_id"].string_or("")));
    ASSIGN_OR_RETURN(auto event, found.reader->event_of_run(found.run->view().run_no, *run_seq));
    if (event) RETURN_IF_ERROR(confirm(call, *found.reader, {*event}));
    return event;
  }
  const auto seq = params["seq"].as_int();
  if (!seq || params["run_seq"] || params["run_id"]) {
    return Error(Errc::invalid_argument, "event.get needs either seq, or run_id and run_seq.");
  }
  ASSIGN_OR_RETURN(auto event, find_event(call, *seq));
  ASSIGN_OR_RETURN(store::Reader* const reader, reader_named(call));
  if (event) RETURN_IF_ERROR(confirm(call, *reader, {*event}));
  return event;
}

// The filter of event.list, and the reader for it.
struct Asked {
  store::EventFilter filter;
  store::Reader* reader = nullptr;
  std::int64_t next_run_seq = 0;  // of the run that is asked for, as its writer knows it
};

Result<Asked> events_asked_for(Call& call) {
  const json::Value& params = call.params;
  Asked asked;
  ASSIGN_OR_RETURN(asked.reader, reader_named(call));
  store::EventFilter& filter = asked.filter;
  if (const auto run_id = params["run_id"].as_string()) {
    ASSIGN_OR_RETURN(const ReadRun found, find_run_to_read(call, *run_id));
    filter.run_no = found.run->view().run_no;
    asked.next_run_seq = found.run->next_run_seq();
    asked.reader = found.reader;
  } else if (!call.caller.admin) {
    return Error(Errc::denied, "only root and the daemon's own user may read the whole log. Give a run_id.");
  } else if (params["from_run_seq"] || params["to_run_seq"]) {
    return Error(Errc::invalid_argument, "from_run_seq and to_run_seq need a run_id.");
  }
  filter.from_seq = params["from_seq"].as_int().value_or(0);
  filter.from_run_seq = params["from_run_seq"].as_int();
  filter.to_run_seq = params["to_run_seq"].as_int();
  for (json::Value type : params["types"]) filter.types.push_back(type.string_or(""));
  filter.step_id = params["step_id"].as_string();
  filter.actor = params["actor"].as_string();
  if (const auto origin = params["origin"].as_string()) filter.origin = events::origin_named(*origin);
  if (const auto since = params["since"].as_string()) filter.since = parse_time(*since);
  if (const auto until = params["until"].as_string()) filter.until = parse_time(*until);
  filter.newest_first = params["order"].string_or("asc") == "desc";
  return asked;
}

// Sets the filter to begin after the previous page.
Status continue_at(store::EventFilter& filter, const json::Value& cursor, std::string_view question) {
  if (!cursor) return success();
  ASSIGN_OR_RETURN(const std::int64_t position, read_cursor(cursor.string_or(""), question));
  if (filter.newest_first) {
    filter.to_seq = position;
  } else {
    filter.from_seq = std::max(filter.from_seq, position);
  }
  return success();
}

struct PageLimits {
  std::size_t items = limits::page_items_default;
  std::size_t bytes = limits::page_bytes_max;
};

class EventPage {
 public:
  EventPage(PageLimits at_most, EventFields fields) : at_most_(at_most), fields_(fields) {}

  // Returns false if the event does not fit.
  bool add(const events::Event& event) {
    std::string text = event_json(event, fields_);
    if (count_ > 0 && (count_ >= at_most_.items || text_.size() + text.size() > at_most_.bytes)) return false;
    if (count_ > 0) text_.push_back(',');
    text_ += text;
    ++count_;
    return true;
  }

  std::string finish(const std::optional<std::string>& cursor) && {
    text_ += cursor ? "],\"cursor\":\"" + *cursor + "\"}" : "]}";
    return std::move(text_);
  }

 private:
  const PageLimits at_most_;
  const EventFields fields_;
  std::string text_ = "{\"events\":[";
  std::size_t count_ = 0;
};

std::size_t bytes_of(const std::vector<events::Event>& events) {
  std::size_t bytes = 0;
  for (const events::Event& event : events) bytes += event.body ? event.body->size() : 0;
  return bytes;
}

// Returns the seq of the next page; nullopt if there is none. `fetched` was read with a limit of one event more than a
// page holds and of the page's bytes plus one body, so a shorter result was not cut.
std::optional<std::int64_t> next_position(const std::vector<events::Event>& fetched, std::size_t shown,
                                          PageLimits at_most, bool newest_first) {
  if (shown < fetched.size()) return fetched[shown].seq;
  if (fetched.empty() || bytes_of(fetched) < at_most.bytes) return std::nullopt;
  const std::int64_t last = fetched.back().seq;
  if (newest_first) return last == 0 ? std::nullopt : std::optional(last - 1);
  return last + 1;
}

}  // namespace

Result<Answer> event_get(Call& call) {
  ASSIGN_OR_RETURN(const EventFields fields, event_fields(call.params["fields"]));
  ASSIGN_OR_RETURN(const auto event, event_named(call));
  if (!event) {
    return no_event(call, call.params["seq"] ? call.params["seq"].source()
                                             : "with run_seq " + std::string(call.params["run_seq"].source()));
  }
  std::string text = "{\"event\":";
  append_event_json(text, *event, fields);
  text.push_back('}');
  return Reply{std::move(text), {}};
}

// Holds the events of the run that the filter may have hidden, up to the end of the page.
Status confirm_hidden(Call& call, const Asked& asked, const std::vector<events::Event>& fetched, PageLimits at_most) {
  const store::EventFilter& filter = asked.filter;
  const bool hides =
      !filter.types.empty() || filter.step_id || filter.actor || filter.origin || filter.since || filter.until;
  if (!filter.run_no || !hides) return success();
  const bool cut = fetched.size() > at_most.items || bytes_of(fetched) >= at_most.bytes;
  std::int64_t from = filter.from_seq, to = filter.to_seq.value_or(std::numeric_limits<std::int64_t>::max());
  if (cut) (filter.newest_first ? from : to) = fetched.back().seq;
  return with_advice(call, asked.reader->confirm_run(filter, from, to));
}

Result<Answer> event_list(Call& call) {
  ASSIGN_OR_RETURN(const EventFields fields, event_fields(call.params["fields"]));
  ASSIGN_OR_RETURN(Asked asked, events_asked_for(call));
  store::EventFilter& filter = asked.filter;
  const std::string question = question_of("event.list", call.params);
  RETURN_IF_ERROR(continue_at(filter, call.params["cursor"], question));
  PageLimits at_most;
  if (const auto items = call.params["limit"].as_int()) at_most.items = static_cast<std::size_t>(*items);
  if (const auto bytes = call.params["max_bytes"].as_int()) at_most.bytes = static_cast<std::size_t>(*bytes);

  ASSIGN_OR_RETURN(const auto fetched,
                   asked.reader->events(filter, at_most.items + 1, at_most.bytes + limits::event_body_bytes_max));
  const bool confirmed = !call.params["unconfirmed"].as_bool().value_or(false);
  if (confirmed) RETURN_IF_ERROR(confirm(call, *asked.reader, fetched));
  if (confirmed) RETURN_IF_ERROR(confirm_hidden(call, asked, fetched, at_most));
  // The first page tells, in either order, whether events of the run are missing; a filter would hide that.
  if (confirmed && filter.run_no && !call.params["cursor"])
    RETURN_IF_ERROR(asked.reader->check_run(*filter.run_no, filter.from_run_seq.value_or(0), asked.next_run_seq));
  EventPage page(at_most, fields);
  std::size_t shown = 0;
  while (shown < fetched.size() && page.add(fetched[shown])) ++shown;
  std::optional<std::string> cursor;
  if (const auto next = next_position(fetched, shown, at_most, filter.newest_first)) {
    cursor = make_cursor(*next, question);
  }
  return Reply{std::move(page).finish(cursor), {}};
}

}  // namespace muniment::gateway::methods
