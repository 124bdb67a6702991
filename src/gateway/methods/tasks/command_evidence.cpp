// Reads a recorded command, its output and its report, and makes evidence of them.
#include "gateway/methods/tasks/command_evidence.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/crypto/sha256.hpp"
#include "base/limits.hpp"
#include "base/text.hpp"
#include "evidence/reports/tally.hpp"
#include "gateway/access.hpp"
#include "gateway/methods/tasks/workflow_evidence.hpp"
#include "gateway/services.hpp"
#include "store/files/artifact_row.hpp"
#include "store/logs/erasure.hpp"

namespace muniment::gateway::methods {
namespace {

namespace completion = evidence::completion;
namespace reports = evidence::reports;

constexpr std::size_t text_bytes_max = 16 * 1024;     // size of the output that the evidence itself contains
constexpr std::size_t content_bytes_max = 48 * 1024;  // size of evidence that fits an event's body

constexpr std::size_t earlier_runs_max = 200;  // recorded commands of a task that are compared
constexpr auto report_size_max = static_cast<std::int64_t>(reports::report_bytes_max);

// Returns the end of the stream's artifact that command.ended names; empty if the command wrote nothing.
Result<std::string> read_stream(Call& call, const store::Run& run, const json::Value& ended, std::string_view stream) {
  const std::string id = ended[stream]["artifact_id"].string_or("");
  if (id.empty()) return std::string();
  ASSIGN_OR_RETURN(const store::ArtifactRow row, artifact_of_run(call, run, id));
  const std::int64_t length = std::min(row.size_bytes, report_size_max);
  return call.services.files.read(store::file_of(row), row.size_bytes - length, length);
}

// Returns the end of the output. NUL is replaced because JSON cannot hold it; the writer replaces invalid UTF-8.
std::string tail_of(std::string_view text) {
  std::string tail(text.substr(text.size() > text_bytes_max ? text.size() - text_bytes_max : 0));
  std::erase(tail, '\0');
  return tail;
}

// Identifies a command across runs: the same program with the same arguments in the same folder.
std::string suite_of(const completion::Command& command) {
  std::string name = command.cwd;
  for (const std::string& word : command.argv) name += '\0' + word;
  return to_hex(sha256(name));
}

Result<events::Event> event_of(Call& call, const store::Run& run, const Uuid& id, std::string_view type,
                               const Error& missing) {
  ASSIGN_OR_RETURN(auto event, call.reader->event_by_id(run.view().run_no, id));
  if (!event || event->type != type || !event->body) return missing;
  return std::move(*event);
}

void read_start(const json::Value& body, completion::Command& command) {
  for (const json::Value word : body["argv"]) command.argv.push_back(word.string_or(""));
  command.argv_cut = body["x_argv_artifact"].present() || body["argv_cut"].present();
  command.cwd = body["cwd"].string_or("");
  command.tree_before = body["tree_digest"].string_or("");
  command.own_program = body["program"]["own"].string_or("");
  command.left_out = body["program"]["left_out"].string_or("");
}

void read_end(const json::Value& body, completion::Command& command) {
  command.exit_code = body["exit_code"].as_int();
  command.signal = body["signal"].string_or("");
  command.interrupted = body["interrupted"].as_bool().value_or(false);
  command.output_lost = body["x_output_lost"].as_bool().value_or(false);
  command.tree_after = body["tree_digest"].string_or("");
  if (const json::Value isolation = body["isolation"]) {
    command.isolation = isolation["level"].string_or("none");
    command.unread = isolation["examined"].as_bool() == false;
  }
}

void read_changes(const json::Value& value, completion::Command& command) {
  for (const json::Value path : value["tests_changed"]) command.tests_changed.push_back(path.string_or(""));
  for (const json::Value path : value["skips_added"]) command.skips_added.push_back(path.string_or(""));
  command.tests_changed_reason = value["tests_changed_reason"].string_or("");
  command.tests_diff = value["tests_diff"].string_or("");
  command.base_commit = value["base"]["commit"].string_or("");
  command.base_opened_at = parse_time(value["base"]["opened_at"].string_or(""));
}

Result<reports::Report> read_report_file(Call& call, const store::Run& run, const std::string& artifact_id,
                                         std::size_t& bytes) {
  ASSIGN_OR_RETURN(const store::ArtifactRow row, artifact_of_run(call, run, artifact_id));
  if (row.size_bytes > report_size_max)
    return Error(Errc::too_large, fmt::format("reports: the file is too large: {}, at most {} are read.",
                                              human_size(static_cast<std::size_t>(row.size_bytes)),
                                              human_size(reports::report_bytes_max)));
  bytes += static_cast<std::size_t>(row.size_bytes);
  if (bytes > limits::reports_bytes_max)
    return Error(Errc::too_large, fmt::format("reports: the files are too large: at most {} are read together.",
                                              human_size(limits::reports_bytes_max)));
  ASSIGN_OR_RETURN(const std::string text, call.services.files.read(store::file_of(row), 0, row.size_bytes));
  auto report = reports::read_report(text);
  if (!report)
    return Error(Errc::invalid_argument, "reports: a file is in no known format. docs/evidence.md lists the formats.");
  return std::move(*report);
}

// Reads the report files that the client names, and the command's output.
Status read_reports(Call& call, const store::Run& run, std::string_view out, std::string_view err,
                    completion::Command& command) {
  auto output = reports::read_report(out);
  if (!output) output = reports::read_report(err);
  const json::Value named = call.params["reports"];
  if (!named) {
    command.report = std::move(output);
    return success();
  }
  if (output && output->complete && !output->analysis && output->packages == 0) command.output = output->counts;
  std::size_t bytes = 0;
  for (const json::Value file : named) {
    ASSIGN_OR_RETURN(reports::Report report, read_report_file(call, run, file["artifact_id"].string_or(""), bytes));
    if (command.report_files++ == 0)
      command.report = std::move(report);
    else
      reports::add_report(*command.report, std::move(report));
    const auto changed = parse_time(file["modified_at"].string_or(""));
    if (!changed) continue;
    command.report_modified_at = std::min(command.report_modified_at.value_or(*changed), *changed);
    command.report_newest_at = std::max(command.report_newest_at.value_or(*changed), *changed);
  }
  return success();
}

void write_counts(json::Writer& out, const reports::Counts& counts) {
  out.member("total", counts.total).member("passed", counts.passed);
  out.member("failed", counts.failed).member("skipped", counts.skipped);
}

reports::Counts counts_of(const json::Value& value) {
  return {value["total"].as_int().value_or(0), value["passed"].as_int().value_or(0),
          value["failed"].as_int().value_or(0), value["skipped"].as_int().value_or(0)};
}

void write_report(json::Writer& out, const completion::Command& command) {
  const reports::Report& report = *command.report;
  out.key("report").begin_object().member("format", report.format);
  write_counts(out, report.counts);
  if (report.summary) {
    out.key("summary").begin_object();
    write_counts(out, *report.summary);
    out.end_object();
  }
  out.member("analysis", report.analysis).member("listed", report.listed).member("complete", report.complete);
  if (!report.failures.empty()) out.member("failures", report.failures);
  if (!report.problem.empty()) out.member("problem", report.problem);
  if (!report.note.empty()) out.member("note", report.note);
  if (report.flaky > 0) out.member("flaky", report.flaky);
  if (report.deselected > 0) out.member("deselected", report.deselected);
  if (report.packages > 0) out.member("packages", report.packages);
  if (report.warnings > 0) out.member("warnings", report.warnings);
  if (report.unreadable) out.member("unreadable", true);
  if (command.report_files > 0) out.member("files", command.report_files);
  if (command.output) {
    out.key("output").begin_object();
    write_counts(out, *command.output);
    out.end_object();
  }
  if (command.report_modified_at) out.member("modified_at", format_time(*command.report_modified_at));
  if (command.report_newest_at) out.member("newest_at", format_time(*command.report_newest_at));
  out.end_object();
}

// The parts of the content that are JSON already; empty: absent.
struct RawParts {
  std::string isolation, workflow;
};

std::string content_json(const completion::Command& command, const std::string& command_id, const std::string& text,
                         const RawParts& parts) {
  json::Writer out;
  out.begin_object().member("text", text).key("command").begin_object();
  if (command.observed) out.member("observed", true);
  out.member("command_id", command_id).member("suite", suite_of(command));
  out.member("argv", command.argv).member("cwd", command.cwd);
  if (command.argv_cut) out.member("argv_cut", true);
  if (command.exit_code) out.member("exit_code", *command.exit_code);
  if (!command.signal.empty()) out.member("signal", command.signal);
  if (command.interrupted) out.member("interrupted", true);
  if (!command.own_program.empty() || !command.left_out.empty()) {
    out.key("program").begin_object();
    if (!command.own_program.empty()) out.member("own", command.own_program);
    if (!command.left_out.empty()) out.member("left_out", command.left_out);
    out.end_object();
  }
  if (command.output_lost) out.member("output_lost", true);
  out.member("started_at", format_time(command.started_at)).member("ended_at", format_time(command.ended_at));
  if (!command.tree_before.empty()) out.member("tree_before", command.tree_before);
  if (!command.tree_after.empty()) out.member("tree_after", command.tree_after);
  if (!parts.isolation.empty()) out.raw_member("isolation", parts.isolation);
  out.end_object();
  if (!parts.workflow.empty()) out.raw_member("workflow", parts.workflow);
  if (command.report) write_report(out, command);
  if (!command.tests_missing.empty()) out.member("tests_missing", command.tests_missing);
  if (command.ran_before > 0) out.member("ran_before", command.ran_before);
  if (command.base_opened_at) {
    out.key("base").begin_object().member("commit", command.base_commit);
    out.member("opened_at", format_time(*command.base_opened_at)).end_object();
  }
  if (!command.tests_changed.empty()) out.member("tests_changed", command.tests_changed);
  if (!command.tests_changed_reason.empty()) out.member("tests_changed_reason", command.tests_changed_reason);
  if (!command.tests_diff.empty()) out.member("tests_diff", command.tests_diff);
  if (!command.skips_added.empty()) out.member("skips_added", command.skips_added);
  return std::move(out.end_object()).text();
}

// Compares the run with the earlier ones that were recorded for the same task.
Status look_up_task(Call& call, const store::Run& run, const Uuid& command_id, completion::Command& command) {
  const auto task = call.params["task_id"].as_string();
  if (!task || !command.report || command.report->analysis || command.report->counts.failed > 0) return success();
  std::vector<std::string>& passes = command.report->passes;
  const bool named = reports::names_passes(*command.report);
  std::ranges::sort(passes);
  const std::string suite = suite_of(command);
  store::EvidenceFilter filter;
  filter.run_id = run.run_id;
  filter.task_id = *task;
  filter.of_commands = true;
  filter.held = false;
  ASSIGN_OR_RETURN(const auto rows, call.reader->evidence(filter, earlier_runs_max));
  for (const store::EvidenceRow& row : rows) {
    if (!row.command_id || !row.content || row.command_id == command_id || row.actor != call.caller.actor) continue;
    ASSIGN_OR_RETURN(const json::Document content, json::parse(*row.content));
    const json::Value report = content.root()["report"];
    const reports::Counts counts = counts_of(report);
    // Packages of Go are no tests.
    const bool same = content.root()["command"]["suite"].string_or("") == suite && !report["packages"].present();
    if (same && command.report->packages == 0)
      command.ran_before = std::max(command.ran_before, counts.passed + counts.failed);
    if (!named || report["format"].string_or("") != command.report->format) continue;
    for (const json::Value failure : report["failures"]) {
      const std::string name = failure.string_or("");
      const bool known = std::ranges::binary_search(passes, name) ||
                         std::ranges::find(command.tests_missing, name) != command.tests_missing.end();
      if (!known && command.tests_missing.size() < reports::failures_kept_max) command.tests_missing.push_back(name);
    }
  }
  return success();
}

// "2 of 3 tests passed, 0 skipped, 1 deselected"
std::string passed_text(const reports::Report& report) {
  const reports::Counts& counts = report.counts;
  if (report.packages > 0 && report.packages == counts.total)
    return fmt::format("{} {} of Go passed", counts.total, counts.total == 1 ? "package" : "packages");
  const std::string flaky = report.flaky > 0 ? fmt::format(", {} flaky", report.flaky) : "";
  const std::string deselected = report.deselected > 0 ? fmt::format(", {} deselected", report.deselected) : "";
  return fmt::format("{} of {} tests passed, {} skipped{}{}", counts.passed, counts.total + report.deselected,
                     counts.skipped, deselected, flaky);
}

// Looks up the counts of the last accepted run of the same command.
Status look_up_earlier(Call& call, completion::Command& command) {
  ASSIGN_OR_RETURN(const auto row, call.reader->accepted_of_suite(suite_of(command), call.caller.actor));
  if (!row || !row->content) return success();
  ASSIGN_OR_RETURN(const json::Document content, json::parse(*row->content));
  if (const json::Value report = content.root()["report"]) command.earlier = counts_of(report);
  return success();
}

}  // namespace

Result<CommandEvidence> command_evidence(Call& call, const store::Run& run) {
  const std::string id = call.params["command_id"].string_or("");
  const Uuid start_id = parse_uuid(id).value_or(Uuid{});
  ASSIGN_OR_RETURN(const events::Event started,
                   event_of(call, run, start_id, "command.started",
                            Error(Errc::not_found, fmt::format("no command {} in run {}. Give the command_id that "
                                                               "command.start answered",
                                                               id, run.run_id))));
  ASSIGN_OR_RETURN(
      const events::Event ended,
      event_of(call, run, make_uuid_v8("command.end/" + start_id.text()), "command.ended",
               Error(Errc::conflict, fmt::format("command {} has not ended. Send command.end first", id))));
  RETURN_IF_ERROR(call.reader->confirm({started, ended}));
  if (started.actor != call.caller.actor || ended.actor != call.caller.actor)
    return Error(Errc::denied, fmt::format("command {} was recorded by {}; only that user may make evidence of it", id,
                                           started.actor));
  ASSIGN_OR_RETURN(const json::Document start_body, json::parse(*started.body));
  ASSIGN_OR_RETURN(const json::Document end_body, json::parse(*ended.body));
  CommandEvidence made;
  completion::Command& command = made.command;
  read_start(start_body.root(), command);
  read_end(end_body.root(), command);
  // The report file and the changes of tests come with this request.
  command.observed =
      call.caller.observed && started.origin == events::Origin::observed && ended.origin == events::Origin::observed;
  command.started_at = started.recorded_at;
  command.ended_at = ended.recorded_at;
  ASSIGN_OR_RETURN(const std::string out, read_stream(call, run, end_body.root(), "stdout"));
  ASSIGN_OR_RETURN(const std::string err, read_stream(call, run, end_body.root(), "stderr"));
  for (const std::string_view stream : {"stdout", "stderr"}) {
    if (const auto artifact = end_body.root()[stream]["artifact_id"].as_string()) made.artifacts.push_back(*artifact);
  }
  for (const json::Value file : call.params["reports"]) made.artifacts.push_back(file["artifact_id"].string_or(""));
  if (!call.params["workflow"]) RETURN_IF_ERROR(read_reports(call, run, out, err, command));
  read_changes(call.params, command);
  RETURN_IF_ERROR(look_up_earlier(call, command));
  RETURN_IF_ERROR(look_up_task(call, run, start_id, command));
  std::string tail = tail_of(out.empty() ? err : out);
  RawParts parts;
  if (const json::Value isolation = end_body.root()["isolation"]) {
    parts.isolation = isolation.source();
    if (tail.empty())
      tail = fmt::format("isolation {}, {} accesses refused", command.isolation,
                         isolation["refused"].as_int().value_or(0));
  }
  if (call.params["workflow"]) {
    ASSIGN_OR_RETURN(WorkflowFacts facts, workflow_facts(call, run, started));
    parts.workflow = std::move(facts.json);
    made.artifacts.insert(made.artifacts.end(), facts.artifacts.begin(), facts.artifacts.end());
    tail = std::move(facts.text);
    command.observed = command.observed && facts.observed;
    if (facts.report) {
      command.report = std::move(facts.report);
      command.coder_isolation = facts.coder_isolation.empty() ? "none" : facts.coder_isolation;
      command.workflow = facts.digest;
      command.golden_empty = facts.golden_empty;
      command.golden_told = facts.golden_told;
    }
  }
  made.content = content_json(command, start_id.text(), tail, parts);
  while (made.content.size() > content_bytes_max && !tail.empty()) {  // a control character takes six bytes
    tail.erase(0, tail.size() / 2 + 1);
    made.content = content_json(command, start_id.text(), tail, parts);
  }
  return made;
}

completion::Command command_of(const json::Value& content) {
  completion::Command command;
  const json::Value said = content["command"];
  read_start(said, command);
  read_end(said, command);
  command.observed = said["observed"].as_bool().value_or(false);
  command.output_lost = said["output_lost"].as_bool().value_or(false);
  command.tree_before = said["tree_before"].string_or("");
  command.tree_after = said["tree_after"].string_or("");
  const json::Value workflow = content["workflow"];
  if (workflow["pairs"]) {
    command.coder_isolation = workflow["coder_isolation"]["level"].string_or("none");
    command.workflow = workflow["digest"].string_or("");
    command.golden_empty = command.golden_told = true;
    for (const json::Value pair : workflow["pairs"]) {
      command.golden_empty = command.golden_empty && pair["empty"].as_bool() == true;
      command.golden_told = command.golden_told && pair["told"].as_bool() == true;
    }
  } else {
    command.workflow_part = workflow.present() || said["isolation"].present();
  }
  command.started_at = parse_time(said["started_at"].string_or("")).value_or(Time{});
  command.ended_at = parse_time(said["ended_at"].string_or("")).value_or(Time{});
  if (const json::Value report = content["report"]) {
    reports::Report& kept = command.report.emplace();
    kept.format = report["format"].string_or("");
    kept.analysis = report["analysis"].as_bool().value_or(false);
    kept.counts = counts_of(report);
    if (const json::Value summary = report["summary"]) kept.summary = counts_of(summary);
    kept.listed = report["listed"].as_bool().value_or(false);
    kept.complete = report["complete"].as_bool().value_or(false);
    for (const json::Value name : report["failures"]) kept.failures.push_back(name.string_or(""));
    kept.problem = report["problem"].string_or("");
    kept.note = report["note"].string_or("");
    kept.warnings = report["warnings"].as_int().value_or(0);
    kept.deselected = report["deselected"].as_int().value_or(0);
    kept.packages = report["packages"].as_int().value_or(0);
    kept.flaky = report["flaky"].as_int().value_or(0);
    kept.unreadable = report["unreadable"].as_bool().value_or(false);
    command.report_files = report["files"].as_int().value_or(0);
    if (const json::Value output = report["output"]) command.output = counts_of(output);
    if (const auto modified = report["modified_at"].as_string()) command.report_modified_at = parse_time(*modified);
    if (const auto newest = report["newest_at"].as_string()) command.report_newest_at = parse_time(*newest);
  }
  for (const json::Value name : content["tests_missing"]) command.tests_missing.push_back(name.string_or(""));
  command.ran_before = content["ran_before"].as_int().value_or(0);
  read_changes(content, command);
  return command;
}

CommandResult judge_command(const completion::Command& command, const std::string& type,
                            const completion::Policy& policy, Time now) {
  completion::Task task;
  task.workflow = command.workflow;  // whether a task names it is judged when that is completed
  for (const std::string& word : command.argv) task.content += word + " ";
  completion::Piece piece;
  piece.found = true;
  piece.type = type;
  piece.recorded_at = now;
  piece.command = command;
  const completion::Judgement judgement = completion::judge(task, {&piece, 1}, policy, now);
  std::string weak;  // the first reason why the evidence is not strong
  for (const completion::Finding& finding : judgement.findings) {
    if (finding.check != "structure") continue;
    if (finding.blocks) return {false, finding.text};
    if (finding.verdict == completion::Verdict::weak && weak.empty()) weak = ". " + finding.text;
  }
  if (command.exit_code != 0) return {false, "the command did not exit with 0"};
  if (!command.report) return {true, "the command exited with 0" + weak};
  const reports::Counts& counts = command.report->counts;
  if (command.report->format == reports::golden_format)
    return {true, fmt::format("{} of {} outputs equal their golden files", counts.passed, counts.total)};
  if (command.report->analysis) return {true, reports::findings_text(*command.report) + weak};
  return {true, passed_text(*command.report) + weak};
}

}  // namespace muniment::gateway::methods
