// Finds values by patterns. A range that one type has claimed is blank for the next types.
#include "evidence/run_judge/actions/values.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "evidence/run_judge/words.hpp"

namespace muniment::evidence::run_judge {
namespace {

using Type = Value::Type;

constexpr std::string_view months[] = {"jan", "feb", "mar", "apr", "may", "jun",
                                       "jul", "aug", "sep", "oct", "nov", "dec"};
constexpr std::string_view small_numbers[] = {"zero",  "one",   "two",  "three", "four",   "five",  "six",
                                              "seven", "eight", "nine", "ten",   "eleven", "twelve"};

// Returns the numbers of a text: 2026, 3, 4 in "2026-03-04". Thousands separators are skipped.
std::vector<double> numbers_of(std::string_view text) {
  std::vector<double> numbers;
  for (std::size_t at = 0; at < text.size();) {
    if (std::isdigit(static_cast<unsigned char>(text[at])) == 0) {
      ++at;
      continue;
    }
    std::string digits;
    for (; at < text.size(); ++at) {
      const bool digit = std::isdigit(static_cast<unsigned char>(text[at])) != 0;
      const bool group =
          text[at] == ',' && at + 3 < text.size() && std::isdigit(static_cast<unsigned char>(text[at + 1])) != 0;
      const bool point =
          text[at] == '.' && at + 1 < text.size() && std::isdigit(static_cast<unsigned char>(text[at + 1])) != 0;
      if (digit || point)
        digits.push_back(text[at]);
      else if (!group)
        break;
    }
    numbers.push_back(std::strtod(digits.c_str(), nullptr));
  }
  return numbers;
}

int month_in(std::string_view text) {
  const std::string letters = lowered(text);
  for (std::size_t i = 0; i < std::size(months); ++i) {
    const std::size_t at = letters.find(months[i]);
    if (at != std::string::npos && (at == 0 || std::isalpha(static_cast<unsigned char>(letters[at - 1])) == 0))
      return static_cast<int>(i) + 1;
  }
  return 0;
}

struct ValuePatterns {
  Pattern iso_date{R"(\b\d{4}-\d{2}-\d{2}(?:$|[T\s]|\b))"};
  Pattern slash_date{R"(\b\d{1,2}[/.]\d{1,2}[/.]\d{4}\b)"};
  Pattern named_date{
      R"(\b(?:jan|feb|mar|apr|may|jun|jul|aug|sept?|oct|nov|dec)(?:uary|ruary|ch|il|e|y|ust|tember|ober|ember)?\.?\s+\d{1,2}(?:st|nd|rd|th)?(?:,?\s+\d{4}\b|\b))"};
  Pattern day_first{
      R"(\b\d{1,2}(?:st|nd|rd|th)?(?:\s+of)?\s+(?:jan|feb|mar|apr|may|jun|jul|aug|sept?|oct|nov|dec)(?:uary|ruary|ch|il|e|y|ust|tember|ober|ember)?\b(?:,?\s+\d{4}\b)?)"};
  Pattern email{R"([\w.+-]+@[\w-]+(?:\.[\w-]+)+)"};
  Pattern clock{R"(\b\d{1,2}:\d{2}(?::\d{2})?(?:\s*[ap]\.?m\b)?|\b\d{1,2}\s*[ap]\.?m\b)"};
  Pattern noon{R"(\bnoon\b|\bmidday\b)"};
  Pattern money{
      R"((?:\$|€|£|\b(?:usd|eur|gbp)\s?)\s?\d[\d,]*(?:\.\d+)?(?:[kKmM]\b)?|\b\d[\d,]*(?:\.\d+)?\s?(?:usd|eur|gbp|dollars|euros|pounds|€)(?:\b|$))"};
  Pattern percent{R"(\b\d+(?:\.\d+)?\s?(?:%|percent\b))"};
  Pattern code{
      R"(\b(?:confirmation|reference|booking|reservation|order|ticket|case|invoice|transaction|refund|commit|sha|tracking|message|event|contact|deal|lead|account)\s*(?:number|code|id|no\.?|ref(?:erence)?|#)?(?:\s+(?:is|was))?\s*:?\s*(?:\()?#?`?[\w-]*\d[\w-]*)"};
  Pattern id{R"(#\d+\b|[A-Za-z0-9][\w.-]*[\w]|[A-Za-z0-9])"};
  Pattern name{R"([A-Z][a-z]+[\w’'-]*(?:\s+(?:of|de|la|the|&|and)\s+[A-Z][\w’'-]+|\s+[A-Z][\w’'-]*)*)", false};
};

const ValuePatterns& value_patterns() {
  static const ValuePatterns all;
  return all;
}

// Finds the values of one type after another in a text.
class Finder {
 public:
  explicit Finder(std::string_view text) : left_(text.substr(0, text_max)) {}

