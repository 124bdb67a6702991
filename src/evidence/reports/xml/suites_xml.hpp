// Reads the XML of test suites, whose elements JUnit and GoogleTest share.
#pragma once

#include <string_view>

#include "base/result.hpp"
#include "evidence/reports/report.hpp"

namespace muniment::evidence::reports {

// Errors: invalid_argument if the root element is neither testsuites nor testsuite. Damaged XML returns a report with
// `complete` false.
Result<Report> read_suites_xml(std::string_view text);

}  // namespace muniment::evidence::reports
