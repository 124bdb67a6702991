// The check of structure. For a recorded command: its program, its outcome and its working tree. For a report: whether
// its counts add up, whether tests ran, whether they passed.
#include <fmt/format.h>

#include <algorithm>

#include "base/limits.hpp"
#include "base/text.hpp"
#include "evidence/completion/changes/diff.hpp"
#include "evidence/completion/checks.hpp"
#include "evidence/completion/text/blanks.hpp"
#include "evidence/completion/text/likeness.hpp"
#include "evidence/completion/text/words.hpp"
#include "evidence/reports/tally.hpp"

namespace muniment::evidence::completion {
namespace {

constexpr std::int64_t skipped_per_run_max = 4;  // skipped tests for each test that ran; above it the run shows little
constexpr std::size_t test_lines_of_run = 3;
constexpr std::size_t reason_words_min = 2;
constexpr std::size_t diff_bytes_shown = 600;

using reports::Counts;
using reports::Report;

bool is_excuse(std::string_view word) {
  for (const std::string_view excuse : {"flaky", "slow", "broken", "outdated", "obsolete", "unnecessary", "irrelevant",
                                        "unrelated", "temporary", "temporarily", "refactoring", "unstable"}) {
    if (word == excuse) return true;
  }
  return false;
}

// Returns whether the text is a reason: it names something specific, unlike "needed", "flaky tests" and "updated the
// tests".
bool is_reason(std::string_view text) {
  if (blank_kind(text) != Blank::no) return false;
  constexpr std::uint32_t names_nothing = stop_word | work_verb | praise | test_word | preposition | blank |
                                          soft_blank | deed | hedge | future | result_name | weakening;
  std::size_t words = 0, specific = 0;
  Likeness likeness;
  each_word(text, [&](std::string_view word) {
    ++words;
    if (classes_of(word) == 0)
      add_word(likeness, word);
    else if (word.size() >= judged_word_letters_min)
      likeness.letters += word.size();
    if (word.size() >= 3 && (classes_of(word) & names_nothing) == 0 && !is_excuse(word)) ++specific;
  });
  return words >= reason_words_min && specific > 0 && !is_mash(likeness);
}

// The digest of a tree is "git:<commit> [v2 ]sha256:<digest of its files>"; only the second part is compared, because a
// commit changes no file. A digest in another form is compared as a whole.
std::string_view files_of_tree(std::string_view digest) {
  constexpr std::string_view mark = " sha256:";
  const std::size_t at = digest.starts_with("git:") ? digest.find(mark) : std::string_view::npos;
  return at == std::string_view::npos ? digest : digest.substr(at + 1);
}

// Returns the mark of the tree's path, "root:HEX"; empty: an earlier version did not record it.
std::string_view root_of_tree(std::string_view digest) {
  const std::size_t at = digest.find("root:");
  return at == std::string_view::npos ? "" : digest.substr(at, digest.find(' ', at) - at);
}

// Returns the commit of a digest "git:COMMIT …"; "HEAD" for a tree without one, as git cannot compare with it.
std::string_view commit_of_tree(std::string_view digest) {
  digest.remove_prefix(std::min<std::size_t>(digest.size(), 4));
  const std::string_view commit = digest.substr(0, digest.find(' '));
  return commit == "none" ? "HEAD" : commit;
}

bool same_tree(std::string_view one, std::string_view other) { return files_of_tree(one) == files_of_tree(other); }

// The remedy for changed tests if the reason is missing or names nothing.
std::string ask_reason(std::string_view reason) {
  if (reason.empty())
    return " Restore them, or record the evidence again with the reason: --tests-changed REASON of `muniment exec` "
           "(tests_changed_reason).";
  return fmt::format(
      " The reason \"{}\" of --tests-changed (tests_changed_reason) is too short or names nothing: it needs {} words "
      "or more, one of which names what changed in the program or in the requirement. Restore the tests, or record the "
      "evidence again with such a reason.",
      preview(reason, 200), reason_words_min);
}

class Structure {
 public:
  Structure(const Case& c, Exhibit& exhibit, Findings& findings)
      : case_(c), exhibit_(exhibit), findings_(findings), id_(exhibit.piece->evidence_id) {}

