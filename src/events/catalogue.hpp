// The catalogue of event types: who may write each, and what its body must look like. A core type
// is a schema in schema/event/, a row here and a golden pair; anything named x.<vendor>.<name> is
// the client's own and opaque.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/json.hpp"
#include "base/result.hpp"

namespace muniment::events {

enum class Type : std::uint8_t;  // one enumerator a core type, and `foreign` for x.…; catalogue_types.hpp

enum class Writer : std::uint8_t {
  client,  // event.append takes it
  daemon,  // its own method writes it; event.append answers denied and names the method
};

// What a run in a state other than open still takes (docs/format.md, Life of a run).
enum class Admits : std::uint8_t { open_only, halted, ended_and_halted };

struct TypeInfo {
  std::string_view name;
  Type type;
  std::int16_t schema_version;
  Writer writer;
  std::string_view written_by;  // the method that writes it, for the error text
  Admits admits;
};

std::span<const TypeInfo> catalogue();

// nullptr: not a core type.
const TypeInfo* find_type(std::string_view name);
bool is_foreign(std::string_view name);  // well-formed x.<vendor>.<name>

// Is `type` one that event.append accepts from a client? Errors: invalid_argument for an unknown
// core name (naming the nearest) or a malformed own one, denied for the daemon's.
Status check_client_may_write(std::string_view type);

// Holds `body` against the schema of a core type; foreign bodies need only be objects.
Status check_body(std::string_view type, const json::Value& body);

}  // namespace muniment::events
