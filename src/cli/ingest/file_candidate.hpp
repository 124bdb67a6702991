// A file that may become a document: read once, hashed, and known to have held still meanwhile.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <string>

#include "base/clock.hpp"
#include "base/crypto/sha256.hpp"
#include "base/files/file.hpp"

namespace muniment::cli {

// What becomes of a file: a document; left alone with a reason that nobody needs to worry about; or not, and somebody
// should.
enum class Fate : std::uint8_t { document, skipped, failed };

struct FileCandidate {
  Fate fate = Fate::document;
  std::string why;  // where it is no document
  Fd fd;
  struct stat status {};  // as it was while it was read
  Hash hash{};            // of its bytes
  std::string text;       // all of it, where it is UTF-8 and fits into a request; otherwise its bytes go another way
  bool inlined = false;

  std::int64_t size() const { return status.st_size; }
  Time modified() const;
};

// The file `name` in `folder`; a link is followed only where the caller named it. A file that changes while it is read
// is read once more, and then it has failed.
FileCandidate read_candidate(int folder, const std::string& name, bool follow);

// Whether the open file is still what was read.
bool held_still(const FileCandidate& candidate);

}  // namespace muniment::cli
