// run.get, run.list and run.costs. run.get reads the log, so that a client sees its own writes. The others read the
// tables of the followers "run" and "report": they wait briefly for them and return how far behind they are.
#include <thread>

#include "base/limits.hpp"
#include "gateway/access.hpp"
#include "gateway/methods/methods.hpp"
#include "gateway/read/cursor.hpp"
#include "gateway/services.hpp"

namespace muniment::gateway::methods {
namespace {

using std::chrono::milliseconds;

constexpr std::string_view list_followers[] = {"run", "report"};
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

void write_cost(json::Writer& out, const store::RunCost& cost) {
  out.key("cost").begin_object();
  member_or_null(out, "amount", cost.amount);
  out.member("currency", cost.currency);
  if (cost.estimated) out.member("estimated", *cost.estimated);
  if (cost.price_list) out.member("price_list", *cost.price_list);
  out.end_object();
}

// run.get adds the position of the run's next event; run.list adds the times and the cost of each run.
void write_run(json::Writer& out, const store::RunRow& row, std::optional<std::int64_t> next_run_seq,
               std::int16_t earlier_log = 0) {
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
  if (next_run_seq) {
    out.member("next_run_seq", *next_run_seq);
  } else {
    member_or_null(out, "first_occurred_at", text_of(row.first_occurred_at));
    member_or_null(out, "last_occurred_at", text_of(row.last_occurred_at));
    if (row.cost) write_cost(out, *row.cost);
  }
  if (earlier_log != 0) out.member("log_no", int{earlier_log});
  out.end_object();
}

// The daemon's own run has no row. In the current log it began with the daemon.
Result<store::RunRow> log_row(store::Reader& reader, const store::RunView& view, Time started,
                              std::int16_t of_present) {
  store::RunRow row;
  row.run_no = view.run_no;
  row.run_id = log_run_id;
  row.first_seq = view.first_seq;
  row.status = "open";
  row.origin = view.origin;
  row.owner = view.owner;
  row.agent = events::daemon_actor;
  row.started_at = started;
  if (reader.log_no() == of_present) return row;
  ASSIGN_OR_RETURN(const auto first, reader.event_at(0));
  if (first) row.started_at = first->recorded_at;
  return row;
}

Result<store::RunRow> row_of(Call& call, const ReadRun& found) {
  const store::Run& run = *found.run;
  if (run.run_id == log_run_id) return log_row(*found.reader, run.view(), call.services.started, call.reader->log_no());
  ASSIGN_OR_RETURN(std::optional<store::RunRow> row, found.reader->run(run.run_id));
  if (row) return *std::move(row);
  return Error(Errc::corrupt, "run " + run.run_id + " has no run.started. Run muniment-verify");
}

// Waits until the followers have processed all current commits. If that takes too long, returns the number of events by
// which they are behind.
Result<std::int64_t> wait_for_followers(Call& call) {
  ASSIGN_OR_RETURN(const std::int64_t wanted, call.reader->log_size());
  const Monotonic until = std::min(call.services.clock.monotonic() + follower_wait_most, call.deadline);
  std::int64_t behind = 0;
  for (const std::string_view follower : list_followers) {
    for (;;) {
      ASSIGN_OR_RETURN(const std::int64_t position, call.reader->follower_position(follower));
      if (position >= wanted) break;
      if (call.services.clock.monotonic() >= until) {
        behind = std::max(behind, wanted - position);
        break;
      }
      std::this_thread::sleep_for(follower_poll);
    }
  }
  return behind;
}

// A row and its log.
struct ListedRun {
  store::RunRow row;
  std::size_t reader_no = 0;
};

constexpr std::int64_t runs_of_a_log_max = std::int64_t{1} << 48;

std::int64_t cursor_of(const ListedRun& last) {
  return static_cast<std::int64_t>(last.reader_no) * runs_of_a_log_max + last.row.run_no;
}

// Returns the readers of all logs, or of the named log.
Result<std::vector<store::Reader*>> readers_to_list(Call& call) {
  if (!call.params["log_no"]) return readers_of_all(call);
  ASSIGN_OR_RETURN(store::Reader* const one, reader_named(call));
  return std::vector<store::Reader*>{one};
}

store::RunFilter run_filter_of(const Call& call) {
  const json::Value& params = call.params;
  store::RunFilter filter;
  filter.status = params["status"].as_string();
  filter.agent = params["agent"].as_string();
  if (params["labels"]) filter.labels = std::string(params["labels"].source());
  if (const auto since = params["since"].as_string()) filter.since = parse_time(*since);
  if (const auto until = params["until"].as_string()) filter.until = parse_time(*until);
  filter.parent = params["parent"].as_string();
  filter.external_id = params["external_id"].as_string();
  if (!call.caller.admin) filter.owner = call.caller.actor;
  return filter;
}

}  // namespace

Result<Answer> run_get(Call& call) {
  ASSIGN_OR_RETURN(const ReadRun found, find_run_to_read(call, call.params["run_id"].string_or("")));
  // Reads the table like every other read, so that this reply is not older than a previous one.
  ASSIGN_OR_RETURN(const std::int64_t next_run_seq, found.reader->next_run_seq(found.run->view().run_no));
  ASSIGN_OR_RETURN(const store::RunRow row, row_of(call, found));
  json::Writer out;
  out.begin_object().key("run");
  write_run(out, row, next_run_seq, found.run->closed_log);
  out.end_object();
  return Reply{std::move(out).text(), {}};
}

Result<Answer> run_list(Call& call) {
  store::RunFilter filter = run_filter_of(call);
  const std::string question = question_of("run.list", call.params);
  ASSIGN_OR_RETURN(std::vector<store::Reader*> readers, readers_to_list(call));
  std::size_t reader_no = 0;
  if (const json::Value cursor = call.params["cursor"]) {
    ASSIGN_OR_RETURN(const std::int64_t position, read_cursor(cursor.string_or(""), question));
    reader_no = static_cast<std::size_t>(position / runs_of_a_log_max);
    filter.before_run_no = position % runs_of_a_log_max;
    if (reader_no >= readers.size())
      return Error(Errc::invalid_argument,
                   "cursor: it belongs to a request with other parameters. Send those parameters, or omit cursor.");
  }
  const auto limit = static_cast<std::size_t>(
      call.params["limit"].as_int().value_or(static_cast<std::int64_t>(limits::page_items_default)));
  ASSIGN_OR_RETURN(const std::int64_t behind, wait_for_followers(call));
  // Lists the runs of the current log, then those of the earlier logs, newest log first.
  std::vector<ListedRun> rows;
  for (; reader_no < readers.size() && rows.size() <= limit; ++reader_no) {
    ASSIGN_OR_RETURN(auto found, readers[reader_no]->runs(filter, limit + 1 - rows.size()));
    for (store::RunRow& row : found) rows.push_back({std::move(row), reader_no});
    filter.before_run_no.reset();
  }

  json::Writer out;
  out.begin_object().key("runs").begin_array();
  std::size_t shown = 0;
  for (; shown < rows.size() && shown < limit; ++shown) {
    json::Writer run;
    const std::int16_t log_no = readers[rows[shown].reader_no]->log_no();
    write_run(run, rows[shown].row, std::nullopt, log_no == call.reader->log_no() ? std::int16_t{0} : log_no);
    if (shown > 0 && out.text().size() + run.text().size() > limits::page_bytes_max) break;
    out.raw(run.text());
  }
  out.end_array();
  if (shown < rows.size()) out.member("cursor", make_cursor(cursor_of(rows[shown - 1]), question));
  if (behind > 0) out.member("behind", behind);
  out.end_object();
  return Reply{std::move(out).text(), {}};
}

Result<Answer> run_costs(Call& call) {
  const std::string question = question_of("run.costs", call.params);
  std::int64_t after = -1;
  if (const json::Value cursor = call.params["cursor"]) {
    ASSIGN_OR_RETURN(after, read_cursor(cursor.string_or(""), question));
  }
  ASSIGN_OR_RETURN(const ReadRun found, find_run_to_read(call, call.params["run_id"].string_or("")));
  ASSIGN_OR_RETURN(const std::int64_t behind, wait_for_followers(call));
  const auto limit = static_cast<std::size_t>(
      call.params["limit"].as_int().value_or(static_cast<std::int64_t>(limits::page_items_default)));
  ASSIGN_OR_RETURN(const auto costs, found.reader->answer_costs(found.run->view().run_no, after, limit + 1));
  json::Writer out;
  out.begin_object().member("run_id", found.run->run_id).key("answers").begin_array();
  const std::size_t shown = std::min(costs.size(), limit);
  for (std::size_t i = 0; i < shown; ++i) {
    const store::AnswerCost& cost = costs[i];
    out.begin_object().member("seq", cost.seq).member("model", cost.model).member("amount", cost.amount);
    out.member("currency", cost.currency).member("basis", cost.basis).end_object();
  }
  out.end_array();
  if (shown < costs.size()) out.member("cursor", make_cursor(costs[shown - 1].place, question));
  if (behind > 0) out.member("behind", behind);
  out.end_object();
  return Reply{std::move(out).text(), {}};
}

}  // namespace muniment::gateway::methods
