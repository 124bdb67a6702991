#include "adapters/import/formats/formats.hpp"

#include <fmt/format.h>

#include "adapters/import/formats/chat.hpp"
#include "base/text.hpp"

namespace muniment::cli {
namespace {

constexpr std::string_view tau_bench_agent = "tau-bench";
constexpr std::string_view display_roles[] = {"user", "assistant", "tool", "system"};

// Members of a record and of its messages.
constexpr std::string_view tau_bench_members[] = {"annotations", "audio",  "function_call", "info", "name",
                                                  "refusal",     "reward", "task_id",       "trial"};

void keep_record(std::vector<ImportedEvent>& events, const json::Value& record, std::string_view dialogue) {
  SourceRest rest;
  if (rest.keep(record, {dialogue}).empty()) return;
  json::Writer body;
  body.begin_object().member("part", "record");
  rest.write(body, tau_bench_members);
  events.push_back({"record", "x.tau_bench.source", {}, std::move(body.end_object()).text()});
}

ToolOutcome judge_tau_bench(std::string_view text) {
  return {text.starts_with("Error") ? "error" : "ok", std::nullopt};  // the environment's prefix for a refused call
}

Result<ImportedRun> translate_result(const json::Value& record) {
  if (record["traj"].size() > 0 && !has_object(record["traj"]))
    return Error(Errc::invalid_argument, "no item of \"traj\" is an object");
  ImportedRun run{.agent = std::string(tau_bench_agent)};
  run.goal = record["info"]["task"]["instruction"].string_or("");
  run.external_id = fmt::format("task {} trial {}", label_word(record["task_id"]), label_word(record["trial"]));
  for (const char* name : {"task_id", "trial", "reward"}) label_run(run, name, record[name]);
  ChatTrace chat(run.events, judge_tau_bench, tau_bench_members);
  for (const json::Value message : record["traj"]) chat.add(message);
  chat.end();
  keep_record(run.events, record, "traj");
  const auto reward = record["reward"].as_double();
  run.end.outcome = !reward ? unknown_end : *reward >= 1.0 ? "success" : "failure";
  run.end.summary = !reward ? "the record has no reward" : fmt::format("reward {}", record["reward"].source());
  return run;
}

// Returns the role at the beginning of a line, or an empty string.
std::string_view role_of(std::string_view line) {
  for (const std::string_view role : display_roles) {
    if (line.starts_with(role) && line.substr(role.size()).starts_with(": ")) return role;
  }
  return {};
}

// A message extends to the line before the next line that begins with a role.
Result<ImportedRun> translate_display(const json::Value& record) {
  const std::string text = record["messages_display"].string_or("");
  ImportedRun run{.agent = std::string(tau_bench_agent), .placed = {"messages_display"}};
  ChatTrace chat(run.events, judge_tau_bench, tau_bench_members);
  std::string_view rest = text;
  std::string_view role = role_of(rest);
  if (role.empty())
    return Error(Errc::invalid_argument, "\"messages_display\" does not begin with a role, as in \"user: …\"");
  while (!rest.empty()) {
    std::size_t end = 0;
    std::string_view next;
    do {
      end = rest.find('\n', end);
      if (end == std::string_view::npos) break;
      next = role_of(rest.substr(++end));
    } while (next.empty());
    const std::string_view line = end == std::string_view::npos ? rest : rest.substr(0, end - 1);
    const std::string_view said = line.substr(role.size() + 2);
    if (run.goal.empty() && role == "user") run.goal = said;
    chat.add_text(role, said);
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end);
    role = next;
  }
  chat.end();
  keep_record(run.events, record, "messages_display");
  run.end = {std::string(unknown_end), "an example without an outcome"};
  return run;
}

}  // namespace

bool is_tau_bench(const json::Value& record) {
  return record["traj"].is(json::Kind::array) || record["messages_display"].is(json::Kind::string);
}

Result<ImportedRun> translate_tau_bench(const json::Value& record) {
  if (record["traj"].is(json::Kind::array)) return translate_result(record);
  if (record["messages_display"].is(json::Kind::string)) return translate_display(record);
  return Error(Errc::invalid_argument,
               "this is not a record of tau-bench: it has neither a list \"traj\" nor a text \"messages_display\"");
}

}  // namespace muniment::cli
