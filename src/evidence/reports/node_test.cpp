// Reads the output of node's test runner: its spec reporter and its TAP reporter. Tests and subtests count, suites do
// not. The spec reporter marks both in the same way. Therefore the counts come from the summary, and the marks only
// show whether the report lists as many tests and suites.
#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "evidence/reports/formats.hpp"
#include "evidence/reports/lines.hpp"
#include "evidence/reports/node_summary.hpp"
#include "evidence/reports/tally.hpp"

namespace muniment::evidence::reports {
namespace {

enum class NodeMark : std::uint8_t { none, open, passed, failed, skipped };

struct NodeLine {
  NodeMark mark = NodeMark::none;
  std::string_view name;
};

bool is_milliseconds(std::string_view text) {
  return text.ends_with("ms") && text.find('.') != std::string_view::npos &&
         is_all_of(text.substr(0, text.size() - 2), "0123456789.");
}

// "  ✔ child one (12.372237ms)", "﹣ left out (0.06948ms) # SKIP", "▶ suite"
NodeLine node_line(std::string_view line) {
  NodeLine found;
  line = trimmed(line);
  if (take(line, "▶ ")) return {.mark = NodeMark::open, .name = line};
  if (take(line, "✔ "))
    found.mark = NodeMark::passed;
  else if (take(line, "✖ "))
    found.mark = NodeMark::failed;
  else if (take(line, "﹣ ") || take(line, "⚠ "))
    found.mark = NodeMark::skipped;
  else
    return found;
  const std::size_t open = line.rfind(" ("), close = line.rfind(')');
  const std::size_t end = close == std::string_view::npos ? 0 : line.find(')', std::min(open, close));
  if (open == std::string_view::npos || end < open || !is_milliseconds(line.substr(open + 2, end - open - 2)))
    return {};
  found.name = line.substr(0, open);
  return found;
}

class NodeReader {
 public:
  explicit NodeReader(Report& report) : report_(report) {}

  void read(std::string_view line) {
    if (take(line, "ℹ ")) return read_summary(line);
    const NodeLine found = node_line(line);
    if (found.mark == NodeMark::none) {
      if (!trimmed(line).empty()) after_place_ = line.starts_with("test at ");
      return;
    }
    // The reporter repeats the failures after the summary, each with its place.
    if (after_place_ && found.mark == NodeMark::failed) {
      after_place_ = false;
      keep_failure(report_, found.name);
      return;
    }
    if (found.mark == NodeMark::open) return;
    open_ = true;
    ++marks_;
  }

  void finish() {
    report_.complete = runs_ > 0 && !open_;
    if (runs_ > 0) report_.summary = summary_;
    report_.listed = false;
  }

 private:
  void read_summary(std::string_view line) {
    if (!block_.read(line)) return;
    if (!block_.complete()) return;
    ++runs_;
    summary_ += block_.counts();
    const std::int64_t stated = block_.tests() + block_.suites();
    if (marks_ > 0 && marks_ < stated)
      note_problem(report_, "the report lists " + std::to_string(marks_) + " tests and suites; its summary states " +
                                std::to_string(stated));
    block_ = {};
    marks_ = 0;
    open_ = false;
  }

  Report& report_;
  NodeSummary block_;
  Counts summary_;
  std::int64_t runs_ = 0, marks_ = 0;
  bool open_ = false;  // tests were printed, and their summary has not been read yet
  bool after_place_ = false;
};

bool is_node_tap(std::string_view text) {
  return text.find("TAP version 1") != std::string_view::npos &&
         text.find("\n# duration_ms ") != std::string_view::npos && text.find("\n# suites ") != std::string_view::npos;
}

}  // namespace

bool NodeSummary::read(std::string_view line) {
  constexpr std::array<std::string_view, fields> names{"tests ",     "suites ",  "pass ", "fail ",
                                                       "cancelled ", "skipped ", "todo "};
  for (std::size_t i = 0; i < fields; ++i) {
    std::string_view rest = line;
    if (!take(rest, names[i])) continue;
    const auto count = count_of(trimmed(rest));
    if (!count) return false;
    values_[i] = *count;
    return true;
  }
  ended_ = line.starts_with("duration_ms ");
  return ended_;
}

bool recognises_node_test(std::string_view text) {
  return is_node_tap(text) || any_line(text, [](std::string_view line) {
           std::string_view rest = line;
           if (take(rest, "ℹ tests ")) return count_of(trimmed(rest)).has_value();
           const NodeMark mark = node_line(line).mark;
           return mark != NodeMark::none && mark != NodeMark::open;
         });
}

Result<Report> parse_node_test(std::string_view text) {
  if (is_node_tap(text)) return parse_node_tap(text);
  Report report;
  NodeReader reader(report);
  Lines lines(text);
  while (const auto line = lines.next()) reader.read(*line);
  reader.finish();
  return report;
}

}  // namespace muniment::evidence::reports
