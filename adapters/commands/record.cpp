// Implements the command record, which an agent calls as its hook. The agent waits for each call, so waits are bounded:
// events that cannot be sent are spooled. Nonzero exit codes follow the agent's conventions (docs/recording.md).
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <cerrno>
#include <filesystem>

#include "adapters/commands.hpp"
#include "adapters/record/delivery.hpp"
#include "adapters/record/spool.hpp"
#include "base/files/file.hpp"
#include "base/json/readable_characters.hpp"
#include "base/text.hpp"
#include "client/arguments.hpp"

namespace muniment::cli {
namespace {

constexpr std::string_view claude_code = "claude-code";
constexpr std::size_t hook_bytes_max = 32U << 20;
// Time limit for sending events spooled by earlier hooks before the current event.
constexpr std::chrono::milliseconds catch_up_max{250};
constexpr std::chrono::hours flush_max{1};
// Exit codes as the agent interprets them: 2 blocks the tool call, all others allow it.
constexpr int hook_blocks = 2;

struct RecordOptions {
  std::string format;
  std::string on_halt = "block";
  std::string spool;
  std::int64_t timeout_ms = 1000;
  bool strict = false;
  bool flush = false;
  bool settings = false;
};

void declare_record(CLI::App& command, RecordOptions& options) {
  command.add_option("FORMAT", options.format, "Hook format: claude-code (hook JSON on standard input)")
      ->required()
      ->check(CLI::IsMember({std::string(claude_code)}));
  command
      .add_option("--on-halt", options.on_halt, "Action when the run is halted: block the call, stop the agent, allow")
      ->check(CLI::IsMember({"block", "stop", "allow"}))
      ->capture_default_str();
  command.add_flag("--strict", options.strict, "Block tool calls that can be neither recorded nor spooled");
  command.add_option("--spool", options.spool, "Spool folder for unsent events (default: below XDG_STATE_HOME)");
  command.add_option("--timeout-ms", options.timeout_ms, "Time limit in ms for a daemon that does not answer")
      ->check(CLI::Range(10, 60'000))
      ->capture_default_str();
  command.add_flag("--flush", options.flush, "Only send the spooled events");
  command.add_flag("--settings", options.settings, "Only print the hook settings for the agent's settings.json");
}

// Returns the text as one line of strict JSON.
Result<std::string> hook_line(const std::string& text) {
  auto line = json_line(text);
  return line ? line : json_line(with_readable_characters(text).text);
}

HookPlace hook_place(const json::Value& hook) {
  HookPlace place;
  place.now = Clock().now();
  struct stat about {};
  const std::string transcript = hook["transcript_path"].string_or("");
  if (!transcript.empty() && ::stat(transcript.c_str(), &about) == 0) place.transcript_bytes = about.st_size;
  return place;
}

Result<Spool> spool_of(const RecordOptions& options, const std::string& socket) {
  if (!options.spool.empty()) return Spool(options.spool);
  ASSIGN_OR_RETURN(std::string folder, default_spool_folder(socket));
  return Spool(std::move(folder));
}

Result<Client> connect_daemon(const RecordOptions& options, const std::string& socket) {
  const std::chrono::milliseconds patience(options.timeout_ms);
  ASSIGN_OR_RETURN(Client client, Client::connect(socket, patience));
  client.set_patience(patience);
  return client;
}

void complain(std::string_view text) { fmt::print(stderr, "muniment record: {}\n", escape_for_terminal(text)); }

// Spools the event with its time, to be sent later.
Status keep_late(const Spool& spool, Delivery delivery, Time now) {
  for (RecordedEvent& event : delivery.events) event.occurred_at = format_time(now);
  return spool.keep(delivery, now);
}

// Answers the agent if the run is halted, according to --on-halt.
int answer_halted(Session& session, const RecordOptions& options, bool asked, const Error& error) {
  complain(session.advised(error.message));
  if (!asked || options.on_halt == "allow") return exit_refused;
  if (options.on_halt == "block") return hook_blocks;  // the agent reads standard error
  json::Writer out;
  out.begin_object()
      .member("continue", false)
      .member("stopReason", "Muniment stopped this run: " + session.advised(error.message))
      .end_object();
  session.out().json_line(out.text());
  return exit_done;
}

// Sends the spooled events, then this one; an event that cannot be sent is spooled.
Status send_or_keep(const RecordOptions& options, const std::string& socket, Delivery& delivery, Time now) {
  ASSIGN_OR_RETURN(const Spool spool, spool_of(options, socket));
  auto client = connect_daemon(options, socket);
  if (client) {
    const auto send = [&client](const Delivery& one) { return deliver(*client, one); };
    const Spooled before = spool.send(send, std::chrono::steady_clock::now() + catch_up_max);
    if (before.refused > 0) complain(fmt::format("{} spooled deliveries were refused: {}", before.refused, before.why));
    if (before.left == 0) {
      const Status sent = deliver(*client, delivery);
      if (sent || (!is_transient(sent.error().code) && sent.error().code != Errc::over_budget)) return sent;
      delivery.in_doubt = true;
    }
  }
  return keep_late(spool, delivery, now);
}

Status record_hook(Session& session, const RecordOptions& options, const std::string& socket) {
  ASSIGN_OR_RETURN(const std::string text, read_input(STDIN_FILENO, "standard input", hook_bytes_max));
  ASSIGN_OR_RETURN(const std::string line, hook_line(text));
  ASSIGN_OR_RETURN(const json::Document document, json::parse(std::string_view(line)));
  const json::Value hook = document.root();
  const HookPlace place = hook_place(hook);
  ASSIGN_OR_RETURN(Delivery delivery, delivery_of_hook(hook, place));
  const Status recorded = send_or_keep(options, socket, delivery, place.now);
  if (recorded) return success();
  const bool asked = asks_leave(hook);
  if (recorded.error().code == Errc::run_halted) {
    session.exit_code = answer_halted(session, options, asked, recorded.error());
    return success();
  }
  complain("not recorded: " + session.advised(recorded.error().message));
  session.exit_code = asked && options.strict ? hook_blocks : exit_refused;
  return success();
}

Status flush_spool(Session& session, const RecordOptions& options, const std::string& socket) {
  ASSIGN_OR_RETURN(const Spool spool, spool_of(options, socket));
  auto client = connect_daemon(options, socket);
  if (!client && client.error().code == Errc::unavailable)
    return Error(Errc::unavailable, client.error().message + ". Start it: muniment up");
  if (!client) return std::move(client).error();
  const auto send = [&client](const Delivery& one) { return deliver(*client, one); };
  const Spooled outcome = spool.send(send, std::chrono::steady_clock::now() + flush_max);
  if (session.options.json) {
    json::Writer out;
    out.begin_object().member("sent", outcome.sent).member("refused", outcome.refused).member("left", outcome.left);
    out.member("why", outcome.why).member("spool", spool.folder()).end_object();
    session.out().json_line(out.text());
  } else {
    session.out().line(fmt::format("{} sent  {} refused  {} still in {}", outcome.sent, outcome.refused, outcome.left,
                                   session.out().one_line(spool.folder())));
    if (!outcome.why.empty()) session.out().line(session.out().one_line(outcome.why));
  }
  if (outcome.left + outcome.refused > 0) session.exit_code = exit_refused;
  return success();
}

// Prefers the small hook program in the same folder, which starts faster, over this program.
std::string hook_command(const Session& session, const RecordOptions& options) {
  std::error_code failed;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", failed);
  const std::filesystem::path small = self.parent_path() / "muniment-record";
  const auto quoted = [](const std::string& word) {
    std::string out = "'";
    for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return out + "'";
  };
  std::string command =
      std::filesystem::exists(small, failed) ? quoted(small.string()) : quoted(self.string()) + " record";
  command += " " + options.format;
  for (const auto& [flag, value] :
       {std::pair{"--data", session.options.data}, std::pair{"--socket", session.options.socket},
        std::pair{"--spool", options.spool}}) {
    if (!value.empty()) command += fmt::format(" {} {}", flag, quoted(value));
  }
  if (options.on_halt != "block") command += " --on-halt " + options.on_halt;
  if (options.strict) command += " --strict";
  return command;
}

Status print_settings(Session& session, const RecordOptions& options) {
  const std::string command = hook_command(session, options);
  json::Writer out;
  out.begin_object().key("hooks").begin_object();
  for (const char* name :
       {"SessionStart", "UserPromptSubmit", "PreToolUse", "PermissionRequest", "PostToolUse", "PostToolUseFailure",
        "SubagentStart", "SubagentStop", "PreCompact", "Notification", "Stop", "SessionEnd"}) {
    out.key(name).begin_array().begin_object().key("hooks").begin_array();
    out.begin_object().member("type", "command").member("command", command).end_object();
    out.end_array().end_object().end_array();
  }
  out.end_object().end_object();
  session.out().json_line(out.text());
  return success();
}

Status record(Session& session, const RecordOptions& options) {
  if (options.settings) return print_settings(session, options);
  ASSIGN_OR_RETURN(const Config config, session.config());
  if (options.flush) return flush_spool(session, options, config.socket);
  if (::isatty(STDIN_FILENO) != 0) {
    return Error(Errc::invalid_argument,
                 "record is called by an agent with hook JSON on standard input. To print the hooks for "
                 "its settings.json: muniment record claude-code --settings");
  }
  const Status status = record_hook(session, options, config.socket);
  if (status) return status;
  // A problem with the hook itself must not return the exit code that blocks the agent.
  complain(session.advised(status.error().message));
  session.exit_code = exit_refused;
  return success();
}

}  // namespace

void add_record_command(CLI::App& app, Session& session, FollowFile follow) {
  struct All {
    RecordOptions record;
    std::string file;
  };
  auto options = std::make_shared<All>();
  CLI::App& command =
      add_word(session, app, "record", "Record an agent live, as its hook command or from its session file",
               [&session, options, follow] {
                 return options->file.empty() ? record(session, options->record) : follow(session, options->file);
               });
  declare_record(command, options->record);
  command.add_option("--follow", options->file, "Record from this growing session file until interrupted");
}

void make_record_command(CLI::App& app, Session& session) {
  auto options = std::make_shared<RecordOptions>();
  declare_record(app, *options);
  app.callback([&session, options] { session.finish(record(session, *options)); });
}

}  // namespace muniment::cli
