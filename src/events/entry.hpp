// The hashed entry of an event: fixed framing, never canonical JSON (docs/format.md, Entry). The run's chain and the
// log's Merkle leaf are two hashes of the same bytes.
#pragma once

#include <string>

#include "events/event.hpp"

namespace muniment::events {

struct EntryHashes {
  Hash run_hash{};   // sha256(0x10 ‖ entry)
  Hash leaf_hash{};  // sha256(0x00 ‖ entry)
};

// Appends the entry of a numbered event with its body_hash to `out`. `previous` is the run_hash of the run's previous
// event, or 32 zero bytes for the first.
void encode_entry(const Uuid& log_id, const Event& event, const Hash& previous, std::string& out);

EntryHashes hash_entry(const Uuid& log_id, const Event& event, const Hash& previous);

}  // namespace muniment::events
