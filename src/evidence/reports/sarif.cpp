// Reads SARIF 2.1.0, the format of static analysis, which lists findings instead of tests. A result of level error
// counts as failed, a suppressed result as skipped, and any other as passed.
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/json/json.hpp"
#include "evidence/reports/formats.hpp"
#include "evidence/reports/tally.hpp"

namespace muniment::evidence::reports {
namespace {

enum class Level : std::uint8_t { error, other };

Level level_named(std::string_view name) { return name == "error" ? Level::error : Level::other; }

// The levels that the rules of a run define for results without a level. The map is ordered, so that no choice of ids
// makes it slow; the cost of a look-up is linear in the length of the id.
struct RuleLevels {
  std::vector<Level> by_index;
  std::map<std::string, Level, std::less<>> by_id;
};

RuleLevels rule_levels(const json::Value& rules) {
  RuleLevels levels;
  for (const json::Value rule : rules) {
    levels.by_index.push_back(level_named(rule["defaultConfiguration"]["level"].string_or("warning")));
    levels.by_id.emplace(rule["id"].string_or(""), levels.by_index.back());
  }
  return levels;
}

Level level_of(const json::Value& result, const RuleLevels& rules) {
  if (const auto level = result["level"].as_string()) return level_named(*level);
  if (result["kind"].string_or("fail") != "fail") return Level::other;
  if (const auto index = result["ruleIndex"].as_int(); index && *index >= 0) {
    const auto position = static_cast<std::size_t>(*index);
    if (position < rules.by_index.size()) return rules.by_index[position];
  }
  const auto found = rules.by_id.find(result["ruleId"].string_or(""));
  return found == rules.by_id.end() ? Level::other : found->second;
}

// "rule at file": the first location of the result.
std::string finding_name(const json::Value& result) {
  std::string name = result["ruleId"].string_or("finding");
  for (const json::Value location : result["locations"]) {
    const std::string file = location["physicalLocation"]["artifactLocation"]["uri"].string_or("");
    if (!file.empty()) name.append(" at ").append(file);
    break;
  }
  return name;
}

void read_results(const json::Value& run, Report& report) {
  const RuleLevels rules = rule_levels(run["tool"]["driver"]["rules"]);
  for (const json::Value result : run["results"]) {
    const Level level = level_of(result, rules);
    if (result["suppressions"].size() > 0) {
      count_test(report.counts, Outcome::skipped);
    } else if (level == Level::error) {
      count_test(report.counts, Outcome::failed);
      if (keeps_failures(report)) keep_failure(report, finding_name(result));
    } else {
      count_test(report.counts, Outcome::passed);
    }
  }
}

}  // namespace

bool recognises_sarif(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\n");
  return begin != std::string_view::npos && text[begin] == '{' && text.find("\"runs\"") != std::string_view::npos &&
         (text.find("sarif") != std::string_view::npos || text.find("\"driver\"") != std::string_view::npos);
}

Result<Report> parse_sarif(std::string_view text) {
  const auto document = json::parse(text);
  if (!document) return Error(document.error());
  const json::Value runs = document->root()["runs"];
  if (!runs.is(json::Kind::array)) return Error(Errc::invalid_argument, "`runs` of the SARIF log is not an array");
  Report report;
  report.analysis = report.listed = report.complete = true;
  if (runs.size() == 0) note_problem(report, "the SARIF log contains no run");
  for (const json::Value run : runs) {
    if (!run["results"].is(json::Kind::array)) {  // absent or null: the analysis did not take place
      report.complete = false;
      note_problem(report, "a run of the SARIF log has no results: its analysis did not take place");
    }
    for (const json::Value invocation : run["invocations"]) {
      if (invocation["executionSuccessful"].as_bool().value_or(true)) continue;
      report.complete = false;
      note_problem(report, "the analysis states that its run failed");
    }
    read_results(run, report);
  }
  return report;
}

}  // namespace muniment::evidence::reports
