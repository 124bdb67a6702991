// Splits texts into words, compounds and characters.
#include "retrieval/lexical/words.hpp"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <iterator>
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

// Accents, points of Hebrew and Arabic, and nuktas; not the vowel signs of Indic scripts (Unicode's combining classes).
bool is_accent(char32_t c) {
  const int kind = utf8proc_get_property(static_cast<utf8proc_int32_t>(c))->combining_class;
  return kind == 1 || kind == 7 || (kind >= 10 && kind <= 35) || kind >= 200;
}

bool is_mark(char32_t c) {
  const auto category = static_cast<int>(utf8proc_category(static_cast<utf8proc_int32_t>(c)));
  return category == UTF8PROC_CATEGORY_MN || category == UTF8PROC_CATEGORY_MC || category == UTF8PROC_CATEGORY_ME;
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
    case UTF8PROC_CATEGORY_ME:
      if (without_spaces(c)) return Class::character;
      return is_accent(c) ? Class::mark : Class::lower;
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

// Letters with a stroke and the like, which Unicode does not decompose.
std::string_view plain_letters(char32_t c) {
  switch (c) {
    case 0xE6: return "ae";   // æ
    case 0x153: return "oe";  // œ
    case 0xF8: return "o";    // ø
    case 0x111: return "d";   // đ
    case 0x127: return "h";   // ħ
    case 0x131: return "i";   // ı
    case 0x142: return "l";   // ł
    default: return {};
  }
}

// Appends the letter without its accents: ü is u, ß is ss, أ is ا, ł is l; drops accents and the tatweel.
void append_folded(std::string& out, char32_t c) {
  if (c < 0x80) return append_lower(out, c);
  if (c == 0x0640) return;
  std::array<utf8proc_int32_t, 8> parts{};
  int boundary = 0;
  const auto options =
      static_cast<utf8proc_option_t>(UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT | UTF8PROC_CASEFOLD | UTF8PROC_IGNORE);
  const auto count = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c), parts.data(),
                                             static_cast<utf8proc_ssize_t>(parts.size()), options, &boundary);
  if (count < 0 || static_cast<std::size_t>(count) > parts.size()) return append_utf8(out, c);
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); i++) {
    const auto letter = static_cast<char32_t>(parts[i]);
    if (is_mark(letter) && is_accent(letter)) continue;
    const std::string_view plain = plain_letters(letter);
    plain.empty() ? append_utf8(out, letter) : void(out += plain);
  }
}

bool is_one_of(std::string_view words, std::string_view word) {
  for (std::size_t at = words.find(word); at != std::string_view::npos; at = words.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if ((at == 0 || words[at - 1] == ' ') && (end == words.size() || words[end] == ' ')) return !word.empty();
  }
  return false;
}

// Articles, pronouns and prepositions of French and Italian that lose their vowel before another one.
bool is_elided(std::string_view word) {
  return is_one_of("l d j qu n s c m t jusqu lorsqu puisqu quelqu quoiqu dell all nell sull dall coll un quest quell",
                   word);
}

// The ends of English contractions, which are not suffixes of a name: don't, we'll.
bool is_contracted(std::string_view end) { return is_one_of("s t m d ll re ve n em", end); }

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// 1,234,567
bool has_thousands(std::string_view number) {
  const std::size_t first = number.find(',');
  if (first == std::string_view::npos || first > 3 || (number.size() - first) % 4 != 0) return false;
  for (std::size_t i = 0; i < number.size(); i++) {
    const bool comma = i >= first && (i - first) % 4 == 0;
    if (comma ? number[i] != ',' : !is_digit(number[i])) return false;
  }
  return true;
}

enum class DenseScript : std::uint8_t { other, han, katakana, hangul };

