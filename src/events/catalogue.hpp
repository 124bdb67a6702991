// The catalogue of event types: who may write each, and what its body must look like. A core type
// is a schema in schema/event/, a row here and a golden pair; anything named x.<vendor>.<name> is
// the client's own and opaque.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/json/json.hpp"
#include "base/result.hpp"
#include "events/event.hpp"

namespace muniment::events {

enum class Type : std::uint8_t;  // one enumerator a core type, and `foreign` for x.…; catalogue_types.hpp

enum class Writer : std::uint8_t {
  client,  // event.append takes it
  daemon,  // its own method writes it; event.append answers denied and names the method
};

// In which states a run takes the type, beside what docs/format.md (Life of a run) says of
// run.started, which begins a run, and of artifact.stored, which may come with a snapshot.
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

// `written_by` of what no method writes.
inline constexpr std::string_view daemon_itself = "munimentd";
// `written_by` of what nothing writes: the name is kept for what is to come.
inline constexpr std::string_view reserved = "reserved";

struct TypeInfo {
  std::string_view name;
  Type type;
  std::int16_t schema_version;
  Writer writer;
  std::string_view written_by;  // the method that writes it, daemon_itself or reserved
  Admits admits;
};

std::span<const TypeInfo> catalogue();

// nullptr: not a core type.
const TypeInfo* find_type(std::string_view name);
Type type_named(std::string_view name);  // Type::foreign for all that is not a core type
inline constexpr std::string_view foreign_prefix = "x.";
bool is_foreign(std::string_view name);  // well-formed x.<vendor>.<name>

// Is `type` one that event.append accepts from a client? Errors: invalid_argument for an unknown
// core name (naming the nearest) or a malformed own one, denied for the daemon's.
Status check_client_may_write(std::string_view type);

// Holds `body` against the schema of a core type; foreign bodies need only be objects.
Status check_body(std::string_view type, const json::Value& body);

// Seals an event that the daemon itself made. In builds with failpoints its body is held against its schema first, and
// one that does not fit ends the process: every test of every path is a test of what the daemon says there.
void seal_own(NewEvent& event);

}  // namespace muniment::events
