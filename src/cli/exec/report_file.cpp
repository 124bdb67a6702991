#include "cli/exec/report_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <glob.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <set>
#include <utility>

#include "base/limits.hpp"
#include "base/text.hpp"
#include "bridge/scrub.hpp"
#include "client/connect/upload.hpp"
#include "evidence/reports/report.hpp"

namespace muniment::cli {
namespace {

namespace fs = std::filesystem;
using evidence::reports::report_bytes_max;

constexpr std::size_t folder_entries_max = 20'000;  // entries of a folder that are searched for reports

Error cannot_read(const std::string& path, int failure) {
  if (failure == ENOENT || failure == ENOTDIR)
    return Error(Errc::invalid_argument, "--report " + path +
                                             ": the command wrote no such file. Name the file that it writes, or omit "
                                             "--report, and run the command again");
  return Error(Errc::invalid_argument, "--report " + path + ": cannot read the file: " + std::strerror(failure));
}

Error not_regular(const std::string& path) {
  return Error(Errc::invalid_argument, "--report " + path +
                                           ": not a regular file. Name a file, a folder or a pattern of files that the "
                                           "command writes");
}

Result<ReportFile> open_report(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return cannot_read(path, errno);
  if (!S_ISREG(status.st_mode)) return not_regular(path);  // opening a device may have side effects
  ReportFile report{path, Fd(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)), {}};
  if (!report.file.open() || ::fstat(report.file.get(), &status) != 0) return cannot_read(path, errno);
  if (!S_ISREG(status.st_mode)) return not_regular(path);
  const auto bytes = static_cast<std::size_t>(status.st_size);
  if (bytes > report_bytes_max)
    return Error(Errc::too_large, "--report " + path + ": the file is too large: " + human_size(bytes) + ", at most " +
                                      human_size(report_bytes_max) + " are read");
  report.changed_at = changed_at(status);
  return report;
}

std::string format_of(const std::string& path) {
  const auto text = read_file(path, report_bytes_max);
  if (!text) return {};
  const auto report = evidence::reports::read_report(*text);
  return report ? report->format : std::string();
}

class ReportSearch {
 public:
  explicit ReportSearch(Time started) : started_(started.micros - limits::file_time_tick_micros) {}

  Status add(const std::string& argument) {
    std::error_code failed;
    if (fs::is_directory(argument, failed)) return add_folder(argument);
    if (fs::exists(argument, failed) || argument.find_first_of("*?[") == std::string::npos) return add_file(argument);
    return add_pattern(argument);
  }

  Result<std::vector<ReportFile>> open(bool scrub) {
    std::vector<ReportFile> reports;
    for (const std::string& path : paths_) {
      ASSIGN_OR_RETURN(ReportFile report, open_report(path));
      if (scrub) {
        ASSIGN_OR_RETURN(Fd copy, temporary_file());
        RETURN_IF_ERROR(bridge::scrub_file(report.file, copy));
        report.file = std::move(copy);
      }
      reports.push_back(std::move(report));
    }
    return reports;
  }

 private:
  bool is_new(const fs::path& path) const {
    struct stat status {};
    return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) && changed_at(status).micros >= started_;
  }

  static bool may_be_report(const fs::path& path) {
    constexpr std::string_view extensions[] = {".xml", ".json", ".sarif", ".tap"};
    return std::ranges::find(extensions, path.extension().string()) != std::end(extensions);
  }

  static Error too_many_entries(const std::string& folder) {
    return Error(Errc::too_large,
                 fmt::format("--report: the folder {} has more than {} entries. Write the reports into "
                             "a folder of their own",
                             folder, folder_entries_max));
  }
  static Error unreadable(const std::string& folder, const std::error_code& failed) {
    return Error(Errc::unavailable,
                 fmt::format("--report: the folder {} cannot be read: {}", folder, failed.message()));
  }

  // Adds a file once, also if several arguments name it.
  Status keep(const std::string& path) {
    std::error_code failed;
    const fs::path real = fs::canonical(path, failed);
    if (!known_.insert(failed ? path : real.string()).second) return success();
    if (paths_.size() == limits::reports_max)
      return Error(Errc::too_large, fmt::format("--report: more than {} files. Name fewer, or merge them into one",
                                                limits::reports_max));
    paths_.push_back(path);
    return success();
  }

  Status add_file(const std::string& argument) {
    RETURN_IF_ERROR(keep(argument));
    RETURN_IF_ERROR(open_report(argument));
    const std::string format = format_of(argument);
    if (format.empty()) return success();  // the daemon refuses it
    const fs::path path = argument, folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
    std::vector<std::string> beside;
    std::error_code failed;
    std::size_t entries = 0;
    for (fs::directory_iterator entry(folder, failed), end; !failed && entry != end; entry.increment(failed)) {
      if (++entries > folder_entries_max) return too_many_entries(folder.string());
      const fs::path& other = entry->path();
      if (other.extension() == path.extension() && is_new(other) && format_of(other.string()) == format)
        beside.push_back((folder == "." && !path.has_parent_path() ? other.filename() : other).string());
    }
    if (failed) return unreadable(folder.string(), failed);
    return keep_all(std::move(beside));
  }

  Status add_folder(const std::string& argument) {
    std::vector<std::string> found;
    std::error_code failed;
    std::size_t entries = 0;
    for (fs::recursive_directory_iterator entry(argument, failed), end; !failed && entry != end;
         entry.increment(failed)) {
      if (++entries > folder_entries_max) return too_many_entries(argument);
      const fs::path& path = entry->path();
      if (may_be_report(path) && is_new(path) && !format_of(path.string()).empty()) found.push_back(path.string());
    }
    if (failed) return unreadable(argument, failed);
    if (found.empty())
      return Error(Errc::invalid_argument,
                   fmt::format("--report {}: the command wrote no report into this folder. Name the folder or the file "
                               "that it writes, or omit --report, and run the command again",
                               argument));
    return keep_all(std::move(found));
  }

  Status add_pattern(const std::string& argument) {
    glob_t names{};
    std::vector<std::string> all, recent;
    if (::glob(argument.c_str(), 0, nullptr, &names) == 0) {
      for (std::size_t i = 0; i < names.gl_pathc; ++i) {
        all.emplace_back(names.gl_pathv[i]);
        if (is_new(all.back())) recent.push_back(all.back());
      }
    }
    ::globfree(&names);
    if (all.empty()) return cannot_read(argument, ENOENT);
    return keep_all(recent.empty() ? std::move(all) : std::move(recent));
  }

  Status keep_all(std::vector<std::string> found) {
    std::ranges::sort(found);
    for (const std::string& path : found) RETURN_IF_ERROR(keep(path));
    return success();
  }

  std::int64_t started_;
  std::set<std::string> known_;
  std::vector<std::string> paths_;
};

}  // namespace

Result<std::vector<ReportFile>> open_reports(const std::vector<std::string>& arguments, Time started, bool scrub) {
  ReportSearch search(started);
  for (const std::string& argument : arguments) RETURN_IF_ERROR(search.add(argument));
  return search.open(scrub);
}

}  // namespace muniment::cli
