// A report as a tree of plain texts: what stands in it, not what it looks like. The text is as it was
// recorded and may be hostile; report_html.cpp and report_markdown.cpp make it safe.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace muniment::cli {

enum class Mark : std::uint8_t { none, quiet, good, warning, bad };

struct ReportRow {
  std::vector<std::string> cells;
  Mark mark = Mark::none;
};

struct ReportText {
  std::string text;
  Mark mark = Mark::none;
};
// Name and value.
struct ReportFacts {
  std::vector<std::pair<std::string, std::string>> facts;
};
struct ReportTable {
  std::vector<std::string> heading;
  std::vector<ReportRow> rows;
};
struct ReportList {
  std::vector<std::string> items;
};
// Lines to be copied as they are: commands, a signed note.
struct ReportCommands {
  std::vector<std::string> lines;
};
using ReportBlock = std::variant<ReportText, ReportFacts, ReportTable, ReportList, ReportCommands>;

struct ReportSection {
  std::string id;  // a word, ours
  std::string title;
  std::vector<ReportBlock> blocks;
};

struct ReportDocument {
  std::string title;
  std::string subtitle;
  std::vector<ReportText> badges;
  std::vector<ReportSection> sections;
};

std::string report_html(const ReportDocument& report);
std::string report_markdown(const ReportDocument& report);

}  // namespace muniment::cli
