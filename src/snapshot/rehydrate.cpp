#include "snapshot/rehydrate.hpp"

#include "base/json/json.hpp"
#include "base/limits.hpp"
#include "base/log.hpp"
#include "store/files/artifact_row.hpp"
#include "store/logs/erasure.hpp"

namespace muniment::snapshot {
namespace {

constexpr std::size_t snapshots_per_query = 4;
constexpr std::int64_t events_per_query = 256;

std::string_view view_of(const Salt& salt) { return {reinterpret_cast<const char*>(salt.data()), salt.size()}; }

// Compares the row with its event. If a row and its hash were edited together, its event, which the run's chain
// protects, shows the change.
Status check_event(store::Reader& reader, const store::SnapshotRow& row) {
  ASSIGN_OR_RETURN(const std::optional<events::Event> event, reader.confirmed(reader.event_at(row.event_seq)));
  if (!event || event->type != "snapshot.taken" || event->run_no != row.run_no) {
    return Error(Errc::corrupt, "event " + std::to_string(row.event_seq) + " is not its snapshot.taken");
  }
  if (!event->body || !event->salt) return success();  // erased; the row still has the hash
  if (sha256({view_of(*event->salt), *event->body}) != event->body_hash) {
    return Error(Errc::corrupt, "the body of its snapshot.taken does not match its hash");
  }
  ASSIGN_OR_RETURN(const json::Document document, json::parse(*event->body));
  const json::Value body = document.root();
  if (body["seq"].as_int() != row.seq || body["hash"].string_or("") != to_hex(row.hash)) {
    return Error(Errc::corrupt, "its row differs from its snapshot.taken");
  }
  return success();
}

constexpr std::int64_t any_size = INT64_MAX;

Result<std::string> read_artifact(store::Reader& reader, store::ArtifactFiles& files, const Uuid& id,
                                  std::string_view run_id, std::int64_t bytes_max = any_size) {
  ASSIGN_OR_RETURN(const std::optional<store::ArtifactRow> row, reader.artifact(id));
  if (!row || (!run_id.empty() && row->run_id != run_id)) return Error(Errc::not_found, "no artifact " + id.text());
  if (store::is_erased(*row)) return Error(Errc::conflict, "artifact " + id.text() + " was erased");
  if (row->size_bytes > bytes_max) return Error(Errc::too_large, "artifact " + id.text() + " is too large");
  return files.read(store::file_of(*row), 0, row->size_bytes);
}

// Reads the events of a run after `after_run_seq`, page by page, up to `asof_seq`. Each page is bounded by run_seq,
// because an upper bound only by seq would make Postgres scan to the end of the run.
class RunEvents {
 public:
  RunEvents(store::Reader& reader, std::int64_t run_no, std::int64_t after_run_seq, std::int64_t after_seq)
      : reader_(reader) {
    filter_.run_no = run_no;
    filter_.from_seq = after_seq + 1;
    next_ = after_run_seq + 1;
  }

  // Returns an empty page at the end.
  Result<std::vector<events::Event>> page() {
    if (finished_) return std::vector<events::Event>{};
    filter_.from_run_seq = next_;
    filter_.to_run_seq = next_ + events_per_query - 1;
    ASSIGN_OR_RETURN(std::vector<events::Event> found,
                     reader_.events(filter_, static_cast<std::size_t>(events_per_query)));
    RETURN_IF_ERROR(check(found));
    next_ += events_per_query;
    finished_ = found.empty() || found.back().run_seq < next_ - 1;
    return found;
  }

 private:
  // Holds the events against the log. None may be missing between them.
  Status check(const std::vector<events::Event>& found) {
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (found[i].run_seq != next_ + static_cast<std::int64_t>(i))
        return Error(Errc::corrupt, "event " + std::to_string(next_ + static_cast<std::int64_t>(i)) +
                                        " of the run is missing: the log was changed. Run muniment-verify");
    }
    return reader_.confirm(found);
  }