DenseScript dense_script(char32_t c) {
  if (between(c, 0x3400, 0x4DBF) || between(c, 0x4E00, 0x9FFF) || between(c, 0xF900, 0xFAFF) || c == 0x3005 ||
      between(c, 0x20000, 0x323AF))
    return DenseScript::han;
  if (between(c, 0x30A1, 0x30FF)) return DenseScript::katakana;
  return between(c, 0xAC00, 0xD7A3) ? DenseScript::hangul : DenseScript::other;
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
    leave_out_shouting();
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
    const bool after_dot = begins_with_dot();
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
    // .NET is found by "dotnet", and not by every "net".
    if (after_dot && start < words_.size()) keep(words_[start].position, "dot" + words_[start].text);
  }

  // .NET, .env: a point before a letter, and before the point no word and no other point.
  bool begins_with_dot() const {
    if (at_ == 0 || text_[at_ - 1] != '.' || class_at(at_) == Class::digit) return false;
    if (at_ == 1) return true;
    const char before = text_[at_ - 2];
    return std::string_view(" \t\r\n\"'`(/[{<=:,;").find(before) != std::string_view::npos;
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
    if (parts > 1) keep(position, std::move(text));
  }

  void keep(std::uint32_t position, std::string whole) {
    if (whole.size() > limits::word_bytes_max) return;
    words_.push_back({Word::Kind::whole, position, {}, std::move(whole)});
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
        const bool apostrophe = c.value == '\'' || c.value == 0x2019;
        if (apostrophe && is_elided(folded(text_.substr(first, at_ - first)))) {
          part(first, at_);
          first = at_ + c.size;
        }
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
    std::size_t capitals = 0;
    bool others = false;
    for (std::size_t at = first; at < last; at += peek(at).size) {
      const char32_t c = peek(at).value == 0x2019 ? U'\'' : peek(at).value;
      ascii = ascii && c < 0x80;
      class_of(c) == Class::upper ? void(capitals++) : void(others = true);
      append_lower(word.lower, c);
      append_folded(word.text, c);
    }
    for (std::string* form : {&word.lower, &word.text}) {
      if (form->ends_with("'s")) form->resize(form->size() - 2);  // Anna's is found by Anna
    }
    if (ascii || word.lower == word.text) word.lower.clear();
    word.capitals = capitals > 1 && !others;
    if (word.text.size() > limits::word_bytes_max || word.text.empty()) return;
    words_.push_back(std::move(word));
    keep_other_forms();
  }

  // Keeps the other forms of the last word: a number's beginnings, its digits, and a word with an apostrophe without
  // its suffix.
  void keep_other_forms() {
    const std::string text = words_.back().text;
    const std::uint32_t position = words_.back().position;
    if (text.size() > 2 && text.starts_with("0x")) return keep(position, text.substr(2));
    const bool version = text.size() > 1 && text[0] == 'v' && is_digit(text[1]);
    if (is_digit(text[0]) || version) {
      std::string_view number = std::string_view(text).substr(version ? 1 : 0);
      if (has_thousands(number)) {
        std::string digits;
        std::copy_if(number.begin(), number.end(), std::back_inserter(digits), is_digit);
        return keep(position, std::move(digits));
      }
      if (number.find_first_not_of("0123456789.") != std::string_view::npos) return;
      if (version && number.find('.') != std::string_view::npos) keep(position, std::string(number));
      for (std::size_t end = number.rfind('.'); number.find('.') < end; end = number.rfind('.')) {
        number = number.substr(0, end);
        keep(position, std::string(number));
      }
      return;
    }
    const std::size_t apostrophe = text.find('\'');
    if (apostrophe == std::string::npos || is_contracted(std::string_view(text).substr(apostrophe + 1))) return;
    if (apostrophe > 1) keep(position, text.substr(0, apostrophe));
    keep(position, text.substr(0, apostrophe) + text.substr(apostrophe + 1));
  }

  // In a heading or a sentence in capitals, these distinguish no word: IT there may be "it".
  void leave_out_shouting() {
    std::vector<std::size_t> in_a_row;
    const auto end_row = [&] {
      if (in_a_row.size() >= shouted_words) {
        for (const std::size_t i : in_a_row) words_[i].capitals = false;
      }
      in_a_row.clear();
    };
    for (std::size_t i = 0; i < words_.size(); i++) {
      if (words_[i].kind != Word::Kind::plain) continue;
      words_[i].capitals ? in_a_row.push_back(i) : end_row();
    }
    end_row();
  }

  void characters() {
    std::string before, run;
    DenseScript script = DenseScript::other;
    std::uint32_t run_position = 0;
    std::size_t run_characters = 0;
    const auto end_run = [&] {
      const bool word = script != DenseScript::other && run_characters >= 2 && run_characters <= run_characters_max;
      if (word) words_.push_back({Word::Kind::run, run_position, {}, run});
      run.clear();
      run_characters = 0;
    };
    while (at_ < text_.size() && position_ < words_max_) {
      const CodePoint c = peek(at_);
      if (class_of(c.value) != Class::character) break;
      std::string now(text_.substr(at_, c.size));
      if (dense_script(c.value) != script) end_run();
      if (!before.empty()) words_.push_back({Word::Kind::pair, position_, {}, before + now});
      if (run.empty()) run_position = position_ + 1;
      script = dense_script(c.value);
      if (++run_characters <= run_characters_max) run += now;
      words_.push_back({Word::Kind::character, ++position_, {}, now});
      before = std::move(now);
      at_ += c.size;
    }
    end_run();
  }

  void symbol(const CodePoint& c) {
    words_.push_back({Word::Kind::plain, ++position_, {}, std::string(text_.substr(at_, c.size))});
    at_ += c.size;
  }

  static constexpr std::size_t run_characters_max = 8;  // longer runs are several words
  static constexpr std::size_t shouted_words = 3;

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
