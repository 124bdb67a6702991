// Implements the command why, which traces a claim, an event or a file to its causes: claim → pointer → artifact → the
// call that stored it → the model that requested the call → the model's context window; and what the run read before
// the claim. The catalogue of event types says what an event rests on. Every link is recorded in the log; if a call
// names no model, the newest model answer before it is shown and labelled as "called after".
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <optional>
#include <set>

#include "base/text.hpp"
#include "cli/commands.hpp"
#include "cli/connect/which_kind.hpp"
#include "cli/show/describe.hpp"
#include "client/connect/pages.hpp"
#include "events/catalogue.hpp"
#include "evidence/pointer.hpp"

namespace muniment::cli {
namespace {

constexpr std::size_t why_depth_max = 16;
constexpr std::size_t links_max = 500;
constexpr std::size_t looked_at_max = 20'000;   // events searched per link
constexpr std::size_t reads_max = 5;            // recalls, queries and reads before a claim
constexpr std::size_t window_entries_max = 20;  // entries of a manifest that are shown

struct WhyOptions {
  std::string what;
  std::optional<std::int64_t> seq;
  std::string run;
  std::size_t limit = 3;
  std::optional<std::int64_t> log_no;
};

void declare_why(CLI::App& command, WhyOptions& options) {
  command.add_option("WHAT", options.what, "Event (seq or RUN:RUN_SEQ), claim id, pointer or file path");
  command.add_option("--seq", options.seq, "Event with this seq, even if a run has the same number as id")
      ->check(CLI::NonNegativeNumber);
  command.add_option("--run", options.run, "Search for a file or an id only in this run");
  command.add_option("-n,--limit", options.limit, "Maximum number of changes of a file, newest first")
      ->capture_default_str();
  command.add_option("--log", options.log_no, "Closed log of the seq or RUN:RUN_SEQ (default: current log)")
      ->check(CLI::PositiveNumber);
}

std::string text_member(const json::Value& body, std::string_view name) { return body[name].string_or(""); }

// Number of the log that holds an event. Each log has its own seq, and after a restore a link may lead into a closed
// log. Empty for the current log.
using LogNo = std::optional<std::int64_t>;

LogNo log_of(const json::Value& result) { return result["log_no"].as_int(); }

// Returns `params` for event.get.
std::string run_seq_params(const std::string& run_id, std::int64_t run_seq, LogNo log) {
  json::Writer params;
  params.begin_object().member("run_id", run_id).member("run_seq", run_seq);
  if (log) params.member("log_no", *log);
  params.end_object();
  return std::move(params).text();
}

// Position of an event that was found and is read again later.
struct Place {
  std::string seq;  // empty: not found
  LogNo log;

  std::string params() const { return "{\"seq\":" + seq + (log ? ",\"log_no\":" + std::to_string(*log) : "") + "}"; }
};

class Why {
 public:
  explicit Why(Session& session) : session_(session) {}

  // `relation` is the relation of the event to its parent in the output.
  Status explain(const json::Value& event, LogNo log, std::string_view relation, std::size_t depth) {
    const std::string seq(event["seq"].source());
    const bool again = !seen_.insert({log, seq}).second;
    const bool erased = event["redacted"].as_bool().value_or(false);
    print(relation, depth, event["run_id"].string_or(""), {seq, log}, event["type"].string_or(""),
          (erased ? "was erased" : summary_of(event)) + (again ? " (above)" : ""));
    if (erased || again || depth >= why_depth_max || links_ >= links_max) return success();
    const std::string type = event["type"].string_or("");
    const json::Value body = event["body"];
    for (const json::Value cause : body["cause"])
      RETURN_IF_ERROR(explain_place(event, log, cause.as_int().value_or(-1), "caused by", depth + 1));
    if (const events::TypeInfo* const info = events::find_type(type))
      RETURN_IF_ERROR(explain_rests(*info, event, depth + 1));
    if (type == "claim.recorded") return explain_claim(event, log, depth);
    if (type == "evidence.recorded") return explain_command(event, log, depth);
    if (type == "tool.called") return explain_call(event, log, depth);
    if (type == "model.answered")
      return explain_earlier(event, log, {"model.called"}, "call_id", text_member(body, "call_id"), "answers", depth);
    if (type == "command.ended")
      return explain_earlier(event, log, {"command.started"}, "call_id", text_member(body, "call_id"), "ended", depth);
    if (type == "artifact.stored") return explain_artifact(event, log, depth);
    if (body["call_id"]) {
      return explain_earlier(event, log, {"tool.called", "model.called"}, "call_id", text_member(body, "call_id"),
                             type == "tool.returned" ? "returned by" : "part of", depth);
    }
    return success();
  }

