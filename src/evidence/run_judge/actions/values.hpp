// The values that a text names: dates, times, amounts, addresses, ids, in a form that can be compared.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace muniment::evidence::run_judge {

inline constexpr std::size_t values_max = 128;  // values of a text

struct Value {
  enum class Type : std::uint8_t { date, time, money, percent, number, email, id, name };
  Type type = Type::name;
  std::string plain;  // plain(text)
  std::string text;   // the value as written, in lower case
  double number = 0;  // money, percent and number; a time: minutes since midnight
  int year = 0;       // of a date; 0: not named
  int month = 0, day = 0;
  std::size_t begin = 0;  // position in the text
  bool own_mark = false;  // an id after "confirmation number", an amount of money with a currency
};

// Returns the values in the order of the text, without names.
std::vector<Value> values_in(std::string_view text);

// Returns the proper names of a sentence: "Maria Silva". A single word at the beginning is none.
std::vector<Value> names_in(std::string_view sentence);

bool is_same(const Value& a, const Value& b);

// Returns the letters and digits of a text in lower case, words separated by one blank, with a blank at both ends.
std::string plain(std::string_view text);

}  // namespace muniment::evidence::run_judge
