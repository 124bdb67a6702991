// Implements the command run list, which prints matching runs, newest first.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/limits.hpp"
#include "base/text.hpp"
#include "cli/commands.hpp"
#include "cli/show/costs.hpp"
#include "cli/show/describe.hpp"
#include "cli/time_option.hpp"
#include "client/arguments.hpp"
#include "client/output.hpp"

namespace muniment::cli {
namespace {

struct RunListOptions {
  std::string status;
  std::string agent;
  std::vector<std::string> labels;
  std::string since;
  std::string until;
  std::string parent;
  std::string external_id;
  std::size_t limit = 20;
};

void declare_list(CLI::App& command, RunListOptions& options) {
  command.add_option("--status", options.status, "Status: open, ended (with any outcome) or halted");
  command.add_option("--agent", options.agent, "Name of the agent");
  command.add_option("--label", options.labels, "k=v")->allow_extra_args(false);
  add_time(command, "--since", options.since, "Started from this time on; for an import, its own time");
  add_time(command, "--until", options.until, "Started before this time; for an import, its own time");
  command.add_option("--parent", options.parent, "Children of this run");
  command.add_option("--external-id", options.external_id, "Id of the run in another system");
  command.add_option("-n,--limit", options.limit, "Maximum number of runs; 0: all")->capture_default_str();
}

Result<std::string> list_params(Session& session, const RunListOptions& options, std::size_t limit,
                                std::string_view cursor) {
  json::Writer params;
  params.begin_object();
  if (!options.status.empty()) params.member("status", options.status);
  if (!options.agent.empty()) params.member("agent", options.agent);
  if (!options.since.empty()) params.member("since", options.since);
  if (!options.until.empty()) params.member("until", options.until);
  if (!options.labels.empty()) {
    ASSIGN_OR_RETURN(const std::string labels, labels_json(options.labels));
    params.raw_member("labels", labels);
  }
  if (!options.parent.empty()) {
    ASSIGN_OR_RETURN(const std::string parent, session.run_id(options.parent));
    params.member("parent", parent);
  }
  if (!options.external_id.empty()) params.member("external_id", options.external_id);
  if (!cursor.empty()) params.member("cursor", cursor);
  params.member("limit", limit).end_object();
  return std::move(params).text();
}

// The start of an imported run is the time of its first event, if the source has one, and not the time of the import.
std::string started_ago(const json::Value& run, Time now) {
  const bool imported = run["origin"].string_or("") == "imported";
  return ago(run[imported ? "first_occurred_at" : "started_at"].string_or(""), now);
}

// Counts the runs after the cursor, up to a bound.
Result<std::size_t> runs_behind(Session& session, const RunListOptions& options, std::string cursor) {
  constexpr std::size_t counted_max = 100'000;
  std::size_t count = 0;
  while (!cursor.empty() && count < counted_max) {
    ASSIGN_OR_RETURN(const std::string params, list_params(session, options, limits::page_items_max, cursor));
    ASSIGN_OR_RETURN(const Message page, session.call("run.list", params));
    count += page.result()["runs"].size();
    cursor = page.result()["cursor"].string_or("");
  }
  return count;
}

// Collects all pages in one table, so that the column widths fit all rows.
Status list_runs(Session& session, const RunListOptions& options) {
  const Output& out = session.out();
  if (!options.parent.empty()) {  // a run without children is an empty list; an unknown run is an error
    ASSIGN_OR_RETURN(const std::string parent, session.run_id(options.parent));
    RETURN_IF_ERROR(session.call("run.get", fmt::format("{{\"run_id\":{}}}", json::quote(parent))));
  }
  const Time now = Clock().now();
  Table table({"no", "run", "outcome", "agent", "started", "goal", "cost"}, {5, 3, 1});
  std::size_t left = options.limit == 0 ? SIZE_MAX : options.limit;
  std::string cursor;
  do {
    ASSIGN_OR_RETURN(const std::string params,
                     list_params(session, options, std::min(left, limits::page_items_max), cursor));
    ASSIGN_OR_RETURN(const Message page, session.call("run.list", params));
    const json::Value runs = page.result()["runs"];
    for (const json::Value run : runs) {
      if (session.options.json) {
        out.json_line(run.source());
        continue;
      }
      const std::string status = run["status"].string_or("");
      const std::string outcome = run["outcome"].string_or("");
      const json::Value agent = run["agent"];
      const json::Value closed = run["log_no"];
      table.add({fmt::format("@{}{}", run["run_no"].source(), closed ? fmt::format(" log {}", closed.source()) : ""),
                 out.one_line(run["run_id"].string_or("")),
                 out.tone(tone_of_status(status), outcome.empty() || outcome == "unknown" ? status : outcome),
                 out.one_line(agent.is(json::Kind::object) ? agent["name"].string_or("") : agent.string_or("")),
                 started_ago(run, now), fit(out.one_line(run["goal"].string_or("")), 60),
                 out.one_line(cost_text(run["cost"]))});
    }
    left -= std::min(left, runs.size());
    cursor = page.result()["cursor"].string_or("");
  } while (left > 0 && !cursor.empty());
  table.omit_last_if_empty();
  if (!session.options.json) table.print(out);
  if (cursor.empty()) return success();
  ASSIGN_OR_RETURN(const std::size_t behind, runs_behind(session, options, cursor));
  fmt::print(stderr, "muniment: {} of {} runs; --limit N shows more\n", grouped(options.limit),
             grouped(options.limit + behind));
  return success();
}

}  // namespace

void add_run_list(CLI::App& run, Session& session) {
  add_command<RunListOptions>(session, run, "list", "List runs, newest first", declare_list, list_runs);
}

}  // namespace muniment::cli
