// Formats exported events as JSONL or CSV, one line per event. Both contain every hashed field (docs/format.md, Entry)
// and both hashes, so that a line can be checked without the database.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/result.hpp"
#include "cli/export/archive.hpp"
#include "cli/export/connection.hpp"

namespace muniment::cli {

// Columns of `event` that an export reads, in the order that `append_row` expects.
inline constexpr std::string_view export_columns =
    "e.seq, e.run_no, e.run_seq, e.recorded_at, e.occurred_at, e.origin, e.type, e.schema_version, e.step_id, e.actor, "
    "e.event_id, e.body_hash, e.salt, e.run_hash, e.body";

// Adds the body of an archived event to its row. `is_erased` is called if the archive has no body. Errors: as
// ExportArchive; corrupt if the body does not match its hash or is missing; the row is then unchanged.
Status fill_archived(ExportFields& fields, ExportArchive& archive,
                     const std::function<Result<bool>(std::int64_t)>& is_erased);

enum class ExportForm : std::uint8_t { jsonl, csv };

// Returns the beginning of a file of this form: the column names with a line feed; for JSONL the start of every line.
std::string_view export_beginning(ExportForm form);

// Returns the event and log of a line without its line feed; nullopt if it is not an event.
struct ExportPlace {
  std::int64_t seq = 0;
  std::string log_id;
};
std::optional<ExportPlace> place_of_line(ExportForm form, std::string_view line);

struct ExportRow {
  std::int64_t seq = 0;
  std::string_view type;
  std::string_view body;  // empty: erased or archived
  bool archived = false;  // the row has a salt but no body
};

class ExportRows {
 public:
  using RunIds = std::unordered_map<std::int64_t, std::string>;  // key: run_no

  ExportRows(ExportForm form, std::string log_id, RunIds runs)
      : form_(form), log_id_(std::move(log_id)), runs_(std::move(runs)) {}

  // Returns the column names with a line feed; empty for JSONL.
  std::string heading() const;
  // Appends the line of the event to `out`. The result points into the fields.
  ExportRow append(const ExportFields& fields, std::string& out);

 private:
  void append_json(const ExportFields& fields, std::string& out);
  void append_csv(const ExportFields& fields, std::string& out);
  const std::string& run_of(std::int64_t run_no) const;

  const ExportForm form_;
  const std::string log_id_;
  const RunIds runs_;
};

}  // namespace muniment::cli
