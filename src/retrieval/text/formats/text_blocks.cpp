// Splits plain text into paragraphs: runs of lines without a blank one.
#include "base/limits.hpp"
#include "retrieval/text/blocks.hpp"

namespace muniment::retrieval {
namespace {

// A separate first line that is not a sentence is the title.
std::string title_of(std::string_view text, const std::vector<Block>& list) {
  if (list.size() < 2) return {};
  const std::string_view first = trimmed(piece_of(text, list.front().span));
  const bool is_title = first.size() <= limits::heading_bytes_max && first.find('\n') == std::string_view::npos &&
                        std::string_view(".,;:!?{}[]<>=").find(first.back()) == std::string_view::npos;
  return is_title ? std::string(first) : std::string();
}

}  // namespace

void add_paragraphs(std::vector<Block>& list, std::string_view text, Span span, std::uint32_t heading, Break before) {
  Lines lines(text, span);
  Span paragraph{span.start, span.start};
  const auto close = [&] {
    if (paragraph.empty()) return;
    const bool leads = text[paragraph.end - 1] == ':';
    list.push_back({.span = paragraph, .before = before, .cut = Cut::prose, .heading = heading, .leads = leads});
    before = Break::paragraph;
    paragraph.start = paragraph.end;
  };
  while (const auto line = lines.next()) {
    const Span inside = trimmed(text, *line);
    if (inside.empty()) {
      close();
    } else {
      if (paragraph.empty()) paragraph.start = inside.start;
      paragraph.end = inside.end;
    }
  }
  close();
}

Blocks text_blocks(std::string_view text) {
  Blocks blocks;
  add_paragraphs(blocks.list, text, {0, text.size()}, 0, Break::paragraph);
  blocks.title = title_of(text, blocks.list);
  return blocks;
}

}  // namespace muniment::retrieval
