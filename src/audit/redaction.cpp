// Carries out erasures, and resumes them after a crash.
#include "audit/redaction.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

#include "audit/redaction_journal.hpp"
#include "base/files/file.hpp"
#include "base/log.hpp"
#include "base/process/failpoint.hpp"
#include "evidence/halt_journal.hpp"

namespace muniment::audit {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t events_per_append = 256;
constexpr std::chrono::seconds commit_wait{60};
constexpr std::chrono::seconds followers_wait{20};
constexpr std::chrono::seconds snapshot_wait{60};
constexpr std::chrono::seconds vacuum_limit{10};  // per table
constexpr milliseconds followers_pause{10};
constexpr int row_turns_max = 100;
// Followers whose tables copy the content of events.
constexpr std::string_view followers[] = {"run", "pointer", "document", "report"};

}  // namespace

class Redactor::Impl {
 public:
  Impl(RedactionOptions options, Clock& clock, store::Appender& appender, store::RunDirectory& runs, store::Tail& tail,
       store::ArtifactFiles& files, store::BodyArchive& archive, snapshot::Snapshotter& snapshots)
      : options_(std::move(options)),
        clock_(clock),
        appender_(appender),
        runs_(runs),
        tail_(tail),
        files_(files),
        archive_(archive),
        snapshots_(snapshots),
        redactor_(options_.place.uri, store::DatabaseRole::redactor, options_.place.connections),
        owner_(options_.place.uri, store::DatabaseRole::login, options_.place.connections) {}

  // A log that accepts no events cannot announce an erasure. Pending erasures wait while the daemon serves reads.
  Status finish_pending(store::Reader& reader) {
    if (const store::LogStatus log = appender_.status(); !log.refused.empty()) return note_waiting();
    for (;;) {
      ASSIGN_OR_RETURN(std::vector<RedactionJournal> journals, pending());
      if (journals.empty()) return success();
      const Uuid request = journals.front().request;
      std::erase_if(journals, [&](const RedactionJournal& journal) { return journal.request != request; });
      std::stable_partition(journals.begin(), journals.end(),
                            [](const RedactionJournal& journal) { return journal.id != journal.request; });
      RETURN_IF_ERROR(finish(reader, std::move(journals)));
    }
  }

  Result<store::ErasurePlan> plan(store::Reader& reader, const store::ErasureTarget& target) {
    ASSIGN_OR_RETURN(store::ErasurePlan plan, store::plan_erasure(reader, options_.place.log_no, target));
    ASSIGN_OR_RETURN(const auto keep,
                     store::reason_to_keep(reader, options_.place.log_no, plan.run_no, plan.run_id, clock_.now()));
    if (!keep) return plan;
    Error error(Errc::conflict, *keep + ". Nothing was erased.");
    error.run_id = plan.run_id;
    return error;
  }

  Result<Redacted> redact(store::Reader& reader, const RedactionRequest& request, Deadline deadline) {
    const std::lock_guard one_at_a_time(mutex_);
    RETURN_IF_ERROR(check_log_takes_it());
    RETURN_IF_ERROR(finish_pending(reader));
    ASSIGN_OR_RETURN(const store::ErasurePlan first, plan(reader, request.target));
    RETURN_IF_ERROR(await_followers(reader));
    Redacted done;
    ASSIGN_OR_RETURN(auto hold, hold_of(first.run_no, first.run_id, deadline));
    ASSIGN_OR_RETURN(auto closed, appender_.erasure_gate().close(tail_, deadline, "erased"));
    RETURN_IF_ERROR(await_followers(reader));
    ASSIGN_OR_RETURN(done.plan,
                     plan(reader,
                          request.target));  // checked again: from here on, no new reference or snapshot can appear
    const std::vector<RedactionJournal> journals = journals_of(done.plan, request);
    FAILPOINT("redact.before_journal");
    if (request.begin) RETURN_IF_ERROR(request.begin());
    RETURN_IF_ERROR(write_journals(journals));
    FAILPOINT("redact.after_journal");
    const Status carried_out = carry_out(reader, journals, std::move(hold), std::move(closed), &done);
    if (carried_out) return done;
    Error error = carried_out.error();
    error.message =
        "the erasure was begun and continues at the next audit.redact or start, unless its run is put under a legal hold before the log "
        "announces it: " +
        error.message;
    error.run_id = done.plan.run_id;
    error.outcome = "unknown";
    return error;
  }

