// Writes the rows of the follower "report". Runs are written before spans, and both before erasures, in the order in
// which erase_report takes its locks.
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "store/tables/followed_rows.hpp"

namespace muniment::store {
namespace {

constexpr std::string_view open_sql =
    "SELECT u.at, s.seq FROM unnest($2::bigint[], $3::text[], $4::bigint[], $5::text[], $6::bigint[]) u (at, kind, run_no, key, most) "
    "CROSS JOIN LATERAL (SELECT seq FROM report_span WHERE log_no = $1 AND kind = u.kind AND run_no = u.run_no AND key = u.key "
    "AND ended_seq IS NULL ORDER BY seq DESC LIMIT u.most) s ORDER BY u.at, s.seq";

// An unknown value is NULL and adds nothing.
#define MUNIMENT_ADD_KNOWN(column) \
  column " = coalesce(report_run." column " + excluded." column ", report_run." column ", excluded." column "), "

constexpr std::string_view put_runs =
    "INSERT INTO report_run (log_no, run_no, events, last_seq, last_event_at, first_occurred_at, last_occurred_at, messages, errors, "
    "model_calls, model_errors, tool_calls, tool_errors, steps, commands, command_errors, input_tokens, output_tokens, "
    "cached_input_tokens, reasoning_tokens, cost, currency) "
    "SELECT $1, * FROM unnest($2::bigint[], $3::bigint[], $4::bigint[], $5::timestamptz[], $6::timestamptz[], $7::timestamptz[], "
    "$8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[], $13::bigint[], $14::bigint[], $15::bigint[], $16::bigint[], "
    "$17::numeric[], $18::numeric[], $19::numeric[], $20::numeric[], $21::numeric[], $22::text[]) "
    "ON CONFLICT (log_no, run_no) DO UPDATE SET events = report_run.events + excluded.events, last_seq = excluded.last_seq, "
    "last_event_at = excluded.last_event_at, first_occurred_at = least(report_run.first_occurred_at, excluded.first_occurred_at), "
    "last_occurred_at = greatest(report_run.last_occurred_at, excluded.last_occurred_at), "
    "messages = report_run.messages + excluded.messages, errors = report_run.errors + excluded.errors, "
    "model_calls = report_run.model_calls + excluded.model_calls, model_errors = report_run.model_errors + excluded.model_errors, "
    "tool_calls = report_run.tool_calls + excluded.tool_calls, tool_errors = report_run.tool_errors + excluded.tool_errors, "
    "steps = report_run.steps + excluded.steps, commands = report_run.commands + excluded.commands, "
    "command_errors = report_run.command_errors + excluded.command_errors, " MUNIMENT_ADD_KNOWN(
        "input_tokens") MUNIMENT_ADD_KNOWN("output_tokens") MUNIMENT_ADD_KNOWN("cached_input_tokens")
        MUNIMENT_ADD_KNOWN("reasoning_tokens") MUNIMENT_ADD_KNOWN(
            "cost") "currency = CASE WHEN report_run.currency <> excluded.currency THEN 'mixed' ELSE coalesce(excluded.currency, report_run.currency) END";

#define MUNIMENT_END_COLUMNS                                                                                                \
  "ended_seq, ended_at, status, reason, answered_by, exit_code, duration_us, first_token_us, input_tokens, output_tokens, " \
  "cached_input_tokens, cache_write_tokens, reasoning_tokens, cost, currency"

// Each condition names a column of `u`, so that every index of the table answers for one row at a time. With constants,
// Postgres would read all spans of the kind while the statistics are those of an empty table.
constexpr std::string_view put_ends =
    "UPDATE report_span s SET (" MUNIMENT_END_COLUMNS
    ") = (SELECT u.ended_seq, u.ended_at, u.status, u.reason, u.answered_by, u.exit_code, "
    "u.duration_us, u.first_token_us, u.input_tokens, u.output_tokens, u.cached_input_tokens, u.cache_write_tokens, u.reasoning_tokens, "
    "u.cost, u.currency) FROM unnest($1::smallint[], $2::text[], $3::bigint[], $4::bigint[], $5::bigint[], $6::timestamptz[], $7::text[], "
    "$8::text[], $9::text[], $10::bigint[], $11::bigint[], $12::bigint[], $13::bigint[], $14::bigint[], $15::bigint[], $16::bigint[], "
    "$17::bigint[], $18::numeric[], $19::text[]) u (log_no, kind, run_no, seq, " MUNIMENT_END_COLUMNS
    ") WHERE s.log_no = u.log_no AND s.kind = u.kind AND s.run_no = u.run_no AND s.seq = u.seq";

const std::vector<std::string> span_columns = {"log_no",
                                               "kind",
                                               "seq",
                                               "run_no",
                                               "key",
                                               "step_id",
                                               "origin",
                                               "began_seq",
                                               "began_at",
                                               "name",
                                               "sort",
                                               "via",
                                               "attempt",
                                               "ended_seq",
                                               "ended_at",
                                               "status",
                                               "reason",
                                               "answered_by",
                                               "exit_code",
                                               "duration_us",
                                               "first_token_us",
                                               "input_tokens",
                                               "output_tokens",
                                               "cached_input_tokens",
                                               "cache_write_tokens",
                                               "reasoning_tokens",
                                               "cost",
                                               "currency"};

using Cell = std::optional<std::string>;

Cell cell(std::int64_t value) { return std::to_string(value); }
Cell cell(const std::optional<std::int64_t>& value) { return value ? cell(*value) : Cell(); }
Cell cell(std::string_view value) { return std::string(value); }
Cell cell(const std::optional<std::string>& value) { return value; }
Cell cell(const std::optional<Time>& value) { return value ? Cell(format_time(*value)) : Cell(); }
Cell cell(Time value) { return format_time(value); }
Cell cell(events::Picos value) { return events::sum_text(value); }
Cell cell(const std::optional<events::Picos>& value) { return value ? cell(*value) : Cell(); }

// Rows by column: each column is one array parameter of the statement.
class Columns {
 public:
  template <typename... Values>
  void add(const Values&... values) {
    arrays_.resize(sizeof...(values));
    std::size_t column = 0;
    (append(arrays_[column++], cell(values)), ...);
  }
  void put(Params& params) const {
    for (const std::string& array : arrays_) params.text("{" + array + "}");
  }

