#include "capsule/file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/clock.hpp"
#include "base/crypto/crc32c.hpp"
#include "base/limits.hpp"
#include "base/process/failpoint.hpp"

namespace muniment::capsule {

namespace {

constexpr int lock_tries = 200;
constexpr std::chrono::milliseconds lock_pause{10};
constexpr int unmarked_max = 64;  // commits in a row that are not made durable

}  // namespace

FileHeader CapsuleFile::new_header() {
  FileHeader header;
  header.id.resize(16);
  random_bytes(reinterpret_cast<std::uint8_t*>(header.id.data()), header.id.size());
  header.created_us = Clock().now().micros;
  return header;
}

Status sync_folder_of(const std::string& path) {
  const std::string parent = path.substr(0, path.rfind('/') + 1);  // npos + 1 is 0
  ASSIGN_OR_RETURN(const Fd folder, open_folder(parent.empty() ? "." : parent));
  return ::fsync(folder.get()) == 0 ? success() : Status(file_error("syncing the folder of", path, errno));
}

Status check_new(const std::string& target) {
  if (struct stat about{}; ::lstat(target.c_str(), &about) == 0) return file_error("creating", target, EEXIST);
  return success();
}

std::string name_of_draft(const std::string& target) { return target + "." + std::to_string(::getpid()) + ".anew"; }

Status finish_draft(const std::string& draft, const std::string& target, Status written) {
  if (written && ::renameat2(AT_FDCWD, draft.c_str(), AT_FDCWD, target.c_str(), RENAME_NOREPLACE) != 0)
    written = file_error("creating", target, errno);
  if (!written) ::unlink(draft.c_str());
  return written ? sync_folder_of(target) : written;
}

Status CapsuleFile::create(const std::string& path, const FileHeader& header) {
  std::unique_ptr<CapsuleFile> made(new CapsuleFile(path));
  made->file_ = Fd(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!made->file_.open()) return file_error("creating", path, errno);
  made->header_ = header;
  made->chain_ = sha256(encode(header));
  made->end_ = made->state_end_ = file_header_bytes;
  Status written = made->write_bytes(0, encode(header));
  if (written) written = made->commit(0, file_header_bytes, {});
  if (written) written = sync_folder_of(path);
  if (!written) ::unlink(path.c_str());
  return written;
}

Result<std::unique_ptr<CapsuleFile>> CapsuleFile::open(const std::string& path, Access access) {
  std::unique_ptr<CapsuleFile> capsule(new CapsuleFile(path));
  if (access != Access::read) {
    RETURN_IF_ERROR(capsule->take_lock(access == Access::write));
  } else {
    ASSIGN_OR_RETURN(RegularFile opened, open_named(path));
    capsule->file_ = std::move(opened.fd);
  }
  RETURN_IF_ERROR(capsule->find_state());
  if (access != Access::read) RETURN_IF_ERROR(capsule->cut());
  return capsule;
}

CapsuleFile::~CapsuleFile() {
  if (map_ != nullptr) earlier_maps_.emplace_back(map_, mapped_);
  for (const auto& [map, size] : earlier_maps_) ::munmap(const_cast<char*>(map), size);
}

// The file may have been replaced by a compacted one while this process opened it.
Status CapsuleFile::take_lock(bool may_wait) {
  for (int tries = may_wait ? lock_tries : 1;;) {
    file_ = Fd(::open(path_.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK));
    if (!file_.open()) return file_error("opening", path_, errno);
    struct stat opened {
    }, named{};
    if (::fstat(file_.get(), &opened) != 0 || !S_ISREG(opened.st_mode))
      return Error(Errc::invalid_argument, path_ + " is no regular file");
    if (::flock(file_.get(), LOCK_EX | LOCK_NB) != 0) {
      if (--tries > 0) {
        std::this_thread::sleep_for(lock_pause);
        continue;
      }
      return Error(Errc::conflict, path_ + " is being written by another process. Retry when it has finished");
    }
    if (::stat(path_.c_str(), &named) == 0 && named.st_ino == opened.st_ino && named.st_dev == opened.st_dev)
      return success();
  }
}

Error CapsuleFile::damaged(std::uint64_t offset, std::string_view what) const {
  return Error(Errc::corrupt, fmt::format("{}: {} at byte {} is damaged", path_, what, offset));
}

Result<std::string_view> CapsuleFile::bytes_at(std::uint64_t offset, std::uint64_t size) {
  if (offset > end_ || size > end_ - offset) return damaged(offset, "a part that exceeds the file");
  if (searching_) {
    ASSIGN_OR_RETURN(read_, read_at(file_, static_cast<std::int64_t>(offset), size));
    return read_.size() == size ? Result<std::string_view>(read_) : damaged(offset, "a part that exceeds the file");
  }
  if (offset + size > mapped_) {
    if (map_ != nullptr) earlier_maps_.emplace_back(map_, mapped_);
    map_ = nullptr;
    mapped_ = 0;
    void* const map = ::mmap(nullptr, end_, PROT_READ, MAP_SHARED, file_.get(), 0);
    if (map == MAP_FAILED) return file_error("mapping", path_, errno);
    map_ = static_cast<const char*>(map);
    mapped_ = end_;
  }
  return std::string_view(map_ + offset, size);
}

std::optional<Commit> CapsuleFile::commit_at(std::uint64_t offset, std::uint64_t end) {
  const auto frame = frame_at(offset);
  if (!frame || frame->header.type != FrameType::commit || frame->offset + frame->header.bytes() != end)
    return std::nullopt;
  auto commit = decode_commit(frame->body);
  if (!commit || commit->frames != frame->header.number || commit->chain != frame->header.chain) return std::nullopt;
  for (const Segment& segment : commit->segments) {
    if (segment.offset > offset || segment.bytes > offset - segment.offset) return std::nullopt;
  }
  if (commit->next > offset || commit->next < file_header_bytes) return std::nullopt;
  last_time_us_ = frame->header.time_us;
  return commit;
}

Status CapsuleFile::find_state() {
  struct stat about {};
  if (::fstat(file_.get(), &about) != 0) return file_error("reading", path_, errno);
  const auto size = static_cast<std::uint64_t>(about.st_size);
  end_ = size;
  searching_ = true;
  ASSIGN_OR_RETURN(const std::string_view start, bytes_at(0, std::min<std::uint64_t>(size, file_header_bytes)));
  auto header = decode_file_header(start);
  if (!header) return std::move(header).error().within(path_);
  header_ = *std::move(header);
  const auto mark = newest_mark(start);
  if (mark && mark->end <= size) {
    const auto commit = commit_at(mark->frame, mark->end);
    if (!commit || commit->number != mark->number) return damaged(mark->frame, "the newest commit");
    state_ = *commit;
    state_frame_ = mark->frame;
    state_end_ = mark->end;
  } else {
    if (mark) lost_ = mark->end - size;
    RETURN_IF_ERROR(search_from_start(size));
  }
  take_later(size);
  torn_ = size - state_end_;
  end_ = state_end_;
  frames_ = state_.frames;
  chain_ = state_.chain;
  searching_ = false;
  read_.clear();
  return success();
}

// A commit counts only if the frames lead to it: a document may hold the bytes of one.
Status CapsuleFile::search_from_start(std::uint64_t size) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> commits;
  for (std::uint64_t at = file_header_bytes; at < size;) {
    const auto frame = frame_at(at, Part::header);
    if (!frame) break;
    const std::uint64_t end = at + frame->header.bytes();
    if (frame->header.type == FrameType::commit) commits.emplace_back(at, end);
    at = end;
  }
  for (; !commits.empty(); commits.pop_back()) {
    const auto [at, end] = commits.back();
    if (const auto commit = commit_at(at, end)) {
      state_ = *commit;
      state_frame_ = at;
      state_end_ = end;
      return success();
    }
  }
  return Error(Errc::corrupt, path_ + ": no complete commit is left");
}