  Status make_folder() {
    if (::mkdir(options_.folder.c_str(), 0700) == 0 || errno == EEXIST) return success();
    return file_error("making", options_.folder, errno);
  }

  const RedactionOptions options_;

 private:
  using Closed = store::ErasureGate::Closed;

  // Called before the erasure begins, because a log that accepts no events (after a restore, for example) cannot
  // announce it.
  Status check_log_takes_it() {
    const store::LogStatus log = appender_.status();
    if (!log.refused.empty()) return Error(Errc::system_error, log.refused + ". Nothing was begun.");
    if (!log.away.empty())
      return Error(Errc::unavailable,
                   log.away + "; nothing was begun. Retry when muniment status reports it as resolved");
    return success();
  }

  Status note_waiting() {
    ASSIGN_OR_RETURN(const std::vector<RedactionJournal> journals, pending());
    for (const RedactionJournal& journal : journals) {
      log_warning("a requested erasure waits: the log accepts no events",
                  {{"run_id", journal.run_id}, {"id", journal.id.text()}});
    }
    return success();
  }

  Result<bool> is_announced(store::Reader& reader, const RedactionJournal& journal) {
    for (const RedactionJournal::Announcement& announcement : journal.announcements()) {
      ASSIGN_OR_RETURN(const auto there, reader.event_by_id(journal.run_no, announcement.event_id));
      if (there) return true;
    }
    return false;
  }

  // Drops an erasure that the log has not announced if its run is under a legal hold by now.
  Result<bool> drop_if_held(store::Reader& reader, const std::vector<RedactionJournal>& journals) {
    std::optional<std::string> keep;
    for (const RedactionJournal& journal : journals) {
      ASSIGN_OR_RETURN(const bool announced, is_announced(reader, journal));
      if (announced) return false;
      if (keep) continue;
      ASSIGN_OR_RETURN(
          keep, store::reason_to_keep(reader, options_.place.log_no, journal.run_no, journal.run_id, clock_.now()));
    }
    if (!keep) return false;
    log_warning("a requested erasure was dropped",
                {{"run_id", journals.back().run_id}, {"id", journals.back().id.text()}, {"reason", *keep}});
    RETURN_IF_ERROR(remove_files(journals));
    return true;
  }

  Status remove_files(const std::vector<RedactionJournal>& journals) {
    for (const RedactionJournal& journal : journals) {
      const std::string file = journal.file(options_.folder);
      if (::unlink(file.c_str()) != 0 && errno != ENOENT) return file_error("removing", file, errno);
    }
    return success();
  }

  RedactionJournal journal_of(const store::ErasurePlan& plan, const RedactionRequest& request) {
    RedactionJournal journal;
    journal.id = make_uuid_v7(clock_.now());
    journal.request = journal.id;
    journal.run_no = plan.run_no;
    journal.run_id = plan.run_id;
    journal.seqs = plan.seqs;
    journal.artifacts = plan.artifacts;
    journal.reason = request.reason;
    journal.legal_basis = request.legal_basis;
    journal.by = request.by;
    return journal;
  }

  // The journals of corpus copies come first; if carrying out is interrupted, the named content remains and is found
  // again.
  std::vector<RedactionJournal> journals_of(const store::ErasurePlan& plan, const RedactionRequest& request) {
    const RedactionJournal named = journal_of(plan, request);
    std::vector<RedactionJournal> journals;
    for (const store::ErasurePlan& other : plan.elsewhere) {
      journals.push_back(journal_of(other, request));
      journals.back().request = named.id;
    }
    journals.push_back(named);
    return journals;
  }

  // Writes the journal of the named content first: a start that finds only that one finds the corpus copies again.
  Status write_journals(const std::vector<RedactionJournal>& journals) {
    Status written = success();
    for (auto journal = journals.rbegin(); journal != journals.rend() && written; ++journal)
      written = write_file_durably(journal->file(options_.folder), journal->text());
    if (!written) remove_files(journals).ok();
    return written;
  }

  Result<std::vector<RedactionJournal>> pending() {
    RETURN_IF_ERROR(make_folder());
    return read_redaction_journals(options_.folder);
  }

  Result<std::unique_ptr<snapshot::Hold>> hold_of(std::int64_t run_no, const std::string& run_id, Deadline deadline) {
    if (run_no == 0) return std::unique_ptr<snapshot::Hold>();  // _log has no state
    return snapshots_.hold(run_no, run_id, deadline);
  }

