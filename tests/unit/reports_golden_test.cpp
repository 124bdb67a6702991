// Golden reports: each file of tests/golden/reports was written by a real tool, and some were damaged afterwards; a
// JSON file beside it has the parsed report. MUNIMENT_ACCEPT=1 rewrites the JSON files.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "unit/reports_golden.hpp"

namespace muniment::evidence::reports {
namespace {

constexpr std::string_view expected_suffix = ".expected.json";

std::vector<std::string> golden_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(MUNIMENT_GOLDEN "/reports"))
    if (!entry.path().filename().string().ends_with(expected_suffix)) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

std::string json_of(const Counts& counts) {
  json::Writer writer;
  writer.begin_object().member("total", counts.total).member("passed", counts.passed);
  writer.member("failed", counts.failed).member("skipped", counts.skipped).end_object();
  return std::move(writer).text();
}

std::string json_of(const Report& report) {
  json::Writer writer;
  writer.begin_object().member("format", report.format).member("complete", report.complete);
  writer.member("listed", report.listed).member("analysis", report.analysis);
  writer.raw_member("counts", json_of(report.counts));
  if (report.summary) writer.raw_member("summary", json_of(*report.summary));
  if (report.deselected > 0) writer.member("deselected", report.deselected);
  if (report.packages > 0) writer.member("packages", report.packages);
  writer.member("failures", report.failures).member("problem", report.problem).end_object();
  return std::move(writer).text() + "\n";
}

TEST(GoldenReports, EachIsReadAsEver) {
  const bool accept = std::getenv("MUNIMENT_ACCEPT") != nullptr;
  const std::vector<std::string> names = golden_names();
  EXPECT_GE(names.size(), 80U);
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    const std::string read = json_of(read_golden(name));
    const std::string expected = name + std::string(expected_suffix);
    if (accept) {
      std::ofstream(MUNIMENT_GOLDEN "/reports/" + expected) << read;
    } else {
      EXPECT_EQ(read, golden_report(expected));
    }
  }
}

TEST(GoldenReports, ADamagedOneIsNeverACleanOne) {
  for (const std::string& name : golden_names()) {
    const bool damaged = name.find("truncated") != std::string::npos || name.find("_cut") != std::string::npos ||
                         name.find("removed") != std::string::npos || name.find("new_numbers") != std::string::npos ||
                         name.find("hidden") != std::string::npos || name.find("negative") != std::string::npos ||
                         name.find("entities") != std::string::npos || name.find("plan_short") != std::string::npos ||
                         name.find("duplicate_key") != std::string::npos || name.find("bail_out") != std::string::npos;
    const Report report = read_golden(name);
    EXPECT_EQ(!report.problem.empty() || !report.note.empty(), damaged) << name;
  }
}

TEST(GoldenReports, EveryFormatHasOne) {
  std::vector<std::string> missing;
  for (const Format& format : formats()) missing.emplace_back(format.name);
  for (const std::string& name : golden_names()) {
    const std::string text = golden_report(name);
    const auto reader = std::ranges::find_if(formats(), [&](const Format& format) { return format.recognises(text); });
    if (reader != formats().end()) std::erase(missing, reader->name);
  }
  EXPECT_TRUE(missing.empty()) << missing.front();
}

}  // namespace
}  // namespace muniment::evidence::reports
