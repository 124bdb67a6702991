// Checks the table `run`, which a follower maintains: rebuilds it from the `run.` events that the follower has
// processed and compares both ways. Memory grows with the number of runs, not of events.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "verify/finding.hpp"
#include "verify/log/run_facts.hpp"
#include "verify/log/scan.hpp"
#include "verify/postgres/postgres.hpp"

namespace muniment::verify {

class RunTable {
 public:
  RunTable(const Log& log, Findings& findings) : log_(log), findings_(findings) {}

  // Reads the position of the follower `run`. Call it before the first event.
  Status open(Connection& connection);
  void see(const SeenEvent& event, const Telling& telling);  // `run.` events, in order
  Status finish(Connection& connection);

  std::int64_t follower_position() const { return next_seq_; }
  std::int64_t halted_without_reason() const { return halted_without_reason_; }

 private:
  struct Record {
    RunFacts facts;
    std::int64_t first_seq = -1;
    std::int64_t origin = 0;
    std::string owner;
    Text external_id;
    Text ended_at;
  };
  void compare(const Row& row, std::int64_t run_no, const Record& record);
  void found(const std::string& run_id, std::string expected, std::string actual);

  const Log& log_;
  Findings& findings_;
  std::int64_t next_seq_ = 0;
  std::int64_t halted_without_reason_ = 0;
  std::map<std::int64_t, Record> records_;
};

}  // namespace muniment::verify
