#include "snapshot/live_run.hpp"

#include <algorithm>

#include "base/json/json.hpp"
#include "base/limits.hpp"
#include "base/process/failpoint.hpp"
#include "events/catalogue.hpp"
#include "store/files/artifact_row.hpp"

namespace muniment::snapshot {
namespace {

constexpr std::string_view state_step = "main";
constexpr std::string_view state_mime_type = "application/vnd.muniment.state+json";

store::Addressed daemon_event(const std::shared_ptr<store::Run>& run, std::string_view type, std::string body,
                              Time now) {
  events::NewEvent event;
  event.type = type;
  event.schema_version = events::find_type(type)->schema_version;
  event.body = std::move(body);
  event.event_id = make_uuid_v7(now);
  event.event_id_is_ours = true;
  const bool imported = run->view().origin == events::Origin::imported;
  event.origin = imported ? events::Origin::imported : events::Origin::observed;
  events::seal_own(event);
  return {run, std::move(event), false};
}

std::string snapshot_body(const store::SnapshotRow& row) {
  json::Writer out;
  out.begin_object()
      .member("seq", row.seq)
      .member("run_seq", row.run_seq)
      .member("hash", to_hex(row.hash))
      .member("size_bytes", row.size_bytes)
      .member("reason", row.reason);
  if (row.artifact_id) out.member("artifact_id", row.artifact_id->text());
  out.end_object();
  return std::move(out).text();
}

class LiveTicket final : public Ticket {
 public:
  LiveTicket(std::shared_ptr<LiveRuns> live, std::shared_ptr<LiveRun> run, BuiltSnapshot built, std::int64_t changes,
             Monotonic retry_at)
      : live_(std::move(live)),
        run_(std::move(run)),
        taken_(built.taken),
        file_(std::move(built.file)),
        changes_(changes),
        retry_at_(retry_at) {}

  ~LiveTicket() override {
    if (!answered_) conclude(Outcome::unknown);
  }
  void committed() override { conclude(Outcome::committed); }
  void refused() override { conclude(Outcome::refused); }

 private:
  enum class Outcome { committed, refused, unknown };

  void conclude(Outcome outcome) {
    answered_ = true;
    {
      const std::lock_guard lock(live_->mutex);
      Pace& pace = run_->pace;
      pace.in_flight = false;
      ++pace.answered;
      --live_->in_flight;
      if (outcome == Outcome::committed) {
        pace.last = taken_;
        pace.newest_row = taken_.seq;
      } else {
        pace.in_doubt = true;  // its row may exist already, which would explain the refusal
        pace.changes += changes_;
        live_->set_due(*run_, retry_at_);
      }
      if (file_ && outcome != Outcome::unknown) live_->files.push_back({*file_, outcome == Outcome::committed});
    }
    live_->snapshot_answered.notify_all();
  }

  const std::shared_ptr<LiveRuns> live_;
  const std::shared_ptr<LiveRun> run_;
  const TakenSnapshot taken_;
  const std::optional<store::StoredFile> file_;
  const std::int64_t changes_;
  const Monotonic retry_at_;
  bool answered_ = false;
};

class FileTicket final : public Ticket {
 public:
  FileTicket(std::shared_ptr<LiveRuns> live, std::shared_ptr<LiveRun> run, std::optional<store::StoredFile> file)
      : live_(std::move(live)), run_(std::move(run)), file_(std::move(file)) {}

  ~FileTicket() override {
    if (!answered_) conclude(std::nullopt);
  }
  void committed() override { conclude(true); }
  void refused() override { conclude(false); }

 private:
  // `in` is nullopt if the outcome is unknown. Then the next start resolves the file, and the next snapshot of the run
  // reads the rows.
  void conclude(std::optional<bool> in) {
    answered_ = true;
    {
      const std::lock_guard lock(live_->mutex);
      run_->pace.in_flight = false;
      ++run_->pace.answered;
      run_->pace.in_doubt = true;  // its row may already hold the next state
      --live_->in_flight;
      if (file_ && in) live_->files.push_back({*file_, *in});
    }
    live_->snapshot_answered.notify_all();
  }

