// Tests of the MCP proxies' message parsing and of the records of tool calls; tests/functional/test_mcp_*.py tests the
// proxies as processes.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "adapters/mcp/call_record.hpp"
#include "adapters/mcp/line_gate.hpp"
#include "adapters/mcp/line_stream.hpp"
#include "adapters/mcp/message_check.hpp"
#include "adapters/mcp/scrub_json.hpp"
#include "base/json/json.hpp"
#include "base/json/message_skim.hpp"

namespace muniment::cli {
namespace {

TEST(MessageSkim, FindsTheMembersOfAMessageInAnyOrder) {
  const json::Envelope request =
      json::skim_message(R"( {"params" : {"id":9,"x":"}\""}, "id": "a" ,"method":"tools\/call"} )");
  EXPECT_EQ(request.id, "\"a\"");
  EXPECT_EQ(request.method, "tools/call");
  EXPECT_EQ(request.params, R"({"id":9,"x":"}\""})");
  EXPECT_TRUE(request.is_request());
  EXPECT_FALSE(request.is_response());
  const json::Envelope response = json::skim_message(R"({"\u0069d":1.0,"result":[]})");
  EXPECT_TRUE(response.is_response());
  EXPECT_EQ(json::id_key(response.id), json::id_key("1"));
}

TEST(MessageSkim, FindsNothingInWhatIsNoMessage) {
  for (const char* text :
       {"", "x", "{", "{\"", "{\"id", "{\"id\"", "{\"id\":", "{\"id\":}", "[1", "7", "{\"id\":1 2}"}) {
    const json::Envelope found = json::skim_message(text);
    EXPECT_FALSE(found.is_request() || found.is_response()) << text;
  }
  EXPECT_FALSE(json::skim_message(R"({"id":null,"method":"m"})").is_request());
}

TEST(MessageSkim, TheLastOfTwoMembersCounts) {
  EXPECT_EQ(json::member_of(R"({"a":1,"a":[2,{"a":3}]})", "a"), R"([2,{"a":3}])");
}

TEST(MessageSkim, ANumberIsTheSameIdHoweverItIsWritten) {
  for (const char* same : {"1.0", "1e0", "10E-1", "0.1e+1", "1.00"})
    EXPECT_EQ(json::id_key(same), json::id_key("1")) << same;
  for (const char* same : {"100", "1e2", "100.0", "0.1E3"}) EXPECT_EQ(json::id_key(same), json::id_key("100")) << same;
  EXPECT_EQ(json::id_key("-0"), json::id_key("0.0e5"));
  for (const char* other : {"10", "-1", "\"1\"", "1.1", "1e1", "9007199254740993"})
    EXPECT_NE(json::id_key(other), json::id_key("1"));
  EXPECT_NE(json::id_key("9007199254740993"), json::id_key("9007199254740992"));
  EXPECT_EQ(json::id_key("1e99999999999999999999"), "1e99999999999999999999");
}

TEST(MessageCheck, OneMessageOrBatchIsNotDoubted) {
  const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
  for (const std::string& line : {
           std::string("\n"),
           std::string(" \r\n"),
           std::string(
               R"({"jsonrpc":"2.0","id":1,"method":"tools\/call","params":{"a":[],"b":{},"c":[1,{"d":"\ud83d"}]}})"),
           std::string(" [{\"id\":\"a\",\"result\":{}} , {\"method\":\"n\"}]\r\n"),
           "{\"id\":-1.5e+3,\"result\":" + deep + "}\n",
       }) {
    EXPECT_EQ(doubt_about(line), "") << line.substr(0, 100);
  }
}

