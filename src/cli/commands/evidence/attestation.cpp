// Implements the commands attestation export, import and verify: test results as in-toto statements in DSSE envelopes.
#include <fmt/format.h>
#include <sys/types.h>
#include <unistd.h>

#include <CLI/CLI.hpp>

#include <filesystem>
#include <optional>

#include "base/crypto/dsse.hpp"
#include "base/files/file.hpp"
#include "cli/commands.hpp"
#include "client/arguments.hpp"
#include "evidence/attestation/statement.hpp"

namespace muniment::cli {
namespace {

namespace attestation = evidence::attestation;

constexpr mode_t readable_by_all = 0644;

struct AttestationOptions {
  std::string evidence;
  std::string task;
  std::string run;
  std::string output;
  std::string file;
  std::vector<std::string> keys;
  std::string key_file;
};

void declare_attest(CLI::App& command, AttestationOptions& options) {
  auto* evidence = command.add_option("EVIDENCE", options.evidence, "Evidence id of a recorded test result");
  command.add_option("--task", options.task, "Completed task whose test result is attested")->excludes(evidence);
  command.add_option("--run", options.run, "Run of the task (default: MUNIMENT_RUN)")->excludes(evidence);
  command.add_option("-o,--output", options.output, "New or replaced file (default: standard output)")
      ->type_name("FILE");
}

Status attest(Session& session, const AttestationOptions& options) {
  json::Writer params;
  params.begin_object();
  if (options.task.empty()) {
    if (options.evidence.empty()) return Error(Errc::invalid_argument, "expected EVIDENCE, or --task TASK --run RUN");
    params.member("evidence_id", options.evidence);
  } else {
    ASSIGN_OR_RETURN(const std::string run_id, session.run_id(options.run));
    params.member("run_id", run_id).member("task_id", options.task);
  }
  params.end_object();
  ASSIGN_OR_RETURN(const Message answer, session.call("evidence.attest", params.text()));
  const std::string envelope = answer.result()["envelope"].string_or("");
  if (options.output.empty()) {
    ASSIGN_OR_RETURN(const std::string line, json_line(envelope));  // an imported envelope may have line feeds
    session.out().json_line(session.options.json ? line : envelope);
    return success();
  }
  RETURN_IF_ERROR(write_file_durably(options.output, envelope + "\n", readable_by_all));
  if (session.options.json) {
    session.out().json_line(json::Writer().begin_object().member("file", options.output).end_object().text());
  } else {
    session.out().line(session.out().one_line(options.output));
  }
  return success();
}

void declare_attestation_import(CLI::App& command, AttestationOptions& options) {
  command.add_option("FILE", options.file, "File of the attestation; - for standard input")->required();
  command.add_option("--run", options.run, "RUN");
  command.footer("The daemon accepts attestations of the keys in the setting attestation_keys only.");
}

Result<std::string> read_envelope(const std::string& file) {
  return file == "-" ? read_input(STDIN_FILENO, "standard input", envelope_bytes_max + 1)
                     : read_input(file, envelope_bytes_max + 1);
}

Status import_attestation(Session& session, const AttestationOptions& options) {
  ASSIGN_OR_RETURN(const std::string run_id, session.run_id(options.run));
  ASSIGN_OR_RETURN(const std::string text, read_envelope(options.file));
  ASSIGN_OR_RETURN(const Envelope checked, Envelope::parse(text));
  json::Writer params;
  params.begin_object().member("run_id", run_id).member("envelope", text).end_object();
  ASSIGN_OR_RETURN(const Message answer, session.call("evidence.import", params.text()));
  if (session.printed_json(answer)) return success();
  const json::Value imported = answer.result();
  const bool known = imported["duplicate"].as_bool().value_or(false);
  session.out().line(fmt::format("evidence {}  {}{}", imported["evidence_id"].string_or(""),
                                 imported["hash"].string_or(""),
                                 known ? "  (already recorded)  in " + imported["run_id"].string_or("") : ""));
  return success();
}

void declare_attestation_verify(CLI::App& command, AttestationOptions& options) {
  command.add_option("FILE", options.file, "File of the attestation; - for standard input")->required();
  command.add_option("--key", options.keys, "Trusted verifier key, or a file of them; repeat for several")
      ->allow_extra_args(false)
      ->type_name("VKEY");
  command.add_option("--keys", options.key_file, "File of trusted keys (default: attestation_keys)")->type_name("FILE");
  command.footer("Exits with 0 if a trusted key signed the attestation, with 1 otherwise. Needs no daemon.");
}

Result<std::vector<VerifierKey>> trusted_keys(const Session& session, const AttestationOptions& options) {
  std::vector<VerifierKey> keys;
  for (const std::string& text : options.keys) {
    if (std::error_code failed; std::filesystem::is_regular_file(text, failed)) {
      ASSIGN_OR_RETURN(const std::vector<VerifierKey> in_file, read_trusted_keys(text));
      keys.insert(keys.end(), in_file.begin(), in_file.end());
      continue;
    }
    ASSIGN_OR_RETURN(VerifierKey key, VerifierKey::parse(text));
    keys.push_back(std::move(key));
  }
  std::string file = options.key_file;
  if (keys.empty() && file.empty()) {
    ASSIGN_OR_RETURN(const Config config, session.config());
    file = config.attestation_keys;
  }
  ASSIGN_OR_RETURN(const std::vector<VerifierKey> more, read_trusted_keys(file));
  keys.insert(keys.end(), more.begin(), more.end());
  if (keys.empty())
    return Error(
        Errc::invalid_argument,
        "no trusted key. Name one: --key VKEY, --keys FILE or the setting attestation_keys. The key of a log is "
        "the last line of keys/log.pub in its data folder");
  return keys;
}

std::string_view word_of(attestation::TestOutcome outcome) {
  if (outcome == attestation::TestOutcome::passed) return "PASSED";
  return outcome == attestation::TestOutcome::warned ? "WARNED" : "FAILED";
}

Status verify_attestation(Session& session, const AttestationOptions& options) {
  ASSIGN_OR_RETURN(const std::vector<VerifierKey> keys, trusted_keys(session, options));
  ASSIGN_OR_RETURN(const std::string text, read_envelope(options.file));
  ASSIGN_OR_RETURN(const Envelope envelope, Envelope::parse(text));
  const VerifierKey* const key = signer_of(envelope, keys);
  if (key == nullptr)
    return Error(Errc::denied, "no trusted key signed the attestation: it was changed, or signed by another key");
  if (!attestation::is_statement_type(envelope.payload_type))
    return Error(Errc::invalid_argument, "the payloadType is not application/vnd.in-toto+json");
  ASSIGN_OR_RETURN(const attestation::TestStatement statement, attestation::parse_statement(envelope.payload));
  if (session.options.json) {
    json::Writer out;
    out.begin_object().member("key", key->text()).member("result", word_of(statement.outcome));
    out.raw_member("statement", envelope.payload).end_object();
    ASSIGN_OR_RETURN(const std::string line, json_line(out.text()));  // a payload may have line feeds
    session.out().json_line(line);
    return success();
  }
  const Output& out = session.out();
  out.line(fmt::format("{}  {}", out.tone(Tone::green, "verified"), word_of(statement.outcome)));
  out.line("  key      " + out.one_line(key->text()));
  for (const attestation::Subject& subject : statement.subjects)
    out.line(fmt::format("  subject  {}  {}", out.one_line(subject.name),
                         subject.sha256.empty() ? "(no sha256)" : "sha256:" + subject.sha256));
  return success();
}

}  // namespace

void add_attestation_commands(CLI::App& app, Session& session) {
  CLI::App& group = add_group(app, "attestation", "Export, import and verify attestations of test results");
  add_command<AttestationOptions>(session, group, "export", "Sign a recorded test result with the log's key",
                                  declare_attest, attest);
  add_command<AttestationOptions>(session, group, "import", "Record the test result that a trusted key attests",
                                  declare_attestation_import, import_attestation);
  add_command<AttestationOptions>(session, group, "verify", "Verify an attestation offline", declare_attestation_verify,
                                  verify_attestation);
}

}  // namespace muniment::cli
