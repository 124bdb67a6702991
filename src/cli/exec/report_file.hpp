// Finds and opens the report files of a recorded command before they are sent.
#pragma once

#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/files/file.hpp"
#include "base/result.hpp"

namespace muniment::cli {

struct ReportFile {
  std::string path;
  Fd file;
  Time changed_at{};  // time of the last change by the system's clock (ctime), which no program can set
};

// Opens the files that the arguments of --report name or, with `scrub`, copies of them without obvious secrets. Each
// argument is a file, a folder or a pattern. A folder and a pattern stand for the reports that changed since `started`;
// a file also stands for the reports of the same format beside it that changed since. If none changed, a pattern stands
// for all of its files, so that the daemon refuses them as too old. Errors: invalid_argument if an argument names no
// report; too_large for a file of more than reports::report_bytes_max bytes, and for too many files.
Result<std::vector<ReportFile>> open_reports(const std::vector<std::string>& arguments, Time started, bool scrub);

}  // namespace muniment::cli
