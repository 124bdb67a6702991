#include "mcp/message.hpp"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/limits.hpp"

namespace muniment::mcp {
namespace {

std::string ping_with(std::string_view id) { return fmt::format(R"({{"jsonrpc":"2.0","id":{},"method":"ping"}})", id); }

int code_of(const Parsed& parsed) { return parsed.failure ? parsed.failure->code : 0; }

TEST(McpMessage, ARequestANotificationAndAResponseAreToldApart) {
  const Parsed request =
      parse_message(R"({"jsonrpc":"2.0","id":"a","method":"tools/list","params":{"_meta":{"x":1}}})");
  ASSERT_TRUE(request.message);
  EXPECT_EQ(request.message->kind, MessageKind::request);
  EXPECT_EQ(request.message->id, "\"a\"");
  EXPECT_EQ(request.message->method, "tools/list");
  EXPECT_EQ(request.message->meta()["x"].as_int(), 1);
  const Parsed notification = parse_message(R"({"jsonrpc":"2.0","method":"notifications/initialized"})");
  ASSERT_TRUE(notification.message);
  EXPECT_EQ(notification.message->kind, MessageKind::notification);
  EXPECT_EQ(notification.id, "");
  for (const char* body : {R"("result":{})", R"("error":{"code":1,"message":"m"})"}) {
    const Parsed response = parse_message(fmt::format(R"({{"jsonrpc":"2.0","id":7,{}}})", body));
    ASSERT_TRUE(response.message) << body;
    EXPECT_EQ(response.message->kind, MessageKind::response);
  }
}

TEST(McpMessage, AnIdIsAStringOrAnInteger) {
  for (const char* id : {"0", "-1", "9007199254740993", "\"\"", "\"a\"", "\"\xC3\xA9\\\"\""}) {
    const Parsed parsed = parse_message(ping_with(id));
    ASSERT_TRUE(parsed.message) << id;
    EXPECT_EQ(parsed.id, id) << "the id comes back as it was written";
  }
  for (const char* id : {"null", "true", "1.5", "{}", "[1]", "9223372036854775808"}) {
    const Parsed parsed = parse_message(ping_with(id));
    EXPECT_EQ(code_of(parsed), invalid_request) << id;
    EXPECT_EQ(parsed.id, id[0] == '1' || id[0] == '9' ? id : "") << "the answer repeats a number and no other value";
  }
}

TEST(McpMessage, CharactersThatTheLogRefusesAreReplaced) {
  for (const char* text : {R"(a\u0000b)", R"(a\ud83db)", R"(a\ude00b)",
                           "a\xff"
                           "b"}) {
    const Parsed parsed =
        parse_message(fmt::format(R"({{"jsonrpc":"2.0","id":15,"method":"tools/call","params":{{"t":"{}"}}}})", text));
    ASSERT_TRUE(parsed.message) << text;
    EXPECT_EQ(parsed.message->params()["t"].string_or(""),
              "a\xEF\xBF\xBD"
              "b")
        << text;
  }
}

TEST(McpMessage, AnIdIsAnsweredAsItWasWritten) {
  for (const char* id : {R"("\u0000")", R"("a\ud800")"}) {
    const Parsed parsed = parse_message(ping_with(id));
    ASSERT_TRUE(parsed.message) << id;
    EXPECT_EQ(parsed.id, id);
  }
}

TEST(McpMessage, ARefusedRequestIsAnsweredUnderItsIdWhereverItsMembersAre) {
  const std::string deep = std::string(100, '[') + std::string(100, ']');
  const std::string faults[] = {R"("a":1,"a":2)", R"("a":1e999)", R"("a":123456789012345678901234567890)",
                                R"("a":)" + deep, R"("a":[{"id":5}],"a":"\"id\":6,")"};
  const std::string ids[] = {
      "7", "-1", R"("x")", R"("a,\"}b")", R"("\u0000")", R"("\ud800")", "1e999", "18446744073709551616", "1.5"};
  for (const std::string& fault : faults) {
    for (const std::string& id : ids) {
      std::vector<std::string> members{R"("jsonrpc":"2.0")", R"("id": )" + id, R"("method":"tools/call")",
                                       R"("params":{"id":5,"arguments":{)" + fault + "}}"};
      std::sort(members.begin(), members.end());
      do {
        const std::string text = fmt::format("{{{}}}", fmt::join(members, ", "));
        const Parsed parsed = parse_message(text);
        EXPECT_TRUE(parsed.failure) << text;
        EXPECT_EQ(parsed.id, id) << text;
        EXPECT_TRUE(error_message(parsed.id, *parsed.failure).starts_with(R"({"jsonrpc":"2.0","id":)" + id)) << text;
      } while (std::next_permutation(members.begin(), members.end()));
    }
  }
}

TEST(McpMessage, WhatIsNoRequestIsRefusedWithoutAnId) {
  for (const char* text : {R"({"jsonrpc":"2.0","id":1,"result":{"a":1e999}})",
                           R"({"jsonrpc":"2.0","method":"notifications/x","params":{"id":1,"a":1e999}})",
                           R"({"jsonrpc":"2.0","id":null,"method":"ping","params":{"a":1e999}})", R"([1e999,"id",1])",
                           "\"id\":1", R"({"id":tru,"a":)"})
    EXPECT_EQ(parse_message(text).id, "") << text;
}

TEST(McpMessage, AnIdOf256BytesIsAcceptedAndALongerOneIsNot) {
  EXPECT_TRUE(parse_message(ping_with('"' + std::string(254, 'x') + '"')).message);
  const Parsed longer = parse_message(ping_with('"' + std::string(255, 'x') + '"'));
  EXPECT_EQ(code_of(longer), invalid_request);
  EXPECT_EQ(longer.id.size(), 257U) << "the host waits for an answer under this id";
}

TEST(McpMessage, ABatchIsRefused) {
  const Parsed batch = parse_message("[" + ping_with("1") + "," + ping_with("2") + "]");
  EXPECT_EQ(code_of(batch), invalid_request);
  EXPECT_NE(batch.failure->message.find("one message at a time"), std::string::npos);
  EXPECT_EQ(code_of(parse_message("[]")), invalid_request);
}

TEST(McpMessage, WhatIsNoJsonIsAParseError) {
  for (const char* text : {"", "garbage", "{", "\"", "{\"jsonrpc\":\"2.0\",}", "\xff\xfe", "GET / HTTP/1.1",
                           R"({"jsonrpc":"2.0","id":1,"method":"ping"} trailing)"})
    EXPECT_EQ(code_of(parse_message(text)), parse_error) << text;
}

TEST(McpMessage, TheSameKeyTwiceIsAParseError) {
  EXPECT_EQ(code_of(parse_message(R"({"jsonrpc":"2.0","id":1,"id":2,"method":"ping"})")), parse_error);
  EXPECT_EQ(code_of(parse_message(R"({"jsonrpc":"2.0","id":1,"method":"ping","\u006dethod":"tools/call"})")),
            parse_error);
}

TEST(McpMessage, NestingBeyondTheLimitIsAParseError) {
  const auto nested = [](std::size_t depth) {
    const std::string open(depth - 2, '['), close(depth - 2, ']');
    return R"({"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":)" + open + close + "}}";
  };
  EXPECT_TRUE(parse_message(nested(limits::json_depth_max)).message);
  EXPECT_EQ(code_of(parse_message(nested(limits::json_depth_max + 1))), parse_error);
  EXPECT_EQ(code_of(parse_message(nested(100))), parse_error);
  EXPECT_EQ(code_of(parse_message(std::string(100'000, '['))), parse_error);
}

TEST(McpMessage, ATextOfTwoMebibytesIsReadAsWritten) {
  const std::string text(2 << 20, 'x');
  const Parsed parsed =
      parse_message(R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"text":")" + text + R"("}})");
  ASSERT_TRUE(parsed.message);
  EXPECT_EQ(parsed.message->params()["text"].string_or("").size(), text.size());
}

TEST(McpMessage, AMessageOfAnotherShapeIsAnInvalidRequestWithItsId) {
  for (const char* body : {R"("id":5,"method":"ping")", R"("jsonrpc":"1.0","id":5,"method":"ping")",
                           R"("jsonrpc":2.0,"id":5,"method":"ping")", R"("jsonrpc":"2.0","id":5)",
                           R"("jsonrpc":"2.0","id":5,"method":7)", R"("jsonrpc":"2.0","id":5,"method":null)"}) {
    const Parsed parsed = parse_message(fmt::format("{{{}}}", body));
    EXPECT_EQ(code_of(parsed), invalid_request) << body;
    EXPECT_EQ(parsed.id, "5") << body;
  }
  for (const char* text : {"1", "null", "\"ping\"", "{}", R"({"jsonrpc":"2.0","result":{}})"})
    EXPECT_EQ(code_of(parse_message(text)), invalid_request) << text;
  for (const char* params : {"[]", "1", "null", "\"x\""}) {
    const Parsed parsed =
        parse_message(fmt::format(R"({{"jsonrpc":"2.0","id":5,"method":"ping","params":{}}})", params));
    EXPECT_EQ(code_of(parsed), invalid_params) << params;
    EXPECT_EQ(parsed.id, "5");
  }
}

TEST(McpMessage, AConnectionSpeaksMcpIfItsFirstMethodIsOneOfMcp) {
  for (const char* method : {"initialize", "ping", "server/discover", "tools/list", "muniment/session"})
    EXPECT_TRUE(is_mcp_line(fmt::format(R"({{"jsonrpc":"2.0","id":1,"method":"{}"}})", method))) << method;
  for (const char* method : {"server.health", "run.start", "event.append", "", "nonsense"})
    EXPECT_FALSE(is_mcp_line(fmt::format(R"({{"jsonrpc":"2.0","id":1,"method":"{}"}})", method))) << method;
  EXPECT_FALSE(is_mcp_line("garbage"));
  EXPECT_FALSE(is_mcp_line("[]"));
}

TEST(McpMessage, WhatIsWrittenReadsBack) {
  const Parsed result = parse_message(result_message("\"a\"", R"({"x":1})"));
  ASSERT_TRUE(result.message);
  EXPECT_EQ(result.message->root()["result"]["x"].as_int(), 1);
  const std::string error = error_message("", {parse_error, "line\nfeed", R"({"limit":1})"});
  const auto document = json::parse(error);
  ASSERT_TRUE(document);
  EXPECT_FALSE(document->root()["id"].present()) << "an error without a request has no id";
  EXPECT_EQ(document->root()["error"]["message"].string_or(""), "line\nfeed");
  EXPECT_EQ(document->root()["error"]["data"]["limit"].as_int(), 1);
  EXPECT_EQ(error.find('\n'), std::string::npos);
  EXPECT_EQ(notification_message("notifications/x", ""), R"({"jsonrpc":"2.0","method":"notifications/x"})");
  EXPECT_EQ(request_message("1", "roots/list", "{}"), R"({"jsonrpc":"2.0","id":1,"method":"roots/list","params":{}})");
}

}  // namespace
}  // namespace muniment::mcp