  Status explain_pointer(const std::string& text, std::string_view relation, std::size_t depth) {
    const auto pointer = evidence::parse_pointer(text);
    if (!pointer) {
      print(relation, depth, "", {}, "pointer", text + "  PARSE_ERROR");
      return success();
    }
    ASSIGN_OR_RETURN(const Message checked,
                     session_.call("pointer.validate", "{\"pointers\":[" + json::quote(text) + "]}"));
    const json::Value result = *checked.result()["results"].begin();
    const bool good = result["ok"].as_bool().value_or(false);
    const LogNo log = log_of(result);
    print(relation, depth, pointer->run_id, {"", log}, "pointer",
          text + (good ? "" : "  " + text_member(result, "reason")));
    if (!good || depth >= why_depth_max) return success();
    switch (pointer->kind) {
      case evidence::PointerKind::artifact: return explain_stored(pointer->id.text(), depth + 1);
      case evidence::PointerKind::manifest: return explain_manifest(pointer->id.text(), "is", depth + 1);
      case evidence::PointerKind::evidence:
        if (pointer->corpus != "run") return success();
        return explain_params(run_seq_params(pointer->run_id, pointer->seq, log), "is", depth + 1);
      case evidence::PointerKind::snapshot:
      case evidence::PointerKind::run:
      case evidence::PointerKind::log: return success();
    }
    return success();
  }

  // Returns `params` for event.get.
  Status explain_params(const std::string& params, std::string_view relation, std::size_t depth) {
    ASSIGN_OR_RETURN(const Message answer, session_.call("event.get", params));
    return explain(answer.result()["event"], log_of(answer.result()), relation, depth);
  }

  Status explain_stored(const std::string& artifact_id, std::size_t depth) {
    ASSIGN_OR_RETURN(const Message answer,
                     session_.call("artifact.stat", "{\"artifact_id\":" + json::quote(artifact_id) + "}"));
    return explain_params(
        Place{std::string(answer.result()["artifact"]["seq"].source()), log_of(answer.result())}.params(), "stored by",
        depth);
  }

  Status explain_manifest(const std::string& manifest_id, std::string_view relation, std::size_t depth) {
    ASSIGN_OR_RETURN(const Message answer,
                     session_.call("manifest.get", "{\"manifest_id\":" + json::quote(manifest_id) + "}"));
    const json::Value had = answer.result();
    // The daemon's context packs have passages, the manifests of clients have entries.
    const json::Value entries = had["manifest"]["passages"] ? had["manifest"]["passages"] : had["manifest"]["entries"];
    const bool erased = had["erased"].as_bool().value_or(false);
    print(relation, depth, text_member(had, "run_id"), {std::string(had["seq"].source()), log_of(had)}, "manifest",
          erased ? manifest_id + " was erased" : fmt::format("{} with {} entries", manifest_id, entries.size()));
    std::size_t shown = 0;
    for (const json::Value entry : entries) {
      if (shown++ == window_entries_max) break;
      print("held", depth + 1, "", {}, "entry", std::string(entry.source()));
    }
    return success();
  }

 private:
  using Types = std::vector<std::string>;

  Status explain_place(const json::Value& event, LogNo log, std::int64_t run_seq, std::string_view relation,
                       std::size_t depth) {
    const auto answer = session_.call("event.get", run_seq_params(event["run_id"].string_or(""), run_seq, log));
    if (!answer && answer.error().code == Errc::not_found)
      return success();  // a client may name an event that does not exist
    if (!answer) return answer.error();
    return explain(answer->result()["event"], log, relation, depth);
  }

