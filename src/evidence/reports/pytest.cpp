// Reads the console output of pytest, which may contain several sessions within other output. The closing line of each
// session is the summary; progress characters and verbose lines list the tests if the tests print nothing between them.
// An expected failure (xfail) counts as skipped, because it shows nothing that works; an unexpected pass (xpass) counts
// as passed, unless pytest fails it. A test with an error in its teardown counts twice, as in pytest's own line.
// Sessions within the captured output of a test belong to that test.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "evidence/reports/formats.hpp"
#include "evidence/reports/lines.hpp"
#include "evidence/reports/tally.hpp"

namespace muniment::evidence::reports {
namespace {

// "=== TEXT ===" with this character; nullopt: another line.
std::optional<std::string_view> framed(std::string_view line, char frame) {
  line = trimmed(line);
  const std::size_t begin = line.find_first_not_of(frame), end = line.find_last_not_of(frame);
  if (begin == 0 || begin == std::string_view::npos || end + 1 == line.size()) return std::nullopt;
  if (line[begin] != ' ' || line[end] != ' ' || end <= begin + 1) return std::nullopt;
  return line.substr(begin + 1, end - begin - 1);
}

struct PytestSummary {
  Counts counts;
  std::int64_t errors = 0;  // part of counts.failed
  std::int64_t deselected = 0;
  bool has_other_items = false;  // the line counts subtests or reruns, which are not items
};

void add_category(PytestSummary& summary, std::int64_t count, std::string_view category) {
  if (category == "passed" || category == "xpassed") return count_test(summary.counts, Outcome::passed, count);
  if (category == "failed") return count_test(summary.counts, Outcome::failed, count);
  if (category == "skipped" || category == "xfailed") return count_test(summary.counts, Outcome::skipped, count);
  if (category == "error" || category == "errors") {
    summary.errors += count;
    return count_test(summary.counts, Outcome::failed, count);
  }
  if (category == "deselected") {
    summary.deselected += count;
    return;
  }
  if (category != "warning" && category != "warnings") summary.has_other_items = true;
}

// "in 0.05s", "in 0.05 seconds", "in 75.20s (0:01:15)"
bool is_duration(std::string_view text) {
  if (!take(text, "in ")) return false;
  const std::size_t digits = text.find_first_not_of("0123456789.");
  if (digits == 0 || digits == std::string_view::npos) return false;
  text.remove_prefix(digits);
  if (!take(text, "s") && !take(text, " seconds")) return false;
  return text.empty() || text.starts_with(" (");
}

// "2 failed, 3 passed, 1 warning in 0.05s"
std::optional<PytestSummary> pytest_summary(std::string_view text) {
  const std::size_t in = text.rfind(" in ");
  if (in == std::string_view::npos || !is_duration(text.substr(in + 1))) return std::nullopt;
  text = text.substr(0, in);
  PytestSummary summary;
  if (text == "no tests ran" || text == "no tests collected") return summary;
  while (!text.empty()) {
    const auto count = take_count(text);
    if (!count || !take(text, " ")) return std::nullopt;
    const std::size_t end = std::min(text.find(','), text.size());
    const std::string_view category = text.substr(0, end);
    if (!is_all_of(category, "abcdefghijklmnopqrstuvwxyz ")) return std::nullopt;
    add_category(summary, *count, category);
    text.remove_prefix(end);
    if (!text.empty() && !take(text, ", ")) return std::nullopt;
  }
  return summary;
}

bool is_start(std::string_view frame) { return frame == "test session starts"; }

// "[ 50%]", "[ 5/10]"
std::string_view without_progress(std::string_view line) {
  line = trimmed(line);
  const std::size_t open = line.rfind('[');
  if (!line.ends_with(']') || open == std::string_view::npos ||
      !is_all_of(line.substr(open + 1, line.size() - open - 2), " 0123456789%/"))
    return line;
  return trimmed(line.substr(0, open));
}

enum class PytestPlace : std::uint8_t { head, progress, sections, names };

struct PytestSession {
  bool open = false;    // the closing line has not been read yet
  bool framed = false;  // begun by "test session starts"; false: begun by the progress line of -q
  PytestPlace place = PytestPlace::head;
  bool clean = true;     // each progress line was parsed
  bool stopped = false;  // stopped by -x, or interrupted
  bool distributed = false;
  bool other_items = false;  // has results of subtests or reruns, so the summary exceeds the collected tests
  std::optional<std::int64_t> collected;
  std::int64_t collect_errors = 0, collect_skipped = 0;
  Counts listed;
  std::vector<std::string_view> passes;
  std::int64_t named_failures = 0;
};

std::optional<Outcome> outcome_of_word(std::string_view word) {
  if (word == "PASSED" || word == "XPASS") return Outcome::passed;
  if (word == "FAILED" || word == "ERROR") return Outcome::failed;
  if (word == "SKIPPED" || word == "XFAIL") return Outcome::skipped;
  return std::nullopt;
}

bool list_characters(PytestSession& session, std::string_view characters) {
  if (!is_all_of(characters, ".FEsxX")) {
    // Subtests and reruns have their own progress characters.
    if (is_all_of(characters, ".FEsxXRuy,-")) session.other_items = true;
    return false;
  }
  for (const char c : characters) {
    const Outcome outcome = c == '.' || c == 'X'   ? Outcome::passed
                            : c == 'F' || c == 'E' ? Outcome::failed
                                                   : Outcome::skipped;
    count_test(session.listed, outcome);
  }
  return true;
}

// Returns the text after "…] ".
std::string_view behind_bracket(std::string_view text) {
  return trimmed(text.substr(std::min(text.find(']'), text.size() - 1) + 1));
}

// "path.py::test PASSED", followed by the reason of a skip; "[gw1] [ 50%] PASSED path.py::test".
bool list_verbose(PytestSession& session, std::string_view line) {
  if (take(line, "[gw")) {
    line = behind_bracket(line);
    if (line.starts_with('[')) line = behind_bracket(line);
    const std::string_view word = first_word(line);
    const auto outcome = outcome_of_word(word);
    if (outcome) count_test(session.listed, *outcome);
    if (outcome == Outcome::passed) session.passes.push_back(trimmed(line.substr(word.size())));
    return outcome.has_value();
  }
  const std::size_t colons = line.find("::");
  if (colons == std::string_view::npos || line.find(' ') < colons) return false;
  std::string_view words = without_progress(line);
  for (const std::string_view with_reason : {" SKIPPED (", " XFAIL (", " XPASS ("})
    if (const std::size_t at = words.rfind(with_reason); at != std::string_view::npos)
      words = words.substr(0, at + with_reason.size() - 2);
  const std::size_t space = words.rfind(' ');
  const auto outcome = space == std::string_view::npos ? std::nullopt : outcome_of_word(words.substr(space + 1));
  if (outcome) count_test(session.listed, *outcome);
  if (outcome == Outcome::passed) session.passes.push_back(words.substr(0, space));
  return outcome.has_value() || session.distributed;  // xdist announces a test before it runs
}

// "test_a.py ..F.s   [ 50%]", or a line of progress characters only.
bool list_progress(PytestSession& session, std::string_view line) {
  const std::string_view words = without_progress(line);
  const std::size_t space = words.rfind(' ');
  if (space == std::string_view::npos) return list_characters(session, words);
  const std::string_view file = words.substr(0, space);
  const bool is_file = file.find(' ') == std::string_view::npos && file.find('.') != std::string_view::npos;
  return is_file && file.find("::") == std::string_view::npos && list_characters(session, words.substr(space + 1));
}

// "collected 20 items / 1 error / 3 deselected / 17 selected", "2 workers [20 items]"
bool read_collected(PytestSession& session, std::string_view line) {
  const std::size_t begin = line.find("collected ");
  if (begin != std::string_view::npos && (begin == 0 || line.starts_with("collecting "))) {
    line.remove_prefix(begin + 10);
    auto items = take_count(line);
    if (!items || !line.starts_with(" item")) return false;
    while (line.find(" / ") != std::string_view::npos) {
      line.remove_prefix(line.find(" / ") + 3);
      const std::int64_t count = take_count(line).value_or(0);
      if (line.starts_with(" error")) session.collect_errors = count;
      if (line.starts_with(" deselected")) *items -= count;
      if (line.starts_with(" skipped")) session.collect_skipped = count;
    }
    session.collected = items;
    return true;
  }
  const auto workers = take_count(line);
  if (!workers || !(take(line, " worker [") || take(line, " workers ["))) return false;
  session.collected = take_count(line);
  session.distributed = true;
  return session.collected.has_value();
}

class PytestReader {
 public:
  explicit PytestReader(Report& report) : report_(report) {}

