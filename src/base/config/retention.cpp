#include "base/config/retention.hpp"

#include <fmt/format.h>

#include "base/json/json.hpp"

namespace muniment {
namespace {

constexpr std::size_t rules_max = 100;
constexpr std::int64_t days_max = 36'500;

Error bad_rule(std::string_view name, std::string_view why) {
  return Error(Errc::invalid_argument, fmt::format("retention.{}: {}", json::quote(name), why));
}

Result<RetentionRule> rule_of(const std::string& name, const json::Value& value) {
  if (!value.is(json::Kind::object)) return bad_rule(name, "it is not a table. Write [retention." + name + "]");
  RetentionRule rule;
  rule.name = name;
  rule.reason = "retention rule " + name;
  for (const json::Value member : value) {
    const std::string key = member.key();
    std::string* const text = key == "label"         ? &rule.label
                              : key == "agent"       ? &rule.agent
                              : key == "thread"      ? &rule.thread
                              : key == "reason"      ? &rule.reason
                              : key == "legal_basis" ? &rule.legal_basis
                                                     : nullptr;
    if (key == "days") {
      rule.days = member.as_int().value_or(0);
    } else if (text == nullptr) {
      return bad_rule(name, fmt::format("unknown key {}. Expected days, label, agent, thread, reason and legal_basis; "
                                        "other settings precede the first [table]",
                                        json::quote(key)));
    } else if (const auto given = member.as_string(); given && !given->empty()) {
      *text = *given;
    } else {
      return bad_rule(name, key + " is not a text");
    }
  }
  if (rule.days < 1 || rule.days > days_max)
    return bad_rule(name, fmt::format("days is missing or not 1 to {}: days = 90", days_max));
  const std::size_t equals = rule.label.find('=');
  if (!rule.label.empty() && (equals == 0 || equals == std::string::npos)) return bad_rule(name, "label: give \"k=v\"");
  return rule;
}

}  // namespace

Result<std::vector<RetentionRule>> parse_retention(std::string_view text) {
  std::vector<RetentionRule> rules;
  if (text.empty()) return rules;
  const auto parsed = json::parse(text);
  if (!parsed || !parsed->root().is(json::Kind::object))
    return Error(Errc::invalid_argument, "retention: give a table for each rule: [retention.ci] days = 90");
  if (parsed->root().size() > rules_max)
    return Error(Errc::invalid_argument,
                 fmt::format("retention: {} rules, limit {}", parsed->root().size(), rules_max));
  for (const json::Value member : parsed->root()) {
    ASSIGN_OR_RETURN(RetentionRule rule, rule_of(member.key(), member));
    rules.push_back(std::move(rule));
  }
  return rules;
}

}  // namespace muniment
