// Provides the text of an event as one span of bytes: its parts (events/readable_text.hpp), separated by blank lines.
// Spilled parts are read from their files on demand, only the requested span.
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

// Limit of the indexed text; the rest has no passages. The limit exists because a run's output is not a document that a
// user selected.
inline constexpr std::int64_t event_text_bytes_max = 2 << 20;

class EventText {
 public:
  struct Part {
    std::string text;
    std::optional<StoredFile> file;  // holds the text instead
    std::int64_t size_bytes = 0;
  };
  EventText(events::ReadableText about, std::vector<Part> parts);

  const std::string& name() const { return about_.name; }
  bool failed() const { return about_.failed; }
  std::int64_t size_bytes() const { return size_bytes_; }

  // Returns the bytes [from, to). Errors and `difference` are those of files; invalid_argument past the end.
  Result<std::string> read(ArtifactFiles& files, std::int64_t from, std::int64_t to,
                           Difference* difference = nullptr) const;
  // Returns the indexed text: all of it, or whole characters of the first event_text_bytes_max bytes.
  Result<std::string> indexed(ArtifactFiles& files) const;

 private:
  events::ReadableText about_;  // without its parts
  std::vector<Part> parts_;     // parts and the separators between them
  std::int64_t size_bytes_ = 0;
};

}  // namespace muniment::store
