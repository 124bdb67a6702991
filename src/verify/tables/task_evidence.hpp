// The table `task_evidence`, held against the task.completed events both ways: an event names any number of pieces,
// each a row. It is read in the order of its events, beside the log.
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
  Status finish();  // after the last event: no event names the rows that are left

 private:
  struct Piece {
    std::int64_t seq = -1, evidence_seq = -1;
    std::string run_id, task_id, evidence_id;
    Text recorded_id;  // of the evidence table's row at evidence_seq; nullopt: it has none
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
  bool there_ = false;  // a row waits
  Piece piece_;
};

}  // namespace muniment::verify
