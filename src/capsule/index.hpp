// The indexes of a capsule, as its segments have them: the places of frames and documents, and the search engine. They
// follow the frames: frames after the indexed ones are read one by one, and `catch_up` writes new segments.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "capsule/file.hpp"
#include "retrieval/engine/engine.hpp"
#include "store/read/corpus_rows.hpp"

namespace muniment::capsule {

// A data frame in the segment `frames`, in the order of the numbers.
struct FrameRow {
  std::uint64_t offset = 0;
  std::int64_t time_us = 0;
  std::int64_t valid_to = retrieval::still_valid;  // number of the frame that ended the revision
  std::uint32_t first_chunk = 0;                   // of a document; otherwise of the next one
  std::uint32_t chunks = 0;
  std::uint32_t type = 0;       // FrameType
  std::uint32_t retracted = 0;  // 1: a retraction ended it, otherwise a revision
};

// A revision in the segment `documents`, by key and number.
struct DocumentKey {
  std::uint64_t key = 0;    // the first bytes of the SHA-256 of its URI
  std::uint64_t frame = 0;  // number
};

struct CollectionFacts {
  std::int64_t documents = 0;          // current ones
  std::int64_t chunks = 0;             // of these
  std::int64_t trained = 0;            // chunks that its model was trained on; 0: no model
  std::int64_t first = -1, last = -1;  // frames of its documents
  std::set<std::string> tags;
};
using Catalogue = std::map<std::string, CollectionFacts>;

// A revision as its frame has it.
struct Revision {
  store::DocumentRow row;
  std::vector<store::ChunkRow> chunks;
  std::string_view text;   // that the chunks are spans of
  std::string_view bytes;  // as ingested
};

std::string uri_of(std::string_view corpus, std::string_view document);  // aether://<corpus>/<document>
std::uint64_t key_of_uri(std::string_view uri);
// Reads a document's frame. Errors: corrupt.
Result<Revision> revision_of(const Frame& frame);
// Returns the text of a chunk, checked against its hash. Errors: corrupt.
Result<std::string_view> text_of(const Revision& revision, const store::ChunkRow& chunk);

class Index {
 public:
  // Reads the segments of the file's state, and the headers of the frames after the indexed ones. The file outlives it.
  // Errors: corrupt.
  static Result<std::unique_ptr<Index>> open(CapsuleFile& file);

  std::int64_t indexed() const { return static_cast<std::int64_t>(file_.state().indexed); }
  std::int64_t frames() const { return indexed() + static_cast<std::int64_t>(later_.size()); }
  std::int64_t unindexed_documents() const { return unindexed_documents_; }
  const Catalogue& catalogue() const { return catalogue_; }
  const FrameRow& row(std::int64_t number) const {
    return number < indexed() ? rows_[static_cast<std::size_t>(number)]
                              : later_[static_cast<std::size_t>(number - indexed())];
  }
  // Returns a frame with a verified payload, if the frames beside it are chained to it. Errors: corrupt.
  Result<Frame> frame(std::int64_t number) const;
  bool ends_signed() const {
    return frames() > 0 && row(frames() - 1).type == static_cast<std::uint32_t>(FrameType::signature);
  }
  // Returns the number of the document frame that has the chunk; nullopt: there is none.
  std::optional<std::int64_t> frame_of_chunk(retrieval::ChunkId chunk) const;
  // Returns the frames of the indexed revisions of a document, oldest first; another document may have the same key.
  std::vector<std::int64_t> revisions(std::string_view uri) const;
  // Returns how many frames were recorded up to that time.
  std::int64_t frames_until(std::int64_t time_us) const;
  // Returns the revision of an indexed frame, with its validity. The views are valid as long as the frame's are.
  Result<Revision> revision(std::int64_t number) const;
  // The engine, opened at the first call. Errors: corrupt.
  Result<retrieval::Engine*> engine();
  Result<retrieval::Engine::Searcher*> searcher();

  void note_appended(const Frame& frame);  // after it was appended to the file

 private:
  explicit Index(CapsuleFile& file) : file_(file) {}
  Status read_segments();
  Status read_later();

  CapsuleFile& file_;
  std::span<const FrameRow> rows_;
  std::span<const DocumentKey> keys_;
  Catalogue catalogue_;
  std::vector<FrameRow> later_;
  std::int64_t unindexed_documents_ = 0;
  std::unique_ptr<retrieval::Engine> engine_;
  std::unique_ptr<retrieval::Engine::Searcher> searcher_;
};

Result<Catalogue> catalogue_of(std::string_view json);
std::string json_of(const Catalogue& catalogue);

// Selects the parts to write again: nothing unless the segments of earlier states outweigh the rest; the file; or also
// the indexes, which are then read from the frames.
enum class Anew : std::uint8_t { nothing, file, indexes };

// Indexes all frames of a file that is open for writing, and commits. Returns true if the file was replaced by a new
// one: the caller opens it again. Errors: those of the file; corrupt.
Result<bool> catch_up(CapsuleFile& file, Anew anew = Anew::nothing);

// Writes a new capsule, whose frames `fill` appends, with its indexes. The file gets its name when it is complete.
// Errors: conflict if `target` exists.
Status write_new(const std::string& target, const FileHeader& header, const std::function<Status(CapsuleFile&)>& fill);

}  // namespace muniment::capsule
