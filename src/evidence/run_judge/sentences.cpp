// Splits a message into sentences, and masks its quotations.
#include "evidence/run_judge/sentences.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "base/utf8.hpp"

namespace muniment::evidence::run_judge {
namespace {

constexpr std::string_view blanks = " \t\r";

bool is_blank(char c) { return blanks.find(c) != std::string_view::npos; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word(char c) { return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(blanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
}

// Returns the length of a mark that begins a new paragraph: "- ", "* ", "3. ", "# ", "| " at the beginning of a line.
std::size_t marker_bytes(std::string_view line) {
  std::size_t digits = 0;
  while (digits < line.size() && is_digit(line[digits])) ++digits;
  if (digits > 0 && digits < 4 && digits + 1 < line.size() && (line[digits] == '.' || line[digits] == ')') &&
      line[digits + 1] == ' ')
    return digits + 2;
  const std::size_t marks = std::min(line.find_first_not_of("-*+#|"), line.size());
  return marks > 0 && marks < line.size() && line[marks] == ' ' ? marks + 1 : 0;
}

// "[ ] run the tests": an item that is not completed.
bool is_open_box(std::string_view item) { return item.starts_with("[ ]"); }

bool is_left_out(std::string_view line, std::string_view indented) {
  return line.starts_with(">") || line.starts_with("$ ") || indented.starts_with("    ") || indented.starts_with("\t");
}

// Returns the position of the closing mark of the quotation that begins at `at`; npos if no quotation begins there.
std::size_t closing_of(std::string_view text, std::size_t at) {
  const std::string_view rest = text.substr(at);
  if (rest.starts_with("“")) return text.find("”", at);
  if (rest.front() == '"' || rest.front() == '`') return text.find(rest.front(), at + 1);
  if (rest.front() != '\'' || (at > 0 && is_word(text[at - 1]))) return std::string_view::npos;
  for (std::size_t end = text.find('\'', at + 1); end != std::string_view::npos; end = text.find('\'', end + 1)) {
    if (end + 1 == text.size() || !is_word(text[end + 1])) return end;
  }
  return std::string_view::npos;
}

bool names_a_test(std::string_view name) {
  const auto holds = [&](std::string_view word) { return name.find(word) != std::string_view::npos; };
  return name.size() > 4 && name.find(' ') == std::string_view::npos &&
         (holds("test_") || holds("_test") || holds("Test") || holds("tests/") || holds(".test.") || holds(".spec.") ||
          holds("test/"));
}

// Each kind of mark is searched at most once after its last occurrence, so that unclosed marks cost one search each.
std::string masked_of(const std::string& text) {
  std::string masked = text;
  std::size_t searches = 0;
  constexpr std::size_t searches_max = 64;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '*') masked[at] = ' ';
    const bool opens = text[at] == '"' || text[at] == '`' || text[at] == '\'' || text.compare(at, 3, "“") == 0;
    if (!opens || searches++ > searches_max) continue;
    const std::size_t end = closing_of(text, at);
    if (end == std::string_view::npos) continue;
    const std::string_view inside = std::string_view(text).substr(at + 1, end - at - 1);
    std::fill(masked.begin() + static_cast<std::ptrdiff_t>(at), masked.begin() + static_cast<std::ptrdiff_t>(end + 1),
              'q');
    if (names_a_test(inside)) masked.replace(at, 4, "test");
    at = end;
  }
  return masked;
}

void add_sentence(std::vector<Sentence>& sentences, std::string_view text) {
  for (text = trimmed(text); !text.empty() && sentences.size() < sentences_max; text = trimmed(text)) {
    std::size_t size = std::min(text.size(), sentence_bytes_max);
    while (size > 0 && size < text.size() && (static_cast<unsigned char>(text[size]) & 0xC0U) == 0x80U) --size;
    if (size == 0) return;
    Sentence sentence;
    sentence.text = std::string(text.substr(0, size));
    sentence.masked = masked_of(sentence.text);
    sentence.question = size == text.size() && text.back() == '?';
    sentences.push_back(std::move(sentence));
    text.remove_prefix(size);
  }
}

// A period ends a sentence if a blank follows it, which excludes 3.5 and foo.py.
void split_paragraph(std::vector<Sentence>& sentences, std::string_view text) {
  bool code = false;
  std::size_t begin = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '`') code = !code;
    if (text[at] != '.' && text[at] != '!' && text[at] != '?') continue;
    std::size_t end = at + 1;
    while (end < text.size() && (text[end] == '"' || text[end] == '\'' || text[end] == ')' || text[end] == '*')) ++end;
    if (end < text.size() && (!is_blank(text[end]) || code)) continue;
    add_sentence(sentences, text.substr(begin, end - begin));
    begin = end;
    at = end - 1;
    code = false;
  }
  add_sentence(sentences, text.substr(std::min(begin, text.size())));
}

}  // namespace

std::vector<Sentence> sentences_of(std::string_view text) {
  std::vector<Sentence> sentences;
  std::string paragraph;
  std::string_view fence;
  const auto flush = [&] {
    split_paragraph(sentences, paragraph);
    paragraph.clear();
  };
  while (!text.empty() && sentences.size() < sentences_max) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view whole = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    std::string_view line = trimmed(whole);
    const bool mark = line.starts_with("```") || line.starts_with("~~~");
    if (mark && (fence.empty() || line.substr(0, 3) == fence)) {
      flush();
      fence = fence.empty() ? line.substr(0, 3) : std::string_view();
      continue;
    }
    if (!fence.empty()) continue;
    const std::size_t marker = marker_bytes(line);
    if (line.empty() || marker > 0) flush();
    if (marker == 0 && paragraph.empty() && is_left_out(line, whole)) continue;
    if (line.starts_with(">") || is_open_box(line.substr(marker))) continue;
    if (!paragraph.empty()) paragraph.push_back(' ');
    paragraph += line.substr(marker);
  }
  flush();
  return sentences;
}

}  // namespace muniment::evidence::run_judge
