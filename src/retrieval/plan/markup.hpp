// The markup of a query, and all there is of it:
//
//   in:notes type:markdown tag:legal run:r1     filters; a value with spaces in quotes: in:"my notes"
//   before:2026-01-01 after:2025-12-24T18:00:00Z  the document's time
//   asof:2026-01-10                             what was current then
//   "exact words"                               must occur
//
// What is left is plain text. A word with a colon that is none of these keys stays text (std::vector, https://…).
// A day is a whole day, UTC: before it, after it, as of its end.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "retrieval/facts.hpp"

namespace muniment::retrieval {

struct Markup {
  std::string text;
  std::vector<std::string> phrases;
  std::vector<std::string> corpora;  // any of them
  std::vector<std::string> types;    // any of them
  std::vector<std::string> tags;     // all of them
  std::vector<std::string> runs;     // any of them
  std::optional<Time> before;        // the document is older than this
  std::optional<Time> after;         // … younger
  std::optional<Time> as_of;         // the last microsecond that counts
  std::optional<Time> as_of_begin;   // where that is a day's, its first one
};

// Errors: invalid_argument, saying which key and what it wants: an empty value, a date that is none, a date
// given twice, more than limits::query_filters_max of them.
Result<Markup> parse_markup(std::string_view query);

// The labels and times of it as a filter, but for as_of, whose seq the log knows.
Filter filter_of(const Markup& markup);

// A date of a query: RFC 3339, or an ISO 8601 day, of which `end` is the last microsecond.
struct Date {
  Time begin;
  Time end;
};
std::optional<Date> parse_date(std::string_view text);

}  // namespace muniment::retrieval
