// Reads SARIF 2.1.0, the format of static analysis, which lists findings instead of tests. A result of level error
// counts as failed, a suppressed result as skipped, and any other finding as passed. Results that are no findings (of
// kind pass, or absent since the baseline) do not count.
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json/json.hpp"
#include "evidence/reports/formats.hpp"
#include "evidence/reports/tally.hpp"

namespace muniment::evidence::reports {
namespace {

using Levels = std::vector<std::string>;

// The levels that the rules of a component define for results without a level. The map is ordered, so that no choice of
// ids makes it slow; the cost of a look-up is linear in the length of the id.
struct RuleLevels {
  Levels by_index;
  std::map<std::string, std::string, std::less<>> by_id;
};

RuleLevels rule_levels(const json::Value& rules) {
  RuleLevels levels;
  for (const json::Value rule : rules) {
    levels.by_index.push_back(rule["defaultConfiguration"]["level"].string_or("warning"));
    levels.by_id.emplace(rule["id"].string_or(""), levels.by_index.back());
    if (const auto guid = rule["guid"].as_string()) levels.by_id.emplace(*guid, levels.by_index.back());
  }
  return levels;
}

// The rules of the driver, then those of each extension.
std::vector<RuleLevels> components_of(const json::Value& tool) {
  std::vector<RuleLevels> components{rule_levels(tool["driver"]["rules"])};
  for (const json::Value extension : tool["extensions"]) components.push_back(rule_levels(extension["rules"]));
  return components;
}

std::optional<std::size_t> index_of(const json::Value& value) {
  const auto index = value.as_int();
  return index && *index >= 0 ? std::optional(static_cast<std::size_t>(*index)) : std::nullopt;
}

std::string id_of(const json::Value& result) {
  return result["ruleId"].string_or(result["rule"]["id"].string_or(result["rule"]["guid"].string_or("")));
}

// Returns the level of a result: its own, otherwise that of its rule, by index or by id.
std::string level_of(const json::Value& result, const std::vector<RuleLevels>& components) {
  if (const auto level = result["level"].as_string()) return *level;
  const json::Value rule = result["rule"];
  const auto extension = index_of(rule["toolComponent"]["index"]);
  const std::size_t component = extension ? *extension + 1 : 0;
  auto index = index_of(rule["index"]);
  if (!index) index = index_of(result["ruleIndex"]);
  if (index && component < components.size() && *index < components[component].by_index.size())
    return components[component].by_index[*index];
  const std::string id = id_of(result);
  for (const std::string_view name : {std::string_view(id), std::string_view(id).substr(0, id.rfind('/'))}) {
    for (const RuleLevels& levels : components)
      if (const auto found = levels.by_id.find(name); found != levels.by_id.end()) return found->second;
  }
  return "warning";
}

// Returns whether the result is a finding. `absent` was found by an earlier scan only.
bool is_finding(const json::Value& result) {
  const std::string kind = result["kind"].string_or("fail");
  return kind != "pass" && kind != "notApplicable" && kind != "informational" &&
         result["baselineState"].string_or("") != "absent";
}

// A suppression that is under review or was rejected has no effect.
bool is_suppressed(const json::Value& result) {
  for (const json::Value suppression : result["suppressions"])
    if (suppression["status"].string_or("accepted") != "accepted") return false;
  return result["suppressions"].size() > 0;
}

// "rule at file": the first location of the result.
std::string finding_name(const json::Value& result) {
  std::string name = id_of(result);
  if (name.empty()) name = "finding";
  for (const json::Value location : result["locations"]) {
    const std::string file = location["physicalLocation"]["artifactLocation"]["uri"].string_or("");
    if (!file.empty()) name.append(" at ").append(file);
    break;
  }
  return name;
}

void read_results(const json::Value& run, Report& report) {
  const std::vector<RuleLevels> components = components_of(run["tool"]);
  for (const json::Value result : run["results"]) {
    if (!is_finding(result)) continue;
    const bool may_fail = result["kind"].string_or("fail") == "fail";
    const std::string level = may_fail ? level_of(result, components) : "note";
    if (is_suppressed(result)) {
      count_test(report.counts, Outcome::skipped);
    } else if (level == "error") {
      count_test(report.counts, Outcome::failed);
      if (keeps_failures(report)) keep_failure(report, finding_name(result));
    } else {
      count_test(report.counts, Outcome::passed);
      if (level == "warning") ++report.warnings;
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
