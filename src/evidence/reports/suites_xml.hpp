// XML of test suites, which JUnit and GoogleTest write with the same elements.
#pragma once

#include <string_view>

#include "base/result.hpp"
#include "evidence/reports/report.hpp"

namespace muniment::evidence::reports {

// Errors: invalid_argument for another root element. Damaged XML is a report that is not complete.
Result<Report> read_suites_xml(std::string_view text);

}  // namespace muniment::evidence::reports
