// Compares a repeated request with the events that the log holds under its ids.
#include "gateway/append/first_receipts.hpp"

#include <algorithm>

#include "base/process/failpoint.hpp"
#include "events/entry.hpp"
#include "gateway/services.hpp"

namespace muniment::gateway {
namespace {

Error known_otherwise(const events::Event& known, std::string_view what) {
  Error error(Errc::conflict, "event_id " + known.event_id.text() + " is known in run " + known.run_id + " (run_seq " +
                                  std::to_string(known.run_seq) + "): " + std::string(what) +
                                  ". Send a new event with a new id.");
  error.run_id = known.run_id;
  error.event_ids.push_back(known.event_id.text());
  return error;
}

// Returns success if both events are equal; otherwise a conflict that names the difference.
Status same(const events::Event& known, const events::NewEvent& fresh) {
  if (known.type != fresh.type) return known_otherwise(known, "its type is " + known.type);
  if (known.schema_version != fresh.schema_version) {
    return known_otherwise(known, "its schema version is " + std::to_string(known.schema_version));
  }
  if (known.step_id != fresh.step_id) {
    return known_otherwise(known, known.step_id ? "its step is " + *known.step_id : "it has no step");
  }
  if (!known.salt) return known_otherwise(known, "it is redacted, so it cannot be compared");
  if (sha256({view(*known.salt), fresh.body}) != known.body_hash) {
    return known_otherwise(known, "its body is different");
  }
  return success();
}

class Receipts {
 public:
  explicit Receipts(Call& call) : reader_(*call.reader), log_id_(call.services.appender.status().log_id) {}

  Result<events::Receipt> of(const events::Event& event) {
    Hash previous = last_run_hash_;
    if (event.run_seq == 0 || last_run_seq_ != event.run_seq - 1) {
      ASSIGN_OR_RETURN(previous, reader_.previous_run_hash(event));
    }
    const events::EntryHashes hashes = events::hash_entry(log_id_, event, previous);
    if (hashes.run_hash != event.run_hash) return misfit(event);
    last_run_seq_ = event.run_seq;
    last_run_hash_ = event.run_hash;
    return events::Receipt{event.event_id,    event.seq,        event.run_seq,
                           event.recorded_at, event.body_hash,  *event.salt,
                           event.run_hash,    hashes.leaf_hash, true};
  }

 private:
  static Error misfit(const events::Event& event) {
    Error error(Errc::corrupt, "event " + std::to_string(event.seq) +
                                   " does not match its hash. The log was modified: run muniment-verify");
    error.run_id = event.run_id;
    return error;
  }

  store::Reader& reader_;
  const Uuid log_id_;
  std::int64_t last_run_seq_ = -1;  // a request's events follow each other, so most need no look-up
  Hash last_run_hash_{};
};

}  // namespace

Result<KnownEvents> known_events(Call& call, const store::Run& run, std::span<const events::NewEvent> events) {
  KnownEvents known(events.size());
  std::vector<Uuid> ids;
  for (const events::NewEvent& event : events) {
    if (!event.event_id_is_ours) ids.push_back(event.event_id);
  }
  const std::int64_t run_no = run.view().run_no;
  if (run_no < 0 || ids.empty()) return known;  // no event is committed yet, or no event has an id of the client
  FAILPOINT("append.asks_ids");
  ASSIGN_OR_RETURN(std::vector<events::Event> found, call.reader->events_by_ids(run_no, ids));
  for (events::Event& event : found) {
    const auto mine = std::ranges::find(events, event.event_id, &events::NewEvent::event_id);
    known[static_cast<std::size_t>(mine - events.begin())] = std::move(event);
  }
  return known;
}

Result<FirstReceipts> first_receipts(Call& call, const store::Run& run, std::span<const events::NewEvent> events) {
  ASSIGN_OR_RETURN(const KnownEvents known, known_events(call, run, events));
  return first_receipts(call, run, events, known);
}

Result<FirstReceipts> first_receipts(Call& call, const store::Run& run, std::span<const events::NewEvent> events,
                                     const KnownEvents& known) {
  std::vector<events::Receipt> receipts;
  Receipts first(call);
  std::size_t unknown = events.size();  // first event that is not in the log
  for (std::size_t i = 0; i < events.size(); ++i) {
    if (!known[i]) {
      unknown = std::min(unknown, i);
      continue;
    }
    RETURN_IF_ERROR(same(*known[i], events[i]));
    ASSIGN_OR_RETURN(events::Receipt receipt, first.of(*known[i]));
    receipts.push_back(receipt);
  }
  if (receipts.empty()) return FirstReceipts();
  if (unknown < events.size()) {
    Error error(Errc::conflict, std::to_string(receipts.size()) + " of these " + std::to_string(events.size()) +
                                    " events are in run " + run.run_id + " already, events[" + std::to_string(unknown) +
                                    "] is not. Repeat the request unchanged, or send only the new events.");
    error.run_id = run.run_id;
    return error;
  }
  return FirstReceipts(std::move(receipts));
}

Result<FoundRow<events::Event>> find_in_log_runs(Call& call, const Uuid& event_id) {
  return find_in_all<events::Event>(call, [&](store::Reader& reader) -> Result<std::optional<events::Event>> {
    std::shared_ptr<store::Run> log_run = call.services.runs.find(log_run_id);
    if (store::EarlierLog* const closed = earlier_log(call.services, reader.log_no()); closed != nullptr) {
      ASSIGN_OR_RETURN(log_run, store::find_run(*closed, *call.reader, log_run_id));
    }
    if (!log_run) return std::optional<events::Event>();
    return reader.event_by_id(log_run->view().run_no, event_id);
  });
}

Error used_key(const events::Event& known) { return used_key(known, !known.body); }

Error used_key(const events::Event& known, bool erased) {
  Error error(Errc::conflict,
              "this idempotency_key was used at seq " + std::to_string(known.seq) + " of run " + known.run_id +
                  " for " +
                  (!erased ? "a different request. Repeat that request unchanged, or send this one with a new key."
                           : "content that was erased since and cannot be compared. Send the request with a new key."));
  error.run_id = known.run_id;
  error.event_ids.push_back(known.event_id.text());
  return error;
}

}  // namespace muniment::gateway
