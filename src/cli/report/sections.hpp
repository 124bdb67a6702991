// Helpers for the sections of a report: counts with nouns, facts that are omitted if empty, and tables that state the
// number of omitted rows.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/report/data.hpp"

namespace muniment::cli {

using Facts = std::vector<std::pair<std::string, std::string>>;

std::string value_of(const std::map<std::string, std::string>& values,
                     const std::string& name);                           // returns "" if absent
void add_fact(Facts& facts, std::string name, std::string value);        // "" adds nothing
std::string counted(const std::map<std::string, std::int64_t>& counts);  // "2 observed, 5 reported"

// Adds the table, or `none` if it has no rows; then the number of rows that are not shown.
void add_table(ReportSection& section, std::vector<ReportColumn> heading, const ReportRows& rows,
               std::string_view none);

ReportSection summary_section(const ReportData& data);
ReportSection models_section(const ReportData& data);

}  // namespace muniment::cli
