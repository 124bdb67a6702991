// audit …: what an auditor asks of a running daemon, and the independent verifier under one name.
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

// To a file, or to standard output where none is named.
Status deliver(Session& session, const std::string& path, std::string_view text) {
  if (path.empty() || path == "-") {
    session.out().print(text);
    return success();
  }
  return write_file_durably(path, text, 0644);
}

// ---- keys ---------------------------------------------------------------------------------------

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
        "muniment: the log had a key before, which did not sign for this one: auditors need the new key, too. See docs/runbook.md#checkpoints\n");
  }
  if (session.printed_json(answer)) return success();
  if (keys.size() == 0) return Error(Errc::not_found, "the log has no key. Make one with: muniment audit key init");
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
  command.add_option("--reason", options.reason, "Why; it is part of the event key.rotated");
}

// ---- checkpoints and proofs ---------------------------------------------------------------------

// Of an answer to audit.checkpoint without a note.
std::string why_unsigned(const json::Value& checkpoint) {
  return checkpoint["keys"].size() == 0 ? "the log has no key. Make one with: muniment audit key init"
                                        : "the log has a key, and nothing signs with it here. See: muniment doctor";
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
               fmt::format("{} events have the root {}, which nobody signed: {}", result["size"].as_int().value_or(0),
                           result["root"].string_or(""), why_unsigned(result)));
}

struct ProveOptions {
  std::string what;
  std::optional<std::int64_t> seq;
  std::string run;
  std::string event_id;
  std::string file;
  std::int64_t log_no = 0;  // 0: the present one
};

void declare_prove(CLI::App& command, ProveOptions& options) {
  command.add_option("RUN|SEQ", options.what, "A run, whose last event is proven, or an event's seq");
  auto* const seq = command.add_option("--seq", options.seq, "The event with this seq, whatever else has the number")
                        ->check(CLI::NonNegativeNumber);
  command.add_option("--run", options.run, "This run")->excludes(seq);
  command.add_option("--event", options.event_id, "Another event of the run")->type_name("ID")->excludes(seq);
  command.add_option("--log", options.log_no, "The seq is of this log, which the present one goes on from")
      ->check(CLI::PositiveNumber);
  command.add_option("-o,--output", options.file, "Write the proof to this file")->type_name("FILE.tlog-proof");
}

// The number of an event; nullopt: a run is named. Errors: conflict where it may be either.
Result<std::optional<std::int64_t>> seq_to_prove(Session& session, const ProveOptions& options) {
  if (options.seq || !options.run.empty() || !options.event_id.empty())
    return options.seq;  // an event's id is looked for in a run
  const auto seq = parse_decimal(options.what);
  if (seq && options.log_no == 0)
    RETURN_IF_ERROR(check_is_only_seq(session, options.what, fmt::format("--seq {0} or --run {0}", options.what)));
  return seq;
}

Status prove(Session& session, const ProveOptions& options) {
  const bool named_apart = options.seq || !options.run.empty();
  if (named_apart == !options.what.empty())
    return Error(Errc::invalid_argument, "name what is to be proven: RUN or SEQ, or --run RUN or --seq N");
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

// ---- verify -------------------------------------------------------------------------------------

constexpr std::size_t report_bytes_max = 16 << 20;

constexpr const char* verify_footer = R"(Options, which are muniment-verify's (muniment-verify --help: all of them)
  --key FILE …    verifier keys that you trust; otherwise DATA/keys/log.pub, which proves less
  --proof FILE    a proof instead of a log
  --bundle FILE   the bundle of one run instead of a log
  --data DIR      the data folder; --database, --artifacts, --tiles: where they are elsewhere
  --log N         the number of the log, where the database has several
  --indexes       the search indexes, too
  --unsigned-ok   exit code 0 when all is consistent, but not signed
  --json          the report as JSON

Exit codes
  0  verified
  1  tampered or corrupt
  2  consistent, but unsigned, with an unsigned tail, or signed by none of the keys
  3  the command line is wrong
  4  unreadable
  5  incomplete: not all could be read)";

struct VerifyOptions {
  std::vector<std::string> arguments;
};

bool has(const std::vector<std::string>& arguments, std::string_view word) {
  return std::any_of(arguments.begin(), arguments.end(),
                     [&](const std::string& argument) { return argument.starts_with(word); });
}

// A verify of the log is an event of the log; one of a file, of another place or of another log does not concern this
// daemon.
Status note_verdict(Session& session, std::string_view report) {
  const auto parsed = json::parse(report);
  if (!parsed) return success();
  const json::Value root = parsed->root();
  if (root["log_id"].string_or("").empty()) return success();  // nothing was verified: there is no verdict on any log
  ASSIGN_OR_RETURN(Client* const client, session.running_client());
  ASSIGN_OR_RETURN(const Message status, client->call("server.status", "{}"));
  if (status.result()["log"]["log_id"].string_or("") != root["log_id"].string_or("?")) {
    return Error(Errc::conflict, "the daemon's log is another one than was verified");
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
  // The verdict for the log is read from the report, whatever of it is shown: an exit code does not tell it.
  ASSIGN_OR_RETURN(const Fd told, memory_file("report", ""));
  if (!elsewhere)
    arguments.insert(arguments.end(), {"--report", fmt::format("/proc/{}/fd/{}", ::getpid(), told.get())});
  ASSIGN_OR_RETURN(session.exit_code, run_verifier(std::move(arguments), nullptr));
  if (elsewhere) return success();
  ASSIGN_OR_RETURN(const std::string report, read_at(told, 0, report_bytes_max));
  if (!report.empty()) session.finish_quietly("the verdict", note_verdict(session, report));
  return success();
}

}  // namespace

void add_audit_commands(CLI::App& app, Session& session) {
  CLI::App& audit = add_group(app, "audit", "Signed checkpoints, proofs, keys and verification");
  add_command(session, audit, "checkpoint", "The newest signed checkpoint", declare_checkpoint, show_checkpoint);
  add_command(session, audit, "prove", "A file that proves an event to anyone who has the log's key", declare_prove,
              prove);
  CLI::App& key = add_group(audit, "key", "The key that signs the log");
  add_command(session, key, "init", "Make the first key; prints the public one", declare_key_change, init_key);
  add_command(session, key, "show", "The public keys, the newest last", declare_key, show_key);
  add_command(session, key, "rotate", "Replace the key; what the old one signed still verifies", declare_key_change,
              rotate_key);
  add_redact_command(audit, session);
  add_archive_command(audit, session);
  add_witness_command(audit, session);
  auto options = std::make_shared<VerifyOptions>();
  CLI::App& verifying =
      add_word(session, audit, "verify", "Run muniment-verify: of the whole log, or of a --proof or --bundle FILE",
               [&session, options] { return verify(session, *options); });
  verifying.footer(verify_footer);
  verifying.fallthrough(false);  // every option is the verifier's
  verifying.allow_extras();
  verifying.callback([&session, options, &verifying] {
    options->arguments = verifying.remaining();
    session.finish(verify(session, *options));
  });
  add_bundle_commands(audit, session);
}

}  // namespace muniment::cli
