// Splits texts into words, compounds and characters.
#include "retrieval/lexical/words.hpp"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>

#include "base/limits.hpp"
#include "base/utf8.hpp"

namespace muniment::retrieval {
namespace {

enum class Class : std::uint8_t { other, lower, upper, digit, mark, character, symbol };

bool between(char32_t c, char32_t first, char32_t last) { return c >= first && c <= last; }

// Scripts without spaces, and Hangul, whose words include their particles.
bool without_spaces(char32_t c) {
  return between(c, 0x0E00, 0x0EFF) ||  // Thai, Lao
         between(c, 0x1000, 0x109F) ||  // Myanmar
         between(c, 0x1780, 0x17FF) ||  // Khmer
         between(c, 0x1100, 0x11FF) ||  // Hangul jamo
         between(c, 0x2E80, 0x2FDF) ||  // radicals
         between(c, 0x3005, 0x3007) || between(c, 0x3031, 0x3035) || between(c, 0x3041, 0x30FF) ||
         between(c, 0x3100, 0x318F) || between(c, 0x31A0, 0x31FF) || between(c, 0x3400, 0x4DBF) ||
         between(c, 0x4E00, 0x9FFF) || between(c, 0xA960, 0xA97F) || between(c, 0xAC00, 0xD7FF) ||
         between(c, 0xF900, 0xFAFF) || between(c, 0x20000, 0x323AF);
}

Class class_of(char32_t c) {
  if (c < 0x80) {
    if (c >= 'a' && c <= 'z') return Class::lower;
    if (c >= 'A' && c <= 'Z') return Class::upper;
    return c >= '0' && c <= '9' ? Class::digit : Class::other;
  }
  switch (static_cast<int>(utf8proc_category(static_cast<utf8proc_int32_t>(c)))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LT: return Class::upper;
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO: return without_spaces(c) ? Class::character : Class::lower;
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME: return without_spaces(c) ? Class::character : Class::mark;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO: return without_spaces(c) ? Class::character : Class::digit;
    case UTF8PROC_CATEGORY_SO:
    case UTF8PROC_CATEGORY_SC: return Class::symbol;  // an emoji is a word
    default: return Class::other;
  }
}

// NFKC: replaces full-width letters, ligatures and half-width kana by their plain forms, and removes invisible
// characters (joiners, soft hyphens). ASCII text does not change.
std::string composed(std::string_view text) {
  utf8proc_uint8_t* raw = nullptr;
  const auto options =
      static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_COMPAT | UTF8PROC_IGNORE);
  const auto size = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                 static_cast<utf8proc_ssize_t>(text.size()), &raw, options);
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owned(raw, &std::free);
  if (size < 0) return std::string(text);  // contains invalid UTF-8: used unchanged
  return std::string(reinterpret_cast<const char*>(raw), static_cast<std::size_t>(size));
}

void append_lower(std::string& out, char32_t c) {
  if (c < 0x80) {
    out += c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : static_cast<char>(c);
  } else {
    append_utf8(out, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))));
  }
}

// Appends the letter without its accents: ü is u, ß is ss, أ is ا; drops marks and the tatweel.
void append_folded(std::string& out, char32_t c) {
  if (c < 0x80) return append_lower(out, c);
  if (c == 0x0640) return;
  std::array<utf8proc_int32_t, 8> parts{};
  int boundary = 0;
  const auto options = static_cast<utf8proc_option_t>(UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT | UTF8PROC_CASEFOLD |
                                                      UTF8PROC_STRIPMARK | UTF8PROC_IGNORE);
  const auto count = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c), parts.data(),
                                             static_cast<utf8proc_ssize_t>(parts.size()), options, &boundary);
  if (count < 0 || static_cast<std::size_t>(count) > parts.size()) return append_utf8(out, c);
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); i++) append_utf8(out, static_cast<char32_t>(parts[i]));
}

// How closely the parts of a compound are tied, closest first: x_y, x-y and xY; then x.y, x::y, x@y; then x/y.
enum class Tie : std::uint8_t { none, name, member, path };

class Splitter {
 public:
  Splitter(std::string_view text, std::size_t words_max) : text_(text), words_max_(words_max) {}

  std::vector<Word> run() {
    while (at_ < text_.size() && position_ < words_max_) {
      const CodePoint c = peek(at_);
      switch (class_of(c.value)) {
        case Class::lower:
        case Class::upper:
        case Class::digit: compound(); break;
        case Class::character: characters(); break;
        case Class::symbol: symbol(c); break;
        case Class::mark:
        case Class::other: at_ += c.size; break;
      }
    }
    return std::move(words_);
  }

 private:
  // An invalid byte is read as NUL, which is not part of any word.
  CodePoint peek(std::size_t at) const {
    if (at >= text_.size()) return {0, 1};
    const auto byte = static_cast<unsigned char>(text_[at]);
    if (byte < 0x80) return {byte, 1};
    const CodePoint c = decode_utf8(text_, at);
    return c.size == 0 ? CodePoint{0, 1} : c;
  }
  static bool in_word(Class c) { return c == Class::lower || c == Class::upper || c == Class::digit; }
  Class class_at(std::size_t at) const { return class_of(peek(at).value); }

  // Reads tied words: x and everything that follows without a space.
  void compound() {
    const std::size_t start = member_ = name_ = words_.size();
    bool path = false;
    for (std::size_t parts = 0;; parts++) {
      word();
      std::size_t size = 0;
      const Tie tie = tie_at(at_, size);
      if (tie == Tie::none || parts == limits::compound_parts_max || position_ >= words_max_) break;
      end_level(tie);
      path = path || tie == Tie::path;
      at_ += size;
    }
    end_level(Tie::path);
    if (path) keep_whole(start);
  }

