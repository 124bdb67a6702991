// Targets of importers of foreign traces: accepted input becomes events that the daemon accepts.
#include <map>
#include <set>

#include "adapters/import/claude_code/claude_code_lines.hpp"
#include "adapters/import/format.hpp"
#include "adapters/import/formats/formats.hpp"
#include "adapters/import/otlp/otlp_trace.hpp"
#include "adapters/import/translate/translation.hpp"
#include "adapters/receive/otlp_protobuf.hpp"
#include "base/json/json.hpp"
#include "base/json/readable_characters.hpp"
#include "base/text.hpp"
#include "cli/export/connection.hpp"
#include "cli/export/rows.hpp"
#include "cli/show/metrics_text.hpp"
#include "events/catalogue.hpp"
#include "fuzz/target.hpp"

namespace muniment::fuzz {
namespace {

// The size limit of a body is not checked: spilling enforces it.
void require_events(const std::vector<cli::ImportedEvent>& events) {
  std::set<std::string> kinds;
  for (const cli::ImportedEvent& event : events) {
    require(kinds.insert(event.kind).second, "two events have one id");
    require(event.body.find('\n') == std::string::npos, "a body is not one line");
    const auto document = json::parse(event.body);
    require(document.ok(), "a body is no JSON");
    require(events::check_client_may_write(event.type).ok(), "a type that no client may write");
    const auto fits = events::check_body(event.type, document->root());
    const bool is_too_much = event.body.size() > 4'096;  // more items than a schema permits
    require(fits.ok() || is_too_much, fits.ok() ? "" : fits.error().message.c_str());
  }
}

void require_run(const cli::TranslatedRun& translated, std::string_view format) {
  require_events(translated.run.events);
  const std::string params = cli::start_params(translated.run, translated.source, format);
  require(json::parse(params).ok(), "the start of a run is no JSON");
  const std::string& usage = translated.run.end.usage;
  require(usage.empty() || json::parse(std::string_view(usage)).ok(), "the usage of a run is no JSON");
}

// Reads the input as a file of a format that is read record by record, or as one run.
template <const std::string_view& format_name>
void try_format(const std::string& text) {
  const cli::TraceFormat& format = *cli::find_format(format_name);
  with_file(text, [&](const std::string& path) {
    auto sources = cli::TraceSources::open(path, format);
    if (!sources) return;
    while (sources->goes_on()) {
      const auto source = sources->next();
      if (!source) continue;
      if (!*source) break;
      const auto runs = cli::translate_source(format, **source);
      if (!runs) continue;
      require(!runs->empty(), "a translation has no run");
      for (const cli::TranslatedRun& translated : *runs) require_run(translated, format.name);
    }
  });
}

// Checks the actions of a source with children: each child starts once, before its events, and ends.
void require_actions(std::vector<cli::RunAction>& actions) {
  std::map<std::string, std::vector<cli::ImportedEvent>> events;
  std::set<std::string> open;
  for (cli::RunAction& action : actions) {
    if (action.kind == cli::RunAction::Kind::start_child)
      require(open.insert(action.child).second, "a child starts twice");
    else if (action.kind == cli::RunAction::Kind::end_child)
      require(open.erase(action.child) == 1, "a child ends that is not open");
    else
      require(action.child.empty() || open.contains(action.child), "an event of a child that is not open");
    if (action.kind == cli::RunAction::Kind::event) events[action.child].push_back(std::move(action.event));
  }
  require(open.empty(), "a child is left open");
  for (const auto& [child, list] : events) require_events(list);
}

// An accepted request becomes valid JSON, except for characters that JSON forbids, which the importer replaces.
void try_otlp_protobuf(const std::string& bytes) {
  constexpr std::size_t bytes_max = 1 << 20;
  for (const cli::OtlpSignal signal : {cli::OtlpSignal::traces, cli::OtlpSignal::logs}) {
    const auto json = cli::otlp_json_of(signal, bytes, bytes_max);
    if (!json) continue;
    const std::string readable = with_readable_characters(*json).text;
    require(json::parse(std::string_view(readable)).ok(), "a request in protobuf becomes no JSON");
  }
}

void try_otlp(const std::string& text) {
  with_file(text, [](const std::string& path) {
    const auto file = cli::OtlpFile::open(path, [](const std::string&) {});
    if (!file) return;
    for (const cli::OtlpTraceItems& items : file->traces()) {
      cli::OtlpTrace one(*file, items);
      const auto head = one.head();
      require(head.ok() && one.sha256_of_all().ok(), "a trace that was found cannot be read");
      const std::string params = cli::start_params(*head, {one.name(), std::string(64, 'a'), {}}, cli::otlp_format);
      require(json::parse(params).ok(), "the start of a run is no JSON");
      std::vector<cli::RunAction> all;
      const Status done = one.each([&](std::vector<cli::RunAction>& actions) {
        std::move(actions.begin(), actions.end(), std::back_inserter(all));
        actions.clear();
        return success();
      });
      require(done.ok(), "a trace that was found cannot be read to its end");
      require_actions(all);
    }
  });
}

void try_agent_session(const std::string& text) {
  for (const bool settled : {false, true}) {
    cli::ClaudeCodeLines lines;
    std::vector<cli::RunAction> actions;
    std::uint64_t number = 0;
    std::string_view rest(text);
    while (const auto line = take_line(rest)) {
      lines.take(*line, ++number, actions);
      if (settled) lines.settle(actions);
    }
    lines.take(rest, ++number, actions);
    lines.finish(actions);
    require_actions(actions);
  }
}

void try_export_row(const std::string& bytes) {
  cli::ExportFields fields;
  for (const bool first : {true, false}) {
    const auto row = cli::parse_export_row(bytes, first, fields);
    if (!row || !*row) continue;
    for (const auto form : {cli::ExportForm::jsonl, cli::ExportForm::csv}) {
      std::string line;
      cli::ExportRows(form, "log", {{1, "r1"}}).append(fields, line);
      require(line.empty() || line.ends_with('\n'), "a line has no end");
    }
  }
}

void try_metrics(const std::string& text) {
  const auto metrics = cli::parse_metrics(text);
  if (!metrics) return;
  for (const cli::MetricSample& sample : metrics->samples) {
    require(!sample.name.empty(), "a sample has no name");
    const std::string_view histogram = std::string_view(sample.name).substr(0, sample.name.rfind("_bucket"));
    const cli::Distribution found = metrics->distribution(histogram);
    (void)found.since(found).quantile(0.99);
    (void)found.quantile(0.5);
  }
}

}  // namespace

std::vector<Target> import_targets() {
  const std::string session = golden("imports/claude-code.jsonl");
  std::string row("\0\x0f", 2);
  for (int i = 0; i < 15; ++i) row += std::string("\0\0\0\x08", 4) + std::string("\0\0\0\0\0\0\0\1", 8);
  return {
      {"import_swe_agent", try_format<cli::swe_agent_format>, {golden("imports/swe-agent.json")}},
      {"import_mini_swe_agent", try_format<cli::mini_swe_agent_format>, {golden("imports/mini-swe-agent.json")}},
      {"import_openhands",
       try_format<cli::openhands_format>,
       {golden("imports/openhands.json"), golden("imports/openhands-events.json"),
        golden("imports/openhands-sdk.jsonl")}},
      {"import_tau_bench",
       try_format<cli::tau_bench_format>,
       {golden("imports/tau-bench.json"), "{\"messages_display\":\"user: a\\ntool: b\"}\n{\"traj\":[]}\n"}},
      {"import_tau2", try_format<cli::tau2_format>, {golden("imports/tau2.json")}},
      {"import_messages",
       try_format<cli::messages_format>,
       {golden("imports/messages.jsonl"), golden("imports/messages-request.json")}},
      {"import_codex",
       try_format<cli::codex_format>,
       {golden("imports/codex.jsonl"), golden("imports/codex-exec.jsonl")}},
      {"import_gemini_cli", try_format<cli::gemini_cli_format>, {golden("imports/gemini-cli.json")}},
      {"import_atif", try_format<cli::atif_format>, {golden("imports/atif.json")}},
      {"import_claude_code", try_agent_session, {session, session.substr(session.size() / 2)}},
      {"import_otlp",
       try_otlp,
       {golden("imports/otlp.jsonl"),
        R"([{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"","events":[{}]}]}]}]}])"}},
      {"otlp_protobuf",
       try_otlp_protobuf,
       {std::string(
            "\x0a\x2b\x12\x29\x12\x27\x0a\x10\x11\x11\x11\x11\x11\x11\x11\x11\x11\x11\x11\x11\x11\x11\x11\x11\x2a"
            "\x04"
            "chat\x39\x01\x02\x03\x04\x05\x06\x07\x08\x4a\x04\x12\x02\x18\x05",
            45),
        std::string("\x0a\x0a\x12\x08\x12\x06\x2a\x04\x0a\x02hi", 12)}},
      {"metrics_text", try_metrics, {golden("metrics.txt"), "a{b=\"x\\\"\"} +Inf\n"}},
      {"export_row", try_export_row, {row, std::string("\xff\xff", 2)}},
  };
}

}  // namespace muniment::fuzz
