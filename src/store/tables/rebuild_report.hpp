// The report tables made anew from the log, beside those that are there, as rebuild.hpp does with the others: the whole
// log is read again and written as the follower writes it, into temporary tables that stand before the real ones.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "store/logs/log_place.hpp"
#include "store/tables/rebuild.hpp"

namespace muniment::store {

inline constexpr std::array<std::string_view, 3> report_tables = {"report_run", "report_span", "report_place"};

// Those of report_tables that are named, compared and put right where they differ. Rests while it reads, so that
// appends go on.
Result<std::vector<RebuiltTable>> rebuild_report(const LogPlace& place, const std::vector<std::string>& tables);

}  // namespace muniment::store
