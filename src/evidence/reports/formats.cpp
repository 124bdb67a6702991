// The table of report formats, and the detection of a text's format.
#include "evidence/reports/formats.hpp"

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "base/text.hpp"
#include "evidence/reports/lines.hpp"
#include "evidence/reports/report.hpp"
#include "evidence/reports/tally.hpp"
#include "evidence/reports/xml/characters.hpp"

namespace muniment::evidence::reports {
namespace {

// The first format that recognises a text parses it. A runner that starts other runners precedes them, because its
// output contains theirs: ctest is first; TAP has the weakest marks and is last.
constexpr std::array<Format, 13> format_table{{
    {"gtest_xml", recognises_gtest_xml, parse_gtest_xml},
    {"junit", recognises_junit, parse_junit},
    {"sarif", recognises_sarif, parse_sarif, json_report_bytes_max},
    {"gtest_json", recognises_gtest_json, parse_gtest_json, json_report_bytes_max},
    {"go_json", recognises_go_json, parse_go_json},
    {"ctest", recognises_ctest, parse_ctest},
    {"pytest", recognises_pytest, parse_pytest},
    {"cargo_test", recognises_cargo_test, parse_cargo_test},
    {"go_test", recognises_go_test, parse_go_test},
    {"node_test", recognises_node_test, parse_node_test},
    {"unittest", recognises_unittest, parse_unittest},
    {"summary", recognises_summary, parse_summary},
    {"tap", recognises_tap, parse_tap},
}};

Report damaged(std::string_view format, std::string problem) {
  Report report;
  report.format = format;
  report.problem = std::move(problem);
  report.unreadable = true;
  return report;
}

}  // namespace

std::span<const Format> formats() { return format_table; }

std::optional<Report> read_report(std::string_view text) {
  const std::string decoded = without_mark(text.substr(0, report_bytes_max));
  if (!decoded.empty() && text.size() <= report_bytes_max) text = decoded;
  // The marks are searched in the beginning of the text, up to the largest limit. A text over the limit of its format
  // is reported as damaged and not parsed.
  std::string_view readable = text.substr(0, report_bytes_max);
  std::string plain;
  if (needs_plain_text(readable)) {
    plain = plain_text(readable);
    readable = plain;
  }
  for (const Format& format : format_table) {
    if (!format.recognises(readable)) continue;
    if (text.size() > format.bytes_max)
      return damaged(format.name, "the report has " + human_size(text.size()) + "; at most " +
                                      human_size(format.bytes_max) + " are read of this format");
    Result<Report> report = format.parse(readable);
    if (!report) return damaged(format.name, std::move(report.error().message));
    if (report->format.empty()) report->format = format.name;
    check_counts(*report);
    return std::move(*report);
  }
  return std::nullopt;
}

}  // namespace muniment::evidence::reports
