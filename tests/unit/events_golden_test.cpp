// Golden pairs: for every type a body, and the hashes of its event, in which everything but type and body is fixed.
// They detect a change of the hashed bytes, which must not happen. MUNIMENT_ACCEPT=1 rewrites the hashes.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "base/json/json.hpp"
#include "events/catalogue.hpp"
#include "events/entry.hpp"

namespace muniment::events {
namespace {

std::string path_of(std::string_view type) { return MUNIMENT_GOLDEN "/events/" + std::string(type) + ".json"; }

std::string read_text(const std::string& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

Event fixed_event(const TypeInfo& info, std::string_view body) {
  Event event;
  event.seq = 41;
  event.run_no = 3;
  event.run_id = "golden";
  event.run_seq = 5;
  event.recorded_at = *parse_time("2026-01-02T03:04:05.678901Z");
  event.origin = info.writer == Writer::client ? Origin::reported : Origin::observed;
  event.type = info.name;
  event.schema_version = info.schema_version;
  event.step_id = "main";
  event.actor = "uid:1000";
  event.event_id = *parse_uuid("0190f3a1-7c00-7abc-8def-0123456789ab");
  Salt salt{};
  for (std::size_t i = 0; i < salt.size(); ++i) salt[i] = static_cast<std::uint8_t>(i);
  event.body_hash = sha256({std::string_view(reinterpret_cast<const char*>(salt.data()), salt.size()), body});
  return event;
}

std::string pair_text(const TypeInfo& info, std::string_view body) {
  const Event event = fixed_event(info, body);
  Hash previous;
  previous.fill(0x22);
  Uuid log_id;
  log_id.bytes.fill(0x11);
  const EntryHashes hashes = hash_entry(log_id, event, previous);
  return "{\"body\": " + std::string(body) + ",\n \"body_hash\": \"" + to_hex(event.body_hash) +
         "\",\n \"run_hash\": \"" + to_hex(hashes.run_hash) + "\",\n \"leaf_hash\": \"" + to_hex(hashes.leaf_hash) +
         "\"}\n";
}

TEST(Golden, EveryTypesBodyFitsItsSchemaAndHashesAsEver) {
  const bool accept = std::getenv("MUNIMENT_ACCEPT") != nullptr;
  for (const TypeInfo& info : catalogue()) {
    SCOPED_TRACE(info.name);
    const std::string text = read_text(path_of(info.name));
    const auto document = json::parse(text);
    ASSERT_TRUE(document) << path_of(info.name) << ": " << document.error().message;
    const json::Value body = document->root()["body"];
    const Status fits = check_body(info.name, body);
    EXPECT_TRUE(fits) << fits.error().message;
    const std::string expected = pair_text(info, body.source());
    if (accept) {
      std::ofstream(path_of(info.name)) << expected;
    } else {
      EXPECT_EQ(text, expected);
    }
  }
}

}  // namespace
}  // namespace muniment::events
