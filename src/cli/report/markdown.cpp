// Writes a report as Markdown (CommonMark with tables). Recorded text appears only in cells and after
// labels, on one line; every character that Markdown, HTML or an automatic link could interpret is escaped.
#include <fmt/format.h>

#include "base/text.hpp"
#include "cli/report/document.hpp"

namespace muniment::cli {
namespace {

// True if the character at `at` would begin a list item: "- item", "1. item".
bool is_list_mark(const std::string& text, std::size_t at) {
  if (text[at] == '-') return at == 0;
  const bool numbered = text[at] == '.' && at > 0 && text.find_first_not_of("0123456789") == at;
  return numbered && (at + 1 == text.size() || text[at + 1] == ' ');
}

// A backslash escapes any ASCII punctuation. Dots, dashes and colons need one only in links and at the
// start of a line.
std::string markdown(std::string_view text) {
  constexpr std::string_view special = "\\`*_{}[]()<>#+!|~&@$^=";
  std::string out;
  const std::string shown = escape_for_terminal(text);
  for (std::size_t i = 0; i < shown.size(); ++i) {
    const char c = shown[i];
    if (c == '\n') {
      out += " ⏎ ";
    } else if (c == '\t') {
      out.push_back(' ');
    } else {
      const bool link = (c == ':' && shown.compare(i + 1, 1, "/") == 0) ||
                        (c == '.' && i >= 3 && (shown[i - 1] | 0x20) == 'w' && (shown[i - 2] | 0x20) == 'w');
      if (link || is_list_mark(shown, i) || special.find(c) != std::string_view::npos) out.push_back('\\');
      out.push_back(c);
    }
  }
  return out;
}

std::string_view sign_of(Mark mark) {
  switch (mark) {
    case Mark::good: return "✓ ";
    case Mark::warning: return "⚠ ";
    case Mark::bad: return "✗ ";
    case Mark::none:
    case Mark::quiet: break;
  }
  return "";
}

class MarkdownBlock {
 public:
  explicit MarkdownBlock(std::string& out) : out_(out) {}

  void operator()(const ReportText& block) const {
    out_ += fmt::format("{}{}\n\n", sign_of(block.mark), markdown(block.text));
  }

  void operator()(const ReportFacts& block) const {
    out_ += "| | |\n|---|---|\n";
    for (const auto& [name, value] : block.facts) out_ += fmt::format("| {} | {} |\n", markdown(name), markdown(value));
    out_ += "\n";
  }

  void operator()(const ReportTable& block) const {
    std::string rule = "|";
    out_ += "|";
    for (const ReportColumn& column : block.heading) {
      out_ += fmt::format(" {} |", markdown(column.title));
      rule += column.cell == Cell::number ? "---:|" : "---|";
    }
    out_ += "\n" + rule + "\n";
    for (const ReportRow& row : block.rows) {
      out_ += "|";
      for (std::size_t i = 0; i < row.cells.size(); ++i) {
        out_ += fmt::format(" {}{} |", i + 1 == row.cells.size() ? sign_of(row.mark) : "", markdown(row.cells[i]));
      }
      out_ += "\n";
    }
    out_ += "\n";
  }

  void operator()(const ReportList& block) const {
    for (const std::string& item : block.items) out_ += fmt::format("- {}\n", markdown(item));
    out_ += "\n";
  }

  // Each line of an indented block is indented, so that no text can end the block.
  void operator()(const ReportCommands& block) const {
    for (const std::string& line : block.lines) {
      out_ += "    ";
      for (const char c : escape_for_terminal(line)) out_ += c == '\n' ? "\n    " : std::string(1, c);
      out_ += "\n";
    }
    out_ += "\n";
  }

 private:
  std::string& out_;
};

}  // namespace

std::string report_markdown(const ReportDocument& report) {
  std::string out = fmt::format("# {}\n\n{}\n\n", markdown(report.title), markdown(report.subtitle));
  for (const ReportText& badge : report.badges)
    out += fmt::format("- {}{}\n", sign_of(badge.mark), markdown(badge.text));
  out += "\n";
  for (const ReportSection& section : report.sections) {
    out += fmt::format("## {}\n\n", markdown(section.title));
    for (const ReportBlock& block : section.blocks) std::visit(MarkdownBlock(out), block);
  }
  return out;
}

}  // namespace muniment::cli