  // Completes the pending erasures of earlier requests.
  Status finish(store::Reader& reader, std::vector<RedactionJournal> journals) {
    RETURN_IF_ERROR(await_followers(reader));
    const RedactionJournal named = journals.back();
    const Deadline until = std::chrono::steady_clock::now() + snapshot_wait;
    ASSIGN_OR_RETURN(auto hold, hold_of(named.run_no, named.run_id, until));
    ASSIGN_OR_RETURN(auto closed, appender_.erasure_gate().close(tail_, until, "erased"));
    RETURN_IF_ERROR(await_followers(reader));
    ASSIGN_OR_RETURN(const bool dropped, drop_if_held(reader, journals));
    if (dropped) return success();
    log_warning("resuming an erasure", {{"run_id", named.run_id}, {"id", named.id.text()}});
    RETURN_IF_ERROR(add_what_came_since(reader, journals));
    return carry_out(reader, journals, std::move(hold), std::move(closed), nullptr);
  }

  // Adds copies that were made since the plan, before copying was blocked: large states, previews, and documents made
  // of its artifacts. They get journals of their own.
  Status add_what_came_since(store::Reader& reader, std::vector<RedactionJournal>& journals) {
    std::set<std::int64_t> known;
    for (const RedactionJournal& journal : journals) known.insert(journal.seqs.begin(), journal.seqs.end());
    const RedactionJournal named = journals.back();
    RedactionRequest request;
    request.reason = named.reason;
    request.legal_basis = named.legal_basis;
    request.by = named.by;
    const auto add = [&](store::ErasurePlan plan) -> Status {
      std::erase_if(plan.seqs, [&](std::int64_t seq) { return !known.insert(seq).second; });
      if (plan.seqs.empty()) return success();
      RedactionJournal journal = journal_of(plan, request);
      journal.request = named.request;
      RETURN_IF_ERROR(write_journals({journal}));
      journals.insert(journals.begin(), std::move(journal));
      return success();
    };
    for (const RedactionJournal& journal : std::vector<RedactionJournal>(journals)) {
      store::ErasurePlan before;
      before.run_no = journal.run_no;
      before.run_id = journal.run_id;
      before.seqs = journal.seqs;
      before.artifacts = journal.artifacts;
      ASSIGN_OR_RETURN(store::ErasurePlan plan, store::plan_erasure_again(reader, options_.place.log_no, before));
      std::erase_if(plan.artifacts, [&](const store::ErasedArtifact& artifact) { return names(journals, artifact); });
      for (store::ErasurePlan& other : plan.elsewhere) RETURN_IF_ERROR(add(std::move(other)));
      RETURN_IF_ERROR(add(std::move(plan)));
    }
    return success();
  }

  static bool names(const std::vector<RedactionJournal>& journals, const store::ErasedArtifact& artifact) {
    return std::ranges::any_of(journals, [&](const RedactionJournal& journal) {
      return std::ranges::any_of(journal.artifacts, [&](const store::ErasedArtifact& other) {
        return other.artifact_id == artifact.artifact_id;
      });
    });
  }

  // Carries out the journals of one request, the named content last. `closed` is released as soon as the content can no
  // longer be read.
  Status carry_out(store::Reader& reader, const std::vector<RedactionJournal>& journals,
                   std::unique_ptr<snapshot::Hold> hold, std::unique_ptr<Closed> closed, Redacted* done) {
    std::int64_t seq = -1;
    for (const RedactionJournal& journal : journals) {
      ASSIGN_OR_RETURN(seq, announce(reader, journal));
      FAILPOINT("redact.after_announce");
      RETURN_IF_ERROR(erase(reader, journal, journal.run_no == journals.back().run_no ? hold.get() : nullptr));
    }
    closed.reset();
    // A follower that had read the old events may write their content after the erasure, so its rows are erased again
    // once it has caught up.
    RETURN_IF_ERROR(await_followers(reader));
    for (const RedactionJournal& journal : journals) RETURN_IF_ERROR(erase_rows(reader, journal));
    hold.reset();
    const RedactionJournal& named = journals.back();
    if (named.run_no > 0) {
      ASSIGN_OR_RETURN(const std::optional<std::int64_t> at, take_snapshot(reader, named));
      if (at && done != nullptr) done->snapshot_seq = *at;
    }
    clean_database(journals);
    FAILPOINT("redact.before_end");
    // A journal that reappears after a crash repeats the erasure.
    RETURN_IF_ERROR(remove_files(journals));
    if (done != nullptr) done->seq = seq;
    for (const RedactionJournal& journal : journals) {
      log_info("erased", {{"run_id", journal.run_id},
                          {"events", std::to_string(journal.seqs.size())},
                          {"artifacts", std::to_string(journal.artifacts.size())}});
    }
    return success();
  }

