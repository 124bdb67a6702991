// How a start finds its log: as it was left, cut, written anew, or with events at its end that this daemon did not
// write. What is known of the end lies outside the database: what was signed last, and what was written last.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "audit/keyring.hpp"
#include "base/result.hpp"
#include "store/append/appender.hpp"
#include "store/append/written_end.hpp"
#include "store/read/reader.hpp"

namespace muniment::daemon {

struct LogStart {
  bool clean = true;             // the daemon before stopped in order, or there was none
  std::optional<Error> refused;  // nothing may be appended
  // The events from this one on were found after an unclean end, and nothing outside the database shows that the daemon
  // wrote them; -1: there are none.
  std::int64_t adopted_from = -1;
  std::string_view known_by = "nothing";  // what shows it of the events before: a record, a signature, or nothing
  std::int64_t own_size = 0;  // the events before: what is behind them is not followed where the log is refused
};

class KnownEnds {
 public:
  // `folder`: of the log's own files. `origin`: the setting. Errors: those of the keys.
  static Result<KnownEnds> read(const std::string& folder, std::string origin, const store::WrittenEnd& written);

  // For AppenderOptions::roots_wanted.
  std::vector<std::int64_t> sizes() const;
  // `adopt_tail`: the operator has looked at what would be refused as foreign, and takes it in.
  Result<LogStart> judge(const store::Appender& appender, store::Reader& reader, bool adopt_tail) const;

 private:
  std::optional<Error> judge_signed(const store::Appender& appender) const;
  std::optional<Error> judge_written(const store::Appender& appender) const;
  void credit(LogStart& start, const store::Appender& appender) const;
  Result<bool> was_stopped(const LogStart& start, std::int64_t size, store::Reader& reader) const;

  std::string origin_;
  std::optional<Checkpoint> signed_;
  bool signed_is_ours_ = false;
  bool can_sign_ = false;
  std::optional<store::WrittenEnd::Record> written_;
  bool record_lost_ = false;
};

// The event log.started, committed before anything else is: it says how the log was found. Its seq.
Result<std::int64_t> announce_start(const LogStart& start, Clock& clock, store::Appender& appender,
                                    store::RunDirectory& runs);

struct OpenRuns {
  std::vector<std::string> run_ids;
};
// Those in which something happened while the daemon before lived, where it did not stop in order; and those that it
// had found itself, and had not come to tell. `start_seq`: of this start's log.started.
Result<OpenRuns> interrupted_runs(const LogStart& start, std::int64_t start_seq, store::Reader& reader);
// Their run.interrupted. `open` keeps the runs for which `at_most` did not suffice: call it again.
Status interrupt_runs(OpenRuns& open, std::chrono::milliseconds at_most, std::int64_t start_seq, store::Reader& reader,
                      Clock& clock, store::Appender& appender, store::RunDirectory& runs);

}  // namespace muniment::daemon