  void check() {
    if (case_.task.files_changed) {
      add(Code::edited_after,
          "The evidence is older than the last edit: files changed after it was recorded. Run the check again.");
    }
    if (exhibit_.recorded()) {
      check_command(*exhibit_.piece->command);
    } else {
      check_words();
    }
    if (exhibit_.report) {
      check_report(*exhibit_.report);
    } else {
      check_summary();
    }
    // The daemon made the content of recorded evidence, whose report was checked above.
    if (!exhibit_.recorded()) check_outcome();
    check_isolation();
    check_workflow();
    decide_strength();
  }

 private:
  static constexpr std::string_view run_pinned =
      "Run the specification with which the task was opened: `muniment workflow run SPEC.toml`.";
  static constexpr std::string_view no_tests_text =
      "No test ran: a run of zero tests proves nothing. Correct the selection of tests, or the program that exits before "
      "they begin, and run them again.";

  void add(Code code, std::string_view text) { findings_.add(code, id_, std::string(text)); }

  // The evidence is not strong for this reason, which blocks only under the strict policy.
  void weaken(Code code, std::string text) {
    const auto& allowed = case_.policy.allowed;
    if (std::ranges::find(allowed, row_of(code).name) != allowed.end())
      return findings_.note(code, id_, text + " Allowed by the policy.");
    findings_.note(code, id_, text);
    if (!exhibit_.weakness) exhibit_.weakness = Weakness{code, std::move(text)};
  }

  void check_outcome() {
    if (exhibit_.outcome.failed) {
      add(Code::tests_failed, "The evidence states a failure: \"" + exhibit_.outcome.member +
                                  "\". Correct the fault and run the check again.");
    }
    if (exhibit_.outcome.disagrees) {
      add(Code::counts_disagree,
          "The counts of the evidence do not add up to its total. Record what the tool reported.");
    }
    if (exhibit_.outcome.no_tests) add(Code::zero_tests, no_tests_text);
  }

  void check_command(const Command& command) {
    const CommandKind& kind = *exhibit_.command;
    if (!command.observed && !attests_without_command()) {
      weaken(Code::not_observed,
             "Weak evidence: a client reported this command, and the daemon did not observe it. Run it with " +
                 exec_line(case_.task, exhibit_.piece->type) + " where the daemon can start it (`muniment doctor`).");
    }
    if (command.interrupted)
      add(Code::interrupted, "The recording was interrupted before the command ended. Run it again.");
    if (!command.exit_code && !command.interrupted) {
      add(Code::exit_unknown, command.signal.empty()
                                  ? std::string("The command's end is not recorded. Run it again.")
                                  : "The command was ended by " + command.signal + ". Run it again.");
    }
    if (command.exit_code && *command.exit_code != 0) {
      add(Code::command_failed,
          fmt::format("The command failed with exit status {}. Correct the fault and run it again.",
                      *command.exit_code));
    }
    if (command.output_lost) add(Code::output_lost, "A part of the command's output was lost. Run it again.");
    check_report_files(command);
    if (!exhibit_.is_comparison() && !attests_without_command()) check_program(command, kind);
    check_tree(command);
    check_changes(command);
    check_missing(command);
    if (command.earlier && command.report)
      check_earlier(*command.earlier, command.report->counts, command.tests_changed_reason);
  }

  // Tests that changed need a reason, and a person decides whether it is true.
  void check_changes(const Command& command) {
    if (!command.tests_changed.empty()) {
      const std::string names = "tests or their configuration changed within the task: " + named(command.tests_changed);
      const std::string lines =
          command.tests_diff.empty() ? "" : " Changed lines: " + preview(command.tests_diff, diff_bytes_shown);
      if (is_reason(command.tests_changed_reason)) {
        weaken(Code::tests_changed, "Weak evidence: " + names + ". Stated reason: \"" +
                                        preview(command.tests_changed_reason, 300) + "\"." + lines);
      } else {
        add(Code::tests_changed, "The " + names + "." + ask_reason(command.tests_changed_reason) + lines);
      }
    }
    if (!command.skips_added.empty())
      weaken(Code::skips_added,
             "Weak evidence: lines that skip tests were added within the task: " + named(command.skips_added) +
                 ". Correct the program, and leave the decision about skipped tests to the tests.");
  }

