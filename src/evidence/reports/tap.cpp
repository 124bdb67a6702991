// Reads TAP, versions 12 to 14. A result at the outermost level is a test; its subtests are part of it, and must agree
// with it. A test with the directive SKIP or TODO counts as skipped, except for a `not ok` with SKIP. A text may
// contain several streams (`prove -v`). node's TAP reporter counts its subtests as tests and writes a summary.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "evidence/reports/formats.hpp"
#include "evidence/reports/lines.hpp"
#include "evidence/reports/node_summary.hpp"
#include "evidence/reports/tally.hpp"

namespace muniment::evidence::reports {
namespace {

constexpr std::size_t tap_depth_max = 32;  // deeper results are ignored

struct TapResult {
  bool ok = false;
  std::optional<std::int64_t> number;
  std::string_view name;
  bool skip = false, todo = false;
};

// Returns the text of a directive, without the leading "#"; empty if there is none. "\#" does not begin a directive.
std::string_view directive_of(std::string_view text) {
  for (std::size_t at = text.rfind('#'); at != std::string_view::npos; at = text.substr(0, at).rfind('#')) {
    if (at > 0 && text[at - 1] == '\\') {
      if (at == 1) break;
      continue;
    }
    return trimmed(text.substr(at + 1));
  }
  return {};
}

bool begins_without_case(std::string_view text, std::string_view upper) {
  if (text.size() < upper.size()) return false;
  for (std::size_t i = 0; i < upper.size(); ++i)
    if (text[i] != upper[i] && text[i] != upper[i] + ('a' - 'A')) return false;
  return true;
}

std::optional<TapResult> tap_result(std::string_view line) {
  TapResult result;
  const bool not_ok = take(line, "not ");
  if (!take(line, "ok") || (!line.empty() && line.front() != ' ')) return std::nullopt;
  result.ok = !not_ok;
  line = trimmed(line);
  std::string_view rest = line;
  if (const auto number = take_count(rest); number && (rest.empty() || rest.front() == ' ')) {
    result.number = number;
    line = trimmed(rest);
  }
  take(line, "- ");
  const std::string_view directive = directive_of(line);
  result.skip = begins_without_case(directive, "SKIP");
  result.todo = begins_without_case(directive, "TODO");
  result.name = result.skip || result.todo ? trimmed(line.substr(0, line.rfind('#'))) : line;
  return result;
}

struct TapPlan {
  std::int64_t tests = 0;
  bool skips_all = false;
};

// "1..4", "1..0 # SKIP no database"
std::optional<TapPlan> tap_plan(std::string_view line) {
  if (!take(line, "1..")) return std::nullopt;
  const auto count = take_count(line);
  line = trimmed(line);
  if (!count || (!line.empty() && line.front() != '#')) return std::nullopt;
  return TapPlan{.tests = *count, .skips_all = *count == 0 && begins_without_case(directive_of(line), "SKIP")};
}

// A nesting level of a stream.
struct TapLevel {
  std::optional<std::int64_t> plan;
  std::int64_t seen = 0;
  bool failed = false;  // a test without a directive failed
};

class TapReader {
 public:
  TapReader(Report& report, bool node) : report_(report), node_(node), levels_(1) {}

  void read(std::string_view line) {
    const std::size_t spaces = std::min(line.find_first_not_of(' '), line.size());
    const std::string_view text = line.substr(spaces);
    if (in_block(text, spaces)) return;
    const std::size_t depth = spaces / 4;
    if (spaces % 4 != 0 || depth > tap_depth_max) return;
    if (depth == 0 && take_any_comment(text)) return;
    if (text.starts_with("Bail out!")) {
      bailed_ = true;
      note_problem(report_, "the run bailed out: " + std::string(trimmed(text.substr(9)).substr(0, 200)));
    } else if (const auto plan = tap_plan(text)) {
      read_plan(*plan, depth);
    } else if (const auto result = tap_result(text)) {
      if (!is_prove_line(*result, depth)) read_result(*result, depth);
    } else if (depth == 0 && text.starts_with("TAP version 1")) {
      if (levels_[0].plan || levels_[0].seen > 0) end_stream();
    }
  }

  void finish() {
    count_pending();
    if (levels_[0].plan || levels_[0].seen > 0) end_stream();
    report_.complete = streams_ > 0 && !truncated_ && !bailed_ && (!node_ || summaries_ > 0);
    report_.listed = true;
    if (node_ && summaries_ > 0) report_.summary = summary_;
  }

 private:
  struct Pending {
    Outcome outcome;
    std::string name;
  };

  // Follows the YAML block after a result, from "---" to "...", in which node marks the results of suites.
  bool in_block(std::string_view text, std::size_t spaces) {
    if (block_) {
      if (text == "type: 'suite'" && spaces == block_spaces_) pending_.reset();
      if (text == "..." && spaces <= block_spaces_) block_ = false;
      return true;
    }
    block_ = text == "---" && spaces % 4 == 2;
    block_spaces_ = spaces;
    return block_;
  }

