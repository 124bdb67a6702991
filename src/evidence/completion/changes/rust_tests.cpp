#include "evidence/completion/changes/rust_tests.hpp"

#include <algorithm>
#include <string>

#include "evidence/completion/changes/diff.hpp"
#include "evidence/completion/text/words.hpp"

namespace muniment::evidence::completion {
namespace {

constexpr std::size_t character_bytes_max = 12;  // '\u{10FFFF}'

bool continues_name(char c) { return is_letter(c) || is_digit(c) || c == '_'; }

// Returns whether an attribute, without "#[", marks an item as a test: cfg(test), test, tokio::test, test_case(1).
bool marks_test(std::string_view attribute) {
  std::string_view name = attribute.substr(0, attribute.find_first_of("(]= "));
  if (name == "cfg") {
    const std::size_t at = attribute.find("test");
    return at != std::string_view::npos && !continues_name(attribute[at - 1]) &&
           (at + 4 == attribute.size() || !continues_name(attribute[at + 4])) &&
           attribute.find("not(test") == std::string_view::npos;
  }
  name.remove_prefix(name.rfind(':') + 1);
  return name == "test" || name == "rstest" || name == "test_case" || name == "bench";
}

// Returns whether rustdoc runs or compiles an example whose fence has this text behind it.
bool is_rust(std::string_view fence) {
  fence = trimmed(fence);
  return fence.empty() || std::ranges::any_of(std::initializer_list<std::string_view>{"rust", "should_panic", "no_run",
                                                                                      "compile_fail", "edition"},
                                              [&](std::string_view word) { return fence.starts_with(word); });
}

class RustReader {
 public:
  explicit RustReader(std::string_view text)
      : text_(text), lines_(static_cast<std::size_t>(std::ranges::count(text, '\n')) + 1, RustLine::program) {}

  std::vector<RustLine> read() {
    while (at_ < text_.size()) read_one();
    if (in_item_) end_item();
    return std::move(lines_);
  }

 private:
  void read_one() {
    const std::string_view rest = text_.substr(at_);
    const char c = rest[0];
    if (is_blank(c)) return step(1);
    const bool doc = rest.starts_with("///") || rest.starts_with("//!");
    if (!doc) in_fence_ = is_run_ = false;
    if (doc) return read_doc(rest.substr(0, rest.find('\n')));
    if (rest.starts_with("//")) return read_head(rest.find('\n'));
    if (rest.starts_with("/*")) return read_head(comment_end(rest));
    if (rest.starts_with("#![")) return read_inner_attribute(rest);
    if (rest.starts_with("#[")) return read_attribute(rest);
    begin_code();
    if (c == '"') return step(string_end(rest, 1));
    if (c == '\'') return step(quote_end(rest));
    if (continues_name(c)) return read_name(rest);
    read_sign(c);
    step(1);
  }

  // A comment or an attribute belongs to the item that follows.
  void read_head(std::size_t size) {
    if (!in_head_) head_line_ = line_;
    in_head_ = true;
    step(size);
  }

  void read_doc(std::string_view line) {
    const std::string_view content = trimmed(line.substr(3));
    const bool fence = content.starts_with("```");
    if (fence && !in_fence_) is_run_ = is_rust(content.substr(3));
    if ((fence || in_fence_) && is_run_ && !in_item_) lines_[line_] = RustLine::example;
    if (fence) in_fence_ = !in_fence_;
    read_head(line.size());
  }

  static std::size_t attribute_end(std::string_view rest) {
    std::size_t depth = 0;
    for (std::size_t i = 0; i < rest.size(); ++i) {
      if (rest[i] == '"') i = string_end(rest, i + 1) - 1;
      if (i < rest.size() && rest[i] == '[') ++depth;
      if (i < rest.size() && rest[i] == ']' && --depth == 0) return i + 1;
    }
    return rest.size();
  }

  void read_attribute(std::string_view rest) {
    const std::size_t size = attribute_end(rest);
    if (marks_test(rest.substr(2, size - 2))) marked_ = true;
    read_head(size);
  }

  // #![cfg(test)] marks the file.
  void read_inner_attribute(std::string_view rest) {
    const std::size_t size = attribute_end(rest);
    if (marks_test(rest.substr(3, size - 3))) std::ranges::fill(lines_, RustLine::test);
    step(size);
  }

  void begin_code() {
    if (marked_ && !in_item_) {
      in_item_ = true;
      item_line_ = head_line_;
      depth_ = 0;
    }
    in_head_ = marked_ = false;
  }

  void end_item() {
    std::fill(lines_.begin() + static_cast<std::ptrdiff_t>(item_line_),
              lines_.begin() + static_cast<std::ptrdiff_t>(line_) + 1, RustLine::test);
    in_item_ = false;
  }

  // An item ends with its block, with a semicolon, or with the block around it.
  void read_sign(char c) {
    if (!in_item_) return;
    if (c == '{' || c == '(' || c == '[') ++depth_;
    if (c == '}' || c == ')' || c == ']') --depth_;
    if ((c == '}' && depth_ <= 0) || (c == ';' && depth_ == 0) || depth_ < 0) end_item();
  }

