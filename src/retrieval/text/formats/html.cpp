// Tokenizes HTML and extracts its text.
#include "retrieval/text/formats/html.hpp"

#include <algorithm>
#include <array>

#include "base/limits.hpp"

namespace muniment::retrieval {
namespace {

constexpr std::string_view void_elements = "area base br col embed hr img input link meta source track wbr param";
constexpr std::string_view raw_elements = "script style textarea title xmp iframe noembed noframes";
constexpr std::string_view dropped_elements = "template noscript svg object canvas select audio video math datalist";
constexpr std::string_view implied_ends =
    "p li dt dd td th tr option";  // closed by the next one of their kind, or by their parent's end
constexpr std::string_view paragraph_elements =
    "p div section article header footer main aside nav ul ol dl table tbody thead tfoot blockquote figure figcaption form fieldset address details summary body hr";
constexpr std::string_view line_elements = "li dt dd tr caption legend";

struct Tag {
  std::string name;  // lower case
  bool closes = false;
  bool empty = false;  // <br/>
  bool hidden = false;
  std::string alternative;  // alt="…"
};

class HtmlReader {
 public:
  explicit HtmlReader(std::string_view markup) : markup_(markup) { path_.fill(0); }

  ExtractedText read() && {
    while (at_ < markup_.size()) {
      const std::size_t mark = std::min(markup_.find('<', at_), markup_.size());
      add_text(markup_.substr(at_, mark - at_));
      at_ = mark;
      if (at_ < markup_.size()) read_mark();
    }
    end_block();
    if (out_.blocks.title.empty()) out_.blocks.title = first_heading_;
    return std::move(out_);
  }

 private:
  char peek(std::size_t ahead) const { return at_ + ahead < markup_.size() ? markup_[at_ + ahead] : '\0'; }
  static bool is_letter(char c) { return (c | 0x20) >= 'a' && (c | 0x20) <= 'z'; }

  void skip_past(std::string_view mark) {
    const std::size_t found = markup_.find(mark, at_);
    at_ = found == std::string_view::npos ? markup_.size() : found + mark.size();
  }

  void read_mark() {
    if (markup_.substr(at_).starts_with("<!--")) {
      at_ += 2;  // <!--> ends at once
      return skip_past("-->");
    }
    if (peek(1) == '!' || peek(1) == '?' || (peek(1) == '/' && !is_letter(peek(2)))) return skip_past(">");
    if (!is_letter(peek(1)) && peek(1) != '/') {
      add_text("<");
      ++at_;
      return;
    }
    const Tag tag = read_tag();
    if (!skips(tag)) apply(tag);
  }

  Tag read_tag() {
    Tag tag;
    ++at_;
    tag.closes = peek(0) == '/';
    if (tag.closes) ++at_;
    while (at_ < markup_.size() && !is_ascii_blank(peek(0)) && peek(0) != '>' && peek(0) != '/') {
      const char c = markup_[at_++];
      if (tag.name.size() < 32) tag.name += c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c;
    }
    while (at_ < markup_.size() && peek(0) != '>') {
      if (is_ascii_blank(peek(0)) || peek(0) == '/') {
        tag.empty = peek(0) == '/' && peek(1) == '>';
        ++at_;
      } else {
        read_attribute(tag);
      }
    }
    if (at_ < markup_.size()) ++at_;
    return tag;
  }

  void read_attribute(Tag& tag) {
    std::string name;
    do {
      const char c = markup_[at_++];
      if (name.size() < 32) name += c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c;
    } while (at_ < markup_.size() && !is_ascii_blank(peek(0)) && peek(0) != '=' && peek(0) != '>' && peek(0) != '/');
    std::string_view value;
    if (peek(0) == '=') {
      ++at_;
      const char quote = peek(0) == '"' || peek(0) == '\'' ? markup_[at_++] : '\0';
      const std::size_t end =
          std::min(quote ? markup_.find(quote, at_) : markup_.find_first_of(" \t\r\n\f>", at_), markup_.size());
      value = markup_.substr(at_, end - at_);
      at_ = std::min(end + (quote ? 1 : 0), markup_.size());
    }
    if (name == "hidden" || (name == "aria-hidden" && value == "true") || (name == "style" && hides(value)))
      tag.hidden = true;
    if (name == "alt") tag.alternative = value;
  }

  static bool hides(std::string_view style) {
    std::string plain;
    for (const char c : style) {
      if (!is_ascii_blank(c)) plain += c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c;
    }
    return plain.find("display:none") != std::string::npos || plain.find("visibility:hidden") != std::string::npos;
  }

  // Within a dropped element, returns whether this tag is dropped too.
  bool skips(const Tag& tag) {
    if (skipped_.empty()) return false;
    const bool is_void = tag.empty || is_listed(void_elements, tag.name);
    const bool implied = is_listed(implied_ends, skipped_);
    if (!tag.closes && is_listed(raw_elements, tag.name)) skip_raw(tag.name);
    if (!tag.closes && !is_void && implied && skipped_inner_ == 0 && tag.name == skipped_) {
      skipped_.clear();
      return false;
    }
    if (!tag.closes) {
      skipped_inner_ += !is_void && !is_listed(raw_elements, tag.name) && !is_listed(implied_ends, tag.name) &&
                        (implied || tag.name == skipped_);
      return true;
    }
    if (skipped_inner_ > 0) {
      skipped_inner_ -= implied ? !is_listed(implied_ends, tag.name) : tag.name == skipped_;
      return true;
    }
    if (tag.name != skipped_ && !(implied && !is_listed(implied_ends, tag.name))) return true;
    const bool own = tag.name == skipped_;
    skipped_.clear();
    return own;
  }

