// Splits Markdown line by line: headings form the path; a fenced block, a table or a list item is a block. Only the
// exact beginning and end of each matter, not their rendering, so CommonMark's rules of nesting and emphasis are not
// implemented.
#include <array>

#include "base/limits.hpp"
#include "retrieval/text/blocks.hpp"

namespace muniment::retrieval {
namespace {

std::size_t run_of(std::string_view line, char c) {
  const std::size_t end = line.find_first_not_of(c);
  return end == std::string_view::npos ? line.size() : end;
}

// Returns a heading without its marks: emphasis, code, tags; of a link, only its text.
std::string plain_heading(std::string_view source) {
  source = source.substr(0, 4096);  // a longer line is not a heading
  std::string plain;
  for (std::size_t i = 0; i < source.size() && plain.size() <= limits::heading_bytes_max; ++i) {
    const char c = source[i];
    const bool tag = c == '<' && i + 1 < source.size() &&
                     (source[i + 1] == '/' || is_letter_or_digit(static_cast<unsigned char>(source[i + 1])));
    const std::size_t tag_end = tag ? source.substr(0, i + 200).find('>', i) : std::string_view::npos;
    if (tag_end != std::string_view::npos) {
      i = tag_end;
      continue;
    }
    if (c == '*' || c == '`' || c == '[' || (c == '!' && source.substr(i).starts_with("!["))) continue;
    const std::size_t link_end = c == ']' && source.substr(i).starts_with("](")
                                     ? source.substr(0, i + 2000).find(')', i)
                                     : std::string_view::npos;
    if (link_end != std::string_view::npos) i = link_end;
    if (c != ']') plain += c;
  }
  return std::string(first_graphemes(trimmed(plain), limits::heading_bytes_max));
}

bool is_list_item(std::string_view line) {
  if (line.size() < 2) return false;
  if (line[0] == '-' || line[0] == '*' || line[0] == '+') return line[1] == ' ' || line[1] == '\t';
  const std::size_t digits = line.find_first_not_of("0123456789");
  return digits != std::string_view::npos && digits > 0 && digits < 10 &&
         (line[digits] == '.' || line[digits] == ')') && (digits + 1 == line.size() || line[digits + 1] == ' ');
}

class MarkdownReader {
 public:
  explicit MarkdownReader(std::string_view text) : text_(text), lines_(text, {0, text.size()}) { path_.fill(0); }

  Blocks read() && {
    read_front_matter();
    while (const auto line = lines_.next()) read_line(*line);
    close();
    return std::move(blocks_);
  }

 private:
  void read_front_matter() {
    const std::size_t start = text_.starts_with("\xEF\xBB\xBF") ? 3 : 0;
    if (!text_.substr(start).starts_with("---\n") && !text_.substr(start).starts_with("---\r\n")) return;
    Lines lines(text_, {start, text_.size()});
    std::string title;
    for (int count = 0; count < 200; ++count) {
      const auto line = lines.next();
      if (!line) return;
      const std::string_view inside = trimmed(piece_of(text_, *line));
      if (inside.starts_with("title:")) title = trimmed(inside.substr(6));
      if (count == 0 || (inside != "---" && inside != "...")) continue;
      if (title.size() > 1 && (title[0] == '"' || title[0] == '\'') && title.back() == title[0])
        title = title.substr(1, title.size() - 2);
      blocks_.title = title;
      blocks_.list.push_back({.span = {start, line->end}, .cut = Cut::lines});
      lines_ = lines;
      return;
    }
  }

