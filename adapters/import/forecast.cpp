#include "adapters/import/forecast.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <utility>
#include <vector>

#include "adapters/import/claude_code/claude_code_session.hpp"
#include "adapters/import/formats/log.hpp"
#include "adapters/import/guess.hpp"
#include "adapters/import/otlp/otlp_trace.hpp"
#include "adapters/import/records.hpp"
#include "adapters/import/translate/translation.hpp"
#include "base/ids.hpp"
#include "base/limits.hpp"
#include "base/text.hpp"

namespace muniment::cli {
namespace {

std::string stem(const std::string& path) { return std::filesystem::path(path).stem().string(); }

ForecastRun run_of(const ImportedRun& head, const SourceFile& source) {
  ForecastRun run{.run_id = imported_run_id(source),
                  .agent = name_or(head.agent, "unknown"),
                  .goal = head.goal,
                  .outcome = head.end.outcome};
  run.events = {{"run.ended", 1}, {"run.started", 1}};
  return run;
}

void count(ForecastRun& run, const ImportedEvent& event) {
  ++run.events[event.type];
  if (!event.blobs.empty()) run.events["artifact.stored"] += event.blobs.size();
  if (event.body.size() > limits::event_body_bytes_max) ++run.long_events;
}

// A run and its child runs, as an import would record them.
class ForecastTree {
 public:
  ForecastTree(const ImportedRun& head, std::string name, std::string sha256)
      : name_(std::move(name)), sha256_(std::move(sha256)) {
    runs_.emplace("", run_of(head, {name_, sha256_, {}}));
    order_.emplace_back();
  }

  void carry_out(std::vector<RunAction>& actions) {
    for (const RunAction& action : actions) {
      if (action.kind == RunAction::Kind::start_child) start(action);
      ForecastRun& run = runs_.at(action.child);
      if (action.kind == RunAction::Kind::event) count(run, action.event);
      if (action.kind == RunAction::Kind::end_child) run.outcome = action.outcome;
    }
    actions.clear();
  }

  void tell(std::string_view outcome, std::string_view goal, const ForecastReader& reader) {
    runs_.at("").outcome = outcome;
    runs_.at("").goal = goal;
    for (const std::string& key : order_) reader.tell(runs_.at(key));
  }

 private:
  void start(const RunAction& action) {
    const ImportedRun head{.agent = name_or(action.agent, "subagent"), .goal = action.goal};
    const std::string& sha256 = action.sha256.empty() ? sha256_ : action.sha256;
    if (!runs_.emplace(action.child, run_of(head, {name_ + "." + action.child, sha256, {}})).second) return;
    order_.push_back(action.child);
    ForecastRun& parent = runs_.at(action.parent);
    ++parent.events["child.started"];
    ++parent.events["child.ended"];
  }

  const std::string name_, sha256_;
  std::map<std::string, ForecastRun> runs_;  // by key
  std::vector<std::string> order_;
};

ForecastRun forecast_run(const TranslatedRun& translated, std::uint64_t line) {
  ForecastRun run = run_of(translated.run, translated.source);
  run.line = line;
  for (const ImportedEvent& event : translated.run.events) count(run, event);
  if (!translated.run.submission.empty()) ++run.events["artifact.stored"];
  return run;
}

Status forecast_sources(const std::string& path, const TraceFormat& format, const ForecastReader& reader) {
  ASSIGN_OR_RETURN(TraceSources sources, TraceSources::open(path, format));
  bool any = false;
  while (sources.goes_on()) {
    const auto source = sources.next();
    any = any || !source || *source;
    if (!source) {
      reader.complain(0, source.error().message);
      continue;
    }
    if (!*source) break;
    const auto runs = translate_source(format, **source);
    if (!runs) {
      reader.complain((*source)->line, runs.error().message);
      continue;
    }
    for (const TranslatedRun& run : *runs) reader.tell(forecast_run(run, (*source)->line));
  }
  if (!any) reader.complain(0, std::string(no_record));
  return success();
}

Status forecast_session(const std::string& path, const ForecastReader& reader) {
  ASSIGN_OR_RETURN(ClaudeCodeSession session, ClaudeCodeSession::open(path, nullptr));
  ForecastTree tree(session.head(), stem(path), session.sha256());
  const auto carry_out = [&](std::vector<RunAction>& actions) {
    tree.carry_out(actions);
    return success();
  };
  RETURN_IF_ERROR(session.each(carry_out, {}));
  tree.tell(session.facts().end.outcome.empty() ? unknown_end : session.facts().end.outcome, session.head().goal,
            reader);
  return success();
}

Status forecast_traces(const std::string& path, const ForecastReader& reader) {
  ASSIGN_OR_RETURN(const OtlpFile file,
                   OtlpFile::open(path, [&](const std::string& problem) { reader.complain(0, problem); }, {}));
  for (const OtlpTraceItems& items : file.traces()) {
    OtlpTrace trace(file, items);
    ASSIGN_OR_RETURN(std::string sha256, trace.sha256_of_all());
    ASSIGN_OR_RETURN(const ImportedRun head, trace.head());
    ForecastTree tree(head, trace.name(), std::move(sha256));
    RETURN_IF_ERROR(trace.each([&](std::vector<RunAction>& actions) {
      tree.carry_out(actions);
      return success();
    }));
    tree.tell(head.end.outcome, head.goal, reader);
  }
  return success();
}

// Events that only the original daemon may write are counted here although the import leaves them out.
Status forecast_log(const std::string& path, const ForecastReader& reader) {
  RETURN_IF_ERROR(refuse_other_format(path, log_format));
  ASSIGN_OR_RETURN(RecordReader records, RecordReader::open_lines(path));
  std::map<std::string, ForecastRun> runs;
  std::vector<std::string> order;
  for (;;) {
    const auto record = records.next();
    if (!record && record.error().code != Errc::too_large) return record.error();
    if (record && !*record) break;
    const auto document = record ? json::parse((*record)->text) : Result<json::Document>(record.error());
    const json::Value event = document ? document->root() : json::Value();
    const std::string run_id = event["run_id"].string_or(""), type = event["type"].string_or("");
    if (run_id.empty() || type.empty()) {
      reader.complain(record ? (*record)->line : 0, document ? "not an event of an export" : document.error().message);
      continue;
    }
    if (run_id == log_run_id) continue;
    const auto [known, is_new] =
        runs.try_emplace(run_id, ForecastRun{.run_id = run_id, .outcome = std::string(unknown_end)});
    if (is_new) order.push_back(run_id);
    ForecastRun& run = known->second;
    ++run.events[type];
    if (type == "run.started") {
      run.agent = event["body"]["agent"]["name"].string_or("");
      run.goal = event["body"]["goal"].string_or("");
    } else if (type == "run.ended") {
      run.outcome = event["body"]["outcome"].string_or(unknown_end);
    }
  }
  for (const std::string& run_id : order) reader.tell(runs.at(run_id));
  return success();
}

}  // namespace

Status forecast_import(const std::string& path, const TraceFormat& format, const ForecastReader& reader) {
  if (format.unit != FileUnit::stream) return forecast_sources(path, format, reader);
  if (format.name == claude_code_format) return forecast_session(path, reader);
  if (format.name == log_format) return forecast_log(path, reader);
  return forecast_traces(path, reader);
}

}  // namespace muniment::cli