  std::vector<Value> find() && {
    const ValuePatterns& known = value_patterns();
    take(known.email, [](Value& value) {
      value.type = Type::email;
      return true;
    });
    take(
        known.iso_date, [](Value& value) { return set_date(value, 0, 1, 2); }, true);
    take(known.slash_date, [](Value& value) { return set_date(value, 2, 0, 1); });
    take(known.named_date, [](Value& value) { return set_date(value, 1, -1, 0); });
    take(known.day_first, [](Value& value) { return set_date(value, 1, -1, 0); });
    take(known.clock, set_time);
    take(known.noon, [](Value& value) {
      value.type = Type::time;
      value.number = 720;
      return true;
    });
    take(known.money, set_money);
    take(known.percent, [](Value& value) {
      value.type = Type::percent;
      value.number = numbers_of(value.text).front();
      return true;
    });
    take(known.id, set_id);
    for (Value& value : found_) {
      constexpr std::size_t digits_min = 3;
      const bool code = value.type == Type::number && value.text.size() >= digits_min &&
                        value.text.find_first_not_of("0123456789") == std::string::npos;
      if ((value.type != Type::id && !code) || !is_marked(value)) continue;
      value.type = Type::id;
      value.own_mark = true;
    }
    for (Value& value : found_) value.plain = run_judge::plain(value.text);
    std::sort(found_.begin(), found_.end(), [](const Value& a, const Value& b) { return a.begin < b.begin; });
    return std::move(found_);
  }

 private:
  static constexpr std::size_t text_max = 4'000;

  template <typename Set>
  void take(const Pattern& pattern, const Set& set, bool keep_last = false) {
    for (std::size_t from = 0; found_.size() < values_max;) {
      const auto match = pattern.find(left_, from);
      if (!match) return;
      from = std::max(match->end, match->begin + 1);
      Value value;
      value.begin = match->begin;
      value.text = lowered(std::string_view(left_).substr(match->begin, match->end - match->begin));
      if (!set(value)) continue;
      // The time of day follows the T of a timestamp.
      const bool timed = keep_last && match->begin + 10 < left_.size() &&
                         (left_[match->begin + 10] == 'T' || left_[match->begin + 10] == 't');
      const std::size_t end = keep_last ? match->begin + (timed ? 11 : 10) : match->end;
      std::fill(left_.begin() + static_cast<std::ptrdiff_t>(match->begin),
                left_.begin() + static_cast<std::ptrdiff_t>(std::min(end, left_.size())), ' ');
      found_.push_back(std::move(value));
    }
  }

  static bool set_date(Value& value, int year_at, int month_at, int day_at) {
    const std::vector<double> numbers = numbers_of(value.text);
    const auto number = [&](int at) {
      return at < static_cast<int>(numbers.size()) ? static_cast<int>(numbers[static_cast<std::size_t>(at)]) : 0;
    };
    value.type = Type::date;
    value.year = number(year_at);
    value.month = month_at < 0 ? month_in(value.text) : number(month_at);
    value.day = number(day_at);
    return value.day >= 1 && value.day <= 31 && value.month >= 1;
  }

  static bool set_time(Value& value) {
    const std::vector<double> numbers = numbers_of(value.text);
    const bool named = value.text.find('m') != std::string::npos;
    const bool evening = value.text.find('p') != std::string::npos;
    double hour = numbers[0];
    if (named && hour <= 12) hour = std::fmod(hour, 12) + (evening ? 12 : 0);
    value.type = Type::time;
    value.number = hour * 60 + (numbers.size() > 1 ? numbers[1] : 0);
    value.own_mark = named || hour > 12;
    return value.number < 1440;
  }

  static bool set_money(Value& value) {
    const std::vector<double> numbers = numbers_of(value.text);
    if (numbers.empty()) return false;
    value.type = Type::money;
    value.number = numbers.front();
    if (value.text.ends_with("k")) value.number *= 1'000;
    if (value.text.ends_with("m")) value.number *= 1'000'000;
    value.own_mark = true;
    return true;
  }

