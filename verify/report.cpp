#include "verify/report.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/json/json.hpp"
#include "base/text.hpp"
#include "verify/report_parts.hpp"

namespace muniment::verify {
namespace {

constexpr std::size_t redactions_shown_max = 10, adoptions_shown_max = 10;
// The daemon signs within 250 ms and stores a note in the database every minute. Events that are further apart
// therefore have a checkpoint between them if the daemon could sign.
constexpr std::int64_t unsigned_span_micros_max = 60'000'000;

bool checkpoints_missed(const UnsignedTail& tail) {
  return tail.until.micros - tail.since.micros > unsigned_span_micros_max;
}

std::string end_of_run(const Report& report) {
  if (!report.run_end) return "";
  const RunEnd& end = *report.run_end;
  switch (end.stand) {
    case Stand::ended:
      return fmt::format(", run ended with {} at seq {}", end.outcome ? *end.outcome : "an erased outcome",
                         number(end.seq));
    case Stand::halted: return fmt::format(", run HALTED at seq {}", number(end.seq));
    case Stand::not_started:
    case Stand::open: break;
  }
  return ", run OPEN at the end of this bundle";
}

std::string headline(const Report& report) {
  switch (report.verdict) {
    case Verdict::verified:
      if (!report.run_id.empty()) {
        return fmt::format("VERIFIED run {} to {}{}: in a log of {} events {}", report.run_id, number(report.upto),
                           end_of_run(report), number(report.signatures.upto + 1), vouchers(report.signatures));
      }
      return fmt::format("VERIFIED to {}: {}", number(report.signatures.upto), vouchers(report.signatures));
    case Verdict::is_unsigned:
      if (report.upto < 0) return "CONSISTENT, UNSIGNED: the log is empty";
      return fmt::format("CONSISTENT, UNSIGNED to {}{}: {}", number(report.upto), end_of_run(report),
                         report.signatures.without_key ? "no key was given to check the signatures (--key FILE)"
                                                       : "no signature covers this log");
    case Verdict::wrong_key: return "WRONG KEY" + end_of_run(report) + ": " + report.signatures.wrong_key;
    case Verdict::unsigned_tail:
      return fmt::format("CONSISTENT, UNSIGNED TAIL from {}: the events before it are {}", number(report.tail->from),
                         vouchers(report.signatures));
    case Verdict::unknown_schema:
      return fmt::format(
          "CONSISTENT, UNKNOWN SCHEMA: the tables, views and triggers of this database were not checked: {}",
          report.problem);
    case Verdict::tampered: return fmt::format("TAMPERED OR CORRUPT: {}", place_of(report.findings.front()));
    case Verdict::unreadable: return "UNREADABLE: " + report.problem;
    case Verdict::incomplete: return "INCOMPLETE: " + report.problem;
  }
  return "";
}

std::string redactions_text(const std::vector<std::int64_t>& seqs) {
  if (seqs.empty()) return "0 redacted";
  std::string text = fmt::format("{} redacted (", seqs.size());
  for (std::size_t i = 0; i < seqs.size() && i < redactions_shown_max; ++i)
    text += fmt::format("{}{}", i > 0 ? ", " : "", seqs[i]);
  return text + (seqs.size() > redactions_shown_max ? ", …)" : ")");
}

std::string tail_text(const UnsignedTail& tail, Time now) {
  std::string text = fmt::format(
      "  {} events ({} to {}) are chained, not signed: recorded {}Z to {}Z, the oldest {} ago\n", number(tail.events),
      number(tail.from), number(tail.from + tail.events - 1), format_time(tail.since).substr(0, 19),
      format_time(tail.until).substr(0, 19), human_duration(std::max<std::int64_t>(0, now.micros - tail.since.micros)));
  if (checkpoints_missed(tail)) {
    text += fmt::format(
        "  the first and the last are {} apart: a signing daemon leaves checkpoints between them, and none exists\n",
        human_duration(tail.until.micros - tail.since.micros));
  }
  if (tail.live)
    text += "  a daemon holds the log but did not sign them within 2 s: run muniment status for the reason\n";
  return text;
}

std::string adopted_text(const std::vector<Adoption>& adopted) {
  std::string text;
  for (std::size_t i = 0; i < adopted.size() && i < adoptions_shown_max; ++i) {
    const Adoption& one = adopted[i];
    text +=
        one.from < 0
            ? fmt::format("  the log.started at {} is erased: whether it adopted events is unknown\n",
                          number(one.said_at))
            : fmt::format(
                  "  events {} to {} were adopted at {}: nothing outside the database shows that the daemon wrote them\n",
                  number(one.from), number(one.to), number(one.said_at));
  }
  if (adopted.size() > adoptions_shown_max)
    text += fmt::format("  … and {} more adoptions\n", adopted.size() - adoptions_shown_max);
  return text;
}

std::string counts_text(const Report& report) {
  const HistoryCounts& history = report.history;
  std::string text;
  if (report.tail) text += tail_text(*report.tail, report.started);
  text += adopted_text(history.adopted);
  for (const std::int64_t size : report.signatures.continues)
    text += fmt::format("  continues the checkpoint at {} events that you gave\n", number(size));
  if (report.newer > 0)
    text += fmt::format("  {} newer events were appended during this verification: chained, not yet signed\n",
                        number(report.newer));
  std::string origins;
  const auto origin = [&](std::size_t which, std::string_view name) {
    if (history.origins[which] > 0)
      origins += fmt::format("{} {} {}", origins.empty() ? "  origin:" : ",", number(history.origins[which]), name);
  };
  origin(2, "reported");
  origin(1, "observed");
  origin(3, "imported");
  if (!origins.empty()) text += origins + '\n';
  text += fmt::format("  {} checkpoints, {} snapshots ({} folded), {} manifests, {} claims, {} evidence, {} tiles\n",
                      number(history.checkpoints + report.signatures.checkpoints), number(history.tables.snapshots),
                      number(report.snapshots.folded), number(history.tables.manifests), number(history.tables.claims),
                      number(history.tables.evidence), number(report.tiles.files));
  const std::string unknown =
      report.files.unknown ? number(*report.files.unknown) + " unknown files" : "unknown files not searched for";
  text += fmt::format("  {}   {}   {} halted runs without reason\n", redactions_text(history.redacted), unknown,
                      history.halted_without_reason);
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
  if (report.files.unknown) {
    out.member("unknown_files", *report.files.unknown);
  } else {
    out.key("unknown_files").null();
  }
  out.member("files_in_flight", report.files.in_flight);
  out.member("halted_without_reason", history.halted_without_reason).member("findings", report.findings_count);
  out.end_object();
  out.key("origins").begin_object().member("observed", history.origins[1]).member("reported", history.origins[2]);
  out.member("imported", history.origins[3]).end_object();
}

void write_run_end(json::Writer& out, const Report& report) {
  out.key("run_end");
  if (!report.run_end) {
    out.null();
    return;
  }
  const RunEnd& end = *report.run_end;
  const bool ended = end.stand == Stand::ended;
  out.begin_object().member("status", ended ? "ended" : end.stand == Stand::halted ? "halted" : "open");
  out.key("outcome");
  if (end.outcome) {
    out.string(*end.outcome);
  } else {
    out.null();
  }
  write_upto(out, "seq", end.seq);
  out.end_object();
}

// Breaks the text at blanks into lines of at most `columns_max` characters; all but the first are indented.
std::string wrapped(std::string_view text) {
  constexpr std::size_t columns_max = 120;
  std::string lines, line;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    if (!line.empty() && line.size() + 1 + word.size() > columns_max) {
      lines += line + '\n';
      line = " ";
    }
    line += (line.empty() ? "" : " ") + std::string(word);
    text.remove_prefix(std::min(text.size(), word.size() + 1));
  }
  return lines + line + '\n';
}

}  // namespace

