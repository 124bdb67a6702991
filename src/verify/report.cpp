#include "verify/report.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/json.hpp"
#include "base/text.hpp"

namespace muniment::verify {
namespace {

constexpr std::size_t redactions_shown_max = 10;
constexpr std::size_t findings_shown_max = 10;

std::string number(std::int64_t value) { return grouped(static_cast<std::uint64_t>(value)); }

std::string_view name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::verified: return "verified";
    case Verdict::tampered: return "tampered";
    case Verdict::is_unsigned: return "unsigned";
    case Verdict::unreadable: return "unreadable";
    case Verdict::incomplete: return "incomplete";
  }
  return "unreadable";
}

std::string place_of(const Finding& finding) {
  std::string place(name_of(finding.check));
  if (finding.seq >= 0) place += fmt::format(" at seq {}", number(finding.seq));
  if (!finding.run_id.empty()) place += fmt::format(" of run {}", finding.run_id);
  return escape_for_terminal(place);
}

// "signed by 9c1e12ab, witnessed 2 of 2 (last 2026-11-21T14:02:05Z)"
std::string vouchers(const Signatures& signatures) {
  std::vector<std::string> ids;
  for (const SigningKey& key : signatures.keys) {
    const std::size_t id = key.vkey.find('+') + 1;
    ids.push_back(key.vkey.substr(id, 8));
  }
  std::string text = "signed by " + joined(ids, ", ");
  if (signatures.witnesses.empty()) return text;
  std::size_t vouching = 0;
  Time last;
  for (const WitnessFact& witness : signatures.witnesses) {
    if (witness.upto < 0) continue;
    ++vouching;
    last = std::max(last, witness.last);
  }
  text += fmt::format(", witnessed {} of {}", vouching, signatures.witnesses.size());
  return vouching == 0 ? text : text + fmt::format(" (last {}Z)", format_time(last).substr(0, 19));
}

std::string headline(const Report& report) {
  switch (report.verdict) {
    case Verdict::verified: return fmt::format("VERIFIED to {}: {}", number(report.signatures.upto), vouchers(report.signatures));
    case Verdict::is_unsigned:
      return report.upto < 0 ? "CONSISTENT, UNSIGNED: the log is empty"
                             : fmt::format("CONSISTENT, UNSIGNED to {}: nothing signed says that this is the log that was written", number(report.upto));
    case Verdict::tampered: return fmt::format("TAMPERED OR CORRUPT: {}", place_of(report.findings.front()));
    case Verdict::unreadable: return "UNREADABLE: " + report.problem;
    case Verdict::incomplete: return "INCOMPLETE: " + report.problem;
  }
  return "";
}

