#include "cli/chain_check.hpp"

#include <fmt/format.h>

#include "base/clock.hpp"
#include "events/entry.hpp"

namespace muniment::cli {
std::optional<events::Event> event_of_answer(const json::Value& answer, std::int64_t run_no) {
  events::Event event;
  event.run_no = run_no;
  const auto recorded_at = parse_time(answer["recorded_at"].string_or(""));
  const auto origin = events::origin_named(answer["origin"].string_or(""));
  const auto event_id = parse_uuid(answer["event_id"].string_or(""));
  const auto body_hash = hash_from_hex(answer["body_hash"].string_or(""));
  const auto run_hash = hash_from_hex(answer["run_hash"].string_or(""));
  if (!recorded_at || !origin || !event_id || !body_hash || !run_hash) return std::nullopt;
  event.seq = answer["seq"].as_int().value_or(-1);
  event.run_id = answer["run_id"].string_or("");
  event.run_seq = answer["run_seq"].as_int().value_or(-1);
  event.recorded_at = *recorded_at;
  if (const auto occurred = answer["occurred_at"].as_string()) event.occurred_at = parse_time(*occurred);
  event.origin = *origin;
  event.type = answer["type"].string_or("");
  event.schema_version = static_cast<std::int16_t>(answer["schema_version"].as_int().value_or(0));
  event.step_id = answer["step_id"].as_string();
  event.actor = answer["actor"].string_or("");
  event.event_id = *event_id;
  event.body_hash = *body_hash;
  event.salt = hash_from_hex(answer["salt"].string_or(""));
  if (event.salt) event.body = std::string(answer["body"].source());
  event.run_hash = *run_hash;
  return event;
}

void ChainCheck::add(const json::Value& answer) {
  if (broken_) return;
  const auto event = event_of_answer(answer, run_no_);
  if (!event) {
    broken_ = fmt::format("an event in the daemon's reply is incomplete: {}", answer["seq"].source());
    return;
  }
  const auto say = [&](std::string_view what) {
    broken_ = fmt::format("seq {} (run_seq {}): {}", event->seq, event->run_seq, what);
  };
  if (event->run_seq != next_run_seq_) return say(fmt::format("run_seq {} was expected", next_run_seq_));
  if (event->seq <= last_seq_) return say("seq does not rise");
  if (event->body && sha256({view(*event->salt), *event->body}) != event->body_hash)
    return say("the body does not match its hash");
  const events::EntryHashes hashes = events::hash_entry(log_id_, *event, run_hash_);
  if (hashes.run_hash != event->run_hash) return say("the entry does not match its run_hash");
  ++next_run_seq_;
  last_seq_ = event->seq;
  run_hash_ = hashes.run_hash;
  leaf_hash_ = hashes.leaf_hash;
}

}  // namespace muniment::cli
