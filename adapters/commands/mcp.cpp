// Implements the command mcp: the stdio server that a host starts, and the recording proxy in front of an MCP server
// (docs/recording.md). Standard output carries only protocol messages; all other output goes to standard error.
#include <fmt/format.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <cstdio>
#include <filesystem>

#include "adapters/commands.hpp"
#include "adapters/mcp/recording_proxy.hpp"
#include "adapters/mcp/stdio_proxy.hpp"
#include "base/files/file.hpp"
#include "base/ids.hpp"
#include "base/json/json.hpp"
#include "base/limits.hpp"
#include "base/text.hpp"
#include "bridge/scrub.hpp"
#include "client/arguments.hpp"

namespace muniment::cli {
namespace {

constexpr std::size_t server_goal_bytes_max = 1000;
constexpr std::size_t name_bytes_max = 256;

struct McpOptions {
  bool no_run = false;
  std::vector<std::string> labels;
  std::string agent;
  std::vector<std::string> toolsets;
  bool review = false;
  std::vector<std::string> files;
  std::string record;
  bool required = false;
  std::string run;
  bool keep_secrets = false;
};

void declare_mcp(CLI::App& command, McpOptions& options) {
  command.add_flag("--no-run", options.no_run, "Do not record the session's calls in a run");
  command.add_option("--label", options.labels, "Label of the session's run (may be repeated)")->type_name("k=v");
  command.add_option("--agent", options.agent, "Agent of the run (default: the host's name)")->type_name("NAME");
  command.add_flag("--review", options.review, "Recall what the session remembers only after: muniment memory review");
  command.add_option("--toolset", options.toolsets, "Tools to offer (may be repeated; default: the daemon's)")
      ->type_name("NAME");
  command.add_option("--files", options.files, "Folder whose files remember may read (may be repeated; default: none)")
      ->type_name("FOLDER");
  auto* const record =
      command.add_option("--record", options.record, "Run COMMAND as a server and record its calls under NAME");
  record->type_name("NAME");
  command.add_flag("--required", options.required, "Refuse calls that cannot be recorded")->needs(record);
  command.add_option("--run", options.run, "Run to record in (default: MUNIMENT_RUN, otherwise a new run)")
      ->type_name("RUN")
      ->needs(record);
  command.add_flag("--keep-secrets", options.keep_secrets, "Record arguments and results unscrubbed")->needs(record);
  command.footer(
      "A host starts it as an MCP server: claude mcp add muniment -- muniment mcp\n"
      "In front of another server it records every tool call before the host sees the result:\n"
      "  muniment mcp --record files -- npx -y @modelcontextprotocol/server-filesystem .\n"
      "It exits with 0 when the host closes its input; with --record it exits with COMMAND's code.");
}

std::string working_folder() {
  std::error_code failed;
  return preview(std::filesystem::current_path(failed).string(), 4096);
}

// The daemon has another working folder.
Result<std::vector<std::string>> absolute_folders(const std::vector<std::string>& given) {
  if (given.size() > limits::mcp_folders_max) {
    return Error(Errc::invalid_argument, fmt::format("--files: {} folders, limit {}. Name a folder above them",
                                                     given.size(), limits::mcp_folders_max));
  }
  std::vector<std::string> folders;
  for (const std::string& name : given) {
    std::error_code failed;
    const std::filesystem::path folder = std::filesystem::absolute(name, failed).lexically_normal();
    if (auto opened = open_folder(folder.string()); !opened) return std::move(opened).error().within("--files");
    folders.push_back(folder.string());
  }
  return folders;
}

Status serve(Session& session, const McpOptions& options, std::string labels) {
  McpSession about;
  about.record = !options.no_run;
  about.run_id = "mcp-" + make_uuid_v7(Clock().now()).text();
  about.agent = options.agent;
  about.labels = std::move(labels);
  about.folder = working_folder();
  about.toolsets = options.toolsets;
  about.review = options.review;
  ASSIGN_OR_RETURN(about.files, absolute_folders(options.files));
  StdioProxy(session, std::move(about)).run();
  return success();
}

// Looks up a named run, which may start a daemon. Errors: not_found. The first call shows whether the run accepts
// events.
Result<std::string> named_run(Session& session, const McpOptions& options) {
  auto run = session.run_id_if_any(options.run);
  if (run && !run->empty()) {
    const auto found =
        session.call("run.get", json::Writer().begin_object().member("run_id", *run).end_object().text());
    if (!found && found.error().code == Errc::not_found) run = found.error();
  }
  session.disconnect();
  return run;
}

Result<RecorderOptions> recorder_options(Session& session, const McpOptions& options) {
  RecorderOptions out;
  out.rules = {preview(options.record, name_bytes_max), options.keep_secrets};
  ASSIGN_OR_RETURN(out.run_id, named_run(session, options));
  out.agent = preview(options.agent, name_bytes_max);
  std::vector<std::string> labels = options.labels;
  labels.push_back("mcp_server=" + out.rules.server);
  ASSIGN_OR_RETURN(out.labels, labels_json(labels));
  std::vector<std::string> shown = session.command;
  if (!options.keep_secrets) bridge::scrub_arguments(shown);
  out.goal = preview("MCP server: " + joined(shown, " "), server_goal_bytes_max);
  out.folder = working_folder();
  out.required = options.required;
  return out;
}

Status record_server(Session& session, const McpOptions& options) {
  if (!options.keep_secrets) {
    ASSIGN_OR_RETURN(const Config config, session.config());
    RETURN_IF_ERROR(bridge::scrub_by(config, environ));
  }
  ASSIGN_OR_RETURN(RecorderOptions recording, recorder_options(session, options));
  std::optional<ChildServer::NotStarted> not_started;
  ASSIGN_OR_RETURN(ChildServer server, ChildServer::start(session.command, not_started));
  if (not_started) {
    fmt::print(stderr, "muniment mcp: {}\n", escape_for_terminal(not_started->why));
    session.exit_code = not_started->exit_code;
    return success();
  }
  Recorder recorder(session, std::move(recording));
  session.exit_code = RecordingProxy(std::move(server), recorder, options.required).run();
  return success();
}

// Reports the outcome on standard error, also with --json.
Status mcp_command(Session& session, const McpOptions& options) {
  session.options.json = false;
  ASSIGN_OR_RETURN(std::string labels, labels_json(options.labels));
  const bool has_command = !session.command.empty();
  if (options.record.empty() && !has_command) return serve(session, options, std::move(labels));
  if (options.record.empty()) {
    return Error(Errc::invalid_argument,
                 "a name for the server is missing. Use: muniment mcp --record NAME -- COMMAND …");
  }
  if (!has_command) {
    return Error(Errc::invalid_argument,
                 "the command of the server is missing. Use: muniment mcp --record NAME -- COMMAND …");
  }
  if (options.no_run || options.review || !options.toolsets.empty() || !options.files.empty()) {
    return Error(
        Errc::invalid_argument,
        "--no-run, --toolset, --review and --files cannot be combined with --record, which offers COMMAND's tools");
  }
  return record_server(session, options);
}

}  // namespace

void add_mcp_command(CLI::App& app, Session& session) {
  add_command<McpOptions>(session, app, "mcp", "Serve MCP on standard input and output, or record an MCP server",
                          declare_mcp, mcp_command);
}

}  // namespace muniment::cli
