// Implements the command log, which appends a turn of a conversation to a capsule, or to a run of the daemon.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/ids.hpp"
#include "cli/commands.hpp"
#include "client/arguments.hpp"

namespace muniment::cli {
namespace {

struct LogOptions {
  std::string role;
  std::string text;
  std::string session;
  std::string run;
};

void declare_log(CLI::App& command, LogOptions& options) {
  command.add_option("ROLE", options.role, "Who spoke: user, assistant, system or tool")
      ->required()
      ->check(CLI::IsMember({"user", "assistant", "system", "tool"}));
  command.add_option("TEXT", options.text, "What was said; - reads stdin")->required();
  command.add_option("--session", options.session, "Name of the conversation, in a capsule");
  command.add_option("--run", options.run, "Run that receives the turn, without --capsule (default: MUNIMENT_RUN)");
}

Status append_turn(Session& session, const LogOptions& options) {
  ASSIGN_OR_RETURN(const std::string text, question_text(options.text));
  json::Writer params;
  params.begin_object();
  std::string_view method = "log.append";
  if (session.options.capsule.empty()) {
    method = "event.append";
    ASSIGN_OR_RETURN(const std::string run_id, session.run_id(options.run));
    params.member("run_id", run_id).member("type", "message.added").key("body").begin_object();
    params.member("message_id", make_uuid_v7(Clock().now()).text()).member("role", options.role);
    params.key("content").begin_array().begin_object().member("type", "text").member("content", text);
    params.end_object().end_array().end_object();
  } else {
    params.member("role", options.role).member("content", text);
    if (!options.session.empty()) params.member("session", options.session);
  }
  ASSIGN_OR_RETURN(const Message answer, session.call(method, params.end_object().text()));
  if (session.printed_json(answer)) return success();
  session.out().line(fmt::format("logged  seq {}", answer.result()["seq"].as_int().value_or(-1)));
  return success();
}

}  // namespace

void add_log_command(CLI::App& app, Session& session) {
  add_command<LogOptions>(session, app, "log", "Log a turn of a conversation", declare_log, append_turn);
}

}  // namespace muniment::cli
