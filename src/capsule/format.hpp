// The bytes of a capsule (docs/format.md, "Capsule"): a header, and then frames. A frame has a header, a description
// and a body. Data frames are numbered and chained by hash; index frames and commits are neither, so that they can be
// replaced. Pure; integers are little-endian.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/crypto/sha256.hpp"
#include "base/result.hpp"

namespace muniment::capsule {

inline constexpr std::size_t file_header_bytes = 128;  // with the two marks
inline constexpr std::size_t mark_bytes = 32, marks_at = 64;
inline constexpr std::size_t frame_header_bytes = 112;
inline constexpr std::size_t frame_unit = 8;  // a frame and its body begin at multiples of it
inline constexpr std::size_t commit_bytes_min = 104, segment_bytes = 72;
inline constexpr std::uint32_t format_version = 1;
inline constexpr std::string_view encrypted_magic{"\x89MUNENC\n", 8};  // of an encrypted capsule (encryption.hpp)

enum class FrameType : std::uint8_t {
  document = 1,  // a revision: its description is the body of document.revised, its body the document and its text
  retraction = 2,
  query = 3,
  feedback = 4,
  log = 5,
  config = 6,
  signature = 7,  // its body is a signed note over the frames before it
  segment = 16,   // an index over the data frames
  commit = 17,
};
std::string_view name_of(FrameType type);
constexpr bool is_data(FrameType type) { return type < FrameType::segment; }

struct FileHeader {
  std::string id;  // 16 bytes
  std::int64_t created_us = 0;
};

// Names a commit that is durable. A header has two marks, which are written in turn, in place: a commit that a mark
// names was complete, so that a later failure to read it is damage and no torn end.
struct Mark {
  std::uint64_t number = 0;  // of the commit
  std::uint64_t frame = 0;   // its offset
  std::uint64_t end = 0;     // offset after it
};

struct FrameHeader {
  FrameType type = FrameType::document;
  std::uint64_t number = 0;  // of a data frame; otherwise the number of data frames before it
  std::int64_t time_us = 0;  // when it was recorded; never earlier than the frame before it
  std::uint64_t about_bytes = 0;
  std::uint64_t body_bytes = 0;
  Hash payload{};  // SHA-256(description ‖ body)
  Hash chain{};  // data: SHA-256(chain of the data frame before ‖ the first 72 bytes of this header); else that chain

  std::uint64_t body_offset() const;  // from the begin of the frame
  std::uint64_t bytes() const;        // of the whole frame
};

enum class SegmentKind : std::uint32_t { frames = 1, documents, catalogue, words, closed_words, vectors, model };

struct Segment {
  SegmentKind kind = SegmentKind::frames;
  std::uint32_t crc = 0;  // CRC-32C of its bytes
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::uint64_t name_bytes = 0;  // it begins with its name, such as the corpus of a model
  Hash hash{};
};

// The state of a capsule after some frames. Its frame ends with the trailer.
struct Commit {
  std::uint64_t number = 0;
  std::uint64_t frames = 0;    // data frames
  std::uint64_t indexed = 0;   // the first of them, which the segments cover
  std::uint64_t previous = 0;  // offset of the commit before; 0: none
  std::uint64_t next = 0;      // offset of the first frame after the indexed ones, or of a frame before it
  Hash chain{};
  std::vector<Segment> segments;
};

std::uint64_t padded(std::uint64_t bytes);

std::string encode(const FileHeader& header);
Result<FileHeader> decode_file_header(std::string_view bytes);  // Errors: corrupt; invalid_argument: no capsule

std::string encode(const Mark& mark);
// Returns the newer of the two marks of a header that are intact.
std::optional<Mark> newest_mark(std::string_view header);

std::string encode(const FrameHeader& header);
std::optional<FrameHeader> decode_frame_header(std::string_view bytes);  // nullopt: damaged
Hash next_chain(const Hash& chain, const FrameHeader& header);

// Returns the body of a commit whose frame begins at `offset`.
std::string encode(const Commit& commit, std::uint64_t offset);
std::optional<Commit> decode_commit(std::string_view body);

}  // namespace muniment::capsule
