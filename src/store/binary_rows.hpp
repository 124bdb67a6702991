// COPY streams for batches of rows. Events travel in Postgres' binary format: reading hashes as text
// costs the server more than storing them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "store/rows.hpp"
#include "store/tail.hpp"

namespace muniment::store {

inline constexpr std::size_t event_columns = 15;  // of table event, without log_no

// The columns of `event` after log_no, in this order, everywhere.
inline constexpr std::string_view event_column_names =
    "seq, run_no, run_seq, recorded_at, occurred_at, origin, type, schema_version, step_id, actor, "
    "event_id, body_hash, salt, body, run_hash";

// A whole COPY … (FORMAT binary) stream of `event`, log_no first.
void append_binary_copy(std::int16_t log_no, std::span<const EventPtr> events, std::string& out);

// The table and columns of a row, and its line of COPY text, for what is written beside events.
struct CopyTarget {
  std::string_view table;
  std::string_view columns;
};
CopyTarget copy_target(const Row& row);
void append_copy_text(std::int16_t log_no, const Row& row, std::string& out);

}  // namespace muniment::store
