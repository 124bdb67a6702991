#include "verify/report_parts.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"

namespace muniment::verify {
namespace {

constexpr std::size_t findings_shown_max = 10;

void write_finding(json::Writer& out, const Finding& finding, const LogPlace* place) {
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
  out.member("meaning", meaning_of(finding));
  if (const std::string next = next_of(finding, place); !next.empty()) out.member("next", next);
  out.end_object();
}

}  // namespace

std::string number(std::int64_t value) { return grouped(static_cast<std::uint64_t>(value)); }

std::string place_of(const Finding& finding) {
  std::string place(name_of(finding.check));
  if (finding.seq >= 0) place += fmt::format(" at seq {}", number(finding.seq));
  if (!finding.run_id.empty()) place += fmt::format(" of run {}", finding.run_id);
  return escape_for_terminal(place);
}

// Example: "signed by 9c1e12ab, witnessed 2 of 2 (last 2026-11-21T14:02:05Z)".
std::string vouchers(const Signatures& signatures) {
  std::vector<std::string> ids;
  for (const SignerFact& key : signatures.keys) {
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

std::string findings_text(const std::vector<Finding>& findings, std::size_t count, const LogPlace* place) {
  const Finding& first = findings.front();
  std::string text =
      fmt::format("  expected  {}\n  actual    {}\n  meaning   {}\n", escape_for_terminal(first.expected),
                  escape_for_terminal(first.actual), meaning_of(first));
  if (const std::string next = next_of(first, place); !next.empty())
    text += fmt::format("  next      {}\n", escape_for_terminal(next));
  if (count == 1) return text;
  text += fmt::format("  {} findings in all{}\n", number(static_cast<std::int64_t>(count)),
                      count > findings_shown_max ? ", the first:" : ":");
  for (std::size_t i = 1; i < findings.size() && i < findings_shown_max; ++i) {
    const Finding& finding = findings[i];
    text += fmt::format("    {}: expected {}, actual {}\n", place_of(finding), escape_for_terminal(finding.expected),
                        escape_for_terminal(finding.actual));
  }
  return text;
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
  for (const SignerFact& key : signatures.keys) {
    out.begin_object().member("key", key.vkey);
    out.member("from", key.named_at >= 0 ? "key.rotated" : signatures.keys_are_the_logs_own ? "log.pub" : "given");
    write_upto(out, "named_at", key.named_at);
    out.member("signed_upto", key.upto).end_object();
  }
  out.end_array();
  if (!signatures.wrong_key.empty()) out.member("wrong_key", signatures.wrong_key);
  out.key("witnesses").begin_array();
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

void write_findings(json::Writer& out, const std::vector<Finding>& findings, const LogPlace* place) {
  out.key("first_bad");
  if (findings.empty()) {
    out.null();
  } else {
    write_finding(out, findings.front(), place);
  }
  out.key("findings").begin_array();
  for (const Finding& finding : findings) write_finding(out, finding, place);
  out.end_array();
}

}  // namespace muniment::verify
