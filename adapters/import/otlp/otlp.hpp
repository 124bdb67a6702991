// Imports a trace of an OTLP/JSON file as a run (otlp_trace.hpp translates the spans).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "adapters/import/otlp/otlp_trace.hpp"
#include "adapters/import/tree.hpp"
#include "base/result.hpp"
#include "client/connect/client.hpp"

namespace muniment::cli {

// A request of the protocol, with the names of its JSON mapping or those of its fields.
bool is_otlp(const json::Value& record);

struct ImportedTrace {
  std::string run_id;
  bool added = false;        // false: already imported
  std::uint64_t events = 0;  // events of the run, as counted by ImportRecorder
  std::uint64_t artifacts = 0;
  std::uint64_t repaired = 0;  // requests with characters that were replaced
  std::vector<ImportedChild> children;
  ImportTally tally = {};
};

// Imports one trace of a file. Errors: those of the daemon and of reading the file.
Result<ImportedTrace> import_trace(Client& client, const OtlpFile& file, const OtlpTraceItems& items,
                                   bool scrub = false);

}  // namespace muniment::cli