  static std::string named(const std::vector<std::string>& paths) {
    return preview(paths.front(), 200) + (paths.size() > 1 ? fmt::format(" and {} more", paths.size() - 1) : "");
  }

  // A test of an earlier run for the task belongs to the run that completes it.
  void check_missing(const Command& command) {
    if (!command.report) return;
    const std::int64_t ran = command.report->counts.passed + command.report->counts.failed;
    std::string text;
    if (const auto& missing = command.tests_missing; !missing.empty()) {
      text = fmt::format("{}{} failed in an earlier run for the task and did not run in this one.",
                         preview(missing.front(), 200),
                         missing.size() > 1 ? fmt::format(" and {} more tests", missing.size() - 1) : "");
    } else if (command.ran_before > ran) {
      text = fmt::format("{} tests ran, and {} in an earlier run of the same command for the task.", ran,
                         command.ran_before);
    }
    if (text.empty()) return;
    if (is_reason(command.tests_changed_reason))
      findings_.note(Code::test_missing, id_, "Noted: " + text);
    else
      weaken(Code::test_missing, "Weak evidence: " + text + " Run all tests, or give a reason (--tests-changed).");
  }

  // The command wrote its reports, and its output agrees with them.
  void check_report_files(const Command& command) {
    if (command.report_modified_at &&
        command.report_modified_at->micros + limits::file_time_tick_micros < command.started_at.micros) {
      add(Code::old_report,
          "The report file is older than the command: it is stale. Delete it and run the tests again.");
    } else if (command.report_newest_at && *command.report_newest_at > command.ended_at) {
      add(Code::old_report,
          "The report file changed after the command ended. Record the file that the command writes, unchanged.");
    }
    if (!command.output || !command.report || command.report_files == 0) return;
    const Counts &said = *command.output, &shown = command.report->counts;
    if (said.failed > shown.failed) {
      add(Code::output_disagrees,
          fmt::format("The output states {} failed tests, and the {} {}. Record all reports of the command: name their "
                      "folder with --report.",
                      said.failed, command.report_files == 1 ? "report shows" : "reports show", shown.failed));
    } else if (said.passed + said.failed > shown.passed + shown.failed) {
      weaken(Code::output_disagrees,
             fmt::format("Weak evidence: the output states {} tests that ran, and the {} {}. Record all reports of the "
                         "command: name their folder with --report.",
                         said.passed + said.failed, command.report_files == 1 ? "report shows" : "reports show",
                         shown.passed + shown.failed));
    }
  }

  // Attestations of other systems state the result, but not the command.
  bool attests_without_command() const {
    return !exhibit_.piece->attested_by.empty() && exhibit_.piece->command->argv.empty();
  }

  bool has_comparison() const { return std::ranges::any_of(case_.exhibits, &Exhibit::is_comparison); }

  bool is_workflow_part() const { return exhibit_.recorded() && exhibit_.piece->command->workflow_part; }

  // The steps of a blind workflow before the comparison show what was done, not that it is right.
  void check_workflow() {
    if (exhibit_.is_comparison()) check_comparison(*exhibit_.piece->command);
    if (!is_workflow_part() || has_comparison()) return;
    add(Code::workflow_part,
        "The evidence is a step of a blind workflow, whose result is the evidence of type \"validation\". Use that.");
  }

