#include "verify/tables/corpus_history.hpp"

#include <algorithm>

namespace muniment::verify {
namespace {

// The name of a corpus contains no slash.
std::string key_of(std::string_view corpus, std::string_view document) {
  return std::string(corpus) + "/" + std::string(document);
}

}  // namespace

void CorpusHistory::revise(Revision revision, const std::string& actor) {
  if (!revision.owner) {
    CorpusFacts& corpus = corpora_[revision.corpus];
    if (corpus.first_seq < 0) corpus = {actor, revision.seq, revision.seq};
    corpus.last_seq = revision.seq;
  }
  Places& places = by_document_[key_of(revision.corpus, revision.document)];
  if (!places.empty()) end(places.back(), revision.seq, "revised");  // only the newest revision can be current
  const std::size_t place = revisions_.size();
  places.push_back(place);
  for (const std::string& source : revision.sources) by_source_[source].push_back(place);
  by_seq_.emplace(revision.seq, place);
  revisions_.push_back(std::move(revision));
}

void CorpusHistory::retract(std::int64_t seq, const std::string& corpus, const std::string& document) {
  const auto places = by_document_.find(key_of(corpus, document));
  if (places != by_document_.end()) end(places->second.back(), seq, "retracted");
  touch(corpus, seq);
}

void CorpusHistory::revoke(std::int64_t seq, const std::string& source, const Text& owner) {
  const auto places = by_source_.find(source);
  if (places == by_source_.end()) return;
  for (const std::size_t place : places->second) {
    Revision& revision = revisions_[place];
    if (revision.ends.removed_at ||
        (owner && (revision.owner ? *revision.owner : corpora_[revision.corpus].owner) != *owner))
      continue;
    end(place, seq, "revoked");
    revision.ends.removed_at = seq;
    touch(revision.corpus, seq);
  }
}

void CorpusHistory::erase(std::int64_t seq, std::int64_t erased_seq) {
  erased_.insert(erased_seq);
  const auto found = by_seq_.find(erased_seq);
  if (found == by_seq_.end()) return;
  Revision& revision = revisions_[found->second];
  revision.erased = true;
  end(found->second, seq, "erased");
  revision.ends.ended_by = "erased";
  revision.ends.removed_at = seq;
  touch(revision.corpus, seq);
}

const std::string* CorpusHistory::untold(std::int64_t seq) const {
  const auto found = untold_.find(seq);
  return found == untold_.end() ? nullptr : &found->second;
}

const Revision* CorpusHistory::cited(std::string_view corpus, std::string_view document, std::string_view revision,
                                     std::int64_t number) const {
  const Places* const places = of_document(corpus, document);
  if (places == nullptr || number < 0) return nullptr;
  const Revision* newest = nullptr;
  for (const std::size_t place : *places) {
    const Revision& other = revisions_[place];
    if (other.revision != revision || other.erased || number >= other.chunks) continue;
    if (!other.ends.valid_to) return &other;
    newest = &other;
  }
  return newest;
}

bool CorpusHistory::cites_erased(std::string_view corpus, std::string_view document, std::string_view revision) const {
  const Places* const places = of_document(corpus, document);
  return places != nullptr && std::ranges::any_of(*places, [&](std::size_t place) {
           return revisions_[place].revision == revision && revisions_[place].erased;
         });
}

void CorpusHistory::end(std::size_t place, std::int64_t seq, std::string_view by) {
  Ends& ends = revisions_[place].ends;
  if (ends.valid_to) return;
  ends.valid_to = seq;
  ends.ended_by = by;
}

void CorpusHistory::touch(const std::string& corpus, std::int64_t seq) {
  const auto found = corpora_.find(corpus);
  if (found != corpora_.end()) found->second.last_seq = seq;
}

const CorpusHistory::Places* CorpusHistory::of_document(std::string_view corpus, std::string_view document) const {
  const auto found = by_document_.find(key_of(corpus, document));
  return found == by_document_.end() ? nullptr : &found->second;
}

}  // namespace muniment::verify
