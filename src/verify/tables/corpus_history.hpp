// What becomes of documents: which revision is current, what ended the others, and who owns a corpus, as it
// follows from document.revised, document.retracted, source.revoked and event.redacted in the order of the log.
// An event of an indexed run is a revision of a document that has no other. Its memory grows with the number of
// revisions, not of passages.
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
  Text owner;  // of an event of a run, which has it of its own; null: the corpus has
  std::int64_t first_chunk = 0;
  std::int64_t chunks = 0;
  bool told = true;     // false: its event has no body, and this is what its row says
  bool erased = false;  // an event.redacted names it
  std::int64_t chunk_rows = 0;
  Ends ends;                 // as they follow from the log
  std::optional<Ends> held;  // as its row has them; none: there is no row
  std::string left;          // of an event without a body: the column of its row that still says something
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
  // An event without its body: it may have changed anything that its kind changes.
  void lose(std::int64_t seq, const std::string& actor) { untold_.emplace(seq, actor); }

  const std::vector<Revision>& revisions() const { return revisions_; }
  const std::map<std::string, CorpusFacts>& corpora() const { return corpora_; }
  // The actor of an event without a body; nullptr: it has one.
  const std::string* untold(std::int64_t seq) const;
  // The revision that a pointer names: the current one or the newest, of those that have passage `number`.
  const Revision* cited(std::string_view corpus, std::string_view document, std::string_view revision,
                        std::int64_t number) const;
  bool is_erased(std::int64_t seq) const { return erased_.contains(seq); }  // an event.redacted names it
  // A revision that is one of several with this name, whose passages were erased.
  bool cites_erased(std::string_view corpus, std::string_view document, std::string_view revision) const;

 private:
  using Places = std::vector<std::size_t>;  // in revisions_
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
