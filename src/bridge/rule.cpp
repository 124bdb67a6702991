#include "bridge/rule.hpp"

#include <algorithm>
#include <cctype>

#include "base/json/json.hpp"

namespace muniment::bridge {
namespace {

constexpr std::string_view word_begin = "\\b";
constexpr std::string_view any_case = "(?i)";
constexpr std::string_view categories[] = {"secret", "personal", "local", "announced"};

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

std::vector<std::string> strings_of(const json::Value& array, bool lower_case = false) {
  std::vector<std::string> strings;
  for (const json::Value item : array) {
    if (auto text = item.as_string()) strings.push_back(lower_case ? lower(std::move(*text)) : std::move(*text));
  }
  return strings;
}

Result<Allowlist> read_allowlist(const json::Value& value) {
  Allowlist list;
  list.regexes = strings_of(value["regexes"]);
  list.stopwords = strings_of(value["stopwords"], true);
  list.rules = strings_of(value["targetRules"]);
  const std::string target = value["regexTarget"].string_or("secret");
  if (target == "match") {
    list.target = Allowlist::Target::match;
  } else if (target == "line") {
    list.target = Allowlist::Target::line;
  } else if (target != "secret") {
    return Error(Errc::invalid_argument, "regexTarget \"" + target + "\": expected secret, match or line");
  }
  const std::string condition = value["condition"].string_or("OR");
  if (condition != "OR" && condition != "||" && condition != "AND" && condition != "&&")
    return Error(Errc::invalid_argument, "condition \"" + condition + "\": expected OR or AND");
  list.all = condition == "AND" || condition == "&&";
  return list;
}

// Reads [allowlist] and [[allowlists]].
Status read_allowlists(const json::Value& value, std::vector<Allowlist>& lists) {
  if (value["allowlist"].is(json::Kind::object)) {
    ASSIGN_OR_RETURN(Allowlist list, read_allowlist(value["allowlist"]));
    lists.push_back(std::move(list));
  }
  for (const json::Value item : value["allowlists"]) {
    ASSIGN_OR_RETURN(Allowlist list, read_allowlist(item));
    lists.push_back(std::move(list));
  }
  return success();
}

Result<Rule> read_rule(const json::Value& value) {
  Rule rule;
  rule.id = value["id"].string_or("");
  if (rule.id.empty()) return Error(Errc::invalid_argument, "a rule has no id");
  rule.regex = value["regex"].string_or("");
  rule.secret_group = static_cast<int>(value["secretGroup"].as_int().value_or(0));
  rule.entropy = value["entropy"].as_double().value_or(0);
  rule.keywords = strings_of(value["keywords"], true);
  rule.tags = strings_of(value["tags"]);
  const bool classed = !rule.tags.empty() && std::count(std::begin(categories), std::end(categories), rule.tags[0]) > 0;
  rule.category = classed ? rule.tags[0] : "secret";
  RETURN_IF_ERROR(read_allowlists(value, rule.allowlists));
  return rule;
}

}  // namespace

bool Rule::has(std::string_view tag) const { return std::find(tags.begin(), tags.end(), tag) != tags.end(); }

bool Rule::begins_word() const {
  std::string_view rest = regex;
  if (rest.starts_with(any_case)) rest.remove_prefix(any_case.size());
  return rest.starts_with(word_begin);
}

std::string Rule::pattern() const {
  if (!begins_word()) return regex;
  const std::string_view prefix = regex.starts_with(any_case) ? any_case : "";
  return std::string(prefix) + regex.substr(prefix.size() + word_begin.size());
}

Result<RuleFile> read_rules(std::string_view json) {
  ASSIGN_OR_RETURN(const json::Document document, json::parse(json));
  const json::Value root = document.root();
  RuleFile file;
  for (const json::Value value : root["rules"]) {
    ASSIGN_OR_RETURN(Rule rule, read_rule(value));
    if (!rule.regex.empty()) file.rules.push_back(std::move(rule));
  }
  RETURN_IF_ERROR(read_allowlists(root, file.allowlists));
  file.disabled_rules = strings_of(root["extend"]["disabledRules"]);
  return file;
}

}  // namespace muniment::bridge
