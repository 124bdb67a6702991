// run.get and run.list. One run is read from the log, so that a client reads what it wrote; a list
// comes from the table that the follower "run" keeps: it waits for the follower, for a moment, and
// says how far behind it is.
#include <thread>

#include "base/limits.hpp"
#include "gateway/access.hpp"
#include "gateway/cursor.hpp"
#include "gateway/methods/methods.hpp"
#include "gateway/services.hpp"

namespace muniment::gateway::methods {
namespace {

using std::chrono::milliseconds;

constexpr std::string_view run_follower = "run";
constexpr milliseconds follower_wait_most{1'000};
constexpr milliseconds follower_poll{5};

void member_or_null(json::Writer& out, std::string_view name, const std::optional<std::string>& text) {
  if (text) {
    out.member(name, *text);
  } else {
    out.raw_member(name, "null");
  }
}

std::optional<std::string> text_of(const std::optional<Time>& time) {
  return time ? std::optional(format_time(*time)) : std::nullopt;
}

void write_run(json::Writer& out, const store::RunRow& row, std::optional<std::int64_t> next_run_seq) {
  out.begin_object().member("run_id", row.run_id).member("run_no", row.run_no).member("status", row.status);
  member_or_null(out, "outcome", row.outcome);
  out.member("origin", name_of(row.origin)).member("owner", row.owner).member("agent", row.agent);
  member_or_null(out, "goal", row.goal);
  out.raw_member("labels", row.labels);
  member_or_null(out, "parent", row.parent);
  member_or_null(out, "external_id", row.external_id);
  out.member("started_at", format_time(row.started_at));
  member_or_null(out, "ended_at", text_of(row.ended_at));
  out.raw_member("halt", row.halt ? *row.halt : "null").member("first_seq", row.first_seq);
  if (next_run_seq) out.member("next_run_seq", *next_run_seq);
  out.end_object();
}

// The daemon's own run has no row.
store::RunRow log_row(const store::RunView& view, Time started) {
  store::RunRow row;
  row.run_no = view.run_no;
  row.run_id = log_run_id;
  row.first_seq = view.first_seq;
  row.status = "open";
  row.origin = view.origin;
  row.owner = view.owner;
  row.agent = events::daemon_actor;
  row.started_at = started;
  return row;
}

Result<store::RunRow> row_of(Call& call, const store::Run& run) {
  if (run.run_id == log_run_id) return log_row(run.view(), call.services.started);
  ASSIGN_OR_RETURN(std::optional<store::RunRow> row, call.reader->run(run.run_id));
  if (row) return *std::move(row);
  return Error(Errc::corrupt, "run " + run.run_id + " has no run.started. Run muniment-verify");
}

// Waits until the follower has seen everything that is committed now. Answers how many events it
// is behind when that takes too long.
Result<std::int64_t> wait_for_follower(Call& call) {
  const std::int64_t wanted = call.services.tail.next_seq();
  const Monotonic until = std::min(call.services.clock.monotonic() + follower_wait_most, call.deadline);
  for (;;) {
    ASSIGN_OR_RETURN(const std::int64_t position, call.reader->follower_position(run_follower));
    if (position >= wanted) return 0;
    if (call.services.clock.monotonic() >= until) return wanted - position;
    std::this_thread::sleep_for(follower_poll);
  }
}

store::RunFilter run_filter_of(const Call& call) {
  const json::Value& params = call.params;
  store::RunFilter filter;
  filter.status = params["status"].as_string();
  filter.agent = params["agent"].as_string();
  if (params["labels"]) filter.labels = std::string(params["labels"].source());
  if (const auto since = params["since"].as_string()) filter.since = parse_time(*since);
  filter.parent = params["parent"].as_string();
  filter.external_id = params["external_id"].as_string();
  if (!call.caller.admin) filter.owner = call.caller.actor;
  return filter;
}

}  // namespace

Result<Answer> run_get(Call& call) {
  ASSIGN_OR_RETURN(const auto run, find_run(call, call.params["run_id"].string_or("")));
  const std::int64_t next_run_seq = run->next_run_seq();
  ASSIGN_OR_RETURN(const store::RunRow row, row_of(call, *run));
  json::Writer out;
  out.begin_object().key("run");
  write_run(out, row, next_run_seq);
  out.end_object();
  return Reply{std::move(out).text(), {}};
}

Result<Answer> run_list(Call& call) {
  store::RunFilter filter = run_filter_of(call);
  const std::string question = question_of("run.list", call.params);
  if (const json::Value cursor = call.params["cursor"]) {
    ASSIGN_OR_RETURN(filter.before_run_no, read_cursor(cursor.string_or(""), question));
  }
  const auto limit = static_cast<std::size_t>(
      call.params["limit"].as_int().value_or(static_cast<std::int64_t>(limits::page_items_default)));
  ASSIGN_OR_RETURN(const std::int64_t behind, wait_for_follower(call));
  ASSIGN_OR_RETURN(const auto rows, call.reader->runs(filter, limit + 1));

  json::Writer out;
  out.begin_object().key("runs").begin_array();
  std::size_t shown = 0;
  for (; shown < rows.size() && shown < limit; ++shown) {
    json::Writer run;
    write_run(run, rows[shown], std::nullopt);
    if (shown > 0 && out.text().size() + run.text().size() > limits::page_bytes_max) break;
    out.raw(run.text());
  }
  out.end_array();
  if (shown < rows.size()) out.member("cursor", make_cursor(rows[shown - 1].run_no, question));
  if (behind > 0) out.member("behind", behind);
  out.end_object();
  return Reply{std::move(out).text(), {}};
}

}  // namespace muniment::gateway::methods
