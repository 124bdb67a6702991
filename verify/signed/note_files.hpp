// Reads keys and checkpoints that are stored outside the database: by the daemon in its data folder, by auditors and by
// witnesses. They must be read before the database snapshot is taken. The daemon signs only committed events, so a log
// smaller than one of these checkpoints was truncated.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/crypto/signed_note.hpp"
#include "base/result.hpp"

namespace muniment::verify {

inline constexpr std::string_view published_note = "tiles/checkpoint";

struct KeptNote {
  std::string where;
  std::string text;
  std::optional<std::size_t> witness;  // index into KeptFiles::witnesses
  Time kept_at;                        // modification time of its file
  bool given = false;                  // named on the command line as a checkpoint
};

// Places named on the command line.
struct NotePlaces {
  std::string data;                      // the data folder; empty: none
  std::string tiles;                     // the tiles folder; empty: none
  std::vector<std::string> keys;         // files of vkeys
  std::vector<std::string> checkpoints;  // files
  std::vector<std::string> witnesses;    // files, or folders of them
};

struct KeptFiles {
  std::vector<VerifierKey> keys;
  // The keys are from <data>/keys/log.pub, and prove nothing against an attacker who can write the folder.
  bool keys_are_the_logs_own = false;
  std::optional<Time> signs_since;  // time of the oldest key file or signature
  std::vector<KeptNote> notes;
  std::vector<std::string> witnesses;  // witnesses as named on the command line
  std::vector<std::string> warnings;
  std::vector<std::pair<std::string, std::string>>
      no_files;  // places of notes that are not regular files, with their kinds: "a link"
};

// Returns the kind of a file that is not regular: "a link", "a folder"; nullopt if it is regular or absent.
std::optional<std::string> no_regular_file(const std::string& path);

// Reads the keys of these files. Errors: invalid_argument for a malformed key or a file without a key.
Result<std::vector<VerifierKey>> read_keys(const std::vector<std::string>& paths);

// Reads the keys and notes. Errors: if a file named on the command line cannot be read.
Result<KeptFiles> read_kept_files(const NotePlaces& places);

}  // namespace muniment::verify
