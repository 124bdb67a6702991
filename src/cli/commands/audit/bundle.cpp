// Implements the commands audit export, import and report: one run in one file, for readers without access to the log.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/files/file.hpp"
#include "base/text.hpp"
#include "cli/bundle/export.hpp"
#include "cli/bundle/import.hpp"
#include "cli/commands.hpp"
#include "cli/report/source.hpp"
#include "cli/verifier.hpp"

namespace muniment::cli {
namespace {

constexpr std::size_t note_bytes_max = 64 * 1024;

struct ExportOptions {
  std::string run;
  std::string output;
  std::string checkpoint;
  bool scrub = false;
};

void declare_export(CLI::App& command, ExportOptions& options) {
  command.add_option("RUN", options.run, "Run (default: MUNIMENT_RUN)");
  command.add_option("-o,--output", options.output, "Bundle file (default: RUN.muniment.tar.zst)")->type_name("FILE");
  command.add_option("--checkpoint", options.checkpoint, "Signed checkpoint to prove against (default: the newest)")
      ->type_name("FILE");
  command.add_flag("--scrub", options.scrub, "Refused, since a bundle proves the recorded bodies");
}

Status export_run(Session& session, const ExportOptions& options) {
  if (options.scrub) {
    return Error(
        Errc::invalid_argument,
        "a bundle cannot be scrubbed: it proves the recorded bodies by their hashes, which a replaced secret "
        "would break. Erase the bodies first (muniment audit redact); the bundle then shows that they were erased");
  }
  ASSIGN_OR_RETURN(Client* const client, session.running_client());
  BundleOrder order;
  ASSIGN_OR_RETURN(order.run_id, session.run_id(options.run));
  order.path = options.output.empty() ? order.run_id + ".muniment.tar.zst" : options.output;
  if (!options.checkpoint.empty()) {
    ASSIGN_OR_RETURN(order.checkpoint, read_input(options.checkpoint, note_bytes_max));
  }
  ASSIGN_OR_RETURN(const ExportedBundle bundle, export_bundle(*client, order));
  if (session.options.json) {
    json::Writer out;
    out.begin_object().member("file", order.path).member("run_id", order.run_id).member("origin", bundle.origin);
    out.member("size", bundle.size).member("signed", bundle.signature_holds).member("events", bundle.events);
    out.member("artifacts", bundle.artifacts).member("erased", bundle.erased);
    out.member("bundle_bytes", bundle.bundle_bytes).end_object();
    session.out().json_line(out.text());
    return success();
  }
  const auto count = [](std::int64_t number) { return grouped(static_cast<std::uint64_t>(number)); };
  session.out().line(fmt::format("{}  {} events  {} artifacts{}  {}", session.out().safe(order.path),
                                 count(bundle.events), count(bundle.artifacts),
                                 bundle.erased > 0 ? fmt::format(" ({} erased)", bundle.erased) : "",
                                 human_size(static_cast<std::uint64_t>(bundle.bundle_bytes))));
  if (bundle.is_signed && !bundle.signature_holds) {
    session.out().line(fmt::format(
        "consistent with the checkpoint of {} at {} events. NOT CHECKED: its signature, since the log does not know the key",
        bundle.origin, count(bundle.size)));
  } else {
    session.out().line(fmt::format("proven against the {} checkpoint of {} at {} events",
                                   bundle.is_signed ? "signed" : "UNSIGNED", bundle.origin, count(bundle.size)));
  }
  session.out().line("verify it anywhere: muniment-verify --bundle " + session.out().safe(order.path) +
                     (bundle.is_signed ? " --key LOG.PUB" : " --unsigned-ok"));
  return success();
}

struct BundleImportOptions {
  std::string file;
  std::string key;
  std::string run;
  bool unsigned_ok = false;
};

void declare_bundle_import(CLI::App& command, BundleImportOptions& options) {
  command.add_option("FILE", options.file, "Bundle file, RUN.muniment.tar.zst")->required();
  command.add_option("--key", options.key, "File of trusted vkeys, one per line")->type_name("FILE");
  command.add_option("--as", options.run, "Id of the new run (default: bundle's run id and start of its hash)")
      ->type_name("RUN");
  command.add_flag("--unsigned-ok", options.unsigned_ok, "Accept a consistent bundle that no trusted key has signed");
}

Status check_bundle(const BundleImportOptions& options) {
  ASSIGN_OR_RETURN(const BundleVerdict verdict, verify_bundle(options.file, options.key));
  if (verdict.verified() || (verdict.is_unsigned() && options.unsigned_ok)) return success();
  if (verdict.is_unsigned()) {
    return Error(Errc::denied,
                 "the bundle is consistent, but no key that you trust has signed it; nothing was imported. Give the "
                 "log's public key with --key, or accept it unproven with --unsigned-ok");
  }
  return Error(Errc::invalid_argument,
               fmt::format("the bundle failed verification; nothing was imported: {}", verdict_words(verdict)));
}

void print_imported(Session& session, const BundleImportOptions& options, const ImportedBundle& bundle) {
  if (session.options.json) {
    json::Writer out;
    out.begin_object().member("file", options.file).member("run_id", bundle.run_id).member("added", bundle.added);
    out.member("bundle_events", bundle.total())
        .member("events", bundle.events)
        .member("rewritten", bundle.rewritten)
        .member("recorded_anew", bundle.by_method);
    out.key("only_in_bundle").begin_object();
    for (const auto& [type, count] : bundle.only_in_bundle) out.member(type, count);
    session.out().json_line(out.end_object().end_object().text());
    return;
  }
  const Output& out = session.out();
  if (!bundle.added) {
    out.line(bundle.run_id + "  is already imported; nothing was changed");
    return;
  }
  const auto count = [](std::int64_t number) { return grouped(static_cast<std::uint64_t>(number)); };
  out.line(fmt::format("{}  of the bundle's {} events:", out.safe(bundle.run_id), count(bundle.total())));
  out.line(fmt::format("  {} unchanged", count(bundle.events - bundle.rewritten)));
  if (bundle.rewritten > 0)
    out.line(fmt::format("  {} with this log's ids in place of the bundle's", count(bundle.rewritten)));
  out.line(fmt::format("  {} recorded again (start and end, artifacts, manifests, claims, evidence, commands, labels)",
                       count(bundle.by_method)));
  for (const auto& [type, number] : bundle.only_in_bundle) {
    out.line(fmt::format("  {} only in the bundle: {}", count(number), out.safe(type)));
  }
  out.line("the bundle itself is an artifact of the run; x.muniment.imported events say where each event came from");
}

Status import_one(Session& session, const BundleImportOptions& options) {
  if (!options.key.empty()) RETURN_IF_ERROR(trusted_keys(options.key));
  ASSIGN_OR_RETURN(Client* const client, session.running_client());
  ASSIGN_OR_RETURN(const std::string sha256, sha256_of_file(options.file));
  RETURN_IF_ERROR(check_bundle(options));
  ASSIGN_OR_RETURN(const ImportedBundle bundle, import_bundle(*client, {options.file, sha256, options.run}));
  print_imported(session, options, bundle);
  return success();
}

struct ReportOptions {
  std::string run;
  std::string bundle;
  std::string key;
  std::string output;
};

void declare_report(CLI::App& command, ReportOptions& options) {
  CLI::Option* const run = command.add_option("RUN", options.run, "Run (default: MUNIMENT_RUN)");
  CLI::Option* const bundle =
      command.add_option("--bundle", options.bundle, "Bundle file to report on, without a daemon")->type_name("FILE");
  bundle->excludes(run);
  command.add_option("--key", options.key, "File of trusted vkeys, one per line, for --bundle")
      ->type_name("FILE")
      ->needs(bundle);
  command.add_option("-o,--output", options.output, "Report file, .html or .md")->required()->type_name("FILE");
}

Result<std::unique_ptr<ReportSource>> report_source(Session& session, const ReportOptions& options) {
  if (!options.bundle.empty()) {
    if (!options.key.empty()) RETURN_IF_ERROR(trusted_keys(options.key));
    return bundle_report_source(options.bundle, options.key);
  }
  ASSIGN_OR_RETURN(Client* const client, session.running_client());
  ASSIGN_OR_RETURN(const std::string run_id, session.run_id(options.run));
  return daemon_report_source(*client, run_id);
}

Status write_report(Session& session, const ReportOptions& options) {
  const bool html = options.output.ends_with(".html");
  if (!html && !options.output.ends_with(".md")) {
    return Error(Errc::invalid_argument, "the name of a report must end in .html or .md");
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<ReportSource> source, report_source(session, options));
  ASSIGN_OR_RETURN(const ReportData data, collect_report(*source));
  const ReportDocument report = report_document(data);
  RETURN_IF_ERROR(write_file_durably(options.output, html ? report_html(report) : report_markdown(report)));
  const bool proven = !data.chain->broken() && !data.custody.unproven;
  if (session.options.json) {
    json::Writer out;
    out.begin_object().member("file", options.output).member("run_id", data.run_id).member("events", data.events);
    out.member("status", data.end.status)
        .member("proven", proven)
        .member("signed", data.custody.is_signed)
        .end_object();
    session.out().json_line(out.text());
  } else {
    session.out().line(fmt::format("{}  {} events  {}{}", session.out().safe(options.output),
                                   grouped(static_cast<std::uint64_t>(data.events)),
                                   !proven                  ? "NOT PROVEN, see Custody"
                                   : data.custody.is_signed ? "proven, signed"
                                                            : "consistent, unsigned",
                                   data.end.status == "open" ? ", run OPEN" : ""));
    if (data.chain->broken())
      session.out().line("the hash chain is broken: " + session.out().safe(*data.chain->broken()));
    if (data.custody.unproven) session.out().line("not proven: " + session.out().safe(*data.custody.unproven));
  }
  if (!proven) session.exit_code = exit_refused;  // a check failed; the report is written nevertheless
  return success();
}

}  // namespace

void add_bundle_commands(CLI::App& audit, Session& session) {
  add_command<ExportOptions>(session, audit, "export", "Export a run with its files and proofs to one file",
                             declare_export, export_run);
  add_command<BundleImportOptions>(session, audit, "import", "Verify a bundle and import it as a run of this log",
                                   declare_bundle_import, import_one);
  add_command<ReportOptions>(session, audit, "report", "Write a report of a run and its proofs to one file",
                             declare_report, write_report);
}

}  // namespace muniment::cli
