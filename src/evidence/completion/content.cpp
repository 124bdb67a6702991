// Reads the content of a piece: its text, or its JSON as lines "name: value", and the outcomes that the JSON states.
#include <algorithm>
#include <array>

#include "base/json/json.hpp"
#include "evidence/completion/checks.hpp"
#include "evidence/completion/text/words.hpp"

namespace muniment::evidence::completion {
namespace {

constexpr int content_depth_max = 16;
constexpr std::size_t flat_bytes_max = 256 * 1024;
constexpr std::size_t parent_bytes_max = 256;  // a parent's name, which is copied for each member

template <std::size_t N>
bool is_one_of(const std::array<std::string_view, N>& list, std::string_view name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

constexpr std::array<std::string_view, 12> positive_names{"approved", "passed",    "success",  "successful",
                                                          "ok",       "valid",     "verified", "accepted",
                                                          "pass",     "succeeded", "complete", "completed"};
constexpr std::array<std::string_view, 9> failure_counts{"failed",         "failures",     "errors",
                                                         "num_failed",     "tests_failed", "failed_tests",
                                                         "numfailedtests", "error_count",  "failure_count"};
constexpr std::array<std::string_view, 6> exit_names{"exit_code",   "exitcode",    "returncode",
                                                     "return_code", "exit_status", "exit"};
constexpr std::array<std::string_view, 8> total_names{"total",       "tests",         "tests_run", "test_count",
                                                      "tests_total", "numtotaltests", "num_tests", "collected"};
constexpr std::array<std::string_view, 6> verdict_names{"status",  "result",     "outcome",
                                                        "verdict", "conclusion", "decision"};
constexpr std::array<std::string_view, 11> bad_verdicts{
    "fail",   "failed", "failure",           "error",     "rejected", "denied",
    "broken", "red",    "changes_requested", "cancelled", "aborted"};
constexpr std::array<std::string_view, 10> daemon_names{
    "command_id",         "nonce",       "tree_digest", "tree_before",  "tree_after",
    "environment_digest", "recorded_by", "strong",      "can_complete", "evidence_status"};

class Flattener {
 public:
  explicit Flattener(Exhibit& exhibit) : exhibit_(exhibit) {}

  void add(std::string_view name, const json::Value& value, int depth) {
    if (depth > content_depth_max || exhibit_.flat.size() > flat_bytes_max) return;
    switch (value.kind()) {
      case json::Kind::object:
        compare_counts(value);
        for (const json::Value member : value) {
          const std::string key = member.key();
          if (depth == 0 && !exhibit_.structured && key == "text") continue;
          // A nested member gets its parent's name as prefix, which may be the subject: "links": {"broken": 0}.
          if (!name.empty() && !member.is(json::Kind::object))
            parent_ = std::string(name.substr(0, parent_bytes_max)) + ' ';
          add(key, member, depth + 1);
        }
        parent_.clear();
        return;
      case json::Kind::array:
        for (const json::Value item : value) add(name, item, depth + 1);
        return;
      case json::Kind::string: return add_string(name, value.string_or(""));
      case json::Kind::boolean: return add_boolean(name, value.as_bool().value_or(false));
      case json::Kind::number: return add_number(name, value.as_double().value_or(0), value.source());
      case json::Kind::null: return line(name, "null");
    }
  }

 private:
  // {"total": 60, "passed": 6, "failed": 0}: compares a total with the sum of its parts.
  void compare_counts(const json::Value& object) {
    std::optional<std::int64_t> total, passed, failed, skipped;
    for (const json::Value member : object) {
      const auto count = member.as_int();
      if (!count) continue;
      const std::string key = lowered(member.key().substr(0, 64));
      if (is_one_of(total_names, key)) total = *count;
      if (key == "passed" || key == "pass" || key == "numpassedtests" || key == "tests_passed") passed = *count;
      if (is_one_of(failure_counts, key)) failed = failed.value_or(0) + *count;
      if (key == "skipped" || key == "pending" || key == "ignored" || key == "numpendingtests") {
        skipped = skipped.value_or(0) + *count;
      }
    }
    if (!total || !passed || !failed) return;
    const std::int64_t sum = *passed + *failed + skipped.value_or(0);
    if (*passed > *total || (skipped && sum < *total)) exhibit_.outcome.disagrees = true;
  }

  void line(std::string_view name, std::string_view value) {
    exhibit_.flat += parent_;
    exhibit_.flat += name;
    exhibit_.flat += ": ";
    exhibit_.flat += value;
    exhibit_.flat += '\n';
  }

  // {"before": {"errors": 12}, "after": {"errors": 0}}
  bool is_past() const {
    for (const std::string_view past : {"before", "previous", "baseline", "old"}) {
      if (parent_.starts_with(past)) return true;
    }
    return false;
  }

  void failed(std::string_view name) {
    if (is_past()) return;
    if (!exhibit_.outcome.failed) exhibit_.outcome.member = name;
    exhibit_.outcome.failed = true;
  }

  void add_string(std::string_view name, const std::string& value) {
    line(name, value);
    const std::string small = lowered(value.substr(0, 64));
    const std::string key = lowered(name.substr(0, 64));
    if (is_one_of(verdict_names, key) && is_one_of(bad_verdicts, small)) failed(name);
    if (is_one_of(daemon_names, key)) exhibit_.outcome.poses = true;
    // A short single value: a name, a version, a branch. Longer values count as text.
    bool says = false;
    std::size_t words = 0;
    each_word(small, [&](std::string_view word) {
      ++words;
      says = says || classes_of(word) == 0;
    });
    if (says && words <= 3) exhibit_.outcome.half_facts += 2;
  }

  void add_boolean(std::string_view name, bool value) {
    line(name, value ? "true" : "false");
    const std::string key = lowered(name.substr(0, 64));
    if (is_one_of(daemon_names, key)) exhibit_.outcome.poses = true;
    if (is_one_of(positive_names, key) && !value) failed(name);
    if ((key == "failed" || key == "error" || key == "rejected") && value) failed(name);
    exhibit_.outcome.half_facts += 2;
  }

  void add_number(std::string_view name, double value, std::string_view source) {
    line(name, source);
    const std::string key = lowered(name.substr(0, 64));
    if (is_one_of(failure_counts, key) && value > 0) failed(name);
    if (is_one_of(exit_names, key) && value != 0) failed(name);
    const bool none = value == 0;
    if (is_one_of(total_names, key) && none) exhibit_.outcome.no_tests = true;
    exhibit_.outcome.half_facts += none ? 1 : 2;
  }

  Exhibit& exhibit_;
  std::string parent_;
};

}  // namespace

void read_content(Exhibit& exhibit) {
  const Piece& piece = *exhibit.piece;
  exhibit.text = piece.text;
  const std::string& source = piece.content.empty() ? piece.text : piece.content;
  if (source.empty() || (source[0] != '{' && source[0] != '[')) return;
  const auto document = json::parse(std::string_view(source));
  if (!document) return;
  const json::Value root = document->root();
  const bool has_text = !piece.content.empty() && root["text"].is(json::Kind::string);
  exhibit.structured = !has_text;
  Flattener(exhibit).add("", root, 0);
  if (exhibit.structured) exhibit.text = exhibit.flat;
}

}  // namespace muniment::evidence::completion
