#include "gateway/append/event_json.hpp"

#include <gtest/gtest.h>

#include "base/json/schema.hpp"
#include "gateway/access.hpp"

namespace muniment::gateway {
namespace {

// Checks `text` against a definition of schema/rpc/common.json. Returns the error.
std::string misfit(const std::string& definition, const std::string& text) {
  const std::string wrapper =
      R"({"type": "object", "properties": {"it": {"$ref": "rpc/common.json#/$defs/)" + definition + R"("}}})";
  std::vector<SchemaText> texts(embedded_schema_texts().begin(), embedded_schema_texts().end());
  texts.push_back({"wrapper", wrapper});
  const auto set = SchemaSet::load(texts);
  if (!set) return set.error().message;
  const std::string wrapped = "{\"it\":" + text + "}";
  const auto document = json::parse(wrapped);
  if (!document) return document.error().message;
  const Status status = set->find("wrapper")->validate(document->root());
  return status ? "" : status.error().message;
}

events::Event sample_event() {
  events::Event event;
  event.seq = 918;
  event.run_no = 3;
  event.run_id = "r1";
  event.run_seq = 41;
  event.recorded_at = *parse_time("2026-11-21T14:02:11.000123Z");
  event.occurred_at = *parse_time("2026-11-21T14:02:10Z");
  event.type = "x.acme.note";
  event.step_id = "s:1";
  event.actor = "uid:1000";
  event.event_id = *parse_uuid("01020304-0506-8708-890a-0b0c0d0e0f10");
  event.body_hash.fill(0xab);
  event.salt.emplace().fill(0x01);
  event.body = R"({"n" : 1.50, "t":"\u00e4"})";
  event.run_hash.fill(0xff);
  return event;
}

TEST(EventJson, AnEventIsAnsweredWithTheBytesOfItsBody) {
  const std::string text = event_json(sample_event());
  EXPECT_EQ(misfit("event", text), "");
  EXPECT_EQ(text, R"({"seq":918,"run_id":"r1","run_seq":41,"recorded_at":"2026-11-21T14:02:11.000123Z",)"
                  R"("occurred_at":"2026-11-21T14:02:10.000000Z","origin":"reported","type":"x.acme.note",)"
                  R"("schema_version":1,"step_id":"s:1","actor":"uid:1000",)"
                  R"("event_id":"01020304-0506-8708-890a-0b0c0d0e0f10","body":{"n" : 1.50, "t":"\u00e4"},)"
                  R"("body_hash":")" +
                      std::string("abababababababababababababababab") + "abababababababababababababababab" +
                      R"(","salt":")" + "0101010101010101010101010101010101010101010101010101010101010101" +
                      R"(","run_hash":")" + std::string(64, 'f') + "\"}");
}

TEST(EventJson, WhatIsAbsentIsLeftOut) {
  events::Event event = sample_event();
  event.step_id.reset();
  event.occurred_at.reset();
  const std::string text = event_json(event);
  EXPECT_EQ(text.find("step_id"), std::string::npos);
  EXPECT_EQ(text.find("occurred_at"), std::string::npos);
  EXPECT_EQ(text.find("redacted"), std::string::npos);
  EXPECT_EQ(misfit("event", text), "");
}

TEST(EventJson, ARedactedEventSaysSo) {
  events::Event event = sample_event();
  event.body.reset();
  event.salt.reset();
  const std::string text = event_json(event);
  EXPECT_NE(text.find(R"("body":null)"), std::string::npos);
  EXPECT_NE(text.find(R"("salt":null)"), std::string::npos);
  EXPECT_NE(text.find(R"("redacted":true)"), std::string::npos);
  EXPECT_EQ(misfit("event", text), "");
}

TEST(EventJson, OnlyTheFieldsThatWereAskedForAreAnswered) {
  const auto names = json::parse(R"(["type","seq"])");
  const auto fields = event_fields(names->root());
  ASSERT_TRUE(fields.ok());
  EXPECT_EQ(event_json(sample_event(), *fields), R"({"seq":918,"type":"x.acme.note"})");
  const auto unknown = json::parse(R"(["size"])");
  EXPECT_EQ(event_fields(unknown->root()).error().code, Errc::invalid_argument);
}

TEST(EventJson, TheSchemaListsTheFieldsThatThereAre) {
  for (const SchemaText& schema : embedded_schema_texts()) {
    if (schema.path != "rpc/event.list") continue;
    const auto document = json::parse(schema.text);
    const json::Value listed = document->root()["params"]["properties"]["fields"]["items"]["enum"];
    EXPECT_EQ(listed.size(), 16u);
    EXPECT_TRUE(event_fields(listed).ok());
    return;
  }
  FAIL() << "no schema of event.list";
}

TEST(Receipt, IsTheObjectThatTheContractNames) {
  events::Receipt receipt;
  receipt.event_id = *parse_uuid("01020304-0506-8708-890a-0b0c0d0e0f10");
  receipt.seq = 7;
  receipt.run_seq = 2;
  receipt.recorded_at = Time{1'000'001};
  receipt.body_hash.fill(0x12);
  receipt.salt.fill(0x34);
  receipt.run_hash.fill(0x56);
  receipt.leaf_hash.fill(0x78);
  const std::string text = receipt_json(receipt);
  EXPECT_EQ(misfit("receipt", text), "");
  const auto document = json::parse(text);
  const json::Value root = document->root();
  EXPECT_EQ(root["event_id"].as_string(), "01020304-0506-8708-890a-0b0c0d0e0f10");
  EXPECT_EQ(root["seq"].as_int(), 7);
  EXPECT_EQ(root["run_seq"].as_int(), 2);
  EXPECT_EQ(root["recorded_at"].as_string(), "1970-01-01T00:00:01.000001Z");
  EXPECT_EQ(root["body_hash"].as_string(), to_hex(receipt.body_hash));
  EXPECT_EQ(root["salt"].as_string(), to_hex(receipt.salt));
  EXPECT_EQ(root["run_hash"].as_string(), to_hex(receipt.run_hash));
  EXPECT_EQ(root["leaf_hash"].as_string(), to_hex(receipt.leaf_hash));
  EXPECT_EQ(root["duplicate"].as_bool(), false);
  EXPECT_EQ(root.size(), 9u);
}

}  // namespace
}  // namespace muniment::gateway
