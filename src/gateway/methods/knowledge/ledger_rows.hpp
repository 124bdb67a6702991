// Helpers that the methods of the ledger share: the JSON of rows, their visibility, and the hashes of evidence.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json/json.hpp"
#include "evidence/resolver.hpp"
#include "evidence/stop_rule.hpp"
#include "gateway/call.hpp"
#include "store/append/rows.hpp"
#include "store/read/reader.hpp"

namespace muniment::gateway::methods {

bool is_erased(const store::EvidenceRow& row);

void write_evidence(json::Writer& out, const store::EvidenceRow& row, const std::vector<store::EvidenceTerms>& terms);

// The ids of a record and of its event; equal idempotency keys give equal ids.
struct RecordIds {
  Uuid id;
  std::optional<Uuid> event_id;
};
RecordIds ids_for(Call& call, const store::Run& run, std::string_view method);

// One ledger event with its row. It is appended after the events from resolving its pointers.
struct LedgerEntry {
  std::shared_ptr<store::Run> run;
  events::NewEvent event;
  store::Row row;
  std::string_view id_name;  // name of the reply's member that has `id`
  Uuid id;
  std::optional<Hash> hash;
  std::string reply_members{};  // further members of the reply: JSON text with a leading comma
};
Answer record_entry(Call& call, LedgerEntry entry, const RecordIds& ids, const evidence::Outcome& outcome);

// Returns the reply of a recording request: {"<id_name>": id, "hash"?, "seq", "duplicate"}.
std::string recorded_json(std::string_view id_name, const Uuid& id, const Hash* hash, std::int64_t seq, bool duplicate,
                          std::string_view more = {});

// Returns the body of evidence.recorded. `more`: further members, JSON text with a leading comma. Errors: too_large.
Result<std::string> recorded_body(const store::EvidenceRow& row, std::string_view more = {});

// Returns the SHA-256 of recorded content: of its text if it consists of a text and optional metadata, otherwise of its
// canonical JSON.
Hash hash_of_content(const json::Value& content);

// Returns the SHA-256 of the pointer's target, or of its span. Errors: invalid_argument for a target without bytes,
// too_large, and those of reading a file.
Result<Hash> hash_of_evidence(Call& call, const evidence::Resolution& found);

// The use of evidence by one run, and the reader of its log.
struct EvidenceUse {
  store::EvidenceRow row;
  store::Reader* reader = nullptr;
};

// Returns the uses that the caller may see, in all logs or only in `run_id`: intact uses first, oldest first, then the
// erased ones. Errors: not_found if there are none.
Result<std::vector<EvidenceUse>> evidence_uses(Call& call, const Uuid& id, const std::optional<std::string>& run_id);

// Resolves what a use rests on, under the stop rule of its run: its pointer first, if it has one, then its artifacts.
// `event` is its evidence.recorded event.
Result<evidence::Outcome> look_at_evidence(Call& call, const EvidenceUse& use, const events::Event& event);

// Returns the resolved pointer of evidence; nullptr for evidence with content.
const evidence::Resolution* own_pointer(const store::EvidenceRow& row, const evidence::Outcome& outcome);

// Compares the stored evidence with the record. `outcome` is that of look_at_evidence.
struct EvidenceState {
  bool ok = false;
  std::string reason, detail;
  std::optional<std::string> actual;
};
Result<EvidenceState> compare_evidence(Call& call, const store::EvidenceRow& row, const evidence::Outcome& outcome);

}  // namespace muniment::gateway::methods
