// Implements the commands run diff, which compares the calls, working state, files, tokens and cost of two runs, and
// run fork.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <map>

#include "base/limits.hpp"
#include "base/text.hpp"
#include "cli/commands.hpp"
#include "cli/show/describe.hpp"
#include "cli/show/run_diff.hpp"
#include "client/connect/pages.hpp"

namespace muniment::cli {
namespace {

constexpr std::size_t state_differences_max = 50;  // number of differences that are shown
constexpr std::size_t calls_max = 100'000;         // calls per run that are held in memory

struct DiffOptions {
  std::string first;
  std::string second;
  bool all = false;
};

void declare_diff(CLI::App& command, DiffOptions& options) {
  command.add_option("A", options.first, "A run")->required()->type_name("RUN");
  command.add_option("B", options.second, "Another")->required()->type_name("RUN");
  command.add_flag("--all", options.all, "Include calls that are equal in both runs");
}

struct DiffedRun {
  std::string run_id;
  std::vector<DiffCall> calls;
  std::map<std::string, std::string> files;   // key: path; value: the change, and the hash if known
  Result<std::string> state = std::string();  // state as JSON
};

DiffCall call_of_event(const json::Value& event) {
  const json::Value body = event["body"];
  DiffCall call;
  call.run_seq = event["run_seq"].as_int().value_or(0);
  if (event["type"].string_or("") == "command.started") {
    call.name = "$";
    call.arguments = json::canonical(body["argv"]);
  } else {
    call.name = body["name"].string_or("");
    // Spilled arguments are compared by hash.
    call.arguments = body["arguments"] ? json::canonical(body["arguments"]) : body["ref"]["hash"].string_or("");
  }
  call.call_id = body["call_id"].string_or("");
  return call;
}

void add_result(const json::Value& event, DiffCall& call) {
  const json::Value body = event["body"];
  call.status = body["exit_code"] ? "exit " + std::string(body["exit_code"].source()) : body["status"].string_or("?");
  for (const json::Value part : body["content"]) {
    call.result += part["hash"] ? part["hash"].string_or("") : json::canonical(part);
  }
}

// Returns the state of a run; a large state is an artifact that is read in pieces.
Result<std::string> state_text(Session& session, const Message& answer) {
  const json::Value result = answer.result();
  if (result["state"]) return std::string(result["state"].source());
  std::string text;
  for (std::optional<std::int64_t> offset = 0; offset;) {
    json::Writer params;
    params.begin_object().member("artifact_id", result["state_artifact"].string_or("")).member("offset", *offset);
    params.member("length", 1 << 20).member("encoding", "raw").end_object();
    ASSIGN_OR_RETURN(const Message piece, session.call("artifact.get", params.text()));
    text += piece.raw;
    offset = piece.result()["next_offset"].as_int();
  }
  return text;
}

Result<std::string> read_state(Session& session, const std::string& named) {
  ASSIGN_OR_RETURN(const Message answer, session.call("run.rehydrate", named));
  return state_text(session, answer);
}

Result<DiffedRun> read_run(Session& session, const std::string& name) {
  DiffedRun run;
  ASSIGN_OR_RETURN(run.run_id, session.run_id(name));
  const std::string named = "{\"run_id\":" + json::quote(run.run_id) + "}";
  RETURN_IF_ERROR(session.call("run.get", named));
  run.state = read_state(session, named);
  std::map<std::string, std::size_t> open;
  json::Writer params;
  params.begin_object().member("run_id", run.run_id).member("limit", limits::page_items_max).key("types").begin_array();
  for (const char* type : {"tool.called", "tool.returned", "command.started", "command.ended", "file.changed"})
    params.string(type);
  params.end_array().end_object();
  RETURN_IF_ERROR(
      each_item(session, "event.list", params.text(), "events", [&](const json::Value& event) -> Result<bool> {
        const std::string type = event["type"].string_or("");
        const json::Value body = event["body"];
        if (type == "file.changed") {
          run.files[body["path"].string_or("")] =
              body["change"].string_or("") + " " + body["after_hash"].string_or("").substr(0, 16);
        } else if (type.ends_with(".called") || type.ends_with(".started")) {
          if (run.calls.size() == calls_max)
            return Error(Errc::too_large, fmt::format("{} has more than {} calls", run.run_id, grouped(calls_max)));
          run.calls.push_back(call_of_event(event));
          open[run.calls.back().call_id] = run.calls.size() - 1;
        } else if (const auto call = open.find(body["call_id"].string_or("")); call != open.end()) {
          add_result(event, run.calls[call->second]);
        }
        return true;
      }));
  return run;
}

// Prints the differences as text lines or as one JSON object each.
class DiffReport {
 public:
  DiffReport(Session& session, const DiffOptions& options, const DiffedRun& a, const DiffedRun& b)
      : session_(session), out_(session.out()), options_(options), a_(a), b_(b) {}