  void read_line(Span line) {
    Span inside = trimmed(text_, line);
    const std::string_view content = piece_of(text_, inside);
    const std::size_t indent = inside.empty() ? 0 : inside.start - line.start;
    if (fence_ != 0) return read_fenced(inside, content);
    if (content.empty()) return close();
    if (opens_fence(content)) return open(inside, Break::line, Cut::lines);
    if (indent < 4 && read_heading(inside, content)) return;
    if (indent < 4 && is_underline(content)) return turn_into_heading(inside, content[0] == '=' ? 1 : 2);
    const bool row = content[0] == '|' || (is_table_ && content.find('|') != std::string_view::npos);
    if (row != is_table_) close();
    if (row) {
      if (!is_open()) open(inside, Break::line, Cut::lines);
      is_table_ = true;
    } else if (indent < 2 && is_list_item(content)) {
      close();
      open(inside, Break::line, Cut::prose);
      is_item_ = true;
    } else if (!is_open()) {
      open(inside, indent >= 2 ? Break::line : Break::paragraph, indent >= 4 ? Cut::lines : Cut::prose);
    }
    block_.span.end = inside.end;
    ++block_lines_;
  }

  bool opens_fence(std::string_view content) {
    const char mark = content[0];
    const std::size_t length = mark == '`' || mark == '~' ? run_of(content, mark) : 0;
    if (length < 3 || (mark == '`' && content.find('`', length) != std::string_view::npos)) return false;
    close();
    fence_ = mark;
    fence_length_ = length;
    return true;
  }

  void read_fenced(Span inside, std::string_view content) {
    if (!content.empty()) block_.span.end = inside.end;
    if (content.empty() || content[0] != fence_ || run_of(content, fence_) != content.size() ||
        content.size() < fence_length_)
      return;
    fence_ = 0;
    close();
  }

  bool read_heading(Span inside, std::string_view content) {
    const std::size_t level = run_of(content, '#');
    if (level == 0 || level > 6 || (content.size() > level && content[level] != ' ' && content[level] != '\t'))
      return false;
    close();
    std::string_view words = trimmed(content.substr(level));
    const std::size_t end = words.find_last_not_of('#');
    if (end == std::string_view::npos) {
      words = {};
    } else if (end + 1 < words.size() && is_ascii_blank(words[end])) {
      words = trimmed(words.substr(0, end));
    }
    add_heading(inside, level, words);
    return true;
  }

  // === or --- directly under one line of text.
  bool is_underline(std::string_view content) const {
    return is_open() && !is_table_ && !is_item_ && block_lines_ == 1 && (content[0] == '=' || content[0] == '-') &&
           run_of(content, content[0]) == content.size();
  }

  void turn_into_heading(Span underline, std::size_t level) {
    const Span words = block_.span;
    block_ = {};
    block_lines_ = 0;
    add_heading({words.start, underline.end}, level, piece_of(text_, words));
  }

  void add_heading(Span span, std::size_t level, std::string_view source) {
    const std::string words = plain_heading(source);
    if (blocks_.title.empty()) blocks_.title = words;
    const std::uint32_t node =
        words.empty() ? path_[level - 1] : blocks_.headings.add(path_[level - 1], std::string(under) + words);
    for (std::size_t i = level; i < path_.size(); ++i) path_[i] = node;
    blocks_.list.push_back({.span = span, .before = Break::section, .cut = Cut::prose, .heading = node, .leads = true});
  }

  bool is_open() const { return !block_.span.empty(); }

  void open(Span span, Break before, Cut cut) {
    block_ = {.span = span, .before = before, .cut = cut, .heading = path_.back()};
    block_lines_ = 0;
  }

  void close() {
    if (is_open()) {
      block_.leads = text_[block_.span.end - 1] == ':';
      blocks_.list.push_back(block_);
    }
    block_ = {};
    block_lines_ = 0;
    is_table_ = is_item_ = false;
  }

  std::string_view text_;
  Lines lines_;
  Blocks blocks_;
  std::array<std::uint32_t, 7> path_;  // [n]: the heading for content below level n
  Block block_;
  int block_lines_ = 0;
  bool is_table_ = false;
  bool is_item_ = false;
  char fence_ = 0;  // the character of the open fence
  std::size_t fence_length_ = 0;
};

}  // namespace

Blocks markdown_blocks(std::string_view text) { return MarkdownReader(text).read(); }

}  // namespace muniment::retrieval