  // Returns the tie between the word before `at` and a word that begins after it.
  Tie tie_at(std::size_t at, std::size_t& size) const {
    static constexpr std::array<std::pair<std::string_view, Tie>, 13> ties = {{{"://", Tie::path},
                                                                               {"::", Tie::member},
                                                                               {"->", Tie::member},
                                                                               {"__", Tie::name},
                                                                               {"/", Tie::path},
                                                                               {"\\", Tie::path},
                                                                               {"_", Tie::name},
                                                                               {"-", Tie::name},
                                                                               {"\u2010", Tie::name},
                                                                               {"\u2011", Tie::name},
                                                                               {".", Tie::member},
                                                                               {":", Tie::member},
                                                                               {"@", Tie::member}}};
    if (at >= text_.size() || text_[at] == ' ') return Tie::none;
    for (const auto& [text, tie] : ties) {
      if (text_.substr(at, text.size()) != text) continue;
      size = text.size();
      if (in_word(class_at(at + size))) return tie;
    }
    return Tie::none;
  }

  // Keeps what ends before a looser tie as a whole: get_name, get_name.cpp and src/get_name.cpp.
  void end_level(Tie tie) {
    if (tie == Tie::name) return;
    keep_whole(name_);
    if (tie == Tie::path && member_ != name_) keep_whole(member_);
    name_ = words_.size();
    if (tie == Tie::path) member_ = name_;
  }

  void keep_whole(std::size_t first) {
    std::string text;
    std::uint32_t position = 0;
    std::size_t parts = 0;
    for (std::size_t i = first; i < words_.size(); i++) {
      if (words_[i].kind != Word::Kind::plain) continue;
      if (parts++ == 0) position = words_[i].position;
      text += words_[i].text;
      if (text.size() > limits::word_bytes_max) return;
    }
    if (parts > 1) words_.push_back({Word::Kind::whole, position, {}, std::move(text)});
  }

  // Reads one word and, where its letters change from lower to upper case, its parts.
  void word() {
    std::size_t first = at_;
    Class before = Class::other;
    while (at_ < text_.size()) {
      const CodePoint c = peek(at_);
      const Class now = class_of(c.value);
      if (now == Class::mark || in_word(now)) {
        const bool hump = before == Class::lower && now == Class::upper;
        const bool title = (before == Class::upper || before == Class::digit) && now == Class::upper &&
                           class_at(at_ + c.size) == Class::lower;
        if (hump || title) {
          part(first, at_);
          first = at_;
        }
        if (now != Class::mark) before = now;
        at_ += c.size;
      } else if (inside(c, before)) {
        at_ += c.size;
        before = Class::other;
      } else {
        break;
      }
    }
    for (int suffix = 0; suffix < 3 && suffix_at(at_); suffix++) at_++;
    part(first, at_);
  }

  // An apostrophe or ampersand between letters, a point or comma between digits.
  bool inside(const CodePoint& c, Class before) const {
    const Class after = class_at(at_ + c.size);
    if (c.value == '\'' || c.value == 0x2019 || c.value == '&') {
      return (before == Class::lower || before == Class::upper) && (after == Class::lower || after == Class::upper);
    }
    return (c.value == '.' || c.value == ',') && before == Class::digit && after == Class::digit;
  }

  // C++ and C#: signs after a word that do not precede another word.
  bool suffix_at(std::size_t at) const {
    if (at >= text_.size() || (text_[at] != '+' && text_[at] != '#')) return false;
    std::size_t end = at;
    while (end < text_.size() && (text_[end] == '+' || text_[end] == '#')) end++;
    return !in_word(class_at(end));
  }

  void part(std::size_t first, std::size_t last) {
    if (position_ >= words_max_) return;
    Word word;
    word.position = ++position_;
    bool ascii = true;
    for (std::size_t at = first; at < last; at += peek(at).size) {
      const char32_t c = peek(at).value == 0x2019 ? U'\'' : peek(at).value;
      ascii = ascii && c < 0x80;
      append_lower(word.lower, c);
      append_folded(word.text, c);
    }
    for (std::string* form : {&word.lower, &word.text}) {
      if (form->ends_with("'s")) form->resize(form->size() - 2);  // Anna's is found by Anna
    }
    if (ascii || word.lower == word.text) word.lower.clear();
    if (word.text.size() <= limits::word_bytes_max && !word.text.empty()) words_.push_back(std::move(word));
  }

  void characters() {
    std::string before;
    while (at_ < text_.size() && position_ < words_max_) {
      const CodePoint c = peek(at_);
      if (class_of(c.value) != Class::character) break;
      std::string now(text_.substr(at_, c.size));
      if (!before.empty()) words_.push_back({Word::Kind::pair, position_, {}, before + now});
      words_.push_back({Word::Kind::character, ++position_, {}, now});
      before = std::move(now);
      at_ += c.size;
    }
  }

  void symbol(const CodePoint& c) {
    words_.push_back({Word::Kind::plain, ++position_, {}, std::string(text_.substr(at_, c.size))});
    at_ += c.size;
  }

  std::string_view text_;
  std::size_t words_max_;
  std::size_t at_ = 0;
  std::uint32_t position_ = 0;
  std::size_t member_ = 0, name_ = 0;  // start of the compound's present levels in words_
  std::vector<Word> words_;
};

}  // namespace

std::vector<Word> words_of(std::string_view text, std::size_t words_max) {
  const bool ascii = std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
  if (ascii) return Splitter(text, words_max).run();
  const std::string normal = composed(text);
  return Splitter(normal, words_max).run();
}

std::string folded(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint c = decode_utf8(text, at);
    if (c.size > 0) append_folded(out, c.value);
    at += std::max<std::size_t>(c.size, 1);
  }
  return out;
}

}  // namespace muniment::retrieval
