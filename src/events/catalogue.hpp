// The catalogue of event types: the writer of each, and the schema of its body. A core type has a schema in
// schema/event/, a row here and a golden pair; a type named x.<vendor>.<name> belongs to the client and is opaque.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

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

struct TypeInfo {
  std::string_view name;
  Type type;
  std::int16_t schema_version;
  Writer writer;
  std::string_view written_by;  // the method that writes it, daemon_itself or reserved
  Admits admits;
};

std::span<const TypeInfo> catalogue();

// Returns nullptr if the name is not a core type.
const TypeInfo* find_type(std::string_view name);
Type type_named(std::string_view name);  // returns Type::foreign if the name is not a core type
inline constexpr std::string_view foreign_prefix = "x.";
bool is_foreign(std::string_view name);  // true for a well-formed x.<vendor>.<name>

// Checks that event.append accepts `type` from a client. Errors: invalid_argument for an unknown core name (with the
// nearest one) or a malformed own name, denied for a type that the daemon writes.
Status check_client_may_write(std::string_view type);

// Validates `body` against the schema of a core type; a foreign body has to be an object. Errors: invalid_argument.
Status check_body(std::string_view type, const json::Value& body);

// Seals an event that the daemon itself made. Builds with failpoints validate its body first and abort the process on a
// mismatch, so every test also checks the daemon's own events.
void seal_own(NewEvent& event);

}  // namespace muniment::events
