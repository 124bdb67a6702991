// The journal of one erasure: the decided plan, written to disk before anything changes. It has ids, paths and the
// reason, but none of the erased content.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/ids.hpp"
#include "base/result.hpp"
#include "store/logs/erasure.hpp"

namespace muniment::audit {

struct RedactionJournal {
  Uuid id;
  Uuid request;  // id of the named content; a different id marks a copy in a corpus
  std::int64_t run_no = -1;
  std::string run_id;
  std::vector<std::int64_t> seqs;
  std::vector<store::ErasedArtifact> artifacts;
  std::string reason;
  std::string legal_basis;
  std::string by;

  std::string file(const std::string& folder) const { return folder + "/" + id.text() + ".json"; }
  std::string text() const;
  static Result<RedactionJournal> parse(std::string_view text);

  // The events that announce it, in order, with their types, bodies and ids. A repetition uses the same ids.
  struct Announcement {
    std::string_view type;
    std::string body;
    Uuid event_id;
  };
  std::vector<Announcement> announcements() const;
};

// Returns the journals in the folder, oldest first, and removes drafts. Errors: corrupt, naming the file.
Result<std::vector<RedactionJournal>> read_redaction_journals(const std::string& folder);

}  // namespace muniment::audit
