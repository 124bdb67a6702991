// Targets of test reports and specifications of blind workflows. A report that is accepted without a problem has
// consistent counts; an accepted specification is complete.
#include <cstdint>
#include <string>
#include <vector>

#include "base/crypto/dsse.hpp"
#include "base/json/json.hpp"
#include "evidence/attestation/statement.hpp"
#include "evidence/completion/text/command_line.hpp"
#include "evidence/reports/lines.hpp"
#include "evidence/reports/report.hpp"
#include "evidence/reports/tally.hpp"
#include "evidence/shell/script.hpp"
#include "evidence/workflow/spec.hpp"
#include "fuzz/target.hpp"

namespace muniment::fuzz {
namespace {

namespace reports = evidence::reports;

void require_counts(const reports::Counts& counts) {
  for (const std::int64_t count : {counts.total, counts.passed, counts.failed, counts.skipped})
    require(count >= 0 && count <= reports::count_max, "an absurd count is no problem");
  require(counts.total == counts.passed + counts.failed + counts.skipped, "counts that do not add up are no problem");
}

void require_report(const reports::Report& report) {
  require(report.failures.size() <= reports::failures_kept_max, "too many failures are named");
  for (const std::string& name : report.failures)
    require(name.size() <= reports::test_name_bytes_max, "a name is too long");
  if (!report.problem.empty()) return;
  require(report.complete, "a truncated report is no problem");
  require_counts(report.counts);
  if (!report.summary) return;
  require_counts(*report.summary);
  require(*report.summary == report.counts, "a summary that is not what is listed is no problem");
}

void try_report(const std::string& text) {
  const auto report = reports::read_report(text);
  if (report) require_report(*report);
  const std::string plain = reports::plain_text(text);
  require(!reports::needs_plain_text(plain), "plain text is not plain");
  for (const reports::Format& format : reports::formats()) {
    auto read = format.parse(plain);
    if (!read) continue;
    reports::check_counts(*read);
    require_report(*read);
  }
}

void try_spec(const std::string& text) {
  namespace workflow = evidence::workflow;
  const auto spec = workflow::parse_spec(text);
  if (!spec) {
    require(!spec.error().message.empty(), "an error has no message");
    return;
  }
  require(!spec->task.empty() && !spec->compare.empty() && spec->compare.size() <= workflow::pairs_max,
          "an accepted specification is incomplete");
  for (const workflow::Step* step : {&spec->spec_writer, &spec->coder, &spec->tester})
    require(!step->command.empty() && step->limits.seconds > 0 && step->limits.disk_bytes > 0, "a step is incomplete");
  for (const workflow::Pair& pair : spec->compare)
    require(!pair.golden.starts_with('/') && !pair.output.starts_with('/') && pair.output.find("..") != 0,
            "a path leaves its folder");
  for (const std::string& name : spec->environment)
    require(!workflow::is_withheld(name), "a withheld variable is passed");
}

constexpr const char* workflow_spec = R"(task = "Greet"
isolation = "partial"
environment = ["LANG"]
[spec_writer]
command = ["./write.sh"]
[coder]
command = ["./code.sh", "--fast"]
network = true
seconds = 10
[tester]
command = ["python3", "test.py"]
reads = ["lib"]
[compare]
"greeting.txt" = "stdout"
"a/b" = "out/b"
)";

// An accepted envelope is read again as it was; the content of an accepted statement is JSON.
void try_attestation(const std::string& text) {
  namespace attestation = evidence::attestation;
  const auto envelope = Envelope::parse(text);
  if (envelope) {
    const auto again = Envelope::parse(envelope->text());
    const bool larger = envelope->text().size() > envelope_bytes_max;
    require(larger || (again && again->signed_text() == envelope->signed_text()), "an envelope is not read as written");
    require(envelope->signed_text().find(' ') == 6, "a signed text may be a checkpoint");
  }
  const auto statement = attestation::parse_statement(envelope ? envelope->payload : text);
  if (!statement) return;
  require(!statement->subjects.empty(), "a statement has no subject");
  const std::string content = content_of(*statement, "2026-11-01T12:00:00Z");
  const auto document = json::parse(content);
  require(document && document->root()["command"].is(json::Kind::object), "the content has no command");
}

// Limits hold, and a script that is one command has a command.
void try_command_line(const std::string& text) {
  namespace shell = evidence::shell;
  const shell::ShellScript script = shell::read_script(text);
  require(script.commands.size() <= shell::script_commands_max, "a script has too many commands");
  for (std::size_t i = 0; i < script.commands.size(); ++i) {
    const shell::ScriptCommand& command = script.commands[i];
    require(command.words.size() <= shell::command_words_max, "a command has too many words");
    require(!command.words.empty() || !command.written.empty(), "a command is empty");
    require(i == 0 || command.before == script.commands[i - 1].after, "two commands disagree about their operator");
  }
  require(!is_one_command(script) || !script.commands.empty(), "no command is one command");
  const evidence::completion::CommandKind kind = evidence::completion::kind_of_line(text, {});
  require(kind.program != evidence::completion::Program::runner || !kind.name.empty(), "a runner has no name");
  evidence::completion::kind_of(std::vector<std::string>{"bash", "-c", text}, {});
}

}  // namespace

std::vector<Target> reports_targets() {
  const auto report = [](const char* name) { return golden("reports/" + std::string(name)); };
  const std::string envelope = golden("attestation/envelope.json");
  return {
      {"command_line",
       try_command_line,
       {"set -e; cd 'a b' && CI=1 timeout 5 pytest -xvs --tb=short tests 2>&1 < /dev/null | tee log > x",
        "cat <<E\n$(x)\nE\n(. .venv/bin/activate && exec python3 -m unittest discover -s t) || make -C a \"$X\" &"}},
      {"attestation", try_attestation, {envelope, Envelope::parse(envelope)->payload}},
      {"report_xml", try_report, {report("junit_ctest.xml"), report("junit_nested.xml"), report("gtest.xml")}},
      {"report_json", try_report, {report("gtest_passed.json"), report("sarif_clean.sarif"), report("go_events.json")}},
      {"workflow_spec", try_spec, {workflow_spec}},
      {"report_tap", try_report, {report("tap_prove.txt"), report("tap_perl_failed.tap"), report("node_tap.txt")}},
      {"report_console",
       try_report,
       {report("pytest_nested_session.txt"), report("pytest_verbose.txt"), report("ctest_passed.txt"),
        report("go_verbose_failed.txt"), report("cargo_failed.txt"), report("node_spec.txt"),
        report("unittest_verbose.txt")}},
      {"report_summary",
       try_report,
       {report("console_jest_failed.txt"), report("console_mocha_failed.txt"), report("console_vitest_failed.txt"),
        report("console_gtest_failed.txt"), report("console_surefire_failed.txt"), report("console_pytest_sugar.txt")}},
  };
}

}  // namespace muniment::fuzz
