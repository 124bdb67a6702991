// Implements the command doctor, and doctor --self.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "cli/commands.hpp"
#include "cli/doctor/doctor.hpp"
#include "client/program.hpp"

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

Status run_doctor(Session& session) {
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

// The criteria are checked by the program whose commands the daemon observes: doctor --self is its hidden self-check.
Status check_self(Session& session) {
  std::erase(session.words, "--self");
  std::ranges::replace(session.words, "doctor", "self-check");
  std::vector<char*> words;
  for (std::string& word : session.words) words.push_back(word.data());
  words.push_back(nullptr);
  session.exit_code = become("muniment", words.data());
  return success();
}

}  // namespace

void add_doctor_command(CLI::App& app, Session& session) {
  const auto self = std::make_shared<bool>(false);
  CLI::App& command =
      add_word(session, app, "doctor", "Diagnose problems and suggest fixes (exit code 1: a problem was found)",
               [&session, self] { return *self ? check_self(session) : run_doctor(session); });
  command.add_flag("--self", *self, "Check Muniment's own criteria in a new run and record the report");
}

}  // namespace muniment::cli
