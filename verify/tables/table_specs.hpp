// Lists the columns of the tables beside the log and the source of each value in its event (docs/format.md, Rows).
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "verify/finding.hpp"

namespace muniment::verify {

// Type of a value in Postgres.
enum class Kind : std::uint8_t { text, integer, uuid, bytes, time, jsonb };

// Source of a column's value.
enum class From : std::uint8_t {
  body,         // the member with the column's name
  body_source,  // the source bytes of that member
  run_id,
  run_no,
  step_id,
  actor,
  recorded_at,
  participle,  // derived from the event's type: `opened` for task.opened
  elsewhere,   // checked by a separate rule
};

struct Column {
  std::string_view name;
  Kind kind = Kind::text;
  From from = From::body;
  std::string_view member = {};  // member of the body; empty: the column's own name
  std::string_view absent = {};  // value of a jsonb column if the body has no such member
  // Value of the column after its event is erased. Content is cleared; names and sizes stay.
  enum class Erased : std::uint8_t { stays, null, value } erased = Erased::stays;
  std::string_view erased_value = {};
  bool later = false;  // rows exported by older versions lack it
};

struct TableSpec {
  std::string_view name;
  Check check;
  std::string_view event_type;
  std::string_view seq_column;
  std::span<const Column> columns;
  std::string_view other_event_type = {};  // second event type that has a row
  bool goes = false;                       // an erased event has no row

  bool follows(std::string_view type) const { return type == event_type || type == other_event_type; }
};

// The tables artifact, manifest, snapshot, claim, evidence, evidence_link, task_change. A bundle has the first five.
inline constexpr std::size_t table_specs_count = 7;
extern const std::array<TableSpec, table_specs_count> table_specs;

}  // namespace muniment::verify