  void read(std::string_view line) {
    if (const auto frame = framed(line, '=')) return read_frame(*frame);
    if (captured_ || nested_ > 0) {
      if (nested_ == 0 && framed(line, '_')) captured_ = false;
      if (!session_.framed)
        if (const auto summary = pytest_summary(trimmed(line))) last_nested_ = summary;
      return;
    }
    if (const auto heading = framed(line, '-'); heading && heading->starts_with("Captured ")) {
      captured_ = session_.place == PytestPlace::sections;
      return;
    }
    if (framed(line, '!')) {
      session_.stopped = true;
      return;
    }
    read_body(line);
  }

  void finish() {
    // An inner session without a closing line has consumed the closing line of the outer session, which is recognised
    // by its number of tests; with -q, only that line can follow captured output.
    const bool known = session_.collected.has_value() || !session_.framed;
    if (session_.open && known && last_nested_ && fits(*last_nested_)) close(*last_nested_);
    if (session_.open && (session_.framed || sessions_ == 0)) truncated_ = true;
    report_.complete = sessions_ > 0 && !truncated_;
    if (sessions_ > 0) report_.summary = summary_;
    report_.listed = all_listed_ && sessions_ > 0 && listed_.total > 0;
    report_.counts = report_.listed ? listed_ : sessions_ > 0 ? summary_ : session_.listed;
  }