  // Explains what the row of the type says that the event rests on. An artifact that holds a part of an event is
  // explained only if something critical rests on it.
  Status explain_rests(const events::TypeInfo& type, const json::Value& event, std::size_t depth) {
    std::vector<std::pair<events::Names, std::string>> named;
    events::each_named(type, event["body"],
                       [&](events::Names names, const std::string& text) { named.emplace_back(names, text); });
    for (const auto& [names, text] : named) {
      if (links_ >= links_max) return success();
      switch (names) {
        case events::Names::pointer: {
          const bool is_evidence = type.name == "evidence.recorded";
          RETURN_IF_ERROR(explain_pointer(text, is_evidence ? "is" : "rests on", depth));
          break;
        }
        case events::Names::artifact: {
          if (type.critical_for.empty()) break;
          RETURN_IF_ERROR(
              explain_pointer("artifact://" + event["run_id"].string_or("") + "/" + text, "rests on", depth));
          break;
        }
        case events::Names::evidence: RETURN_IF_ERROR(explain_evidence(text, depth)); break;
        case events::Names::manifest: RETURN_IF_ERROR(explain_manifest(text, "its window", depth)); break;
        case events::Names::entries: RETURN_IF_ERROR(explain_manifest(text, "is", depth)); break;
      }
    }
    return success();
  }

  Status explain_evidence(const std::string& id, std::size_t depth) {
    const auto answer = session_.call("evidence.get", "{\"evidence_id\":" + json::quote(id) + "}");
    if (!answer && answer.error().code == Errc::not_found) return success();  // not of this log, or of another user
    if (!answer) return answer.error();
    return explain_params(
        Place{std::string(answer->result()["evidence"]["seq"].source()), log_of(answer->result())}.params(), "rests on",
        depth);
  }

  // Explains the recorded command from which the daemon made evidence.
  Status explain_command(const json::Value& evidence, LogNo log, std::size_t depth) {
    const std::string id = text_member(evidence["body"], "command_id");
    if (id.empty()) return success();
    std::string found;
    RETURN_IF_ERROR(each_event(evidence["run_id"].string_or(""), log, {"command.started"},
                               evidence["run_seq"].as_int().value_or(0), "desc", [&](const json::Value& event) {
                                 if (event["event_id"].string_or("") == id) found = event["seq"].source();
                                 return found.empty();
                               }));
    return found.empty() ? success() : explain_params(Place{found, log}.params(), "made from", depth + 1);
  }

  Status explain_claim(const json::Value& claim, LogNo log, std::size_t depth) {
    const std::string id = text_member(claim["body"], "claim_id");
    std::vector<std::pair<std::string, std::string>> linked;  // evidence and its relation to the claim
    RETURN_IF_ERROR(
        each_event(claim["run_id"].string_or(""), log, {"evidence.linked"}, -1, "asc", [&](const json::Value& event) {
          if (text_member(event["body"], "claim_id") == id)
            linked.emplace_back(text_member(event["body"], "evidence_id"), text_member(event["body"], "relation"));
          return true;
        }));
    for (const auto& [evidence_id, relation] : linked) {
      RETURN_IF_ERROR(explain_found(claim["run_id"].string_or(""), log, -1, {"evidence.recorded"}, "evidence_id",
                                    evidence_id, relation, depth + 1));
    }
    return explain_reads(claim, log, depth + 1);
  }

  // Explains what the run read last before the claim.
  Status explain_reads(const json::Value& claim, LogNo log, std::size_t depth) {
    static const Types reads = events::types_where([](const auto& type) { return type.has_view("retrieval_report"); });
    std::vector<Place> found;
    RETURN_IF_ERROR(each_event(claim["run_id"].string_or(""), log, reads, claim["run_seq"].as_int().value_or(0) - 1,
                               "desc", [&](const json::Value& event) {
                                 found.push_back({std::string(event["seq"].source()), log});
                                 return found.size() < reads_max;
                               }));
    for (const Place& place : found) RETURN_IF_ERROR(explain_params(place.params(), "read before", depth));
    return success();
  }