  Status erase(store::Reader& reader, const RedactionJournal& journal, snapshot::Hold* hold) {
    const Status erased = erase_rows(reader, journal);
    FAILPOINT("redact.after_erase");
    // Also after a failure: Postgres may have committed, and the copies in memory must not be stored again.
    forget(journal, hold);
    RETURN_IF_ERROR(erased);
    RETURN_IF_ERROR(archive_.erase(journal.seqs));
    FAILPOINT("redact.after_archive");
    for (const store::ErasedArtifact& artifact : journal.artifacts) {
      RETURN_IF_ERROR(files_.erase(artifact.artifact_id, artifact.path));
      FAILPOINT("redact.after_file");
    }
    return success();
  }

  Result<std::shared_ptr<store::Run>> run_of(store::Reader& reader, const std::string& run_id) {
    ASSIGN_OR_RETURN(auto run, runs_.find_or_load(run_id, [&] { return reader.load_run(run_id); }));
    if (run) return run;
    Error error(Errc::not_found, "no run " + run_id);
    error.run_id = run_id;
    return error;
  }

  // Returns the seq of the first announcement. Skips those that are already in the log.
  Result<std::int64_t> announce(store::Reader& reader, const RedactionJournal& journal) {
    ASSIGN_OR_RETURN(const auto run, run_of(reader, journal.run_id));
    std::int64_t first = -1;
    store::AppendRequest request;
    for (const RedactionJournal::Announcement& announcement : journal.announcements()) {
      ASSIGN_OR_RETURN(const auto there, reader.event_by_id(journal.run_no, announcement.event_id));
      if (there) {
        if (first < 0) first = there->seq;
        continue;
      }
      request.events.push_back(
          evidence::daemon_event(run, announcement.type, announcement.body, announcement.event_id, false));
      if (request.events.size() == events_per_append)
        RETURN_IF_ERROR(append(std::exchange(request, {}), journal.by, first));
    }
    if (!request.events.empty()) RETURN_IF_ERROR(append(std::move(request), journal.by, first));
    return first;
  }

  Status append(store::AppendRequest request, const std::string& actor, std::int64_t& first) {
    request.actor = actor;
    request.ids_checked = true;
    ASSIGN_OR_RETURN(const std::vector<events::Receipt> receipts,
                     store::append_and_wait(appender_, std::move(request), commit_wait));
    if (first < 0) first = receipts.front().seq;
    return success();
  }

  Status erase_rows(store::Reader& reader, const RedactionJournal& journal) {
    std::vector<Uuid> artifact_ids;
    for (const store::ErasedArtifact& artifact : journal.artifacts) artifact_ids.push_back(artifact.artifact_id);
    ASSIGN_OR_RETURN(auto run_row, store::run_row_without(reader, journal.run_no, journal.seqs));
    // The statement waits for locks, and the run may have changed meanwhile.
    for (int turn = 0; turn < row_turns_max; ++turn) {
      RETURN_IF_ERROR(
          store::erase_copies(redactor_, options_.place.log_no, journal.run_no, journal.seqs, artifact_ids, run_row));
      ASSIGN_OR_RETURN(auto since, store::run_row_without(reader, journal.run_no, journal.seqs));
      if (since == run_row) return success();
      run_row = std::move(since);
    }
    return Error(Errc::unavailable, "the run changed during every attempt to erase its row");
  }

  // The planner's statistics contain sample values until ANALYZE; a page keeps the old version of a row until VACUUM.
  void clean_database(const std::vector<RedactionJournal>& journals) {
    if (const Status analysed = store::analyse_tables(owner_); !analysed) {
      log_warning("the planner's statistics may still contain erased values: run ANALYZE",
                  {{"error", analysed.error().message}});
    }
    std::vector<std::int64_t> seqs;
    for (const RedactionJournal& journal : journals) seqs.insert(seqs.end(), journal.seqs.begin(), journal.seqs.end());
    if (const Status vacuumed = store::vacuum_tables(owner_, options_.place.log_no, seqs, vacuum_limit); !vacuumed) {
      log_warning("database pages may contain erased values until autovacuum processes them: run VACUUM",
                  {{"error", vacuumed.error().message}});
    }
  }

