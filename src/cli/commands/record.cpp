// record: an agent's hooks, as they are called. The agent waits for each, so that this never waits for long: what
// cannot be sent is spooled, and an exit code other than 0 is chosen by what the agent makes of it (docs/recording.md).
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <cerrno>
#include <filesystem>

#include "base/files/file.hpp"
#include "base/text.hpp"
#include "cli/arguments.hpp"
#include "cli/commands.hpp"
#include "cli/import/readable.hpp"
#include "cli/record/delivery.hpp"
#include "cli/record/spool.hpp"

namespace muniment::cli {
namespace {

constexpr std::string_view claude_code = "claude-code";
constexpr std::size_t hook_bytes_max = 32U << 20;
// What earlier hooks left behind is sent before a hook's own event, as far as the agent can be made to wait for it.
constexpr std::chrono::milliseconds catch_up_max{250};
constexpr std::chrono::hours flush_max{1};
// The agent's own meaning of exit codes: 2 blocks what it is about to do, all others let it go on.
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
  command.add_option("FORMAT", options.format, "claude-code: its hook's JSON on standard input")
      ->required()
      ->check(CLI::IsMember({std::string(claude_code)}));
  command
      .add_option("--on-halt", options.on_halt,
                  "When the run is stopped: block the tool call, stop the agent, or allow both")
      ->check(CLI::IsMember({"block", "stop", "allow"}))
      ->capture_default_str();
  command.add_flag("--strict", options.strict, "Block a tool call that can neither be recorded nor spooled");
  command.add_option("--spool", options.spool,
                     "Where events wait while the daemon is away (default: below XDG_STATE_HOME)");
  command.add_option("--timeout-ms", options.timeout_ms, "How long the agent waits for a daemon that does not answer")
      ->check(CLI::Range(10, 60'000))
      ->capture_default_str();
  command.add_flag("--flush", options.flush, "Only send what waits in the spool");
  command.add_flag("--settings", options.settings, "Only print the hooks for the agent's settings.json");
}

// One line of strict JSON.
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

// To be sent afterwards, with the time at which it happened.
Status keep_late(const Spool& spool, Delivery delivery, Time now) {
  for (RecordedEvent& event : delivery.events) event.occurred_at = format_time(now);
  return spool.keep(delivery, now);
}

// The run was stopped: the answer that the agent understands, by policy.
int answer_halted(Session& session, const RecordOptions& options, bool asked, const Error& error) {
  complain(session.advised(error.message));
  if (!asked || options.on_halt == "allow") return exit_refused;
  if (options.on_halt == "block") return hook_blocks;  // the agent reads what was said on standard error
  json::Writer out;
  out.begin_object()
      .member("continue", false)
      .member("stopReason", "Muniment stopped this run: " + session.advised(error.message))
      .end_object();
  session.out().json_line(out.text());
  return exit_done;
}

// Sends what waits, then this; what cannot be sent waits too.
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
    session.out().line(fmt::format("{} sent  {} refused  {} left in {}", outcome.sent, outcome.refused, outcome.left,
                                   session.out().one_line(spool.folder())));
    if (!outcome.why.empty()) session.out().line(session.out().one_line(outcome.why));
  }
  if (outcome.left + outcome.refused > 0) session.exit_code = exit_refused;
  return success();
}

// The small program beside this one starts faster; without it, this one.
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
                 "this is for an agent to call, with a hook's JSON on standard input. What to put into "
                 "its settings.json: muniment record claude-code --settings");
  }
  const Status status = record_hook(session, options, config.socket);
  if (status) return status;
  // Never the exit code that would block the agent for what is wrong with a hook.
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
      add_word(session, app, "record", "What an agent does, as it does it: its hook command, or from its session file",
               [&session, options, follow] {
                 return options->file.empty() ? record(session, options->record) : follow(session, options->file);
               });
  declare_record(command, options->record);
  command.add_option("--follow", options->file,
                     "Record from this session file while the agent writes it, until interrupted");
}

void make_record_command(CLI::App& app, Session& session) {
  session.commands = {"record", "recover", "run", "status",
                      "up"};  // of the program beside it, which messages may advise
  auto options = std::make_shared<RecordOptions>();
  declare_record(app, *options);
  app.callback([&session, options] { session.finish(record(session, *options)); });
}

}  // namespace muniment::cli