// Later commits were not marked durable: each counts only if all frames before it are intact.
void CapsuleFile::take_later(std::uint64_t size) {
  for (std::uint64_t at = state_end_; at < size;) {
    const auto frame = frame_at(at);
    if (!frame) return;
    const std::uint64_t end = at + frame->header.bytes();
    if (frame->header.type == FrameType::commit) {
      const auto commit = commit_at(at, end);
      if (!commit) return;
      state_ = *commit;
      state_frame_ = at;
      state_end_ = end;
      ++unmarked_;
    }
    at = end;
  }
}

// Overwrites the marks too, since one may name a commit that is lost.
Status CapsuleFile::cut() {
  if (torn_ == 0 && lost_ == 0) return success();
  if (::ftruncate(file_.get(), static_cast<off_t>(state_end_)) != 0) return file_error("cutting", path_, errno);
  const std::string mark = encode(Mark{state_.number, state_frame_, state_end_});
  return write_bytes(marks_at, mark + mark);
}

Result<Frame> CapsuleFile::frame_at(std::uint64_t offset, Part part) {
  ASSIGN_OR_RETURN(const std::string_view start, bytes_at(offset, frame_header_bytes));
  const auto header = decode_frame_header(start);
  if (!header || offset % frame_unit != 0) return damaged(offset, "the header of the frame");
  Frame frame{*header, offset, {}, {}};
  if (header->bytes() > end_ - offset) return damaged(offset, "the frame");
  if (part == Part::header) return frame;
  ASSIGN_OR_RETURN(const std::string_view all, bytes_at(offset, header->bytes()));
  frame.about = all.substr(frame_header_bytes, header->about_bytes);
  frame.body = all.substr(header->body_offset(), header->body_bytes);
  if (sha256({frame.about, frame.body}) != header->payload) return damaged(offset, "the frame");
  return frame;
}

