// Checks the table `task_evidence` against the task.completed events, both ways. An event names any number of pieces of
// evidence, each with a row. The table is read in the order of its events, in parallel with the log.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "base/json/json.hpp"
#include "base/result.hpp"
#include "verify/finding.hpp"
#include "verify/log/run_facts.hpp"
#include "verify/log/scan.hpp"
#include "verify/postgres/postgres.hpp"

namespace muniment::verify {

class TaskEvidence {
 public:
  static Result<TaskEvidence> open(Connection& connection, const Log& log, Findings& findings);

  Status see(const SeenEvent& event, const Telling& telling);  // task.completed, in the order of seq
  Status finish();  // call after the last event: no event names the remaining rows

 private:
  struct Piece {
    std::int64_t seq = -1, evidence_seq = -1;
    std::string run_id, task_id, evidence_id;
    Text recorded_id;  // from the evidence row at evidence_seq; nullopt: no such row
  };

  TaskEvidence(Cursor cursor, const Log& log, Findings& findings)
      : cursor_(std::move(cursor)), log_(log), findings_(findings) {}
  Status advance();
  Status drop_before(std::int64_t seq);
  void compare(const SeenEvent& event, const json::Value& body);
  void found(const SeenEvent& event, std::string expected, std::string actual);

  Cursor cursor_;
  const Log& log_;
  Findings& findings_;
  bool there_ = false;  // a row is pending
  Piece piece_;
};

}  // namespace muniment::verify