  const std::shared_ptr<LiveRuns> live_;
  const std::shared_ptr<LiveRun> run_;
  const std::optional<store::StoredFile> file_;
  bool answered_ = false;
};

}  // namespace

Result<BuiltSnapshot> build_snapshot(const events::State& state, const std::shared_ptr<store::Run>& run,
                                     std::string_view reason, std::string_view actor, Clock& clock,
                                     store::ArtifactFiles& files) {
  std::string document = state.document();
  const Time now = clock.now();
  BuiltSnapshot built;
  built.request.actor = actor;

  store::SnapshotRow row;
  row.run_no = run->view().run_no;
  row.seq = state.seq();
  row.run_seq = state.run_seq();
  row.salt = random_salt();
  row.hash = sha256({std::string_view(reinterpret_cast<const char*>(row.salt->data()), row.salt->size()), document});
  row.state_hash = sha256(document);
  row.size_bytes = static_cast<std::int64_t>(document.size());
  row.reason = reason;
  if (document.size() > limits::snapshot_inline_bytes_max) {
    const Uuid id = make_uuid_v7(now);
    ASSIGN_OR_RETURN(built.file, files.store(document, run->run_id, state_step, id, state_mime_type));
    FAILPOINT("snapshot.after_file");
    row.artifact_id = id;
    store::ArtifactRow artifact = store::artifact_row(*built.file, run->run_id, state_step, state_mime_type, {});
    built.request.events.push_back(daemon_event(run, "artifact.stored", store::artifact_stored_body(artifact), now));
    built.request.rows.push_back({0, std::move(artifact)});
  } else {
    row.state = std::move(document);
  }
  built.taken = {row.seq, row.run_seq, row.state_hash, row.size_bytes, row.artifact_id};
  built.request.events.push_back(daemon_event(run, "snapshot.taken", snapshot_body(row), now));
  built.request.rows.push_back({built.request.events.size() - 1, std::move(row)});
  return built;
}

std::shared_ptr<Ticket> make_ticket(std::shared_ptr<LiveRuns> live, std::shared_ptr<LiveRun> run, BuiltSnapshot built,
                                    std::int64_t changes, Monotonic retry_at) {
  return std::make_shared<LiveTicket>(std::move(live), std::move(run), std::move(built), changes, retry_at);
}

std::shared_ptr<Ticket> make_file_ticket(std::shared_ptr<LiveRuns> live, std::shared_ptr<LiveRun> run,
                                         std::optional<store::StoredFile> file) {
  return std::make_shared<FileTicket>(std::move(live), std::move(run), std::move(file));
}

std::shared_ptr<LiveRun> LiveRuns::find_or_add(std::int64_t run_no, std::string_view run_id) {
  auto& run = runs[run_no];
  if (!run) run = std::make_shared<LiveRun>(run_no, std::string(run_id));
  run->pace.used = ++turn;
  return run;
}

void LiveRuns::set_due(LiveRun& run, std::optional<Monotonic> when) {
  if (run.pace.due) due.erase({*run.pace.due, run.run_no});
  run.pace.due = when;
  if (when) due.insert({*when, run.run_no});
}

void LiveRuns::set_state_bytes(LiveRun& run, std::size_t bytes) {
  state_bytes += bytes - run.pace.state_bytes;
  run.pace.state_bytes = bytes;
}

void LiveRuns::trim(std::size_t bytes_max) {
  if (state_bytes > bytes_max) {
    std::vector<std::shared_ptr<LiveRun>> by_use;
    for (const auto& [number, run] : runs) {
      if (run->pace.state_bytes > 0) by_use.push_back(run);
    }
    std::sort(by_use.begin(), by_use.end(), [](const auto& a, const auto& b) { return a->pace.used < b->pace.used; });
    // Releases a quarter more than needed, so that the next event does not repeat this.
    for (const auto& run : by_use) {
      if (state_bytes <= bytes_max - bytes_max / 4) break;
      const std::unique_lock lock(run->mutex, std::try_to_lock);
      if (!lock) continue;  // in use
      run->state.reset();
      set_state_bytes(*run, 0);
    }
  }
  std::erase_if(runs, [](const auto& entry) {
    const Pace& pace = entry.second->pace;
    return pace.state_bytes == 0 && pace.changes == 0 && !pace.due && !pace.in_flight && entry.second.use_count() == 1;
  });
}

}  // namespace muniment::snapshot