  // A comparison proves something only if the golden files differ from what any program prints, if the program was
  // examined, and if the one who completes the task did not write the workflow.
  void check_comparison(const Command& command) {
    if (command.golden_empty)
      add(Code::empty_golden,
          "Every golden file of the workflow is empty: equal outputs prove nothing. Write golden files with the output "
          "of a correct program.");
    if (command.unread)
      add(Code::unread_implementation,
          "The tester opened no file of the implementation, so that its outputs are not those of the program. Let the "
          "tester run the program in $IMPLEMENTATION.");
    if (command.golden_told)
      weaken(
          Code::told_golden,
          "Weak evidence: the coder could read every golden file, because the specification contains it. Write golden "
          "files for inputs that the specification does not name.");
    const std::string& pinned = case_.task.workflow;
    const std::vector<std::string>& listed = case_.policy.workflows;
    if (!pinned.empty() && command.workflow != pinned) {
      add(Code::other_workflow,
          fmt::format("The task was opened for the workflow {}, and this is {}. {}", pinned,
                      command.workflow.empty() ? "an unknown one" : command.workflow, run_pinned));
    } else if (pinned.empty() && std::ranges::find(listed, command.workflow) == listed.end()) {
      weaken(Code::unpinned_workflow,
             fmt::format("Weak evidence: the one who completes the task may have written the workflow. Open a task for "
                         "its specification (`muniment task open --workflow SPEC.toml`), or list {} in `workflows` of "
                         "the policy.",
                         command.workflow.empty() ? "its digest (`muniment workflow digest`)" : command.workflow));
    }
  }

  // Only the comparison of a blind workflow shows how its coder was isolated.
  void check_isolation() {
    const std::string& demanded = case_.policy.isolation;
    if (demanded.empty() || (is_workflow_part() && has_comparison())) return;
    const std::string reached = exhibit_.is_comparison() ? exhibit_.piece->command->coder_isolation : "none";
    if (isolation_rank(reached) >= isolation_rank(demanded)) return;
    add(Code::isolation, fmt::format("The policy demands a blind workflow with isolation {}, and this evidence has {}. "
                                     "Run `muniment workflow run SPEC.toml` for the task.",
                                     demanded, reached));
  }

  void check_program(const Command& command, const CommandKind& kind) {
    const bool tests = is_test_evidence(exhibit_);
    const bool asked = tests || asks_for_tests(case_);
    const bool mentions =
        asked && kind.mentions_runner && kind.program != Program::runner && kind.program != Program::unknown;
    if (kind.program == Program::printer || mentions ||
        (tests && kind.program != Program::runner && kind.program != Program::unknown)) {
      add(Code::not_run,
          fmt::format(
              "The command only mentions or shows a result: `{}` does not run a check. Record the command that does.",
              preview(shell_word(kind.name), 100)));
      return;
    }
    if (kind.program == Program::runner && !kind.direct && (tests || needs_test_run(case_))) {
      weaken(
          Code::indirect_run,
          fmt::format("Weak evidence: `{}` ran in a script with a pipe, a redirection or a second command, which can "
                      "change its output and its exit status. Run the test runner directly, without a pipe or a "
                      "second command.",
                      preview(shell_word(kind.name), 100)));
    }
    if (!command.own_program.empty())
      weaken(Code::own_program,
             fmt::format("Weak evidence: {}. {}", preview(command.own_program, 400),
                         asked ? "Run the installed test runner, in an environment that does not change it."
                               : "Run a program that is installed, or that was committed when the task was opened."));
    if (asked) check_arguments(command, kind);
    const bool refused = !command.report && check_end(command, kind, asked);
    if (!tests) return;
    if (kind.program == Program::unknown) {
      const bool shown = exhibit_.has_whole_report();
      const Summary& summary = exhibit_.summary;
      if (kind.mentions_runner && !exhibit_.report && !summary.passed && !summary.ran && summary.test_lines == 0) {
        add(Code::not_run,
            fmt::format("`{}` calls a test runner without running a test. Record the command that runs the tests.",
                        preview(shell_word(kind.name), 100)));
        return;
      }
      add(Code::unknown_program,
          fmt::format("`{}` is not known to run tests{}. If it runs tests, add it to `runners` in the policy.",
                      preview(shell_word(kind.name), 100), shown ? "" : ", and its output contains no report"));
    }
    if (!command.report && !refused && kind.program == Program::runner) {
      add(Code::no_report, "The output contains no counts of tests in a known format. " + counts_advice(kind.runner));
    }
    if (kind.masked && !exhibit_.has_whole_report()) {
      add(Code::exit_masked,
          "The exit status is not the tests' own (`|| true`, a pipe, a later command). Run the tests as the last command.");
    }
  }

