#include "adapters/import/format.hpp"

#include <algorithm>

#include "adapters/import/claude_code/claude_code_lines.hpp"
#include "adapters/import/formats/formats.hpp"
#include "adapters/import/formats/log.hpp"
#include "adapters/import/otlp/otlp.hpp"

namespace muniment::cli {
namespace {

// Adapts a translation whose records are one run each.
template <Result<ImportedRun> (*translate)(const json::Value& record)>
Result<std::vector<ImportedRun>> one(const json::Value& record) {
  ASSIGN_OR_RETURN(ImportedRun run, translate(record));
  std::vector<ImportedRun> runs;
  runs.push_back(std::move(run));
  return runs;
}

// The first row that recognises a record is its format: a row with a weaker mark is below one with a stronger mark.
constexpr TraceFormat formats[] = {
    {otlp_format, "OpenTelemetry traces in OTLP/JSON", FileUnit::stream, is_otlp},
    {log_format, "a log of Muniment, as muniment export writes it", FileUnit::stream, is_log_event},
    {claude_code_format, "sessions of Claude Code", FileUnit::stream, is_claude_code_line},
    {swe_agent_format, "trajectories of SWE-agent", FileUnit::document, is_swe_agent, translate_swe_agent},
    {mini_swe_agent_format, "trajectories of mini-swe-agent", FileUnit::document, is_mini_swe_agent,
     one<translate_mini_swe_agent>},
    {tau2_format, "results of tau2-bench", FileUnit::document, is_tau2, translate_tau2},
    {tau_bench_format, "results of tau-bench", FileUnit::records, is_tau_bench, one<translate_tau_bench>},
    {openhands_format, "trajectories and events of OpenHands", FileUnit::records, is_openhands,
     one<translate_openhands>, is_openhands_event, translate_openhands_events},
    {codex_format, "sessions of Codex: rollout files, and what codex exec --json prints", FileUnit::records, nullptr,
     nullptr, is_codex_line, translate_codex},
    {gemini_cli_format, "sessions of Gemini CLI", FileUnit::document, is_gemini_cli, one<translate_gemini_cli>},
    {atif_format, "trajectories in ATIF", FileUnit::document, is_atif, one<translate_atif>},
    {messages_format, "messages: role, content, tool, time, usage; one a line, a list, or a request of an API",
     FileUnit::records, is_message_list, one<translate_message_list>, is_message, translate_messages},
};

bool recognises(const TraceFormat& format, const json::Value& record) {
  return (format.recognises != nullptr && format.recognises(record)) ||
         (format.recognises_part != nullptr && format.recognises_part(record));
}

}  // namespace

std::span<const TraceFormat> trace_formats() { return formats; }

const TraceFormat* find_format(std::string_view name) {
  const auto found = std::ranges::find(formats, name, &TraceFormat::name);
  return found == std::end(formats) ? nullptr : found;
}

const TraceFormat* format_of_record(const json::Value& record) {
  if (!record.is(json::Kind::object)) return nullptr;
  const auto found =
      std::ranges::find_if(formats, [&](const TraceFormat& format) { return recognises(format, record); });
  return found == std::end(formats) ? nullptr : found;
}

}  // namespace muniment::cli
