// The check of dependencies: evidence is refused if a piece that it depends on, directly or not, is tampered with,
// unknown, erased or stale.
#include <fmt/format.h>

#include "base/limits.hpp"
#include "evidence/completion/checks.hpp"

namespace muniment::evidence::completion {
namespace {

struct Broken {
  Code code;
  const Piece* dependency;  // nullptr: there are too many
};

// Returns the fault of one dependency.
std::optional<Code> fault_of(const Piece& dependency, std::chrono::seconds fresh_for, Time now) {
  if (!dependency.found) return Code::dependency_unknown;
  if (dependency.erased) return Code::dependency_erased;
  if (!dependency.damage.empty()) return Code::dependency_damaged;
  if (is_outdated(dependency, fresh_for, now)) return Code::dependency_stale;
  return std::nullopt;
}

// The codes are in the order of their gravity.
std::optional<Broken> gravest(const Piece& piece, std::chrono::seconds fresh_for, Time now) {
  std::optional<Broken> broken;
  for (const Piece& dependency : piece.dependencies) {
    const auto fault = fault_of(dependency, fresh_for, now);
    if (fault && (!broken || *fault < broken->code)) broken = Broken{*fault, &dependency};
  }
  if (piece.dependencies_cut && (!broken || Code::dependencies_cut < broken->code))
    broken = Broken{Code::dependencies_cut, nullptr};
  return broken;
}

std::string text_of(const Broken& broken) {
  constexpr std::string_view remedy = "Record the evidence again, with dependencies that are intact and fresh.";
  if (broken.dependency == nullptr)
    return fmt::format(
        "The evidence depends on more than {} pieces, or on a chain of more than {}, which are not all checked. Record "
        "it with fewer dependencies.",
        limits::evidence_dependencies_max, limits::evidence_dependency_depth_max);
  const std::string& id = broken.dependency->evidence_id;
  if (broken.code == Code::dependency_unknown)
    return fmt::format("The evidence depends on evidence {}, which is unknown or not readable. {}", id, remedy);
  if (broken.code == Code::dependency_erased)
    return fmt::format("The evidence depends on evidence {}, which was erased. {}", id, remedy);
  if (broken.code == Code::dependency_damaged)
    return fmt::format("The evidence depends on evidence {}, which was tampered with: {}. {}", id,
                       broken.dependency->damage, remedy);
  return fmt::format(
      "The evidence depends on evidence {}, which is stale: it was recorded at {}{}. {}", id,
      format_time(broken.dependency->recorded_at),
      broken.dependency->expires_at ? " and expires at " + format_time(*broken.dependency->expires_at) : std::string(),
      remedy);
}

}  // namespace

std::optional<BrokenDependency> broken_dependency(const Piece& piece, std::chrono::seconds fresh_for, Time now) {
  const auto broken = gravest(piece, fresh_for, now);
  if (!broken) return std::nullopt;
  return BrokenDependency{broken->dependency != nullptr ? broken->dependency->evidence_id : std::string(),
                          row_of(broken->code).name, text_of(*broken)};
}

void check_dependencies(Case& c, Findings& findings) {
  for (const Exhibit& exhibit : c.exhibits) {
    const Piece& piece = *exhibit.piece;
    if (const auto broken = gravest(piece, c.policy.fresh_for, c.now))
      findings.add(broken->code, piece.evidence_id, text_of(*broken));
  }
}

}  // namespace muniment::evidence::completion
