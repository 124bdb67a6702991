#include "base/files/body_bundle.hpp"

#include <algorithm>

#include "base/files/file.hpp"
#include "base/files/zstd.hpp"
#include "base/limits.hpp"
#include "base/tile_path.hpp"

namespace muniment {
namespace {

constexpr std::string_view magic = "muniment-bodies/1\n";
constexpr char erased = 0;
constexpr char present = 1;
constexpr std::size_t length_bytes = 4;
constexpr std::size_t bundle_bytes_max =
    magic.size() +
    static_cast<std::size_t>(tile_width) * (1 + sizeof(Salt) + length_bytes + limits::event_body_bytes_max);

constexpr std::size_t file_bytes_max = 2 * bundle_bytes_max;  // incompressible data grows only slightly

// Removes the first `size` bytes and returns them; nullopt if there are fewer.
std::optional<std::string_view> take_front(std::string_view& rest, std::size_t size) {
  if (rest.size() < size) return std::nullopt;
  const std::string_view taken = rest.substr(0, size);
  rest.remove_prefix(size);
  return taken;
}

std::optional<ArchivedBody> take_body(std::string_view& rest) {
  const auto salt = take_front(rest, sizeof(Salt));
  const auto length = take_front(rest, length_bytes);
  if (!salt || !length) return std::nullopt;
  std::size_t size = 0;
  for (const char byte : *length) size = size << 8 | static_cast<unsigned char>(byte);
  const auto body = size > limits::event_body_bytes_max ? std::nullopt : take_front(rest, size);
  if (!body) return std::nullopt;
  ArchivedBody out;
  std::copy(salt->begin(), salt->end(), out.salt.begin());
  out.body = *body;
  return out;
}

}  // namespace

std::string encode_bodies(const BodyBundle& bundle) {
  std::string bytes(magic);
  for (const std::optional<ArchivedBody>& event : bundle) {
    bytes += event ? present : erased;
    if (!event) continue;
    bytes += view(event->salt);
    for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(event->body.size() >> shift & 0xff);
    bytes += event->body;
  }
  return compress(bytes);
}

Result<BodyBundle> decode_bodies(std::string_view file) {
  ASSIGN_OR_RETURN(const std::string bytes, decompress(file, bundle_bytes_max));
  std::string_view rest = bytes;
  if (take_front(rest, magic.size()) != magic) return Error(Errc::corrupt, "not a bundle of bodies");
  BodyBundle bundle;
  while (!rest.empty()) {
    const char kind = take_front(rest, 1)->front();
    if (kind != erased && kind != present) return Error(Errc::corrupt, "unknown kind of a body");
    auto body = kind == present ? take_body(rest) : std::nullopt;
    if (kind == present && !body) return Error(Errc::corrupt, "a body is cut off or too long");
    bundle.push_back(std::move(body));
  }
  if (bundle.size() != static_cast<std::size_t>(tile_width)) {
    return Error(Errc::corrupt, "it has " + std::to_string(bundle.size()) + " bodies, not 256");
  }
  return bundle;
}

std::string bodies_path(std::int64_t index) { return "bodies/" + numbered_path(index); }

Result<BodyBundle> read_bodies(const std::string& archive, std::int64_t index) {
  const std::string path = archive + "/" + bodies_path(index);
  ASSIGN_OR_RETURN(const std::string bytes, read_file(path, file_bytes_max));
  auto bundle = decode_bodies(bytes);
  if (!bundle) return std::move(bundle).error().within(path);
  return bundle;
}

}  // namespace muniment