  // A runner that always ends with counts did not end if there are none: the program under test can exit with 0.
  // Returns whether the evidence is refused for that.
  bool check_end(const Command& command, const CommandKind& kind, bool asked) {
    const Runner* const row = kind.runner;
    if (!asked || kind.masked || command.exit_code != 0 || row == nullptr || !row->ends_with_counts) return false;
    add(Code::not_ended,
        fmt::format("The run did not end: `{0}` prints counts of tests at its end, and its output has none. A program "
                    "that exits before its tests end causes this. Correct it, or make the runner show its counts: {1}",
                    preview(shell_word(kind.name), 100), counts_advice(row)));
    return true;
  }

  // A line of a package, "ok  x  0.006s", shows no test.
  void check_packages(const Report& report) {
    if (report.packages == 0 || !exhibit_.recorded()) return;
    const bool lists = std::ranges::any_of(exhibit_.command->arguments, [](const std::string& word) {
      return word == "-v" || word == "-test.v" || word == "-v=true" || word == "-test.v=true";
    });
    if (lists && !report.listed && report.counts.total == report.packages) return add(Code::zero_tests, no_tests_text);
    weaken(Code::unlisted,
           fmt::format("Weak evidence: {} of Go passed without a listed test ({}), which does not show that its tests "
                       "ran. {}",
                       report.packages == 1 ? "a package" : fmt::format("{} packages", report.packages),
                       "a line such as \"ok  x  0.006s\"", counts_advice(runner_of("go"))));
  }

  // The command line runs all tests of the task's tree only if each of its words is understood.
  void check_arguments(const Command& command, const CommandKind& kind) {
    if (command.argv_cut)
      return weaken(
          Code::selection,
          "Weak evidence: the command line is too long to be recorded as a whole, so that it may select a part of the "
          "tests. Run all of them with a shorter command line.");
    if (kind.program != Program::runner) return;
    if (!kind.read.unknown.empty())
      weaken(Code::unknown_argument,
             fmt::format("Weak evidence: it is not known what `{}` changes in this command line. Run `{}` without it, "
                         "or list the command in `runners` of the policy.",
                         preview(kind.read.unknown, 200), preview(shell_word(kind.name), 100)));
    check_selection(kind.read.selection, "");
    if (command.left_out.empty()) return;
    const std::string part = kind.read.operands.empty() ? command.cwd : kind.read.operands.front();
    check_selection({part, part}, fmt::format(" It leaves out {}.", preview(command.left_out, 200)));
  }

  // A task may name a part of the tests in its text: its subject, or the argument itself.
  void check_selection(const Selection& selection, const std::string& left_out) {
    if (selection.argument.empty() || case_.task.content.find(selection.argument) != std::string::npos) return;
    Profile named;
    cover(named, selection.names, case_.terms);
    if (named.covered_specific > 0) return;
    weaken(Code::selection,
           fmt::format("Weak evidence: the command line ran only a part of the tests (`{}`).{} Run all of "
                       "them, or name the part in the text of a task.",
                       preview(selection.argument, 200), left_out));
  }

  void check_tree(const Command& command) {
    const std::string& wanted = case_.task.tree_digest;
    if (!wanted.empty() && !command.tree_after.empty() && !same_tree(command.tree_after, wanted)) {
      add(Code::tree_changed,
          "The working tree changed after the command ran: the evidence is stale. Run it again on the current tree.");
    } else if (!command.tree_before.empty() && !command.tree_after.empty() &&
               !same_tree(command.tree_before, command.tree_after)) {
      add(Code::tree_changed_in_run, "The command changed the working tree while it ran.");
    }
    // A comparison shows files of its own, and an attested command ran on another machine.
    const std::string& opened = case_.task.tree_opened;
    if (!opened.empty() && !exhibit_.is_comparison() && exhibit_.piece->attested_by.empty())
      demand_tree(command, opened);
  }

