#include "cli/import/forecast.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <utility>
#include <vector>

#include "base/crypto/sha256.hpp"
#include "base/files/file.hpp"
#include "base/ids.hpp"
#include "base/limits.hpp"
#include "base/text.hpp"
#include "cli/bundle/import.hpp"
#include "cli/import/claude_code/claude_code_session.hpp"
#include "cli/import/formats/log.hpp"
#include "cli/import/formats/swe_agent.hpp"
#include "cli/import/guess.hpp"
#include "cli/import/otlp/otlp_trace.hpp"
#include "cli/import/readable.hpp"
#include "cli/import/records.hpp"

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

class CountingSink : public ImportSink {
 public:
  explicit CountingSink(std::string run_id) { run_.run_id = std::move(run_id); }

  Result<bool> start(const std::string& params) override {
    ASSIGN_OR_RETURN(const json::Document document, json::parse(params));
    run_.agent = document.root()["agent"]["name"].string_or("");
    run_.goal = document.root()["goal"].string_or("");
    ++run_.events["run.started"];
    return true;
  }
  Result<ImportedArtifact> put(const std::string&, const std::string&, std::string_view bytes) override {
    ++run_.events["artifact.stored"];
    return ImportedArtifact{make_uuid_v8(bytes).text(), to_hex(sha256(bytes)), static_cast<std::int64_t>(bytes.size())};
  }
  Status append(std::size_t, const std::vector<ImportedEvent>& events) override {
    for (const ImportedEvent& event : events) count(run_, event);
    return success();
  }
  Status end(const RunEnd& end) override {
    run_.outcome = end.outcome;
    ++run_.events["run.ended"];
    return success();
  }

  const ForecastRun& run() const { return run_; }

 private:
  ForecastRun run_;
};

Status forecast_whole(const std::string& path, const ForecastReader& reader) {
  ASSIGN_OR_RETURN(const std::string text, read_named(path, import_record_bytes_max));
  const SourceFile source{stem(path), to_hex(sha256(text)), text};
  CountingSink sink(imported_run_id(source));
  if (const Status done = import_swe_agent(source, sink); !done) {
    reader.complain(0, done.error().message + first_record_looks_like(text));
    return success();
  }
  reader.tell(sink.run());
  return success();
}

Result<ForecastRun> forecast_record(const std::string& path, std::string_view format, const TraceRecord& record,
                                    TranslateRecord translate) {
  ASSIGN_OR_RETURN(const ImportedRun translated,
                   translate_record(record.text, format, static_cast<std::int64_t>(record.line), translate));
  ForecastRun run =
      run_of(translated, {fmt::format("{}-{}", stem(path), record.number), to_hex(sha256(record.text)), record.text});
  run.line = record.line;
  for (const ImportedEvent& event : translated.events) count(run, event);
  if (!translated.submission.empty()) ++run.events["artifact.stored"];
  return run;
}

Status forecast_records(const std::string& path, std::string_view format, TranslateRecord translate,
                        const ForecastReader& reader) {
  ASSIGN_OR_RETURN(RecordReader records, RecordReader::open(path));
  bool any = false;
  while (records.goes_on()) {
    const auto record = records.next();
    any = any || !record || *record;
    if (!record) {
      reader.complain(0, record.error().message);
      continue;
    }
    if (!*record) break;
    const auto run = forecast_record(path, format, **record, translate);
    if (run)
      reader.tell(*run);
    else
      reader.complain((*record)->line, run.error().message);
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
  tree.tell(unknown_end, session.head().goal, reader);
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

Status forecast_import(const std::string& path, std::string_view format, TranslateRecord translate,
                       const ForecastReader& reader) {
  if (translate != nullptr) return forecast_records(path, format, translate, reader);
  if (format == claude_code_format) return forecast_session(path, reader);
  if (format == log_format) return forecast_log(path, reader);
  if (format == otlp_format) return forecast_traces(path, reader);
  return forecast_whole(path, reader);
}

}  // namespace muniment::cli
