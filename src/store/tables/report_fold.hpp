// What events come to in the report tables, without a database: how a beginning finds its end, and what counts. An
// event that says nothing (any more) has its place and its number, and nothing else.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/result.hpp"
#include "store/append/tail.hpp"
#include "store/tables/report_rows.hpp"

namespace muniment::store {

// What a beginning and its end share: kind, run_no, key.
using SpanKey = std::tuple<std::string_view, std::int64_t, std::string>;

// The keys that these events end, and how often each.
std::map<SpanKey, std::int64_t> ended_keys(const std::vector<EventPtr>& events);

// Spans of the table that have no end yet, in order of seq.
using OpenSpans = std::map<SpanKey, std::vector<std::int64_t>>;

// An end belongs to the newest beginning of its key that has none; without one it stands alone. `open`: of ended_keys,
// the newest that the table has, as many as there are ends.
ReportRows fold_report(const std::vector<EventPtr>& events, OpenSpans open);

}  // namespace muniment::store
