// Options of commands that record evidence: how long it counts, and the evidence that it needs.
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

  bool any() const { return !expires_in.empty() || !depends_on.empty(); }
};

// Declares --expires-in and --depends-on.
void declare_terms(CLI::App& command, EvidenceTerms& terms);

// Writes the members expires_in_seconds and depends_on. Errors: invalid_argument for a duration that cannot be read or
// is out of range, and for a text that is no id.
Status write_terms(json::Writer& params, const EvidenceTerms& terms);

}  // namespace muniment::cli
