// The tables that are written with their events (docs/format.md, Rows), held against what the
// events say, both ways: each is read in the order of its events, beside the log.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "verify/finding.hpp"
#include "verify/postgres.hpp"
#include "verify/scan.hpp"

namespace muniment::verify {

struct TableCounts {
  std::int64_t artifacts = 0, manifests = 0, snapshots = 0, claims = 0, evidence = 0;
};

class Tables {
 public:
  static Result<Tables> open(Connection& connection, const Log& log, Findings& findings);
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
