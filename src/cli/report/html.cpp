// A report as one HTML file: no script, nothing from elsewhere, readable in print, by day and by night.
// The policy in its head forbids whatever an escape that was forgotten could still do.
#include <fmt/format.h>

#include "base/text.hpp"
#include "cli/report/document.hpp"

namespace muniment::cli {
namespace {

constexpr std::string_view style = R"(
:root { color-scheme: light dark; --ink: #1b1f24; --soft: #5b6570; --paper: #ffffff; --panel: #f5f6f8; --line: #d9dee4;
  --accent: #1f5fae; --good: #1a7f4b; --warn: #9a6200; --bad: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e7eb; --soft: #98a2ad; --paper: #14171b; --panel: #1c2026;
  --line: #323941; --accent: #7db3f5; --good: #5fc791; --warn: #e0ae4f; --bad: #ff8a80; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 72rem; padding: 2.5rem 1.5rem 4rem; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", sans-serif; }
header { border-bottom: 2px solid var(--ink); padding-bottom: 1rem; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0; overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; margin: 2.5rem 0 .75rem; padding-top: .25rem; }
p { margin: .5rem 0; max-width: 52rem; overflow-wrap: anywhere; }
.subtitle { color: var(--soft); margin: .25rem 0 .75rem; }
.badge { display: inline-block; border: 1px solid currentColor; border-radius: 1rem; padding: .05rem .7rem; margin: 0 .35rem .35rem 0;
  font-size: .85rem; }
nav { margin-top: 1rem; font-size: .9rem; color: var(--soft); }
nav a { color: var(--accent); margin-right: .9rem; white-space: nowrap; }
dl { display: grid; grid-template-columns: minmax(8rem, 13rem) 1fr; gap: .2rem 1rem; margin: .5rem 0; }
dt { color: var(--soft); }
dd { margin: 0; overflow-wrap: anywhere; font-variant-numeric: tabular-nums; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .87rem; font-variant-numeric: tabular-nums; }
th { text-align: left; font-weight: 600; color: var(--soft); border-bottom: 1px solid var(--ink); padding: .3rem .6rem .3rem 0; white-space: nowrap; }
td { vertical-align: top; border-bottom: 1px solid var(--line); padding: .3rem .6rem .3rem 0; overflow-wrap: anywhere; white-space: pre-wrap; }
tr.quiet td { color: var(--soft); }
.good { color: var(--good); } .warning { color: var(--warn); } .bad { color: var(--bad); }
p.bad, p.warning { border-left: 3px solid currentColor; padding-left: .75rem; }
li { max-width: 52rem; margin: .2rem 0; overflow-wrap: anywhere; }
pre { background: var(--panel); border: 1px solid var(--line); border-radius: .4rem; padding: .75rem 1rem; overflow-x: auto;
  font: .85rem/1.6 ui-monospace, "SFMono-Regular", Consolas, monospace; }
@media print { body { max-width: none; padding: 0; font-size: 10pt; } nav { display: none; } h2 { break-after: avoid; }
  tr, dl { break-inside: avoid; } thead { display: table-header-group; } .scroll { overflow: visible; } pre { white-space: pre-wrap; } }
)";

// Safe in an element and in a quoted attribute; what a reader could not see is shown.
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
    for (const std::string& name : block.heading) out_ += fmt::format("<th scope=\"col\">{}</th>", html(name));
    out_ += "</tr></thead>\n<tbody>\n";
    for (const ReportRow& row : block.rows) {
      out_ += fmt::format("<tr{}>", class_of(row.mark));
      for (const std::string& cell : row.cells) out_ += fmt::format("<td>{}</td>", html(cell));
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
  out += "\n<nav>";
  for (const ReportSection& section : report.sections) {
    out += fmt::format("<a href=\"#{}\">{}</a>", html(section.id), html(section.title));
  }
  out += "</nav>\n</header>\n<main>\n";
  for (const ReportSection& section : report.sections) {
    out += fmt::format("<section>\n<h2 id=\"{}\">{}</h2>\n", html(section.id), html(section.title));
    for (const ReportBlock& block : section.blocks) std::visit(HtmlBlock(out), block);
    out += "</section>\n";
  }
  return out + "</main>\n</body>\n</html>\n";
}

}  // namespace muniment::cli
