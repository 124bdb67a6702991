// Checks the tables corpus, document, chunk and feedback, which the follower "document" maintains: rebuilds them from
// the events that the follower has processed and compares both ways. Rows are read in the order of their events, in
// parallel with the log; corpus_history.hpp holds the state in memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/json/json.hpp"
#include "base/result.hpp"
#include "verify/files/artifact_root.hpp"
#include "verify/finding.hpp"
#include "verify/log/scan.hpp"
#include "verify/postgres/postgres.hpp"
#include "verify/tables/corpus_history.hpp"
#include "verify/tables/run_text.hpp"

namespace muniment::verify {

struct CorpusCounts {
  std::int64_t revisions = 0, passages = 0, feedback = 0;
};

class CorpusTables {
 public:
  CorpusTables(const Log& log, const ArtifactRoot& root, Findings& findings)
      : log_(log), root_(root), findings_(findings) {}

  // Reads the position of the follower. Call it before the first event. A database older than corpora has no such
  // follower.
  Status open(Connection& connection);
  Status see(Connection& connection, const SeenEvent& event, const Telling& telling);  // call in the order of seq
  Status finish(Connection& connection);

  const CorpusCounts& counts() const { return counts_; }

 private:
  // A table read in the order of its events.
  struct Rows {
    std::optional<Cursor> cursor;
    Row row;
    bool there = false;
    std::int64_t seq() const { return row.integer(0); }
    Status advance();
  };
  struct Said {  // rating of a card
    std::int64_t seq = -1;
    std::string corpus, document, revision;
    std::int64_t wanted = -1, held = -1;  // chunk_id; -1: none
  };

  // Functions for the corpus `run`, in corpus_tables_runs.cpp.
  Status run_event(Connection& connection, const SeenEvent& event, const Telling& telling);
  void compare_run_event(const Telling& telling, const Revision& revision, const std::string& run_id,
                         const RunText& text);
  Status compare_run_chunks(Revision& revision, const RunText& text);

  Status revised(Connection& connection, const SeenEvent& event, const Telling& telling, const json::Value& body);
  void compare_document(const Telling& telling, const json::Value& body, const Revision& revision);
  Result<std::optional<std::string>> chunk_list(Connection& connection, const json::Value& body);
  Status compare_chunks(const Revision& revision, const json::Value& list);
  void compare_chunk(const Revision& revision, std::int64_t number, const json::Value& item);
  Status leave_chunks(Revision& revision);
  Status feedback(const SeenEvent& event, const Telling& telling, const json::Value& body);
  Status unexplained_before(std::int64_t seq);
  void compare_ends(const Revision& revision);
  void compare_feedback();
  Status compare_corpora(Connection& connection);
  void check(Check check, std::int64_t seq, const std::string& name, std::string_view column, const Text& wanted,
             const Text& held);
  void found(Check check, std::int64_t seq, std::string expected, std::string actual);

  const Log& log_;
  const ArtifactRoot& root_;
  Findings& findings_;
  std::int64_t next_seq_ = 0;  // position of the follower
  Rows documents_, chunks_, feedback_;
  CorpusHistory history_;
  std::unordered_map<std::int64_t, std::string> run_owners_;  // owners of indexed runs, by run_no
  std::vector<Said> said_;
  std::vector<std::int64_t> erased_feedback_;  // rows of events without a body
  std::int64_t next_chunk_ = 1;
  bool chunk_ids_known_ = true;  // false after a revision whose passages are unknown
  CorpusCounts counts_;
};

}  // namespace muniment::verify
