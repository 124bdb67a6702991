// Caches recently read rows of passages. Such a row changes only if its document is revised, retracted, revoked or
// erased; the follower that writes the change calls `changed` before readers may rely on it.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.hpp"
#include "store/read/corpus_rows.hpp"
#include "store/read/reader.hpp"

namespace muniment::store {

class ChunkRows {
 public:
  explicit ChunkRows(std::size_t bytes_max) : bytes_max_(bytes_max) {}

  using Row = std::shared_ptr<const ChunkInDocument>;
  // Returns rows by id; ids without a row are omitted. Errors: those of reading.
  Result<std::unordered_map<std::int64_t, Row>> read(Reader& reader, const std::vector<std::int64_t>& ids);

  // Looks up citations like Reader::cited. Only passages that were found are cached.
  Result<std::vector<CitedDocument>> cited(Reader& reader, const std::vector<Citation>& citations);

  // Drops the rows that these written changes ended.
  void changed(const std::vector<CorpusChange>& changes);

 private:
  using Document = std::pair<std::string, std::string>;  // corpus, id
  using Cited = std::shared_ptr<const CitedDocument>;
  struct Entry {
    std::string key;
    Document document;
    std::variant<Row, Cited> value;
    std::size_t bytes = 0;
  };
  using Entries = std::list<Entry>;

  template <typename Value>
  Value find(const std::string& key);
  void put(std::string key, const DocumentRow& document, std::variant<Row, Cited> value);
  void drop(Entries::iterator entry);
  void drop_document(const Document& document);

  const std::size_t bytes_max_;
  std::mutex mutex_;
  Entries entries_;  // most recently used first
  std::unordered_map<std::string, Entries::iterator> by_key_;
  std::map<Document, std::set<std::string>> of_document_;  // keys of its entries
  std::size_t bytes_ = 0;
  std::uint64_t changes_ = 0;  // number of changes; a row read before a change is not cached after it
};

}  // namespace muniment::store
