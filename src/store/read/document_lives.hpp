// When each revision of a document was current, as the follower "document" derived it from the log. It does not depend
// on the tables: the follower stores a seal of it outside the database (store/logs/document_seal.hpp), with which a
// start compares the tables. Readers hold the ends of rows, and what a list leaves out, against it.
#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "store/read/corpus_rows.hpp"

namespace muniment::store {

using NameHash = std::array<std::uint64_t, 2>;  // keyed, of a corpus and a document

struct DocumentLife {
  std::int64_t seq = -1;
  std::int64_t first_chunk = 0;
  std::int64_t chunks = 0;
  std::int64_t valid_to = -1;    // -1: it is current
  std::int64_t removed_at = -1;  // -1: it was not removed
  char ended_by = 0;             // a letter of revised, retracted, revoked, erased; 0: it is current
  NameHash name{};
  std::int64_t previous = -1;  // the document's revision before it
  std::uint32_t corpus = 0;
};

// Decisions of the writer of a batch that the events do not tell.
struct CorpusEffects {
  std::map<std::int64_t, std::int64_t> first_chunks;          // of new revisions, by seq
  std::map<std::int64_t, std::vector<std::int64_t>> revoked;  // seqs of the revisions that a revocation ended
};

class DocumentLives {
 public:
  // `key` is secret: nobody else can make rows with the same digest.
  explicit DocumentLives(std::string key) : key_(std::move(key)) {}

  // The lives after a batch, which `take` makes valid.
  struct Update {
    std::map<std::int64_t, DocumentLife> lives;
    std::vector<std::string> corpora;  // new ones, in order
    std::map<NameHash, std::int64_t> newest;
    std::array<std::uint64_t, 4> digest{};
  };
  // Functions of the follower's thread. From `unload` on, `wait_for` waits until `begin`. Readers that have waited
  // before it see the former lives, until `replace` puts those in their place that `add` has loaded from rows of the
  // table.
  void unload();
  std::unique_ptr<DocumentLives> fresh() const;  // with the same key
  void add(const DocumentRow& row);
  void replace(DocumentLives& loaded);
  void begin(std::int64_t next_seq);
  void refuse(const Error& error);  // readers get this error from now on; any thread
  Update derive(const std::vector<CorpusChange>& changes, const CorpusEffects& effects) const;
  void take(Update update, std::int64_t next_seq);
  std::string digest(const Update* after = nullptr) const;

  // Functions of readers. Waits until the lives are loaded and include the events before `seq`, but at most a second
  // after that. Errors: unavailable; corrupt if the log and its tables cannot be brought together.
  Status wait_for(std::int64_t seq) const;
  Status refused() const;  // the error of `refuse`
  std::int64_t next_seq() const;
  std::optional<DocumentLife> of(std::int64_t seq) const;
  // Puts the ends and the chunks of a revision into its row. Returns whether they differed; nullopt: no such revision.
  std::optional<bool> put_life(DocumentRow& row) const;
  // Returns the revision that was current at `as_of` (now without it); -1: none.
  std::int64_t current(std::string_view corpus, std::string_view document, std::optional<std::int64_t> as_of) const;
  // Returns the revisions of a document, the newest first, before `before`.
  std::vector<std::int64_t> revisions(std::string_view corpus, std::string_view document,
                                      std::optional<std::int64_t> before, std::size_t limit) const;
  std::int64_t current_count(std::string_view corpus) const;
  std::int64_t first_seq(std::string_view corpus) const;  // of its first revision; -1: no such corpus
  // Returns the number of passages of all current revisions.
  std::int64_t passages() const;
  // Returns the corpora with their first revisions.
  std::map<std::string, std::int64_t> corpora() const;

 private:
  struct Corpus {
    std::string name;
    std::int64_t first_seq = -1;
    std::int64_t current = 0;
  };

  NameHash name_of(std::string_view corpus, std::string_view document) const;
  void sum(std::array<std::uint64_t, 4>& digest, const DocumentLife& life, bool plus) const;
  const DocumentLife* find(std::int64_t seq) const;
  std::int64_t newest_of(const NameHash& name) const;

  const std::string key_;
  mutable std::shared_mutex mutex_;
  mutable std::condition_variable_any changed_;
  std::vector<DocumentLife> lives_;  // by seq
  struct Hasher {
    std::size_t operator()(const NameHash& name) const { return name[0]; }
  };
  std::unordered_map<NameHash, std::int64_t, Hasher> newest_;  // seq of the newest revision; not of events of runs
  std::vector<Corpus> corpora_;
  std::map<std::string, std::uint32_t, std::less<>> corpus_places_;
  std::array<std::uint64_t, 4> digest_{};
  std::int64_t passages_ = 0;
  std::int64_t next_seq_ = -1;  // -1: not loaded
  std::optional<Error> refused_;
};

}  // namespace muniment::store
