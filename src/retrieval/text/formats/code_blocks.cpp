// Splits code by indentation, which all languages use for nesting; grammars would not cut better. A definition lasts
// until a line that is not indented deeper than it; the comment and the decorators directly above belong to it. The
// content of a class (but not of a function) is split again, under the class's name.
#include <algorithm>

#include "base/limits.hpp"
#include "retrieval/text/blocks.hpp"
#include "retrieval/text/format.hpp"
#include "retrieval/text/formats/code_definition.hpp"

namespace muniment::retrieval {
namespace {

constexpr std::size_t open_definitions_max = 16;

class CodeReader {
 public:
  CodeReader(std::string_view text, std::string_view name)
      : text_(text), dialect_(dialect_of(extension_of(name))), lines_(text, {0, text.size()}) {}

  Blocks read() && {
    while (const auto line = lines_.next()) {
      const Span inside = trimmed(text_, *line);
      const std::string_view content = piece_of(text_, inside);
      if (content.empty()) {
        after_blank_ = true;
        lead_ = none;
        continue;
      }
      line_start_ = line->start;
      indent_ = width(text_.substr(line->start, inside.start - line->start));
      read_line(content);
      after_blank_ = false;
    }
    end_block(text_.size());
    return std::move(blocks_);
  }

 private:
  static constexpr std::size_t none = std::string_view::npos;

  struct Open {
    std::size_t indent = 0;
    std::uint32_t heading = 0;
    bool container = false;
  };

  static std::size_t width(std::string_view blanks) {
    std::size_t columns = 0;
    for (const char c : blanks) columns = c == '\t' ? columns / 8 * 8 + 8 : columns + 1;
    return columns;
  }

  void read_line(std::string_view content) {
    if (in_quote_ || in_comment_) return read_quoted(content);
    if (leads(content)) {
      if (lead_ == none) lead_ = line_start_;
      in_comment_ = dialect_.c_like && content.starts_with("/*") && content.find("*/", 2) == none;
      return;
    }
    begin_quote(content);
    const bool goes_on = closes(content);
    bool left = false;  // a definition ended here
    while (!goes_on && !open_.empty() && indent_ <= open_.back().indent) {
      open_.pop_back();
      left = true;
    }
    const bool in_function = !open_.empty() && !open_.back().container;
    const std::optional<Definition> definition = goes_on || in_function || open_.size() == open_definitions_max
                                                     ? std::nullopt
                                                     : definition_on(content, dialect_, opens(content));
    const std::uint32_t around = open_.empty() ? 0 : open_.back().heading;
    if (definition) {
      const std::uint32_t heading = blocks_.headings.add(around, std::string(under) + definition->label);
      begin_block(open_.empty() ? Break::section : Break::paragraph, heading);
      open_.push_back({indent_, heading, definition->container});
    } else if (left || (after_blank_ && !in_function && !goes_on)) {
      begin_block(left && open_.empty() ? Break::section : Break::paragraph, around);
    }
    lead_ = none;
  }

  // Within """ or /* */, lines are text.
  void read_quoted(std::string_view content) {
    if (in_comment_) {
      in_comment_ = content.find("*/") == none;
    } else {
      in_quote_ = content.find(quote_) == none;
    }
  }

  void begin_quote(std::string_view content) {
    if (!dialect_.triple_quotes) return;
    const std::size_t first = std::min(content.find("\"\"\""), content.find("'''"));
    if (first == none) return;
    quote_ = content.substr(first, 3);
    int count = 0;
    for (std::size_t at = first; at != none; at = content.find(quote_, at + 3)) ++count;
    in_quote_ = count % 2 == 1;
  }

  // A comment, a decorator, an attribute, the head of a template: belongs to what follows.
  bool leads(std::string_view content) const {
    if (content.starts_with('@') || content.starts_with("#[")) return true;
    if (dialect_.c_like && (content.starts_with("//") || content.starts_with("/*") || content.starts_with("template")))
      return content.find('{') == none;
    if (dialect_.dash_comments && content.starts_with("--")) return true;
    return dialect_.hash_comments && content.starts_with('#');
  }

  // A line that ends or continues an open definition, whatever its indentation.
  bool closes(std::string_view content) const {
    const char first = content.front();
    if (first == '}' || first == ')' || first == ']' || first == '{') return !(dialect_.sections && first == '[');
    if (content.starts_with("public:") || content.starts_with("private:") || content.starts_with("protected:"))
      return true;
    // A preprocessor directive.
    if (dialect_.c_like && !dialect_.hash_comments && first == '#' && !open_.empty()) return true;
    return content == "end" || content.starts_with("end;") || content.starts_with("end ") || content.starts_with("EOF");
  }

  bool opens(std::string_view content) const {
    if (content.back() == '{' || (content.back() == '}' && content.find('{') != none)) return true;
    if (content.back() == ';' || content.back() == ',') return false;
    Lines ahead(text_, {lines_.position(), std::min(text_.size(), lines_.position() + 200)});
    const auto next = ahead.next();
    return next && piece_of(text_, trimmed(text_, *next)).starts_with('{');
  }

  void begin_block(Break before, std::uint32_t heading) {
    const std::size_t start = lead_ == none ? line_start_ : lead_;
    end_block(start);
    block_ = {.span = {start, start}, .before = before, .cut = Cut::lines, .heading = heading};
  }

  void end_block(std::size_t end) {
    block_.span.end = end;
    if (!trimmed(text_, block_.span).empty()) blocks_.list.push_back(block_);
  }

  std::string_view text_;
  const Dialect dialect_;
  Lines lines_;
  Blocks blocks_;
  Block block_{.span = {}, .cut = Cut::lines};
  std::vector<Open> open_;  // the definitions that contain the line
  std::size_t line_start_ = 0;
  std::size_t indent_ = 0;
  std::size_t lead_ = none;  // start of the comment directly above
  bool after_blank_ = false;
  bool in_comment_ = false;
  bool in_quote_ = false;
  std::string_view quote_;
};

}  // namespace

Blocks code_blocks(std::string_view text, std::string_view name) { return CodeReader(text, name).read(); }

}  // namespace muniment::retrieval
