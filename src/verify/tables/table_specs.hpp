// Which columns the tables beside the log have, and where in its event each value stands (docs/format.md, Rows).
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "verify/finding.hpp"

namespace muniment::verify {

// What a value is in Postgres.
enum class Kind : std::uint8_t { text, integer, uuid, bytes, time, jsonb };

// Where a column's value comes from.
enum class From : std::uint8_t {
  body,         // the member of that name
  body_source,  // the bytes with which that member is written
  run_id,
  run_no,
  step_id,
  actor,
  recorded_at,
  participle,  // of the event's type: opened, of task.opened
  elsewhere,   // checked by a rule of its own
};

struct Column {
  std::string_view name;
  Kind kind = Kind::text;
  From from = From::body;
  std::string_view member = {};  // of the body; empty: the column's own name
  std::string_view absent = {};  // what a jsonb column holds when the body has no such member
  // What it holds once its event is erased; what was said outlives nothing, names and sizes stay.
  enum class Erased : std::uint8_t { stays, null, value } erased = Erased::stays;
  std::string_view erased_value = {};
  bool later = false;  // rows that were exported before it was there lack it
};

struct TableSpec {
  std::string_view name;
  Check check;
  std::string_view event_type;
  std::string_view seq_column;
  std::span<const Column> columns;
  std::string_view other_event_type = {};  // that tells of a row, too
  bool goes = false;                       // an erased event has no row

  bool follows(std::string_view type) const { return type == event_type || type == other_event_type; }
};

// artifact, manifest, snapshot, claim, evidence, evidence_link, task_change. A bundle has the first five.
inline constexpr std::size_t table_specs_count = 7;
extern const std::array<TableSpec, table_specs_count> table_specs;

}  // namespace muniment::verify
