// The tables that are written with their events (docs/format.md, Rows), held against what the
// events say, both ways: each is read in the order of its events, beside the log.
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

// The rows of one table in the order of their events, wherever they are kept.
class RowSource {
 public:
  virtual ~RowSource() = default;
  // False: there are no more. The values stand as the table's columns do; bytea is hexadecimal, a uuid and a
  // time are in their one text form, JSON is its text.
  virtual Result<bool> next(std::int64_t& seq, std::vector<Text>& values) = 0;
};
using RowSources = std::array<std::unique_ptr<RowSource>, table_specs_count>;  // none: the table is not looked at

Result<RowSources> database_rows(Connection& connection, const Log& log);

// Are all events of the log seen, or only some of them?
enum class Extent : std::uint8_t { all, part };

struct TableCounts {
  std::int64_t artifacts = 0, manifests = 0, snapshots = 0, claims = 0, evidence = 0;
};

class Tables {
 public:
  static Result<Tables> open(RowSources sources, const Log& log, Extent extent, Findings& findings);
  Tables(Tables&&) noexcept;
  ~Tables();

  // Events that tell of a row, in the order of seq.
  Status see(const SeenEvent& event, const Telling& telling);
  // After the last event: what is left over is told of by no event.
  Status finish();

  TableCounts counts() const;

 private:
  struct Impl;
  explicit Tables(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace muniment::verify
