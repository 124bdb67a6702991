// A log that was brought back from a backup, or is shorter than what was recorded outside the database: it is read, and
// appended to no more, since what came after is not known and was perhaps signed. `munimentd --continue-restored` opens
// a new log beside it, whose first event, log.restored, names the old one and its end.
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

// A folder that a restore did not finish is not served. Errors: conflict.
Status check_restore_ended(const std::string& data);

// Brings the tables of a log that was closed to its end, where they are not there: one that older versions closed may
// have been left before. To be called while no other follower runs, since they share their metrics. What cannot be done
// now is left to the next start, and is in the program's log. `interrupt`: a file descriptor that becomes readable when
// the start is to end. Errors: unavailable, also when it was interrupted.
Status follow_closed_log(const store::EarlierLog& log, store::Reader& reader, store::ArtifactFiles& files,
                         int interrupt);

// Decides for a new log: from now on <data>/log_no names it. Answers its number. Errors: conflict when the log is as
// long as anything says that it was; those of taking the old log over; unavailable when it was interrupted, and nothing
// is decided then.
Result<std::int16_t> begin_new_log(const Config& config, const std::string& uri, std::int16_t log_no,
                                   store::ArtifactFiles& files, int interrupt);

// For a log that was just taken over: why nothing may be appended to it; nullopt: it may.
Result<std::optional<Error>> reason_to_refuse(const std::string& data, std::int16_t log_no,
                                              const store::LogStatus& log);

// The first event of a log that goes on from another; then the folder is an ordinary one again. Does nothing to a log
// that does not, or has begun.
Status announce_new_log(const std::string& data, std::int16_t log_no, Clock& clock, store::Appender& appender,
                        store::RunDirectory& runs);

}  // namespace muniment::daemon
