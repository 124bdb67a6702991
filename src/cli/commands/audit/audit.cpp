// Implements the commands audit checkpoint, prove, key and verify, for auditors of a running daemon.
#include <fmt/format.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <optional>

#include "base/files/file.hpp"
#include "base/files/memory_file.hpp"
#include "base/json/json.hpp"
#include "base/text.hpp"
#include "cli/commands.hpp"
#include "cli/connect/which_kind.hpp"
#include "cli/verifier.hpp"

namespace muniment::cli {
namespace {

// Writes to the named file, or to standard output if no file is named.
Status deliver(Session& session, const std::string& path, std::string_view text) {
  if (path.empty() || path == "-") {
    session.out().print(text);
    return success();
  }
  RETURN_IF_ERROR(write_file_durably(path, text, 0644));
  if (::isatty(STDERR_FILENO) != 0) fmt::print(stderr, "muniment: wrote {}\n", escape_for_terminal(path));
  return success();
}

struct KeyOptions {
  std::string reason;
  std::string file;
};

std::string key_lines(const json::Value& keys) {
  std::string lines;
  for (const json::Value key : keys) lines += std::string(key.string_or("")) + "\n";
  return lines;
}

Status change_key(Session& session, std::string_view action, const KeyOptions& options) {
  json::Writer params;
  params.begin_object().member("action", action);
  if (!options.reason.empty()) params.member("reason", options.reason);
  ASSIGN_OR_RETURN(const Message answer, session.call("audit.key", params.end_object().text()));
  const json::Value keys = answer.result()["keys"];
  if (action == "init" && keys.size() > 1) {
    fmt::print(
        stderr,
        "muniment: the log had an earlier key that did not sign this one: give auditors the new key too. See docs/runbook.md#checkpoints\n");
  }
  if (session.printed_json(answer)) return success();
  if (keys.size() == 0) return Error(Errc::not_found, "the log has no key. Create one with: muniment audit key init");
  return deliver(session, options.file, key_lines(keys));
}

Status init_key(Session& session, const KeyOptions& options) { return change_key(session, "init", options); }
Status show_key(Session& session, const KeyOptions& options) { return change_key(session, "show", options); }
Status rotate_key(Session& session, const KeyOptions& options) { return change_key(session, "rotate", options); }

void declare_key(CLI::App& command, KeyOptions& options) {
  command.add_option("-o,--output", options.file, "Write the public keys to this file")->type_name("FILE");
}

void declare_key_change(CLI::App& command, KeyOptions& options) {
  declare_key(command, options);
  command.add_option("--reason", options.reason, "Reason, stored in the event key.rotated");
}

// Explains why a reply to audit.checkpoint has no signed note.
std::string why_unsigned(const json::Value& checkpoint) {
  return checkpoint["keys"].size() == 0
             ? "the log has no key. Create one with: muniment audit key init"
             : "the log has a key, but this daemon does not sign with it. See: muniment doctor";
}

struct CheckpointOptions {
  std::string file;
};

void declare_checkpoint(CLI::App& command, CheckpointOptions& options) {
  command.add_option("-o,--output", options.file, "Write the signed note to this file")->type_name("FILE");
}

Status show_checkpoint(Session& session, const CheckpointOptions& options) {
  ASSIGN_OR_RETURN(const Message answer, session.call("audit.checkpoint", "{}"));
  if (options.file.empty() && session.printed_json(answer)) return success();
  const json::Value result = answer.result();
  if (const json::Value problem = result["problem"])
    return Error(Errc::unavailable, std::string(problem.string_or("")));
  if (const json::Value note = result["note"]) return deliver(session, options.file, note.string_or(""));
  return Error(Errc::not_found,
               fmt::format("{} events have the root {}, which is not signed: {}", result["size"].as_int().value_or(0),
                           result["root"].string_or(""), why_unsigned(result)));
}

struct ProveOptions {
  std::string what;
  std::optional<std::int64_t> seq;
  std::string run;
  std::string event_id;
  std::string file;
  std::int64_t log_no = 0;  // 0: the current log
};

void declare_prove(CLI::App& command, ProveOptions& options) {
  command.add_option("RUN|SEQ", options.what, "Run whose last event is proven, or the seq of an event");
  auto* const seq =
      command.add_option("--seq", options.seq, "Event with this seq, even if a run has the same number as id")
          ->check(CLI::NonNegativeNumber);
  command.add_option("--run", options.run, "Run whose last event is proven")->excludes(seq);
  command.add_option("--event", options.event_id, "Event of the run to prove (default: the last)")
      ->type_name("ID")
      ->excludes(seq);
  command.add_option("--log", options.log_no, "Log of the seq, an earlier log that the current one continues")
      ->check(CLI::PositiveNumber);
  command.add_option("-o,--output", options.file, "Write the proof to this file")->type_name("FILE.tlog-proof");
}

// Returns the seq of an event, or nullopt if a run is named. Errors: conflict if the argument may be either.
Result<std::optional<std::int64_t>> seq_to_prove(Session& session, const ProveOptions& options) {
  if (options.seq || !options.run.empty() || !options.event_id.empty())
    return options.seq;  // --event is looked up in a run
  const auto seq = parse_decimal(options.what);
  if (seq && options.log_no == 0)
    RETURN_IF_ERROR(check_is_only_seq(session, options.what, fmt::format("--seq {0} or --run {0}", options.what)));
  return seq;
}

Status prove(Session& session, const ProveOptions& options) {
  const bool named_apart = options.seq || !options.run.empty();
  if (named_apart == !options.what.empty())
    return Error(Errc::invalid_argument, "name the event to prove: RUN or SEQ, or --run RUN or --seq N");
  json::Writer params;
  params.begin_object();
  ASSIGN_OR_RETURN(const auto seq, seq_to_prove(session, options));
  if (seq) {
    params.member("seq", *seq);
    if (options.log_no > 0) params.member("log_no", options.log_no);
  } else {
    ASSIGN_OR_RETURN(const std::string run, session.run_id(options.run.empty() ? options.what : options.run));
    params.member("run_id", run);
    if (!options.event_id.empty()) params.member("event_id", options.event_id);
  }
  ASSIGN_OR_RETURN(const Message answer, session.call("audit.prove", params.end_object().text()));
  if (options.file.empty() && session.printed_json(answer)) return success();
  if (const json::Value proof = answer.result()["proof"]) return deliver(session, options.file, proof.string_or(""));
  ASSIGN_OR_RETURN(const Message checkpoint, session.call("audit.checkpoint", "{}"));
  return Error(Errc::not_found, "an unsigned proof proves nothing: " + why_unsigned(checkpoint.result()));
}

constexpr const char* verify_footer = R"(Options, passed to muniment-verify (muniment-verify --help lists all)
  --key FILE …    verifier keys that you trust (default: DATA/keys/log.pub, which proves less)
  --proof FILE    verify a proof instead of a log
  --bundle FILE   verify the bundle of one run instead of a log
  --data DIR      data folder; --database, --artifacts and --tiles override its parts
  --log N         number of the log, if the database has several
  --unsigned-ok   exit with 0 if the log is consistent but not signed
  --json          print the report as JSON

Exit codes
  0  verified
  1  tampered or corrupt
  2  consistent, but unsigned, with an unsigned tail, or signed by none of the keys
  3  invalid command line
  4  unreadable
  5  incomplete: a part could not be read)";

struct VerifyOptions {
  std::vector<std::string> arguments;
};

bool has(const std::vector<std::string>& arguments, std::string_view word) {
  return std::any_of(arguments.begin(), arguments.end(),
                     [&](const std::string& argument) { return argument.starts_with(word); });
}

// Records the verification of the daemon's own log. The verification of a file, of a different folder or of a different
// log is not recorded by this daemon.
Status note_verdict(Session& session, std::string_view report) {
  const auto parsed = json::parse(report);
  if (!parsed) return success();
  const json::Value root = parsed->root();
  if (root["log_id"].string_or("").empty()) return success();  // nothing was verified, so there is no verdict
  ASSIGN_OR_RETURN(Client* const client, session.running_client());
  ASSIGN_OR_RETURN(const Message status, client->call("server.status", "{}"));
  if (status.result()["log"]["log_id"].string_or("") != root["log_id"].string_or("?")) {
    return Error(Errc::conflict, "the log of the daemon is not the log that was verified");
  }
  json::Writer params;
  params.begin_object()
      .member("verdict", root["verdict"].string_or(""))
      .member("upto", root["upto"].as_int().value_or(-1))
      .member("tool", "muniment-verify " MUNIMENT_VERSION);
  ASSIGN_OR_RETURN(const Message answer, client->call("audit.verified", params.end_object().text()));
  return success();
}

Status verify(Session& session, const VerifyOptions& options) {
  std::vector<std::string> arguments = options.arguments;
  const bool elsewhere = has(options.arguments, "--proof") || has(options.arguments, "--bundle") ||
                         has(options.arguments, "--data") || has(options.arguments, "--database");
  if (!elsewhere) RETURN_IF_ERROR(session.find_place());
  if (!elsewhere && !session.options.data.empty()) arguments.insert(arguments.end(), {"--data", session.options.data});
  if (session.options.json) arguments.emplace_back("--json");
  // The verdict to record comes from the report, even if only part of it is shown, because the exit code is not
  // sufficient.
  ASSIGN_OR_RETURN(const Fd told, memory_file("report", ""));
  if (!elsewhere)
    arguments.insert(arguments.end(), {"--report", fmt::format("/proc/{}/fd/{}", ::getpid(), told.get())});
  ASSIGN_OR_RETURN(session.exit_code, run_verifier(std::move(arguments), nullptr));
  if (elsewhere) return success();
  ASSIGN_OR_RETURN(const std::string report, read_at(told, 0, verifier_report_bytes_max));
  if (!report.empty()) session.finish_quietly("the verdict", note_verdict(session, report));
  return success();
}

}  // namespace

