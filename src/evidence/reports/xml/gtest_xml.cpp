// Reads GoogleTest's XML: the elements of JUnit, with a result attribute for each test. A disabled test counts as
// skipped.
#include <string_view>

#include "evidence/reports/formats.hpp"
#include "evidence/reports/xml/suites_xml.hpp"
#include "evidence/reports/xml/xml.hpp"

namespace muniment::evidence::reports {

bool recognises_gtest_xml(std::string_view text) {
  const std::string_view tag = root_tag(text);
  return tag.starts_with("testsuites") && (tag.find(" name=\"AllTests\"") != std::string_view::npos ||
                                           text.find(" status=\"run\" result=\"") != std::string_view::npos);
}

Result<Report> parse_gtest_xml(std::string_view text) { return read_suites_xml(text); }

}  // namespace muniment::evidence::reports
