// Splits a message into sentences, and masks its quotations.
#include "evidence/run_judge/sentences.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

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

// Blanks the month May, which is no wish.
void blank_month(std::string& masked) {
  const auto word_at = [&](std::size_t at) {
    return masked.compare(at, 3, "May") == 0 && (at == 0 || !is_word(masked[at - 1])) &&
           (at + 3 == masked.size() || !is_word(masked[at + 3]));
  };
  for (std::size_t at = masked.find("May"); at != std::string::npos; at = masked.find("May", at + 3)) {
    if (!word_at(at)) continue;
    const bool day_after = at + 4 < masked.size() && is_digit(masked[at + 4]);
    const bool inside = at > 1 && masked[at - 1] == ' ' && masked[at - 2] != '.';
    if (day_after || inside) masked.replace(at, 3, "   ");
  }
}

void add_sentence(std::vector<Sentence>& sentences, std::string_view text) {
  for (text = trimmed(text); !text.empty() && sentences.size() < sentences_max; text = trimmed(text)) {
    std::size_t size = std::min(text.size(), sentence_bytes_max);
    while (size > 0 && size < text.size() && (static_cast<unsigned char>(text[size]) & 0xC0U) == 0x80U) --size;
    if (size == 0) return;
    Sentence sentence;
    sentence.text = std::string(text.substr(0, size));
    sentence.masked = masked_of(sentence.text);
    blank_month(sentence.masked);
    sentence.question = size == text.size() && text.back() == '?';
    sentences.push_back(std::move(sentence));
    text.remove_prefix(size);
  }
}

// "Dr.", "No.": a period after it ends no sentence.
bool is_abbreviation(std::string_view before) {
  static constexpr std::string_view words[] = {"Dr", "Mr", "Mrs", "Ms", "St", "No", "vs", "approx", "e.g", "i.e"};
  return std::any_of(std::begin(words), std::end(words), [&](std::string_view word) {
    return before.ends_with(word) &&
           (before.size() == word.size() || !is_word(before[before.size() - word.size() - 1]));
  });
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
    if (end < text.size() && (!is_blank(text[end]) || code || is_abbreviation(text.substr(0, at)))) continue;
    add_sentence(sentences, text.substr(begin, end - begin));
    begin = end;
    at = end - 1;
    code = false;
  }
  add_sentence(sentences, text.substr(std::min(begin, text.size())));
}

// Replaces typographic apostrophes, blanks and hyphens by those of a keyboard, because patterns match bytes.
std::string typed_of(std::string_view text) {
  constexpr std::pair<std::string_view, char> marks[] = {
      {"’", '\''}, {"\u00a0", ' '}, {"\u202f", ' '}, {"\u2011", '-'}};
  std::string typed;
  typed.reserve(text.size());
  while (!text.empty()) {
    const auto mark =
        std::find_if(std::begin(marks), std::end(marks), [&](const auto& one) { return text.starts_with(one.first); });
    typed.push_back(mark == std::end(marks) ? text.front() : mark->second);
    text.remove_prefix(mark == std::end(marks) ? 1 : mark->first.size());
  }
  return typed;
}

}  // namespace

std::vector<Sentence> sentences_of(std::string_view original) {
  const std::string typed = typed_of(original);
  std::string_view text = typed;
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