TEST(MessageCheck, WhatParsersReadDifferentlyIsDoubted) {
  for (const char* line : {
           R"({"id":1,"method":"ping"}{"id":2,"method":"tools/call"})",
           "{\"id\":1,\"method\":\"ping\"}\r{\"id\":2,\"method\":\"tools/call\"}\n",
           "{\"id\":1,\r\"method\":\"ping\"}\n",
           R"({"id":1,)",
           R"({"id":NaN,"method":"m"})",
           R"({"id":1,"method":"m","params":{"a":01}})",
           R"({"id":1,"method":"m",})",
           "{\"id\":1,\"method\":\"a\tb\"}",
           R"({"id":1,"method":"tools/call","method":"ping"})",
           R"({"id":1,"m\u0065thod":"tools/call","method":"ping"})",
           R"({"id":1,"Method":"tools/call"})",
           R"({"id":1,"method":"tools/call","params":{"name":"a","name":"b"}})",
           R"({"id":1,"method":"tools/call","params":{"name":"a","Name":"b"}})",
           R"({"id":1,"result":{},"method":"m"})",
           R"({"id":1,"method":7})",
           R"({"id":{},"method":"m"})",
           R"({"method":"tools/call","params":{"name":"a"}})",
           R"({"id":null,"method":"tools/call"})",
           R"([{"id":1,"result":{}},7])",
           "\xEF\xBB\xBF{}",
           "text",
           "7",
       }) {
    EXPECT_NE(doubt_about(line), "") << line;
  }
}

TEST(MessageSkim, ABatchIsItsMessages) {
  using Views = std::vector<std::string_view>;
  EXPECT_EQ(json::messages_of(R"( [{"id":1}, 7 ,[2]] )"), (Views{R"({"id":1})", "7", "[2]"}));
  EXPECT_EQ(json::messages_of("{}\n"), (Views{"{}\n"}));
}

TEST(MessageSkim, TheIdOfACutMessageIsAtOneOfItsEnds) {
  EXPECT_EQ(json::id_of_cut_message(R"({"id":7,"params":"xxx)", "xxx\"}"), "7");
  EXPECT_EQ(json::id_of_cut_message(R"({"params":"xxx)", "xxx\",\"id\":\"a\"}\n"), "\"a\"");
  EXPECT_EQ(json::id_of_cut_message(R"({"params":"xxx)", R"(xxx","id" : 8 , "jsonrpc":"2.0"})"), "8");
  EXPECT_EQ(json::id_of_cut_message(R"({"params":{"a":"xxx)", R"(xxx","id":8}})"), "");
  EXPECT_EQ(json::id_of_cut_message(R"({"params":"xxx)", R"(xxx,\"id\":8}"})"), "");
  EXPECT_EQ(json::id_of_cut_message("", ""), "");
}

std::string scrubbed(std::string json, std::size_t expected) {
  EXPECT_EQ(scrub_json(json), expected) << json;
  return json;
}

