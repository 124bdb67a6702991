#include "base/json/schema.hpp"

#include <gtest/gtest.h>

namespace muniment {
namespace {

constexpr SchemaText texts[] = {
    {"common", R"({"$defs": {
        "usage": {"type": "object", "additionalProperties": false, "required": ["input_tokens"],
                  "properties": {"input_tokens": {"type": "integer", "minimum": 0, "maximum": 1000}}},
        "tree": {"type": "object", "additionalProperties": false, "required": ["children"],
                 "properties": {"children": {"type": "array", "items": {"$ref": "#/$defs/tree"}}}},
        "alias": {"$ref": "#/$defs/usage"},
        "part": {"oneOf": [
            {"type": "object", "additionalProperties": false, "required": ["type", "text"],
             "properties": {"type": {"const": "text"}, "text": {"type": "string"}}},
            {"type": "object", "additionalProperties": false, "required": ["type", "uri"],
             "properties": {"type": {"const": "uri"}, "uri": {"type": "string", "minLength": 1}}},
            {"type": "object", "additionalProperties": false, "required": ["artifact_id"],
             "properties": {"artifact_id": {"type": "string", "format": "uuid"}}}]}}})"},
    {"event/sample", R"({"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Sample",
        "type": "object", "additionalProperties": false, "required": ["name"], "x-otel": "gen_ai",
        "properties": {
          "name": {"type": "string", "minLength": 1, "maxLength": 8},
          "note": {"type": ["string", "null"]},
          "status": {"enum": ["ok", "error", "denied"]},
          "usage": {"$ref": "common.json#/$defs/usage"},
          "again": {"$ref": "common.json#/$defs/alias"},
          "tree": {"$ref": "common.json#/$defs/tree"},
          "content": {"type": "array", "items": {"$ref": "common.json#/$defs/part"}, "maxItems": 3},
          "labels": {"type": "object", "additionalProperties": {"type": "string"}, "maxProperties": 2},
          "score": {"type": "number"}, "flag": {"type": "boolean"}, "free": {},
          "run_id": {"type": "string", "format": "run-id"},
          "any_run": {"type": "string", "format": "run-id-or-log"},
          "step_id": {"type": "string", "format": "step-id"},
          "event_id": {"type": "string", "format": "uuid"},
          "at": {"type": "string", "format": "date-time"},
          "hash": {"type": "string", "format": "sha256"},
          "pointer": {"type": "string", "format": "pointer"}}})"},
    {"rpc/thing.do", R"({"description": "…",
        "params": {"type": "object", "additionalProperties": false, "required": ["a", "b"],
                   "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}},
        "result": {"type": "object", "properties": {"c": {"type": "array", "minItems": 1}}}})"},
};

class SchemaTest : public testing::Test {
 protected:
  static std::string problem(std::string_view path, std::string_view text, std::string_view at = {}) {
    static const auto set = SchemaSet::load(texts);
    if (!set) return set.error().message;
    const auto schema = set->find(path);
    if (!schema) return "no such schema";
    const auto document = json::parse(text);
    if (!document) return document.error().message;
    const Status status = schema->validate(document->root(), at);
    return status ? "" : status.error().message;
  }
  static std::string sample(std::string_view members) {
    return problem("event/sample", std::string("{\"name\":\"n\",") + std::string(members) + "}");
  }
};

TEST_F(SchemaTest, WhatFitsIsAccepted) {
  EXPECT_EQ(problem("event/sample", R"({"name":"n"})"), "");
  EXPECT_EQ(sample(R"("note":null,"status":"ok","usage":{"input_tokens":1000},"again":{"input_tokens":0},
      "content":[{"type":"text","text":""},{"artifact_id":"ba7816bf-8f01-8fea-8141-40de5dae2223"}],
      "labels":{"any":"x"},"score":1,"flag":true,"free":[{}],"run_id":"r1","any_run":"_log",
      "step_id":"a:b","event_id":"ba7816bf-8f01-8fea-8141-40de5dae2223","at":"2026-11-21T14:02:11Z",
      "hash":"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad","pointer":"run://r1")"),
            "");
  EXPECT_EQ(sample(R"("score":0.5,"\u006eote":"escaped key","status":"\u006fk")"), "");
}

