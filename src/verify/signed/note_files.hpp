// Keys and checkpoints that are kept outside the database, as they lie there: by the daemon in its data folder, by
// auditors, by witnesses. They are read before the database's snapshot is taken: the daemon signs what is committed,
// so that a log which is smaller than one of them was cut.
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
  std::optional<std::size_t> witness;  // which of KeptFiles::witnesses keeps it
  Time kept_at;                        // when its file was last written
  bool given = false;                  // by the command line, as a checkpoint
};

// What the command line names.
struct NotePlaces {
  std::string data;                      // the data folder; empty: there is none
  std::string tiles;                     // the tiles folder; empty: there is none
  std::vector<std::string> keys;         // files of vkeys
  std::vector<std::string> checkpoints;  // files
  std::vector<std::string> witnesses;    // files, or folders of them
};

struct KeptFiles {
  std::vector<VerifierKey> keys;
  bool keys_are_the_logs_own = false;  // from <data>/keys/log.pub: they prove nothing against whoever has the folder
  std::optional<Time> signs_since;     // a key file or a signature is there since then
  std::vector<KeptNote> notes;
  std::vector<std::string> witnesses;  // as the command line names them
  std::vector<std::string> warnings;
  std::vector<std::pair<std::string, std::string>>
      no_files;  // where the daemon keeps a note, and what is there instead: "a link"
};

// "a link", "a folder": what is there and is no regular file; nullopt: one, or nothing.
std::optional<std::string> no_regular_file(const std::string& path);

// The keys of these files. Errors: invalid_argument for what is no key, or a file without one.
Result<std::vector<VerifierKey>> read_keys(const std::vector<std::string>& paths);

// Errors: what is named on the command line and cannot be read.
Result<KeptFiles> read_kept_files(const NotePlaces& places);

}  // namespace muniment::verify
