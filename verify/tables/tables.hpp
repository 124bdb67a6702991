// Checks the tables that are written with their events (docs/format.md, Rows) against the events, both ways. Each table
// is read in the order of its events, in parallel with the log.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "verify/finding.hpp"
#include "verify/log/run_facts.hpp"
#include "verify/log/scan.hpp"
#include "verify/postgres/postgres.hpp"
#include "verify/tables/table_specs.hpp"

namespace muniment::verify {

// The rows of one table in the order of their events, from any source.
class RowSource {
 public:
  virtual ~RowSource() = default;
  // Returns false at the end. Values are in the order of the table's columns: bytea as hexadecimal text, uuid and time
  // in their only text form, JSON as its text.
  virtual Result<bool> next(std::int64_t& seq, std::vector<Text>& values) = 0;
};
using RowSources = std::array<std::unique_ptr<RowSource>, table_specs_count>;  // nullptr: the table is not checked

Result<RowSources> database_rows(Connection& connection, const Log& log);

// The part of the log's events that is read.
enum class Extent : std::uint8_t { all, part };

struct TableCounts {
  std::int64_t artifacts = 0, manifests = 0, snapshots = 0, claims = 0, evidence = 0;
};

class Tables {
 public:
  static Result<Tables> open(RowSources sources, const Log& log, Extent extent, Findings& findings);
  Tables(Tables&&) noexcept;
  ~Tables();

  // Call for each event that has a row, in the order of seq.
  Status see(const SeenEvent& event, const Telling& telling);
  // Call this after the last event. Reports the remaining rows, because no event accounts for them.
  Status finish();

  TableCounts counts() const;

 private:
  struct Impl;
  explicit Tables(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace muniment::verify
