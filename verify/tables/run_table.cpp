#include "verify/tables/run_table.hpp"

#include <fmt/format.h>

#include "verify/state/value.hpp"

namespace muniment::verify {
namespace {

constexpr std::size_t stored_labels_bytes_max = 65'000;
constexpr std::size_t written_out_digits_max = 308;

// The table stores no labels if jsonb might print them larger than the limit (docs/format.md, Rows).
std::string stored_labels(const RunFacts& facts) {
  std::size_t bytes = 2;
  for (const auto& [name, value] : facts.labels) {
    std::string quoted;
    write_quoted(name, quoted);
    const bool has_exponent = value.find_first_of("eE") != std::string::npos && value.find_first_of("-0123456789") == 0;
    bytes += quoted.size() + value.size() + 4 + (has_exponent ? written_out_digits_max : 0);
  }
  return bytes <= stored_labels_bytes_max ? facts.labels_text() : "{}";
}

}  // namespace

Status RunTable::open(Connection& connection) {
  ASSIGN_OR_RETURN(
      const auto position,
      connection.integer(fmt::format("SELECT next_seq FROM follower WHERE log_no = {} AND name = 'run'", log_.log_no)));
  next_seq_ = position.value_or(0);
  return success();
}

void RunTable::see(const SeenEvent& event, const Telling& telling) {
  if (event.run_no == 0) return;
  const auto document = json::parse(telling.json());
  const json::Value body = document ? document->root() : json::Value();
  if (event.life == Life::halted && !text_of(body, "reason")) ++halted_without_reason_;
  if (event.seq >= next_seq_) return;
  Record& record = records_[event.run_no];
  if (event.life == Life::started) {
    record.first_seq = event.seq;
    record.origin = telling.origin;
    record.owner = telling.actor;
    record.external_id = text_of(body, "external_id");
  } else if (event.life == Life::ended) {
    record.ended_at = format_time(telling.recorded_at);
  } else if (event.life == Life::resumed) {
    record.ended_at = std::nullopt;
  }
  record.facts.apply({event.seq, event.run_seq, telling.recorded_at, telling.origin, telling.type}, body);
}

Status RunTable::finish(Connection& connection) {
  RETURN_IF_ERROR(connection.start_copy(fmt::format(
      "SELECT run_no, run_id, first_seq, status, outcome, origin, owner, agent, goal, labels, parent, external_id, "
      "started_at, ended_at, halt FROM run WHERE log_no = {} ORDER BY run_no",
      log_.log_no)));
  Row row;
  auto record = records_.begin();
  const auto missing_before = [&](std::optional<std::int64_t> run_no) {
    for (; record != records_.end() && (!run_no || record->first < *run_no); ++record) {
      found(log_.run_id(record->first), "a row of run", "no row");
    }
  };
  while (true) {
    ASSIGN_OR_RETURN(const bool more, connection.next(row));
    if (!more) break;
    const std::int64_t run_no = row.integer(0);
    missing_before(run_no);
    if (record != records_.end() && record->first == run_no) {
      compare(row, run_no, record->second);
      ++record;
    } else {
      found(row.text(1), "no row: the log has no such run", fmt::format("a row of run {}", row.bytes(1)));
    }
  }
  missing_before(std::nullopt);
  return success();
}

void RunTable::compare(const Row& row, std::int64_t run_no, const Record& record) {
  const RunFacts& facts = record.facts;
  const auto check = [&](std::string_view column, const Text& wanted, const Text& held) {
    if (wanted != held) found(log_.run_id(run_no), shown(column, wanted), shown(column, held));
  };
  const auto check_json = [&](std::string_view column, const Text& wanted, const Text& held) {
    if (!same_jsonb(wanted, held)) found(log_.run_id(run_no), shown(column, wanted), shown(column, held));
  };
  const auto time = [&row](std::size_t column) {
    return row.null(column) ? Text() : Text(format_time(row.time(column)));
  };
  const auto json_text = [&row](std::size_t column) {
    return row.null(column) ? Text() : Text(std::string(row.jsonb(column)));
  };
  check("run_id", log_.run_id(run_no), row.text(1));
  check("first_seq", std::to_string(record.first_seq), std::to_string(row.integer(2)));
  check("status", facts.status, row.text(3));
  check("outcome", facts.outcome, row.optional_text(4));
  check("origin", std::to_string(record.origin), std::to_string(row.integer(5)));
  check("owner", record.owner, row.text(6));
  check("agent", facts.agent_name.value_or(""), row.text(7));
  check("goal", facts.goal, row.optional_text(8));
  check_json("labels", stored_labels(facts), json_text(9));
  check("parent", facts.parent_run_id, row.optional_text(10));
  check("external_id", record.external_id, row.optional_text(11));
  check("started_at", facts.started_at, time(12));
  check("ended_at", record.ended_at, time(13));
  check_json("halt", facts.halt, json_text(14));
}

// Reports without a seq: the row depends on all events of the run, and if some of them are missing or changed, that
// cause is reported first.
void RunTable::found(const std::string& run_id, std::string expected, std::string actual) {
  findings_.add({Check::run_table, -1, run_id, std::move(expected), std::move(actual)});
}

}  // namespace muniment::verify