TEST_F(SchemaTest, AWrongTypeNamesThePlaceAndTheValue) {
  EXPECT_EQ(problem("event/sample", R"({"name":"n","usage":{"input_tokens":"12"}})", "events[3].body"),
            "events[3].body.usage.input_tokens: expected integer, got string \"12\"");
  EXPECT_EQ(problem("event/sample", "[1]"), "expected object, got array");
  EXPECT_EQ(sample(R"("note":7)"), "note: expected string or null, got number 7");
  EXPECT_EQ(sample(R"("score":"x")"), "score: expected number, got string \"x\"");
  EXPECT_EQ(sample(R"("usage":{"input_tokens":1.0})"), "usage.input_tokens: expected integer, got number 1.0");
  EXPECT_EQ(sample(R"("flag":{})"), "flag: expected boolean, got object");
  EXPECT_EQ(sample(R"("content":[{"type":"text","text":""},7])"), "content[1]: expected object, got number 7");
}

TEST_F(SchemaTest, AnUnknownFieldIsRefusedWithTheNearestName) {
  EXPECT_EQ(sample(R"("statsu":"ok")"), "unknown field \"statsu\". Did you mean \"status\"?");
  EXPECT_EQ(sample(R"("usage":{"input_tokens":1,"zzzzzzzzzz":1})"),
            "usage: unknown field \"zzzzzzzzzz\". Known are input_tokens.");
  EXPECT_EQ(sample(R"("x_mine":{"anything":1})"), "");
}

TEST_F(SchemaTest, MissingFieldsAreNamed) {
  EXPECT_EQ(problem("event/sample", R"({"note":"x"})"), "missing field \"name\"");
  EXPECT_EQ(problem("rpc/thing.do#params", "{}"), "missing fields \"a\", \"b\" (it is empty)");
}

TEST_F(SchemaTest, LimitsAreTestedAtTheirEdges) {
  EXPECT_EQ(problem("event/sample", R"({"name":"12345678"})"), "");
  EXPECT_EQ(problem("event/sample", R"({"name":"123456789"})"), "name: 9 bytes, limit 8");
  EXPECT_EQ(problem("event/sample", R"({"name":"ääää\u00e4"})"), "name: 10 bytes, limit 8");
  EXPECT_EQ(problem("event/sample", R"({"name":""})"), "name: must not be empty");
  EXPECT_EQ(sample(R"("usage":{"input_tokens":1001})"), "usage.input_tokens: 1001 is above 1000, the limit");
  EXPECT_EQ(sample(R"("usage":{"input_tokens":-1})"), "usage.input_tokens: -1 is below 0, the minimum");
  EXPECT_EQ(sample(R"("labels":{"a":"","b":"","c":""})"), "labels: 3 members, limit 2");
  EXPECT_EQ(sample(R"("labels":{"a":1})"), "labels.a: expected string, got number 1");
  EXPECT_EQ(problem("rpc/thing.do#result", R"({"c":[]})"), "c: 0 items, at least 1 required");
}

TEST_F(SchemaTest, AnEnumListsItsValues) {
  EXPECT_EQ(sample(R"("status":"errro")"),
            "status: expected one of \"ok\", \"error\", \"denied\", got string \"errro\". Did you mean "
            "\"error\"?");
  EXPECT_EQ(sample(R"("status":null)"), "status: expected one of \"ok\", \"error\", \"denied\", got null.");
}

