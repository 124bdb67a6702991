// What the verifier looks for, by name, and what it found.
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

// In the order in which a cause comes before its consequences: of two findings at one seq the
// first is named.
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
  search_index,
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

// No value of any column is larger.
inline constexpr std::size_t value_bytes_max = 65'536;

struct Finding {
  Check check = Check::seq;
  std::int64_t seq = -1;  // -1: not tied to an event
  std::string run_id;
  std::string expected;
  std::string actual;
};

// "status = open": how a column's value stands in a finding.
std::string shown(std::string_view column, const std::optional<std::string>& value);

// Where the log lies in which something was found, for the command to run next.
struct LogPlace {
  std::string data;      // the data folder; empty: none was named
  std::string uri_file;  // that names the database; empty: the command line did
  std::string indexes;   // the folder of the search indexes
};

// What the finding means, in a sentence for someone who must act on it, and the command to run next; nullptr: there is
// but a bundle or a proof, whose holder has no log to look at, and mostly no command.
std::string meaning_of(const Finding& finding);
std::string next_of(const Finding& finding, const LogPlace* place);

// Findings of all threads: every one is counted, the first by seq are kept.
class Findings {
 public:
  void add(Finding finding);
  void add_all(const Findings& others);
  // Those of `others` that are of none of these runs. Answers how many were left out.
  std::size_t add_others_than_of(const std::set<std::string>& runs, const Findings& others);
  std::size_t count() const;
  std::vector<Finding> first() const;  // in the order of seq, those without a seq last

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
