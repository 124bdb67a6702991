// Reads one span of the log and runs every check that needs no neighbouring span: body hashes, and entry → run_hash and
// leaf for every event whose predecessor in its run is in the same span. Several threads scan spans; history.hpp joins
// them in order.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/crypto/sha256.hpp"
#include "base/ids.hpp"
#include "base/result.hpp"
#include "verify/files/archived_bodies.hpp"
#include "verify/finding.hpp"
#include "verify/log/hashing.hpp"
#include "verify/postgres/postgres.hpp"

namespace muniment::verify {

// The log and the range of events to verify.
struct Log {
  std::int64_t log_no = 0;
  Uuid log_id;
  std::int64_t from = 0;   // first seq to read; earlier events were verified before
  std::int64_t upto = -1;  // last seq; -1: no events
  std::int64_t events_per_partition = 0;
  bool archived = false;          // some partitions are archived
  std::int64_t run_no_known = 0;  // runs up to this one began before `from`
  std::unordered_map<std::int64_t, std::string> run_ids;
  // Tells, by run_no, whether the events of a run are indexed for queries; nullopt: its run.started was erased. Runs
  // without an element are not indexed.
  std::unordered_map<std::int64_t, std::optional<bool>> indexed;

  const std::string& run_id(std::int64_t run_no) const;  // returns "?" for a run without a first event
};

// Effect of a type on the life of a run.
enum class Life : std::uint8_t {
  started,
  ended,
  halted,
  resumed,
  stored,    // artifact.stored: in a stopped run only directly before its snapshot
  snapshot,  // snapshot.taken
  always,    // permitted in every state of the run
  other,     // permitted only while the run is open
};
Life life_of(std::string_view type);

struct SeenEvent {
  std::int64_t seq = 0;
  std::int64_t run_no = 0;
  std::int64_t run_seq = 0;
  Hash leaf{};
  Life life = Life::other;
};

// An event whose predecessor is in an earlier span. Its hashes depend on the run_hash of that predecessor.
struct Waiting {
  std::size_t index = 0;  // index into Span::events
  std::string before;     // the entry up to the previous run_hash
  std::string body_hash;
  std::string run_hash;
};

// An event that determines a row beside the log. Its body matches its hash.
struct Telling {
  std::size_t index = 0;  // index into Span::events
  Time recorded_at;
  std::int64_t origin = 0;
  std::string type;
  std::optional<std::string> step_id;
  std::string actor;
  bool redacted = false;  // erased, or not matching its hash, so nothing can be derived from it
  std::string body;
  std::string body_hash;  // 32 bytes
  std::optional<Time> occurred_at;

  std::string_view json() const { return redacted ? std::string_view("{}") : std::string_view(body); }
};

struct Span {
  std::vector<SeenEvent> events;
  std::vector<Waiting> waiting;
  std::vector<Telling> telling;
  std::unordered_map<std::int64_t, std::string> last_run_hash;  // by run_no
  std::vector<std::int64_t> redacted;                           // seqs
  std::array<std::int64_t, 4> origins{};                        // number of events by origin, 1 … 3
};

class Scanner {
 public:
  Scanner(const Log& log, Findings& findings) : log_(log), findings_(findings) {}
  void take(const EventView& event);
  Span done() { return std::move(span_); }
  Span drain();  // returns the span so far; the next one is chained to it

 private:
  bool check_body(const EventView& event);  // false: the body is erased or does not match its hash
  void check_chain(const EventView& event);
  void tell(const EventView& event, bool body_holds);
  void found(Check check, const EventView& event, std::string expected, std::string actual);

  const Log& log_;
  Findings& findings_;
  Span span_;
  std::string entry_;
};

// Scans the events in [begin, end).
Result<Span> scan(Connection& connection, ArchivedBodies& archive, const Log& log, std::int64_t begin, std::int64_t end,
                  Findings& findings);

}  // namespace muniment::verify
