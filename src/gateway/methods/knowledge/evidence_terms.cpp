#include "gateway/methods/knowledge/evidence_terms.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <set>

#include "gateway/methods/knowledge/ledger_rows.hpp"

namespace muniment::gateway::methods {
namespace {

// Returns the source text of the member; nullopt if it is absent.
std::optional<std::string> source_of(const json::Value& member) {
  return member.present() ? std::optional(std::string(member.source())) : std::nullopt;
}

std::set<std::string> ids_in(const json::Value& list) {
  std::set<std::string> ids;
  for (const json::Value item : list) {
    if (const auto id = parse_uuid(item.string_or(""))) ids.insert(id->text());
  }
  return ids;
}

// Evidence of a command also has the artifacts that the daemon found.
bool has_artifacts_of(Call& call, const store::EvidenceTerms& held) {
  const std::string text = held.artifacts.value_or("[]");  // outlives the document
  const auto list = json::parse(text);
  const std::set<std::string> known = list ? ids_in(list->root()) : std::set<std::string>();
  const std::set<std::string> named = ids_in(call.params["artifacts"]);
  return call.params["command_id"] ? std::ranges::includes(known, named) : known == named;
}

}  // namespace

Result<std::string> terms_of_request(Call& call, const Uuid& own) {
  std::string members;
  if (const auto seconds = call.params["expires_in_seconds"].as_int())
    members += fmt::format(",\"expires_in_seconds\":{}", *seconds);
  const json::Value depends_on = call.params["depends_on"];
  if (!depends_on.present()) return members;
  std::set<std::string> seen;
  for (const json::Value item : depends_on) {
    const auto id = parse_uuid(item.string_or(""));
    if (!id) return Error(Errc::invalid_argument, "depends_on: expected UUIDs of evidence.");
    if (*id == own)
      return Error(Errc::invalid_argument, fmt::format("depends_on: evidence {} cannot depend on itself.", id->text()));
    if (!seen.insert(id->text()).second)
      return Error(Errc::invalid_argument,
                   fmt::format("depends_on: {} is given twice. Pass each id once.", id->text()));
    ASSIGN_OR_RETURN(const auto uses, evidence_uses(call, *id, std::nullopt));
    if (is_erased(uses.front().row))
      return Error(Errc::not_found, fmt::format("depends_on: evidence {} was erased. Omit it.", id->text()));
  }
  return members + ",\"depends_on\":" + std::string(depends_on.source());
}

Result<bool> has_same_terms(Call& call, std::int64_t seq) {
  ASSIGN_OR_RETURN(const auto event, call.reader->confirmed(call.reader->event_at(seq)));
  const store::EvidenceTerms held = event ? store::terms_of(*event) : store::EvidenceTerms{};
  return held.expires_in_seconds == call.params["expires_in_seconds"].as_int() &&
         held.depends_on == source_of(call.params["depends_on"]) && has_artifacts_of(call, held);
}

void write_terms(json::Writer& out, const store::EvidenceRow& row, const std::vector<store::EvidenceTerms>& terms) {
  const auto found = std::ranges::find(terms, row.seq, &store::EvidenceTerms::seq);
  if (found == terms.end()) return;
  if (found->expires_in_seconds)
    out.member("expires_at", format_time(expiry_of(row.created_at, *found->expires_in_seconds)));
  if (found->depends_on) out.raw_member("depends_on", *found->depends_on);
  if (found->artifacts) out.raw_member("artifacts", *found->artifacts);
}

Time expiry_of(Time recorded_at, std::int64_t expires_in_seconds) {
  return Time{recorded_at.micros + std::chrono::microseconds(std::chrono::seconds(expires_in_seconds)).count()};
}

}  // namespace muniment::gateway::methods
