// Implements the command audit redact, which erases an event, an artifact or a run.
#include <fmt/format.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <optional>

#include "base/ids.hpp"
#include "base/limits.hpp"
#include "base/text.hpp"
#include "cli/commands.hpp"
#include "cli/commands/audit/erase_runs.hpp"
#include "cli/connect/which_kind.hpp"
#include "client/connect/pages.hpp"

namespace muniment::cli {
namespace {

struct RedactOptions {
  std::string what;
  std::optional<std::int64_t> seq;
  std::string artifact;
  std::string run;
  std::string subject;
  std::string reason;
  std::string legal_basis;
  bool answers = false;
  bool dry_run = false;
  bool yes = false;
};

void declare(CLI::App& command, RedactOptions& options) {
  command.add_option("SEQ|ARTIFACT|RUN", options.what, "Seq of an event, id of an artifact, or run");
  command.add_option("--seq", options.seq, "Event with this seq, even if a run has the same number as id")
      ->check(CLI::NonNegativeNumber);
  command.add_option("--artifact", options.artifact, "Artifact with this id");
  command.add_option("--run", options.run, "Run to erase");
  command.add_option("--subject", options.subject, "Erase all runs with the label subject=TEXT")->type_name("TEXT");
  command.add_option("--reason", options.reason, "Reason, kept in the log forever; do not repeat erased data")
      ->required();
  command.add_option("--legal-basis", options.legal_basis, "Law or contract that requires the erasure");
  command.add_flag("--answers", options.answers, "First erase the answers that cite an erased document");
  command.add_flag("--dry-run", options.dry_run, "List what would be erased and change nothing");
  command.add_flag("--yes", options.yes, "Do not ask for confirmation on a terminal");
}

// Returns the parameter that a UUID belongs to, "run_id" or "artifact_id". Errors: conflict if it is both.
Result<std::string_view> kind_of_uuid(Session& session, const std::string& id) {
  ASSIGN_OR_RETURN(const bool run, is_run(session, id));
  if (!run) return std::string_view("artifact_id");
  const auto artifact = session.call("artifact.stat", "{\"artifact_id\":" + json::quote(id) + "}");
  if (!artifact && artifact.error().code == Errc::not_found) return std::string_view("run_id");
  if (!artifact && is_transient(artifact.error().code)) return artifact.error();
  return Error(Errc::conflict,
               fmt::format("{0} is the id of both an artifact and a run. Use --artifact {0} or --run {0}", id));
}

// An erasure cannot be undone, so an ambiguous argument is refused.
Status write_target(Session& session, const RedactOptions& options, json::Writer& params) {
  const std::string& what = options.what;
  const int named = (what.empty() ? 0 : 1) + (options.seq ? 1 : 0) + (options.artifact.empty() ? 0 : 1) +
                    (options.run.empty() ? 0 : 1);
  if (named != 1)
    return Error(Errc::invalid_argument,
                 "name one object to erase: SEQ, ARTIFACT or RUN, or --seq N, --artifact ID or --run RUN");
  if (options.seq || parse_decimal(what)) {
    if (!options.seq) RETURN_IF_ERROR(check_is_only_seq(session, what, fmt::format("--seq {0} or --run {0}", what)));
    params.member("seq", options.seq ? *options.seq : *parse_decimal(what));
    return success();
  }
  if (!options.artifact.empty()) {
    params.member("artifact_id", options.artifact);
    return success();
  }
  if (parse_uuid(what)) {
    ASSIGN_OR_RETURN(const std::string_view kind, kind_of_uuid(session, what));
    params.member(kind, what);
    return success();
  }
  ASSIGN_OR_RETURN(const std::string run_id, session.run_id(options.run.empty() ? what : options.run));
  params.member("run_id", run_id);
  return success();
}

std::string count(const json::Value& result, std::string_view name, std::string_view noun) {
  const std::int64_t number = result[name].as_int().value_or(0);
  return number == 0 ? "" : fmt::format("  {} {}", number, noun);
}

void show(Session& session, std::string_view what, const json::Value& result) {
  session.out().line(fmt::format("{} in {}:{}{}{}{}{}{}{}", what, result["run_id"].string_or(""),
                                 count(result, "events", "events"), count(result, "artifact_files", "files"),
                                 count(result, "documents", "documents"), count(result, "snapshots", "states"),
                                 count(result, "manifests", "manifests"), count(result, "claims", "claims"),
                                 count(result, "evidence", "pieces of evidence")));
  std::string seqs;
  for (const json::Value seq : result["seqs"])
    seqs += fmt::format("{}{}", seqs.empty() ? "" : " ", seq.as_int().value_or(0));
  session.out().line("  events " + seqs);
  for (const json::Value artifact : result["artifacts"]) {
    session.out().line(fmt::format("  file   {}  {} bytes", artifact["path"].string_or(""),
                                   artifact["size_bytes"].as_int().value_or(0)));
  }
  for (const json::Value pointer : result["needed"]) {
    session.out().line("  there are dependents on " + pointer.string_or("") +
                       ": it will resolve to NOT_FOUND and halt no run");
  }
  for (const json::Value answer : result["answers"]) {
    const std::int64_t seq = answer["seq"].as_int().value_or(0);
    session.out().line(session.out().advised(
        fmt::format("  the answer {} in {} cites it and keeps its text. To erase it too: muniment audit redact {}", seq,
                    session.out().one_line(answer["run_id"].string_or("")), seq)));
  }
  session.out().line(result["remains"].string_or(""));
}

// Asks for confirmation on a terminal, where a number may be mistyped; a script is not asked.
bool is_asked() { return ::isatty(STDIN_FILENO) != 0; }

Status ask(Session& session, const std::string& params) {
  ASSIGN_OR_RETURN(const Message answer, session.call("audit.redact", params + ",\"dry_run\":true}"));
  show(session, "would erase", answer.result());
  return confirm_erasure();
}

void write_reason(const RedactOptions& options, json::Writer& params) {
  params.member("reason", options.reason);
  if (!options.legal_basis.empty()) params.member("legal_basis", options.legal_basis);
}

// Erases the answers that cite the target. `params` lacks its closing brace. The target is erased after them, since an
// answer is found by the passages that it cites.
Status redact_answers(Session& session, const RedactOptions& options, const std::string& params) {
  for (;;) {
    ASSIGN_OR_RETURN(const Message planned, session.call("audit.redact", params + ",\"dry_run\":true}"));
    const json::Value answers = planned.result()["answers"];
    if (answers.size() == 0) return success();
    for (const json::Value answer : answers) {
      json::Writer writer;
      writer.begin_object().member("seq", answer["seq"].as_int().value_or(-1));
      write_reason(options, writer);
      ASSIGN_OR_RETURN(const Message erased, session.call("audit.redact", writer.end_object().text()));
      if (!session.options.json) session.out().line(fmt::format("erased the answer {}", answer["seq"].source()));
    }
  }
}

// Erases the runs of a subject; those that must stay are listed and make the exit code 1.
Status redact_subject(Session& session, const RedactOptions& options) {
  if (!options.what.empty() || options.seq || !options.artifact.empty() || !options.run.empty())
    return Error(Errc::invalid_argument, "--subject names all its runs: omit SEQ, ARTIFACT, RUN and their options");
  if (options.answers)
    return Error(Errc::invalid_argument, "--answers is for one object: name each run of the subject with --run");
  json::Writer params;
  params.begin_object().key("labels").begin_object().member("subject", options.subject).end_object();
  params.member("limit", limits::page_items_max).end_object();
  std::vector<std::string> runs;
  RETURN_IF_ERROR(each_item(session, "run.list", params.text(), "runs", [&](const json::Value& run) -> Result<bool> {
    runs.emplace_back(run.source());
    return true;
  }));
  if (runs.empty()) return Error(Errc::not_found, fmt::format("no run has the label subject={}", options.subject));
  const auto pass = [&](bool dry_run) -> Result<bool> {
    RunEraser eraser(session, dry_run);
    for (const std::string& text : runs) {
      ASSIGN_OR_RETURN(const json::Document run, json::parse(std::string_view(text)));
      RETURN_IF_ERROR(eraser.erase(run.root(), "subject", {options.reason, options.legal_basis, false}));
    }
    return eraser.finish();
  };
  if (!options.dry_run && !options.yes && is_asked()) {
    RETURN_IF_ERROR(pass(true));
    RETURN_IF_ERROR(confirm_erasure());
  }
  ASSIGN_OR_RETURN(const bool held, pass(options.dry_run));
  if (held) session.exit_code = exit_refused;
  return success();
}

Status redact(Session& session, const RedactOptions& options) {
  if (!options.subject.empty()) return redact_subject(session, options);
  json::Writer writer;
  writer.begin_object();
  RETURN_IF_ERROR(write_target(session, options, writer));
  write_reason(options, writer);
  std::string params = writer.end_object().text();
  params.pop_back();  // removes the closing brace
  if (!options.dry_run && !options.yes && is_asked()) RETURN_IF_ERROR(ask(session, params));
  if (options.answers && !options.dry_run) RETURN_IF_ERROR(redact_answers(session, options, params));
  ASSIGN_OR_RETURN(const Message answer,
                   session.call("audit.redact", params + (options.dry_run ? ",\"dry_run\":true}" : "}")));
  if (session.printed_json(answer)) return success();
  show(session, options.dry_run ? "would erase" : "erased", answer.result());
  return success();
}

}  // namespace

void add_redact_command(CLI::App& audit, Session& session) {
  add_command(session, audit, "redact", "Erase all known copies of an event, artifact or run; proofs remain", declare,
              redact);
}

}  // namespace muniment::cli
