// Checks the life of every run (docs/format.md, Life of a run) event by event: run_seq has no gap, and the state of the
// run permits each event. It also records erasures.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <unordered_map>

#include "verify/finding.hpp"
#include "verify/log/scan.hpp"

namespace muniment::verify {

// Events at the end of the log that a start adopted. Nothing outside the database shows that the daemon wrote them.
struct Adoption {
  std::int64_t said_at = -1;        // seq of the log.started
  std::int64_t from = -1, to = -1;  // -1: its body is erased, so it is unknown whether it adopted events
};

enum class Stand : std::uint8_t { not_started, open, ended, halted };

// State of a run after some of its events.
struct Head {
  std::int64_t next_run_seq = 0;
  std::string run_hash;
  Stand stand = Stand::not_started;
  std::int64_t promise_seq = -1;  // seq of an artifact.stored in a stopped run, after which its snapshot must follow
  std::string promise_artifact;
  bool promise_erased = false;  // its artifact can no longer be named
};
using Heads = std::unordered_map<std::int64_t, Head>;  // by run_no

class RunLife {
 public:
  RunLife(const Log& log, Findings& findings);

  void follow(const SeenEvent& event, const Telling* telling);  // call in the order of seq
  void finish();                                                // call after the last event

  Heads& heads() { return heads_; }
  const Heads& heads() const { return heads_; }
  const std::set<std::int64_t>& announced() const { return announced_; }
  const std::set<std::string>& redacted_artifacts() const { return redacted_artifacts_; }

 private:
  void live(Head& head, const SeenEvent& event, const Telling* telling);
  void check_promise(Head& head, const SeenEvent* event, const Telling* telling, std::int64_t run_no);
  void note_redaction(const Telling& telling);
  void found(Check check, const SeenEvent& event, std::string expected, std::string actual);

  const Log& log_;
  Findings& findings_;
  Heads heads_;
  std::set<std::int64_t> announced_;          // seqs that event.redacted names
  std::set<std::string> redacted_artifacts_;  // artifact_ids that artifact.redacted names
};

}  // namespace muniment::verify
