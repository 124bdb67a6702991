#include "adapters/import/otlp/otlp.hpp"

#include <utility>

namespace muniment::cli {

bool is_otlp(const json::Value& record) {
  return record["resourceSpans"] || record["resourceLogs"] || record["resource_spans"] || record["resource_logs"];
}

Result<ImportedTrace> import_trace(Client& client, const OtlpFile& file, const OtlpTraceItems& items, bool scrub) {
  OtlpTrace trace(file, items);
  ASSIGN_OR_RETURN(std::string sha256, trace.sha256_of_all());
  ASSIGN_OR_RETURN(ImportedRun head, trace.head());
  RunTree tree(client, trace.name(), std::move(sha256), otlp_format, scrub);
  ImportedTrace run;
  run.run_id = tree.run_id();
  ASSIGN_OR_RETURN(run.added, tree.start(head));
  if (!run.added) return run;
  Status done = trace.each([&](std::vector<RunAction>& actions) { return tree.carry_out(actions); });
  if (!tree.tally().has_dialogue()) head.end.summary += "; neither a question nor an answer was understood";
  if (done) done = tree.end(head.end);
  if (!done) return tree.broke_off(done.error());
  run.events = tree.events();
  run.artifacts = tree.artifacts();
  run.repaired = tree.repaired();
  run.children = tree.children();
  run.tally = tree.tally();
  return run;
}

}  // namespace muniment::cli
