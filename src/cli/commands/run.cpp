// run start | end | show, recover, rehydrate. run list, grep, diff and fork have files of their own.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <future>

#include "base/limits.hpp"
#include "base/text.hpp"
#include "cli/arguments.hpp"
#include "cli/commands.hpp"
#include "cli/connect/pages.hpp"
#include "cli/show/timeline.hpp"
#include "cli/time_option.hpp"

namespace muniment::cli {
namespace {

struct StartOptions {
  std::string run;
  std::string agent;
  std::string goal;
  std::vector<std::string> labels;
  std::string parent;
  std::string external_id;
  std::string continues;
  std::string indexed;
  bool reopen = false;
};

void declare_start(CLI::App& command, StartOptions& options) {
  command.add_option("RUN,--id", options.run, "The run's id; without one, the daemon makes one");
  command.add_option("--agent", options.agent, "Who acts")->required();
  command.add_option("--goal", options.goal, "What for");
  command.add_option("--label", options.labels, "k=v, as often as wanted")->allow_extra_args(false);
  command.add_option("--parent", options.parent, "The run that started this one");
  command.add_option("--continues", options.continues,
                     "The earlier run that this one takes up again, also one of a closed log");
  command.add_option("--external-id", options.external_id, "Its id in another system");
  command
      .add_option("--indexed", options.indexed,
                  "Whether queries find what happens in it; otherwise the setting index_runs says so")
      ->check(CLI::IsMember({"yes", "no"}));
  command.add_flag("--reopen", options.reopen, "Go on with a run that has ended");
}

Status start_run(Session& session, const StartOptions& options) {
  json::Writer params;
  params.begin_object();
  if (!options.run.empty()) params.member("run_id", options.run);
  params.key("agent").begin_object().member("name", options.agent).end_object();
  if (!options.goal.empty()) params.member("goal", options.goal);
  if (!options.labels.empty()) {
    ASSIGN_OR_RETURN(const std::string labels, labels_json(options.labels));
    params.raw_member("labels", labels);
  }
  if (!options.parent.empty()) {
    ASSIGN_OR_RETURN(const std::string parent, session.run_id(options.parent));
    params.key("parent").begin_object().member("run_id", parent).end_object();
  }
  if (!options.continues.empty()) {
    ASSIGN_OR_RETURN(const std::string continues, session.run_id(options.continues));
    RETURN_IF_ERROR(
        session.call("run.get", "{\"run_id\":" + json::quote(continues) + "}"));  // the daemon takes any name
    params.member("continues", continues);
  }
  if (!options.external_id.empty()) params.member("external_id", options.external_id);
  if (!options.indexed.empty()) params.member("indexed", options.indexed == "yes");
  if (options.reopen) params.member("reopen", true);
  params.end_object();
  ASSIGN_OR_RETURN(const Message answer, session.call("run.start", params.text()));
  if (session.printed_json(answer)) return success();
  const json::Value result = answer.result();
  session.out().line(result["run_id"].string_or(""));
  if (result["resumed"].as_bool().value_or(false)) {
    fmt::print(
        stderr,
        "muniment: run {} was there already and goes on as it was started; what this command says of it (--agent, --goal, …) is not recorded\n",
        result["run_id"].string_or(""));
  }
  return success();
}

struct EndOptions {
  std::string run;
  std::string outcome = "unknown";
  std::string summary;
};

void declare_end(CLI::App& command, EndOptions& options) {
  command.add_option("RUN", options.run, "Which");
  command.add_option("--outcome", options.outcome, "success, failure, cancelled, abandoned; unknown where nobody says")
      ->check(CLI::IsMember({"success", "failure", "cancelled", "abandoned", "unknown"}))
      ->capture_default_str();
  command.add_option("--summary", options.summary, "What came of it");
}

Status end_run(Session& session, const EndOptions& options) {
  ASSIGN_OR_RETURN(const std::string run_id, session.run_id(options.run));
  json::Writer params;
  params.begin_object().member("run_id", run_id).member("outcome", options.outcome);
  if (!options.summary.empty()) params.member("summary", options.summary);
  params.end_object();
  ASSIGN_OR_RETURN(const Message answer, session.call("run.end", params.text()));
  if (session.printed_json(answer)) return success();
  session.out().line(fmt::format("{} ended: {}", run_id, options.outcome));
  return success();
}

struct ShowOptions {
  std::string run;
  bool tree = false;
  std::string step;
  std::vector<std::string> types;
  TimelineOptions timeline;
};

void declare_show(CLI::App& command, ShowOptions& options) {
  command.add_option("RUN", options.run, "Which");
  command.add_flag("--tree", options.tree, "The run and its children, not its events");
  command.add_option("--step", options.step, "Only this step");
  command.add_option("--type", options.types, "Only these types: tool.*, message.added, …")->allow_extra_args(false);
  command.add_flag("--errors", options.timeline.errors, "Only what went wrong");
  command.add_flag("--full", options.timeline.full, "Every event, with all of its text");
}

Status show_tree(Session& session, const std::string& run_id, std::size_t depth) {
  constexpr std::size_t depth_max = 32;  // of a display; a parent always started earlier
  const std::string quoted = json::quote(run_id);
  ASSIGN_OR_RETURN(const Message answer, session.call("run.get", fmt::format("{{\"run_id\":{}}}", quoted)));
  const json::Value run = answer.result()["run"];
  const Output& out = session.out();
  const std::string status = run["status"].string_or("");
  if (session.options.json) {  // each names its parent
    out.json_line(run.source());
  } else {
    out.line(std::string(2 * depth, ' ') + (depth == 0 ? "" : "└ ") + out.one_line(run_id) + "  " +
             out.tone(tone_of_status(status), status) + "  " +
             out.tone(Tone::dim, fit(out.one_line(run["goal"].string_or("")), 60)));
  }
  if (depth == depth_max) return success();
  return each_item(session, "run.list", "{\"parent\":" + quoted + "}", "runs",
                   [&](const json::Value& child) -> Result<bool> {
                     RETURN_IF_ERROR(show_tree(session, child["run_id"].string_or(""), depth + 1));
                     return true;
                   });
}

std::string show_params(const std::string& run_id, const ShowOptions& options, std::string_view fields,
                        std::string_view cursor) {
  json::Writer params;
  params.begin_object().member("run_id", run_id).member("limit", limits::page_items_max);
  if (!options.step.empty()) params.member("step_id", options.step);
  if (!options.types.empty()) {
    params.key("types").begin_array();
    for (const std::string& type : options.types) params.string(type);
    params.end_array();
  }
  if (!fields.empty()) params.raw_member("fields", fields);
  if (!cursor.empty()) params.member("cursor", cursor);
  params.end_object();
  return std::move(params).text();
}

// Every event, page by page; while one page is shown, the next one is fetched.
template <typename Show>
Status each_event(Client& client, const std::string& run_id, const ShowOptions& options, std::string_view fields,
                  Show show) {
  const auto fetch = [&](const std::string& cursor) {
    return client.call("event.list", show_params(run_id, options, fields, cursor));
  };
  Result<Message> page = fetch({});
  for (;;) {
    if (!page) return page.error();
    const std::string cursor = page->result()["cursor"].string_or("");
    std::future<Result<Message>> next;
    if (!cursor.empty()) next = std::async(std::launch::async, fetch, cursor);
    bool goes_on = true;
    for (const json::Value event : page->result()["events"]) {
      goes_on = show(event);
      if (!goes_on) break;
    }
    if (!next.valid()) return success();
    page = next.get();
    if (!goes_on) return success();
  }
}

// An event that was erased keeps its type, and does not say any more which call it ended.
RunErasures erased_of(Session& session, const std::string& run_id) {
  RunErasures erased;
  const std::string named = fmt::format("{{\"run_id\":{}", json::quote(run_id));
  const auto announced =
      session.call("event.list", named + R"(,"types":["artifact.redacted","event.redacted"],"limit":1})");
  if (!announced || announced->result()["events"].size() == 0) return erased;
  const std::string params =
      named +
      R"(,"types":["artifact.stored","command.ended","model.answered","tool.returned"],"fields":["type","redacted"]})";
  (void)each_item(session, "event.list", params, "events", [&](const json::Value& event) -> Result<bool> {
    if (!event["redacted"].as_bool().value_or(false)) return true;
    if (event["type"].string_or("") == "artifact.stored")
      ++erased.artifacts;
    else
      erased.results = true;
    return true;
  }).ok();
  return erased;
}

// The last note on a run, which may tell of calls that are not recorded; empty: none.
std::string note_on(Session& session, const std::string& run_id) {
  const std::string params =
      fmt::format(R"({{"run_id":{},"types":["run.annotated"],"fields":["body"]}})", json::quote(run_id));
  std::string last;
  std::size_t count = 0;
  (void)each_item(session, "event.list", params, "events", [&](const json::Value& event) -> Result<bool> {
    const std::string note = event["body"]["note"].string_or("");
    if (note.empty()) return true;
    ++count;
    last = note;
    return true;
  }).ok();
  return count > 1 ? fmt::format("{} ({} notes: --type run.annotated)", last, count) : last;
}

// Without a configuration that can be read a run is shown all the same.
Prices known_prices(const Session& session) {
  const auto config = session.config();
  auto prices = config ? parse_prices(config->prices) : Result<Prices>(Prices());
  return prices ? *std::move(prices) : Prices();
}

Status show_run(Session& session, const ShowOptions& options) {
  ASSIGN_OR_RETURN(const std::string run_id, session.run_id(options.run));
  if (options.tree) return show_tree(session, run_id, 0);
  const std::string named = fmt::format("{{\"run_id\":{}}}", json::quote(run_id));
  ASSIGN_OR_RETURN(const Message head, session.call("run.get", named));
  const json::Value run = head.result()["run"];
  if (session.options.json) {
    session.out().json_line(run.source());
  } else {
    // A run whose state cannot be had still shows its events.
    const auto state = session.call("run.rehydrate", named);
    const json::Value known = state ? state->result()["state"] : json::Value();
    print_run_heading(session.out(), run, known, erased_of(session, run_id), note_on(session, run_id));
  }
  ASSIGN_OR_RETURN(Client* const client, session.client());
  std::uint64_t shown = 0;
  const auto no_such_step = [&]() -> Status {
    if (options.step.empty() || shown > 0) return success();
    return Error(Errc::not_found, fmt::format("run {} has no event of step {}{}", run_id, options.step,
                                              options.types.empty() ? "" : " and of these types"));
  };
  if (session.options.json) {
    RETURN_IF_ERROR(each_event(*client, run_id, options, {}, [&](const json::Value& event) {
      ++shown;
      session.out().json_line(event.source());
      return !session.out().failed();
    }));
    return no_such_step();
  }
  constexpr std::string_view fields = R"(["run_seq","recorded_at","occurred_at","type","step_id","body","redacted"])";
  Timeline timeline(session.out(), run, options.timeline, known_prices(session));
  RETURN_IF_ERROR(each_event(*client, run_id, options, fields, [&](const json::Value& event) {
    ++shown;
    timeline.add(event);
    return !session.out().failed();
  }));
  timeline.finish();
  return no_such_step();
}

struct RehydrateOptions {
  std::string run;
  std::string asof;
  std::string path;
};

void declare_rehydrate(CLI::App& command, RehydrateOptions& options) {
  command.add_option("RUN", options.run, "Which");
  add_asof_option(command, options.asof, "The state as it was at this seq or time");
  command.add_option("--path", options.path, "A part of it, as a JSON pointer: /working");
}

Status rehydrate(Session& session, const RehydrateOptions& options) {
  ASSIGN_OR_RETURN(const std::string run_id, session.run_id(options.run));
  json::Writer params;
  params.begin_object().member("run_id", run_id);
  add_asof(params, options.asof);
  if (!options.path.empty()) params.member("path", options.path);
  params.end_object();
  ASSIGN_OR_RETURN(const Message answer, session.call("run.rehydrate", params.text()));
  if (session.printed_json(answer)) return success();
  const json::Value result = answer.result();
  const Output& out = session.out();
  out.line(result["state"] ? out.safe_json(result["state"].source())
                           : "state artifact  " + result["state_artifact"].string_or(""));
  const auto snapshot = result["snapshot_seq"].as_int();
  const std::int64_t applied = result["events_applied"].as_int().value_or(0);
  const std::string events = fmt::format("{} event{}", applied, applied == 1 ? "" : "s");
  fmt::print(stderr, "seq {}  state {}  from {}\n", result["seq"].source(),
             result["state_hash"].string_or("").substr(0, 16),
             snapshot ? fmt::format("the snapshot at {} and {} after it", *snapshot, events)
                      : fmt::format("the run's first {}", events));
  return success();
}

struct RecoverOptions {
  std::string run;
  std::vector<std::string> files;
  std::string why;
  bool look = false;
};

void declare_recover(CLI::App& command, RecoverOptions& options) {
  command.add_option("RUN", options.run, "Which");
  command
      .add_option(
          "--file", options.files,
          "ARTIFACT=FILE, or an ev:// POINTER=FILE: a good copy of a damaged artifact or document; it is taken if its hash fits")
      ->allow_extra_args(false);
  command.add_option("--why", options.why, "Why it may go on, for the log");
  command.add_flag("--look", options.look, "Only show what is damaged");
}

// "a7=/tmp/x", "artifact://r1/a7=/tmp/x" or "ev://notes/a#p0?v=3f9=/tmp/x", as run.recover takes it.
Result<std::string> repair_params(const std::string& run_id, const std::string& word) {
  const std::size_t revision = word.starts_with("ev://") ? word.find("?v=") : std::string::npos;
  const std::size_t equals = word.find('=', revision == std::string::npos ? 0 : revision + 3);
  if (equals == std::string::npos) return Error(Errc::invalid_argument, "--file takes ARTIFACT=FILE, or POINTER=FILE");
  ASSIGN_OR_RETURN(const std::string path, absolute_path(word.substr(equals + 1)));
  std::string pointer = word.substr(0, equals);
  if (pointer.find("://") == std::string::npos) pointer = fmt::format("artifact://{}/{}", run_id, pointer);
  json::Writer params;
  params.begin_object().member("run_id", run_id).member("resume", false).key("repair").begin_object();
  params.member("pointer", pointer).member("file", path).end_object().end_object();
  return std::move(params).text();
}

void print_damage(const Output& out, const json::Value& result) {
  for (const json::Value item : result["damage"]) {
    std::string needed_by;
    for (const json::Value need : item["needed_by"]) needed_by += (needed_by.empty() ? "" : ", ") + need.string_or("");
    out.line(out.tone(Tone::red, "damaged   ") + out.one_line(item["pointer"].string_or("")) + "  " +
             out.one_line(item["detail"].string_or(item["reason"].string_or(""))));
    if (!needed_by.empty()) out.line(out.tone(Tone::dim, "          needed by " + out.one_line(needed_by)));
  }
}

// Files first, one request each; then a look at everything, after which the run may go on.
Status recover(Session& session, const RecoverOptions& options) {
  ASSIGN_OR_RETURN(const std::string run_id, session.run_id(options.run));
  const Output& out = session.out();
  for (const std::string& file : options.files) {
    ASSIGN_OR_RETURN(const std::string params, repair_params(run_id, file));
    ASSIGN_OR_RETURN(const Message answer, session.call("run.recover", params));
    if (session.options.json) continue;
    const json::Value intact = answer.result()["as_recorded"];
    if (intact)
      out.line("intact    " + out.one_line(intact.string_or("")) + "  was as recorded already; nothing was put back");
    else
      out.line(out.tone(Tone::green, "repaired  ") + out.one_line(answer.result()["repaired"].string_or(file)));
  }
  json::Writer params;
  params.begin_object().member("run_id", run_id).member("resume", !options.look);
  if (!options.why.empty()) params.member("why", options.why);
  params.end_object();
  ASSIGN_OR_RETURN(const Message answer, session.call("run.recover", params.text()));
  const json::Value result = answer.result();
  const bool halted = result["status"].string_or("") == "halted";
  if (result["damage"].size() > 0) session.exit_code = exit_refused;  // a check that failed, whatever the run's status
  if (halted && !options.look) session.exit_code = exit_halted;
  if (session.printed_json(answer)) return success();
  print_damage(out, result);
  if (result["resumed"].as_bool().value_or(false)) {
    out.line(out.tone(Tone::green, run_id + " goes on"));
  } else if (!halted) {
    out.line(fmt::format("{} is {}; {} pointers that something depends on were checked", run_id,
                         result["status"].string_or(""), result["checked"].source()));
  } else if (result["damage"].size() > 0) {
    out.line(out.advised(
        fmt::format("{} stays halted. Bring a good copy: muniment recover {} --file POINTER=FILE", run_id, run_id)));
    out.line(out.advised(fmt::format(
        "Where there is none, or what is named never was: muniment run end {} --outcome failure, and go on in a new run: "
        "muniment run start NAME --agent AGENT --continues {}",
        run_id, run_id)));
  } else {
    out.line(out.advised(fmt::format("nothing is missing any more; let it go on: muniment recover {}", run_id)));
  }
  return success();
}

}  // namespace

void add_run_commands(CLI::App& app, Session& session) {
  CLI::App& run = add_group(app, "run", "Runs: start, end, list, show, search, compare, fork, judge");
  add_command<StartOptions>(session, run, "start", "Start a run, or go on with it", declare_start, start_run);
  add_command<EndOptions>(session, run, "end", "End a run", declare_end, end_run);
  add_run_list(run, session);
  add_command<ShowOptions>(session, run, "show", "What happened in a run", declare_show, show_run);
  add_run_grep(run, session);
  add_run_diff(run, session);
  add_run_judge(run, session);
  add_command<RehydrateOptions>(session, app, "rehydrate", "The state of a run", declare_rehydrate, rehydrate);
  add_command<RecoverOptions>(session, app, "recover", "Look at a halted run, repair it, let it go on", declare_recover,
                              recover);
}

}  // namespace muniment::cli