  // An id has a digit and a letter, or a number sign; other words are none, and a number is a number.
  static bool set_id(Value& value) {
    const auto small = std::find(std::begin(small_numbers), std::end(small_numbers), value.text);
    if (small != std::end(small_numbers)) {
      value.type = Type::number;
      value.number = static_cast<double>(small - std::begin(small_numbers));
      return true;
    }
    const bool digit = std::any_of(value.text.begin(), value.text.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (!digit) return false;
    const bool plain_number = value.text.find_first_not_of("0123456789.,") == std::string::npos;
    if (plain_number) {
      value.type = Type::number;
      value.number = numbers_of(value.text).front();
      return true;
    }
    static const Pattern unit(
        R"(^\d+(?:st|nd|rd|th|h|hr|hrs|m|min|mins|s|sec|ms|x|k|kb|mb|gb|kg|d|px|am|pm|-?(?:day|night|hour|minute|way|month|year|star|person|seat|step)s?)?(?:-\d+)?$)");
    if (unit.in(value.text)) return false;
    value.type = Type::id;
    value.own_mark = value.text.front() == '#';
    if (value.own_mark) value.text.erase(0, 1);
    return true;
  }

  // Returns whether the id follows a word such as "confirmation number".
  bool is_marked(const Value& value) const {
    static const Pattern mark(
        R"((?:confirmation|reference|booking|reservation|order|ticket|case|invoice|transaction|refund|commit|sha|tracking|record locator|pnr)(?:\s+(?:number|code|id|no\.?|ref(?:erence)?|locator))?(?:\s+(?:is|was))?\s*[:#(]*\s*$)");
    const std::size_t begin = value.begin > 60 ? value.begin - 60 : 0;
    return mark.in(std::string_view(left_).substr(begin, value.begin - begin));
  }

  std::string left_;
  std::vector<Value> found_;
};

bool is_common(std::string_view word) {
  static constexpr std::string_view common[] = {
      "I",        "We",       "Your",         "You",     "The",         "This",      "That",        "It",
      "Done",     "Great",    "Okay",         "All",     "Here",        "There",     "Note",        "Please",
      "Thank",    "Thanks",   "Yes",          "Sure",    "Perfect",     "Also",      "And",         "Both",
      "Each",     "As",       "For",          "In",      "On",          "At",        "Is",          "January",
      "February", "March",    "April",        "May",     "June",        "July",      "August",      "September",
      "October",  "November", "December",     "Monday",  "Tuesday",     "Wednesday", "Thursday",    "Friday",
      "Saturday", "Sunday",   "Confirmation", "Booking", "Reservation", "Order",     "Email",       "Ticket",
      "Let",      "If",       "My",           "Our",     "Everything",  "Success",   "Successfully"};
  return std::find(std::begin(common), std::end(common), word) != std::end(common);
}

}  // namespace

std::vector<Value> values_in(std::string_view text) { return Finder(text).find(); }

std::vector<Value> names_in(std::string_view sentence) {
  std::vector<Value> names;
  for (std::size_t from = 0; names.size() < values_max;) {
    const auto match = value_patterns().name.find(sentence, from);
    if (!match) break;
    from = std::max(match->end, match->begin + 1);
    if (match->begin > 0 && std::isalnum(static_cast<unsigned char>(sentence[match->begin - 1])) != 0) continue;
    std::string_view text = sentence.substr(match->begin, match->end - match->begin);
    std::size_t begin = match->begin;
    const std::size_t first = text.find(' ');
    if (is_common(text.substr(0, first)) || (begin == 0 && first == std::string_view::npos)) {
      if (first == std::string_view::npos) continue;
      text.remove_prefix(first + 1);
      begin += first + 1;
    }
    if (text.ends_with("'s")) text.remove_suffix(2);
    if (text.ends_with("’s")) text.remove_suffix(std::string_view("’s").size());
    if (text.size() < 3 || is_common(text)) continue;
    Value value;
    value.type = Type::name;
    value.text = plain(text);
    value.plain = value.text;
    value.begin = begin;
    names.push_back(std::move(value));
  }
  return names;
}

bool is_same(const Value& a, const Value& b) {
  const auto near = [](double x, double y) { return std::fabs(x - y) < 0.005; };
  const auto numeric = [](Type type) { return type == Type::money || type == Type::number || type == Type::percent; };
  if (a.type == Type::date && b.type == Type::date) {
    const bool same_year = a.year == 0 || b.year == 0 || a.year == b.year;
    return same_year && ((a.month == b.month && a.day == b.day) ||
                         ((a.text.find('/') != std::string::npos || b.text.find('/') != std::string::npos) &&
                          a.month == b.day && a.day == b.month));
  }
  if (a.type == Type::time && b.type == Type::time) {
    return near(a.number, b.number) ||
           ((!a.own_mark || !b.own_mark) && near(std::fmod(a.number, 720), std::fmod(b.number, 720)));
  }
  if (numeric(a.type) && numeric(b.type)) return near(a.number, b.number);
  if (a.type == Type::id || b.type == Type::id) {
    // A short hash is the beginning of the whole one.
    constexpr std::size_t hash_bytes = 7;
    const std::string_view shorter = a.text.size() < b.text.size() ? a.text : b.text;
    const std::string_view longer = a.text.size() < b.text.size() ? b.text : a.text;
    const bool hash =
        shorter.size() >= hash_bytes && shorter.find_first_not_of("0123456789abcdef") == std::string_view::npos;
    return a.text == b.text || a.plain == b.plain || (hash && longer.starts_with(shorter));
  }
  return a.type == b.type && a.text == b.text;
}

std::string plain(std::string_view text) {
  std::string result = " ";
  for (const char c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 || (static_cast<unsigned char>(c) & 0x80U) != 0) {
      result.push_back(static_cast<char>(std::tolower(static_cast<unsigned char>(c))));
    } else if (result.back() != ' ') {
      result.push_back(' ');
    }
  }
  if (result.back() != ' ') result.push_back(' ');
  return result;
}

}  // namespace muniment::evidence::run_judge
