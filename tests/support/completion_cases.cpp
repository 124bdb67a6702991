// Builds tasks and evidence from JSON lines and logs, and counts the answers of `judge`.
#include "support/completion_cases.hpp"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "base/crypto/base64.hpp"
#include "base/json/json.hpp"
#include "evidence/reports/report.hpp"

namespace muniment::test {
namespace {

namespace completion = evidence::completion;
namespace reports = evidence::reports;

constexpr std::string_view default_actor = "agent-7";
constexpr std::string_view daemon_name = "munimentd";
constexpr std::size_t output_tail_max = 16 * 1024;  // bytes of a recorded command's output that its evidence contains

Time before_now(std::int64_t seconds) { return Time{completion_now.micros - seconds * 1'000'000}; }

std::optional<Time> age(const json::Value& value) {
  const auto seconds = value.as_int();
  return seconds ? std::optional(before_now(*seconds)) : std::nullopt;
}

bool flag(const json::Value& value, bool fallback) { return value.as_bool().value_or(fallback); }

reports::Counts counts_of(const json::Value& value) {
  return {value["total"].as_int().value_or(0), value["passed"].as_int().value_or(0),
          value["failed"].as_int().value_or(0), value["skipped"].as_int().value_or(0)};
}

completion::Task task_of(const json::Value& value) {
  completion::Task task;
  task.task_id = "task-1";
  task.content = value["content"].string_or("");
  task.type = value["type"].string_or("");
  task.required_type = value["required_type"].string_or("");
  task.requires_evidence = flag(value["requires_evidence"], true);
  task.actor = value["actor"].string_or(default_actor);
  task.opened_at = age(value["opened_ago_s"]);
  task.tree_digest = value["tree_digest"].string_or("");
  task.files_changed = flag(value["files_changed"], false);
  return task;
}

completion::Command command_of(const json::Value& value, Time recorded_at) {
  completion::Command command;
  command.observed = true;
  for (const json::Value word : value["argv"]) command.argv.push_back(word.string_or(""));
  command.cwd = value["cwd"].string_or("/srv/work");
  command.exit_code = value["exit_code"].as_int();
  command.signal = value["signal"].string_or("");
  command.interrupted = flag(value["interrupted"], false);
  command.output_lost = flag(value["output_lost"], false);
  command.ended_at = age(value["ended_ago_s"]).value_or(recorded_at);
  command.started_at = age(value["started_ago_s"]).value_or(Time{command.ended_at.micros - 1'000'000});
  command.tree_before = value["tree_before"].string_or("");
  command.tree_after = value["tree_after"].string_or("");
  const json::Value report = value["report"].present() ? value["report"] : value["output"];
  command.report = reports::read_report(report.string_or(""));
  command.report_modified_at = age(value["report_modified_ago_s"]);
  for (const json::Value path : value["tests_changed"]) command.tests_changed.push_back(path.string_or(""));
  command.tests_changed_reason = value["tests_changed_reason"].string_or("");
  if (value["earlier"].present()) command.earlier = counts_of(value["earlier"]);
  return command;
}

std::string tail_of(std::string text) {
  if (text.size() > output_tail_max) text.erase(0, text.size() - output_tail_max);
  return text;
}

// Fills a piece like the gateway: the text of a command is the end of its output, the text of an object its canonical
// JSON.
void read_content(const json::Value& value, completion::Piece& piece) {
  if (const auto encoded = value["text_base64"].as_string()) {
    piece.text = from_base64(*encoded).value_or("");
    return;
  }
  if (value["command"].present()) {
    piece.command = command_of(value["command"], piece.recorded_at);
    piece.text = tail_of(value["command"]["output"].string_or(""));
  } else if (value["content"].present()) {
    piece.content = json::canonical(value["content"]);
    piece.text = value["content"]["text"].as_string().value_or(piece.content);
    return;
  } else {
    piece.text = value["text"].string_or("");
  }
  piece.content = std::move(json::Writer().begin_object().member("text", piece.text).end_object()).text();
}

completion::Piece piece_of(const json::Value& value, const completion::Task& task, std::size_t number) {
  completion::Piece piece;
  piece.evidence_id = value["id"].string_or("ev-" + std::to_string(number));
  piece.found = flag(value["found"], true);
  if (!piece.found) return piece;
  piece.erased = flag(value["erased"], false);
  piece.damage = value["damage"].string_or("");
  piece.type = value["type"].string_or("");
  piece.actor = value["actor"].string_or(default_actor);
  piece.validator_id = value["validator_id"].string_or("");
  piece.names_other_actor = piece.validator_id != piece.actor &&
                            (piece.validator_id.starts_with("uid:") || piece.validator_id == daemon_name);
  piece.recorded_at = age(value["recorded_ago_s"]).value_or(completion_now);
  piece.stated_at = age(value["stated_ago_s"]);
  piece.imported = flag(value["imported"], false);
  piece.spent_on = value["spent_on"].string_or("");
  piece.copied_from = value["copied_from"].string_or("");
  piece.recorded_before_task = task.opened_at && piece.recorded_at < *task.opened_at;
  read_content(value, piece);
  // The text of evidence that completed another task of the run. Recorded commands are exempt from resemblance.
  if (const auto accepted = value["accepted_text"].as_string(); accepted && !piece.command) {
    const std::string shape = completion::shape_of(piece.text);
    if (!shape.empty() && shape == completion::shape_of(*accepted)) piece.resembles = "ev-accepted";
  }
  return piece;
}

completion::Policy policy_of(const json::Value& value) {
  completion::Policy policy;
  const std::string base = value.as_string().value_or(value["base"].string_or("seed"));
  if (base != "seed" && base != "strict") throw std::runtime_error("unknown policy " + base);
  policy.strict = base == "strict";
  policy.required_type = value["required_type"].string_or("");
  policy.other_actor = flag(value["other_actor"], false);
  if (const auto fresh = value["fresh_for_s"].as_int()) policy.fresh_for = std::chrono::seconds(*fresh);
  if (const auto least = value["at_least_s"].as_int()) policy.at_least = std::chrono::seconds(*least);
  return policy;
}

CompletionCase case_of(const std::string& line) {
  const auto document = json::parse(line);
  if (!document) throw std::runtime_error(document.error().message);
  const json::Value root = document->root();
  CompletionCase one;
  one.name = root["name"].string_or("");
  one.kind = root["class"].string_or("");
  const auto complete = root["complete"].as_bool();
  if (one.name.empty() || one.kind.empty() || !complete) throw std::runtime_error("name, class or complete is missing");
  one.complete = *complete;
  one.task = task_of(root["task"]);
  for (const json::Value piece : root["pieces"]) one.pieces.push_back(piece_of(piece, one.task, one.pieces.size() + 1));
  one.policy = policy_of(root["policy"]);
  return one;
}

std::string read_text(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return std::move(text).str();
}

std::string_view between(std::string_view text, std::string_view from, std::string_view to) {
  const auto begin = text.find(from);
  if (begin == std::string_view::npos) return {};
  const auto rest = text.substr(begin + from.size());
  return rest.substr(0, rest.find(to));
}

// A command of a log: "Command: …", "Std. Output:" and the output, "Return Code: N".
struct LoggedTests {
  std::string instance, patched;  // "django__django-11039", the first file that the patch changes
  std::vector<std::string> argv;
  std::string output;
  int exit_code = 0;
};

// Reads the last command of a log, which runs the tests.
std::optional<LoggedTests> logged_tests(std::string_view log) {
  const auto command = log.rfind("] Command: ");
  if (command == std::string_view::npos || log.find("Test Script:") > command) return std::nullopt;
  const std::string_view last = log.substr(command);
  LoggedTests tests;
  tests.instance = between(log, "- Instance ID: ", "\n");
  tests.patched = between(log, "Checking patch ", "...");
  std::istringstream words{std::string(between(last, "Command: ", "\n"))};
  for (std::string word; words >> word;) tests.argv.push_back(word);
  const auto output = last.find("Std. Output:\n"), end = last.rfind("Return Code: ");
  if (output == std::string_view::npos || end == std::string_view::npos || end < output) return std::nullopt;
  const std::string_view text = last.substr(output + 13, end - output - 13);
  tests.output = text.substr(0, text.rfind('\n'));  // the last line begins with the names of testbed and instance
  tests.exit_code = std::stoi(std::string(between(last.substr(end), "Return Code: ", " ")));
  return tests;
}

CompletionCase swe_case(const LoggedTests& tests, bool passed, bool recorded) {
  CompletionCase one;
  one.kind = passed ? "honest_swe_logs" : "failing_swe_logs";
  one.name = one.kind + '/' + tests.instance + (recorded ? "_recorded" : "_text");
  one.half = "logs";
  one.complete = passed;
  one.task.task_id = "task-1";
  one.task.content = "Fix " + tests.instance + " in " + tests.patched;
  one.task.actor = default_actor;
  one.task.opened_at = before_now(3600);
  one.policy.strict = recorded;
  one.policy.runners = {"bin/test", "./tests/runtests.py"};  // as in a policy for sympy and Django
  completion::Piece piece;
  piece.evidence_id = "ev-1";
  piece.found = true;
  piece.type = "test_output";
  piece.actor = default_actor;
  piece.recorded_at = before_now(60);
  piece.text = tests.output;
  if (recorded) {
    completion::Command command;
    command.observed = true;
    command.argv = tests.argv;
    command.exit_code = tests.exit_code;
    command.started_at = before_now(120);
    command.ended_at = piece.recorded_at;
    command.report = reports::read_report(tests.output);
    piece.command = std::move(command);
    piece.text = tail_of(tests.output);
  }
  one.pieces.push_back(std::move(piece));
  return one;
}

template <typename Use>
void each_file(const std::filesystem::path& folder, std::string_view extension, const Use& use) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == extension) files.push_back(entry.path());
  }
  std::ranges::sort(files);
  std::ranges::for_each(files, use);
}

}  // namespace

