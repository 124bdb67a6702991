// The text of an event, as one span of bytes: its parts (events/readable_text.hpp) with a blank line between them,
// wherever they lie. Parts that were spilled are read out of their files when they are asked for, and only as much as
// is asked for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "events/readable_text.hpp"
#include "store/files/artifact_files.hpp"

namespace muniment::store {

// Of a text as it is indexed; what comes after has no passages. It is a run's output, not a document that somebody
// chose.
inline constexpr std::int64_t event_text_bytes_max = 2 << 20;

class EventText {
 public:
  struct Part {
    std::string text;
    std::optional<StoredFile> file;  // that holds it instead
    std::int64_t size_bytes = 0;
  };
  EventText(events::ReadableText about, std::vector<Part> parts);

  const std::string& name() const { return about_.name; }
  bool failed() const { return about_.failed; }
  std::int64_t size_bytes() const { return size_bytes_; }

  // Bytes from … to-1. Errors and `difference` as the files have them; invalid_argument past its end.
  Result<std::string> read(ArtifactFiles& files, std::int64_t from, std::int64_t to,
                           Difference* difference = nullptr) const;
  // What is indexed: all of it, or whole characters of the first event_text_bytes_max bytes.
  Result<std::string> indexed(ArtifactFiles& files) const;

 private:
  events::ReadableText about_;  // without its parts
  std::vector<Part> parts_;     // and the separators between them
  std::int64_t size_bytes_ = 0;
};

}  // namespace muniment::store
