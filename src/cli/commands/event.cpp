// Implements the commands event append, list and tail.
#include <fmt/format.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <thread>

#include "base/clock.hpp"
#include "base/files/file.hpp"
#include "base/ids.hpp"
#include "base/limits.hpp"
#include "cli/commands.hpp"
#include "cli/show/timeline.hpp"
#include "cli/time_option.hpp"
#include "client/arguments.hpp"
#include "events/catalogue.hpp"

namespace muniment::cli {
namespace {

struct AppendOptions {
  std::string run;
  std::string type;
  std::string body = "-";
  std::string step;
  std::string event_id;
  std::string occurred_at;
  std::optional<std::int64_t> expected_run_seq;
  bool no_spill = false;
};

void declare_append(CLI::App& command, AppendOptions& options) {
  command.add_option("TYPE", options.type, "Event type: message.added, x.vendor.name, …")->required();
  command.add_option("BODY", options.body, "Body, a JSON object; @FILE reads a file, - standard input");
  command.add_option("--run", options.run, "RUN");
  command.add_option("--step", options.step, "Step id");
  command.add_option("--event-id", options.event_id, "Event id, a UUID; an id sent twice is appended once");
  add_time(command, "--occurred-at", options.occurred_at, "Time of the event (default: now)");
  command.add_option("--expect", options.expected_run_seq, "Append only if the event gets this run_seq");
  command.add_flag("--no-spill", options.no_spill, "Refuse large content instead of storing it as an artifact");
}

Result<std::string> body_text(const std::string& body) {
  if (body == "-") return read_input(STDIN_FILENO, "standard input", limits::request_line_bytes_max);
  if (!body.starts_with('@')) return body;
  return read_input(body.substr(1), limits::request_line_bytes_max);
}

// Adds the event id to an error with an unknown outcome: a retry with the same id is recorded once.
Error with_id(Error error, const std::string& event_id) {
  if (error.outcome != "unknown") return error;
  error.event_ids = {event_id};
  error.message += ". Retry with --event-id " + event_id + "; the event is recorded once";
  return error;
}

Status append_event(Session& session, const AppendOptions& options) {
  ASSIGN_OR_RETURN(const std::string run_id, session.run_id(options.run));
  ASSIGN_OR_RETURN(const std::string body, body_text(options.body));
  // A line feed between the members of a body would end the request line.
  ASSIGN_OR_RETURN(const std::string line, json_line(body));
  const std::string event_id = options.event_id.empty() ? make_uuid_v7(Clock().now()).text() : options.event_id;
  json::Writer params;
  params.begin_object().member("run_id", run_id).member("type", options.type).member("event_id", event_id);
  params.raw_member("body", line);
  if (!options.step.empty()) params.member("step_id", options.step);
  if (!options.occurred_at.empty()) params.member("occurred_at", options.occurred_at);
  if (options.expected_run_seq) params.member("expected_run_seq", *options.expected_run_seq);
  if (!options.no_spill) params.member("spill", true);
  params.end_object();
  const auto answer = session.call("event.append", params.text());
  if (!answer) return with_id(answer.error(), event_id);
  if (session.printed_json(*answer)) return success();
  const json::Value receipt = answer->result();
  session.out().line(fmt::format("seq {}  run_seq {}  {}{}", receipt["seq"].source(), receipt["run_seq"].source(),
                                 receipt["event_id"].string_or(""),
                                 receipt["duplicate"].as_bool().value_or(false) ? "  (already recorded)" : ""));
  return success();
}

struct EventListOptions {
  std::string run;
  std::vector<std::string> types;
  std::string step;
  std::string since;
  std::string until;
  std::string origin;
  std::optional<std::int64_t> from_seq;
  std::size_t limit = 100;
  bool newest_first = false;
  bool unconfirmed = false;
};

void declare_list(CLI::App& command, EventListOptions& options) {
  command.add_option("--run", options.run, "Run (default: the whole log)");
  command.add_option("--type", options.types, "Event type: tool.*, message.added, …")->allow_extra_args(false);
  command.add_option("--step", options.step, "Step id");
  add_time(command, "--since", options.since, "Recorded at this time or later");
  add_time(command, "--until", options.until, "Recorded before this time");
  command.add_option("--origin", options.origin, "Origin: observed, reported or imported");
  command.add_option("--from", options.from_seq, "First seq");
  command.add_option("-n,--limit", options.limit, "Maximum number of events; 0: all")->capture_default_str();
  command.add_flag("--newest", options.newest_first, "Newest first");
  command.add_flag("--unconfirmed", options.unconfirmed, "Also list events that differ from the log's tree");
}

Result<std::string> list_params(Session& session, const EventListOptions& options, std::size_t limit,
                                std::string_view cursor) {
  json::Writer params;
  params.begin_object();
  if (!options.run.empty()) {
    ASSIGN_OR_RETURN(const std::string run_id, session.run_id(options.run));
    params.member("run_id", run_id);
  }
  if (!options.types.empty()) params.member("types", options.types);
  if (!options.step.empty()) params.member("step_id", options.step);
  if (!options.since.empty()) params.member("since", options.since);
  if (!options.until.empty()) params.member("until", options.until);
  if (!options.origin.empty()) params.member("origin", options.origin);
  if (options.from_seq) params.member("from_seq", *options.from_seq);
  if (options.newest_first) params.member("order", "desc");
  if (options.unconfirmed) params.member("unconfirmed", true);
  if (!cursor.empty()) params.member("cursor", cursor);
  params.member("limit", limit).end_object();
  return std::move(params).text();
}

bool fits_some_type(std::string_view pattern) {
  if (pattern.starts_with(events::foreign_prefix)) return true;
  if (!pattern.ends_with('*')) return events::find_type(pattern) != nullptr;
  const std::string_view prefix = pattern.substr(0, pattern.size() - 1);
  return events::foreign_prefix.starts_with(prefix) ||
         std::ranges::any_of(events::catalogue(),
                             [&](const events::TypeInfo& row) { return row.name.starts_with(prefix); });
}

// The daemon accepts unknown types, since the log of a newer daemon may have them. The user gets a warning.
void note_unknown_types(const std::vector<std::string>& patterns) {
  for (const std::string& pattern : patterns) {
    if (fits_some_type(pattern)) continue;
    std::vector<std::string> names;
    for (const events::TypeInfo& row : events::catalogue()) {
      names.push_back(pattern.ends_with('*') ? std::string(row.name.substr(0, row.name.find('.'))) + ".*"
                                             : std::string(row.name));
    }
    const std::string_view near = nearest(pattern, names);
    fmt::print(stderr, "muniment: there is no event type {}.{}\n", json::quote(pattern),
               near.empty() ? "" : fmt::format(" Did you mean {}?", json::quote(near)));
  }
}

// Prints one event per line: position, time, run, type and the start of the body.
void print_event(Session& session, const json::Value& event) {
  const Output& out = session.out();
  if (session.options.json) {
    out.json_line(event.source());
    return;
  }
  const std::string head = fmt::format("{:>8} {} {:<20} {:<18} ", event["seq"].source(),
                                       out.tone(Tone::dim, event["recorded_at"].string_or("").substr(11, 12)),
                                       out.safe(event["run_id"].string_or("")), out.safe(event["type"].string_or("")));
  const std::string body = out.one_line(summary_of(event));
  const std::size_t used = columns_of(head);
  out.line(head + (out.terminal() && out.width() > used + 8 ? fit(body, out.width() - used - 1) : body));
}

Status list_events(Session& session, const EventListOptions& options) {
  note_unknown_types(options.types);
  std::size_t left = options.limit == 0 ? SIZE_MAX : options.limit;
  std::size_t shown = 0;
  std::string cursor;
  do {
    ASSIGN_OR_RETURN(const std::string params,
                     list_params(session, options, std::min(left, limits::page_items_max), cursor));
    ASSIGN_OR_RETURN(const Message page, session.call("event.list", params));
    const json::Value events = page.result()["events"];
    for (const json::Value event : events) print_event(session, event);
    shown += events.size();
    left -= std::min(left, events.size());
    cursor = page.result()["cursor"].string_or("");
  } while (left > 0 && !cursor.empty() && !session.out().failed());
  if (left == 0 && !cursor.empty())
    say_there_are_more(options.newest_first ? "the newest" : "the first", options.limit, "events");
  if (shown == 0 && !options.step.empty()) return Error(Errc::not_found, "no event matches in step " + options.step);
  return success();
}

struct TailOptions {
  std::string run;
  std::vector<std::string> types;
  std::int64_t count = 10;
  bool follow = false;
};

void declare_tail(CLI::App& command, TailOptions& options) {
  command.add_option("--run", options.run, "Run (default: the whole log)");
  command.add_option("--type", options.types, "Event type: tool.*, message.added, …")->allow_extra_args(false);
  command.add_option("-n", options.count, "Number of newest events to print first; 0: none")
      ->check(CLI::Range(0, 1000))
      ->capture_default_str();
  command.add_flag("-f,--follow", options.follow, "Keep printing events as they are recorded");
}

// Prints the last events and returns the seq that follows them.
Result<std::int64_t> print_last(Session& session, const TailOptions& options) {
  note_unknown_types(options.types);
  EventListOptions list;
  list.run = options.run;
  list.types = options.types;
  list.newest_first = true;
  const auto count = static_cast<std::size_t>(
      std::max<std::int64_t>(options.count, 1));  // the newest event yields the seq to continue from
  ASSIGN_OR_RETURN(const std::string params, list_params(session, list, count, ""));
  ASSIGN_OR_RETURN(const Message page, session.call("event.list", params));
  std::vector<json::Value> events;
  for (const json::Value event : page.result()["events"]) events.push_back(event);
  for (auto event = events.rbegin(); options.count > 0 && event != events.rend(); ++event) print_event(session, *event);
  return events.empty() ? 0 : events.front()["seq"].as_int().value_or(-1) + 1;
}

Result<std::string> subscribe_params(Session& session, const TailOptions& options, std::int64_t from_seq) {
  json::Writer params;
  params.begin_object().member("from_seq", from_seq);
  if (!options.run.empty()) {
    ASSIGN_OR_RETURN(const std::string run_id, session.run_id(options.run));
    params.member("run_id", run_id);
  }
  if (!options.types.empty()) params.member("types", options.types);
  params.end_object();
  return std::move(params).text();
}

// Prints events from one connection until it ends. Sets `next` to the seq from which a new connection continues.
Status follow(Session& session, Client& client, const std::string& params, std::int64_t& next) {
  RETURN_IF_ERROR(client.call("event.subscribe", params));
  while (!session.out().failed()) {
    auto notification = client.next_notification(std::chrono::hours(1));
    if (!notification && notification.error().code == Errc::deadline_exceeded) continue;
    if (!notification) return std::move(notification).error();
    const std::string method = notification->root()["method"].string_or("");
    const json::Value said = notification->params();
    if (method == "event") {
      print_event(session, said["event"]);
      std::fflush(stdout);
      next = said["event"]["seq"].as_int().value_or(next - 1) + 1;
    } else if (method == "caught_up" || method == "keep_alive") {
      next = std::max(next, said["seq"].as_int().value_or(-1) + 1);  // all events below it have been examined
    }
  }
  return success();
}

Status tail_events(Session& session, const TailOptions& options) {
  constexpr std::chrono::milliseconds pause{200};
  ASSIGN_OR_RETURN(std::int64_t next, print_last(session, options));
  std::fflush(stdout);
  bool away = false;
  while (options.follow && !session.out().failed()) {
    // A read-only command does not start a daemon that was stopped in the meantime.
    const auto client = session.running_client();
    Status status = client ? success() : Status(client.error());
    if (client) {
      ASSIGN_OR_RETURN(const std::string params, subscribe_params(session, options, next));
      away = false;
      status = follow(session, **client, params, next);
    }
    if (status || status.error().code != Errc::unavailable) return status;
    if (!away) fmt::print(stderr, "muniment: the daemon is unavailable; continuing at seq {} when it returns\n", next);
    away = true;
    session.disconnect();
    std::this_thread::sleep_for(pause);
  }
  return success();
}

}  // namespace

void add_event_commands(CLI::App& app, Session& session) {
  CLI::App& event = add_group(app, "event", "Append, list and follow events");
  add_command<AppendOptions>(session, event, "append", "Append one event", declare_append, append_event);
  add_command<EventListOptions>(session, event, "list", "List events", declare_list, list_events);
  add_command<TailOptions>(session, event, "tail", "Print the newest events", declare_tail, tail_events);
}

}  // namespace muniment::cli
