// The functions behind the rows of the table in formats.cpp. Each format is a file of this folder.
#pragma once

#include <string_view>

#include "base/result.hpp"
#include "evidence/reports/report.hpp"

namespace muniment::evidence::reports {

bool recognises_gtest_xml(std::string_view text);
bool recognises_junit(std::string_view text);
bool recognises_sarif(std::string_view text);
bool recognises_gtest_json(std::string_view text);
bool recognises_go_json(std::string_view text);
bool recognises_ctest(std::string_view text);
bool recognises_pytest(std::string_view text);
bool recognises_cargo_test(std::string_view text);
bool recognises_go_test(std::string_view text);
bool recognises_node_test(std::string_view text);
bool recognises_unittest(std::string_view text);
bool recognises_tap(std::string_view text);

Result<Report> parse_gtest_xml(std::string_view text);
Result<Report> parse_junit(std::string_view text);
Result<Report> parse_sarif(std::string_view text);
Result<Report> parse_gtest_json(std::string_view text);
Result<Report> parse_go_json(std::string_view text);
Result<Report> parse_ctest(std::string_view text);
Result<Report> parse_pytest(std::string_view text);
Result<Report> parse_cargo_test(std::string_view text);
Result<Report> parse_go_test(std::string_view text);
Result<Report> parse_node_test(std::string_view text);
Result<Report> parse_unittest(std::string_view text);
Result<Report> parse_tap(std::string_view text);

// node's TAP reporter, which numbers its subtests and sums up in comments.
Result<Report> parse_node_tap(std::string_view text);

}  // namespace muniment::evidence::reports
