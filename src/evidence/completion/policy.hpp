// The policies of completion: the default policy, the strict policy, and the settings of a TOML file by type of task.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace muniment::evidence::completion {

// Levels of isolation, weakest first: none, partial, full. Returns the position; 0 for any other text.
int isolation_rank(std::string_view level);

// Worth of a text, and of any other piece without a recorded command.
enum class TextRule : std::uint8_t {
  refuse,  // without a recorded command, a task is not completed
  weak,    // it completes a task, unless the policy is strict
  accept,  // it completes a task, also under the strict policy
};

struct Policy {
  bool strict = false;  // only evidence of a recorded command, which is strong, completes a task
  TextRule text = TextRule::weak;
  std::string required_type;  // required type of evidence; empty: any
  std::chrono::seconds fresh_for{24 * 60 * 60};
  std::chrono::seconds at_least{0};     // shortest time from opening to completion
  bool other_actor = false;             // an actor other than the task's must record the evidence
  bool same_run = false;                // the evidence must be in the task's run
  std::string isolation;                // lowest isolation of the coder of a blind workflow; empty: any evidence
  std::vector<std::string> workflows;   // digests of blind workflows whose evidence is strong without a pin of the task
  std::vector<std::string> allowed;     // codes of findings that do not block
  std::vector<std::string> runners;     // additional programs that run tests, such as `scripts/test`
  std::vector<std::string> validators;  // names of custom validators, in order

  // Returns whether a rule examines the evidence of a task. A task under such a policy requires evidence, whatever its
  // request states, because the rule would otherwise have no effect.
  bool demands_evidence() const;
};

// A custom validator: a configured program that reads JSON and replies with JSON.
struct Validator {
  std::string name;
  std::vector<std::string> argv;  // argv[0] is an absolute path
  std::chrono::milliseconds limit{5'000};
};

class Policies {
 public:
  Policies();  // the default policy for every type of task

  // Parses the text of a TOML file:
  //   policy = "default" | "strict"
  //   [task.default]  [task.deploy]  required_type, fresh_for_seconds, at_least_seconds, other_actor, same_run, strict,
  //                                  isolation, workflows, allow, runners, validators, text
  //   [validator.NAME]  command = ["/abs/path", …], limit_ms
  // Errors: invalid_argument with line and key, for unknown keys too.
  static Result<Policies> parse(std::string_view toml);

  // Reads the file that the setting completion_policy names; an empty path gives the default policy. Errors: those of
  // `parse` and of reading the file, prefixed with the setting.
  static Result<Policies> read(const std::string& path);

  // `strict`: the request asks for the strict rules; it can only tighten the policy.
  Policy of_type(std::string_view task_type, bool strict = false) const;
  const Validator* validator(std::string_view name) const;

 private:
  Status read_tasks(const void* tasks);

  std::map<std::string, Policy, std::less<>> by_type_;
  std::map<std::string, Validator, std::less<>> validators_;
};

}  // namespace muniment::evidence::completion
