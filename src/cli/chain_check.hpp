// Recomputes the hash chain of a run from the daemon's replies: compares each body with its hash and each entry
// with the run's hash. A report of a run is written only after this check.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/crypto/sha256.hpp"
#include "base/ids.hpp"
#include "base/json/json.hpp"
#include "events/event.hpp"

namespace muniment::cli {

// Converts an event as event.list returns it. Returns nullopt if a member is missing or malformed.
std::optional<events::Event> event_of_answer(const json::Value& answer, std::int64_t run_no);

class ChainCheck {
 public:
  ChainCheck(const Uuid& log_id, std::int64_t run_no) : log_id_(log_id), run_no_(run_no) {}

  // Takes an event as event.list returns it; the events must arrive in order of run_seq.
  void add(const json::Value& event);

  std::int64_t events() const { return next_run_seq_; }
  std::int64_t last_seq() const { return last_seq_; }
  const Hash& run_hash() const { return run_hash_; }
  const Hash& leaf_hash() const { return leaf_hash_; }  // leaf hash of the last event
  // Description of the first mismatch; nullopt if there is none.
  const std::optional<std::string>& broken() const { return broken_; }

 private:
  const Uuid log_id_;
  const std::int64_t run_no_;
  std::int64_t next_run_seq_ = 0;
  std::int64_t last_seq_ = -1;
  Hash run_hash_{};
  Hash leaf_hash_{};
  std::optional<std::string> broken_;
};

}  // namespace muniment::cli
