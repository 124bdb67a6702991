// Implements the command doctor.
#include <fmt/format.h>

#include <array>

#include "cli/commands.hpp"
#include "cli/doctor/doctor.hpp"

namespace muniment::cli {
namespace {

void print_finding(const Output& out, const Finding& finding) {
  constexpr std::array<std::pair<std::string_view, Tone>, 4> marks{
      {{"✓", Tone::green}, {"·", Tone::dim}, {"!", Tone::yellow}, {"✗", Tone::red}}};
  const auto& [mark, tone] = marks[static_cast<std::size_t>(finding.level)];
  out.line(fmt::format("{} {:<10} {}", out.tone(tone, mark), finding.subject, out.one_line(finding.text)));
  if (finding.fix.empty()) return;
  out.line(fmt::format("             {} {}   ({})", finding.level == Level::note ? "more:" : "fix:",
                       out.one_line(finding.fix), out.tone(Tone::dim, finding.doc)));
}

Status run_doctor(Session& session, const NoOptions&) {
  RETURN_IF_ERROR(session.find_place());
  const LoadedConfig loaded = load_config(session.config_inputs());
  std::vector<Finding> findings = examine(loaded);
  for (Finding& finding : findings) {
    finding.text = session.advised(finding.text);
    finding.fix = session.advised(finding.fix);
  }
  if (session.options.json) {
    session.out().json_line(findings_json(findings));
  } else {
    for (const Finding& finding : findings) print_finding(session.out(), finding);
  }
  for (const Finding& finding : findings) {
    if (finding.level == Level::broken) session.exit_code = exit_refused;
  }
  return success();
}

}  // namespace

void add_doctor_command(CLI::App& app, Session& session) {
  add_command<NoOptions>(session, app, "doctor",
                         "Diagnose problems and suggest fixes (exit code 1: a problem was found)", nullptr, run_doctor);
}

}  // namespace muniment::cli
