#include "capsule/merge.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <tuple>

#include "base/json/json.hpp"
#include "capsule/index.hpp"

namespace muniment::capsule {
namespace {

struct Taken {
  std::int64_t time_us = 0;
  FrameType type = FrameType::document;
  std::string uri;       // of a document or retraction
  std::string checksum;  // of a document's bytes
  std::int64_t timestamp_us = 0;
  std::size_t earlier = 0;       // equal revisions before it in the input
  std::string_view about, body;  // in the input's file
  Hash payload{};

  auto order() const { return std::tie(time_us, type, uri, about, payload); }
};

// The current revisions of an input, by URI, and the checksums of all its revisions.
struct Input {
  std::unique_ptr<CapsuleFile> file;
  std::vector<Taken> frames;
  std::map<std::string, std::size_t> current;  // place in `frames`
  std::map<std::string, std::set<std::string>> checksums;
};

Result<Taken> taken(const Frame& frame) {
  Taken out;
  out.time_us = frame.header.time_us;
  out.type = frame.header.type;
  out.about = frame.about;
  out.body = frame.body;
  out.payload = frame.header.payload;
  if (out.type != FrameType::document && out.type != FrameType::retraction) return out;
  const auto about = json::parse(frame.about);
  out.uri = about ? about->root()["uri"].string_or("") : std::string();
  if (out.uri.empty())
    return Error(Errc::corrupt, "frame " + std::to_string(frame.header.number) + " names no document");
  if (out.type == FrameType::retraction) return out;
  ASSIGN_OR_RETURN(const Revision revision, revision_of(frame));
  out.checksum = to_hex(sha256(revision.bytes));
  const auto time = parse_time(about->root()["timestamp"].string_or(""));
  out.timestamp_us = time ? time->micros : out.time_us;
  return out;
}

Result<Input> read_input(const std::string& path) {
  Input input;
  std::map<std::tuple<std::string, std::string, std::int64_t>, std::size_t> seen;
  ASSIGN_OR_RETURN(input.file, CapsuleFile::open(path, Access::read));
  if (const std::uint64_t lost = input.file->lost_bytes(); lost > 0)
    return Error(Errc::corrupt, path + " ends " + std::to_string(lost) +
                                    " bytes before its newest commit. Copy it again, or cut it back: "
                                    "muniment capsule compact FILE");
  for (std::uint64_t at = file_header_bytes; at < input.file->end();) {
    ASSIGN_OR_RETURN(Frame frame, input.file->frame_at(at, CapsuleFile::Part::header));
    // A signature does not hold in another capsule.
    if (is_data(frame.header.type) && frame.header.type != FrameType::signature) {
      ASSIGN_OR_RETURN(frame, input.file->frame_at(at));
      auto read = taken(frame);
      if (!read) return std::move(read).error().within(path);
      if (read->type == FrameType::document) {
        input.current[read->uri] = input.frames.size();
        input.checksums[read->uri].insert(read->checksum);
        read->earlier = seen[{read->uri, read->checksum, read->timestamp_us}]++;
      } else if (read->type == FrameType::retraction) {
        input.current.erase(read->uri);
      }
      input.frames.push_back(*std::move(read));
    }
    at += frame.header.bytes();
  }
  return input;
}

std::vector<std::string> conflicts_of(const std::vector<Input>& inputs) {
  std::set<std::string> out;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    for (std::size_t j = i + 1; j < inputs.size(); ++j) {
      for (const auto& [uri, place] : inputs[i].current) {
        const auto other = inputs[j].current.find(uri);
        if (other == inputs[j].current.end()) continue;
        const std::string& left = inputs[i].frames[place].checksum;
        const std::string& right = inputs[j].frames[other->second].checksum;
        if (left != right && !inputs[j].checksums.at(uri).contains(left) &&
            !inputs[i].checksums.at(uri).contains(right))
          out.insert(uri);
      }
    }
  }
  return {out.begin(), out.end()};
}

// Keeps the first of equal frames in the order, whatever input it is from. A revision that was current again later,
// such as after a retraction, is equal to that of the other inputs that was current again as often.
std::vector<const Taken*> union_of(const std::vector<Input>& inputs) {
  std::vector<const Taken*> all;
  for (const Input& input : inputs) {
    for (const Taken& frame : input.frames) all.push_back(&frame);
  }
  std::ranges::sort(all, [](const Taken* a, const Taken* b) { return a->order() < b->order(); });
  std::set<std::tuple<std::string, std::string, std::int64_t, std::size_t>> revisions;
  std::set<std::tuple<FrameType, std::int64_t, Hash>> others;
  std::erase_if(all, [&](const Taken* frame) {
    if (frame->type == FrameType::document)
      return !revisions.emplace(frame->uri, frame->checksum, frame->timestamp_us, frame->earlier).second;
    return !others.emplace(frame->type, frame->time_us, frame->payload).second;
  });
  return all;
}

std::vector<const Taken*> latest_of(const std::vector<Input>& inputs) {
  std::map<std::string, const Taken*> newest;
  for (const Input& input : inputs) {
    for (const auto& [uri, place] : input.current) {
      const Taken& frame = input.frames[place];
      const Taken*& kept = newest[uri];
      if (kept == nullptr || kept->order() < frame.order()) kept = &frame;
    }
  }
  std::vector<const Taken*> all;
  for (const auto& [uri, frame] : newest) all.push_back(frame);
  std::ranges::sort(all, [](const Taken* a, const Taken* b) { return a->order() < b->order(); });
  return all;
}

// The id follows from the frames, so that equal merges are equal.
FileHeader header_of(const std::vector<const Taken*>& frames) {
  Sha256 all;
  FileHeader header;
  for (const Taken* frame : frames) {
    all.update(view(frame->payload));
    all.update(std::to_string(frame->time_us));
    header.created_us = std::max(header.created_us, frame->time_us);
  }
  header.id = std::string(view(all.finish())).substr(0, 16);
  return header;
}

}  // namespace

