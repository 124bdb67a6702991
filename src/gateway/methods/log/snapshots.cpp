// snapshot.take, snapshot.latest, snapshot.list and run.rehydrate: store and restore the state of a run.
#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "base/json/json_tree.hpp"
#include "base/limits.hpp"
#include "gateway/access.hpp"
#include "gateway/append/event_json.hpp"
#include "gateway/methods/methods.hpp"
#include "gateway/read/cursor.hpp"
#include "gateway/read/pointing.hpp"
#include "gateway/services.hpp"
#include "snapshot/rehydrate.hpp"
#include "snapshot/snapshotter.hpp"

namespace muniment::gateway::methods {
namespace {

// The event types of a run's transcript, as in docs/format.md (State, Every event).
constexpr std::string_view transcript_types[] = {"message.added", "thought.recorded", "model.answered", "tool.called",
                                                 "tool.returned"};

Error no_state(const store::Run& run) {
  return {Errc::invalid_argument,
          "run " + run.run_id + " has no state, because it records the log itself. Pass the id of another run"};
}

// Returns the run that `run_id` names. Errors: also those for a run without a state.
Result<ReadRun> run_with_state(Call& call) {
  ASSIGN_OR_RETURN(ReadRun found, find_run_to_read(call, call.params["run_id"].string_or("")));
  if (found.run->view().run_no > 0) return found;
  return no_state(*found.run);
}

std::string taken_json(const snapshot::TakenSnapshot& taken) {
  json::Writer out;
  out.begin_object()
      .member("seq", taken.seq)
      .member("run_seq", taken.run_seq)
      .member("state_hash", to_hex(taken.state_hash))
      .member("size_bytes", taken.size_bytes);
  if (taken.artifact_id) out.member("artifact_id", taken.artifact_id->text());
  return std::move(out.end_object()).text();
}

void write_row(json::Writer& out, const store::SnapshotRow& row) {
  out.begin_object()
      .member("seq", row.seq)
      .member("run_seq", row.run_seq)
      .member("event_seq", row.event_seq)
      .member("reason", row.reason)
      .member("created_at", format_time(row.created_at))
      .member("hash", to_hex(row.hash))
      .member("state_hash", to_hex(row.state_hash))
      .member("size_bytes", row.size_bytes);
  if (row.artifact_id) out.member("artifact_id", row.artifact_id->text());
  if (!row.salt) out.member("erased", true);
  out.end_object();
}

// Appends the snapshot's events and answers once they are committed, or at once if there are none.
Answer answer_with(snapshot::Taking taking, std::string result) {
  if (!taking.request) return Reply{std::move(result), {}};
  PendingAppend append;
  append.request = *std::move(taking.request);
  append.finish = [ticket = taking.ticket, result](Services&, const std::vector<events::Receipt>&) -> Result<Reply> {
    ticket->committed();
    return Reply{result, {}};
  };
  append.refused = [ticket = taking.ticket](Services&, Error error) -> Result<Reply> {
    ticket->refused();
    return error;
  };
  return append;
}

std::string skipped_json(const std::vector<snapshot::Skipped>& skipped) {
  json::Writer out;
  out.begin_array();
  for (const snapshot::Skipped& one : skipped) {
    out.begin_object().member("seq", one.seq).member("reason", one.reason).end_object();
  }
  return std::move(out.end_array()).text();
}

// Returns a page of the transcript since the last compaction, up to the state's position.
Result<std::string> messages_page(const Call& call, const ReadRun& found, const json::Value& state) {
  const std::int64_t run_no = found.run->view().run_no;
  const json::Value wanted = call.params["messages"];
  const auto limit = static_cast<std::size_t>(wanted["limit"].as_int().value_or(limits::page_items_default));
  const json::Value messages = state["context"]["messages"];
  std::int64_t from = messages["first_run_seq"].as_int().value_or(0);
  const std::int64_t last = messages["last_run_seq"].as_int().value_or(-1);
  const std::string question = "run.rehydrate messages " + std::to_string(run_no);
  if (const json::Value cursor = wanted["cursor"]) {
    ASSIGN_OR_RETURN(const std::int64_t position, read_cursor(cursor.string_or(""), question));
    from = std::max(from, position);
  }
  store::EventFilter filter;
  filter.run_no = run_no;
  filter.from_run_seq = from;
  filter.to_run_seq = last;
  for (std::string_view type : transcript_types) filter.types.emplace_back(type);
  std::vector<events::Event> events;
  if (from <= last) {
    ASSIGN_OR_RETURN(events, found.reader->events(filter, limit, limits::page_bytes_max));
    RETURN_IF_ERROR(found.reader->confirm(events));
    if (events.size() == limit) filter.to_run_seq = events.back().run_seq;
    RETURN_IF_ERROR(found.reader->confirm_run(filter, 0, std::numeric_limits<std::int64_t>::max()));
  }
  std::string text = "{\"events\":[";
  for (const events::Event& event : events) {
    if (&event != &events.front()) text.push_back(',');
    append_event_json(text, event);
  }
  text.push_back(']');
  if (!events.empty() && events.back().run_seq < last) {
    text += ",\"cursor\":" + json::quote(make_cursor(events.back().run_seq + 1, question));
  }
  return text + "}";
}

// Writes the members that run.rehydrate returns for a state of any size.
void write_position(json::Writer& out, const snapshot::Rehydrated& had, const Hash& state_hash) {
  out.member("state_hash", to_hex(state_hash)).member("seq", had.state.seq()).member("run_seq", had.state.run_seq());
  out.key("snapshot_seq");
  had.snapshot_seq < 0 ? out.null() : out.number(had.snapshot_seq);
  out.member("events_applied", had.events_applied);
  if (!had.skipped.empty()) out.raw_member("skipped", skipped_json(had.skipped));
}

// Returns the requested part of the state. Errors: invalid_argument, not_found.
Result<std::string> part_of(std::string document, const json::Value& path) {
  if (!path || path.string_or("").empty()) return document;
  const std::string pointer = path.string_or("");
  if (!json::split_pointer(pointer)) {
    return Error(Errc::invalid_argument,
                 "path: " + json::quote(pointer) + " is not a JSON pointer such as \"/working\"");
  }
  ASSIGN_OR_RETURN(const json::Document parsed, json::parse(document));
  const json::Tree tree(parsed.root());
  const json::Tree* part = json::find(tree, pointer);
  if (!part) return Error(Errc::not_found, "path: the state has nothing at " + json::quote(pointer));
  return part->canonical();
}

// Returns nullopt if the rehydrated state may no longer be stored.
Result<std::optional<Answer>> answer_of_state(Call& call, const ReadRun& found, const snapshot::Rehydrated& had) {
  const std::shared_ptr<store::Run>& run = found.run;
  const std::string document = had.state.document();
  ASSIGN_OR_RETURN(const std::string part, part_of(document, call.params["path"]));
  std::string messages;
  if (call.params["messages"]) {
    ASSIGN_OR_RETURN(const json::Document parsed, json::parse(document));
    ASSIGN_OR_RETURN(messages, messages_page(call, found, parsed.root()));
  }
  json::Writer out;
  out.begin_object();
  snapshot::Taking taking;  // for a state that is too large for a reply
  if (part.size() <= limits::state_reply_bytes_max) {
    out.raw_member("state", part);
  } else {
    if (part.size() != document.size() || run->closed_log != 0) {
      return Error(
          Errc::too_large,
          "the part is " + std::to_string(part.size()) + " bytes, limit " +
              std::to_string(limits::state_reply_bytes_max) +
              (run->closed_log != 0
                   ? ". Request smaller parts with path: the run is in a closed log, which accepts no state_artifact."
                   : ". Request a smaller part, or omit path and read the state_artifact."));
    }
    ASSIGN_OR_RETURN(auto stored,
                     call.services.snapshots.store(had, run, "rehydrated", call.caller.actor, call.deadline));
    if (!stored) return std::optional<Answer>();
    taking = *std::move(stored);
    out.member("state_artifact", taking.snapshot.artifact_id ? taking.snapshot.artifact_id->text() : std::string());
  }
  write_position(out, had, sha256(document));
  if (!messages.empty()) out.raw_member("messages", messages);
  return std::optional(answer_with(std::move(taking), std::move(out.end_object()).text()));
}

// Stops the run if damage prevents reading its state, because it cannot continue without it. Returns nullopt if a
// second attempt succeeded; then read again.
Result<std::optional<Answer>> answer_lost_state(Call& call, const std::shared_ptr<store::Run>& run,
                                                const Error& error) {
  if (error.code != Errc::corrupt || error.pointer.empty()) return error;
  return answer_damage(call, error.pointer, {.run = run, .critical = true}, error);
}

// For a closed log, nothing is cached or stored.
Result<snapshot::Rehydrated> rehydrated(Call& call, const ReadRun& found, std::optional<std::int64_t> asof) {
  const std::int64_t run_no = found.run->view().run_no;
  if (found.run->closed_log != 0) return snapshot::rehydrate(*found.reader, call.services.files, run_no, asof);
  const std::int64_t next_run_seq = found.run->next_run_seq();
  ASSIGN_OR_RETURN(snapshot::Rehydrated had, call.services.snapshots.rehydrate(*found.reader, run_no, asof));
  ASSIGN_OR_RETURN(const std::int64_t in_table, found.reader->next_run_seq(run_no));
  if (in_table >= next_run_seq) return had;
  return Error(Errc::corrupt,
               "the last events of " + found.run->run_id + " are missing: the log was changed. Run muniment-verify");
}

}  // namespace

Result<Answer> snapshot_take(Call& call) {
  if (!call.reader) return NeedsWorker{};
  ASSIGN_OR_RETURN(const std::shared_ptr<store::Run> run, find_run(call, call.params["run_id"].string_or("")));
  if (run->view().run_no <= 0) return no_state(*run);
  auto taking = call.services.snapshots.take(*call.reader, run, "requested", call.caller.actor, call.deadline);
  if (!taking) {
    ASSIGN_OR_RETURN(auto answer, answer_lost_state(call, run, taking.error()));
    if (answer) return *std::move(answer);
    taking = call.services.snapshots.take(*call.reader, run, "requested", call.caller.actor, call.deadline);
  }
  if (!taking) return std::move(taking).error();
  std::string result = taken_json(taking->snapshot);
  return answer_with(*std::move(taking), std::move(result));
}

Result<Answer> snapshot_latest(Call& call) {
  if (!call.reader) return NeedsWorker{};
  ASSIGN_OR_RETURN(const ReadRun found, run_with_state(call));
  const std::shared_ptr<store::Run>& run = found.run;
  ASSIGN_OR_RETURN(std::optional<std::int64_t> at_most, asof_seq(call, *found.reader));
  std::vector<snapshot::Skipped> skipped;
  while (true) {
    ASSIGN_OR_RETURN(const std::vector<store::SnapshotRow> rows,
                     found.reader->snapshots(run->view().run_no, at_most, 1));
    if (rows.empty())
      return Error(Errc::not_found,
                   "no intact snapshot of " + run->run_id + " up to that position. Take one with snapshot.take");
    const auto state = snapshot::read_snapshot(*found.reader, call.services.files, rows.front());
    if (!state && is_transient(state.error().code)) return state.error();
    if (!state) {
      skipped.push_back({rows.front().seq, state.error().message});
      at_most = rows.front().seq - 1;
      continue;
    }
    json::Writer out;
    out.begin_object().key("snapshot");
    write_row(out, rows.front());
    if (state->size() <= limits::state_reply_bytes_max) out.raw_member("state", *state);
    if (!skipped.empty()) out.raw_member("skipped", skipped_json(skipped));
    return Reply{std::move(out.end_object()).text(), {}};
  }
}

Result<Answer> snapshot_list(Call& call) {
  if (!call.reader) return NeedsWorker{};
  ASSIGN_OR_RETURN(const ReadRun found, run_with_state(call));
  const std::shared_ptr<store::Run>& run = found.run;
  const auto limit = static_cast<std::size_t>(call.params["limit"].as_int().value_or(limits::page_items_default));
  const std::string question = question_of("snapshot.list", call.params);
  std::optional<std::int64_t> at_most;
  if (const json::Value cursor = call.params["cursor"]) {
    ASSIGN_OR_RETURN(at_most, read_cursor(cursor.string_or(""), question));
  }
  ASSIGN_OR_RETURN(const std::vector<store::SnapshotRow> rows,
                   found.reader->snapshots(run->view().run_no, at_most, limit));
  RETURN_IF_ERROR(found.reader->confirm(rows));
  json::Writer out;
  out.begin_object().key("snapshots").begin_array();
  for (const store::SnapshotRow& row : rows) write_row(out, row);
  out.end_array();
  if (rows.size() == limit && rows.back().seq > 0) out.member("cursor", make_cursor(rows.back().seq - 1, question));
  return Reply{std::move(out.end_object()).text(), {}};
}

// Returns asof in its requested form: a seq, or a time.
static std::string asof_text(const json::Value& asof) {
  return asof.as_int() ? fmt::format("seq {}", *asof.as_int()) : asof.string_or("");
}

Result<Answer> run_rehydrate(Call& call) {
  if (!call.reader) return NeedsWorker{};
  ASSIGN_OR_RETURN(const ReadRun found, run_with_state(call));
  const std::shared_ptr<store::Run>& run = found.run;
  ASSIGN_OR_RETURN(const std::optional<std::int64_t> asof, asof_seq(call, *found.reader));
  bool looked_again = false;
  while (true) {
    const auto state = rehydrated(call, found, asof);
    if (!state && !std::exchange(looked_again, true)) {
      ASSIGN_OR_RETURN(auto answer, answer_lost_state(call, run, state.error()));
      if (answer) return *std::move(answer);
      continue;
    }
    if (!state) return state.error();
    const snapshot::Rehydrated& had = *state;
    if (had.state.seq() < 0)
      return Error(Errc::not_found,
                   fmt::format("run {} had no events yet at {}", run->run_id, asof_text(call.params["asof"])));
    ASSIGN_OR_RETURN(std::optional<Answer> answer, answer_of_state(call, found, had));
    if (answer) return *std::move(answer);
  }
}

}  // namespace muniment::gateway::methods