  bool take_any_comment(std::string_view text) {
    if (!take(text, "# ")) return false;
    if (node_) {
      if (!node_summary_.read(text) || !node_summary_.complete()) return true;
      ++summaries_;
      summary_ += node_summary_.counts();
      node_summary_ = {};
      return true;
    }
    // The line belongs to the summary of tape and similar tools.
    count_pending();
    std::string_view rest = text;
    const bool failures = take(rest, "fail ");
    if (!failures && !take(rest, "tests ")) return true;
    if (const auto count = count_of(trimmed(rest)); count && *count != (failures ? stream_.failed : stream_.total))
      note_problem(report_, "the stream states " + std::to_string(*count) + (failures ? " failures" : " tests") +
                                " and lists " + text_of(stream_));
    return true;
  }

  // A single "ok" after a complete stream is the verdict of prove.
  bool is_prove_line(const TapResult& result, std::size_t depth) const {
    return depth == 0 && result.ok && !result.number && result.name.empty() && levels_[0].plan &&
           *levels_[0].plan == levels_[0].seen;
  }

  void read_plan(const TapPlan& plan, std::size_t depth) {
    if (depth == 0 && levels_[0].plan) end_stream();
    open_level(depth);
    if (depth > 0 && levels_[depth].plan) close_levels(depth);
    open_level(depth);
    levels_[depth].plan = plan.tests;
    if (depth == 0 && plan.skips_all) count_one(Outcome::skipped);
  }

  void read_result(const TapResult& result, std::size_t depth) {
    const bool begins = result.number == 1 && depth == 0 && levels_[0].seen > 0 &&
                        (!levels_[0].plan || *levels_[0].plan <= levels_[0].seen);
    if (begins) end_stream();
    count_pending();
    const bool inner_failed = levels_.size() > depth + 1 && close_levels(depth + 1);
    if (inner_failed && result.ok && !result.todo && !result.skip)
      note_problem(report_,
                   "the test \"" + std::string(result.name.substr(0, 80)) + "\" is ok, and one of its subtests is not");
    open_level(depth);
    TapLevel& level = levels_[depth];
    ++level.seen;
    if (result.number && *result.number != level.seen)
      note_problem(report_, "the tests are out of sequence: number " + std::to_string(*result.number) + " where " +
                                std::to_string(level.seen) + " is expected");
    const Outcome outcome = result.todo || (result.skip && result.ok) ? Outcome::skipped
                            : result.ok                               ? Outcome::passed
                                                                      : Outcome::failed;
    if (outcome == Outcome::failed) level.failed = true;
    if (depth == 0 || node_) pending_ = Pending{outcome, std::string(result.name.substr(0, test_name_bytes_max))};
  }

  // Compares the plan of each closed level with its tests. Returns whether a test of the outermost closed level failed.
  bool close_levels(std::size_t from) {
    bool failed = false;
    while (levels_.size() > from) {
      const TapLevel& level = levels_.back();
      failed = level.failed;
      if (level.plan && *level.plan != level.seen)
        note_problem(report_, "a plan is for " + std::to_string(*level.plan) + " tests, and " +
                                  std::to_string(level.seen) + " are listed");
      levels_.pop_back();
    }
    return failed;
  }

  void open_level(std::size_t depth) {
    if (levels_.size() <= depth) levels_.resize(depth + 1);
  }

  void end_stream() {
    count_pending();
    close_levels(1);
    const TapLevel& level = levels_[0];
    ++streams_;
    if (!level.plan || level.seen < *level.plan) truncated_ = true;
    if (level.plan && level.seen != *level.plan)
      note_problem(report_, "the plan is for " + std::to_string(*level.plan) + " tests, and " +
                                std::to_string(level.seen) + " are listed");
    levels_.assign(1, {});
    stream_ = {};
  }

  void count_pending() {
    if (!pending_) return;
    count_one(pending_->outcome);
    keep_test(report_, pending_->outcome, pending_->name);
    pending_.reset();
  }

  void count_one(Outcome outcome) {
    count_test(report_.counts, outcome);
    count_test(stream_, outcome);
  }

  Report& report_;
  bool node_;
  std::vector<TapLevel> levels_;
  std::optional<Pending> pending_;  // a result that a YAML block may follow
  bool block_ = false;              // within a YAML block
  std::size_t block_spaces_ = 0;
  Counts stream_, summary_;
  NodeSummary node_summary_;
  std::int64_t streams_ = 0, summaries_ = 0;
  bool truncated_ = false, bailed_ = false;
};

Result<Report> parse_tap_stream(std::string_view text, bool node) {
  Report report;
  TapReader reader(report, node);
  Lines lines(text);
  while (const auto line = lines.next()) reader.read(*line);
  reader.finish();
  return report;
}

}  // namespace

bool recognises_tap(std::string_view text) {
  bool has_plan = false, has_result = false;
  return any_line(text, [&](std::string_view line) {
    if (line.starts_with("TAP version 1")) return true;
    if (const auto plan = tap_plan(line)) {
      has_plan = true;
      if (plan->skips_all) return true;  // such a stream consists of its plan alone
    } else if (const auto result = tap_result(line)) {
      has_result = true;
      // A stream without a plan is recognised by the dash that writers put before a name.
      if (result->number && line.find(" - ") != std::string_view::npos) return true;
    }
    return has_plan && has_result;
  });
}

Result<Report> parse_tap(std::string_view text) { return parse_tap_stream(text, false); }

Result<Report> parse_node_tap(std::string_view text) { return parse_tap_stream(text, true); }

}  // namespace muniment::evidence::reports
