#include "retrieval/text/formats/right_to_left.hpp"

#include <algorithm>
#include <cmath>

namespace muniment::retrieval {
namespace {

constexpr char32_t lam = 0x644;
constexpr double same_width = 0.005;  // relative to the width: poppler's rounding

bool is_alef(char32_t c) { return c == 0x622 || c == 0x623 || c == 0x625 || c == 0x627 || c == 0x671; }

bool is_one_glyph(const DrawnCharacter& left, const DrawnCharacter& right) {
  return left.value == lam && is_alef(right.value) &&
         std::abs(left.width - right.width) <= same_width * std::max(left.width, right.width);
}

}  // namespace

bool is_arabic_letter(char32_t c) {
  const bool digit = (c >= 0x660 && c < 0x66A) || (c >= 0x6F0 && c < 0x6FA);
  return c >= 0x620 && c < 0x700 && !digit && c != 0x66A && c != 0x66B && c != 0x66C && c != 0x6D4;
}

void Ligatures::add_word(const std::vector<DrawnCharacter>& drawn) {
  for (std::size_t at = 0; at < drawn.size();) {
    std::u32string reversed, read;
    bool found = false;
    for (; at < drawn.size() && is_arabic_letter(drawn[at].value); ++at) {
      const double width = drawn[at].width;
      narrowest_ = widest_ == 0 ? width : std::min(narrowest_, width);
      widest_ = std::max(widest_, width);
      reversed.insert(reversed.begin(), drawn[at].value);
      const bool second = at > 0 && is_one_glyph(drawn[at - 1], drawn[at]);
      found |= second;
      read.insert(second ? read.begin() + 1 : read.begin(), drawn[at].value);
    }
    if (found) {
      words_.emplace(std::move(reversed), std::move(read));
    } else if (!reversed.empty()) {
      plain_.insert(std::move(reversed));
    } else {
      ++at;
    }
  }
}

void Ligatures::restore(std::u32string& text) const {
  const bool one_width = widest_ - narrowest_ <= same_width * widest_;
  if (words_.empty() || one_width) return;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t start = at;
    while (at < text.size() && is_arabic_letter(text[at])) ++at;
    const std::u32string word = text.substr(start, at - start);
    const auto known = words_.find(word);
    if (known != words_.end() && !plain_.contains(word)) text.replace(start, word.size(), known->second);
    at += at == start;
  }
}

void remove_embedding(std::u32string& text) {
  std::u32string out;
  std::vector<std::size_t> starts;
  for (const char32_t c : text) {
    if (c == 0x202A || c == 0x202B) {
      starts.push_back(out.size());
    } else if (c == 0x202C && !starts.empty()) {
      const auto begin = out.begin() + static_cast<std::ptrdiff_t>(starts.back());
      std::rotate(begin, std::find_if(begin, out.end(), [](char32_t one) { return one != ' '; }), out.end());
      starts.pop_back();
    } else if (c != 0x202C) {
      if (c == '\n') starts.clear();
      out += c;
    }
  }
  text = std::move(out);
}

}  // namespace muniment::retrieval