  // Raw strings begin like names: r"…", br#"…"#.
  void read_name(std::string_view rest) {
    std::size_t size = 0;
    while (size < rest.size() && continues_name(rest[size])) ++size;
    const std::string_view name = rest.substr(0, size);
    if (name != "r" && name != "br" && name != "cr") return step(size);
    const std::size_t quote = std::min(rest.find_first_not_of('#', size), rest.size());
    if (quote == rest.size() || rest[quote] != '"') return step(size);
    const std::string end = '"' + std::string(quote - size, '#');
    const std::size_t closed = rest.find(end, quote + 1);
    step(closed == std::string_view::npos ? rest.size() : closed + end.size());
  }

  static std::size_t string_end(std::string_view rest, std::size_t from) {
    for (std::size_t i = from; i < rest.size(); ++i) {
      if (rest[i] == '\\')
        ++i;
      else if (rest[i] == '"')
        return i + 1;
    }
    return rest.size();
  }

  // A character, or the quote of a lifetime.
  static std::size_t quote_end(std::string_view rest) {
    rest = rest.substr(0, character_bytes_max);
    const bool escaped = rest.starts_with("'\\");
    const std::size_t end = rest.find('\'', escaped ? 3 : 2);
    const bool one = end == 2 || (end <= 5 && static_cast<unsigned char>(rest[1]) >= 0x80);
    return end != std::string_view::npos && (escaped || one) ? end + 1 : 1;
  }

  static std::size_t comment_end(std::string_view rest) {
    std::size_t depth = 0;
    for (std::size_t i = 0; i + 1 < rest.size(); ++i) {
      if (rest.substr(i, 2) == "/*") {
        ++depth, ++i;
      } else if (rest.substr(i, 2) == "*/") {
        ++i;
        if (--depth == 0) return i + 1;
      }
    }
    return rest.size();
  }

  void step(std::size_t size) {
    size = std::min(size, text_.size() - at_);
    line_ += static_cast<std::size_t>(std::ranges::count(text_.substr(at_, size), '\n'));
    at_ += size;
  }

  const std::string_view text_;
  std::vector<RustLine> lines_;
  std::size_t at_ = 0, line_ = 0;
  std::size_t head_line_ = 0, item_line_ = 0;  // first line of the comments and attributes before code; of the item
  int depth_ = 0;                              // of brackets within the item
  bool in_head_ = false, marked_ = false, in_item_ = false;
  bool in_fence_ = false, is_run_ = false;
};

std::size_t line_number(std::string_view header, char sign) {
  std::size_t number = 0;
  for (std::size_t i = header.find(sign) + 1; i < header.size() && is_digit(header[i]); ++i)
    number = number * 10 + static_cast<std::size_t>(header[i] - '0');
  return number == 0 ? 0 : number - 1;
}

// The part of a diff that concerns tests.
class TestDiff {
 public:
  TestDiff(std::string_view old_text, std::string_view new_text)
      : old_(rust_lines(old_text)), new_(rust_lines(new_text)), added_(new_.size()) {}

  // Returns whether the line changes a test by itself.
  bool take(std::string_view line) {
    if (line.starts_with("@@")) {
      old_at_ = line_number(line, '-');
      new_at_ = line_number(line, '+');
      text_ += "@@\n";
      in_hunk_ = true;
      return false;
    }
    if (!in_hunk_ || line.empty() || line[0] == '\\') return false;
    const bool gone = line[0] == '-', added = line[0] == '+';
    const RustLine before = added ? RustLine::program : kind(old_, old_at_++);
    const RustLine after = gone ? RustLine::program : kind(new_, new_at_++);
    if (before != RustLine::program && before != after) return true;
    if (added) added_[new_at_ - 1] = true;
    adds_ = adds_ || (added && after == RustLine::test);
    if (after == RustLine::test && (added || before == RustLine::test)) (text_ += line) += '\n';
    return false;
  }

  bool adds_to_tests(std::string_view old_text) const {
    return adds_ && std::ranges::find(old_, RustLine::test) != old_.end() && !only_adds_tests(text_, old_text);
  }

  // Returns whether lines were added within an example that was there.
  bool changes_example() const {
    bool any_new = false, any_old = false;
    for (std::size_t i = 0; i < new_.size(); ++i) {
      if (new_[i] != RustLine::example) any_new = any_old = false;
      if (new_[i] == RustLine::example) (added_[i] ? any_new : any_old) = true;
      if (any_new && any_old) return true;
    }
    return false;
  }

 private:
  static RustLine kind(const std::vector<RustLine>& lines, std::size_t at) {
    return at < lines.size() ? lines[at] : RustLine::program;
  }

  std::vector<RustLine> old_, new_;
  std::vector<bool> added_;  // by line of the new text
  std::size_t old_at_ = 0, new_at_ = 0;
  std::string text_;
  bool in_hunk_ = false, adds_ = false;
};

}  // namespace

std::vector<RustLine> rust_lines(std::string_view text) { return RustReader(text).read(); }

bool changes_rust_tests(std::string_view diff, std::string_view old_text, std::string_view new_text) {
  TestDiff tests(old_text, new_text);
  while (!diff.empty()) {
    const std::size_t end = std::min(diff.find('\n'), diff.size());
    if (tests.take(diff.substr(0, end))) return true;
    diff.remove_prefix(std::min(end + 1, diff.size()));
  }
  return tests.changes_example() || tests.adds_to_tests(old_text);
}

}  // namespace muniment::evidence::completion