TEST(ScrubJson, ReplacesSecretsAndKeepsEveryOtherByte) {
  EXPECT_EQ(scrubbed(R"({ "a" : 1e3, "b":[true,null,"x\u0041"] })", 0), R"({ "a" : 1e3, "b":[true,null,"x\u0041"] })");
  EXPECT_EQ(scrubbed(R"({"password":"x","n":2})", 1), R"({"password":"[scrubbed]","n":2})");
  EXPECT_EQ(scrubbed(R"({"pin_token": 1234, "max_tokens":5})", 1), R"({"pin_token": "[scrubbed]", "max_tokens":5})");
  EXPECT_EQ(scrubbed(R"({"apiKey":{"value":"x","on":true},"monkey":"kept"})", 1),
            R"({"apiKey":{"value":"[scrubbed]","on":true},"monkey":"kept"})");
  EXPECT_EQ(scrubbed(R"({"passwords":["x","y",[1]],"n":["kept"]})", 3),
            R"({"passwords":["[scrubbed]","[scrubbed]",["[scrubbed]"]],"n":["kept"]})");
  EXPECT_EQ(scrubbed(R"([{"a":{"secret":["x",{"b":"y"}]},"c":"kept"},{"d":"kept"}])", 2),
            R"([{"a":{"secret":["[scrubbed]",{"b":"[scrubbed]"}]},"c":"kept"},{"d":"kept"}])");
  EXPECT_EQ(scrubbed(R"(["Bearer zz-secret"])", 1), R"(["Bearer [scrubbed]"])");
  EXPECT_EQ(scrubbed(R"(["run\nghp_0123456789abcdef01234\n"])", 1), R"(["run\n[scrubbed]\n"])");
  EXPECT_EQ(scrubbed(R"({"url":"https://ann:pw@host/"})", 1), R"({"url":"https://ann:[scrubbed]@host/"})");
}

TEST(ScrubJson, WorksOnWhatTheLogRefuses) {
  EXPECT_EQ(scrubbed(R"({"a":"\u0000 AKIA0123456789ABCDEF","a":")", 1), R"({"a":"\u0000 [scrubbed]","a":")");
}

TEST(LineReader, GivesLinesAndPiecesOfLongOnes) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const std::string_view sent = "ab\n0123456789ABC\n\nend";
  ASSERT_EQ(::write(ends[1], sent.data(), sent.size()), static_cast<ssize_t>(sent.size()));
  ::close(ends[1]);
  LineReader reader(ends[0], 8);
  reader.fill();
  reader.fill();
  EXPECT_TRUE(reader.ended());
  std::vector<std::tuple<std::string, bool, bool>> got;
  while (const auto piece = reader.next()) got.emplace_back(piece->bytes, piece->begins, piece->ends);
  const decltype(got) expected = {{"ab\n", true, true},
                                  {"01234567", true, false},
                                  {"89ABC\n", false, true},
                                  {"\n", true, true},
                                  {"end", true, true}};
  EXPECT_EQ(got, expected);
  ::close(ends[0]);
}

TEST(LineGate, HoldsALineAndThoseBehindIt) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_NONBLOCK), 0);
  ByteWriter writer(ends[1]);
  LineGate gate;
  gate.add("a", 0);
  const auto held = gate.add("b", 2);
  gate.add("c", 0);
  gate.pass_to(writer);
  gate.release(held);
  EXPECT_TRUE(gate.held(held));
  gate.pass_to(writer);
  EXPECT_EQ(writer.waiting(), 1U);
  gate.replace(held, "BB");
  gate.release(held);
  gate.pass_to(writer);
  EXPECT_TRUE(gate.empty());
  EXPECT_EQ(gate.bytes(), 0U);
  writer.flush();
  char got[8] = {};
  EXPECT_EQ(::read(ends[0], got, sizeof got), 4);
  EXPECT_STREQ(got, "aBBc");
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(CallRecord, ACallWithoutANameOrArgumentsIsRecorded) {
  const DraftEvent event = draft_called({"files", false}, {"c1", "7"}, "");
  EXPECT_EQ(event.body(),
            "{\"call_id\":\"c1\",\"name\":\"(no name)\",\"kind\":\"mcp\",\"server\":\"files\","
            "\"x_request_id\":\"7\"}");
}

TEST(CallRecord, AnImageIsAnArtifactOfItsBytes) {
  const DraftEvent event = draft_returned(
      {"files", false}, {"c1", "7"}, R"({"content":[{"type":"image","data":"YWJj","mimeType":"image/png"}]})", "", 5);
  ASSERT_EQ(event.artifacts.size(), 1U);
  EXPECT_EQ(event.artifacts[0].bytes, "abc");
  EXPECT_EQ(event.body(), "{\"call_id\":\"c1\",\"status\":\"ok\",\"duration_us\":5,\"content\":[\x01]}");
  EXPECT_EQ(reference_json(event.artifacts[0], "i", "h", 3),
            R"({"artifact_id":"i","hash":"h","size_bytes":3,"mime_type":"image/png","type":"image"})");
}

TEST(CallRecord, WhatIsNestedTooDeepIsKeptAsBytes) {
  const std::string deep = std::string(60, '[') + std::string(60, ']');
  const DraftEvent event = draft_called({"files", false}, {"c1", "7"}, "{\"name\":\"n\",\"arguments\":" + deep + "}");
  ASSERT_EQ(event.artifacts.size(), 1U);
  EXPECT_EQ(event.artifacts[0].bytes, deep);
  EXPECT_NE(event.body().find("x_left_out"), std::string::npos);
}

}  // namespace
}  // namespace muniment::cli
