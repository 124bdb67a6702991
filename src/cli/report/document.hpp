// Represents a report as a tree of plain texts without layout. The texts are recorded data and may be hostile; html.cpp
// and markdown.cpp escape them.
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
// A list of names and values.
struct ReportFacts {
  std::vector<std::pair<std::string, std::string>> facts;
};
// The layout of a column's cells: running text; a name that is not broken inside a word; a number; a
// time (RFC 3339); a hash in hexadecimal digits.
enum class Cell : std::uint8_t { text, name, number, time, hash };

struct ReportColumn {
  ReportColumn(std::string title_, Cell cell_ = Cell::text) : title(std::move(title_)), cell(cell_) {}
  ReportColumn(const char* title_, Cell cell_ = Cell::text) : title(title_), cell(cell_) {}

  std::string title;
  Cell cell;
};
struct ReportTable {
  std::vector<ReportColumn> heading;
  std::vector<ReportRow> rows;
};
struct ReportList {
  std::vector<std::string> items;
};
// Lines that a reader copies: commands, a signed note.
struct ReportCommands {
  std::vector<std::string> lines;
};
using ReportBlock = std::variant<ReportText, ReportFacts, ReportTable, ReportList, ReportCommands>;

struct ReportSection {
  std::string id;  // a constant of this program, unique in the report
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
