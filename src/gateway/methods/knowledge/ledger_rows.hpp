// What the methods of the ledger share: rows as replies show them, who may see them, and the hashes of evidence.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json/json.hpp"
#include "evidence/resolver.hpp"
#include "evidence/stop_rule.hpp"
#include "gateway/call.hpp"
#include "store/append/rows.hpp"

namespace muniment::gateway::methods {

bool is_erased(const store::EvidenceRow& row);

void write_evidence(json::Writer& out, const store::EvidenceRow& row);

// The id of what a request records, and of its event: the same for the same idempotency key.
struct RecordIds {
  Uuid id;
  std::optional<Uuid> event_id;
};
RecordIds ids_for(Call& call, const store::Run& run, std::string_view method);

// One ledger event with its row, behind what resolving its pointers left to log.
struct LedgerEntry {
  std::shared_ptr<store::Run> run;
  events::NewEvent event;
  store::Row row;
  std::string_view id_name;  // of the reply's member that has `id`
  Uuid id;
  std::optional<Hash> hash;
  std::string reply_members{};  // further members of the reply, as JSON text with a comma in front
};
Answer record_entry(Call& call, LedgerEntry entry, const RecordIds& ids, const evidence::Outcome& outcome);

// The reply of a request that records: {"<id_name>": id, "hash"?, "seq", "duplicate"}.
std::string recorded_json(std::string_view id_name, const Uuid& id, const Hash* hash, std::int64_t seq, bool duplicate,
                          std::string_view more = {});

// The body of evidence.recorded; `more`: further members, as JSON text with a comma in front. Errors: too_large.
Result<std::string> recorded_body(const store::EvidenceRow& row, std::string_view more = {});

// SHA-256 of recorded content: of its text, where it has a text and nothing else but metadata; otherwise of its
// canonical JSON.
Hash hash_of_content(const json::Value& content);

// SHA-256 of what the pointer names, whole or in part. Errors: invalid_argument for what is no bytes, too_large, and
// what reading a file answers.
Result<Hash> hash_of_evidence(Call& call, const evidence::Resolution& found);

// One run's use of evidence, and what reads it.
struct EvidenceUse {
  store::EvidenceRow row;
  store::Reader* reader = nullptr;
};

// The uses that the caller may see, in all logs or in `run_id` alone, oldest first, behind those the erased ones.
// Errors: not_found where there are none.
Result<std::vector<EvidenceUse>> evidence_uses(Call& call, const Uuid& id, const std::optional<std::string>& run_id);

// Resolves the pointer of a use under the stop rule of its run; empty where it has content.
Result<evidence::Outcome> look_at_evidence(Call& call, const EvidenceUse& use);

// What is stored of evidence now, against what was recorded. `found`: what its pointer names; nullptr: it has content.
struct EvidenceState {
  bool ok = false;
  std::string reason, detail;
  std::optional<std::string> actual;
};
Result<EvidenceState> compare_evidence(Call& call, const store::EvidenceRow& row, const evidence::Resolution* found);

}  // namespace muniment::gateway::methods