  Status tell() {
    if (!json())
      out_.line(
          out_.tone(Tone::bold, fmt::format("--- {}\n+++ {}", out_.one_line(a_.run_id), out_.one_line(b_.run_id))));
    for (const DiffStep& step : align(a_.calls, b_.calls)) tell_step(step);
    if (!json() && same_ > 0)
      out_.line(out_.tone(Tone::dim,
                          fmt::format("  {} calls are equal in both runs{}", same_, options_.all ? "" : ": --all")));
    RETURN_IF_ERROR(tell_state());
    tell_files();
    if (!json() && differences_ == 0) {
      out_.line(compared_state_ ? "no difference in calls, working state, files or cost"
                                : "no difference in calls or files; working state and cost were not compared");
    }
    if (differences_ > 0 || !compared_state_) session_.exit_code = exit_refused;
    return success();
  }

 private:
  bool json() const { return session_.options.json; }

  static std::string words(const DiffCall& call) { return call.name + " " + call.arguments; }

  void tell_step(const DiffStep& step) {
    if (step.kind != DiffKind::same) {
      const bool removed = step.kind == DiffKind::only_first;
      const DiffCall& call = removed ? a_.calls[step.first] : b_.calls[step.second];
      ++differences_;
      if (json()) {
        tell_json(removed ? "only_a" : "only_b", removed ? &call : nullptr, removed ? nullptr : &call);
      } else {
        out_.line(out_.tone(
            removed ? Tone::red : Tone::green,
            fmt::format("{} #{:<5} {}", removed ? "-" : "+", call.run_seq, fit(out_.one_line(words(call)), width()))));
      }
      return;
    }
    const DiffCall& first = a_.calls[step.first];
    const DiffCall& second = b_.calls[step.second];
    const bool other_result = first.status != second.status || first.result != second.result;
    if (other_result)
      ++differences_;
    else
      ++same_;
    if (!other_result && !options_.all) return;
    if (json()) {
      tell_json(other_result ? "other_result" : "same", &first, &second);
    } else if (other_result) {
      const std::string results = first.status == second.status
                                      ? second.status + ", with a different result"
                                      : fmt::format("{} → {}", shown(first.status), shown(second.status));
      out_.line(
          out_.tone(Tone::yellow, fmt::format("~ #{:<5} {}  {}", second.run_seq,
                                              fit(out_.one_line(words(second)), width()), out_.one_line(results))));
    } else {
      out_.line(fmt::format("  #{:<5} {}", second.run_seq, fit(out_.one_line(words(second)), width())));
    }
  }

  static std::string shown(const std::string& status) { return status.empty() ? "no result" : status; }
  std::size_t width() const { return out_.width() > 40 ? out_.width() - 30 : 10; }

  void tell_json(std::string_view kind, const DiffCall* first, const DiffCall* second) const {
    json::Writer out;
    out.begin_object().member("what", "call").member("kind", kind).member("name", (first ? first : second)->name);
    out.member("arguments", (first ? first : second)->arguments);
    if (first)
      out.key("a").begin_object().member("run_seq", first->run_seq).member("status", first->status).end_object();
    if (second)
      out.key("b").begin_object().member("run_seq", second->run_seq).member("status", second->status).end_object();
    out.end_object();
    out_.json_line(out.text());
  }

