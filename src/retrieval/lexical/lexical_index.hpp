// The lexical lane: a Xapian database of the current chunks, and one of the closed ones. One writer; any number of
// readers, each in its own thread. Xapian does not detect most damage, so the caller checks every hit against the chunk
// table.
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
  std::string_view language;  // ISO 639-1 or "none": selects the stemmer
  Facts facts;
};

// The words and phrases of a query; the caller sets the weight of its list in a fusion.
struct LexicalQuery {
  std::string text;                  // plain words without operators
  std::vector<std::string> phrases;  // each must occur
  std::string language;              // selects the query's stemmer; empty: detected from the text
};

inline constexpr std::uint32_t unknown_words = std::numeric_limits<std::uint32_t>::max();

class LexicalReader {
 public:
  virtual ~LexicalReader() = default;
  // Returns the best `k`, ties by id, with the profile's BM25 weights. Errors: corrupt (rebuild it), unavailable.
  virtual Result<std::vector<Hit>> search(const LexicalQuery& query, const Filter& filter, std::size_t k) = 0;
  // Returns a lower bound of the chunks that match the words without the filter, which distinguishes no_match from
  // filtered_out.
  virtual Result<std::int64_t> count_unfiltered(const LexicalQuery& query) = 0;
  // Returns each chunk's number of words that are not function words (terms.cpp); unknown_words if it is not in the
  // index.
  virtual Result<std::vector<std::uint32_t>> words_of(std::span<const Hit> hits) = 0;
  virtual std::int64_t watermark() const = 0;
};

// Two databases, each in one piece, within a file: what LexicalIndex::pack wrote.
struct PackedLexical {
  int file = -1;                       // outlives the index and its readers
  std::int64_t live = 0, history = 0;  // offsets
};

class LexicalIndex {
 public:
  // Opens or creates the index in `folder`. `scratch`: the folder is removed after use, so that its commits need not
  // survive a power cut. Errors: corrupt (remove the folder and fill it again).
  static Result<std::unique_ptr<LexicalIndex>> open(const std::string& folder, bool scratch = false);
  // Opens a packed index: its readers see it; writing is refused. Errors: corrupt.
  static Result<std::unique_ptr<LexicalIndex>> open_packed(const PackedLexical& packed);
  // Makes a folder that `open` accepts from a packed index.
  static Status unpack(const PackedLexical& packed, const std::string& folder);
  virtual ~LexicalIndex() = default;

  virtual Status add(const LexicalChunk& chunk) = 0;
  // Ends the chunk's validity at `valid_to`: moves it to the history.
  virtual Status close(ChunkId id, std::int64_t valid_to) = 0;
  virtual Status remove(ChunkId id) = 0;  // from both databases: erased or revoked
  // Makes the changes durable and visible, together with the position.
  virtual Status commit(std::int64_t next_seq) = 0;
  virtual void cancel() = 0;                   // discards the changes since the last commit
  virtual std::int64_t watermark() const = 0;  // the next_seq of the last commit; 0 for a new index
  virtual std::int64_t chunks() const = 0;     // current ones

  // Writes the last commit at the end of a file that is open for reading and writing. Returns its place.
  virtual Result<PackedLexical> pack(int file) const = 0;

  // Reads the last commit; refreshes itself at each search.
  virtual Result<std::unique_ptr<LexicalReader>> reader() = 0;
};

}  // namespace muniment::retrieval