 private:
  static void append(std::string& array, const Cell& value) {
    if (!array.empty()) array += ',';
    if (!value) {
      array += "NULL";
      return;
    }
    array += '"';
    for (const char byte : *value) {
      if (byte == '"' || byte == '\\') array += '\\';
      array += byte;
    }
    array += '"';
  }

  std::vector<std::string> arrays_;
};

// Rows for COPY, which are complete after `end` returns.
class Copy {
 public:
  Copy(pqxx::transaction_base& work, const std::string& table, const std::vector<std::string>& columns)
      : stream_(work, table, columns) {}

  template <typename... Values>
  void add(const Values&... values) {
    const std::array<Cell, sizeof...(values)> cells{cell(values)...};
    std::array<const char*, sizeof...(values)> row{};
    std::ranges::transform(cells, row.begin(), [](const Cell& value) { return value ? value->c_str() : nullptr; });
    stream_ << row;
  }
  void end() { stream_.complete(); }

 private:
  pqxx::stream_to stream_;
};

void write_runs(Connection& connection, pqxx::transaction_base& work, std::int16_t log_no,
                const std::vector<ReportRun>& runs) {
  if (runs.empty()) return;
  Columns columns;
  for (const ReportRun& run : runs) {
    columns.add(run.run_no, run.events, run.last_seq, run.last_event_at, run.first_occurred_at, run.last_occurred_at,
                run.messages, run.errors, run.model_calls, run.model_errors, run.tool_calls, run.tool_errors, run.steps,
                run.commands, run.command_errors, run.input_tokens, run.output_tokens, run.cached_input_tokens,
                run.reasoning_tokens, run.cost, run.currency);
  }
  Params params = std::move(Params().integer(log_no));
  columns.put(params);
  query(connection, work, "report_runs_put", put_runs, params);
}

void write_spans(pqxx::transaction_base& work, std::int16_t log_no, const std::vector<SpanRow>& spans) {
  if (spans.empty()) return;
  Copy copy(work, "report_span", span_columns);
  const SpanEnd none;
  for (const SpanRow& row : spans) {
    const SpanEnd& end = row.end ? *row.end : none;
    copy.add(std::int64_t{log_no}, row.kind, row.seq, row.run_no, std::string_view(row.key), row.step_id,
             static_cast<std::int64_t>(row.origin), row.began ? std::optional(row.seq) : std::nullopt, row.began_at,
             row.name, row.sort, row.via, row.attempt, row.end ? std::optional(end.seq) : std::nullopt, end.at,
             end.status, end.reason, end.answered_by, end.exit_code, end.duration_us, end.first_token_us,
             end.input_tokens, end.output_tokens, end.cached_input_tokens, end.cache_write_tokens, end.reasoning_tokens,
             end.cost, end.currency);
  }
  copy.end();
}

void write_ends(Connection& connection, pqxx::transaction_base& work, std::int16_t log_no,
                const std::vector<EndedSpan>& ended) {
  if (ended.empty()) return;
  Columns columns;
  for (const auto& [kind, run_no, seq, end] : ended) {
    columns.add(std::int64_t{log_no}, kind, run_no, seq, end.seq, end.at, end.status, end.reason, end.answered_by,
                end.exit_code, end.duration_us, end.first_token_us, end.input_tokens, end.output_tokens,
                end.cached_input_tokens, end.cache_write_tokens, end.reasoning_tokens, end.cost, end.currency);
  }
  Params params;
  columns.put(params);
  query(connection, work, "report_ends_put", put_ends, params);
}

void write_places(pqxx::transaction_base& work, std::int16_t log_no, const std::vector<ReportPlace>& places) {
  if (places.empty()) return;
  Copy copy(work, "report_place", {"log_no", "type", "seq", "run_no"});
  for (const ReportPlace& place : places)
    copy.add(std::int64_t{log_no}, std::string_view(place.type), place.seq, place.run_no);
  copy.end();
}

}  // namespace

OpenSpans open_spans(Connection& connection, pqxx::transaction_base& work, std::int16_t log_no,
                     const std::map<SpanKey, std::int64_t>& wanted) {
  OpenSpans open;
  if (wanted.empty()) return open;
  Columns columns;
  std::vector<SpanKey> keys;
  for (const auto& [key, most] : wanted) {
    columns.add(static_cast<std::int64_t>(keys.size()), std::get<0>(key), std::get<1>(key),
                std::string_view(std::get<2>(key)), most);
    keys.push_back(key);
  }
  Params params = std::move(Params().integer(log_no));
  columns.put(params);
  for (const pqxx::row& row : query(connection, work, "report_open_spans", open_sql, params)) {
    open[keys.at(static_cast<std::size_t>(integer_of(row[0])))].push_back(integer_of(row[1]));
  }
  return open;
}

void write_followed_report(Connection& connection, pqxx::transaction_base& work, std::int16_t log_no,
                           const ReportRows& rows) {
  write_runs(connection, work, log_no, rows.runs);
  write_spans(work, log_no, rows.spans);
  write_ends(connection, work, log_no, rows.ended);
  write_places(work, log_no, rows.places);
  std::map<std::int64_t, std::vector<std::int64_t>> erased;
  for (const ErasedEvent& event : rows.erased) erased[event.run_no].push_back(event.seq);
  for (const auto& [run_no, seqs] : erased) {
    query(connection, work, "report_erase", "SELECT erase_report($1, $2, $3::bigint[])",
          Params().integer(log_no).integer(run_no).integers(seqs));
  }
}

}  // namespace muniment::store
