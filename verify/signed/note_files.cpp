#include "verify/signed/note_files.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

#include "base/files/file.hpp"
#include "base/limits.hpp"

namespace muniment::verify {
namespace {

namespace fs = std::filesystem;

Time written_at(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return {};
  return {status.st_mtim.tv_sec * 1'000'000 + status.st_mtim.tv_nsec / 1'000};
}

Result<std::vector<VerifierKey>> keys_of(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, read_named(path, limits::key_file_bytes_max));
  auto keys = parse_verifier_keys(text);
  if (!keys) return std::move(keys).error().within(path);
  if (keys->empty()) return Error(Errc::invalid_argument, path + ": holds no verifier key");
  return keys;
}

Result<KeptNote> note_of(const std::string& path, std::string where) {
  ASSIGN_OR_RETURN(std::string text, read_named(path, limits::note_bytes_max));
  return KeptNote{std::move(where), std::move(text), std::nullopt, written_at(path), false};
}

// Lists the notes of a folder, or of a witness's state, which has a folder with a `checkpoint` for each log.
Result<std::vector<std::string>> note_paths(const std::string& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return std::vector{path};
  std::vector<std::string> paths;
  for (fs::recursive_directory_iterator entry(path, error), end; !error && entry != end; entry.increment(error)) {
    if (entry.depth() > 1) entry.disable_recursion_pending();
    const std::string name = entry->path().filename();
    if (!entry->is_regular_file(error) || name.starts_with('.')) continue;
    // The witness's key is not a note
    if (entry.depth() == 1 ? name != "checkpoint" : name.starts_with("witness.")) continue;
    paths.push_back(entry->path());
    if (paths.size() > limits::notes_per_witness_max) {
      return Error(Errc::too_large, fmt::format("{}: more than {} notes", path, limits::notes_per_witness_max));
    }
  }
  if (error) return Error(Errc::unavailable, fmt::format("{}: {}", path, error.message()));
  std::sort(paths.begin(), paths.end());
  return paths;
}

Status read_places(const NotePlaces& places, KeptFiles& kept) {
  ASSIGN_OR_RETURN(kept.keys, read_keys(places.keys));
  for (const std::string& path : places.checkpoints) {
    ASSIGN_OR_RETURN(kept.notes.emplace_back(), note_of(path, path));
    kept.notes.back().given = true;
  }
  for (const std::string& witness : places.witnesses) {
    ASSIGN_OR_RETURN(const auto paths, note_paths(witness));
    for (const std::string& path : paths) {
      ASSIGN_OR_RETURN(kept.notes.emplace_back(), note_of(path, path));
      kept.notes.back().witness = kept.witnesses.size();
    }
    kept.witnesses.push_back(witness);
  }
  return success();
}

// Reads the notes and keys that the daemon keeps. Unreadable keys are ignored, because a trustworthy public key comes
// from elsewhere.
void read_own(const NotePlaces& places, KeptFiles& kept) {
  const auto unread = [&](const Error& error) {
    if (error.code != Errc::not_found) kept.warnings.push_back(error.message);
  };
  const auto read = [&](const std::string& path, std::string_view where) {
    if (auto kind = no_regular_file(path)) {
      kept.no_files.emplace_back(where, *std::move(kind));
      return false;
    }
    auto note = note_of(path, std::string(where));
    if (note) {
      kept.notes.push_back(*std::move(note));
    } else {
      unread(note.error());
    }
    return note.ok();
  };
  if (!places.tiles.empty()) read(places.tiles + "/checkpoint", published_note);
  if (places.data.empty()) return;
  const std::string folder = places.data + "/keys";
  if (read(folder + "/last_signed", "keys/last_signed")) kept.signs_since = kept.notes.back().kept_at;
  const std::string path = folder + "/log.pub";
  auto keys = keys_of(path);
  if (!keys) return unread(keys.error());
  if (!kept.signs_since) kept.signs_since = written_at(path);
  if (!kept.keys.empty()) return;
  kept.keys = *std::move(keys);
  kept.keys_are_the_logs_own = true;
}

}  // namespace

std::optional<std::string> no_regular_file(const std::string& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0 || S_ISREG(status.st_mode)) return std::nullopt;
  return S_ISLNK(status.st_mode)    ? "a link"
         : S_ISDIR(status.st_mode)  ? "a folder"
         : S_ISFIFO(status.st_mode) ? "a FIFO"
         : S_ISSOCK(status.st_mode) ? "a socket"
                                    : "a device";
}

Result<std::vector<VerifierKey>> read_keys(const std::vector<std::string>& paths) {
  std::vector<VerifierKey> all;
  for (const std::string& path : paths) {
    ASSIGN_OR_RETURN(const auto keys, keys_of(path));
    all.insert(all.end(), keys.begin(), keys.end());
  }
  return all;
}

Result<KeptFiles> read_kept_files(const NotePlaces& places) {
  KeptFiles kept;
  RETURN_IF_ERROR(read_places(places, kept));
  read_own(places, kept);
  return kept;
}

}  // namespace muniment::verify
