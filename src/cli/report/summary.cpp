// Builds the first page of a report: the goal, outcome and usage of the run, and whether it is proven.
#include <fmt/format.h>

#include "base/text.hpp"
#include "cli/report/sections.hpp"

namespace muniment::cli {
namespace {

std::string number(std::int64_t value) { return grouped(static_cast<std::uint64_t>(std::max<std::int64_t>(value, 0))); }

// At most six decimals, without trailing zeros.
std::string decimals(double amount) {
  std::string digits = fmt::format("{:.6f}", amount);
  digits.erase(digits.find_last_not_of('0') + 1);
  if (digits.back() == '.') digits.pop_back();
  return digits;
}

// "0.0312 USD, 1.2 EUR, ≈0.75 USD": the recorded costs, and then the estimate.
std::string costs(const ModelUse& use) {
  std::string text;
  for (const auto& [currency, amount] : use.cost)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", decimals(amount), currency);
  if (use.estimated_usd > 0) text += fmt::format("{}≈{} USD", text.empty() ? "" : ", ", decimals(use.estimated_usd));
  return text;
}

ModelUse total_of(const std::map<std::string, ModelUse>& models) {
  ModelUse total;
  for (const auto& [name, use] : models) total.add(use);
  return total;
}

std::string tokens(const ModelUse& use) {
  if (use.answers == use.without_usage) return use.answers == 0 ? "" : "not reported";
  std::string text = fmt::format("{} in, {} out", number(use.input), number(use.output));
  if (use.cached > 0) text += fmt::format("; {} of the input from the cache", number(use.cached));
  if (use.reasoning > 0) text += fmt::format("; {} of the output for reasoning", number(use.reasoning));
  if (use.without_usage > 0) text += fmt::format("; {} without a count", many(use.without_usage, "answer", "answers"));
  return text;
}

std::string tool_calls(const ReportData& data) {
  std::int64_t calls = 0;
  std::int64_t failed = 0;
  for (const auto& [name, use] : data.tools) {
    calls += use.calls;
    failed += use.failed;
  }
  if (calls == 0) return "none";
  return fmt::format("{} of {}, {} failed", many(calls, "call", "calls"),
                     many(static_cast<std::int64_t>(data.tools.size()), "tool", "tools"), failed);
}

std::string count_of(std::int64_t count, std::string_view one, std::string_view more) {
  return count == 0 ? "none" : many(count, one, more);
}

std::string rows_of(const ReportRows& rows, std::string_view one, std::string_view more) {
  return count_of(static_cast<std::int64_t>(rows.total), one, more);
}

// Uses the writers' times if they cover the run, as in an imported run; otherwise the daemon's.
std::string duration_of(const ReportData& data) {
  const bool imported = value_of(data.run, "origin") == "imported";
  if (imported && !data.occurred_first) return "";
  const std::int64_t micros = imported ? data.occurred_last->micros - data.occurred_first->micros
                                       : data.recorded_last.micros - data.recorded_first.micros;
  return human_duration(micros) + (imported ? ", by the times in the imported file" : "");
}

std::string proof_of(const ReportData& data) {
  if (data.chain->broken() || data.custody.unproven) return "no; see Custody";
  return data.custody.is_signed ? "yes: in a log with a signed checkpoint" : "in the log, but nothing is signed";
}

}  // namespace

ReportSection summary_section(const ReportData& data) {
  ReportSection section{"summary", "Summary", {}};
  const std::string outcome = value_of(data.run, "outcome");
  const ModelUse use = total_of(data.models);
  std::string models;
  for (const auto& [name, one] : data.models) models += (models.empty() ? "" : ", ") + name;
  Facts facts;
  add_fact(facts, "Goal", value_of(data.run, "goal"));
  add_fact(facts, "Agent", value_of(data.started, "agent"));
  add_fact(facts, "Status", value_of(data.run, "status") + (outcome.empty() ? "" : ", outcome " + outcome));
  add_fact(facts, "Duration", duration_of(data));
  add_fact(facts, "Models", models);
  add_fact(facts, "Tokens", tokens(use));
  add_fact(facts, "Cost", costs(use));
  add_fact(facts, "Tools", tool_calls(data));
  add_fact(facts, "Commands", count_of(data.commands_started, "command", "commands"));
  add_fact(facts, "Files changed", rows_of(data.files, "change", "changes"));
  add_fact(facts, "Claims", rows_of(data.claims, "claim", "claims"));
  add_fact(facts, "Evidence", rows_of(data.evidence, "piece", "pieces"));
  add_fact(facts, "Proven", proof_of(data));
  section.blocks.emplace_back(ReportFacts{std::move(facts)});
  return section;
}

ReportSection models_section(const ReportData& data) {
  ReportSection section{"models", "Models, tokens, cost", {}};
  ReportRows rows;
  for (const auto& [name, use] : data.models) {
    const bool known = use.answers > use.without_usage;
    const auto shown = [known](std::int64_t value) { return known ? number(value) : std::string("not reported"); };
    rows.add({name, number(use.answers), number(use.failed), shown(use.input), shown(use.cached), shown(use.output),
              costs(use)});
  }
  add_table(section,
            {{"model", Cell::name},
             {"answers", Cell::number},
             {"failed", Cell::number},
             {"input tokens", Cell::number},
             {"of them cached", Cell::number},
             {"output tokens", Cell::number},
             {"cost", Cell::number}},
            rows, "The run did not record an answer of a model.");
  if (rows.total > 0)
    section.blocks.emplace_back(
        ReportText{data.price_list.empty()
                       ? "The writers reported the numbers. A cost is shown only if it was reported."
                       : fmt::format("The writers reported the numbers. ≈ marks an estimate of costs that were not "
                                     "reported, by the daemon's prices of version {}.",
                                     data.price_list),
                   Mark::quiet});
  return section;
}

}  // namespace muniment::cli
