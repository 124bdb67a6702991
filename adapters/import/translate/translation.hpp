// Translates a source of a file into runs: parses it, replaces damaged characters, calls the format's translation, and
// keeps the texts that the translation left out.
#pragma once

#include <string>
#include <vector>

#include "adapters/import/events.hpp"
#include "adapters/import/format.hpp"
#include "adapters/import/translate/file_sources.hpp"
#include "base/result.hpp"

namespace muniment::cli {

struct TranslatedRun {
  SourceFile source;  // its text is that of the TraceSource
  ImportedRun run;
};

// Returns at least one run. Errors: invalid_argument for text that is not JSON after the replacement of damaged
// characters, and those of the format's translation.
Result<std::vector<TranslatedRun>> translate_source(const TraceFormat& format, const TraceSource& source);

}  // namespace muniment::cli
