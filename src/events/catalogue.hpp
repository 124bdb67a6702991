// The catalogue of event types: the writer of each, the schema of its body, and who else needs the fact: the stop rule,
// timelines, views, imports, derived tables. A core type has a schema in schema/event/, a row here and a golden pair; a
// type named x.<vendor>.<name> belongs to the client and is opaque.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json/json.hpp"
#include "base/result.hpp"
#include "events/event.hpp"

namespace muniment::events {

enum class Type : std::uint8_t;  // one enumerator per core type, and `foreign` for x.…; catalogue_types.hpp

enum class Writer : std::uint8_t {
  client,  // event.append accepts it from clients
  daemon,  // only its own method writes it; event.append returns denied and names the method
};

// The states in which a run accepts the type. Exceptions are in docs/format.md (Life of a run): run.started begins a
// run, and artifact.stored may come with a snapshot.
enum class Admits : std::uint8_t {
  open_only = 1,
  ended = 1 | 2,   // open or ended
  halted = 1 | 4,  // open or halted
  not_open = 2 | 4,
  ended_and_halted = 1 | 2 | 4,
};
constexpr bool admits_open(Admits admits) { return (static_cast<int>(admits) & 1) != 0; }
constexpr bool admits_ended(Admits admits) { return (static_cast<int>(admits) & 2) != 0; }
constexpr bool admits_halted(Admits admits) { return (static_cast<int>(admits) & 4) != 0; }

// `written_by` of types that no method writes.
inline constexpr std::string_view daemon_itself = "munimentd";
// `written_by` of types that nothing writes yet: the name is reserved.
inline constexpr std::string_view reserved = "reserved";

// Kinds of stored content that a member of a body names. `entries`: the stored manifest with this id, whose entries
// name passages and files.
enum class Names : std::uint8_t { artifact, pointer, evidence, manifest, entries };

// A member that names stored content. `at` is a JSON pointer in which "*" stands for every item of a list.
struct Rest {
  std::string_view at;
  Names names{};
};

// The members of a type, in the order of the table.
class RestsOn {
 public:
  constexpr RestsOn(std::initializer_list<Rest> members = {}) {
    for (const Rest& member : members) members_[size_++] = member;
  }
  constexpr const Rest* begin() const { return members_.data(); }
  constexpr const Rest* end() const { return members_.data() + size_; }
  constexpr bool empty() const { return size_ == 0; }

 private:
  std::array<Rest, 4> members_{};
  std::size_t size_ = 0;
};

// Importance of an event's line in a timeline.
enum class Weight : std::uint8_t { quiet, normal, error, loud };

// The line of an event: a glyph of one column, and two texts in which {name} or {a.b} stands for a member of the body
// and {#name} for the number of its items. A type whose line depends on values has a function in cli/show/describe.cpp.
struct Line {
  Weight weight = Weight::quiet;
  std::string_view glyph, head, tail{};
};

// How an import of an export treats an event.
enum class Replay : std::uint8_t {
  appended,  // unchanged, with the ids of the new run
  recorded,  // recreated by its method
  by_run,    // written by the daemon when the import starts and ends the run
  omitted,   // counted, and left out
};

// One row for each type: who writes it, and how the fact is carried through. docs/events.md prints the table.
struct TypeInfo {
  std::string_view name;
  Type type;
  std::int16_t schema_version;
  Writer writer;
  std::string_view written_by;  // the method that writes it, daemon_itself or reserved
  Admits admits;
  RestsOn rests_on;
  // claim, evidence or manifest: what the event rests on is critical, and the stop rule watches it. Empty: it is not.
  std::string_view critical_for;
  Line line;
  std::string_view views;  // views of schema `report` beside event_log, separated by blanks
  Replay replay;
  std::string_view tables;  // tables that follow it beside report_run, which counts every event of a run
  // Reasons for empty cells: "rests: …; view: …; import: …; table: …".
  std::string_view because;

  bool has_view(std::string_view view) const;
  bool has_table(std::string_view table) const;
  std::string_view reason_for(std::string_view cell) const;  // empty: none
};

std::span<const TypeInfo> catalogue();

// Returns nullptr if the name is not a core type.
const TypeInfo* find_type(std::string_view name);
Type type_named(std::string_view name);  // returns Type::foreign if the name is not a core type
inline constexpr std::string_view foreign_prefix = "x.";
bool is_foreign(std::string_view name);  // true for a well-formed x.<vendor>.<name>

// The names of the types for which `wanted` holds, in order.
std::vector<std::string> types_where(const std::function<bool(const TypeInfo&)>& wanted);

// Calls `take` with every text in the body that names stored content, in the order of the row's members.
void each_named(const TypeInfo& type, const json::Value& body,
                const std::function<void(Names names, const std::string& text)>& take);

// Checks that event.append accepts `type` from a client. Errors: invalid_argument for an unknown core name (with the
// nearest one) or a malformed own name, denied for a type that the daemon writes.
Status check_client_may_write(std::string_view type);

// Validates `body` against the schema of a core type; a foreign body has to be an object. Errors: invalid_argument.
Status check_body(std::string_view type, const json::Value& body);

// Seals an event that the daemon itself made. Builds with failpoints validate its body first and abort the process on a
// mismatch, so every test also checks the daemon's own events.
void seal_own(NewEvent& event);

}  // namespace muniment::events