  // A task that was opened in a tree needs a command and a claim in that tree; a missing fact is not agreement.
  void demand_tree(const Command& command, std::string_view opened) {
    const std::string& claimed = case_.task.tree_digest;
    if (!case_.task.tree_observed) {
      weaken(Code::tree_missing,
             fmt::format("Weak evidence: the task was opened in a working tree, and the daemon {} of "
                         "this claim. Complete the task from that tree (parameter folder).",
                         claimed.empty() ? "knows no tree" : "did not compute the digest"));
    } else if (command.tree_before.empty() || command.tree_after.empty()) {
      weaken(
          Code::tree_missing,
          fmt::format("Weak evidence: the task was opened in a working tree of git, and the command ran in none ({}). "
                      "Run it in that tree.",
                      preview(command.cwd, 200)));
    } else if (const std::string_view root = root_of_tree(opened);
               !root.empty() && (root_of_tree(claimed) != root || root_of_tree(command.tree_before) != root ||
                                 root_of_tree(command.tree_after) != root)) {
      weaken(Code::other_tree,
             fmt::format("Weak evidence: the {} belongs to another working tree than the one in which the task was "
                         "opened. Run the command ({}) and complete the task in that tree.",
                         root_of_tree(claimed) != root ? "claim" : "command", preview(command.cwd, 200)));
    } else if (command.base_commit != commit_of_tree(opened) || !command.base_opened_at ||
               *command.base_opened_at > case_.task.opened_at.value_or(Time{})) {
      weaken(Code::other_base,
             "Weak evidence: the command was recorded for no task or a later one, so that changes since this task was "
             "opened are not known. Record it for this task (`muniment exec --task`).");
    }
  }

  void check_earlier(const Counts& before, const Counts& now, std::string_view reason) {
    const bool explained = is_reason(reason);
    const auto put = [&](Code code, const std::string& text) {
      if (explained) {
        findings_.note(code, id_, "Noted: " + text);
      } else {
        findings_.add(code, id_, text + ask_reason(reason));
      }
    };
    if (now.total < before.total) {
      put(Code::fewer_tests,
          fmt::format("Fewer tests than in the last accepted run: {} now, {} before.", now.total, before.total));
    } else if (now.skipped > before.skipped && now.passed < before.passed) {
      put(Code::more_skipped, fmt::format("Tests that passed before are now skipped: {} skipped now, {} before.",
                                          now.skipped, before.skipped));
    }
  }

  void check_report(const Report& report) {
    const Counts& counts = report.counts;
    const bool cut = !report.complete && !report.unreadable;
    if (cut) add(Code::truncated, "The report is truncated: its end is missing. Record the whole output.");
    if (report.unreadable) {
      add(Code::unreadable,
          "The report cannot be read: " + preview(report.problem, 300) + ". Record the unmodified report of the tool.");
    } else if (cut && report.problem.find("truncated") != std::string::npos) {
      // Not a contradiction: the problem is the missing end.
    } else if (!report.problem.empty()) {
      add(Code::counts_disagree, "The report contradicts itself: " + preview(report.problem, 300) +
                                     " Record the output as the tool wrote it.");
    } else if (counts.passed < 0 || counts.failed < 0 || counts.skipped < 0 ||
               counts.passed + counts.failed + counts.skipped > counts.total) {
      add(Code::counts_disagree, fmt::format("The counts do not add up: {} passed, {} failed, {} skipped of {}.",
                                             counts.passed, counts.failed, counts.skipped, counts.total));
    } else if (report.listed && report.complete && report.summary &&
               (report.summary->failed > counts.failed || report.summary->passed > counts.passed + counts.skipped)) {
      add(Code::counts_disagree,
          fmt::format("The summary states {} passed and {} failed, the report lists {} and {}.", report.summary->passed,
                      report.summary->failed, counts.passed, counts.failed));
    }
    if (!report.note.empty())
      findings_.note(Code::counts_disagree, id_, "Noted: " + preview(report.note, 300) + ". The listed tests count.");
    if (report.flaky > 0)
      add(Code::flaky_tests,
          fmt::format("Noted: {} flaky: failed at first and passed at a later attempt.", report.flaky));
    if (report.analysis) {
      if (counts.failed > 0)
        add(Code::tests_failed,
            "The analysis reports " + reports::findings_text(report) + ". Correct the errors and run it again.");
      return;
    }
    if (!report.complete && counts.total == 0) return;
    judge_counts(counts);
    check_packages(report);
    const auto status = exhibit_.recorded() ? exhibit_.piece->command->exit_code : exhibit_.summary.exit_status;
    if (status && *status == 0 && counts.failed > 0) {
      add(Code::exit_contradicts,
          "The exit status is 0, but the report has failures. Run the tests without a command that hides their status.");
    }
    if (!exhibit_.recorded() && status && *status != 0) command_failed(*status);
  }