  // Waits until the followers have written what they read so far.
  Status await_followers(store::Reader& reader) {
    const std::int64_t size = tail_.next_seq();
    const Monotonic end = std::chrono::steady_clock::now() + followers_wait;
    for (const std::string_view name : followers) {
      while (true) {
        ASSIGN_OR_RETURN(const std::int64_t position, reader.follower_position(name));
        if (position >= size) break;
        if (std::chrono::steady_clock::now() > end) {
          return Error(Errc::unavailable, "the follower \"" + std::string(name) + "\" is behind (" +
                                              std::to_string(position) + " of " + std::to_string(size) +
                                              " events). Try again when it has caught up: muniment status");
        }
        std::this_thread::sleep_for(followers_pause);
      }
    }
    return success();
  }

  void forget(const RedactionJournal& journal, snapshot::Hold* hold) {
    tail_.erase(journal.seqs);
    if (hold != nullptr) hold->forget();
    // The reason of a halted run is also stored with the run's head; only an erasure or run.resumed changes it.
    const auto run = runs_.find(journal.run_id);
    if (!run) return;
    store::RunView view = run->view();
    if (!view.halt || !std::ranges::binary_search(journal.seqs, view.halt->seq)) return;
    view.halt->reason.clear();
    view.halt->pointer.clear();
    run->publish(std::move(view));
  }

  // Returns nullopt if a state that was stored since the announcement was erased. That snapshot keeps its position, and
  // the next one follows the run's next event.
  Result<std::optional<std::int64_t>> take_snapshot(store::Reader& reader, const RedactionJournal& journal) {
    ASSIGN_OR_RETURN(const auto run, run_of(reader, journal.run_id));
    auto taking =
        snapshots_.take(reader, run, "erasure", events::daemon_actor, std::chrono::steady_clock::now() + snapshot_wait);
    if (!taking && taking.error().code == Errc::conflict) return std::optional<std::int64_t>();
    if (!taking) return std::move(taking).error();
    if (!taking->request) return std::optional(taking->snapshot.seq);
    auto receipts = store::append_and_wait(appender_, *std::move(taking->request), commit_wait);
    if (receipts) {
      taking->ticket->committed();
      return std::optional(taking->snapshot.seq);
    }
    if (receipts.error().outcome != "unknown") taking->ticket->refused();
    return std::move(receipts).error();
  }

  Clock& clock_;
  store::Appender& appender_;
  store::RunDirectory& runs_;
  store::Tail& tail_;
  store::ArtifactFiles& files_;
  store::BodyArchive& archive_;
  snapshot::Snapshotter& snapshots_;
  store::Connection redactor_, owner_;
  std::mutex mutex_;  // one erasure at a time
};

void warn_of_lost_erasures(const std::string& folder, std::int16_t log_no) {
  struct stat about {};
  if (::stat(folder.c_str(), &about) != 0) return;
  const auto journals = read_redaction_journals(folder);
  if (!journals) return log_warning("erasures of a closed log cannot be read", {{"error", journals.error().message}});
  for (const RedactionJournal& journal : *journals) {
    log_warning("a requested erasure is never carried out: its log is closed",
                {{"log_no", log_no}, {"run_id", journal.run_id}, {"id", journal.id.text()}});
  }
}

Redactor::Redactor(RedactionOptions options, Clock& clock, store::Appender& appender, store::RunDirectory& runs,
                   store::Tail& tail, store::ArtifactFiles& files, store::BodyArchive& archive,
                   snapshot::Snapshotter& snapshots)
    : impl_(std::make_unique<Impl>(std::move(options), clock, appender, runs, tail, files, archive, snapshots)) {}
Redactor::~Redactor() = default;

Status Redactor::finish_pending() {
  store::Reader reader(impl_->options_.place);
  return impl_->finish_pending(reader);
}

Result<store::ErasurePlan> Redactor::plan(store::Reader& reader, const store::ErasureTarget& target) {
  return impl_->plan(reader, target);
}

Result<Redacted> Redactor::redact(store::Reader& reader, const RedactionRequest& request, Deadline deadline) {
  return impl_->redact(reader, request, deadline);
}

}  // namespace muniment::audit
