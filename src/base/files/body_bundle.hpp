// The bodies of 256 neighbouring events in one file of an archive, beside the bundle of their
// entries (docs/format.md, Archive): what an event's row says under `salt` and `body`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/crypto/sha256.hpp"
#include "base/result.hpp"

namespace muniment {

struct ArchivedBody {
  Salt salt{};
  std::string body;
  friend bool operator==(const ArchivedBody&, const ArchivedBody&) = default;
};

// Of the events 256·n to 256·n + 255, in order; nullopt: erased.
using BodyBundle = std::vector<std::optional<ArchivedBody>>;

// The file's bytes. `bundle` has 256 items, each body at most 61,440 bytes.
std::string encode_bodies(const BodyBundle& bundle);

// Errors: corrupt for anything that `encode_bodies` does not make, up to the compression.
Result<BodyBundle> decode_bodies(std::string_view file);

// Below the archive: "bodies/x001/234/067".
std::string bodies_path(std::int64_t index);

// The file of these bodies in an archive. Errors: not_found; corrupt for what is not one; as read_file. All name the
// path.
Result<BodyBundle> read_bodies(const std::string& archive, std::int64_t index);

}  // namespace muniment