void add_audit_commands(CLI::App& app, Session& session) {
  CLI::App& audit = add_group(app, "audit", "Sign, prove, verify, export and erase");
  add_command(session, audit, "checkpoint", "Print the newest signed checkpoint", declare_checkpoint, show_checkpoint);
  add_command(session, audit, "prove", "Write a proof of an event for holders of the log's public key", declare_prove,
              prove);
  CLI::App& key = add_group(audit, "key", "Create, show and rotate the key that signs the log");
  add_command(session, key, "init", "Create the first key and print its public part", declare_key_change, init_key);
  add_command(session, key, "show", "Print the public keys, newest last", declare_key, show_key);
  add_command(session, key, "rotate", "Replace the key; signatures of the old key remain valid", declare_key_change,
              rotate_key);
  add_redact_command(audit, session);
  add_archive_command(audit, session);
  add_witness_command(audit, session);
  auto options = std::make_shared<VerifyOptions>();
  CLI::App& verifying =
      add_word(session, audit, "verify", "Run muniment-verify on the log or on a --proof or --bundle FILE",
               [&session, options] { return verify(session, *options); });
  verifying.footer(verify_footer);
  verifying.fallthrough(false);  // all options are passed to the verifier
  verifying.allow_extras();
  verifying.callback([&session, options, &verifying] {
    options->arguments = verifying.remaining();
    session.finish(verify(session, *options));
  });
  add_bundle_commands(audit, session);
}

}  // namespace muniment::cli
