// Derives rows of the report tables from events, without a database: matches beginnings with ends, and counts. An event
// without a body contributes only its position and its count.
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

// The common key of a beginning and its end: kind, run_no, key.
using SpanKey = std::tuple<std::string_view, std::int64_t, std::string>;

// Returns the keys that these events end, and the number of ends of each.
std::map<SpanKey, std::int64_t> ended_keys(const std::vector<EventPtr>& events);

// Spans of the table that have no end yet, in order of seq.
using OpenSpans = std::map<SpanKey, std::vector<std::int64_t>>;

// Folds a batch. An end belongs to the newest beginning of its key without an end; without one it forms a span alone.
// `open` has, for each of ended_keys, the newest open spans of the table, as many as there are ends.
ReportRows fold_report(const std::vector<EventPtr>& events, OpenSpans open);

}  // namespace muniment::store
