// Detects the language of a text with cld2.
#include "retrieval/text/language.hpp"

#include <cstdio>  // missing in cld2's header

#include <cld2/public/compact_lang_det.h>
#include <cld2/public/encodings.h>

#include "base/limits.hpp"
#include "retrieval/query/function_words.hpp"
#include "retrieval/text/unicode.hpp"

namespace muniment::retrieval {
namespace {

struct Letters {
  int ascii = 0;
  int others = 0;
};

Letters letters_of(std::string_view text) {
  Letters letters;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint here = decode_utf8(text, at);
    const bool letter = is_letter_or_digit(here.value) && !(here.value >= '0' && here.value <= '9');
    if (letter) ++(here.value < 0x80 ? letters.ascii : letters.others);
    at += here.size == 0 ? 1 : here.size;
  }
  return letters;
}

// "zh-Hant" → "zh"; a language without a two-letter code is unchanged.
std::string two_letters(std::string_view code) {
  code = code.substr(0, code.find('-'));
  if (code == "iw") return "he";
  if (code == "jw") return "jv";
  return code.size() == 2 && code != "un" && code != "xx" ? std::string(code) : std::string("none");
}

// Shorter texts (names, greetings, headings) cannot be identified, and most of them in plain ASCII are English. The
// language only selects a stemmer, and the English one does the least harm. (A detector takes "Bye Joanna!" for
// Luganda.)
constexpr int telling_letters = 32;
// A text in Latin letters that is detected as another language than English is at least this percentage of it.
constexpr int sure_percent = 80;

bool has_a_rare_language(std::string_view code) {
  static constexpr std::string_view common = " de fr es it pt nl sv da no fi pl cs hu ro tr id vi ";
  return common.find(" " + std::string(code) + " ") == std::string_view::npos;
}

// Counts the function words of a language and of English.
struct FunctionWords {
  int of_language = 0;
  int english = 0;
};

FunctionWords function_words_in(std::string_view text, std::string_view language) {
  const std::uint32_t own = language_bit(language), english = language_bit("en");
  FunctionWords counts;
  std::string word;
  const auto end_word = [&] {
    const std::uint32_t languages = languages_of_function_word(word);
    counts.of_language += (languages & own) != 0;
    counts.english += (languages & english) != 0;
    word.clear();
  };
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint here = decode_utf8(text, at);
    at += here.size == 0 ? 1 : here.size;
    if (is_letter_or_digit(here.value) || here.value == '\'')
      word += folded(here.value);
    else
      end_word();
  }
  end_word();
  return counts;
}

}  // namespace

std::string language_of(std::string_view text) {
  const std::string_view sample = first_graphemes(trimmed(text), limits::language_sample_bytes_max);
  const Letters letters = letters_of(sample);
  if (letters.ascii + letters.others == 0) return "none";
  bool reliable = false;
  CLD2::Language best[3] = {};
  int percent[3] = {}, text_bytes = 0;
  double score[3] = {};
  const CLD2::CLDHints no_hints{nullptr, nullptr, CLD2::UNKNOWN_ENCODING, CLD2::UNKNOWN_LANGUAGE};
  const CLD2::Language found =
      CLD2::ExtDetectLanguageSummary(sample.data(), static_cast<int>(sample.size()), true, &no_hints, 0, best, percent,
                                     score, nullptr, &text_bytes, &reliable);
  const std::string language = two_letters(CLD2::LanguageCode(found));
  if (language == "en" || letters.others > letters.ascii) return language;
  // An English text with names and formulas is taken for other languages: its function words show what it is.
  const FunctionWords words = function_words_in(sample, language);
  const bool english = words.english > words.of_language || (language_bit(language) == 0 && words.english > 0);
  if (english) return "en";
  if (letters.others > 0) return language;
  const bool guessed = language == "none" || !reliable || percent[0] < sure_percent ||
                       (letters.ascii < telling_letters && has_a_rare_language(language));
  return guessed ? "en" : language;
}

}  // namespace muniment::retrieval