void CompletionScore::add(const CompletionCase& one, bool blocked) {
  (one.complete ? honest : cheats) += 1;
  (one.complete ? honest_blocked : cheats_blocked) += blocked ? 1 : 0;
}

completion::Judgement judge_case(const CompletionCase& one) {
  return completion::judge(one.task, one.pieces, one.policy, completion_now);
}

std::vector<CompletionCase> read_completion_cases(const std::filesystem::path& folder) {
  std::vector<CompletionCase> cases;
  for (const std::string half : {"tuning", "held_out"}) {
    each_file(folder / half, ".jsonl", [&](const std::filesystem::path& file) {
      std::ifstream in(file);
      int number = 0;
      for (std::string line; std::getline(in, line);) {
        ++number;
        try {
          cases.push_back(case_of(line));
        } catch (const std::exception& error) {
          throw std::runtime_error(file.string() + ':' + std::to_string(number) + ": " + error.what());
        }
        cases.back().half = half;
      }
    });
  }
  return cases;
}

std::vector<CompletionCase> read_swe_logs(const std::filesystem::path& folder) {
  std::vector<CompletionCase> cases;
  if (!std::filesystem::is_directory(folder)) return cases;
  each_file(folder, ".log", [&](const std::filesystem::path& file) {
    const std::string log = read_text(file);
    const bool passed = log.find(">>>>> All Tests Passed") != std::string::npos;
    const auto tests = logged_tests(log);
    if (!tests || (!passed && log.find(">>>>> Some Tests Failed") == std::string::npos)) return;
    for (const bool recorded : {true, false}) cases.push_back(swe_case(*tests, passed, recorded));
  });
  return cases;
}

}  // namespace muniment::test
