// Determines at a start whether the log is intact, truncated, rewritten, or extended by events that this daemon did not
// write. The evidence is stored outside of the database: the last signed and the last written position.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "audit/keyring.hpp"
#include "audit/witness/submitter.hpp"
#include "base/result.hpp"
#include "store/append/appender.hpp"
#include "store/append/written_end.hpp"
#include "store/read/reader.hpp"

namespace muniment::daemon {

struct LogStart {
  bool clean = true;             // the previous daemon shut down cleanly, or there was none
  std::optional<Error> refused;  // set if appends have to be refused
  // Seq of the first event, after an unclean end, for which no evidence shows that the daemon wrote it; -1: none.
  std::int64_t adopted_from = -1;
  std::string_view known_by = "nothing";  // evidence for the events before it: record, signature or nothing
  std::int64_t own_size = 0;              // size of the confirmed log; followers of a refused log stop here
};

class KnownEnds {
 public:
  // `folder` holds the log's own files; `origin` is the setting. Errors: those of the keys.
  static Result<KnownEnds> read(const std::string& folder, std::string origin, const store::WrittenEnd& written);

  // Asks the keepers of checkpoints (the setting `witnesses`) for the newest that they hold. One that does not answer
  // is logged, and gets the next checkpoint.
  void ask(const std::vector<audit::Keeper>& keepers);

  // Sizes for AppenderOptions::roots_wanted.
  std::vector<std::int64_t> sizes() const;
  // `adopt_tail` is set if the operator has checked the foreign events and accepts them.
  Result<LogStart> judge(const store::Appender& appender, store::Reader& reader, bool adopt_tail) const;

 private:
  std::optional<Error> judge_signed(const store::Appender& appender) const;
  std::optional<Error> judge_held(const store::Appender& appender) const;
  std::optional<Error> judge_written(const store::Appender& appender) const;
  void credit(LogStart& start, const store::Appender& appender) const;
  Result<bool> was_stopped(const LogStart& start, std::int64_t size, store::Reader& reader) const;

  std::string origin_;
  std::vector<VerifierKey> keys_;
  std::optional<Checkpoint> signed_;
  std::vector<Checkpoint> held_;  // elsewhere
  bool signed_is_ours_ = false;
  bool can_sign_ = false;
  std::optional<store::WrittenEnd::Record> written_;
  bool record_lost_ = false;
};

// Commits log.started, which records the state in which the log was found, before any other event. Returns its seq.
Result<std::int64_t> announce_start(const LogStart& start, Clock& clock, store::Appender& appender,
                                    store::RunDirectory& runs);

struct OpenRuns {
  std::vector<std::string> run_ids;
};
// Returns the runs that had events during the previous daemon's life if it did not shut down cleanly, and the runs that
// it should have marked but did not. `start_seq` is the seq of this start's log.started.
Result<OpenRuns> interrupted_runs(const LogStart& start, std::int64_t start_seq, store::Reader& reader);
// Appends run.interrupted to the runs. `open` keeps those that did not fit into `at_most`; call again for them.
Status interrupt_runs(OpenRuns& open, std::chrono::milliseconds at_most, std::int64_t start_seq, store::Reader& reader,
                      Clock& clock, store::Appender& appender, store::RunDirectory& runs);

}  // namespace muniment::daemon
