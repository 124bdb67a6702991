// Derives the history of documents from document.revised, document.retracted, source.revoked and event.redacted in the
// order of the log: the current revision, the event that ended each other one, and the owner of a corpus. An event of
// an indexed run is the only revision of its document. Memory grows with the number of revisions, not of passages.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "verify/log/run_facts.hpp"

namespace muniment::verify {

struct Ends {
  std::optional<std::int64_t> valid_to;
  Text ended_by;
  std::optional<std::int64_t> removed_at;
};

struct Revision {
  std::int64_t seq = -1;
  std::string corpus, document, revision;
  std::vector<std::string> sources;
  Text owner;  // owner of an event of a run; null: the corpus has the owner
  std::int64_t first_chunk = 0;
  std::int64_t chunks = 0;
  bool told = true;     // false: its event has no body, and the facts come from its row
  bool erased = false;  // an event.redacted names it
  std::int64_t chunk_rows = 0;
  Ends ends;                 // ends derived from the log
  std::optional<Ends> held;  // ends in its row; nullopt: there is no row
  std::string left;          // for an event without a body: a column of its row that still holds content
};

struct CorpusFacts {
  std::string owner;
  std::int64_t first_seq = -1;
  std::int64_t last_seq = -1;
};

class CorpusHistory {
 public:
  void revise(Revision revision, const std::string& actor);
  void retract(std::int64_t seq, const std::string& corpus, const std::string& document);
  void revoke(std::int64_t seq, const std::string& source, const Text& owner);
  void erase(std::int64_t seq, std::int64_t erased_seq);
  // Records an event without its body, which may have made any change that its type permits.
  void lose(std::int64_t seq, const std::string& actor) { untold_.emplace(seq, actor); }

  const std::vector<Revision>& revisions() const { return revisions_; }
  const std::map<std::string, CorpusFacts>& corpora() const { return corpora_; }
  // Returns the actor of an event without a body; nullptr: the event has a body.
  const std::string* untold(std::int64_t seq) const;
  // Returns the revision that a pointer names: the current or the newest one among those that have passage `number`.
  const Revision* cited(std::string_view corpus, std::string_view document, std::string_view revision,
                        std::int64_t number) const;
  bool is_erased(std::int64_t seq) const { return erased_.contains(seq); }  // an event.redacted names it
  // Returns whether the name matches several revisions, one of which was erased with its passages.
  bool cites_erased(std::string_view corpus, std::string_view document, std::string_view revision) const;

 private:
  using Places = std::vector<std::size_t>;  // indexes into revisions_
  void end(std::size_t place, std::int64_t seq, std::string_view by);
  void touch(const std::string& corpus, std::int64_t seq);
  const Places* of_document(std::string_view corpus, std::string_view document) const;

  std::vector<Revision> revisions_;
  std::map<std::string, CorpusFacts> corpora_;
  std::unordered_map<std::string, Places> by_document_, by_source_;
  std::unordered_map<std::int64_t, std::size_t> by_seq_;
  std::unordered_map<std::int64_t, std::string> untold_;
  std::unordered_set<std::int64_t> erased_;
};

}  // namespace muniment::verify
