// Formats the result of a proof's verification as text and as JSON.
#include <fmt/format.h>

#include <array>

#include "base/text.hpp"
#include "verify/portable/proof.hpp"
#include "verify/report_parts.hpp"

namespace muniment::verify {
namespace {

std::string_view origin_name(int origin) {
  constexpr std::array<std::string_view, 4> names{"?", "observed", "reported", "imported"};
  return origin >= 1 && origin <= 3 ? names[static_cast<std::size_t>(origin)] : names[0];
}

std::string headline(const ProofReport& report) {
  switch (report.verdict) {
    case Verdict::verified:
      return fmt::format("VERIFIED: this event is in the log {}, {}", report.origin, vouchers(report.signatures));
    case Verdict::is_unsigned:
      return fmt::format("CONSISTENT, UNSIGNED: {}", report.signatures.without_key
                                                         ? "no key was given to check the checkpoint (--key FILE)"
                                                         : "no signature covers the checkpoint");
    case Verdict::wrong_key: return "WRONG KEY: " + report.signatures.wrong_key;
    case Verdict::tampered: return fmt::format("TAMPERED OR CORRUPT: {}", place_of(report.findings.front()));
    case Verdict::unsigned_tail:  // a proof covers one event
    case Verdict::unknown_schema:
    case Verdict::unreadable:
    case Verdict::incomplete: break;
  }
  return "UNREADABLE: " + report.problem;
}

std::string entry_text(const Entry& entry) {
  std::string text = fmt::format("  seq {} of run {} (run_seq {})\n  {}, {} by {}\n", number(entry.seq), entry.run_id,
                                 number(entry.run_seq), entry.type, origin_name(entry.origin), entry.actor);
  text += fmt::format("  recorded {}{}\n", format_time(entry.recorded_at),
                      entry.occurred_at ? ", occurred " + format_time(*entry.occurred_at) : "");
  return text + fmt::format("  event_id {}\n  body_hash {}\n", entry.event_id.text(), to_hex(entry.body_hash));
}

void write_entry(json::Writer& out, const Entry& entry) {
  out.key("event")
      .begin_object()
      .member("log_id", entry.log_id.text())
      .member("seq", entry.seq)
      .member("run_id", entry.run_id);
  out.member("run_no", entry.run_no)
      .member("run_seq", entry.run_seq)
      .member("recorded_at", format_time(entry.recorded_at));
  if (entry.occurred_at) out.member("occurred_at", format_time(*entry.occurred_at));
  out.member("origin", origin_name(entry.origin))
      .member("type", entry.type)
      .member("schema_version", entry.schema_version);
  if (entry.step_id) out.member("step_id", *entry.step_id);
  out.member("actor", entry.actor)
      .member("event_id", entry.event_id.text())
      .member("body_hash", to_hex(entry.body_hash))
      .end_object();
}

}  // namespace

std::string text_of(const ProofReport& report) {
  std::string text = escape_for_terminal(headline(report)) + '\n';
  if (!report.findings.empty()) text += findings_text(report.findings, report.findings.size(), nullptr);
  if (!report.entry) return text;
  text += escape_for_terminal(entry_text(*report.entry));
  if (report.body_fits) text += "  the given body matches the recorded hash\n";
  if (report.receipt_fits) text += "  the receipt matches the entry\n";
  return text + fmt::format("  in a tree of {} events with root {}\n", number(report.size), to_hex(report.root));
}

std::string json_of(const ProofReport& report) {
  json::Writer out;
  out.begin_object().member("verdict", name_of(report.verdict)).member("what", "proof");
  if (report.entry) {
    write_entry(out, *report.entry);
    out.member("run_hash", to_hex(report.run_hash))
        .member("leaf_hash", to_hex(report.leaf_hash))
        .member("origin", report.origin);
    out.member("size", report.size).member("root", to_hex(report.root)).member("receipt_fits", report.receipt_fits);
    out.member("body_fits", report.body_fits);
  }
  write_signatures(out, report.signatures);
  if (!report.problem.empty()) out.member("problem", report.problem);
  write_findings(out, report.findings, nullptr);
  out.member("tool", "muniment-verify " MUNIMENT_VERSION).member("started", format_time(report.started));
  out.member("ended", format_time(report.ended)).end_object();
  return std::move(out).text() + '\n';
}

}  // namespace muniment::verify
