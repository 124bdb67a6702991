// Reads the lexical index: two Xapian databases (docs/retrieval.md, The lexical index). It writes nothing; a daemon may
// write to the index at the same time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/result.hpp"
#include "verify/indexes/index_rows.hpp"

namespace muniment::verify {

class LexicalFiles {
 public:
  // Opens one state of each database, the live one first. Errors: not_found; corrupt; unavailable if a commit
  // interfered, which is worth a retry.
  static Result<LexicalFiles> open(const std::string& folder);
  LexicalFiles(LexicalFiles&&) noexcept;
  ~LexicalFiles();

  std::int64_t next_seq() const;  // position up to which the log is indexed
  bool erasing() const;           // free pages may still hold erased words

  // Visits every passage in the order of its id: the current ones or the historical ones. Errors: as of open;
  // unavailable also if the writer has discarded the state that is being read.
  using Visit = std::function<void(std::int64_t chunk, const IndexedFacts& facts)>;
  Status visit(bool live, const Visit& visit) const;

 private:
  struct Impl;
  explicit LexicalFiles(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace muniment::verify
