// Tests of the hashed bytes, computed by hand from docs/format.md.
#include "events/entry.hpp"

#include <gtest/gtest.h>

namespace muniment::events {
namespace {

Event plain_event() {
  Event event;
  event.seq = 258;
  event.run_no = 7;
  event.run_id = "r1";
  event.run_seq = 3;
  event.recorded_at = Time{0x0102030405060708};
  event.origin = Origin::reported;
  event.type = "x.a.b";
  event.schema_version = 1;
  event.actor = "uid:1000";
  for (std::size_t i = 0; i < event.event_id.bytes.size(); ++i)
    event.event_id.bytes[i] = static_cast<std::uint8_t>(0xe0 + i);
  event.body_hash.fill(0xbb);
  return event;
}

Uuid log_id() {
  Uuid id;
  id.bytes.fill(0x11);
  return id;
}

Hash filled(std::uint8_t byte) {
  Hash hash;
  hash.fill(byte);
  return hash;
}

std::string encoded(const Event& event, const Hash& previous) {
  std::string bytes;
  encode_entry(log_id(), event, previous, bytes);
  return to_hex(bytes);
}

std::string repeat(std::string_view text, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += text;
  return out;
}

TEST(Entry, HasTheBytesOfTheFormat) {
  const std::string expected = "01" + repeat("11", 16) +  // version, log_id
                               "0000000000000102"         // seq 258
                               "0000000000000007"         // run_no
                               "00027231"                 // "r1"
                               "0000000000000003"         // run_seq
                               "0102030405060708"         // recorded_at
                               "00"                       // occurred_at absent
                               "02"                       // reported
                               "0005782e612e62"           // "x.a.b"
                               "0001"                     // schema_version
                               "00"                       // step_id absent
                               "00087569643a31303030"     // "uid:1000"
                               "e0e1e2e3e4e5e6e7e8e9eaebecedeeef" +
                               repeat("00", 32) + repeat("bb", 32);
  EXPECT_EQ(encoded(plain_event(), Hash{}), expected);
}

TEST(Entry, WhatIsPresentIsMarked) {
  Event event = plain_event();
  event.occurred_at = Time{-1};
  event.step_id = "s";
  event.origin = Origin::imported;
  const std::string expected = "01" + repeat("11", 16) +
                               "0000000000000102"
                               "0000000000000007"
                               "00027231"
                               "0000000000000003"
                               "0102030405060708"
                               "01ffffffffffffffff"
                               "03"
                               "0005782e612e62"
                               "0001"
                               "01000173"
                               "00087569643a31303030"
                               "e0e1e2e3e4e5e6e7e8e9eaebecedeeef" +
                               repeat("cc", 32) + repeat("bb", 32);
  EXPECT_EQ(encoded(event, filled(0xcc)), expected);
}

TEST(Entry, ChainAndLeafDifferOnlyInTheirFirstByte) {
  const Event event = plain_event();
  std::string entry;
  encode_entry(log_id(), event, filled(0xcc), entry);
  const EntryHashes hashes = hash_entry(log_id(), event, filled(0xcc));
  EXPECT_EQ(hashes.run_hash, sha256(std::string("\x10", 1) + entry));
  EXPECT_EQ(hashes.leaf_hash, sha256(std::string("\x00", 1) + entry));
}

TEST(Entry, EveryFieldChangesTheHash) {
  const Event base = plain_event();
  const Hash before = hash_entry(log_id(), base, Hash{}).run_hash;
  const auto changed = [&](auto change) {
    Event event = base;
    change(event);
    return hash_entry(log_id(), event, Hash{}).run_hash != before;
  };
  EXPECT_TRUE(changed([](Event& e) { ++e.seq; }));
  EXPECT_TRUE(changed([](Event& e) { ++e.run_no; }));
  EXPECT_TRUE(changed([](Event& e) { e.run_id = "r2"; }));
  EXPECT_TRUE(changed([](Event& e) { ++e.run_seq; }));
  EXPECT_TRUE(changed([](Event& e) { ++e.recorded_at.micros; }));
  EXPECT_TRUE(changed([](Event& e) { e.occurred_at = Time{0}; }));
  EXPECT_TRUE(changed([](Event& e) { e.origin = Origin::observed; }));
  EXPECT_TRUE(changed([](Event& e) { e.type = "x.a.c"; }));
  EXPECT_TRUE(changed([](Event& e) { ++e.schema_version; }));
  EXPECT_TRUE(changed([](Event& e) { e.step_id = ""; }));
  EXPECT_TRUE(changed([](Event& e) { e.actor = "uid:1001"; }));
  EXPECT_TRUE(changed([](Event& e) { e.event_id.bytes[15] ^= 1; }));
  EXPECT_TRUE(changed([](Event& e) { e.body_hash[31] ^= 1; }));
  EXPECT_NE(hash_entry(log_id(), base, filled(1)).run_hash, before);
  EXPECT_NE(hash_entry(Uuid{}, base, Hash{}).run_hash, before);
}

TEST(Entry, ABodysHashCoversItsSalt) {
  NewEvent event;
  event.body = R"({"a":1})";
  seal(event);
  const std::string salt(reinterpret_cast<const char*>(event.salt.data()), event.salt.size());
  EXPECT_EQ(event.body_hash, sha256(salt + event.body));
  NewEvent again = event;
  seal(again);
  EXPECT_NE(again.salt, event.salt);
}

}  // namespace
}  // namespace muniment::events
