// Lists the checks of the verifier by name and collects their findings.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace muniment::verify {

// Ordered so that a cause precedes its consequences. Of several findings at one seq, the first is reported.
enum class Check : std::uint8_t {
  partition,
  seq,
  body_hash,
  redaction,
  run_seq,
  run_chain,
  transition,
  checkpoint_root,
  checkpoint_signature,
  log_rolled_back,
  published_checkpoint,
  tile,
  bundle,
  proof,
  receipt,
  capsule,
  artifact_row,
  artifact_file,
  artifact_hash,
  artifact_pieces,
  unknown_file,
  manifest,
  snapshot,
  snapshot_hash,
  snapshot_fold,
  claim,
  evidence,
  evidence_link,
  task_change,
  task_evidence,
  corpus,
  document,
  chunk,
  passage,
  feedback,
  run_table,
  erasure,
  value_size,
  foreign_row,
  follower,
  archived_partition,
  migration,
  definition,
};

std::string_view name_of(Check check);

// Upper bound for the value of any column.
inline constexpr std::size_t value_bytes_max = 65'536;

struct Finding {
  Check check = Check::seq;
  std::int64_t seq = -1;  // -1: not tied to an event
  std::string run_id;
  std::string expected;
  std::string actual;
};

// Formats a column and its value for a finding: "status = open".
std::string shown(std::string_view column, const std::optional<std::string>& value);

// Location of the log in which a finding was made, for the suggested command.
struct LogPlace {
  std::string data;      // the data folder; empty: none was named
  std::string uri_file;  // file that names the database; empty: the command line named it
};

// Returns the meaning of the finding in one sentence for an operator, and the command to run next. `place` is nullptr
// if only a bundle or a proof is at hand: its holder has no log, and most findings then have no command.
std::string meaning_of(const Finding& finding);
std::string next_of(const Finding& finding, const LogPlace* place);

// Collects the findings of all threads: it counts every finding and keeps the first ones by seq.
class Findings {
 public:
  void add(Finding finding);
  void add_all(const Findings& others);
  // Adds the findings of `others` that concern none of `runs`. Returns the number of findings left out.
  std::size_t add_others_than_of(const std::set<std::string>& runs, const Findings& others);
  std::size_t count() const;
  std::vector<Finding> first() const;  // ordered by seq; those without a seq last

 private:
  struct Earlier {
    bool operator()(const Finding& a, const Finding& b) const;
  };
  mutable std::mutex mutex_;
  std::multiset<Finding, Earlier> kept_;
  std::size_t count_ = 0;
  std::map<std::string, std::size_t> count_of_;  // by run
};

}  // namespace muniment::verify