std::string_view CapsuleFile::name_of(const Segment& segment) {
  const auto bytes = bytes_at(segment.offset, segment.name_bytes);
  return bytes ? *bytes : std::string_view();
}

Result<std::string_view> CapsuleFile::segment(const Segment& segment) {
  ASSIGN_OR_RETURN(const std::string_view bytes, bytes_at(segment.offset, segment.bytes));
  if (crc32c(bytes) != segment.crc) return damaged(segment.offset, "an index");
  return bytes.substr(padded(segment.name_bytes));
}

Result<std::string_view> CapsuleFile::segment(SegmentKind kind) {
  const auto found = std::ranges::find(state_.segments, kind, &Segment::kind);
  return found == state_.segments.end() ? std::string_view() : segment(*found);
}

void CapsuleFile::forget_segments() {
  state_.segments.clear();
  state_.indexed = 0;
  state_.next = file_header_bytes;
}

Status CapsuleFile::write_bytes(std::uint64_t offset, std::string_view bytes) {
  if (failed_) return *failed_;
  while (!bytes.empty()) {
    const ssize_t wrote = ::pwrite(file_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) {
      failed_ = file_error("writing", path_, errno);
      if (::ftruncate(file_.get(), static_cast<off_t>(state_end_)) == 0) end_ = state_end_;
      return *failed_;
    }
    bytes.remove_prefix(static_cast<std::size_t>(wrote));
    offset += static_cast<std::uint64_t>(wrote);
  }
  return success();
}

Result<Frame> CapsuleFile::append_frame(FrameHeader header, std::string_view about, std::string_view body) {
  if (about.size() > limits::capsule_about_bytes_max)
    return Error(Errc::too_large, fmt::format("the description of a frame is {} bytes, limit {}. Ingest it in parts.",
                                              about.size(), limits::capsule_about_bytes_max));
  header.about_bytes = about.size();
  header.body_bytes = body.size();
  header.payload = sha256({about, body});
  header.chain = is_data(header.type) ? next_chain(chain_, header) : chain_;
  std::string bytes = encode(header);
  bytes.append(about).resize(header.body_offset(), '\0');
  const std::uint64_t offset = end_;
  RETURN_IF_ERROR(write_bytes(offset, bytes));
  RETURN_IF_ERROR(write_bytes(offset + bytes.size(), body));
  RETURN_IF_ERROR(
      write_bytes(offset + bytes.size() + body.size(), std::string(padded(body.size()) - body.size(), '\0')));
  end_ += header.bytes();
  chain_ = header.chain;
  last_time_us_ = header.time_us;
  return Frame{header, offset, {}, {}};
}

