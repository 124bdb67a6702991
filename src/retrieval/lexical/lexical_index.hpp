// The lexical lane: a Xapian database of the chunks that are current, and one of those that were.
// One writer; any number of readers, each in a thread of its own. Xapian does not notice most damage,
// so nothing that it says is trusted: what it finds is checked against the chunk table by the caller.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "retrieval/facts.hpp"

namespace muniment::retrieval {

struct LexicalChunk {
  ChunkId id = 0;
  std::string_view text;
  std::string_view title;
  std::string_view heading;
  std::string_view language;  // ISO 639-1 or "none": chooses the stemmer
  Facts facts;
};

// Words and phrases of a query, and the weight of its list in a fusion is the caller's.
struct LexicalQuery {
  std::string text;                  // plain words: no operator in it means anything
  std::vector<std::string> phrases;  // each must occur
  std::string language;              // of the query's stemmer; empty: told from the text
};

inline constexpr std::uint32_t unknown_words = std::numeric_limits<std::uint32_t>::max();

class LexicalReader {
 public:
  virtual ~LexicalReader() = default;
  // The best `k`, ties by id. BM25 weights of the profile. Errors: corrupt (rebuild it), unavailable.
  virtual Result<std::vector<Hit>> search(const LexicalQuery& query, const Filter& filter, std::size_t k) = 0;
  // How many chunks match the words whatever the filter says, at least: tells no_match from filtered_out.
  virtual Result<std::int64_t> count_unfiltered(const LexicalQuery& query) = 0;
  // How many words of each chunk say something (terms.cpp); unknown_words where it is not in the index.
  virtual Result<std::vector<std::uint32_t>> words_of(std::span<const Hit> hits) = 0;
  virtual std::int64_t watermark() const = 0;
};

class LexicalIndex {
 public:
  // Opens or makes the index in `folder`. Errors: corrupt (remove the folder and fill it again).
  static Result<std::unique_ptr<LexicalIndex>> open(const std::string& folder);
  virtual ~LexicalIndex() = default;

  virtual Status add(const LexicalChunk& chunk) = 0;
  // The chunk is not current from `valid_to` on: it moves to the history.
  virtual Status close(ChunkId id, std::int64_t valid_to) = 0;
  virtual Status remove(ChunkId id) = 0;  // from both: erased or revoked
  // Makes what was added durable and visible, together with the position.
  virtual Status commit(std::int64_t next_seq) = 0;
  virtual void cancel() = 0;                   // forgets what was added since
  virtual std::int64_t watermark() const = 0;  // the next_seq of the last commit; 0 for a new index
  virtual std::int64_t chunks() const = 0;     // current ones

  virtual Result<std::unique_ptr<LexicalReader>> reader() = 0;  // sees the last commit; refreshes itself on each search
};

}  // namespace muniment::retrieval
