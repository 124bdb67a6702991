#include "cli/meta/meta_validation.hpp"

#include <fmt/format.h>

#include <string_view>
#include <utility>
#include <vector>

#include "base/crypto/sha256.hpp"
#include "base/process/stop_signals.hpp"
#include "cli/executor/executor.hpp"
#include "cli/meta/criteria.hpp"

namespace muniment::cli {
namespace {

constexpr std::string_view report_type = "meta_validation";
constexpr int own_number = 7;
constexpr const char* own_name = "Meta-validation functional (self-referential)";

struct CriterionRow {
  int number;
  const char* name;
  Criterion check;
};

constexpr CriterionRow criterion_table[] = {
    {1, "Code validation workflow exists", code_validation},
    {2, "Design review workflow exists", design_review},
    {3, "TodoWrite integration works", todo_integration},
    {4, "Beads integration works", beads_integration},
    {5, "Documentation complete", documentation},
    {6, "Agent interface accessible", agent_interface},
};

CriterionResult result_of(int number, const char* name, const Result<std::string>& checked) {
  return {number, name, checked.ok(), checked ? *checked : checked.error().message};
}

// A report with a criterion that is not met must not state that all are met.
Status check_planted_failure() {
  const std::vector<CriterionResult> planted = {result_of(1, "met", std::string("as planted")),
                                                result_of(2, "not met", Error(Errc::conflict, "as planted"))};
  const MetaSummary summary = summarize(planted);
  if (summary.all_met || summary.met != 1 || summary.percentage != 50)
    return Error(Errc::conflict, "a report with a criterion that is not met states that all are met");
  return success();
}

// The content of the evidence. The member text makes it readable as evidence.
std::string content_of(const MetaRun& run, const std::vector<CriterionResult>& results) {
  json::Writer out;
  out.begin_object().member("text", summary_text(results));
  write_report(out, run.run_id, results);
  return std::move(out.end_object()).text();
}

struct RecordedContent {
  std::string evidence_id, hash;
};

Result<RecordedContent> record(MetaRun& run, const std::string& content) {
  json::Writer params;
  params.begin_object().member("run_id", run.run_id).member("type", report_type);
  params.raw_member("content", content).end_object();
  ASSIGN_OR_RETURN(const Message answer, run.session.call("evidence.record", params.text()));
  return RecordedContent{answer.result()["evidence_id"].string_or(""), answer.result()["hash"].string_or("")};
}

// Compares the recorded report with what was sent: content and hash, both computed here.
Status read_back(MetaRun& run, const RecordedContent& recorded, const std::string& content) {
  ASSIGN_OR_RETURN(const json::Document sent, json::parse(std::string_view(content)));
  const std::string canonical = json::canonical(sent.root());
  const std::string params = fmt::format(R"({{"evidence_id":{}}})", json::quote(recorded.evidence_id));
  ASSIGN_OR_RETURN(const Message got, run.session.call("evidence.get", params));
  const json::Value evidence = got.result()["evidence"];
  if (!evidence["content"].present() || json::canonical(evidence["content"]) != canonical)
    return Error(Errc::conflict, "the recorded report differs from this one");
  const std::string hash = to_hex(sha256(canonical));
  if (recorded.hash != hash || evidence["hash"].string_or("") != hash)
    return Error(Errc::conflict, "the hash of the recorded report does not match its content");
  ASSIGN_OR_RETURN(const Message verified, run.session.call("evidence.verify", params));
  if (verified.result()["ok"].as_bool().value_or(false)) return success();
  return Error(Errc::conflict, "the recorded report is damaged: " + verified.result()["detail"].string_or(""));
}

Result<std::string> start_validation(Session& session) {
  ASSIGN_OR_RETURN(const Message answer,
                   session.call("run.start", R"({"agent":{"name":"doctor"},"goal":"Check Muniment's own criteria"})"));
  return answer.result()["run_id"].string_or("");
}

void print_report(Session& session, const std::string& run_id, const RecordedReport& report) {
  const Output& out = session.out();
  if (session.options.json) {
    json::Writer json;
    write_report(json.begin_object(), run_id, report.results);
    if (!report.evidence_id.empty()) json.member("evidence_id", report.evidence_id);
    return out.json_line(std::move(json.end_object()).text());
  }
  for (const CriterionResult& result : report.results) {
    out.line(fmt::format("{} {:<48} {}", result.number, result.name,
                         result.met ? out.tone(Tone::green, "met") : out.tone(Tone::red, "not met")));
    out.line("  " + out.one_line(result.detail));
  }
  out.line(out.one_line(summary_text(report.results)));
  if (!report.evidence_id.empty()) out.line("evidence  " + out.one_line(report.evidence_id));
  out.line("run       " + out.one_line(run_id));
}

Status end_interrupted(MetaRun& run) {
  const std::string params = fmt::format(R"({{"run_id":{},"outcome":"cancelled"}})", json::quote(run.run_id));
  const auto ended = run.session.call("run.end", params);
  run.session.finish_quietly("the end of the run", ended ? success() : Status(ended.error()));
  fmt::print(stderr, "muniment: a signal interrupted the check; no report was recorded\n");
  run.session.exit_code = exit_interrupted;
  return success();
}

}  // namespace

RecordedReport record_report(MetaRun& run, std::vector<CriterionResult> results) {
  RecordedReport report{std::move(results), {}};
  report.results.push_back({own_number, own_name, false, "not checked yet: this report is read back first"});
  CriterionResult& own = report.results.back();
  const auto check = [&]() -> Status {
    RETURN_IF_ERROR(check_planted_failure());
    const std::string preliminary = content_of(run, report.results);
    ASSIGN_OR_RETURN(const RecordedContent recorded, record(run, preliminary));
    report.evidence_id = recorded.evidence_id;
    RETURN_IF_ERROR(read_back(run, recorded, preliminary));
    own = {own_number, own_name, true, "a planted failure was reported, and the report was recorded and read back"};
    ASSIGN_OR_RETURN(const RecordedContent complete, record(run, content_of(run, report.results)));
    report.evidence_id = complete.evidence_id;
    return success();
  };
  if (const Status checked = check(); !checked) own = {own_number, own_name, false, checked.error().message};
  return report;
}

Status validate_self(Session& session, std::string commands) {
  RETURN_IF_ERROR(session.running_client());
  ASSIGN_OR_RETURN(const auto executed, run_in_executor(session, false));
  if (executed) {
    session.exit_code = *executed;
    return success();
  }
  session.observe();
  ASSIGN_OR_RETURN(const std::string run_id, start_validation(session));
  MetaRun run{session, std::move(commands), run_id};
  StopSignals stop;
  std::vector<CriterionResult> results;
  for (const CriterionRow& row : criterion_table) {
    results.push_back(result_of(row.number, row.name, row.check(run)));
    if (run.interrupted || stop.take()) return end_interrupted(run);
  }
  const RecordedReport report = record_report(run, std::move(results));
  const bool all_met = summarize(report.results).all_met;
  const auto ended = session.call("run.end", fmt::format(R"({{"run_id":{},"outcome":"{}"}})", json::quote(run_id),
                                                         all_met ? "success" : "failure"));
  session.finish_quietly("the end of the run", ended ? success() : Status(ended.error()));
  print_report(session, run_id, report);
  if (!all_met) session.exit_code = exit_refused;
  return success();
}

}  // namespace muniment::cli