  store::Reader& reader_;
  store::EventFilter filter_;
  std::int64_t next_ = 0;
  bool finished_ = false;
};

// Tries the snapshots from the newest on until one is valid.
Status load_snapshot(store::Reader& reader, store::ArtifactFiles& files, std::int64_t run_no,
                     std::optional<std::int64_t> asof_seq, Rehydrated& out) {
  std::optional<std::int64_t> at_most = asof_seq;
  while (true) {
    ASSIGN_OR_RETURN(std::vector<store::SnapshotRow> rows, reader.snapshots(run_no, at_most, snapshots_per_query));
    for (store::SnapshotRow& row : rows) {
      if (!out.newest_row) out.newest_row = row.seq;
      auto bytes = read_snapshot(reader, files, row);
      if (!bytes && is_transient(bytes.error().code)) return std::move(bytes).error();
      auto state = bytes ? events::State::parse(*bytes) : Result<events::State>(std::move(bytes).error());
      if (state && state->seq() == row.seq && state->run_seq() == row.run_seq) {
        out.state = *std::move(state);
        out.snapshot_seq = row.seq;
        row.state.reset();
        out.snapshot = std::move(row);
        return success();
      }
      std::string reason = state ? "its state belongs to another position" : state.error().message;
      log_warning("snapshot skipped",
                  {{"run_no", std::to_string(run_no)}, {"seq", std::to_string(row.seq)}, {"reason", reason}});
      out.skipped.push_back({row.seq, std::move(reason)});
    }
    if (rows.size() < snapshots_per_query) return success();
    at_most = rows.back().seq - 1;
  }
}

}  // namespace

Result<std::string> read_snapshot(store::Reader& reader, store::ArtifactFiles& files, const store::SnapshotRow& row) {
  RETURN_IF_ERROR(check_event(reader, row));
  if (!row.salt) return Error(Errc::not_found, "its state was erased");
  std::string state;
  if (row.state) {
    state = *row.state;
  } else if (row.artifact_id) {
    ASSIGN_OR_RETURN(state, read_artifact(reader, files, *row.artifact_id, {}));
  } else {
    return Error(Errc::not_found, "its state was erased");
  }
  if (sha256({view_of(*row.salt), state}) != row.hash) return Error(Errc::corrupt, "its state does not match its hash");
  return state;
}

Result<std::string> read_spilled_patch(std::string_view run_id, std::string_view artifact_id, store::Reader& reader,
                                       store::ArtifactFiles& files) {
  const auto failed = [&](Error error) {
    if (is_transient(error.code)) return error;
    Error corrupt(Errc::corrupt,
                  "the state of " + std::string(run_id) + " needs a patch that cannot be read: " + error.message);
    corrupt.run_id = run_id;
    corrupt.pointer = "artifact://" + std::string(run_id) + "/" + std::string(artifact_id);
    return corrupt;
  };
  const std::optional<Uuid> id = parse_uuid(artifact_id);
  if (!id) return failed(Error(Errc::not_found, "its id is not a UUID"));
  auto bytes = read_artifact(reader, files, *id, run_id, static_cast<std::int64_t>(limits::working_state_bytes_max));
  // The fold refuses a patch that is too large or erased, for the same reason.
  if (!bytes && (bytes.error().code == Errc::too_large || bytes.error().code == Errc::conflict)) return std::string();
  if (!bytes) return failed(std::move(bytes).error());
  return bytes;
}

Status apply_event(events::State& state, const events::Event& event, store::Reader& reader,
                   store::ArtifactFiles& files) {
  if (event.type != "state.patched" || event.seq <= state.seq()) {
    state.apply(event);
    return success();
  }
  std::string patch;
  if (const std::string artifact_id = events::spilled_patch_of(event); !artifact_id.empty()) {
    ASSIGN_OR_RETURN(patch, read_spilled_patch(event.run_id, artifact_id, reader, files));
  }
  state.apply(event, patch);
  return success();
}

Result<std::int64_t> apply_events_after(store::Reader& reader, store::ArtifactFiles& files, std::int64_t run_no,
                                        std::optional<std::int64_t> asof_seq, events::State& state,
                                        std::int64_t& through_seq) {
  RunEvents events(reader, run_no, state.run_seq(), state.seq());
  std::int64_t applied = 0;
  while (true) {
    ASSIGN_OR_RETURN(const std::vector<events::Event> page, events.page());
    if (page.empty()) return applied;
    for (const events::Event& event : page) {
      if (asof_seq && event.seq > *asof_seq) return applied;
      const std::int64_t before = state.seq();
      RETURN_IF_ERROR(apply_event(state, event, reader, files));
      if (state.seq() != before) ++applied;
      through_seq = event.seq;
    }
  }
}

Result<Rehydrated> rehydrate(store::Reader& reader, store::ArtifactFiles& files, std::int64_t run_no,
                             std::optional<std::int64_t> asof_seq) {
  Rehydrated out;
  RETURN_IF_ERROR(load_snapshot(reader, files, run_no, asof_seq, out));
  out.through_seq = out.state.seq();
  ASSIGN_OR_RETURN(out.events_applied, apply_events_after(reader, files, run_no, asof_seq, out.state, out.through_seq));
  return out;
}

}  // namespace muniment::snapshot