TEST_F(SchemaTest, FormatsAreChecked) {
  EXPECT_EQ(
      sample(R"("run_id":"a/b")"),
      "run_id: run_id has \"/\" at byte 1; letters, digits and . _ - are allowed. Put an id of another system into external_id.");
  EXPECT_NE(sample(R"("run_id":"_log")"), "");
  EXPECT_NE(sample(R"("any_run":"_other")"), "");
  EXPECT_NE(sample(R"("step_id":"/")"), "");
  EXPECT_EQ(sample(R"("event_id":"7")"), "event_id: expected a UUID, got \"7\"");
  EXPECT_EQ(sample(R"("at":"yesterday")"),
            "at: expected an RFC 3339 time such as \"2026-11-21T14:02:11Z\", got \"yesterday\"");
  EXPECT_EQ(sample(R"("hash":"00")"), "hash: expected a SHA-256 of 64 lower-case hex digits, got \"00\"");
  EXPECT_EQ(sample(R"("pointer":"")"), "pointer: expected a pointer such as \"artifact://…\", got \"\"");
}

TEST_F(SchemaTest, AOneOfExplainsTheAlternativeThatWasMeant) {
  EXPECT_EQ(sample(R"("content":[{"type":"text","text":7}])"), "content[0].text: expected string, got number 7");
  EXPECT_EQ(sample(R"("content":[{"type":"uri","uri":""}])"), "content[0].uri: must not be empty");
  EXPECT_EQ(sample(R"("content":[{"type":"uri"}])"), "content[0]: missing field \"uri\"");
  EXPECT_EQ(sample(R"("content":[{"artifact_id":"7"}])"), "content[0].artifact_id: expected a UUID, got \"7\"");
  EXPECT_EQ(sample(R"("content":[{"type":"text","text":"","texxt":""}])"),
            "content[0]: unknown field \"texxt\". Did you mean \"text\"?");
}

TEST_F(SchemaTest, ADefinitionMayReferToItself) {
  EXPECT_EQ(sample(R"("tree":{"children":[{"children":[]},{"children":[]}]})"), "");
  EXPECT_EQ(sample(R"("tree":{"children":[{"children":[{}]}]})"),
            "tree.children[0].children[0]: missing field \"children\" (it is empty)");
}

TEST(SchemaSet, AFileWithParamsHoldsTwoSchemas) {
  const auto set = SchemaSet::load(texts);
  ASSERT_TRUE(set) << set.error().message;
  EXPECT_TRUE(set->find("rpc/thing.do#params"));
  EXPECT_TRUE(set->find("rpc/thing.do#result"));
  EXPECT_FALSE(set->find("rpc/thing.do"));
  EXPECT_EQ(set->paths("rpc/"), (std::vector<std::string_view>{"rpc/thing.do#params", "rpc/thing.do#result"}));
}

TEST(SchemaSet, ASchemaThatPromisesWhatIsNotCheckedDoesNotLoad) {
  const auto problem = [](std::string_view text) {
    const SchemaText one[] = {{"event/x", text}};
    const auto set = SchemaSet::load(one);
    return set ? std::string() : set.error().message;
  };
  EXPECT_EQ(problem(R"({"properties":{"a":{"pattern":"x"}}})"),
            "schema/event/x.json: properties: a: pattern: unknown keyword");
  EXPECT_EQ(problem(R"({"type":"text"})"), "schema/event/x.json: type: unknown type \"text\"");
  EXPECT_EQ(problem(R"({"format":"email"})"), "schema/event/x.json: format: unknown format \"email\"");
  EXPECT_EQ(problem(R"({"$ref":"#/$defs/gone"})"), "schema/event/x.json: $ref \"#/$defs/gone\": no such definition");
  EXPECT_EQ(problem(R"({"$ref":"common.json#/$defs/x"})"),
            "schema/event/x.json: $ref \"common.json#/$defs/x\": no such file");
  EXPECT_EQ(problem(R"({"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/a"}}})"),
            "schema/event/x.json: $ref is circular");
  EXPECT_NE(problem("{"), "");
}

TEST(SchemaSet, TheContractInTheBinaryLoads) {
  const auto set = SchemaSet::embedded();
  ASSERT_TRUE(set) << set.error().message;
  EXPECT_EQ(set->paths("").empty(), embedded_schema_texts().empty());
}

}  // namespace
}  // namespace muniment
