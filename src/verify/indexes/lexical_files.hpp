// The lexical index as it lies on the disk: two Xapian databases (docs/retrieval.md, The lexical index). It is only
// read; a daemon may be writing to it.
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
  // One moment of each database, the live one's first. Errors: not_found; corrupt; unavailable where a commit was in
  // the way: again.
  static Result<LexicalFiles> open(const std::string& folder);
  LexicalFiles(LexicalFiles&&) noexcept;
  ~LexicalFiles();

  std::int64_t next_seq() const;  // up to where the log is indexed
  bool erasing() const;           // words of what was erased may still be in free pages

  // Every passage in the order of its id: those that are current, or those that were. Errors as of open; unavailable
  // also where the writer has overtaken the moment that is read.
  using Visit = std::function<void(std::int64_t chunk, const IndexedFacts& facts)>;
  Status visit(bool live, const Visit& visit) const;

 private:
  struct Impl;
  explicit LexicalFiles(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace muniment::verify