Result<Frame> CapsuleFile::append(FrameType type, std::int64_t time_us, std::string_view about, std::string_view body) {
  FrameHeader header;
  header.type = type;
  header.number = frames_;
  header.time_us = std::max(time_us, last_time_us_);  // the frames are in the order of their times
  ASSIGN_OR_RETURN(const Frame frame, append_frame(header, about, body));
  ++frames_;
  return frame;
}

Result<Frame> CapsuleFile::append_now(FrameType type, std::string_view about, std::string_view body) {
  return append(type, std::max(Clock().now().micros, last_time_us_ + 1), about, body);
}

Result<Segment> CapsuleFile::append_segment(SegmentKind kind, std::string_view name, std::string_view bytes) {
  FrameHeader header;
  header.type = FrameType::segment;
  header.number = frames_;
  header.time_us = last_time_us_;
  std::string whole(name);
  whole.resize(padded(name.size()), '\0');
  whole.append(bytes);
  ASSIGN_OR_RETURN(const Frame frame, append_frame(header, {}, whole));
  return Segment{kind,         crc32c(whole), frame.offset + frame.header.body_offset(),
                 whole.size(), name.size(),   frame.header.payload};
}

Status CapsuleFile::commit(std::uint64_t indexed, std::uint64_t next, std::vector<Segment> segments, bool durable) {
  if (segments.size() > limits::capsule_segments_max)
    return Error(Errc::too_large, fmt::format("{} index segments, limit {}. Use fewer corpora.", segments.size(),
                                              limits::capsule_segments_max));
  durable = durable || unmarked_ >= unmarked_max;
  FAILPOINT("capsule.frames_written");
  if (durable && ::fdatasync(file_.get()) != 0) return failed_ = file_error("syncing", path_, errno), *failed_;
  const Commit state{state_end_ == file_header_bytes ? 0 : state_.number + 1,
                     frames_,
                     indexed,
                     state_frame_,
                     next,
                     chain_,
                     std::move(segments)};
  FrameHeader header;
  header.type = FrameType::commit;
  header.number = frames_;
  header.time_us = last_time_us_;
  const std::uint64_t place = end_;
  RETURN_IF_ERROR(append_frame(header, {}, encode(state, place)));
  FAILPOINT("capsule.commit_written");
  if (durable) {
    if (::fdatasync(file_.get()) != 0) return failed_ = file_error("syncing", path_, errno), *failed_;
    RETURN_IF_ERROR(write_bytes(marks_at + (state.number % 2) * mark_bytes, encode(Mark{state.number, place, end_})));
  }
  unmarked_ = durable ? 0 : unmarked_ + 1;
  state_ = state;
  state_frame_ = place;
  state_end_ = end_;
  return success();
}

Status CapsuleFile::verify() {
  Hash chain = sha256(encode(header_));
  std::uint64_t frames = 0;
  for (std::uint64_t at = file_header_bytes; at < state_end_;) {
    ASSIGN_OR_RETURN(const Frame frame, frame_at(at));
    if (is_data(frame.header.type)) {
      chain = next_chain(chain, frame.header);
      if (frame.header.number != frames++) return damaged(at, "the number of the frame");
    }
    if (frame.header.chain != chain) return damaged(at, "the chain of the frame");
    at += frame.header.bytes();
  }
  if (frames != state_.frames || chain != state_.chain) return damaged(state_frame_, "the newest commit");
  for (const Segment& one : state_.segments) RETURN_IF_ERROR(segment(one));
  return success();
}

}  // namespace muniment::capsule