  void judge_counts(const Counts& counts) {
    if (counts.failed > 0 && exhibit_.is_comparison()) {
      add(Code::tests_failed,
          fmt::format("{} of {} outputs differ from their golden files: {}. Correct the program and run the workflow "
                      "again.",
                      counts.failed, counts.total, preview(joined(exhibit_.report->failures, ", "), 300)));
    } else if (counts.failed > 0) {
      add(Code::tests_failed,
          fmt::format("{} of {} tests failed. Correct the fault and run them again.", counts.failed, counts.total));
    } else if (counts.total == 0) {
      add(Code::zero_tests, no_tests_text);
    } else if (counts.passed == 0) {
      add(Code::all_skipped,
          fmt::format("All {} tests were skipped: none ran. Run them in an environment in which they can run.",
                      counts.total));
    } else if (counts.skipped > counts.passed * skipped_per_run_max) {
      add(Code::mostly_skipped,
          fmt::format(
              "{} tests were skipped and {} ran: insufficient detail. Run them in an environment in which they can run.",
              counts.skipped, counts.passed));
    }
  }

  void command_failed(std::int64_t status) {
    add(Code::command_failed,
        fmt::format("The text states exit status {}. Correct the fault and run the command again.", status));
  }

  // Checks an output in an unknown format by its summary lines.
  void check_summary() {
    const Summary& summary = exhibit_.summary;
    const std::int64_t passed = summary.passed.value_or(0), skipped = summary.skipped.value_or(0);
    const std::int64_t failed = summary.failed.value_or(0);
    if (failed > 0 || summary.says_failed) {
      add(Code::tests_failed, "The text reports failures. Correct the fault and run the check again.");
    } else if (summary.no_tests || (summary.ran == 0 && passed == 0) ||
               (summary.passed == 0 && skipped == 0 && summary.ran.value_or(0) == 0)) {
      add(Code::zero_tests, no_tests_text);
    } else if (skipped > 0 && passed == 0 && (summary.passed || !summary.ran || *summary.ran <= skipped)) {
      add(Code::all_skipped, "All tests were skipped: none ran. Run them in an environment in which they can run.");
    } else if (skipped > std::max(passed, summary.ran.value_or(0) - skipped) * skipped_per_run_max) {
      add(Code::mostly_skipped,
          fmt::format("{} tests were skipped: insufficient detail. Run them in an environment in which they can run.",
                      skipped));
    } else if (summary.ran && summary.passed && *summary.ran < passed) {
      add(Code::counts_disagree, fmt::format("The counts do not add up: {} passed of {}.", passed, *summary.ran));
    } else if (summary.disagrees) {
      add(Code::counts_disagree, "The counts do not add up to the total of their line.");
    }
    if (exhibit_.recorded()) {
      if (summary.exit_status.value_or(0) != 0 && exhibit_.piece->command->exit_code == 0) {
        add(Code::exit_contradicts, fmt::format("The output states exit status {}, but the command's own is 0. Run the "
                                                "check as the last command.",
                                                *summary.exit_status));
      }
      return;
    }
    if (summary.exit_status && *summary.exit_status != 0) command_failed(*summary.exit_status);
    const bool ended = summary.passed || summary.ran || summary.exit_status;
    if ((summary.test_lines >= test_lines_of_run || (summary.test_lines > 0 && summary.open_ended)) && !ended) {
      add(Code::truncated, "The output is truncated: it lists tests, but has no summary. Record the whole output.");
    } else if (summary.cut) {
      add(Code::truncated, "The output states that it is truncated. Record the whole output.");
    }
  }

