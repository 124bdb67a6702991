// The markup of a query:
//
//   in:notes type:markdown tag:legal run:r1     filters; a value with spaces in quotes: in:"my notes"
//   in:aether://notes/                          the same collection, by its URI in a capsule
//   before:2026-01-01 after:2025-12-24T18:00:00Z  the document's time
//   asof:2026-01-10                             the state at that time
//   "exact words"                               must occur
//
// In a query with more than limits::phrase_other_words_max other words, such as a paragraph, quotation marks only
// quote. A filter is its name, a colon and a valid value without a space between. Everything else is plain text:
// std::vector, https://…, "type: string", before:each. A date is a whole day in UTC: before it begins, after it ends,
// as of its end.
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
  std::optional<Time> before;        // the document is older
  std::optional<Time> after;         // the document is newer
  std::optional<Time> as_of;         // the last microsecond that counts
  std::optional<Time> as_of_begin;   // if that is a day's end: the beginning of the day
  std::vector<std::string> filters;  // as written, in their order: "tag:legal"
};

// Never fails. The narrower of two dates for one filter counts. Filters beyond limits::query_filters_max are text.
Markup parse_markup(std::string_view query);

// Makes a tag that no document has into text: "docker tag:latest".
void take_tag_as_text(Markup& markup, std::string_view tag);

// Returns its labels and times as a filter, without as_of, whose seq only the log knows.
Filter filter_of(const Markup& markup);

// A date in a query: RFC 3339, or an ISO 8601 day, whose last microsecond is `end`.
struct Date {
  Time begin;
  Time end;
};
std::optional<Date> parse_date(std::string_view text);

}  // namespace muniment::retrieval