Result<Difference> diff(const std::string& left, const std::string& right) {
  ASSIGN_OR_RETURN(const Input a, read_input(left));
  ASSIGN_OR_RETURN(const Input b, read_input(right));
  Difference out;
  for (const auto& [uri, place] : a.current) {
    const auto other = b.current.find(uri);
    if (other == b.current.end()) {
      out.only_left.push_back(uri);
    } else if (a.frames[place].checksum != b.frames[other->second].checksum) {
      out.changed.push_back(uri);
    }
  }
  for (const auto& [uri, place] : b.current) {
    if (!a.current.contains(uri)) out.only_right.push_back(uri);
  }
  return out;
}

Result<Merged> merge(const std::vector<std::string>& inputs, const std::string& target, bool latest) {
  RETURN_IF_ERROR(check_new(target));
  std::vector<Input> read;
  std::size_t frames = 0;
  for (const std::string& path : inputs) {
    ASSIGN_OR_RETURN(Input input, read_input(path));
    frames += latest ? input.current.size() : input.frames.size();
    read.push_back(std::move(input));
  }
  const std::vector<const Taken*> kept = latest ? latest_of(read) : union_of(read);
  Merged out;
  out.frames = kept.size();
  out.documents = static_cast<std::uint64_t>(
      std::ranges::count_if(kept, [](const Taken* frame) { return frame->type == FrameType::document; }));
  out.duplicates = frames - kept.size();
  out.conflicts = conflicts_of(read);
  const Status written = write_new(target, header_of(kept), [&kept](CapsuleFile& file) -> Status {
    for (const Taken* frame : kept)
      RETURN_IF_ERROR(file.append(frame->type, frame->time_us, frame->about, frame->body));
    return success();
  });
  RETURN_IF_ERROR(written);
  return out;
}

}  // namespace muniment::capsule