std::string text_of(const Report& report) {
  std::string text;
  if (!report.log_id.empty()) {
    text += fmt::format("log {}  events {}  runs {}  files {} ({})  {}\n", report.log_id.substr(0, 4),
                        number(report.history.events), number(report.history.runs), number(report.files.files),
                        human_size(static_cast<std::uint64_t>(report.files.bytes)),
                        human_duration(report.ended.micros - report.started.micros));
  }
  text += escape_for_terminal(headline(report)) + '\n';
  if (!report.findings.empty())
    text += findings_text(report.findings, report.findings_count, report.place ? &*report.place : nullptr);
  if (!report.log_id.empty()) text += counts_text(report);
  for (const std::string& warning : report.warnings) text += "  " + escape_for_terminal(warning) + '\n';
  if (report.verdict == Verdict::unreadable) return text;
  return text + wrapped("NOT CHECKED: " + fmt::format("{}", fmt::join(report.not_checked, ", ")));
}

std::string json_of(const Report& report) {
  json::Writer out;
  out.begin_object().member("verdict", name_of(report.verdict));
  if (report.log_id.empty()) {
    out.key("log_id").null();
  } else {
    out.member("log_id", report.log_id);
  }
  if (!report.run_id.empty()) {
    out.member("what", "bundle").member("run_id", report.run_id);
    write_run_end(out, report);
  }
  out.member("upto", report.upto);
  if (report.resumed_from >= 0) out.member("resumed_from", report.resumed_from);
  write_signatures(out, report.signatures);
  if (report.tail) {
    out.key("tail").begin_object().member("from", report.tail->from).member("events", report.tail->events);
    out.member("since", format_time(report.tail->since)).member("until", format_time(report.tail->until));
    out.member("age_s", std::max<std::int64_t>(0, report.started.micros - report.tail->since.micros) / 1'000'000);
    out.member("checkpoints_missed", checkpoints_missed(*report.tail)).member("live", report.tail->live).end_object();
  }
  if (report.newer > 0) out.member("newer_events", report.newer);
  if (!report.signatures.continues.empty()) {
    out.key("continues").begin_array();
    for (const std::int64_t size : report.signatures.continues) out.number(size);
    out.end_array();
  }
  out.member("root", to_hex(report.history.root));
  write_counts(out, report);
  out.key("redactions").begin_array();
  for (const std::int64_t seq : report.history.redacted) out.number(seq);
  out.end_array();
  out.key("adopted").begin_array();
  for (const Adoption& one : report.history.adopted) {
    out.begin_object().member("said_at", one.said_at);
    write_upto(out, "from_seq", one.from);
    write_upto(out, "to_seq", one.to);
    out.end_object();
  }
  out.end_array();
  if (!report.problem.empty()) out.member("problem", report.problem);
  write_strings(out, "warnings", report.warnings);
  write_strings(out, "not_checked", report.not_checked);
  write_findings(out, report.findings, report.place ? &*report.place : nullptr);
  out.member("tool", "muniment-verify " MUNIMENT_VERSION).member("started", format_time(report.started));
  out.member("ended", format_time(report.ended)).end_object();
  return std::move(out).text() + '\n';
}

}  // namespace muniment::verify
