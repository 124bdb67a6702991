#include "capsule/format.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "base/crypto/crc32c.hpp"
#include "base/limits.hpp"

namespace muniment::capsule {
namespace {

constexpr std::string_view file_magic{"\x89MUNCAP\n", 8}, frame_magic{"MUFR", 4}, commit_magic{"MUCOMMIT", 8};
constexpr std::size_t chained_bytes = 72;  // of a frame's header
constexpr std::size_t frame_crc_at = 104, file_crc_at = 60;

static_assert(std::endian::native == std::endian::little);

template <typename T>
void put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

template <typename T>
T get(std::string_view bytes, std::size_t at) {
  T value{};
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

Hash hash_at(std::string_view bytes, std::size_t at) { return get<Hash>(bytes, at); }

bool is_type(std::uint8_t type) {
  return (type >= static_cast<std::uint8_t>(FrameType::document) &&
          type <= static_cast<std::uint8_t>(FrameType::signature)) ||
         type == static_cast<std::uint8_t>(FrameType::segment) || type == static_cast<std::uint8_t>(FrameType::commit);
}

// The header without its chain and checksum.
std::string chained_part(const FrameHeader& header) {
  std::string out(frame_magic);
  put(out, static_cast<std::uint32_t>(header.type));
  put(out, header.number);
  put(out, header.time_us);
  put(out, header.about_bytes);
  put(out, header.body_bytes);
  out += view(header.payload);
  return out;
}

}  // namespace

std::string_view name_of(FrameType type) {
  switch (type) {
    case FrameType::document: return "document";
    case FrameType::retraction: return "retraction";
    case FrameType::query: return "query";
    case FrameType::feedback: return "feedback";
    case FrameType::log: return "log";
    case FrameType::config: return "config";
    case FrameType::signature: return "signature";
    case FrameType::segment: return "segment";
    case FrameType::commit: return "commit";
  }
  return "";
}

std::uint64_t padded(std::uint64_t bytes) { return (bytes + frame_unit - 1) / frame_unit * frame_unit; }

std::uint64_t FrameHeader::body_offset() const { return frame_header_bytes + padded(about_bytes); }
std::uint64_t FrameHeader::bytes() const { return body_offset() + padded(body_bytes); }

std::string encode(const FileHeader& header) {
  std::string out(file_magic);
  put(out, format_version);
  put(out, std::uint32_t{0});
  out += header.id;
  put(out, header.created_us);
  out.resize(file_crc_at, '\0');
  put(out, crc32c(out));
  out.resize(file_header_bytes, '\0');
  return out;
}

std::string encode(const Mark& mark) {
  std::string out;
  for (const std::uint64_t value : {mark.number, mark.frame, mark.end}) put(out, value);
  put(out, crc32c(out));
  put(out, std::uint32_t{0});
  return out;
}

std::optional<Mark> newest_mark(std::string_view header) {
  std::optional<Mark> newest;
  for (std::size_t at = marks_at; at + mark_bytes <= std::min(header.size(), file_header_bytes); at += mark_bytes) {
    const Mark mark{get<std::uint64_t>(header, at), get<std::uint64_t>(header, at + 8),
                    get<std::uint64_t>(header, at + 16)};
    if (crc32c(header.substr(at, 24)) != get<std::uint32_t>(header, at + 24) || mark.end == 0) continue;
    if (mark.frame >= file_header_bytes && mark.frame < mark.end && (!newest || mark.number > newest->number))
      newest = mark;
  }
  return newest;
}

Result<FileHeader> decode_file_header(std::string_view bytes) {
  if (bytes.starts_with(encrypted_magic))
    return Error(Errc::invalid_argument, "it is encrypted. Decrypt it: muniment capsule decrypt FILE -o NEW");
  if (bytes.size() < file_header_bytes || !bytes.starts_with(file_magic))
    return Error(Errc::invalid_argument, "this is no capsule of Muniment");
  if (const auto version = get<std::uint32_t>(bytes, 8); version != format_version)
    return Error(Errc::invalid_argument, "the capsule has format " + std::to_string(version) + ", this program reads " +
                                             std::to_string(format_version));
  if (crc32c(bytes.substr(0, file_crc_at)) != get<std::uint32_t>(bytes, file_crc_at))
    return Error(Errc::corrupt, "the header of the capsule is damaged");
  return FileHeader{std::string(bytes.substr(16, 16)), get<std::int64_t>(bytes, 32)};
}

std::string encode(const FrameHeader& header) {
  std::string out = chained_part(header);
  out += view(header.chain);
  put(out, crc32c(out));
  put(out, std::uint32_t{0});
  return out;
}

std::optional<FrameHeader> decode_frame_header(std::string_view bytes) {
  if (bytes.size() < frame_header_bytes || !bytes.starts_with(frame_magic)) return std::nullopt;
  if (crc32c(bytes.substr(0, frame_crc_at)) != get<std::uint32_t>(bytes, frame_crc_at) ||
      get<std::uint32_t>(bytes, frame_crc_at + 4) != 0)
    return std::nullopt;
  const auto type = get<std::uint32_t>(bytes, 4);
  if (type > std::numeric_limits<std::uint8_t>::max() || !is_type(static_cast<std::uint8_t>(type))) return std::nullopt;
  FrameHeader header;
  header.type = static_cast<FrameType>(type);
  header.number = get<std::uint64_t>(bytes, 8);
  header.time_us = get<std::int64_t>(bytes, 16);
  header.about_bytes = get<std::uint64_t>(bytes, 24);
  header.body_bytes = get<std::uint64_t>(bytes, 32);
  header.payload = hash_at(bytes, 40);
  header.chain = hash_at(bytes, chained_bytes);
  if (header.about_bytes > limits::capsule_about_bytes_max || header.body_bytes > limits::capsule_body_bytes_max)
    return std::nullopt;
  return header;
}

Hash next_chain(const Hash& chain, const FrameHeader& header) { return sha256({view(chain), chained_part(header)}); }

std::string encode(const Commit& commit, std::uint64_t offset) {
  std::string out;
  for (const std::uint64_t value : {commit.number, commit.frames, commit.indexed, commit.previous, commit.next})
    put(out, value);
  out += view(commit.chain);
  put(out, std::uint64_t{commit.segments.size()});
  put(out, std::uint64_t{0});
  for (const Segment& segment : commit.segments) {
    put(out, static_cast<std::uint32_t>(segment.kind));
    put(out, segment.crc);
    for (const std::uint64_t value : {segment.offset, segment.bytes, segment.name_bytes, std::uint64_t{0}})
      put(out, value);
    out += view(segment.hash);
  }
  put(out, offset);
  out += commit_magic;
  return out;
}

std::optional<Commit> decode_commit(std::string_view body) {
  if (body.size() < commit_bytes_min) return std::nullopt;
  Commit commit;
  std::uint64_t* const values[] = {&commit.number, &commit.frames, &commit.indexed, &commit.previous, &commit.next};
  for (std::size_t i = 0; i < std::size(values); ++i) *values[i] = get<std::uint64_t>(body, i * sizeof(std::uint64_t));
  commit.chain = hash_at(body, 40);
  const auto count = get<std::uint64_t>(body, 72);
  if (count > limits::capsule_segments_max || body.size() != commit_bytes_min + count * segment_bytes ||
      commit.indexed > commit.frames)
    return std::nullopt;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string_view row = body.substr(88 + i * segment_bytes, segment_bytes);
    Segment& segment = commit.segments.emplace_back();
    segment.kind = static_cast<SegmentKind>(get<std::uint32_t>(row, 0));
    segment.crc = get<std::uint32_t>(row, 4);
    segment.offset = get<std::uint64_t>(row, 8);
    segment.bytes = get<std::uint64_t>(row, 16);
    segment.name_bytes = get<std::uint64_t>(row, 24);
    segment.hash = hash_at(row, 40);
    if (segment.kind < SegmentKind::frames || segment.kind > SegmentKind::model || segment.name_bytes > segment.bytes ||
        padded(segment.name_bytes) > segment.bytes || segment.offset % frame_unit != 0)
      return std::nullopt;
  }
  return commit;
}

}  // namespace muniment::capsule