  void tell_place(std::string_view what, const std::string& path, std::string_view a, std::string_view b) {
    ++differences_;
    if (json()) {
      json::Writer out;
      out.begin_object().member("what", what).member("path", path).member("a", a).member("b", b).end_object();
      out_.json_line(out.text());
    } else {
      out_.line(fmt::format("{:<6} {}  {} → {}", what, out_.one_line(path),
                            out_.tone(Tone::red, fit(out_.one_line(a.empty() ? "nothing" : a), 60)),
                            out_.tone(Tone::green, fit(out_.one_line(b.empty() ? "nothing" : b), 60))));
    }
  }

  Status tell_state() {
    for (const DiffedRun* run : {&a_, &b_}) {
      if (run->state) continue;
      compared_state_ = false;
      const Error& error = run->state.error();
      fmt::print(
          stderr, "muniment: working state and cost are not compared, since the state of {} cannot be read: {}: {}\n",
          escape_for_terminal(run->run_id), name_of(error.code), escape_for_terminal(out_.advised(error.message)));
    }
    if (!compared_state_) return success();
    ASSIGN_OR_RETURN(const json::Document first, json::parse(std::string_view(*a_.state)));
    ASSIGN_OR_RETURN(const json::Document second, json::parse(std::string_view(*b_.state)));
    const json::Value a = first.root();
    const json::Value b = second.root();
    const auto tell = [this](std::string_view what) {
      return [this, what](const std::string& path, std::string_view x, std::string_view y) {
        tell_place(what, path, x, y);
      };
    };
    const bool all = differing(a["working"], b["working"], state_differences_max, tell("state"));
    if (!all)
      fmt::print(stderr, "muniment: the state differs in more than the {} places shown\n", state_differences_max);
    differing(a["usage"], b["usage"], state_differences_max, tell("usage"));
    return success();
  }

  void tell_files() {
    for (const auto& [path, change] : a_.files) {
      const auto other = b_.files.find(path);
      if (other == b_.files.end() || other->second != change)
        tell_place("file", path, change, other == b_.files.end() ? "" : other->second);
    }
    for (const auto& [path, change] : b_.files) {
      if (!a_.files.contains(path)) tell_place("file", path, "", change);
    }
  }

