// Reads one span of the log and checks what can be checked without its neighbours: body hashes, and
// entry → run_hash and leaf for every event whose predecessor in its run is in the same span. Spans
// are scanned by several threads; history.hpp joins them in order.
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

// Which log, and as far as it is verified.
struct Log {
  std::int64_t log_no = 0;
  Uuid log_id;
  std::int64_t from = 0;   // the first seq that is read: what was verified before is not
  std::int64_t upto = -1;  // the last seq; -1: no events
  std::int64_t events_per_partition = 0;
  bool archived = false;          // some of its partitions
  std::int64_t run_no_known = 0;  // runs up to this one began before `from`
  std::unordered_map<std::int64_t, std::string> run_ids;
  // Whether queries find what happens in a run, by run_no; nullopt: its run.started was erased. The others are not
  // indexed.
  std::unordered_map<std::int64_t, std::optional<bool>> indexed;

  const std::string& run_id(std::int64_t run_no) const;  // "?" for a run without a first event
};

// What a type means for the life of a run.
enum class Life : std::uint8_t {
  started,
  ended,
  halted,
  resumed,
  stored,    // artifact.stored: in a stopped run only right before its snapshot
  snapshot,  // snapshot.taken
  always,    // may come whatever the run's state
  other,     // only while the run is open
};
Life life_of(std::string_view type);

struct SeenEvent {
  std::int64_t seq = 0;
  std::int64_t run_no = 0;
  std::int64_t run_seq = 0;
  Hash leaf{};
  Life life = Life::other;
};

// An event whose predecessor is in an earlier span: its hashes wait for that one's run_hash.
struct Waiting {
  std::size_t index = 0;  // in Span::events
  std::string before;     // the entry up to the previous run_hash
  std::string body_hash;
  std::string run_hash;
};

// An event that says what a row beside the log must hold. Its body is what was hashed.
struct Telling {
  std::size_t index = 0;  // in Span::events
  Time recorded_at;
  std::int64_t origin = 0;
  std::string type;
  std::optional<std::string> step_id;
  std::string actor;
  bool redacted = false;  // or not what was hashed: nothing can be concluded from it
  std::string body;
  std::string body_hash;  // its 32 bytes
  std::optional<Time> occurred_at;

  std::string_view json() const { return redacted ? std::string_view("{}") : std::string_view(body); }
};

struct Span {
  std::vector<SeenEvent> events;
  std::vector<Waiting> waiting;
  std::vector<Telling> telling;
  std::unordered_map<std::int64_t, std::string> last_run_hash;  // by run_no
  std::vector<std::int64_t> redacted;                           // seqs
  std::array<std::int64_t, 4> origins{};                        // events by origin, 1 … 3
};

class Scanner {
 public:
  Scanner(const Log& log, Findings& findings) : log_(log), findings_(findings) {}
  void take(const EventView& event);
  Span done() { return std::move(span_); }
  Span drain();  // what was taken so far; more may follow, chained to it

 private:
  bool check_body(const EventView& event);  // false: the body is erased, or is not what was hashed
  void check_chain(const EventView& event);
  void tell(const EventView& event, bool body_holds);
  void found(Check check, const EventView& event, std::string expected, std::string actual);

  const Log& log_;
  Findings& findings_;
  Span span_;
  std::string entry_;
};

// The events from `begin` to before `end`.
Result<Span> scan(Connection& connection, ArchivedBodies& archive, const Log& log, std::int64_t begin, std::int64_t end,
                  Findings& findings);

}  // namespace muniment::verify
