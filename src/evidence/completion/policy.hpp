// The policies of completion: the default one, the strict one, and what a TOML file says for each type of task.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace muniment::evidence::completion {

struct Policy {
  bool strict = false;        // only evidence of a recorded command is strong, and nothing else completes a task
  std::string required_type;  // of the evidence; empty: any
  std::chrono::seconds fresh_for{24 * 60 * 60};
  std::chrono::seconds at_least{0};     // a task done faster is refused
  bool other_actor = false;             // the evidence must be recorded by another actor than the task's
  bool same_run = false;                // and in the task's run
  std::vector<std::string> allowed;     // codes of findings that do not block
  std::vector<std::string> runners;     // further programs that run tests, as `scripts/test`
  std::vector<std::string> validators;  // names of custom validators, in order

  // True if a rule looks at the evidence of a task. A task under such a policy requires evidence, whatever its request
  // says: without a piece to look at, the rule would hold for nothing.
  bool demands_evidence() const;
};

// A custom validator: a program of the configuration that reads JSON and answers with JSON.
struct Validator {
  std::string name;
  std::vector<std::string> argv;  // argv[0] is an absolute path
  std::chrono::milliseconds limit{5'000};
};

class Policies {
 public:
  Policies();  // the default policy for every type of task

  // From the text of a TOML file:
  //   policy = "default" | "strict"
  //   [task.default]  [task.deploy]  required_type, fresh_for_seconds, at_least_seconds, other_actor, same_run, strict,
  //                                  allow, runners, validators
  //   [validator.NAME]  command = ["/abs/path", …], limit_ms
  // Errors: invalid_argument with line and key, for unknown keys too.
  static Result<Policies> parse(std::string_view toml);

  // The policies of the file that the setting completion_policy names; the default one for an empty path. Errors: as
  // `parse` and of reading the file, with the setting in front.
  static Result<Policies> read(const std::string& path);

  // `strict`: the caller asks for the strict rules; a request can only tighten.
  Policy of_type(std::string_view task_type, bool strict = false) const;
  const Validator* validator(std::string_view name) const;

 private:
  Status read_tasks(const void* tasks);

  std::map<std::string, Policy, std::less<>> by_type_;
  std::map<std::string, Validator, std::less<>> validators_;
};

}  // namespace muniment::evidence::completion
