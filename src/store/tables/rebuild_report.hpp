// Rebuilds the report tables from the log, as rebuild.hpp does for the other tables. It reads the whole log again and
// writes rows as the follower does, into temporary tables that precede the real ones in the search path.
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

// Compares and corrects the named tables among report_tables. It pauses while it reads, so that appends continue.
Result<std::vector<RebuiltTable>> rebuild_report(const LogPlace& place, const std::vector<std::string>& tables);

}  // namespace muniment::store
