// Encodes and hashes an event's entry.
#include "events/entry.hpp"

#include <cassert>

namespace muniment::events {
namespace {

constexpr char entry_version = 1;
constexpr std::string_view leaf_domain{"\x00", 1};
constexpr std::string_view chain_domain{"\x10", 1};

template <typename Unsigned>
void put(std::string& out, Unsigned value) {
  for (int shift = (static_cast<int>(sizeof value) - 1) * 8; shift >= 0; shift -= 8) {
    out.push_back(static_cast<char>(value >> shift));
  }
}

void put_int(std::string& out, std::int64_t value) { put(out, static_cast<std::uint64_t>(value)); }

void put_text(std::string& out, std::string_view text) {
  assert(text.size() <= 0xffff);
  put(out, static_cast<std::uint16_t>(text.size()));
  out.append(text);
}

void put_bytes(std::string& out, const std::uint8_t* bytes, std::size_t size) {
  out.append(reinterpret_cast<const char*>(bytes), size);
}

}  // namespace

void encode_entry(const Uuid& log_id, const Event& event, const Hash& previous, std::string& out) {
  out.push_back(entry_version);
  put_bytes(out, log_id.bytes.data(), log_id.bytes.size());
  put_int(out, event.seq);
  put_int(out, event.run_no);
  put_text(out, event.run_id);
  put_int(out, event.run_seq);
  put_int(out, event.recorded_at.micros);
  out.push_back(event.occurred_at ? 1 : 0);
  if (event.occurred_at) put_int(out, event.occurred_at->micros);
  out.push_back(static_cast<char>(event.origin));
  put_text(out, event.type);
  put(out, static_cast<std::uint16_t>(event.schema_version));
  out.push_back(event.step_id ? 1 : 0);
  if (event.step_id) put_text(out, *event.step_id);
  put_text(out, event.actor);
  put_bytes(out, event.event_id.bytes.data(), event.event_id.bytes.size());
  put_bytes(out, previous.data(), previous.size());
  put_bytes(out, event.body_hash.data(), event.body_hash.size());
}

EntryHashes hash_entry(const Uuid& log_id, const Event& event, const Hash& previous) {
  thread_local std::string entry;
  entry.clear();
  encode_entry(log_id, event, previous, entry);
  return {sha256({chain_domain, entry}), sha256({leaf_domain, entry})};
}

}  // namespace muniment::events
