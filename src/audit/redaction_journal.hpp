// The journal of one erasure: what was decided, on disk before anything changes. It has ids and
// paths and the reason, nothing of what is erased.
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
  Uuid request;  // the id of what was named; another one is what corpora made of it
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

  // The events that announce it, in order: their types, bodies and ids, which a repetition makes again.
  struct Announcement {
    std::string_view type;
    std::string body;
    Uuid event_id;
  };
  std::vector<Announcement> announcements() const;
};

// Those that the folder holds, oldest first; drafts are removed. Errors: corrupt, naming the file.
Result<std::vector<RedactionJournal>> read_redaction_journals(const std::string& folder);

}  // namespace muniment::audit
