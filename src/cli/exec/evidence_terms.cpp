#include "cli/exec/evidence_terms.hpp"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/ids.hpp"
#include "base/limits.hpp"
#include "base/text.hpp"
#include "cli/time_option.hpp"

namespace muniment::cli {

void declare_terms(CLI::App& command, EvidenceTerms& terms) {
  command.add_option("--expires-in", terms.expires_in, "Time until it is stale: 90s, 15m, 1h, 2d (default: never)");
  command.add_option("--depends-on", terms.depends_on, "Evidence that it needs intact and fresh; repeat for several")
      ->allow_extra_args(false);
  command.add_option("--artifact", terms.artifacts, "Artifact of the run on which it rests; repeat for several")
      ->allow_extra_args(false);
}

Status write_terms(json::Writer& params, const EvidenceTerms& terms) {
  for (const std::string& id : terms.depends_on) {
    if (!parse_uuid(id))
      return Error(Errc::invalid_argument, fmt::format("--depends-on: \"{}\" is no id of evidence", preview(id, 100)));
  }
  if (!terms.depends_on.empty()) params.member("depends_on", terms.depends_on);
  if (!terms.artifacts.empty()) params.member("artifacts", terms.artifacts);
  if (terms.expires_in.empty()) return success();
  const auto seconds = read_duration(terms.expires_in);
  if (!seconds)
    return Error(Errc::invalid_argument,
                 fmt::format("--expires-in: \"{}\" is not a duration. Write 90s, 15m, 1h or 2d", terms.expires_in));
  if (*seconds < 1 || *seconds > limits::evidence_expires_seconds_max)
    return Error(Errc::invalid_argument, fmt::format("--expires-in: expected 1s to {}d, got {}",
                                                     limits::evidence_expires_seconds_max / 86'400, terms.expires_in));
  params.member("expires_in_seconds", *seconds);
  return success();
}

}  // namespace muniment::cli
