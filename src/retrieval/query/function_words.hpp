// Function words: articles, pronouns, prepositions, auxiliaries, question words. They carry no topic, so they neither
// score nor count in a length; in phrases they count like any word. By language, since "war" is one in German but not
// in English. Lower case, accents folded, sorted.
#pragma once

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

namespace muniment::retrieval {

namespace function_words {

inline constexpr auto english = std::to_array<std::string_view>({
    "a",      "about",  "after",    "all",   "also",   "am",     "an",      "and",     "any",   "are",    "as",
    "at",     "be",     "because",  "been",  "before", "being",  "between", "both",    "but",   "by",     "can't",
    "cannot", "could",  "couldn't", "did",   "didn't", "do",     "does",    "doesn't", "doing", "don't",  "each",
    "for",    "from",   "had",      "has",   "have",   "having", "he",      "her",     "hers",  "him",    "his",
    "how",    "i",      "i'd",      "i'll",  "i'm",    "i've",   "if",      "in",      "into",  "is",     "isn't",
    "it",     "its",    "me",       "my",    "not",    "of",     "on",      "or",      "other", "our",    "ours",
    "she",    "should", "so",       "some",  "such",   "than",   "that",    "the",     "their", "theirs", "them",
    "then",   "there",  "these",    "they",  "this",   "those",  "to",      "us",      "was",   "wasn't", "we",
    "we'll",  "we're",  "we've",    "were",  "what",   "when",   "where",   "which",   "while", "who",    "whom",
    "whose",  "why",    "with",     "would", "you",    "you're", "you've",  "your",    "yours",
});
inline constexpr auto german = std::to_array<std::string_view>({
    "aber",   "als",    "am",     "an",   "auch",  "auf",   "aus",   "bei",  "bin",    "bis",     "bist",    "da",
    "damit",  "das",    "dass",   "dem",  "den",   "der",   "des",   "dich", "die",    "dies",    "diese",   "diesem",
    "diesen", "dieser", "dieses", "dir",  "du",    "durch", "ein",   "eine", "einem",  "einen",   "einer",   "eines",
    "er",     "es",     "fur",    "habe", "haben", "hat",   "hatte", "ich",  "ihm",    "ihn",     "ihr",     "ihre",
    "im",     "in",     "ist",    "kann", "mein",  "meine", "mich",  "mir",  "mit",    "nach",    "nicht",   "noch",
    "nur",    "ob",     "oder",   "sein", "seine", "sich",  "sie",   "sind", "so",     "uber",    "um",      "und",
    "uns",    "unter",  "vom",    "von",  "vor",   "war",   "waren", "was",  "welche", "welcher", "welches", "wenn",
    "wer",    "wie",    "wir",    "wird", "wo",    "zu",    "zum",   "zur",
});
inline constexpr auto french = std::to_array<std::string_view>({
    "a",    "ai",     "au",      "aux",   "avec",  "c'est", "ce",  "ces",  "cet",   "cette", "comme",  "dans",
    "de",   "des",    "du",      "elle",  "elles", "en",    "est", "et",   "etait", "il",    "ils",    "je",
    "la",   "le",     "les",     "leur",  "leurs", "lui",   "ma",  "mais", "me",    "mes",   "moi",    "mon",
    "ne",   "nos",    "notre",   "nous",  "on",    "ont",   "ou",  "par",  "pas",   "pour",  "qu'est", "que",
    "quel", "quelle", "quelles", "quels", "qui",   "quoi",  "sa",  "se",   "ses",   "son",   "sont",   "sur",
    "ta",   "te",     "tes",     "toi",   "ton",   "tu",    "un",  "une",  "vos",   "votre", "vous",   "y",
});
inline constexpr auto spanish = std::to_array<std::string_view>({
    "a",     "al",    "como", "con",  "cual", "cuales", "cuando", "de",   "del",  "donde", "el",   "ella",
    "ellas", "ellos", "en",   "era",  "es",   "esa",    "ese",    "eso",  "esta", "este",  "esto", "fue",
    "ha",    "han",   "la",   "las",  "le",   "les",    "lo",     "los",  "me",   "mi",    "mis",  "muy",
    "nos",   "o",     "para", "pero", "por",  "que",    "quien",  "se",   "ser",  "si",    "son",  "su",
    "sus",   "te",    "tu",   "tus",  "un",   "una",    "unas",   "unos", "y",    "yo",
});

}  // namespace function_words

// `word` in lower case and folded, `language` as ISO 639-1.
inline bool is_function_word(std::string_view word, std::string_view language) {
  std::span<const std::string_view> words;
  if (language == "en") words = function_words::english;
  if (language == "de") words = function_words::german;
  if (language == "fr") words = function_words::french;
  if (language == "es") words = function_words::spanish;
  return std::binary_search(words.begin(), words.end(), word);
}

}  // namespace muniment::retrieval
