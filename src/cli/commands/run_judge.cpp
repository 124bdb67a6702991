// Implements the command run judge, which prints each claim of a run's agent with its verdict and the deciding event.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/limits.hpp"
#include "cli/commands.hpp"
#include "client/output.hpp"

namespace muniment::cli {
namespace {

struct JudgeOptions {
  std::string run;
  std::size_t limit = limits::page_items_max;
  bool strict = false;
};

void declare_judge(CLI::App& command, JudgeOptions& options) {
  command.add_option("RUN", options.run, "Run (default: MUNIMENT_RUN)");
  command.add_option("-n,--limit", options.limit, "Maximum number of claims to show")
      ->check(CLI::Range(std::size_t{1}, limits::page_items_max))
      ->capture_default_str();
  command.add_flag("--strict", options.strict, "Exit with status 1 if a claim is contradicted");
}

Tone tone_of_verdict(std::string_view verdict) {
  if (verdict == "contradicted") return Tone::red;
  if (verdict == "supported") return Tone::green;
  return Tone::yellow;
}

std::int64_t verdict_count(const json::Value& result, std::string_view verdict) {
  return result["counts"][verdict].as_int().value_or(0);
}

void print_claims(const Output& out, const json::Value& result) {
  constexpr std::size_t quote_columns = 60;
  constexpr std::size_t subject_columns = 40;
  Table table({"seq", "verdict", "evidence", "claim", "subject", "quote", "why"});
  for (const json::Value claim : result["claims"]) {
    const std::string verdict = claim["verdict"].string_or("");
    const json::Value evidence = claim["evidence_seq"];
    table.add({std::string(claim["seq"].source()), out.tone(tone_of_verdict(verdict), verdict),
               evidence ? std::string(evidence.source()) : "-", claim["kind"].string_or(""),
               fit(out.one_line(claim["subject"].string_or("")), subject_columns),
               fit(out.one_line(claim["quote"].string_or("")), quote_columns),
               out.one_line(claim["why"].string_or(""))});
  }
  if (table.size() > 0) table.print(out);
}

Status judge_run(Session& session, const JudgeOptions& options) {
  ASSIGN_OR_RETURN(const std::string run_id, session.run_id(options.run));
  json::Writer params;
  params.begin_object().member("run_id", run_id).member("limit", options.limit).end_object();
  ASSIGN_OR_RETURN(const Message answer, session.call("run.judge", params.text()));
  const json::Value result = answer.result();
  if (options.strict && verdict_count(result, "contradicted") > 0) session.exit_code = exit_refused;
  if (session.printed_json(answer)) return success();
  print_claims(session.out(), result);
  fmt::print(stderr, "{} supported, {} unsupported, {} contradicted, {} inconclusive\n",
             verdict_count(result, "supported"), verdict_count(result, "unsupported"),
             verdict_count(result, "contradicted"), verdict_count(result, "inconclusive"));
  if (const json::Value left_out = result["left_out"]) {
    fmt::print(stderr, "{} more claims are not shown\n", left_out.source());
  }
  if (const json::Value unread = result["unread"]) {
    fmt::print(stderr, "{} spilled texts were not read: erased, damaged or beyond the budget\n", unread.source());
  }
  return success();
}

}  // namespace

void add_run_judge(CLI::App& run, Session& session) {
  add_command<JudgeOptions>(session, run, "judge", "Check the agent's claims against the events of the run",
                            declare_judge, judge_run);
}

}  // namespace muniment::cli
