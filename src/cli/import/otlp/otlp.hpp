// A trace of a file of OTLP/JSON as a run (otlp_trace.hpp says what its spans mean).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "cli/connect/client.hpp"
#include "cli/import/otlp/otlp_trace.hpp"
#include "cli/import/tree.hpp"

namespace muniment::cli {

struct ImportedTrace {
  std::string run_id;
  bool added = false;        // false: it was there already
  std::uint64_t events = 0;  // of the run, as of ImportRecorder
  std::uint64_t artifacts = 0;
  std::uint64_t repaired = 0;  // requests with characters that were replaced
  std::vector<ImportedChild> children;
};

// One trace of a file. Errors: the daemon's, and those of reading the file.
Result<ImportedTrace> import_trace(Client& client, const OtlpFile& file, const OtlpTraceItems& items);

}  // namespace muniment::cli
