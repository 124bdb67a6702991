#include "store/read/event_text.hpp"

#include <algorithm>

#include "base/json/json.hpp"
#include "base/utf8.hpp"
#include "store/files/artifact_row.hpp"
#include "store/read/reader_impl.hpp"

namespace muniment::store {

EventText::EventText(events::ReadableText about, std::vector<Part> parts) : about_(std::move(about)) {
  about_.parts.clear();
  for (Part& part : parts) {
    if (part.size_bytes == 0) continue;
    if (!parts_.empty())
      parts_.push_back({std::string(events::part_separator), std::nullopt, std::ssize(events::part_separator)});
    parts_.push_back(std::move(part));
  }
  for (const Part& part : parts_) size_bytes_ += part.size_bytes;
}

Result<std::string> EventText::read(ArtifactFiles& files, std::int64_t from, std::int64_t to,
                                    Difference* difference) const {
  if (from < 0 || to < from || to > size_bytes_)
    return Error(Errc::invalid_argument, "the event's text has no such span");
  std::string out;
  std::int64_t begin = 0;  // offset of the part
  for (const Part& part : parts_) {
    const std::int64_t first = std::max(from, begin) - begin;
    const std::int64_t count = std::min(to, begin + part.size_bytes) - begin - first;
    begin += part.size_bytes;
    if (count <= 0) continue;
    if (!part.file) {
      out.append(part.text, static_cast<std::size_t>(first), static_cast<std::size_t>(count));
    } else {
      ASSIGN_OR_RETURN(const std::string bytes, files.read(*part.file, first, count, difference));
      out += bytes;
    }
  }
  return out;
}

Result<std::string> EventText::indexed(ArtifactFiles& files) const {
  ASSIGN_OR_RETURN(std::string text, read(files, 0, std::min(size_bytes_, event_text_bytes_max)));
  constexpr std::size_t character_bytes_max = 4;
  if (size_bytes_ > event_text_bytes_max) {
    const std::size_t odd = first_invalid_utf8(text);
    if (odd != std::string::npos && odd + character_bytes_max > text.size()) text.resize(odd);
  }
  return text;
}

Result<std::shared_ptr<const EventText>> Reader::event_text(const events::Event& event) {
  const std::shared_ptr<const EventText> none;
  if (!event.body) return none;
  const auto body = json::parse(*event.body);
  if (!body) return none;
  events::ReadableText about = events::readable_text(event.type, body->root());
  std::vector<EventText::Part> parts;
  for (events::TextPart& part : about.parts) {
    if (!part.artifact_id) {
      const auto size = static_cast<std::int64_t>(part.text.size());
      parts.push_back({std::move(part.text), std::nullopt, size});
      continue;
    }
    // Only artifacts of this run are read, because a client may name any id in a body.
    ASSIGN_OR_RETURN(const auto row, artifact(*part.artifact_id));
    if (row && row->run_id == event.run_id) parts.push_back({{}, file_of(*row), row->size_bytes});
  }
  return std::make_shared<const EventText>(std::move(about), std::move(parts));
}

}  // namespace muniment::store
