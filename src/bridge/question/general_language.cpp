#include "bridge/question/general_language.hpp"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <unordered_map>

namespace muniment::bridge {
namespace {

constexpr char words_of_general_language[] =
#include "bridge/general_language.inc"  // generated from general_language.txt
    ;

struct Word {
  WordClass rank;
  std::string_view text;
};

std::string lower_word(std::string_view text) {
  std::string lowered(text);
  for (char& c : lowered) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lowered;
}

using Words = std::unordered_map<std::string, Word>;

Words read_words() {
  Words words;
  WordClass rank = WordClass::common;
  std::string_view rest = words_of_general_language;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(' '), rest.size());
    const std::string_view word = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (word == "=common" || word == "=rare" || word == "=terms") {
      rank = word == "=common" ? WordClass::common : word == "=rare" ? WordClass::rare : WordClass::term;
    } else if (!word.empty()) {
      const bool added = words.emplace(lower_word(word), Word{rank, word}).second;
      if (!added) words.emplace(std::string(word), Word{rank, word});
    }
  }
  return words;
}

const Words& words() {
  static const Words read = read_words();
  return read;
}

struct Ending {
  std::string_view ending, base;
};
constexpr Ending endings[] = {{"s", ""},   {"es", ""},   {"ies", "y"}, {"ed", ""},   {"ed", "e"}, {"ied", "y"},
                              {"ing", ""}, {"ing", "e"}, {"ly", ""},   {"ly", "le"}, {"ness", ""}};
constexpr std::size_t base_bytes_min = 3;

// Finds the most common word of which this is a regular form.
std::optional<GeneralWord> inflected(const std::string& lowered) {
  std::optional<GeneralWord> word;
  for (const Ending& one : endings) {
    if (lowered.size() < one.ending.size() + base_bytes_min || !lowered.ends_with(one.ending)) continue;
    if (lowered.find_first_not_of("abcdefghijklmnopqrstuvwxyz") != std::string::npos) break;
    const std::string stem = lowered.substr(0, lowered.size() - one.ending.size());
    std::string bases[] = {stem + std::string(one.base), {}};
    if (one.ending != "s" && one.base.empty() && stem[stem.size() - 1] == stem[stem.size() - 2])
      bases[1] = stem.substr(0, stem.size() - 1);
    for (const std::string& base : bases) {
      const auto found = words().find(base);
      if (found == words().end() || found->second.rank == WordClass::term) continue;
      if (!word || found->second.rank < word->rank) word = GeneralWord{found->second.rank, lowered, base};
    }
  }
  return word;
}

}  // namespace

std::optional<GeneralWord> general_word(std::string_view word) {
  const std::string lowered = lower_word(word);
  for (const std::string& spelling : {std::string(word), lowered}) {
    if (const auto found = words().find(spelling); found != words().end())
      return GeneralWord{found->second.rank, std::string(found->second.text), lowered};
  }
  if (auto form = inflected(lowered)) return form;
  const std::size_t mark = word.find_first_of("-/");
  if (mark == std::string_view::npos || mark < 2 || mark + 2 >= word.size()) return std::nullopt;
  const auto first = general_word(word.substr(0, mark));
  const auto rest = general_word(word.substr(mark + 1));
  if (!first || !rest) return std::nullopt;
  const bool rare = first->rank == WordClass::rare || rest->rank == WordClass::rare;
  return GeneralWord{rare ? WordClass::rare : WordClass::common, first->text + word[mark] + rest->text,
                     first->base + " " + rest->base};
}

}  // namespace muniment::bridge