  // Checks a text that the client wrote.
  void check_words() {
    const Profile& profile = exhibit_.profile;
    const Summary& summary = exhibit_.summary;
    if (summary.shell_lines > 0 && summary.prints_only && is_test_evidence(exhibit_)) {
      add(Code::not_run,
          "The commands in the text only print or show a result. Record the command that runs the check.");
    }
    if (summary.masks_status && !exhibit_.has_whole_report()) {
      add(Code::exit_masked,
          "The command in the text hides its exit status (`|| true`). Run the check as the last command.");
    }
    const bool asked = (case_.terms.classes & weakening) != 0 || case_.terms.has("remove") ||
                       case_.terms.has("delete") || case_.terms.has("skip") || case_.terms.has("disable") ||
                       case_.terms.has("lower");
    const bool weakened = (profile.weakened && !exhibit_.has_whole_report()) || weakens_tests(exhibit_.text);
    if (weakened && !asked) {
      add(Code::tests_weakened,
          "The text states that tests or checks were removed, skipped or relaxed. Restore them, or give the reason in a "
          "task of its own.");
    }
  }

  // Returns whether the last lines of a runner without a known report count passed tests and no failed ones.
  bool summary_shows_run() const {
    const Summary& summary = exhibit_.summary;
    return summary.passed.value_or(0) > 0 && summary.failed.value_or(0) == 0 && !summary.says_failed && !summary.cut;
  }

  void decide_strength() {
    if (!exhibit_.recorded() || is_workflow_part()) return;
    const Command& command = *exhibit_.piece->command;
    const bool ended_well = command.exit_code == 0 && !command.interrupted && !command.output_lost;
    if (!ended_well || exhibit_.weakness || findings_.blocked(id_)) return;
    if (exhibit_.is_comparison()) {
      exhibit_.strong = true;  // the daemon compared the bytes
      return;
    }
    if (attests_without_command()) {
      exhibit_.strong = exhibit_.has_whole_report();
      return;
    }
    if (is_test_evidence(exhibit_) || needs_test_run(case_)) {
      exhibit_.strong =
          exhibit_.command->program == Program::runner &&
          (exhibit_.has_whole_report() ? !exhibit_.report->analysis : !exhibit_.report && summary_shows_run());
    } else {
      // The output of a program proves a deployment, a diff or a request.
      exhibit_.strong = exhibit_.command->program != Program::printer && exhibit_.command->program != Program::lister;
    }
    if (exhibit_.command->masked) exhibit_.strong = false;
  }

  const Case& case_;
  Exhibit& exhibit_;
  Findings& findings_;
  const std::string& id_;
};

}  // namespace

bool is_test_evidence(const Exhibit& exhibit) { return exhibit.piece->type == "test_output"; }

bool asks_for_tests(const Case& c) { return c.terms.speaks_of_tests; }

bool needs_test_run(const Case& c) {
  return asks_for_tests(c) && (c.policy.required_type.empty() || c.policy.required_type == "test_output");
}

void check_structure(Case& c, Findings& findings) {
  for (Exhibit& exhibit : c.exhibits) {
    if (exhibit.piece->erased || !exhibit.piece->damage.empty()) continue;
    Structure(c, exhibit, findings).check();
  }
  if (!c.task.workflow.empty() && !c.exhibits.empty() && std::ranges::none_of(c.exhibits, &Exhibit::is_comparison))
    findings.add(Code::other_workflow, "",
                 fmt::format("The task was opened for the workflow {}, and no evidence is its comparison. Run it with "
                             "`muniment workflow run SPEC.toml`, and name the evidence of type \"validation\".",
                             c.task.workflow));
}

}  // namespace muniment::evidence::completion