  // Finds the model that requested the call: from the call itself, from an answer that names the call, or by position.
  Status explain_call(const json::Value& call, LogNo log, std::size_t depth) {
    const std::string run_id = call["run_id"].string_or("");
    const std::int64_t before = call["run_seq"].as_int().value_or(0) - 1;
    const std::string wanted = text_member(call["body"], "requested_by");
    const std::string id = text_member(call["body"], "call_id");
    std::string newest;
    std::string found;
    RETURN_IF_ERROR(
        each_event(run_id, log, {"model.answered", "message.added"}, before, "desc", [&](const json::Value& event) {
          const json::Value body = event["body"];
          if (event["type"].string_or("") == "message.added" && text_member(body, "role") != "assistant") return true;
          if (newest.empty()) newest = std::string(event["seq"].source());
          bool asks = !wanted.empty() && text_member(body, "call_id") == wanted;
          for (const json::Value part : body["content"]) asks = asks || (!id.empty() && text_member(part, "id") == id);
          if (asks) found = std::string(event["seq"].source());
          return found.empty();
        }));
    if (!found.empty()) return explain_params(Place{found, log}.params(), "asked for by", depth + 1);
    return newest.empty() ? success() : explain_params(Place{newest, log}.params(), "called after", depth + 1);
  }

  // The event after a spilled artifact names it. No event names the other artifacts.
  Status explain_artifact(const json::Value& stored, LogNo log, std::size_t depth) {
    constexpr int near = 64;
    const std::string id = text_member(stored["body"], "artifact_id");
    const std::int64_t place = stored["run_seq"].as_int().value_or(0);
    json::Writer params;
    params.begin_object()
        .member("run_id", stored["run_id"].string_or(""))
        .member("from_run_seq", place + 1)
        .member("limit", near);
    if (log) params.member("log_no", *log);
    params.end_object();
    ASSIGN_OR_RETURN(const Message page, session_.call("event.list", params.text()));
    for (const json::Value event : page.result()["events"]) {
      const bool names = event["body"].source().find(id) != std::string_view::npos;
      const std::string type = event["type"].string_or("");
      if (names && type != "claim.recorded" && type != "evidence.recorded")
        return explain(event, log, "part of", depth + 1);
    }
    return success();
  }

  Status explain_earlier(const json::Value& event, LogNo log, const Types& types, std::string_view member,
                         const std::string& value, std::string_view relation, std::size_t depth) {
    return explain_found(event["run_id"].string_or(""), log, event["run_seq"].as_int().value_or(0) - 1, types, member,
                         value, relation, depth + 1);
  }

  // Finds the newest event up to `to_run_seq` (-1: the end) whose body has this member.
  Status explain_found(const std::string& run_id, LogNo log, std::int64_t to_run_seq, const Types& types,
                       std::string_view member, const std::string& value, std::string_view relation,
                       std::size_t depth) {
    if (value.empty()) return success();  // an empty value matches nothing
    std::string found;
    RETURN_IF_ERROR(each_event(run_id, log, types, to_run_seq, "desc", [&](const json::Value& event) {
      if (text_member(event["body"], member) == value) found = std::string(event["seq"].source());
      return found.empty();
    }));
    return found.empty() ? success() : explain_params(Place{found, log}.params(), relation, depth);
  }

 public:
  // Returns all logs, the current one first.
  Result<std::vector<LogNo>> logs() {
    ASSIGN_OR_RETURN(const Message status, session_.call("server.status", "{}"));
    std::vector<LogNo> found{std::nullopt};
    for (const json::Value log : status.result()["earlier_logs"]) found.push_back(log_of(log));
    return found;
  }

  // Returns the log that contains the run.
  Result<std::vector<LogNo>> logs_of(const std::string& run_id) {
    ASSIGN_OR_RETURN(const Message run, session_.call("run.get", "{\"run_id\":" + json::quote(run_id) + "}"));
    return std::vector<LogNo>{log_of(run.result())};
  }

