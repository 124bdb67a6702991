// Encodes the bodies of 256 consecutive events in one archive file, which accompanies the bundle of their entries
// (docs/format.md, Archive). Each item holds the `salt` and `body` of an event's row.
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

// For the events 256·n to 256·n + 255, in order; nullopt: erased.
using BodyBundle = std::vector<std::optional<ArchivedBody>>;

// Returns the bytes of the file. `bundle` must have 256 items with bodies of at most 61,440 bytes.
std::string encode_bodies(const BodyBundle& bundle);

// Errors: corrupt unless `encode_bodies` could have produced the file, apart from the compression.
Result<BodyBundle> decode_bodies(std::string_view file);

// Path relative to the archive: "bodies/x001/234/067".
std::string bodies_path(std::int64_t index);

// Reads the file of these bodies in an archive. Errors, all with the path: not_found; corrupt if the file is malformed;
// as read_file.
Result<BodyBundle> read_bodies(const std::string& archive, std::int64_t index);

}  // namespace muniment
