// Splits JSON into values with their paths, and JSONL into records. In both, a chat turn ({"role": …, "content": …} in
// its usual spellings) is a chunk of its own, with its speaker.
#include <fmt/format.h>

#include "base/limits.hpp"
#include "retrieval/text/blocks.hpp"
#include "retrieval/text/formats/json_reader.hpp"

namespace muniment::retrieval {
namespace {

constexpr std::size_t record_tiny_bytes_max = 120;  // measurements and similar records, which are grouped
constexpr int records_looked_at_max = 100;          // to distinguish JSONL from text

// The start of the text after a byte order mark.
std::size_t past_mark(std::string_view text) { return text.starts_with("\xEF\xBB\xBF") ? 3 : 0; }

class RecordReader {
 public:
  explicit RecordReader(std::string_view text) : text_(text) {}

  Blocks read() && {
    Lines lines(text_, {past_mark(text_), text_.size()});
    while (const auto line = lines.next()) {
      const Span record = trimmed(text_, *line);
      if (!record.empty()) add(record);
    }
    return std::move(blocks_);
  }

 private:
  void add(Span span) {
    const std::uint32_t record = blocks_.headings.add(0, fmt::format("record {}", ++count_));
    JsonReader reader(text_, span);
    const bool sound = reader.read();
    const bool turn = sound && reader.is_turn();
    const bool tiny = !turn && span.size() <= record_tiny_bytes_max;
    const Break before = tiny && last_was_tiny_ ? Break::paragraph : Break::record;
    last_was_tiny_ = tiny;
    if (sound && span.size() > limits::chunk_bytes_max)
      return reader.add_blocks(blocks_, record, std::string(under) + "$", before);
    const std::uint32_t heading =
        turn ? blocks_.headings.add(record, std::string(under).append(reader.speaker())) : record;
    blocks_.turns |= turn;
    blocks_.list.push_back({.span = span, .before = before, .cut = sound ? Cut::lines : Cut::json, .heading = heading});
  }

  std::string_view text_;
  Blocks blocks_;
  int count_ = 0;
  bool last_was_tiny_ = false;
};

}  // namespace

bool is_json(std::string_view text) { return JsonReader(text, {past_mark(text), text.size()}).read(); }

bool is_jsonl(std::string_view text) {
  Lines lines(text, {past_mark(text), text.size()});
  int records = 0;
  while (const auto line = lines.next()) {
    const Span record = trimmed(text, *line);
    if (record.empty()) continue;
    if ((text[record.start] != '{' && text[record.start] != '[') || !JsonReader(text, record).read()) return false;
    if (++records == records_looked_at_max) break;
  }
  return records > 0;
}

Blocks json_blocks(std::string_view text) {
  Blocks blocks;
  const bool notebook = text.find("\"nbformat\"") != std::string_view::npos;
  JsonReader reader(text, {past_mark(text), text.size()}, notebook);
  if (reader.read()) {
    reader.add_blocks(blocks, 0, "$", Break::paragraph);
  } else {
    add_paragraphs(blocks.list, text, {0, text.size()}, 0, Break::paragraph);
  }
  return blocks;
}

Blocks jsonl_blocks(std::string_view text) { return RecordReader(text).read(); }

}  // namespace muniment::retrieval