std::string first_bad_text(const Report& report) {
  const Finding& first = report.findings.front();
  std::string text = fmt::format("  expected  {}\n  actual    {}\n  meaning   {}\n  next      {}\n", escape_for_terminal(first.expected),
                                 escape_for_terminal(first.actual), meaning_of(first), escape_for_terminal(next_of(first)));
  if (report.findings_count == 1) return text;
  text += fmt::format("  {} findings in all{}\n", number(static_cast<std::int64_t>(report.findings_count)),
                      report.findings_count > findings_shown_max ? ", the first:" : ":");
  for (std::size_t i = 1; i < report.findings.size() && i < findings_shown_max; ++i) {
    const Finding& finding = report.findings[i];
    text += fmt::format("    {}: expected {}, actual {}\n", place_of(finding), escape_for_terminal(finding.expected), escape_for_terminal(finding.actual));
  }
  return text;
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

void write_finding(json::Writer& out, const Finding& finding) {
  out.begin_object();
  if (finding.seq >= 0) {
    out.member("seq", finding.seq);
  } else {
    out.key("seq").null();
  }
  if (finding.run_id.empty()) {
    out.key("run_id").null();
  } else {
    out.member("run_id", finding.run_id);
  }
  out.member("check", name_of(finding.check)).member("expected", finding.expected).member("actual", finding.actual);
  out.member("meaning", meaning_of(finding)).member("next", next_of(finding)).end_object();
}

void write_counts(json::Writer& out, const Report& report) {
  const HistoryCounts& history = report.history;
  out.key("counts").begin_object();
  out.member("events", history.events).member("runs", history.runs).member("files", report.files.files);
  out.member("bytes", report.files.bytes).member("artifacts", history.tables.artifacts);
  out.member("manifests", history.tables.manifests).member("snapshots", history.tables.snapshots);
  out.member("snapshots_folded", report.snapshots.folded).member("snapshots_erased", report.snapshots.erased);
  out.member("claims", history.tables.claims).member("evidence", history.tables.evidence);
  out.member("checkpoints", history.checkpoints).member("signed_checkpoints", report.signatures.checkpoints);
  out.member("tiles", report.tiles.files).member("redacted", history.redacted.size());
  out.member("unknown_files", report.files.unknown).member("files_in_flight", report.files.in_flight);
  out.member("halted_without_reason", history.halted_without_reason).member("findings", report.findings_count);
  out.end_object();
  out.key("origins").begin_object().member("observed", history.origins[1]).member("reported", history.origins[2]);
  out.member("imported", history.origins[3]).end_object();
}

void write_upto(json::Writer& out, std::string_view name, std::int64_t upto) {
  if (upto >= 0) {
    out.member(name, upto);
  } else {
    out.key(name).null();
  }
}

void write_signatures(json::Writer& out, const Signatures& signatures) {
  write_upto(out, "signed_upto", signatures.upto);
  out.key("keys").begin_array();
  for (const SigningKey& key : signatures.keys) {
    out.begin_object().member("key", key.vkey);
    out.member("from", key.named_at >= 0 ? "key.rotated" : signatures.keys_are_the_logs_own ? "log.pub" : "given");
    write_upto(out, "named_at", key.named_at);
    out.member("signed_upto", key.upto).end_object();
  }
  out.end_array().key("witnesses").begin_array();
  for (const WitnessFact& witness : signatures.witnesses) {
    out.begin_object().member("name", witness.name).member("vouches", witness.upto >= 0);
    write_upto(out, "upto", witness.upto);
    if (witness.upto >= 0) out.member("last", format_time(witness.last));
    out.end_object();
  }
  out.end_array();
}

void write_strings(json::Writer& out, std::string_view name, const std::vector<std::string>& texts) {
  out.key(name).begin_array();
  for (const std::string& text : texts) out.string(text);
  out.end_array();
}

}  // namespace

int exit_code_of(Verdict verdict, bool unsigned_ok) {
  switch (verdict) {
    case Verdict::verified: return 0;
    case Verdict::tampered: return 1;
    case Verdict::is_unsigned: return unsigned_ok ? 0 : 2;
    case Verdict::unreadable: return 4;
    case Verdict::incomplete: return 5;
  }
  return 4;
}

std::string text_of(const Report& report) {
  std::string text;
  if (!report.log_id.empty()) {
    text += fmt::format("log {}  events {}  runs {}  files {} ({})  {}\n", report.log_id.substr(0, 4), number(report.history.events),
                        number(report.history.runs), number(report.files.files), human_size(static_cast<std::uint64_t>(report.files.bytes)),
                        human_duration(report.ended.micros - report.started.micros));
  }
  text += headline(report) + '\n';
  if (!report.findings.empty()) text += first_bad_text(report);
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
  out.member("upto", report.upto);
  write_signatures(out, report.signatures);
  out.member("root", to_hex(report.history.root));
  write_counts(out, report);
  out.key("redactions").begin_array();
  for (const std::int64_t seq : report.history.redacted) out.number(seq);
  out.end_array();
  if (!report.problem.empty()) out.member("problem", report.problem);
  write_strings(out, "warnings", report.warnings);
  write_strings(out, "not_checked", report.not_checked);
  out.key("first_bad");
  if (report.findings.empty()) {
    out.null();
  } else {
    write_finding(out, report.findings.front());
  }
  out.key("findings").begin_array();
  for (const Finding& finding : report.findings) write_finding(out, finding);
  out.end_array();
  out.member("tool", "muniment-verify " MUNIMENT_VERSION).member("started", format_time(report.started));
  out.member("ended", format_time(report.ended)).end_object();
  return std::move(out).text() + '\n';
}

}  // namespace muniment::verify
