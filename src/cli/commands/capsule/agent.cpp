// Implements the command agent: a loop of a hook and the tools of a capsule.
#include "capsule/agent.hpp"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/ids.hpp"
#include "base/text.hpp"
#include "cli/commands.hpp"
#include "client/arguments.hpp"

namespace muniment::cli {
namespace {

constexpr std::size_t steps_max = 1'000, bytes_max = 64 << 20;
constexpr std::int64_t seconds_max = 24 * 3600;

struct AgentCommand {
  std::vector<std::string> words;
  std::string session;
  std::size_t steps = capsule::AgentOptions().steps_max;
  std::size_t bytes = capsule::AgentOptions().bytes_max;
  std::int64_t seconds = capsule::AgentOptions().time_max.count();
};

void declare_agent(CLI::App& command, AgentCommand& options) {
  command.add_option("PROMPT", options.words, "What the user says; - reads stdin (default: continue the session)");
  command.add_option("--session", options.session, "Name of the conversation (default: a new one)");
  command.add_option("--steps", options.steps, "Largest number of runs of the hook")
      ->check(CLI::Range(std::size_t{1}, steps_max))
      ->capture_default_str();
  command.add_option("--seconds", options.seconds, "Time limit")
      ->check(CLI::Range(std::int64_t{1}, seconds_max))
      ->capture_default_str();
  command.add_option("--bytes", options.bytes, "Largest size of what the hook reads")
      ->check(CLI::Range(std::size_t{1}, bytes_max))
      ->capture_default_str();
  command.footer(
      "The hook reads {messages, tools, session} and writes {message {role, content, tool_calls}} (docs/capsule.md).\n"
      "COMMAND is the hook (default: that of the capsule's config).");
}

// Takes the hook and the context from the config, if this user trusts it.
Status take_config(capsule::Server& server, capsule::AgentOptions& options) {
  const auto nothing = json::parse("{}");
  const auto found = server.call("config.get", nothing->root());
  if (!found && found.error().code != Errc::not_found) return found.error();
  const auto answer = json::parse(found ? std::string_view(*found) : std::string_view("{}"));
  if (!answer || !found) return success();
  ASSIGN_OR_RETURN(const capsule::CapsuleConfig config, capsule::parse_config(answer->root()["config"].source()));
  if (!answer->root()["trusted"].as_bool().value_or(false)) {
    if (!options.hook.empty() || config.agent.empty()) return success();
    return Error(Errc::denied,
                 "the config of the capsule names a hook, but you do not trust it. Name a hook after --, or: "
                 "muniment capsule trust FILE");
  }
  if (options.hook.empty()) options.hook = config.agent;
  options.context = config.text_of_context();
  return success();
}

Status run(Session& session, const AgentCommand& command) {
  if (session.options.capsule.empty())
    return Error(Errc::invalid_argument, "--capsule is missing. Write: muniment --capsule FILE agent PROMPT");
  capsule::AgentOptions options;
  options.hook = session.command;
  options.session = command.session.empty() ? make_uuid_v7(Clock().now()).text() : command.session;
  options.steps_max = command.steps;
  options.bytes_max = command.bytes;
  options.time_max = std::chrono::seconds(command.seconds);
  if (command.words.empty() && command.session.empty())
    return Error(Errc::invalid_argument, "PROMPT is required, or --session to continue a conversation");
  if (!command.words.empty()) {
    ASSIGN_OR_RETURN(options.prompt, question_text(joined(command.words, " ")));
  }
  options.on_tool = [&](std::string_view tool, bool failed) {
    fmt::print(stderr, "{}{}\n", session.out().one_line(std::string(tool)), failed ? "  failed" : "");
  };
  capsule::Server server(session.options.capsule);
  RETURN_IF_ERROR(take_config(server, options));
  auto ended = run_agent(server, options);
  const Status indexed = server.finish();
  if (!ended) {
    fmt::print(stderr, "muniment: continue with --session {}\n", session.out().one_line(options.session));
    return std::move(ended).error();
  }
  RETURN_IF_ERROR(indexed);
  if (session.options.json) {
    json::Writer out;
    out.begin_object().member("session", options.session).member("steps", ended->steps).key("message").begin_object();
    out.member("role", "assistant").member("content", ended->content).end_object().end_object();
    session.out().json_line(out.text());
    return success();
  }
  session.out().line(session.out().safe(ended->content));
  fmt::print(stderr, "session {}, {} steps\n", session.out().one_line(options.session), ended->steps);
  return success();
}

}  // namespace

void add_agent_command(CLI::App& app, Session& session) {
  add_command<AgentCommand>(session, app, "agent", "Answer with a hook and the tools of a capsule", declare_agent, run);
}

}  // namespace muniment::cli