  void apply(const Tag& tag) {
    if (!tag.closes && is_listed(raw_elements, tag.name)) return read_raw(tag.name);
    const bool is_void = tag.empty || is_listed(void_elements, tag.name);
    if (!tag.closes && (tag.hidden || is_listed(dropped_elements, tag.name))) {
      if (!is_void) skipped_ = tag.name, skipped_inner_ = 0;
      return;
    }
    if (tag.name == "br") return line_break();
    if (tag.name == "img" && !tag.alternative.empty()) return add_text(tag.alternative);
    if ((tag.name == "td" || tag.name == "th") && !tag.closes) return begin_cell();
    if (tag.name == "pre") return set_preformatted(!tag.closes);
    if (tag.name.size() == 2 && tag.name[0] == 'h' && tag.name[1] >= '1' && tag.name[1] <= '6') {
      tag.closes ? end_heading() : begin_heading(static_cast<std::size_t>(tag.name[1] - '0'));
    } else if (is_listed(line_elements, tag.name)) {
      next_block(Break::line);
    } else if (is_listed(paragraph_elements, tag.name)) {
      next_block(Break::paragraph);
    }
  }

  // The content of <script>…</script> is not markup.
  std::string_view skip_raw(const std::string& name) {
    const std::size_t start = at_;
    for (std::size_t found = markup_.find("</", at_); found != std::string_view::npos;
         found = markup_.find("</", found + 2)) {
      at_ = found;
      std::size_t same = 0;
      while (same < name.size() && (peek(2 + same) | 0x20) == name[same]) ++same;
      if (same < name.size() || is_letter(peek(2 + same))) continue;
      skip_past(">");
      return markup_.substr(start, found - start);
    }
    at_ = markup_.size();
    return {};
  }

  void read_raw(const std::string& name) {
    const std::string_view inside = skip_raw(name);
    if (name == "title" && out_.blocks.title.empty())
      out_.blocks.title = trimmed(unescape_html(inside.substr(0, 4 * limits::document_title_bytes_max)));
  }

  void add_text(std::string_view source) {
    if (source.empty() || !skipped_.empty()) return;
    const std::string plain = source.find('&') == std::string_view::npos ? std::string() : unescape_html(source);
    for (std::string_view rest = plain.empty() ? source : std::string_view(plain); !rest.empty();) {
      if (preformatted_) return add_verbatim(rest);
      const std::size_t word = std::min(rest.find_first_not_of(" \t\r\n\f"), rest.size());
      if (word > 0) blank_ = true;
      const std::size_t end = std::min(rest.find_first_of(" \t\r\n\f", word), rest.size());
      add_verbatim(rest.substr(word, end - word));
      rest.remove_prefix(end);
    }
  }

  void add_verbatim(std::string_view piece) {
    if (piece.empty()) return;
    if (out_.text.size() == start_) {
      begin_block();
    } else if (blank_ && !preformatted_) {
      out_.text += ' ';
    }
    blank_ = false;
    out_.text += piece;
  }

  void begin_block() {
    if (!out_.text.empty()) out_.text += before_ == Break::line ? "\n" : "\n\n";
    start_ = out_.text.size();
    fresh_ = false;
  }

  void line_break() {
    if (out_.text.size() > start_) out_.text += '\n';
    blank_ = false;
  }

  void begin_cell() {
    if (!skipped_.empty() || out_.text.size() == start_) return;
    out_.text += " |";
    blank_ = true;
  }

  void set_preformatted(bool on) {
    next_block(Break::line);
    preformatted_ = on;
  }

  void begin_heading(std::size_t level) {
    next_block(Break::section);
    level_ = level;
  }

  void end_heading() {
    if (level_ == 0) return;
    const std::string words(
        first_graphemes(trimmed(std::string_view(out_.text).substr(start_)), limits::heading_bytes_max));
    if (!words.empty()) {
      const std::uint32_t node = out_.blocks.headings.add(path_[level_ - 1], std::string(under) + words);
      for (std::size_t i = level_; i < path_.size(); ++i) path_[i] = node;
      if (first_heading_.empty()) first_heading_ = words;
    }
    next_block(Break::paragraph);
  }

  // Ends the open block, and sets the break before the next one.
  void next_block(Break before) {
    end_block();
    before_ = fresh_ ? std::max(before_, before) : before;
    fresh_ = true;
  }

  void end_block() {
    const Span span = trimmed(out_.text, {start_, out_.text.size()});
    const bool heading = level_ > 0;
    if (span.empty()) {
      out_.text.resize(start_);
    } else {
      out_.text.resize(std::max(span.end, start_));
      out_.blocks.list.push_back({.span = span,
                                  .before = before_,
                                  .cut = preformatted_ ? Cut::lines : Cut::prose,
                                  .heading = path_.back(),
                                  .leads = heading});
      before_ = Break::paragraph;
    }
    start_ = out_.text.size();
    level_ = 0;
    blank_ = false;
  }

  std::string_view markup_;
  std::size_t at_ = 0;
  ExtractedText out_;
  std::size_t start_ = 0;  // start of the open block; empty while it has no text
  Break before_ = Break::paragraph;
  bool fresh_ = true;   // nothing was written since the last break
  bool blank_ = false;  // white space was read, which counts if a word follows
  bool preformatted_ = false;
  std::size_t level_ = 0;  // level of the open heading; 0: none
  std::array<std::uint32_t, 7> path_;
  std::string first_heading_;
  std::string skipped_;  // the dropped element
  std::size_t skipped_inner_ = 0;
};

}  // namespace

ExtractedText extract_html(std::string_view markup) { return HtmlReader(markup).read(); }

}  // namespace muniment::retrieval
