// A capsule's file: its newest complete state, mapped for reading, and for one writer the frames after it. Any number
// of processes may read while one writes: a writer only appends, and readers see the state that they opened.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/files/file.hpp"
#include "base/result.hpp"
#include "capsule/format.hpp"

namespace muniment::capsule {

// A frame of the file; the views are valid while the file is open.
struct Frame {
  FrameHeader header;
  std::uint64_t offset = 0;
  std::string_view about;
  std::string_view body;
};

enum class Access : std::uint8_t { read, write, write_at_once };

// Makes the name of a new or renamed file durable.
Status sync_folder_of(const std::string& path);

// Errors: conflict if the path exists.
Status check_new(const std::string& target);
// Returns the name of a file in the same folder that becomes `target` when it is complete.
std::string name_of_draft(const std::string& target);
// Gives a complete file its name, or removes it if it was not written. Errors: `written`; conflict if `target` exists.
Status finish_draft(const std::string& draft, const std::string& target, Status written);

class CapsuleFile {
 public:
  // Writes a new capsule with an empty commit. Errors: conflict if the path exists.
  static Status create(const std::string& path, const FileHeader& header);
  static FileHeader new_header();

  // Opens the newest complete state. A writer cuts a torn end off. `write` waits two seconds for another writer, such
  // as a query that is being recorded; `write_at_once` waits for none. Errors: not_found; invalid_argument if it is no
  // capsule; corrupt; conflict if another process writes it.
  static Result<std::unique_ptr<CapsuleFile>> open(const std::string& path, Access access);
  ~CapsuleFile();
  CapsuleFile(const CapsuleFile&) = delete;
  CapsuleFile& operator=(const CapsuleFile&) = delete;

  const std::string& path() const { return path_; }
  const FileHeader& header() const { return header_; }
  const Commit& state() const { return state_; }
  int descriptor() const { return file_.get(); }
  std::uint64_t end() const { return end_; }        // of the state and the frames appended since
  std::uint64_t frames() const { return frames_; }  // data frames, with those appended since
  const Hash& chain() const { return chain_; }      // of the last of them
  // Bytes after the newest complete state that were left by an interrupted writer, or are missing before it.
  std::uint64_t torn_bytes() const { return torn_; }
  std::uint64_t lost_bytes() const { return lost_; }

  // Returns the frame at `offset` with a verified payload; with `Part::header`, only its header is read. Errors:
  // corrupt.
  enum class Part : std::uint8_t { header, all };
  Result<Frame> frame_at(std::uint64_t offset, Part part = Part::all);

  // Returns the bytes of a segment of the state, without its name, if their checksum matches. Errors: corrupt.
  Result<std::string_view> segment(const Segment& segment);
  // Returns the only segment of a kind; empty if there is none.
  Result<std::string_view> segment(SegmentKind kind);
  std::string_view name_of(const Segment& segment);
  // Makes the state one without indexes, which are then read from the frames.
  void forget_segments();

  // Appends a data frame, which takes effect with the next commit. Returns its header. Errors: over_budget for a full
  // disk; after an error nothing more is written, and the file is as after the last commit.
  Result<Frame> append(FrameType type, std::int64_t time_us, std::string_view about, std::string_view body);
  // The same, now. No two of these frames have the same time, even if the clock is set back: a merge orders by time.
  Result<Frame> append_now(FrameType type, std::string_view about, std::string_view body);
  // Appends a segment for the next commit.
  Result<Segment> append_segment(SegmentKind kind, std::string_view name, std::string_view bytes);
  // Commits the frames, with the segments over the first `indexed` data frames; `next`: offset of the first frame after
  // those. A state that is not made durable may be lost by a power cut, together with its frames; after some of these,
  // one is, since a reader reads the frames after the newest mark.
  Status commit(std::uint64_t indexed, std::uint64_t next, std::vector<Segment> segments, bool durable = true);
  // Commits the frames with the segments of the state.
  Status commit(bool durable = true) { return commit(state_.indexed, state_.next, state_.segments, durable); }

  // Reads every frame and segment, and checks the chain. Errors: corrupt, with the first damaged frame.
  Status verify();

 private:
  explicit CapsuleFile(std::string path) : path_(std::move(path)) {}
  Status find_state();
  std::optional<Commit> commit_at(std::uint64_t offset, std::uint64_t end);
  Status search_from_start(std::uint64_t size);
  void take_later(std::uint64_t size);
  Status take_lock(bool may_wait);
  Status cut();
  Result<std::string_view> bytes_at(std::uint64_t offset, std::uint64_t size);
  Status write_bytes(std::uint64_t offset, std::string_view bytes);
  Result<Frame> append_frame(FrameHeader header, std::string_view about, std::string_view body);
  Error damaged(std::uint64_t offset, std::string_view what) const;

  const std::string path_;
  Fd file_;
  FileHeader header_;
  Commit state_;
  std::uint64_t state_frame_ = 0;  // offset of the state's commit
  std::uint64_t state_end_ = 0, end_ = 0, torn_ = 0, lost_ = 0;
  std::uint64_t frames_ = 0;  // data frames, with those appended since
  Hash chain_{};
  std::int64_t last_time_us_ = 0;
  std::optional<Error> failed_;
  int unmarked_ = 0;  // commits since the newest mark
  // While the state is searched, bytes are read into `read_`: a writer may cut a torn end, and then a map has no pages.
  bool searching_ = false;
  std::string read_;
  const char* map_ = nullptr;
  std::uint64_t mapped_ = 0;
  std::vector<std::pair<const char*, std::uint64_t>> earlier_maps_;  // indexes have views of them
};

}  // namespace muniment::capsule
