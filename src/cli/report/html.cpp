// Writes a report as one HTML file without scripts or external resources. Its layout fits a wide screen, a phone
// and paper. The content security policy in its head is the second line of defence after the escaping.
#include <fmt/format.h>

#include "base/text.hpp"
#include "cli/report/document.hpp"

namespace muniment::cli {
namespace {

constexpr std::string_view style = R"(
:root { color-scheme: light dark; --ink: #1b1f24; --soft: #5b6570; --paper: #ffffff; --panel: #f5f6f8; --line: #d9dee4;
  --accent: #1f5fae; --good: #1a7f4b; --warn: #8a5700; --bad: #b3261e; }
@media screen and (prefers-color-scheme: dark) { :root { --ink: #e4e7eb; --soft: #98a2ad; --paper: #14171b; --panel: #1c2026;
  --line: #323941; --accent: #7db3f5; --good: #5fc791; --warn: #e0ae4f; --bad: #ff8a80; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 76rem; padding: 2.5rem 1.5rem 4rem; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", sans-serif; }
header { border-bottom: 2px solid var(--ink); padding-bottom: 1rem; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0; overflow-wrap: anywhere; }
h2 { font-size: 1.2rem; margin: 2.5rem 0 .75rem; padding-top: .25rem; border-bottom: 1px solid var(--line); }
p { margin: .5rem 0; max-width: 56rem; overflow-wrap: anywhere; }
.subtitle { color: var(--soft); margin: .25rem 0 .75rem; }
.badge { display: inline-block; border: 1px solid currentColor; border-radius: 1rem; padding: .05rem .7rem; margin: 0 .35rem .35rem 0;
  font-size: .85rem; }
nav { margin-top: 1rem; font-size: .92rem; }
nav ol { columns: 15rem; column-gap: 2rem; margin: 0; padding-left: 1.6rem; max-width: none; }
nav a { color: var(--accent); text-decoration: none; }
nav a:hover { text-decoration: underline; }
dl { display: grid; grid-template-columns: minmax(8rem, 13rem) 1fr; gap: .2rem 1rem; margin: .5rem 0 1rem; }
dt { color: var(--soft); }
dd { margin: 0; overflow-wrap: anywhere; white-space: pre-wrap; font-variant-numeric: tabular-nums; }
.scroll { overflow-x: auto; margin: .75rem 0 1rem; }
table { border-collapse: collapse; width: 100%; font-size: .87rem; font-variant-numeric: tabular-nums; }
th { text-align: left; vertical-align: bottom; font-weight: 600; color: var(--soft); border-bottom: 1px solid var(--ink);
  padding: .3rem .8rem .3rem 0; }
td { vertical-align: top; border-bottom: 1px solid var(--line); padding: .3rem .8rem .3rem 0; white-space: pre-wrap; }
td.text { overflow-wrap: anywhere; min-width: 14rem; }
td.hash { overflow-wrap: anywhere; min-width: 12rem; font: .8rem/1.6 ui-monospace, "SFMono-Regular", Consolas, monospace; }
td.number, th.number { text-align: right; white-space: nowrap; }
td.time { white-space: nowrap; }
td.time span span { display: block; }
tr.quiet td { color: var(--soft); }
.good { color: var(--good); } .warning { color: var(--warn); } .bad { color: var(--bad); }
p.bad, p.warning, p.good { border-left: 3px solid currentColor; padding-left: .75rem; }
li { max-width: 56rem; margin: .2rem 0; overflow-wrap: anywhere; }
pre { background: var(--panel); border: 1px solid var(--line); border-radius: .4rem; padding: .75rem 1rem; white-space: pre-wrap;
  overflow-wrap: anywhere; font: .85rem/1.6 ui-monospace, "SFMono-Regular", Consolas, monospace; }
@media screen and (max-width: 44rem) { body { padding: 1.25rem 1rem 3rem; } dl { grid-template-columns: 1fr; gap: 0; }
  dd { margin-bottom: .5rem; } table, tbody, tr { display: block; } thead { display: none; }
  tr { border-bottom: 1px solid var(--line); padding: .4rem 0; } td:empty { display: none; }
  td, td.number { display: grid; grid-template-columns: 8rem 1fr; gap: .75rem; border: 0; padding: .1rem 0; text-align: left; }
  td.text, td.hash { min-width: 0; } td.time span span { display: inline; } td::before { content: attr(data-label); color: var(--soft);
  font: .8rem/1.6 system-ui, sans-serif; } td > span.cell { min-width: 0; } }
@page { size: A4 landscape; margin: 12mm; }
@media print { body { max-width: none; padding: 0; font-size: 9.5pt; } h2 { break-after: avoid; } tr, p { break-inside: avoid; }
  thead { display: table-header-group; } .scroll { overflow: visible; } table { font-size: .8rem; } td.text { min-width: 16rem; }
  td.hash { min-width: 9rem; font-size: .7rem; } nav a { color: inherit; } }
)";

// Escapes a text for an element or a quoted attribute; invisible characters become visible escapes.
std::string html(std::string_view text) {
  std::string out;
  for (const char c : escape_for_terminal(text)) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      default: out.push_back(c);
    }
  }
  return out;
}

std::string_view class_of(Mark mark) {
  switch (mark) {
    case Mark::quiet: return " class=\"quiet\"";
    case Mark::good: return " class=\"good\"";
    case Mark::warning: return " class=\"warning\"";
    case Mark::bad: return " class=\"bad\"";
    case Mark::none: break;
  }
  return "";
}

std::string_view word_of(Mark mark) {
  switch (mark) {
    case Mark::quiet: return " quiet";
    case Mark::good: return " good";
    case Mark::warning: return " warning";
    case Mark::bad: return " bad";
    case Mark::none: break;
  }
  return "";
}

std::string_view class_of(Cell cell) {
  switch (cell) {
    case Cell::text: return "text";
    case Cell::name: return "name";
    case Cell::number: return "number";
    case Cell::time: return "time";
    case Cell::hash: return "hash";
  }
  return "text";
}

// A name may be broken after punctuation, and after 24 characters without any.
std::string breakable(std::string_view name) {
  constexpr std::size_t unbroken_max = 24;
  std::string out;
  std::size_t start = 0;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const bool inside_character = i + 1 < name.size() && (static_cast<unsigned char>(name[i + 1]) & 0xC0) == 0x80;
    const bool punctuation = std::string_view("._/-:").find(name[i]) != std::string_view::npos;
    if (inside_character || (!punctuation && i + 1 - start < unbroken_max)) continue;
    out += html(name.substr(start, i + 1 - start)) + "<wbr>";
    start = i + 1;
  }
  return out + html(name.substr(start));
}

// The date above the time of day.
std::string dated(std::string_view time) {
  const std::size_t day = time.find('T');
  if (day == std::string_view::npos) return html(time);
  return fmt::format("<span>{}</span><span>{}</span>", html(time.substr(0, day + 1)), html(time.substr(day + 1)));
}

std::string cell_html(const ReportColumn& column, std::string_view text) {
  if (text.empty()) return "<td></td>";
  const std::string inner = column.cell == Cell::name   ? breakable(text)
                            : column.cell == Cell::time ? dated(text)
                                                        : html(text);
  return fmt::format("<td class=\"{}\" data-label=\"{}\"><span class=\"cell\">{}</span></td>", class_of(column.cell),
                     html(column.title), inner);
}

class HtmlBlock {
 public:
  explicit HtmlBlock(std::string& out) : out_(out) {}

