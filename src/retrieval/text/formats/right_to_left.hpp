// Puts text that poppler extracted from right-to-left pages in reading order.
#pragma once

#include <set>
#include <string>
#include <unordered_map>
#include <vector>

namespace muniment::retrieval {

struct DrawnCharacter {
  char32_t value = 0;
  double width = 0;
};

// Poppler reverses a word of Arabic character by character, and with it the two characters of the ligature lam-alef.
// The font draws them as one glyph, whose width poppler divides evenly; separate letters differ in width.
class Ligatures {
 public:
  void add_word(const std::vector<DrawnCharacter>& drawn);  // from left to right
  // Replaces the words of the page that had such a ligature.
  void restore(std::u32string& text) const;

 private:
  std::unordered_map<std::u32string, std::u32string> words_;  // as poppler reversed it → in reading order
  std::set<std::u32string> plain_;                            // words of the same spelling without a ligature
  double narrowest_ = 0, widest_ = 0;                         // letter widths: equal in a monospaced font
};

bool is_arabic_letter(char32_t c);

// Removes poppler's marks of direction, and moves the space before an embedded run behind it, which is its place when
// the line is read.
void remove_embedding(std::u32string& text);

}  // namespace muniment::retrieval
