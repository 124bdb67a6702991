#include "verify/log/scan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "verify/tables/run_text.hpp"

namespace muniment::verify {
namespace {

// Types whose body is read during the scan, in addition to `run.` types.
constexpr std::array<std::string_view, 18> telling_types{
    "artifact.redacted", "artifact.stored", "claim.decided",   "claim.recorded",    "document.retracted",
    "document.revised",  "event.redacted",  "evidence.linked", "evidence.recorded", "feedback.recorded",
    "key.rotated",       "log.archived",    "log.started",     "manifest.recorded", "snapshot.taken",
    "source.revoked",    "task.completed",  "task.opened"};

constexpr std::int64_t schema_version_max = 32'767;

constexpr std::string_view event_columns =
    "seq, run_no, run_seq, recorded_at, occurred_at, origin, type, schema_version, step_id, actor, event_id, "
    "body_hash, salt, body, run_hash";

EventView event_of(const Row& row) {
  EventView event;
  event.seq = row.integer(0);
  event.run_no = row.integer(1);
  event.run_seq = row.integer(2);
  event.recorded_at = row.time(3);
  if (!row.null(4)) event.occurred_at = row.time(4);
  event.origin = row.integer(5);
  event.type = row.bytes(6);
  event.schema_version = row.integer(7);
  if (!row.null(8)) event.step_id = row.bytes(8);
  event.actor = row.bytes(9);
  event.event_id = row.bytes(10);
  event.body_hash = row.bytes(11);
  if (!row.null(12)) event.salt = row.bytes(12);
  if (!row.null(13)) event.body = row.bytes(13);
  event.run_hash = row.bytes(14);
  return event;
}

// `why` must outlive the event.
Status take_archived(ArchivedBodies& archive, EventView& event, std::string& why) {
  auto body = archive.body(event.seq);
  if (body) {
    event.body = *body;
    return success();
  }
  if (body.error().code != Errc::corrupt && body.error().code != Errc::conflict) return std::move(body).error();
  event.erased_since = body.error().code == Errc::conflict;
  why = body.error().message;
  event.why_no_body = why;
  return success();
}

bool is_telling(std::string_view type) {
  return type.starts_with("run.") || std::binary_search(telling_types.begin(), telling_types.end(), type);
}

}  // namespace

const std::string& Log::run_id(std::int64_t run_no) const {
  static const std::string log_run(log_run_id);
  static const std::string unknown = "?";
  if (run_no == 0) return log_run;
  const auto found = run_ids.find(run_no);
  return found == run_ids.end() ? unknown : found->second;
}

Life life_of(std::string_view type) {
  if (type == "run.started") return Life::started;
  if (type == "run.ended") return Life::ended;
  if (type == "run.halted") return Life::halted;
  if (type == "run.resumed") return Life::resumed;
  if (type == "artifact.stored") return Life::stored;
  if (type == "snapshot.taken") return Life::snapshot;
  if (type == "run.annotated" || type == "feedback.recorded" || type == "event.redacted" ||
      type == "artifact.redacted" || type.starts_with("pointer.")) {
    return Life::always;
  }
  return Life::other;
}

void Scanner::take(const EventView& event) {
  if (event.body && event.body->size() > value_bytes_max) {
    found(Check::value_size, event, fmt::format("at most {} bytes", value_bytes_max),
          fmt::format("a body of {} bytes", event.body->size()));
  }
  // The entry encodes these in one and two bytes; a larger number could be mistaken for the hashed one.
  if (event.origin < 1 || event.origin > 3 || event.schema_version < 1 || event.schema_version > schema_version_max) {
    found(Check::run_chain, event,
          fmt::format("an origin from 1 to 3, a schema_version from 1 to {}", schema_version_max),
          fmt::format("origin {}, schema_version {}", event.origin, event.schema_version));
  }
  const bool body_holds = check_body(event);
  span_.events.push_back({event.seq, event.run_no, event.run_seq, {}, life_of(event.type)});
  if (event.origin >= 1 && event.origin <= 3) ++span_.origins[static_cast<std::size_t>(event.origin)];
  check_chain(event);
  if (is_telling(event.type) || (is_readable(event.type) && log_.indexed.contains(event.run_no)))
    tell(event, body_holds);
}

Span Scanner::drain() {
  Span taken = std::exchange(span_, {});
  span_.last_run_hash = taken.last_run_hash;
  return taken;
}

bool Scanner::check_body(const EventView& event) {
  if (!event.body && !event.salt) {
    span_.redacted.push_back(event.seq);
    return false;
  }
  if (event.erased_since) return false;
  if (!event.body || !event.salt) {
    found(Check::body_hash, event, "salt and body",
          !event.salt                 ? "only the body"
          : event.why_no_body.empty() ? "only the salt"
                                      : "only the salt; " + std::string(event.why_no_body));
    return false;
  }
  const Hash hash = sha256({*event.salt, *event.body});
  if (view(hash) == event.body_hash) return true;
  found(Check::body_hash, event, to_hex(event.body_hash), to_hex(hash));
  return false;
}

void Scanner::check_chain(const EventView& event) {
  entry_.clear();
  encode_before_previous(log_.log_id, log_.run_id(event.run_no), event, entry_);
  std::string& last = span_.last_run_hash[event.run_no];
  if (last.empty() && event.run_seq != 0) {
    span_.waiting.push_back(
        {span_.events.size() - 1, entry_, std::string(event.body_hash), std::string(event.run_hash)});
  } else {
    const EntryHashes hashes =
        hash_entry(entry_, last.empty() ? view(Hash{}) : std::string_view(last), event.body_hash);
    span_.events.back().leaf = hashes.leaf_hash;
    if (view(hashes.run_hash) != event.run_hash) {
      found(Check::run_chain, event, to_hex(hashes.run_hash), to_hex(event.run_hash));
    }
  }
  last = event.run_hash;
}

void Scanner::tell(const EventView& event, bool body_holds) {
  Telling& telling = span_.telling.emplace_back();
  telling.index = span_.events.size() - 1;
  telling.recorded_at = event.recorded_at;
  telling.origin = event.origin;
  telling.type = event.type;
  if (event.step_id) telling.step_id = *event.step_id;
  telling.actor = event.actor;
  telling.redacted = !body_holds;
  telling.body_hash = event.body_hash;
  telling.occurred_at = event.occurred_at;
  if (body_holds) telling.body = *event.body;
}

void Scanner::found(Check check, const EventView& event, std::string expected, std::string actual) {
  findings_.add({check, event.seq, log_.run_id(event.run_no), std::move(expected), std::move(actual)});
}

Result<Span> scan(Connection& connection, ArchivedBodies& archive, const Log& log, std::int64_t begin, std::int64_t end,
                  Findings& findings) {
  RETURN_IF_ERROR(connection.start_copy(
      fmt::format("SELECT {} FROM event WHERE log_no = {} AND seq >= {} AND seq < {} ORDER BY seq", event_columns,
                  log.log_no, begin, end)));
  Scanner scanner(log, findings);
  Row row;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, connection.next(row));
    if (!more) return scanner.done();
    EventView event = event_of(row);
    std::string why;
    if (event.salt && !event.body) RETURN_IF_ERROR(take_archived(archive, event, why));
    scanner.take(event);
  }
}

}  // namespace muniment::verify
