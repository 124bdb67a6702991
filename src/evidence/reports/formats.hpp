// The functions behind the rows of the table in formats.cpp. Each format is a file of this folder.
#pragma once

#include <string_view>

#include "base/result.hpp"
#include "evidence/reports/report.hpp"

namespace muniment::evidence::reports {

bool recognises_gtest_xml(std::string_view text);
bool recognises_junit(std::string_view text);
bool recognises_pytest(std::string_view text);

Result<Report> parse_gtest_xml(std::string_view text);
Result<Report> parse_junit(std::string_view text);
Result<Report> parse_pytest(std::string_view text);

// node's TAP reporter, which numbers its subtests and sums up in comments.

}  // namespace muniment::evidence::reports
