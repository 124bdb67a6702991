// Measures the likeness of letters to words by a table of letter pairs.
#include "evidence/completion/text/likeness.hpp"

#include <array>
#include <cstdint>

namespace muniment::evidence::completion {
namespace {

// -log2 P(column | row), rounded and at most 9, from the 12,000 words that occur at least three times in the
// documentation and the sources of Debian's python3 and of Muniment.
constexpr std::array<std::string_view, 26> surprise_of{
    "85449759597343959343667769",  // a
    "36563678358367369446489959",  // b
    "38663793594468269453589979",  // c
    "46652579288576478546588879",  // d
    "47436569798453757334867579",  // e
    "47664379299476369455498969",  // f
    "48772754399464479346479988",  // g
    "28872899398667379564689859",  // h
    "56455559998442459543959795",  // i
    "37652699566768369638265979",  // j
    "47651659378475569735585969",  // k
    "38652789298487369845579949",  // l
    "25762899398657339856599979",  // m
    "48433538496686479833669989",  // n
    "65448659696442549344465799",  // o
    "38673785497377359354598959",  // p
    "78968678789366888546159989",  // q
    "37552769396656369544678959",  // r
    "58473674396567447742487969",  // s
    "38672694399667469345587959",  // t
    "54564569599443649343999899",  // u
    "27681779399967479777999989",  // v
    "37753684398674378346987899",  // w
    "56463596399556537652878659",  // x
    "56564658598444529633976877",  // y
    "48971787399767469666989967",  // z
};

// The rows of QWERTY and QWERTZ keyboards, which define neighbouring keys.
constexpr std::array<std::string_view, 4> keyboard_rows{"qwertyuiop", "qwertzuiop", "asdfghjkl", "zxcvbnm"};

constexpr auto neighbours = [] {
  std::array<std::array<bool, 26>, 26> table{};
  for (const std::string_view row : keyboard_rows) {
    for (std::size_t i = 1; i < row.size(); ++i) {
      const auto left = static_cast<std::size_t>(row[i - 1] - 'a');
      const auto right = static_cast<std::size_t>(row[i] - 'a');
      table[left][right] = table[right][left] = true;
    }
  }
  return table;
}();

// Limits in hundredths of a bit for each pair. 99 of 100 words of the source stay below the first limit. The second,
// lower limit applies to words of neighbouring keys.
constexpr std::size_t mash_surprise_min = 520;
constexpr std::size_t neighbour_surprise_min = 430;
constexpr std::size_t text_surprise_min = 465;
constexpr std::size_t judged_pairs_min = 12;

}  // namespace

void add_word(Likeness& likeness, std::string_view word) {
  if (word.size() < judged_word_letters_min) return;
  for (const char c : word) {
    if (c < 'a' || c > 'z') return;
  }
  std::size_t surprise = 0, beside = 0;
  std::uint32_t seen = 0;
  const std::size_t pairs = word.size() - 1;
  for (std::size_t i = 0; i < pairs; ++i) {
    const auto left = static_cast<std::size_t>(word[i] - 'a');
    const auto right = static_cast<std::size_t>(word[i + 1] - 'a');
    surprise += static_cast<std::size_t>(surprise_of[left][right] - '0');
    if (neighbours[left][right]) ++beside;
    seen |= 1U << left | 1U << right;
  }
  const bool one_letter = (seen & (seen - 1)) == 0;
  const bool mash = surprise * 100 >= pairs * mash_surprise_min ||
                    (beside * 10 >= pairs * 6 && surprise * 100 >= pairs * neighbour_surprise_min);
  likeness.letters += word.size();
  if (mash || one_letter) likeness.mashed += word.size();
  likeness.pairs += pairs;
  likeness.surprise += surprise;
}

bool is_mash(const Likeness& likeness) {
  if (likeness.letters == 0) return false;
  if (likeness.mashed * 100 >= likeness.letters * 40) return true;
  return likeness.pairs >= judged_pairs_min && likeness.surprise * 100 >= likeness.pairs * text_surprise_min;
}

}  // namespace muniment::evidence::completion