 private:
  void read_frame(std::string_view frame) {
    if (is_start(frame)) {
      if (captured_) {
        ++nested_;
        return;
      }
      if (session_.open && session_.framed) truncated_ = true;
      session_ = {};
      session_.open = session_.framed = true;
      return;
    }
    const auto summary = pytest_summary(frame);
    if (nested_ > 0) {
      if (!summary) return;
      --nested_;
      last_nested_ = summary;
      return;
    }
    captured_ = false;
    if (summary) return close(*summary);
    session_.place = frame == "short test summary info" ? PytestPlace::names : PytestPlace::sections;
  }

  void read_body(std::string_view line) {
    if (const auto summary = line.find(" in ") == std::string_view::npos ? std::nullopt : pytest_summary(trimmed(line));
        summary && !session_.framed)
      return close(*summary);
    switch (session_.place) {
      case PytestPlace::head:
        if (read_collected(session_, line)) {
          session_.place = PytestPlace::progress;
        } else if (!session_.framed && without_progress(line) != trimmed(line) && list_progress(session_, line)) {
          session_.place = PytestPlace::progress;  // a session of -q begins with progress
          session_.open = true;
        }
        break;
      case PytestPlace::progress: read_progress(line); break;
      case PytestPlace::names: read_name(line); break;
      case PytestPlace::sections: break;
    }
  }

  void read_progress(std::string_view line) {
    if (trimmed(line).empty() || read_collected(session_, line)) return;
    if (session_.distributed && line.starts_with("scheduling tests via ")) return;
    if (framed(line, '-')) {  // the line of a plugin that writes a file
      session_.place = PytestPlace::sections;
      return;
    }
    if (!list_verbose(session_, line) && !list_progress(session_, line)) session_.clean = false;
  }

  void read_name(std::string_view line) {
    if (line.starts_with("SUBFAILED")) session_.other_items = true;
    if (!take(line, "FAILED ") && !take(line, "ERROR ") && !line.starts_with("SUBFAILED")) return;
    ++session_.named_failures;
    keep_failure(report_, line.substr(0, std::min(line.find(" - "), line.size())));
  }

  bool fits(const PytestSummary& summary) const {
    if (!session_.collected) return true;
    const std::int64_t items = summary.counts.total - summary.errors - session_.collect_skipped;
    // -x stops at a failure; a run that stops without a failure was interrupted.
    const bool stopped = session_.stopped && summary.counts.failed > 0;
    return items <= *session_.collected && (stopped || *session_.collected <= items + summary.errors);
  }

  void close(const PytestSummary& summary) {
    ++sessions_;
    summary_ += summary.counts;
    report_.deselected += summary.deselected;
    const bool other_items = summary.has_other_items || session_.other_items;
    if (!other_items && !fits(summary))
      note_problem(report_, "pytest collected " + std::to_string(*session_.collected) + " tests and sums up " +
                                text_of(summary.counts));
    if (session_.named_failures > summary.counts.failed)
      note_problem(report_, "the report names " + std::to_string(session_.named_failures) +
                                " failed tests and sums up " + text_of(summary.counts));
    Counts listed = session_.listed;
    const bool is_list =
        session_.clean && !other_items &&
        (listed.total > 0 || summary.counts.total == session_.collect_errors + session_.collect_skipped);
    if (is_list) {
      count_test(listed, Outcome::failed, session_.collect_errors);
      count_test(listed, Outcome::skipped, session_.collect_skipped);
      listed_ += listed;
    }
    for (const std::string_view name : session_.passes) keep_pass(report_, name);
    all_listed_ = all_listed_ && is_list;
    session_ = {};
  }

  Report& report_;
  PytestSession session_;
  bool captured_ = false;    // within the captured output of a test
  std::int64_t nested_ = 0;  // open sessions within that output
  std::optional<PytestSummary> last_nested_;
  std::int64_t sessions_ = 0;  // closed sessions
  bool truncated_ = false;     // a session did not reach its closing line
  bool all_listed_ = true;
  Counts summary_, listed_;
};

}  // namespace

bool recognises_pytest(std::string_view text) {
  return any_line(text, [](std::string_view line) {
    if (const auto frame = framed(line, '=')) return is_start(*frame) || pytest_summary(*frame);
    return line.find(" in ") != std::string_view::npos && pytest_summary(trimmed(line));
  });
}

Result<Report> parse_pytest(std::string_view text) {
  Report report;
  PytestReader reader(report);
  Lines lines(text);
  while (const auto line = lines.next()) reader.read(*line);
  reader.finish();
  return report;
}

}  // namespace muniment::evidence::reports
