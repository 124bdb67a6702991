// Encodes the rows of a batch in Postgres' binary format: a field is its length (-1: NULL) and its bytes. COPY streams
// and the parameters of a prepared INSERT consist of the same fields. The binary format is used because parsing hashes
// from text costs the server more than storing them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "store/append/rows.hpp"
#include "store/append/tail.hpp"

namespace muniment::store {

struct Table {
  std::string_view name;
  std::string_view columns;  // in the order of their fields, log_no first
};

inline constexpr Table event_table = {
    "event",
    "log_no, seq, run_no, run_seq, recorded_at, occurred_at, origin, type, schema_version, step_id, actor, "
    "event_id, body_hash, salt, body, run_hash"};
std::span<const Table> side_tables();  // the tables beside `event`
const Table& table_of(const Row& row);

// Appends the fields of a row, one for each column of its table.
void append_fields(std::int16_t log_no, const events::Event& event, std::string& out);
void append_fields(std::int16_t log_no, const Row& row, std::string& out);

// Appends a complete stream of COPY … (FORMAT binary): events, or rows of one table.
void append_copy(std::int16_t log_no, std::span<const EventPtr> events, std::string& out);
void append_copy(std::int16_t log_no, std::span<const Row> rows, std::string& out);

}  // namespace muniment::store
