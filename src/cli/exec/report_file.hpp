// Opens and checks the report file of a recorded command before it is sent.
#pragma once

#include <string>

#include "base/clock.hpp"
#include "base/files/file.hpp"
#include "base/result.hpp"

namespace muniment::cli {

struct ReportFile {
  Fd file;
  Time modified_at{};
};

// Opens the file or, with `scrub`, a copy of it without obvious secrets. Errors: invalid_argument if the file does not
// exist or is not a regular file; too_large if it has more than reports::report_bytes_max bytes.
Result<ReportFile> open_report(const std::string& path, bool scrub);

}  // namespace muniment::cli