  // Calls `take` for each event until it returns false. An empty `run_id` means the whole log.
  Status each_event(const std::string& run_id, LogNo log, const Types& types, std::int64_t to_run_seq,
                    std::string_view order, const std::function<bool(const json::Value&)>& take) {
    json::Writer params;
    params.begin_object().member("types", types).member("order", order).member("limit", 1000);
    if (!run_id.empty()) params.member("run_id", run_id);
    if (to_run_seq >= 0) params.member("to_run_seq", to_run_seq);
    if (log) params.member("log_no", *log);
    params.end_object();
    std::size_t looked_at = 0;
    return each_item(session_, "event.list", params.text(), "events", [&](const json::Value& event) -> Result<bool> {
      if (looked_at++ == looked_at_max) {
        fmt::print(stderr, "muniment: only {} events were searched\n", grouped(looked_at_max));
        return false;
      }
      return take(event);
    });
  }

  std::size_t links() const { return links_; }

 private:
  void print(std::string_view relation, std::size_t depth, const std::string& run_id, const Place& at,
             std::string_view type, const std::string& text) {
    ++links_;
    const std::string& seq = at.seq;
    const Output& out = session_.out();
    if (session_.options.json) {
      json::Writer writer;
      writer.begin_object().member("depth", depth).member("relation", relation).member("type", type);
      if (!run_id.empty()) writer.member("run_id", run_id);
      if (!seq.empty()) writer.raw_member("seq", seq);
      if (at.log) writer.member("log_no", *at.log);
      writer.member("text", text).end_object();
      out.json_line(writer.text());
      return;
    }
    const std::string head = std::string(2 * depth, ' ') + (relation.empty() ? "" : std::string(relation) + "  ");
    const std::string place = seq.empty() ? std::string()
                                          : fmt::format("seq {} of {}{}  ", seq, out.one_line(run_id),
                                                        at.log ? fmt::format(" in log {}", *at.log) : "");
    const std::size_t used = columns_of(head) + columns_of(place) + type.size() + 2;
    out.line(
        out.tone(Tone::dim, head) + out.tone(Tone::dim, place) + out.tone(Tone::bold, type) + "  " +
        (out.terminal() && out.width() > used + 20 ? fit(out.one_line(text), out.width() - used) : out.one_line(text)));
  }

