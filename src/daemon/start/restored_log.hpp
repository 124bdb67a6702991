// Handles a log that was restored from a backup, or is shorter than files outside of the database recorded: it can be
// read but accepts no appends, because the missing events are unknown and may have been signed. `munimentd
// --continue-restored` opens a new log beside it, whose first event, log.restored, names the old log and its end.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.hpp"
#include "base/config/config.hpp"
#include "base/result.hpp"
#include "store/append/appender.hpp"
#include "store/files/artifact_files.hpp"
#include "store/logs/earlier_logs.hpp"
#include "store/logs/restored.hpp"

namespace muniment::daemon {

// Refuses a folder whose restore did not finish. Errors: conflict.
Status check_restore_ended(const std::string& data);

// Updates the tables of a closed log to its end if they are behind, as older versions could leave them. No other
// follower may run at the same time, since they share their metrics. If the update fails for now, it is logged and left
// to the next start. `interrupt` is a file descriptor that becomes readable when the start has to end. Errors:
// unavailable, also if it was interrupted.
Status follow_closed_log(const store::EarlierLog& log, store::Reader& reader, store::ArtifactFiles& files,
                         int interrupt);

// Begins a new log: from now on <data>/log_no names it. Returns its number. Errors: conflict if the log has its full
// recorded length; those of taking the old log over; unavailable if it was interrupted, in which case nothing has
// changed.
Result<std::int16_t> begin_new_log(const Config& config, const std::string& uri, std::int16_t log_no,
                                   store::ArtifactFiles& files, int interrupt);

struct Refusal {
  Error why;
  bool readable = false;  // the log was restored, so that it is read, unless its start is refused for another reason
};

// For a log that was just taken over: returns the reason to refuse appends; nullopt: none.
Result<std::optional<Refusal>> reason_to_refuse(const std::string& data, std::int16_t log_no,
                                                const store::LogStatus& log);

// Appends the first event of a log that continues an older one, and removes the marks of the restore. Does nothing for
// a log that continues none or has events.
Status announce_new_log(const std::string& data, std::int16_t log_no, Clock& clock, store::Appender& appender,
                        store::RunDirectory& runs);

}  // namespace muniment::daemon
