// Recognizes a restored or truncated log, closes it, and begins a new one.
#include "daemon/start/restored_log.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "audit/tree_files.hpp"
#include "base/crypto/signed_note.hpp"
#include "base/files/file.hpp"
#include "base/json/json.hpp"
#include "base/limits.hpp"
#include "base/log.hpp"
#include "evidence/pointer_follower.hpp"
#include "retrieval/corpus/document_follower.hpp"
#include "store/append/own_event.hpp"
#include "store/logs/log_place.hpp"
#include "store/postgres/partitions.hpp"
#include "store/read/reader.hpp"
#include "store/tables/report_follower.hpp"
#include "store/tables/run_follower.hpp"

namespace muniment::daemon {
namespace {

constexpr std::chrono::seconds announce_at_most{30};
constexpr std::chrono::minutes follow_at_most{10};
// Waiting for a follower ends once it has reported a problem for this long.
constexpr std::chrono::seconds problem_at_most{5}, look_every{1};
constexpr std::size_t mark_bytes_max = 8'192;

// The length of the log according to files outside of its database.
struct Recorded {
  std::int64_t size = 0;
  std::string checkpoint;  // the newest note
};

Result<Recorded> recorded_of(const std::string& folder) {
  Recorded found;
  auto note = read_file(folder + "/keys/last_signed", limits::note_bytes_max);
  if (!note && note.error().code != Errc::not_found) return std::move(note).error();
  if (note) {
    const auto parsed = Note::parse(*note);
    const auto checkpoint = parsed ? Checkpoint::parse(parsed->text) : Result<Checkpoint>(parsed.error());
    if (checkpoint) found = {checkpoint->size, *note};
  }
  found.size = std::max(found.size, audit::recorded_size(folder + "/tiles"));
  return found;
}

constexpr std::array<std::string_view, 4> names_of_followers = {"run", "report", "pointer", "document"};

bool is_readable(int fd) {
  pollfd one{fd, POLLIN, 0};
  return ::poll(&one, 1, 0) > 0;
}

bool wait_for_end(store::Follower& follower, std::int64_t size, std::chrono::steady_clock::time_point begun,
                  int interrupt) {
  while (true) {
    const auto now = std::chrono::steady_clock::now();
    if (follower.wait_for(size, now + look_every)) return true;
    if (is_readable(interrupt)) return false;
    if (now > begun + follow_at_most || (now > begun + problem_at_most && !follower.problem().empty())) return false;
  }
}

// Updates the tables of a closed log to its end, because no follower runs for it. Errors: unavailable if the update was
// interrupted; the next start continues it.
Status follow_to_end(const store::LogPlace& place, std::int64_t size, store::Tail& tail, store::ArtifactFiles& files,
                     int interrupt) {
  const store::Follower::Options options{place, std::chrono::milliseconds(1)};
  store::RunFollower runs(options, tail);
  store::ReportFollower report(options, tail);
  evidence::PointerFollower pointers(options, tail);
  retrieval::DocumentFollower documents(options, tail, files);
  const std::array<store::Follower*, 4> followers = {&runs, &report, &pointers, &documents};
  for (store::Follower* const follower : followers) follower->start();
  const auto begun = std::chrono::steady_clock::now();
  bool interrupted = false;
  for (store::Follower* const follower : followers) {
    if (interrupted || wait_for_end(*follower, size, begun, interrupt)) continue;
    interrupted = is_readable(interrupt);
    if (interrupted) continue;
    log_warning("a table does not include all events of the restored log",
                {{"log_no", place.log_no}, {"error", follower->problem()}});
  }
  tail.close();
  for (store::Follower* const follower : followers) follower->stop();
  if (interrupted)
    return Error(Errc::unavailable,
                 fmt::format("updating the tables of log {} to its end was interrupted", place.log_no));
  return success();
}

// Takes the log over again, which fences its last writer and checks its end against the hashes.
Result<store::LogStatus> end_of_log(const store::LogPlace& place, store::ArtifactFiles& files, int interrupt) {
  Clock clock;
  store::Tail tail;
  store::RunDirectory runs;
  store::AppenderOptions options;
  options.uri = place.uri;
  options.log_no = place.log_no;
  ASSIGN_OR_RETURN(const auto appender, store::Appender::open(std::move(options), clock, tail, runs));
  store::LogStatus status = appender->status();
  const Status followed = follow_to_end(place, status.size, tail, files, interrupt);
  appender->stop();
  if (!followed) return followed.error();
  return status;
}

std::string announcement(const store::Restored& old) {
  json::Writer out;
  out.begin_object().member("size", old.size);
  if (!old.root.empty()) out.member("root", old.root);
  out.member("log_no", int{old.log_no}).member("log_id", old.log_id.text());
  if (old.known_size > 0) out.member("known_size", old.known_size);
  if (!old.checkpoint.empty()) out.member("checkpoint", old.checkpoint);
  if (!old.from.empty()) out.member("from", old.from);
  if (!old.made_at.empty()) out.member("made_at", old.made_at);
  out.member("by", fmt::format("uid:{}", ::geteuid()));
  return std::move(out.end_object()).text();
}

Error not_described(const std::string& data, const store::Restored& restored, const store::LogStatus& log) {
  return {
      Errc::system_error,
      fmt::format("log_rolled_back: {}/restored.json describes log {} of {} events, but this is log {} of {} events, "
                  "or it has another root. Restore the backup again. See docs/runbook.md#backup",
                  data, restored.log_id.text(), restored.size, log.log_id.text(), log.size)};
}

}  // namespace

Status follow_closed_log(const store::EarlierLog& log, store::Reader& reader, store::ArtifactFiles& files,
                         int interrupt) {
  ASSIGN_OR_RETURN(const auto positions, reader.of(log.place).follower_positions());
  const bool followed = std::ranges::all_of(names_of_followers, [&](std::string_view name) {
    return std::ranges::any_of(
        positions, [&](const auto& position) { return position.first == name && position.second >= log.size; });
  });
  if (followed) return success();
  log_warning("the tables of a closed log are brought to its end", {{"log_no", log.place.log_no}, {"size", log.size}});
  store::Tail tail;
  tail.start_at(log.size);
  return follow_to_end(log.place, log.size, tail, files, interrupt);
}

Status check_restore_ended(const std::string& data) {
  const auto mark = read_file(store::restoring_mark(data), mark_bytes_max);
  if (!mark && mark.error().code == Errc::not_found) return success();
  return Error(
      Errc::conflict,
      fmt::format("a restore into {} did not finish, or its verification failed. Empty the folder and restore again. "
                  "See docs/runbook.md#backup",
                  data));
}

Result<std::int16_t> begin_new_log(const Config& config, const std::string& uri, std::int16_t log_no,
                                   store::ArtifactFiles& files, int interrupt) {
  ASSIGN_OR_RETURN(auto restored, store::read_restored(config.data));
  if (restored && restored->log_no != log_no) return log_no;  // an earlier start made the decision
  ASSIGN_OR_RETURN(const Recorded recorded, recorded_of(store::log_folder(config.data, log_no)));
  ASSIGN_OR_RETURN(const store::LogStatus old,
                   end_of_log({uri, log_no, store::log_folder(config.data, log_no) + "/archive"}, files, interrupt));
  if (!restored && recorded.size <= old.size) {
    return Error(
        Errc::conflict,
        fmt::format("log {} has {} events, and no record shows that it had more: there is nothing to continue. Start "
                    "without --continue-restored",
                    log_no, old.size));
  }
  store::Restored mark = restored.value_or(store::Restored{});
  mark.log_no = log_no;
  mark.log_id = old.log_id;
  mark.size = old.size;
  mark.root = to_hex(old.root);
  if (recorded.size > mark.known_size) mark.known_size = recorded.size;
  if (mark.checkpoint.empty()) mark.checkpoint = recorded.checkpoint;
  RETURN_IF_ERROR(store::write_restored(config.data, mark));

  store::Connection connection(uri, store::DatabaseRole::writer);
  ASSIGN_OR_RETURN(const auto newest, store::newest_log(connection));
  // An earlier attempt created it, and it has no events.
  const bool begun = newest.first > log_no && !newest.second;
  const auto next = static_cast<std::int16_t>(begun ? newest.first : newest.first + 1);
  RETURN_IF_ERROR(store::ensure_partitions(connection, next, 0, config.partition_bits));
  RETURN_IF_ERROR(write_file_durably(config.data + "/log_no", fmt::format("{}\n", next)));
  log_warning("a new log continues a restored one", {{"log_no", next}, {"old_log_no", log_no}, {"old_size", old.size}});
  return next;
}

Result<std::optional<Refusal>> reason_to_refuse(const std::string& data, std::int16_t log_no,
                                                const store::LogStatus& log) {
  constexpr std::string_view next =
      "It accepts no appends but can be read; muniment up --continue-restored opens a new log. See docs/runbook.md#backup";
  ASSIGN_OR_RETURN(const auto restored, store::read_restored(data));
  if (restored && restored->log_no == log_no) {
    // The owner of the folder can write the file, so it permits to read only the log that it describes.
    const bool other = restored->log_id != log.log_id || restored->size != log.size ||
                       (!restored->root.empty() && restored->root != to_hex(log.root));
    if (other) return std::optional(Refusal{not_described(data, *restored, log)});
    const std::string missing = restored->known_size > log.size
                                    ? fmt::format("{} events are missing", restored->known_size - log.size)
                                    : std::string("it lacks what was recorded after that");
    return std::optional(
        Refusal{Error(Errc::system_error,
                      fmt::format("log_restored: this log of {} events was restored from {}, made at {}: {}. {}",
                                  log.size, restored->from, restored->made_at, missing, next)),
                true});
  }
  const std::int64_t tiles = audit::recorded_size(store::log_folder(data, log_no) + "/tiles");
  if (tiles <= log.size) return std::optional<Refusal>();
  return std::optional(
      Refusal{Error(Errc::system_error,
                    fmt::format("log_rolled_back: the log has {} events, its tiles have {}: {} events are missing. {}",
                                log.size, tiles, tiles - log.size, next))});
}

Status announce_new_log(const std::string& data, std::int16_t log_no, Clock& clock, store::Appender& appender,
                        store::RunDirectory& runs) {
  ASSIGN_OR_RETURN(const auto restored, store::read_restored(data));
  if (!restored || restored->log_no == log_no) return success();
  if (appender.status().size == 0) {
    store::AppendRequest request = store::own_request(runs, "log.restored", announcement(*restored), clock.now());
    ASSIGN_OR_RETURN(const auto receipts, store::append_and_wait(appender, std::move(request), announce_at_most));
  }
  return store::remove_restored(data);
}

}  // namespace muniment::daemon
