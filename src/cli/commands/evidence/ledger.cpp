// Implements the commands claim list, record and decide; evidence add, get, link, list and verify; list-evidence; and
// pointer resolve and validate.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/text.hpp"
#include "cli/commands.hpp"
#include "cli/exec/evidence_terms.hpp"
#include "cli/show/describe.hpp"
#include "cli/time_option.hpp"
#include "client/arguments.hpp"
#include "client/connect/pages.hpp"

namespace muniment::cli {
namespace {

struct ClaimOptions {
  std::string text;
  std::string run;
  std::string step;
  std::vector<std::string> pointers;
};

void declare_claim(CLI::App& command, ClaimOptions& options) {
  command.add_option("TEXT", options.text, "Text of the claim")->required();
  command.add_option("--pointer", options.pointers, "Pointer that supports the claim; becomes critical")
      ->allow_extra_args(false);
  command.add_option("--run", options.run, "RUN");
  command.add_option("--step", options.step, "Step id");
}

Status record_claim(Session& session, const ClaimOptions& options) {
  ASSIGN_OR_RETURN(const std::string run_id, session.run_id(options.run));
  json::Writer params;
  params.begin_object().member("run_id", run_id).member("text", options.text);
  params.key("pointers").begin_array();
  for (const std::string& pointer : options.pointers) params.string(pointer);
  params.end_array();
  if (!options.step.empty()) params.member("step_id", options.step);
  params.end_object();
  ASSIGN_OR_RETURN(const Message answer, session.call("claim.record", params.text()));
  if (session.printed_json(answer)) return success();
  session.out().line(
      fmt::format("claim {}  seq {}", answer.result()["claim_id"].string_or(""), answer.result()["seq"].source()));
  return success();
}

struct DecideOptions {
  std::string claim;
  std::string status;
  std::string reason;
};

void declare_decide(CLI::App& command, DecideOptions& options) {
  command.add_option("CLAIM", options.claim, "Claim id")->required();
  command.add_option("STATUS", options.status, "New status: supported, refuted, withdrawn or open")
      ->required()
      ->check(CLI::IsMember({"supported", "refuted", "withdrawn", "open"}));
  command.add_option("--reason", options.reason, "Why");
}

// Prints the daemon's reply to an event about a claim.
Status tell_of_claim(Session& session, const std::string& method, const json::Writer& params, std::string_view what) {
  ASSIGN_OR_RETURN(const Message answer, session.call(method, params.text()));
  if (session.printed_json(answer)) return success();
  session.out().line(fmt::format("{}  seq {}{}", what, answer.result()["seq"].source(),
                                 answer.result()["duplicate"].as_bool().value_or(false) ? "  (already recorded)" : ""));
  return success();
}

Status decide_claim(Session& session, const DecideOptions& options) {
  json::Writer params;
  params.begin_object().member("claim_id", options.claim).member("status", options.status);
  if (!options.reason.empty()) params.member("reason", options.reason);
  params.end_object();
  return tell_of_claim(session, "claim.decide", params, "decided");
}

struct LinkOptions {
  std::string evidence;
  std::string claim;
  bool refutes = false;
};

void declare_link(CLI::App& command, LinkOptions& options) {
  command.add_option("EVIDENCE", options.evidence, "Id of evidence recorded in the claim's run")->required();
  command.add_option("CLAIM", options.claim, "Claim id")->required();
  command.add_flag("--refutes", options.refutes, "Evidence refutes the claim (default: supports it)");
}

Status link_evidence(Session& session, const LinkOptions& options) {
  json::Writer params;
  params.begin_object().member("claim_id", options.claim).member("evidence_id", options.evidence);
  params.member("relation", options.refutes ? "refutes" : "supports").end_object();
  return tell_of_claim(session, "evidence.link", params, "linked");
}

struct EvidenceIdOptions {
  std::string evidence;
  std::string run;
};

void declare_evidence_id(CLI::App& command, EvidenceIdOptions& options) {
  command.add_option("EVIDENCE", options.evidence, "Evidence id")->required();
  command.add_option("--run", options.run, "Run that uses the evidence (default: the first one)");
}

Result<std::string> evidence_params(Session& session, const EvidenceIdOptions& options) {
  json::Writer params;
  params.begin_object().member("evidence_id", options.evidence);
  if (!options.run.empty()) {
    ASSIGN_OR_RETURN(const std::string run_id, session.run_id(options.run));
    params.member("run_id", run_id);
  }
  return std::move(params.end_object()).text();
}

// Rows of erased claims and evidence remain, with their ids but without text or hash.
constexpr std::string_view erased_word = "(erased)";
bool is_erased_claim(const json::Value& claim) { return claim["text"].string_or("").empty(); }
bool is_erased_evidence(const json::Value& item) {
  return item["hash"].string_or("").find_first_not_of('0') == std::string::npos;
}

Status get_evidence(Session& session, const EvidenceIdOptions& options) {
  ASSIGN_OR_RETURN(const std::string params, evidence_params(session, options));
  ASSIGN_OR_RETURN(const Message answer, session.call("evidence.get", params));
  if (session.printed_json(answer)) return success();
  const Output& out = session.out();
  const json::Value item = answer.result()["evidence"];
  const bool erased = is_erased_evidence(item);
  if (erased)
    out.line(fmt::format("{:<13}{}  {}", "evidence_id", item["evidence_id"].string_or(""),
                         out.tone(Tone::dim, erased_word)));
  for (const char* name :
       {"evidence_id", "type", "pointer", "corpus_id", "index_id", "chunk_id", "hash", "validator_id"}) {
    if (const auto value = item[name].as_string(); value && !erased)
      out.line(fmt::format("{:<13}{}", name, out.one_line(*value)));
  }
  if (const auto text = item["content"]["text"].as_string())
    out.line(fmt::format("{:<13}{}", "text", out.one_line(*text)));
  if (item["content"]["command"]) {
    const std::string caveats = caveats_of(item["content"]);
    const std::string observed = is_reported(item["content"]) ? "" : "observed by the daemon";
    out.line(fmt::format("{:<13}{}{}{}", "command", observed, observed.empty() || caveats.empty() ? "" : ", ",
                         out.one_line(caveats)));
  }
  if (const auto expiry = item["expires_at"].as_string()) out.line(fmt::format("{:<13}{}", "expires_at", *expiry));
  for (const json::Value dependency : item["depends_on"])
    out.line(fmt::format("{:<13}{}", "depends_on", out.one_line(dependency.string_or(""))));
  for (const json::Value use : answer.result()["uses"]) {
    out.line(fmt::format("{:<13}{}  {}  by {}  seq {}", "used in", out.one_line(use["run_id"].string_or("")),
                         out.one_line(use["type"].string_or("")), out.one_line(use["actor"].string_or("")),
                         use["seq"].source()));
  }
  return success();
}

Status verify_evidence(Session& session, const EvidenceIdOptions& options) {
  ASSIGN_OR_RETURN(const std::string params, evidence_params(session, options));
  ASSIGN_OR_RETURN(const Message answer, session.call("evidence.verify", params));
  const json::Value found = answer.result();
  const bool ok = found["ok"].as_bool().value_or(false);
  if (!ok) session.exit_code = exit_refused;
  if (session.printed_json(answer)) return success();
  const Output& out = session.out();
  out.line(ok ? out.tone(Tone::green, "ok") + "  " + found["expected_hash"].string_or("")
              : out.tone(Tone::red, found["reason"].string_or("?")) + "  " +
                    out.one_line(found["detail"].string_or("")));
  if (const auto current = found["current"].as_string()) out.line("  current  " + out.one_line(*current));
  for (const json::Value halt : found["halted"])
    out.line("  stopped  " + out.one_line(halt["run_id"].string_or("")) + out.advised("  See: muniment recover RUN"));
  return success();
}

struct LedgerListOptions {
  std::string run;
  std::string type;
  std::string task;
  std::string validator;
};

void declare_claim_list(CLI::App& command, LedgerListOptions& options) {
  command.add_option("--run", options.run, "RUN");
}

void declare_evidence_list(CLI::App& command, LedgerListOptions& options) {
  command.add_option("--run", options.run, "Run (default: all runs)");
  command.add_option("--type", options.type, "Only this type");
  command.add_option("--task", options.task, "Only evidence recorded for this task");
  command.add_option("--validator", options.validator, "Only evidence with this actor or validator_id");
}

std::string pointers_text(const json::Value& pointers) {
  std::string text;
  for (const json::Value pointer : pointers) text += (text.empty() ? "" : " ") + pointer.string_or("");
  return text;
}

// Prints the pages of `method` as rows; `row` turns an item of result[list] into cells.
Status list_pages(Session& session, const std::string& method, const LedgerListOptions& options,
                  const std::string& run_id, const char* list, Table& table,
                  std::vector<std::string> (*row)(const Output&, const json::Value&)) {
  json::Writer params;
  params.begin_object();
  if (!run_id.empty()) params.member("run_id", run_id);
  if (!options.type.empty()) params.member("type", options.type);
  if (!options.task.empty()) params.member("task_id", options.task);
  if (!options.validator.empty()) params.member("validator", options.validator);
  params.end_object();
  RETURN_IF_ERROR(each_item(session, method, params.text(), list, [&](const json::Value& item) -> Result<bool> {
    if (session.options.json) {
      session.out().json_line(item.source());
    } else {
      table.add(row(session.out(), item));
    }
    return true;
  }));
  if (!session.options.json) table.print(session.out());
  return success();
}

Status list_claims(Session& session, const LedgerListOptions& options) {
  ASSIGN_OR_RETURN(const std::string run_id, session.run_id(options.run));
  Table table({"claim", "status", "text", "pointers"});
  return list_pages(session, "claim.list", options, run_id, "claims", table,
                    [](const Output& out, const json::Value& claim) -> std::vector<std::string> {
                      return {claim["claim_id"].string_or(""), out.one_line(claim["status"].string_or("")),
                              is_erased_claim(claim) ? out.tone(Tone::dim, erased_word)
                                                     : fit(out.one_line(claim["text"].string_or("")), 80),
                              out.one_line(pointers_text(claim["pointers"]))};
                    });
}

Status list_evidence(Session& session, const LedgerListOptions& options) {
  std::string run_id;
  if (!options.run.empty()) {
    ASSIGN_OR_RETURN(run_id, session.run_id(options.run));
  }
  Table table({"evidence", "type", "run", "content"});
  return list_pages(
      session, "evidence.list", options, run_id, "evidence", table,
      [](const Output& out, const json::Value& item) -> std::vector<std::string> {
        const std::string text = item["pointer"].string_or(item["content"]["text"].string_or(item["content"].source()));
        const std::string caveats = caveats_of(item["content"]);
        return {item["evidence_id"].string_or(""),
                out.one_line(item["type"].string_or("") + (caveats.empty() ? "" : " (" + caveats + ")")),
                out.one_line(item["run_id"].string_or("")),
                is_erased_evidence(item) ? out.tone(Tone::dim, erased_word) : fit(out.one_line(text), 80)};
      });
}

struct EvidenceOptions {
  std::string type;
  std::string text;
  std::string pointer;
  std::string metadata;
  std::string validator;
  std::string run;
  EvidenceTerms terms;
};

void declare_evidence(CLI::App& command, EvidenceOptions& options) {
  command.add_option("TYPE", options.type, "Evidence type: test_result, review, …")->required();
  auto* text = command.add_option("--text", options.text, "Text of the evidence");
  auto* pointer = command.add_option("--pointer", options.pointer, "Pointer to the evidence, instead of --text");
  text->excludes(pointer);
  command.add_option("--metadata", options.metadata, "Metadata, a JSON object; only with --text");
  command.add_option("--validator", options.validator, "Name of the validator");
  declare_terms(command, options.terms);
  command.add_option("--run", options.run, "Run (default: MUNIMENT_RUN, otherwise none)");
}

Status add_evidence(Session& session, const EvidenceOptions& options) {
  ASSIGN_OR_RETURN(const std::string run_id, session.run_id_if_any(options.run));
  if (options.text.empty() == options.pointer.empty()) {
    return Error(Errc::invalid_argument, "pass the evidence with either --text or --pointer");
  }
  json::Writer params;
  params.begin_object().member("type", options.type);
  if (!run_id.empty()) params.member("run_id", run_id);
  if (!options.pointer.empty()) params.member("pointer", options.pointer);
  if (!options.text.empty()) {
    params.key("content").begin_object().member("text", options.text);
    if (!options.metadata.empty()) {
      ASSIGN_OR_RETURN(const std::string metadata, json_line(options.metadata));
      params.raw_member("metadata", metadata);
    }
    params.end_object();
  }
  if (!options.validator.empty()) params.member("validator_id", options.validator);
  RETURN_IF_ERROR(write_terms(params, options.terms));
  params.end_object();
  ASSIGN_OR_RETURN(const Message answer, session.call("evidence.record", params.text()));
  if (session.printed_json(answer)) return success();
  session.out().line(fmt::format("evidence {}  {}", answer.result()["evidence_id"].string_or(""),
                                 answer.result()["hash"].string_or("")));
  return success();
}

struct PointerOptions {
  std::vector<std::string> pointers;
  std::string run;
  std::string asof;
  bool critical = false;
};

void declare_validate(CLI::App& command, PointerOptions& options) {
  command.add_option("POINTER", options.pointers, "Pointer: ev://, artifact://, manifest://, snap:// or run://")
      ->required();
  add_asof_option(command, options.asof, "Resolve documents as of this event or time");
}

void declare_resolve(CLI::App& command, PointerOptions& options) {
  declare_validate(command, options);
  command.add_option("--run", options.run, "Run to halt if a critical pointer fails");
  command.add_flag("--critical", options.critical, "Halt the run if it does not resolve");
}

void print_resolved(const Output& out, const json::Value& item) {
  const bool ok = item["ok"].as_bool().value_or(false);
  std::string text = ok ? out.tone(Tone::green, "ok") : out.tone(Tone::red, item["reason"].string_or("?"));
  text += "  " + out.one_line(item["pointer"].string_or(""));
  if (const auto size = item["size_bytes"].as_int()) text += "  " + human_size(static_cast<std::uint64_t>(*size));
  // A pointer to an older revision shows a hash although it is valid.
  if (const json::Value expected = item["expected_hash"];
      expected && !ok && item["reason"].string_or("") != "VERSION_MISMATCH") {
    text += fmt::format("  expected {} got {}", expected.string_or("").substr(0, 16),
                        item["actual_hash"].string_or("nothing").substr(0, 16));
  }
  out.line(text);
  if (!ok && item["detail"]) out.line("  " + out.one_line(item["detail"].string_or("")));
  if (const json::Value current = item["current"]) out.line("  current  " + out.one_line(current.string_or("")));
  const std::string type = item["type"].string_or("");
  if ((type != "evidence" && type != "log") || !item["text"]) return;
  std::string said = item["text"].string_or("");
  if (said.ends_with('\n')) said.pop_back();
  out.line(out.safe(said));
  // Not every client may list the whole log.
  const bool of_run = item["pointer"].string_or("").starts_with("log://runs/");
  if (item["cursor"])
    out.line(out.advised(of_run ? "  … and more: muniment event list --run RUN" : "  … and more: muniment event list"));
}

// Replaces the name of a request parameter in an error by the name of the option.
Error as_said_here(Error error) {
  constexpr std::string_view parameter = "set run_id to the run that halts";
  const std::size_t at = error.message.find(parameter);
  if (at != std::string::npos) error.message.replace(at, parameter.size(), "set --run to the run that halts");
  return error;
}

Status ask_pointers(Session& session, const PointerOptions& options, const std::string& method) {
  json::Writer params;
  params.begin_object().key("pointers").begin_array();
  for (const std::string& pointer : options.pointers) params.string(pointer);
  params.end_array();
  if (!options.run.empty()) {
    ASSIGN_OR_RETURN(const std::string run_id, session.run_id(options.run));
    params.member("run_id", run_id);
  }
  if (options.critical) params.member("critical", true);
  add_asof(params, options.asof);
  params.end_object();
  Result<Message> answered = session.call(method, params.text());
  if (!answered) return as_said_here(std::move(answered).error());
  ASSIGN_OR_RETURN(const Message answer, std::move(answered));
  for (const json::Value item : answer.result()["results"]) {
    if (!item["ok"].as_bool().value_or(false)) session.exit_code = exit_refused;
    if (!session.options.json) print_resolved(session.out(), item);
  }
  for (const json::Value halt : answer.result()["halted"]) {
    session.exit_code = exit_halted;
    if (session.options.json) continue;
    const Output& out = session.out();
    out.line(out.tone(Tone::red, "halted") + "  " + out.one_line(halt["run_id"].string_or("")) +
             out.advised("  See: muniment recover " + shell_word(halt["run_id"].string_or(""))));
  }
  session.printed_json(answer);
  return success();
}

Status resolve_pointers(Session& session, const PointerOptions& options) {
  return ask_pointers(session, options, "pointer.resolve");
}

Status validate_pointers(Session& session, const PointerOptions& options) {
  return ask_pointers(session, options, "pointer.validate");
}

}  // namespace

void add_ledger_commands(CLI::App& app, Session& session) {
  CLI::App& claim = add_group(app, "claim", "Record, list and decide claims");
  add_command<ClaimOptions>(session, claim, "record", "Record a claim", declare_claim, record_claim);
  add_command<LedgerListOptions>(session, claim, "list", "List the claims of a run", declare_claim_list, list_claims);
  add_command<DecideOptions>(session, claim, "decide", "Set the status of a claim", declare_decide, decide_claim);
  CLI::App& evidence = add_group(app, "evidence", "Record, link, list and check evidence for claims");
  add_command<EvidenceOptions>(session, evidence, "add", "Record evidence", declare_evidence, add_evidence);
  add_command<EvidenceIdOptions>(session, evidence, "get", "Show a piece of evidence and its uses", declare_evidence_id,
                                 get_evidence);
  add_command<LinkOptions>(session, evidence, "link", "Link evidence to a claim of its run", declare_link,
                           link_evidence);
  add_command<LedgerListOptions>(session, evidence, "list", "List evidence", declare_evidence_list, list_evidence);
  add_command<LedgerListOptions>(session, app, "list-evidence", "List evidence", declare_evidence_list, list_evidence);
  add_evidence_file_commands(app, evidence, session);
  add_command<EvidenceIdOptions>(session, evidence, "verify", "Check that evidence is unchanged since it was recorded",
                                 declare_evidence_id, verify_evidence);
  CLI::App& pointer = add_group(app, "pointer", "Resolve and validate pointers");
  add_command<PointerOptions>(session, pointer, "resolve", "Show the current targets of pointers", declare_resolve,
                              resolve_pointers);
  add_command<PointerOptions>(session, pointer, "validate",
                              "Validate pointers; halts a run of yours that depends on a broken one", declare_validate,
                              validate_pointers);
}

}  // namespace muniment::cli
