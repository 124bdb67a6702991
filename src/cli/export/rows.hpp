// The two forms in which events leave: JSONL and CSV, a line an event. Both hold every field that is hashed
// (docs/format.md, Entry) and both hashes, so that a line can be checked without the database.
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

// What of `event` an export reads, in the order in which `append_row` takes it.
inline constexpr std::string_view export_columns =
    "e.seq, e.run_no, e.run_seq, e.recorded_at, e.occurred_at, e.origin, e.type, e.schema_version, e.step_id, e.actor, "
    "e.event_id, e.body_hash, e.salt, e.run_hash, e.body";

// Puts an archived event's body into its row, which then reads like any other. `is_erased`: asked where the archive has
// none. Errors: as ExportArchive; corrupt where the archive's is not what was hashed, or is missing. The row stays as
// it is then.
Status fill_archived(ExportFields& fields, ExportArchive& archive,
                     const std::function<Result<bool>(std::int64_t)>& is_erased);

enum class ExportForm : std::uint8_t { jsonl, csv };

// What a file of this form begins with: the names of the columns, with a line feed; of JSONL what every line does.
std::string_view export_beginning(ExportForm form);

// Of a line of this form, without its end: which event of which log it is. nullopt: it is none.
struct ExportPlace {
  std::int64_t seq = 0;
  std::string log_id;
};
std::optional<ExportPlace> place_of_line(ExportForm form, std::string_view line);

struct ExportRow {
  std::int64_t seq = 0;
  std::string_view type;
  std::string_view body;  // empty: erased, or archived
  bool archived = false;  // its salt is there, its body is not
};

class ExportRows {
 public:
  using RunIds = std::unordered_map<std::int64_t, std::string>;  // by run_no

  ExportRows(ExportForm form, std::string log_id, RunIds runs)
      : form_(form), log_id_(std::move(log_id)), runs_(std::move(runs)) {}

  // The names of the columns, with a line feed; empty for JSONL.
  std::string heading() const;
  // Appends the event's line to `out`. What it answers points into the fields.
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
