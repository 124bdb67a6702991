// Compares the log at a start with the recorded and the signed end, and records the result.
#include "daemon/start/log_start.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "audit/witness/held_checkpoint.hpp"
#include "base/json/json.hpp"
#include "base/log.hpp"
#include "base/process/failpoint.hpp"
#include "store/append/own_event.hpp"

namespace muniment::daemon {
namespace {

using std::chrono::milliseconds;
using store::LogEnd;

constexpr milliseconds append_at_most{30'000};
constexpr std::size_t runs_per_append = 512;
constexpr std::size_t starts_looked_at_max = 1000;
constexpr std::string_view nothing = "nothing";
constexpr std::string_view next = "Appends are refused. Run muniment-verify, and see docs/runbook.md";

Error rolled_back(std::int64_t size, std::int64_t was, std::string_view how) {
  return {Errc::system_error,
          fmt::format("log_rolled_back: the log has {} events, {} were {}. {}#log_rolled_back", size, was, how, next)};
}

Error rewritten(std::int64_t size, std::string_view how) {
  return {Errc::system_error,
          fmt::format("log_rolled_back: the first {} events are not those that were {}. {}#log_rolled_back", size, how,
                      next)};
}

Error foreign_tail(std::int64_t size, std::int64_t own_size) {
  return {
      Errc::system_error,
      fmt::format(
          "log_foreign_tail: the log has {} events more than the {} at which this daemon ended, and the daemon did not write them. "
          "{}#log_foreign_tail",
          size - own_size, own_size, next)};
}

Error no_trace(std::int64_t size, std::int64_t own_size) {
  return {
      Errc::system_error,
      fmt::format(
          "log_foreign_tail: the log has {} events, and nothing shows that this daemon wrote those from {} on: its key exists, but the record of what "
          "it wrote or signed last (keys/last_written, keys/last_signed) is missing. {}#log_foreign_tail",
          size, own_size, next)};
}

bool found_unclean_end(const events::Event& started) {
  const auto body =
      started.body ? json::parse(*started.body) : Result<json::Document>(Error(Errc::not_found, "erased"));
  return body && !body->root()["clean"].as_bool().value_or(true);
}

// Returns whether the event is the last one of an orderly stop.
Result<bool> is_stop(store::Reader& reader, std::int64_t seq) {
  store::EventFilter filter;
  filter.run_no = 0;
  filter.from_seq = seq;
  filter.to_seq = seq;
  ASSIGN_OR_RETURN(const auto events, reader.events(filter, 1));
  return !events.empty() && events.front().type == "log.stopped";
}

}  // namespace

Result<KnownEnds> KnownEnds::read(const std::string& folder, std::string origin, const store::WrittenEnd& written) {
  ASSIGN_OR_RETURN(const audit::Keyring keys, audit::Keyring::open(folder + "/keys"));
  KnownEnds known;
  known.origin_ = std::move(origin);
  known.keys_ = keys.verifiers();
  if (keys.last_signed()) known.signed_ = keys.last_signed()->checkpoint;
  known.signed_is_ours_ = keys.signed_last();
  known.can_sign_ = keys.can_sign();
  known.written_ = written.found();
  known.record_lost_ = written.lost();
  return known;
}

void KnownEnds::ask(const std::vector<audit::Keeper>& keepers) {
  for (const audit::Keeper& keeper : keepers) {
    auto held = audit::held_checkpoint(keeper, keys_);
    if (!held) {
      log_warning("a keeper of checkpoints does not answer: whether the log was rolled back is not known from it",
                  {{"keeper", keeper.shown()}, {"error", held.error().message}});
    } else if (*held) {
      held_.push_back(**std::move(held));
    }
  }
}

std::vector<std::int64_t> KnownEnds::sizes() const {
  std::vector<std::int64_t> sizes;
  if (signed_) sizes.push_back(signed_->size);
  for (const Checkpoint& held : held_) sizes.push_back(held.size);
  if (written_) sizes.insert(sizes.end(), {written_->committed.size, written_->intended.size});
  return sizes;
}

std::optional<Error> KnownEnds::judge_signed(const store::Appender& appender) const {
  const store::LogStatus log = appender.status();
  if (!signed_) return std::nullopt;
  if (signed_->size > log.size) return rolled_back(log.size, signed_->size, "signed");
  const bool same =
      appender.root_at_start(signed_->size) == signed_->root && signed_->origin == origin_ + "/" + log.log_id.text();
  return same ? std::nullopt : std::optional(rewritten(signed_->size, "signed"));
}

// A copy of everything that is older differs only from what is held elsewhere.
std::optional<Error> KnownEnds::judge_held(const store::Appender& appender) const {
  const std::int64_t size = appender.status().size;
  for (const Checkpoint& held : held_) {
    if (held.size > size) return rolled_back(size, held.size, "witnessed");
    if (appender.root_at_start(held.size) != held.root) return rewritten(held.size, "witnessed");
  }
  return std::nullopt;
}

std::optional<Error> KnownEnds::judge_written(const store::Appender& appender) const {
  const store::LogStatus log = appender.status();
  if (!written_) return std::nullopt;
  const LogEnd& last = written_->committed;
  if (last.size > log.size) return rolled_back(log.size, last.size, "written");
  if (written_->log_id != log.log_id || appender.root_at_start(last.size) != last.root)
    return rewritten(last.size, "written");
  return std::nullopt;
}

// Returns whether the previous daemon shut down cleanly, by its record or by its last event. If a start has failed
// since, it began a new record, whose newer position may be lost. A record that is older than the signature is not
// used.
Result<bool> KnownEnds::was_stopped(const LogStart& start, std::int64_t size, store::Reader& reader) const {
  if (written_ && start.known_by != "signature" && written_->stopped) return true;
  if (start.own_size > 0) return is_stop(reader, start.own_size - 1);
  return is_stop(reader, size - 1);  // only the log shows whether the stop was orderly
}

// Sets the part of the log that the signature or the record confirms.
void KnownEnds::credit(LogStart& start, const store::Appender& appender) const {
  const auto holds = [&](const LogEnd& end) { return appender.root_at_start(end.size) == end.root; };
  if (signed_ && signed_is_ours_ && holds({signed_->size, signed_->root})) {
    start.own_size = signed_->size;
    start.known_by = "signature";
  }
  if (!written_ || written_->log_id != appender.status().log_id) return;
  for (const LogEnd& end : {written_->committed, written_->intended}) {
    if (end.size < start.own_size || !holds(end)) continue;
    start.own_size = end.size;
    start.known_by = "record";
  }
}

Result<LogStart> KnownEnds::judge(const store::Appender& appender, store::Reader& reader, bool adopt_tail) const {
  LogStart start;
  const std::int64_t size = appender.status().size;
  credit(start, appender);
  start.refused = judge_signed(appender);
  if (!start.refused) start.refused = judge_written(appender);
  if (!start.refused) start.refused = judge_held(appender);
  if (start.refused || size == 0) return start;
  ASSIGN_OR_RETURN(start.clean, was_stopped(start, size, reader));
  if (start.own_size == size) return start;
  start.adopted_from = start.own_size;
  if (adopt_tail) return start;
  if (record_lost_ || (start.known_by == nothing && can_sign_))
    start.refused = no_trace(size, start.own_size);
  else if (start.known_by != nothing && (start.clean || (written_ && written_->exact)))
    start.refused = foreign_tail(size, start.own_size);
  return start;
}

Result<std::int64_t> announce_start(const LogStart& start, Clock& clock, store::Appender& appender,
                                    store::RunDirectory& runs) {
  const store::LogStatus log = appender.status();
  json::Writer body;
  body.begin_object()
      .member("version", MUNIMENT_VERSION)
      .member("epoch", log.epoch)
      .member("log_id", log.log_id.text())
      .member("pid", static_cast<std::int64_t>(::getpid()));
  if (!start.clean) body.member("clean", false);
  if (start.adopted_from >= 0) {
    body.key("adopted")
        .begin_object()
        .member("from_seq", start.adopted_from)
        .member("to_seq", log.size - 1)
        .member("known_by", start.known_by)
        .end_object();
    log_warning("adopted events without evidence outside the database",
                {{"from_seq", std::to_string(start.adopted_from)}, {"to_seq", std::to_string(log.size - 1)}});
  }
  ASSIGN_OR_RETURN(
      const auto receipts,
      store::append_and_wait(appender,
                             store::own_request(runs, "log.started", std::move(body.end_object()).text(), clock.now()),
                             append_at_most));
  return receipts.front().seq;
}

Result<OpenRuns> interrupted_runs(const LogStart& start, std::int64_t start_seq, store::Reader& reader) {
  store::EventFilter starts;
  starts.run_no = 0;
  starts.types = {"log.started"};
  starts.to_seq = start_seq - 1;
  starts.newest_first = true;
  ASSIGN_OR_RETURN(const auto before, reader.events(starts, starts_looked_at_max));
  const auto began = std::ranges::find_if_not(before, found_unclean_end);
  const std::int64_t from = began != before.end() ? began->seq : before.empty() ? 0 : before.back().seq;
  const std::int64_t end = !start.clean || before.empty() ? start_seq : before.front().seq;
  OpenRuns open;
  ASSIGN_OR_RETURN(open.run_ids, reader.runs_last_active(from, end));
  return open;
}

Status interrupt_runs(OpenRuns& open, milliseconds at_most, std::int64_t start_seq, store::Reader& reader, Clock& clock,
                      store::Appender& appender, store::RunDirectory& runs) {
  const Deadline deadline = std::chrono::steady_clock::now() + at_most;
  const std::string body = json::Writer().begin_object().member("log_seq", start_seq).end_object().text();
  FAILPOINT("start.interrupts");
  while (!open.run_ids.empty() && std::chrono::steady_clock::now() < deadline) {
    store::AppendRequest request;
    request.actor = events::daemon_actor;
    while (!open.run_ids.empty() && request.events.size() < runs_per_append &&
           std::chrono::steady_clock::now() < deadline) {
      const std::string run_id = std::move(open.run_ids.back());
      open.run_ids.pop_back();
      ASSIGN_OR_RETURN(const auto run, runs.find_or_load(run_id, [&] { return reader.load_run(run_id); }));
      if (run) request.events.push_back({run, store::own_event("run.interrupted", body, clock.now()), true});
    }
    if (request.events.empty()) continue;
    const auto appended = store::append_and_wait(appender, std::move(request), append_at_most);
    if (!appended) return appended.error();
  }
  return success();
}

}  // namespace muniment::daemon
