#include "audit/witness/held_checkpoint.hpp"

#include <filesystem>
#include <functional>
#include <set>
#include <system_error>

#include <fmt/format.h>

#include "base/crypto/sha256.hpp"
#include "base/files/file.hpp"
#include "base/http.hpp"
#include "base/limits.hpp"

namespace muniment::audit {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::milliseconds asked_at_most{5'000};
constexpr std::size_t notes_read_max = 64;

// Returns the checkpoint of a note by one of the keys; nullopt for other notes.
std::optional<Checkpoint> signed_checkpoint(std::string_view text, std::span<const VerifierKey> keys) {
  const auto note = Note::parse(text);
  if (!note) return std::nullopt;
  const auto signers = signers_of(*note, keys);
  auto checkpoint = Checkpoint::parse(note->text);
  if (!signers || signers->empty() || !checkpoint || checkpoint->origin != signers->front().key->name)
    return std::nullopt;
  return *std::move(checkpoint);
}

// The names of notes are their sizes, so that the last name is that of the newest. A folder may hold millions.
Result<std::optional<Checkpoint>> in_folder(const std::string& folder, std::span<const VerifierKey> keys) {
  std::set<std::string, std::greater<>> names;
  std::error_code failed;
  for (fs::directory_iterator file(folder, failed), end; !failed && file != end; file.increment(failed)) {
    if (file->path().extension() != ".note") continue;
    names.insert(file->path().string());
    if (names.size() > notes_read_max) names.erase(std::prev(names.end()));
  }
  if (failed) return Error(Errc::unavailable, fmt::format("reading {}: {}", folder, failed.message()));
  for (const std::string& name : names) {
    const auto text = read_file(name, limits::note_bytes_max);
    if (!text) continue;
    if (auto checkpoint = signed_checkpoint(*text, keys)) return checkpoint;
  }
  if (names.size() == notes_read_max)
    return Error(Errc::corrupt,
                 fmt::format("the last {} notes in {} are not signed by this log", names.size(), folder));
  return std::optional<Checkpoint>();
}

Result<std::optional<Checkpoint>> at_witness(const Keeper& keeper, std::span<const VerifierKey> keys) {
  std::optional<Checkpoint> newest;
  std::string asked;
  for (const VerifierKey& key : keys) {
    if (key.name == asked) continue;  // the keys of one log have one name
    asked = key.name;
    HttpRequest request;
    request.url =
        fmt::format("{}/{}/checkpoint", keeper.unix_socket ? "http://witness" : keeper.where, to_hex(sha256(key.name)));
    if (keeper.unix_socket) request.unix_socket = keeper.where;
    request.timeout = asked_at_most;
    ASSIGN_OR_RETURN(const HttpAnswer answer, send_http(request));
    if (answer.status == 404) continue;
    if (answer.status != 200) return Error(Errc::unavailable, fmt::format("the witness answered {}", answer.status));
    auto held = signed_checkpoint(answer.body, keys);
    if (held && (!newest || held->size > newest->size)) newest = std::move(held);
  }
  return newest;
}

}  // namespace

Result<std::optional<Checkpoint>> held_checkpoint(const Keeper& keeper, std::span<const VerifierKey> keys) {
  switch (keeper.kind) {
    case KeeperKind::folder: return in_folder(keeper.where, keys);
    case KeeperKind::witness: return at_witness(keeper, keys);
    case KeeperKind::bucket: break;  // only written
  }
  return std::optional<Checkpoint>();
}

}  // namespace muniment::audit
