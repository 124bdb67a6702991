#include "cli/commands/evidence/judgement.hpp"

#include <fmt/format.h>

#include <string>

#include "client/hints.hpp"

namespace muniment::cli {
namespace {

void print_findings(const Output& out, const json::Value& result) {
  for (const json::Value finding : result["findings"]) {
    const bool blocks = finding["blocks"].as_bool().value_or(false);
    const std::string of = finding["evidence_id"].string_or("");
    const std::string text = finding["text"].string_or("");
    const bool printed = text == result["reason"].string_or("");  // on the line of the verdict
    out.line(fmt::format("  {}{}{}{}{}", out.tone(blocks ? Tone::red : Tone::dim, finding["code"].string_or("?")),
                         of.empty() ? "" : "  ", out.one_line(of), printed ? "" : "  ",
                         printed ? "" : out.advised(with_commands(out.one_line(text)))));
  }
  for (const json::Value halt : result["halted"])
    out.line("  stopped  " + out.one_line(halt["run_id"].string_or("")) + out.advised("  See: muniment recover RUN"));
}

}  // namespace

Status tell_judgement(Session& session, const Message& answer, std::string_view good, std::string_view bad) {
  const json::Value result = answer.result();
  const bool can_complete = result["can_complete"].as_bool().value_or(false);
  if (!can_complete) session.exit_code = exit_refused;
  if (session.printed_json(answer)) return success();
  const Output& out = session.out();
  out.line(fmt::format("{}  {}  {}", out.tone(can_complete ? Tone::green : Tone::red, can_complete ? good : bad),
                       result["verdict"].string_or(""),
                       out.advised(with_commands(out.one_line(result["reason"].string_or(""))))));
  print_findings(out, result);
  return success();
}

}  // namespace muniment::cli