  Session& session_;
  std::set<std::pair<LogNo, std::string>> seen_;
  std::size_t links_ = 0;
};

// Shows the newest events that changed or read the file, matching the end of the path.
Status why_file(Session& session, Why& why, const WhyOptions& options) {
  std::string run_id;
  if (!options.run.empty()) {
    ASSIGN_OR_RETURN(run_id, session.run_id(options.run));
  }
  std::vector<Place> found;
  ASSIGN_OR_RETURN(const std::vector<LogNo> logs, run_id.empty() ? why.logs() : why.logs_of(run_id));
  for (const LogNo log : logs) {
    for (const char* type : {"file.changed", "file.read"}) {
      if (found.size() >= options.limit) break;
      RETURN_IF_ERROR(why.each_event(run_id, log, {type}, -1, "desc", [&](const json::Value& event) {
        const std::string path = text_member(event["body"], "path");
        if (path == options.what || path.ends_with("/" + options.what))
          found.push_back({std::string(event["seq"].source()), log});
        return found.size() < options.limit;
      }));
    }
  }
  for (const Place& place : found) RETURN_IF_ERROR(why.explain_params(place.params(), "", 0));
  if (found.empty())
    return Error(Errc::not_found,
                 options.what + " is not the seq of an event, a claim id, a pointer or a file named by an event");
  return success();
}

// Finds the row of an erased claim, which keeps its id. `runs`: runs with an erased claim event.
Result<Place> place_of_erased_claim(Session& session, LogNo log, const std::set<std::string>& runs,
                                    const std::string& id) {
  Place found{"", log};
  for (const std::string& run_id : runs) {
    json::Writer params;
    params.begin_object().member("run_id", run_id);
    if (log) params.member("log_no", *log);
    params.end_object();
    RETURN_IF_ERROR(
        each_item(session, "claim.list", params.text(), "claims", [&](const json::Value& claim) -> Result<bool> {
          if (text_member(claim, "claim_id") == id) found.seq = claim["seq"].source();
          return found.seq.empty();
        }));
    if (!found.seq.empty()) break;
  }
  return found;
}

// Finds the event that recorded a claim or evidence.
Result<Place> place_of_entry(Session& session, Why& why, const std::string& run_id, LogNo log, const std::string& id) {
  Place found{"", log};
  std::set<std::string> erased;
  RETURN_IF_ERROR(
      why.each_event(run_id, log, {"claim.recorded", "evidence.recorded"}, -1, "desc", [&](const json::Value& event) {
        const json::Value body = event["body"];
        if (text_member(body, "claim_id") == id || text_member(body, "evidence_id") == id)
          found.seq = event["seq"].source();
        const bool erased_claim =
            event["redacted"].as_bool().value_or(false) && event["type"].string_or("") == "claim.recorded";
        if (erased_claim) erased.insert(event["run_id"].string_or(""));
        return found.seq.empty();
      }));
  return found.seq.empty() ? place_of_erased_claim(session, log, erased, id) : Result<Place>(found);
}

// Explains a UUID: the id of a claim, evidence, an artifact, a manifest or an event.
Status why_id(Session& session, Why& why, const std::string& run, const std::string& id) {
  std::string run_id;
  if (!run.empty()) {
    ASSIGN_OR_RETURN(run_id, session.run_id(run));
  }
  ASSIGN_OR_RETURN(const std::vector<LogNo> logs, run_id.empty() ? why.logs() : why.logs_of(run_id));
  for (const LogNo log : logs) {
    ASSIGN_OR_RETURN(const Place found, place_of_entry(session, why, run_id, log, id));
    if (!found.seq.empty()) return why.explain_params(found.params(), "", 0);
  }
  if (const auto erased = session.call(
          "evidence.get", "{\"evidence_id\":" + json::quote(id) + "}")) {  // evidence without a row still has its event
    return why.explain_params(
        Place{std::string(erased->result()["evidence"]["seq"].source()), log_of(erased->result())}.params(), "", 0);
  }
  if (session.call("artifact.stat", "{\"artifact_id\":" + json::quote(id) + "}")) return why.explain_stored(id, 0);
  if (session.call("manifest.get", "{\"manifest_id\":" + json::quote(id) + "}")) return why.explain_manifest(id, "", 0);
  return Error(Errc::not_found, "no claim, evidence, artifact or manifest has the id " + id);
}

Status explain_why(Session& session, const WhyOptions& options) {
  Why why(session);
  const std::string& what = options.what;
  if (what.empty() != options.seq.has_value())
    return Error(Errc::invalid_argument, "name one object: WHAT, or --seq N");
  if (options.seq) return why.explain_params(Place{std::to_string(*options.seq), options.log_no}.params(), "", 0);
  if (parse_decimal(what) && options.run.empty()) {  // with --run, a number is the name of a file
    if (!options.log_no)
      RETURN_IF_ERROR(
          check_is_only_seq(session, what, fmt::format("--seq {0}, or {0}:RUN_SEQ for an event of the run", what)));
    return why.explain_params(Place{what, options.log_no}.params(), "", 0);
  }
  if (what.find("://") != std::string::npos) return why.explain_pointer(what, "", 0);
  if (parse_uuid(what)) return why_id(session, why, options.run, what);
  if (const std::size_t colon = what.rfind(':'); colon != std::string::npos) {
    if (const auto run_seq = parse_decimal(std::string_view(what).substr(colon + 1))) {
      ASSIGN_OR_RETURN(const std::string run_id, session.run_id(what.substr(0, colon)));
      return why.explain_params(run_seq_params(run_id, *run_seq, options.log_no), "", 0);
    }
  }
  return why_file(session, why, options);
}

}  // namespace

void add_why_command(CLI::App& app, Session& session) {
  add_command<WhyOptions>(session, app, "why", "Trace an event, a claim or a file to its causes", declare_why,
                          explain_why);
}

}  // namespace muniment::cli
