// Reads and hashes a file that may become a document, and checks that it did not change during the read.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <string>

#include "base/clock.hpp"
#include "base/crypto/sha256.hpp"
#include "base/files/file.hpp"

namespace muniment::cli {

// Result for a file: a document, skipped for a harmless reason, or failed.
enum class Fate : std::uint8_t { document, skipped, failed };

struct FileCandidate {
  Fate fate = Fate::document;
  std::string why;  // reason if the file is not a document
  Fd fd;
  struct stat status {};  // status during the read
  Hash hash{};            // hash of its bytes
  std::string text;  // the whole text if it is UTF-8 and fits a request; otherwise empty, and the bytes are uploaded
  bool inlined = false;

  std::int64_t size() const { return status.st_size; }
  Time modified() const;
};

// Reads the file `name` in `folder`. A link is followed only if the caller named it. A file that changes during the
// read is read once more; after a second change it fails.
FileCandidate read_candidate(int folder, const std::string& name, bool follow);

// Returns whether the open file is unchanged since the read.
bool held_still(const FileCandidate& candidate);

}  // namespace muniment::cli
