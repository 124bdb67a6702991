// Implements the commands evidence check, import and export, and check-evidence: check evidence, and convert it from
// and to files .beads/evidence/ID.json.
#include <fmt/format.h>
#include <sys/types.h>

#include <CLI/CLI.hpp>

#include <filesystem>

#include "base/files/file.hpp"
#include "base/limits.hpp"
#include "cli/commands.hpp"
#include "client/arguments.hpp"
#include "client/hints.hpp"

namespace muniment::cli {
namespace {

constexpr mode_t readable_by_all = 0644;

struct EvidenceCheckOptions {
  std::string evidence;
  std::string run;
};

void declare_evidence_check(CLI::App& command, EvidenceCheckOptions& options) {
  command.add_option("EVIDENCE", options.evidence, "Evidence id")->required();
  command.add_option("--run", options.run, "Run that uses the evidence (default: the first one)");
  command.footer(
      "Checks the ledger. A file .beads/evidence/ID.json is compared by: muniment "
      "evidence import FILE\nExits with 0 if the evidence exists and is intact, with 1 otherwise, also if\n"
      "a piece that it depends on is missing or damaged.");
}

Status check_evidence(Session& session, const EvidenceCheckOptions& options) {
  json::Writer params;
  params.begin_object().member("evidence_id", options.evidence);
  if (!options.run.empty()) {
    ASSIGN_OR_RETURN(const std::string run_id, session.run_id(options.run));
    params.member("run_id", run_id);
  }
  params.end_object();
  ASSIGN_OR_RETURN(const Message answer, session.call("evidence.check", params.text()));
  const json::Value found = answer.result();
  const bool exists = found["exists"].as_bool().value_or(false);
  const bool intact = found["intact"].as_bool().value_or(false);
  const bool fresh = found["fresh"].as_bool().value_or(false);
  const json::Value broken = found["broken_dependency"];
  const bool outdated = !fresh || broken["code"].string_or("") == "dependency_stale";
  const bool damaged = !intact || (broken.present() && broken["code"].string_or("") != "dependency_stale");
  if (!exists || damaged) session.exit_code = exit_refused;
  if (session.printed_json(answer)) return success();
  const Output& out = session.out();
  const std::string state = !exists    ? out.tone(Tone::red, "missing")
                            : !intact  ? out.tone(Tone::red, "damaged")
                            : damaged  ? out.tone(Tone::red, "intact, but not a dependency")
                            : outdated ? out.tone(Tone::yellow, "intact, stale")
                                       : out.tone(Tone::green, "intact");
  out.line(fmt::format("{}  {}", state, out.one_line(options.evidence)));
  for (const char* name : {"type", "actor", "validator_id", "created_at", "expires_at", "run_id", "hash", "reason"}) {
    if (const auto value = found[name].as_string())
      out.line(fmt::format("  {:<13}{}", name, out.advised(with_commands(out.one_line(*value)))));
  }
  for (const json::Value dependency : found["depends_on"])
    out.line(fmt::format("  {:<13}{}", "depends_on", out.one_line(dependency.string_or(""))));
  if (broken) out.line(fmt::format("  {:<13}{}", "dependency", out.one_line(broken["reason"].string_or(""))));
  for (const json::Value halt : found["halted"])
    out.line("  stopped  " + out.one_line(halt["run_id"].string_or("")) + out.advised("  See: muniment recover RUN"));
  return success();
}

struct FileImportOptions {
  std::vector<std::string> files;
  std::string run;
};

void declare_file_import(CLI::App& command, FileImportOptions& options) {
  command.add_option("FILE", options.files, ".beads/evidence/ID.json")->required();
  command.add_option("--run", options.run, "Run (default: MUNIMENT_RUN, otherwise none)");
  command.footer("Exits with 1 if a file was edited, which is recorded as a violation, or is not a record.");
}

Status import_evidence_file(Session& session, const std::string& file, const std::string& run_id) {
  ASSIGN_OR_RETURN(const std::string text, read_named(file, limits::request_line_bytes_max));
  ASSIGN_OR_RETURN(const std::string record, json_line(text));
  ASSIGN_OR_RETURN(const json::Document document, json::parse(record));
  if (!document.root().is(json::Kind::object)) {
    return Error(Errc::invalid_argument,
                 "expected an object with id, type, content, timestamp, validator_id and checksum");
  }
  json::Writer params;
  params.begin_object().raw_member("record", record);
  if (!run_id.empty()) params.member("run_id", run_id);
  params.end_object();
  ASSIGN_OR_RETURN(const Message answer, session.call("evidence.import", params.text()));
  if (session.printed_json(answer)) return success();
  const json::Value imported = answer.result();
  const std::string place = imported["run_id"].string_or("");
  const bool known = imported["duplicate"].as_bool().value_or(false);
  session.out().line(fmt::format("evidence {}  {}{}{}", imported["evidence_id"].string_or(""),
                                 imported["hash"].string_or(""), known ? "  (already recorded)" : "",
                                 place.empty() ? "" : "  in " + place));
  return success();
}

// Every file is tried; the first failure sets the exit code.
Status import_evidence_files(Session& session, const FileImportOptions& options) {
  ASSIGN_OR_RETURN(const std::string run_id, session.run_id_if_any(options.run));
  int first_failure = exit_done;
  for (const std::string& file : options.files) {
    const Status imported = import_evidence_file(session, file, run_id);
    if (imported) continue;
    Error error = imported.error();
    const std::string code = std::string(name_of(error.code)) + ": ";
    if (error.message.starts_with(code))
      error.message.erase(0, code.size());  // the code is printed before the file name
    error.message.insert(0, file + ": ");
    session.finish(error);
    if (first_failure == exit_done) first_failure = session.exit_code;
    if (is_transient(error.code)) break;
  }
  session.exit_code = first_failure;
  return success();
}

struct FileExportOptions {
  std::string evidence;
  std::string run;
  std::string into;
};

void declare_file_export(CLI::App& command, FileExportOptions& options) {
  command.add_option("EVIDENCE", options.evidence, "Evidence id")->required();
  command.add_option("--into", options.into, "Folder for .beads/evidence/ID.json (default: print the record)")
      ->type_name("DIR");
  command.add_option("--run", options.run, "Run that uses the evidence (default: the first one)");
}

Status export_evidence(Session& session, const FileExportOptions& options) {
  json::Writer params;
  params.begin_object().member("evidence_id", options.evidence);
  if (!options.run.empty()) {
    ASSIGN_OR_RETURN(const std::string run_id, session.run_id(options.run));
    params.member("run_id", run_id);
  }
  params.end_object();
  ASSIGN_OR_RETURN(const Message answer, session.call("evidence.export", params.text()));
  const json::Value record = answer.result()["record"];
  if (options.into.empty()) {
    session.out().json_line(record.source());
    return success();
  }
  const std::filesystem::path folder = std::filesystem::path(options.into) / ".beads" / "evidence";
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed) return Error(Errc::denied, folder.string() + ": " + failed.message());
  // Uses the id from the daemon's reply, not the argument, since it becomes a file name.
  const std::string file = (folder / (record["id"].string_or("") + ".json")).string();
  RETURN_IF_ERROR(write_file_durably(file, std::string(record.source()) + "\n", readable_by_all));
  if (session.options.json) {
    session.out().json_line(json::Writer().begin_object().member("file", file).end_object().text());
  } else {
    session.out().line(session.out().one_line(file));
  }
  return success();
}

}  // namespace

void add_evidence_file_commands(CLI::App& app, CLI::App& evidence, Session& session) {
  add_command<EvidenceCheckOptions>(session, evidence, "check", "Check that evidence exists, is intact and is fresh",
                                    declare_evidence_check, check_evidence);
  add_command<FileImportOptions>(session, evidence, "import", "Record evidence from files", declare_file_import,
                                 import_evidence_files);
  add_command<FileExportOptions>(session, evidence, "export", "Write evidence as a file", declare_file_export,
                                 export_evidence);
  add_command<EvidenceCheckOptions>(session, app, "check-evidence",
                                    "Check that evidence exists, is intact and is fresh", declare_evidence_check,
                                    check_evidence);
}

}  // namespace muniment::cli