  void operator()(const ReportText& block) const {
    out_ += fmt::format("<p{}>{}</p>\n", class_of(block.mark), html(block.text));
  }

  void operator()(const ReportFacts& block) const {
    out_ += "<dl>\n";
    for (const auto& [name, value] : block.facts)
      out_ += fmt::format("<dt>{}</dt><dd>{}</dd>\n", html(name), html(value));
    out_ += "</dl>\n";
  }

  void operator()(const ReportTable& block) const {
    out_ += "<div class=\"scroll\"><table>\n<thead><tr>";
    for (const ReportColumn& column : block.heading)
      out_ += fmt::format("<th scope=\"col\" class=\"{}\">{}</th>", class_of(column.cell), html(column.title));
    out_ += "</tr></thead>\n<tbody>\n";
    for (const ReportRow& row : block.rows) {
      out_ += fmt::format("<tr{}>", class_of(row.mark));
      for (std::size_t i = 0; i < row.cells.size() && i < block.heading.size(); ++i)
        out_ += cell_html(block.heading[i], row.cells[i]);
      out_ += "</tr>\n";
    }
    out_ += "</tbody></table></div>\n";
  }

  void operator()(const ReportList& block) const {
    out_ += "<ul>\n";
    for (const std::string& item : block.items) out_ += fmt::format("<li>{}</li>\n", html(item));
    out_ += "</ul>\n";
  }

  void operator()(const ReportCommands& block) const {
    out_ += "<pre>";
    for (const std::string& line : block.lines) out_ += html(line) + "\n";
    out_ += "</pre>\n";
  }

 private:
  std::string& out_;
};

}  // namespace

std::string report_html(const ReportDocument& report) {
  std::string out = "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n";
  out +=
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'\">\n";
  out +=
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"referrer\" content=\"no-referrer\">\n";
  out += fmt::format("<title>{}</title>\n<style>{}</style>\n</head>\n<body>\n", html(report.title), style);
  out +=
      fmt::format("<header>\n<h1>{}</h1>\n<p class=\"subtitle\">{}</p>\n", html(report.title), html(report.subtitle));
  for (const ReportText& badge : report.badges) {
    out += fmt::format("<span class=\"badge{}\">{}</span>", word_of(badge.mark), html(badge.text));
  }
  out += "\n<nav aria-label=\"Contents\">\n<ol>\n";
  for (const ReportSection& section : report.sections) {
    out += fmt::format("<li><a href=\"#{}\">{}</a></li>\n", html(section.id), html(section.title));
  }
  out += "</ol>\n</nav>\n</header>\n<main>\n";
  int number = 0;
  for (const ReportSection& section : report.sections) {
    out += fmt::format("<section>\n<h2 id=\"{}\">{}. {}</h2>\n", html(section.id), ++number, html(section.title));
    for (const ReportBlock& block : section.blocks) std::visit(HtmlBlock(out), block);
    out += "</section>\n";
  }
  return out + "</main>\n</body>\n</html>\n";
}

}  // namespace muniment::cli
