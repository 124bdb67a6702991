// Options of commands that record evidence: how long it counts, and the evidence and files that it needs.
#pragma once

#include <string>
#include <vector>

#include "base/json/json.hpp"
#include "base/result.hpp"

namespace CLI {
class App;
}

namespace muniment::cli {

struct EvidenceTerms {
  std::string expires_in;               // "15m"; empty: never stale
  std::vector<std::string> depends_on;  // evidence ids
  std::vector<std::string> artifacts;   // ids of artifacts of the run

  bool any() const { return !expires_in.empty() || !depends_on.empty() || !artifacts.empty(); }
};

// Declares --expires-in, --depends-on and --artifact.
void declare_terms(CLI::App& command, EvidenceTerms& terms);

// Writes the members expires_in_seconds, depends_on and artifacts. Errors: invalid_argument for a duration that cannot
// be read or is out of range, and for a text that is no id.
Status write_terms(json::Writer& params, const EvidenceTerms& terms);

}  // namespace muniment::cli