  Session& session_;
  const Output& out_;
  const DiffOptions& options_;
  const DiffedRun& a_;
  const DiffedRun& b_;
  std::size_t same_ = 0;
  std::size_t differences_ = 0;
  bool compared_state_ = true;
};

Status diff_runs(Session& session, const DiffOptions& options) {
  ASSIGN_OR_RETURN(const DiffedRun first, read_run(session, options.first));
  ASSIGN_OR_RETURN(const DiffedRun second, read_run(session, options.second));
  return DiffReport(session, options, first, second).tell();
}

struct ForkOptions {
  std::string run;
  std::string id;
  std::string agent;
  std::string goal;
  std::optional<std::int64_t> at;
};

void declare_fork(CLI::App& command, ForkOptions& options) {
  command.add_option("RUN", options.run, "Run to fork");
  command.add_option("--at", options.at, "run_seq of the last shared event (default: the newest)");
  command.add_option("--id", options.id, "Id of the new run (default: generated by the daemon)");
  command.add_option("--agent", options.agent, "Agent of the new run (default: same agent)");
  command.add_option("--goal", options.goal, "Goal of the new run (default: same goal)");
}

// Appends the working state as the first change of the new run. A state too large for a request line becomes an
// artifact of the new run.
Status take_working(Session& session, const std::string& run_id, const std::string& patch) {
  constexpr std::size_t inline_bytes_max = 256 * 1024;
  json::Writer params;
  params.begin_object().member("run_id", run_id).member("type", "state.patched").member("spill", true);
  params.key("body").begin_object().member("format", "json_patch");
  if (patch.size() <= inline_bytes_max) {
    params.raw_member("patch", patch);
  } else {
    json::Writer put;
    put.begin_object()
        .member("run_id", run_id)
        .member("mime_type", "application/json")
        .member("body_bytes", patch.size())
        .end_object();
    ASSIGN_OR_RETURN(Client* const client, session.client());
    ASSIGN_OR_RETURN(const Message stored, client->call("artifact.put", put.text(), std::string_view(patch)));
    const json::Value artifact = stored.result();
    params.key("ref").begin_object().member("artifact_id", artifact["artifact_id"].string_or(""));
    params.member("hash", artifact["hash"].string_or("")).raw_member("size_bytes", artifact["size_bytes"].source());
    params.member("mime_type", "application/json").end_object();
  }
  params.end_object().end_object();
  RETURN_IF_ERROR(session.call("event.append", params.text()));
  return success();
}

Status fork_run(Session& session, const ForkOptions& options) {
  ASSIGN_OR_RETURN(const std::string run_id, session.run_id(options.run));
  json::Writer named;
  named.begin_object().member("run_id", run_id).end_object();
  ASSIGN_OR_RETURN(const Message head, session.call("run.get", named.text()));
  json::Writer asked;
  asked.begin_object().member("run_id", run_id);
  if (options.at) {
    json::Writer place;
    place.begin_object().member("run_id", run_id).member("run_seq", *options.at).end_object();
    ASSIGN_OR_RETURN(const Message event, session.call("event.get", place.text()));
    asked.raw_member("asof", event.result()["event"]["seq"].source());
  }
  asked.end_object();
  ASSIGN_OR_RETURN(const Message had, session.call("run.rehydrate", asked.text()));
  ASSIGN_OR_RETURN(const std::string state, state_text(session, had));
  ASSIGN_OR_RETURN(const json::Document document, json::parse(std::string_view(state)));
  const std::string working(document.root()["working"].source());
  const json::Value run = head.result()["run"];
  const std::string agent = options.agent.empty() ? run["agent"].string_or("") : options.agent;
  const std::string goal = options.goal.empty() ? run["goal"].string_or("") : options.goal;
  json::Writer start;
  start.begin_object();
  if (!options.id.empty()) start.member("run_id", options.id);
  start.key("agent").begin_object().member("name", agent).end_object();
  if (!goal.empty()) start.member("goal", goal);
  start.key("forked_from")
      .begin_object()
      .member("run_id", run_id)
      .raw_member("run_seq", had.result()["run_seq"].source());
  start.member("state_hash", had.result()["state_hash"].string_or("")).end_object().end_object();
  ASSIGN_OR_RETURN(const Message started, session.call("run.start", start.text()));
  if (started.result()["resumed"].as_bool().value_or(false)) {
    return Error(Errc::conflict,
                 "run_id " + options.id + " is taken. Choose another id, or omit --id to have one generated.");
  }
  const std::string fork_id = started.result()["run_id"].string_or("");
  if (working != "{}")
    RETURN_IF_ERROR(take_working(session, fork_id, "[{\"op\":\"add\",\"path\":\"\",\"value\":" + working + "}]"));
  if (session.printed_json(started)) return success();
  session.out().line(fork_id);
  fmt::print(stderr, "from {} at #{}, state {}\n", escape_for_terminal(run_id), had.result()["run_seq"].source(),
             had.result()["state_hash"].string_or("").substr(0, 16));
  return success();
}

}  // namespace

void add_run_diff(CLI::App& run, Session& session) {
  add_command<DiffOptions>(session, run, "diff", "Compare two runs (exit code 1: they differ)", declare_diff,
                           diff_runs);
  add_command<ForkOptions>(session, run, "fork", "Start a run from the state of another run", declare_fork, fork_run);
}

}  // namespace muniment::cli
