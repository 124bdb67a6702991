// The functions of the table in formats.cpp: one detector and one parser for each format. Each format is implemented in
// a file of its own in this folder.
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
bool recognises_summary(std::string_view text);
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
Result<Report> parse_summary(std::string_view text);
Result<Report> parse_tap(std::string_view text);

// node's TAP reporter numbers its subtests and writes its summary as comments.
Result<Report> parse_node_tap(std::string_view text);

}  // namespace muniment::evidence::reports
