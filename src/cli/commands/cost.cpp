// Implements the command cost, which sums the view report.cost_report.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <chrono>

#include "base/limits.hpp"
#include "cli/commands.hpp"
#include "cli/sql/query.hpp"
#include "cli/time_option.hpp"

namespace muniment::cli {
namespace {

struct CostOptions {
  std::vector<std::string> by;
  std::string since, until;
  std::string agent, model;
  std::vector<std::string> labels;
  bool csv = false;
};

struct Part {
  std::string_view name;
  std::string_view sql;
  bool is_time = false;
};

constexpr Part parts[] = {
    {"day", "c.day", true},
    {"week", "date_trunc('week', c.day)::date", true},
    {"month", "to_char(c.day, 'YYYY-MM')", true},
    {"agent", "c.agent"},
    {"model", "c.model"},
    {"owner", "c.owner"},
    {"run", "c.run_id"},
};
constexpr std::string_view label_prefix = "label:";
constexpr std::size_t parts_max = 8;

void declare_cost(CLI::App& command, CostOptions& options) {
  command
      .add_option(
          "--by", options.by,
          "day, week, month, agent, model, owner, run or label:KEY, several separated by commas (default month)")
      ->delimiter(',')
      ->allow_extra_args(false);
  add_time(command, "--since", options.since, "From the day of this time on, in UTC");
  add_time(command, "--until", options.until, "Days that began before this time, in UTC");
  command.add_option("--agent", options.agent, "Name of the agent");
  command.add_option("--model", options.model, "Name of the model");
  command.add_option("--label", options.labels, "k=v")->allow_extra_args(false);
  command.add_flag("--csv", options.csv, "Print CSV; --json prints one object per line");
}

// Builds the query: its columns, the groups and the order, times first and then the largest costs.
class CostQuery {
 public:
  Status group(const std::string& word) {
    if (word.starts_with(label_prefix) && word.size() > label_prefix.size()) {
      ASSIGN_OR_RETURN(const std::string key, sql_text(word.substr(label_prefix.size())));
      return add(word.substr(label_prefix.size()), "c.labels ->> " + key, false);
    }
    for (const Part& part : parts) {
      if (word == part.name) return add(word, std::string(part.sql), part.is_time);
    }
    return Error(Errc::invalid_argument,
                 fmt::format("--by {}: give day, week, month, agent, model, owner, run or label:KEY", word));
  }

  Status filter(std::string_view condition, const std::string& value) {
    if (value.empty()) return success();
    ASSIGN_OR_RETURN(const std::string constant, sql_text(value));
    where_ += fmt::format("{}{}", where_.empty() ? " WHERE " : " AND ", fmt::format(fmt::runtime(condition), constant));
    return success();
  }

  Status filter_label(const std::string& word) {
    const std::size_t equals = word.find('=');
    if (equals == 0 || equals == std::string::npos)
      return Error(Errc::invalid_argument, fmt::format("--label {}: give k=v", word));
    ASSIGN_OR_RETURN(const std::string key, sql_text(word.substr(0, equals)));
    ASSIGN_OR_RETURN(const std::string value, sql_text(word.substr(equals + 1)));
    where_ += fmt::format("{}c.labels ->> {} = {}", where_.empty() ? " WHERE " : " AND ", key, value);
    return success();
  }

  std::string text() const {
    return fmt::format(
        "SELECT {}count(DISTINCT (c.log_no, c.run_id)) AS runs, sum(c.calls)::bigint AS calls, sum(c.input_tokens) AS input_tokens, "
        "sum(c.output_tokens) AS output_tokens, trim_scale(round(sum(c.recorded), 6)) AS recorded, "
        "trim_scale(round(sum(c.estimated), 6)) AS estimated, "
        "CASE WHEN coalesce(sum(c.recorded), sum(c.estimated)) IS NOT NULL THEN coalesce(c.currency, 'USD') END AS currency, "
        "nullif(sum(c.unpriced_calls), 0)::bigint AS unpriced_calls, max(coalesce(p.list_date::text, c.price_list)) AS price_list "
        "FROM report.cost_report c LEFT JOIN (SELECT DISTINCT version, list_date FROM report.price) p ON p.version = c.price_list"
        "{} GROUP BY {}coalesce(c.currency, 'USD') ORDER BY {}coalesce(sum(c.recorded), 0) + coalesce(sum(c.estimated), 0) DESC{}",
        columns_, where_, groups_, times_, others_);
  }

 private:
  Status add(const std::string& name, const std::string& sql, bool is_time) {
    if (++count_ > parts_max) return Error(Errc::invalid_argument, fmt::format("--by has at most {} parts", parts_max));
    std::string quoted = "\"";
    for (const char c : name) quoted += c == '"' ? "\"\"" : std::string(1, c);
    columns_ += fmt::format("{} AS {}\", ", sql, quoted);
    groups_ += fmt::format("{}, ", count_);
    if (is_time) times_ += fmt::format("{}, ", count_);
    if (!is_time) others_ += fmt::format(", {}", count_);
    return success();
  }

  std::size_t count_ = 0;
  std::string columns_, groups_, times_, others_, where_;
};

Status show_costs(Session& session, const CostOptions& options) {
  if (options.csv && session.options.json) return Error(Errc::invalid_argument, "--csv or --json, not both");
  CostQuery query;
  if (options.by.empty()) RETURN_IF_ERROR(query.group("month"));
  for (const std::string& word : options.by) RETURN_IF_ERROR(query.group(word));
  RETURN_IF_ERROR(query.filter("c.day >= ({}::timestamptz AT TIME ZONE 'UTC')::date", options.since));
  RETURN_IF_ERROR(query.filter("c.day < {}::timestamptz AT TIME ZONE 'UTC'", options.until));
  RETURN_IF_ERROR(query.filter("c.agent = {}", options.agent));
  RETURN_IF_ERROR(query.filter("c.model = {}", options.model));
  for (const std::string& label : options.labels) RETURN_IF_ERROR(query.filter_label(label));
  ASSIGN_OR_RETURN(const std::string uri, database_uri(session));
  ASSIGN_OR_RETURN(SqlConnection connection,
                   SqlConnection::open(uri, std::chrono::seconds(limits::report_seconds_default)));
  return print_query(session, connection, query.text(),
                     session.options.json ? SqlForm::json
                     : options.csv        ? SqlForm::csv
                                          : SqlForm::table);
}

}  // namespace

void add_cost_command(CLI::App& app, Session& session) {
  add_command<CostOptions>(session, app, "cost", "Costs of models by day, week, month, agent, model or label",
                           declare_cost, show_costs);
}

}  // namespace muniment::cli
