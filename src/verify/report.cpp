#include "verify/report.hpp"

#include <fmt/format.h>

#include "base/json.hpp"
#include "base/text.hpp"
#include "verify/report_parts.hpp"

namespace muniment::verify {
namespace {

constexpr std::size_t redactions_shown_max = 10;

std::string headline(const Report& report) {
  switch (report.verdict) {
    case Verdict::verified:
      if (!report.run_id.empty()) {
        return fmt::format("VERIFIED run {} to {}: in a log of {} events {}", report.run_id, number(report.upto), number(report.signatures.upto + 1),
                           vouchers(report.signatures));
      }
      return fmt::format("VERIFIED to {}: {}", number(report.signatures.upto), vouchers(report.signatures));
    case Verdict::is_unsigned:
      return report.upto < 0 ? "CONSISTENT, UNSIGNED: the log is empty"
                             : fmt::format("CONSISTENT, UNSIGNED to {}: nothing signed says that this is the log that was written", number(report.upto));
    case Verdict::tampered: return fmt::format("TAMPERED OR CORRUPT: {}", place_of(report.findings.front()));
    case Verdict::unreadable: return "UNREADABLE: " + report.problem;
    case Verdict::incomplete: return "INCOMPLETE: " + report.problem;
  }
  return "";
}

std::string redactions_text(const std::vector<std::int64_t>& seqs) {
  if (seqs.empty()) return "0 redacted";
  std::string text = fmt::format("{} redacted (", seqs.size());
  for (std::size_t i = 0; i < seqs.size() && i < redactions_shown_max; ++i) text += fmt::format("{}{}", i > 0 ? ", " : "", seqs[i]);
  return text + (seqs.size() > redactions_shown_max ? ", …)" : ")");
}

std::string counts_text(const Report& report) {
  const HistoryCounts& history = report.history;
  std::string text;
  if (report.signatures.upto >= 0 && report.signatures.upto < report.upto) {
    text += fmt::format("  {} newer events are chained, not yet signed\n", number(report.upto - report.signatures.upto));
  }
  std::string origins;
  const auto origin = [&](std::size_t which, std::string_view name) {
    if (history.origins[which] > 0) origins += fmt::format("{} {} {}", origins.empty() ? "  origin:" : ",", number(history.origins[which]), name);
  };
  origin(2, "reported");
  origin(1, "observed");
  origin(3, "imported");
  if (!origins.empty()) text += origins + '\n';
  text += fmt::format("  {} checkpoints, {} snapshots ({} folded), {} manifests, {} claims, {} evidence, {} tiles\n",
                      number(history.checkpoints + report.signatures.checkpoints),
                      number(history.tables.snapshots), number(report.snapshots.folded), number(history.tables.manifests),
                      number(history.tables.claims), number(history.tables.evidence), number(report.tiles.files));
  text += fmt::format("  {}   {} unknown files   {} halted runs without reason\n", redactions_text(history.redacted),
                      report.files.unknown, history.halted_without_reason);
  return text;
}

void write_counts(json::Writer& out, const Report& report) {
  const HistoryCounts& history = report.history;
  out.key("counts").begin_object();
  out.member("events", history.events).member("runs", history.runs).member("files", report.files.files);
  out.member("bytes", report.files.bytes).member("artifacts", history.tables.artifacts);
  out.member("manifests", history.tables.manifests).member("snapshots", history.tables.snapshots);
  out.member("snapshots_folded", report.snapshots.folded).member("snapshots_erased", report.snapshots.erased);
  out.member("claims", history.tables.claims).member("evidence", history.tables.evidence);
  out.member("documents", history.corpora.revisions).member("passages", history.corpora.passages);
  out.member("checkpoints", history.checkpoints).member("signed_checkpoints", report.signatures.checkpoints);
  out.member("tiles", report.tiles.files).member("redacted", history.redacted.size());
  out.member("unknown_files", report.files.unknown).member("files_in_flight", report.files.in_flight);
  out.member("halted_without_reason", history.halted_without_reason).member("findings", report.findings_count);
  out.end_object();
  out.key("origins").begin_object().member("observed", history.origins[1]).member("reported", history.origins[2]);
  out.member("imported", history.origins[3]).end_object();
}

}  // namespace

std::string text_of(const Report& report) {
  std::string text;
  if (!report.log_id.empty()) {
    text += fmt::format("log {}  events {}  runs {}  files {} ({})  {}\n", report.log_id.substr(0, 4), number(report.history.events),
                        number(report.history.runs), number(report.files.files), human_size(static_cast<std::uint64_t>(report.files.bytes)),
                        human_duration(report.ended.micros - report.started.micros));
  }
  text += escape_for_terminal(headline(report)) + '\n';
  if (!report.findings.empty()) text += findings_text(report.findings, report.findings_count);
  if (!report.log_id.empty()) text += counts_text(report);
  for (const std::string& warning : report.warnings) text += "  " + escape_for_terminal(warning) + '\n';
  if (report.verdict == Verdict::unreadable) return text;
  return text + fmt::format("NOT CHECKED: {}\n", fmt::join(report.not_checked, ", "));
}

std::string json_of(const Report& report) {
  json::Writer out;
  out.begin_object().member("verdict", name_of(report.verdict));
  if (report.log_id.empty()) {
    out.key("log_id").null();
  } else {
    out.member("log_id", report.log_id);
  }
  if (!report.run_id.empty()) out.member("what", "bundle").member("run_id", report.run_id);
  out.member("upto", report.upto);
  if (report.resumed_from >= 0) out.member("resumed_from", report.resumed_from);
  write_signatures(out, report.signatures);
  out.member("root", to_hex(report.history.root));
  write_counts(out, report);
  out.key("redactions").begin_array();
  for (const std::int64_t seq : report.history.redacted) out.number(seq);
  out.end_array();
  if (!report.problem.empty()) out.member("problem", report.problem);
  write_strings(out, "warnings", report.warnings);
  write_strings(out, "not_checked", report.not_checked);
  write_findings(out, report.findings);
  out.member("tool", "muniment-verify " MUNIMENT_VERSION).member("started", format_time(report.started));
  out.member("ended", format_time(report.ended)).end_object();
  return std::move(out).text() + '\n';
}

}  // namespace muniment::verify
