#include "cli/exec/report_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/text.hpp"
#include "cli/connect/upload.hpp"
#include "cli/exec/scrub.hpp"
#include "evidence/reports/report.hpp"

namespace muniment::cli {
namespace {

using evidence::reports::report_bytes_max;

Error cannot_read(const std::string& path, int failure) {
  if (failure == ENOENT || failure == ENOTDIR)
    return Error(Errc::invalid_argument, "--report " + path +
                                             ": the command wrote no such file. Name the file that it writes, or omit "
                                             "--report, and run the command again");
  return Error(Errc::invalid_argument, "--report " + path + ": cannot read the file: " + std::strerror(failure));
}

Error not_regular(const std::string& path) {
  return Error(Errc::invalid_argument,
               "--report " + path + ": not a regular file. Name a file that the command writes");
}

}  // namespace

Result<ReportFile> open_report(const std::string& path, bool scrub) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return cannot_read(path, errno);
  if (!S_ISREG(status.st_mode)) return not_regular(path);  // opening a device may have side effects
  ReportFile report{Fd(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)), {}};
  if (!report.file.open() || ::fstat(report.file.get(), &status) != 0) return cannot_read(path, errno);
  if (!S_ISREG(status.st_mode)) return not_regular(path);
  const auto bytes = static_cast<std::size_t>(status.st_size);
  if (bytes > report_bytes_max)
    return Error(Errc::too_large, "--report " + path + ": the file is too large: " + human_size(bytes) + ", at most " +
                                      human_size(report_bytes_max) + " are read");
  report.modified_at.micros =
      static_cast<std::int64_t>(status.st_mtim.tv_sec) * 1'000'000 + status.st_mtim.tv_nsec / 1000;
  if (!scrub) return report;
  ASSIGN_OR_RETURN(Fd copy, temporary_file());
  RETURN_IF_ERROR(scrub_file(report.file, copy));
  report.file = std::move(copy);
  return report;
}

}  // namespace muniment::cli
