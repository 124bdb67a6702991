// Tests of prompts, completion and resources.
#include <fmt/format.h>

#include "mcp/offer/resources.hpp"
#include "mcp/offer/tool_arguments.hpp"
#include "unit/mcp_fixture.hpp"

namespace muniment::mcp {
namespace {

void for_both(const std::function<void(Host&, bool stateless)>& test) {
  for (const bool stateless : {false, true}) {
    SCOPED_TRACE(stateless ? "2026-07-28" : "2025-11-25");
    Host host({.stateless = stateless});
    if (!stateless) host.open();
    test(host, stateless);
  }
}

std::string prompt_text(const Json& answer) {
  const json::Value messages = answer["result"]["messages"];
  EXPECT_EQ(messages.size(), 1U) << answer.text();
  return messages.size() == 0 ? "" : (*messages.begin())["content"]["text"].string_or("");
}

TEST(McpPrompts, TheyAreListedWithTheirArguments) {
  for_both([](Host& host, bool) {
    const Json list = host.ask("prompts/list");
    std::vector<std::string> names;
    for (const json::Value prompt : list["result"]["prompts"]) {
      names.push_back(prompt["name"].string_or(""));
      EXPECT_GT(prompt["arguments"].size(), 0U);
    }
    EXPECT_EQ(names, (std::vector<std::string>{"answer_with_citations", "audit_run", "incident_report"}))
        << "validate_completion names tools of the toolset tasks";
  });
}

TEST(McpPrompts, EveryArgumentIsFilledIn) {
  for_both([](Host& host, bool) {
    const Json list = host.ask("prompts/list");
    for (const json::Value prompt : list["result"]["prompts"]) {
      json::Writer arguments;
      arguments.begin_object();
      for (const json::Value argument : prompt["arguments"])
        arguments.member(argument["name"].string_or(""), "VALUE{of}it");
      const Json got = host.ask("prompts/get", fmt::format(R"({{"name":{},"arguments":{}}})", prompt["name"].source(),
                                                           arguments.end_object().text()));
      const std::string text = prompt_text(got);
      EXPECT_NE(text.find("VALUE{of}it"), std::string::npos) << "a value is not looked into";
      for (const json::Value argument : prompt["arguments"])
        EXPECT_EQ(text.find("{" + argument["name"].string_or("") + "}"), std::string::npos) << text;
    }
  });
}

TEST(McpPrompts, AMissingArgumentIsNamed) {
  for_both([](Host& host, bool) {
    for (const char* arguments : {"{}", R"({"question":""})", R"({"question":7})", "[]", R"("question")"}) {
      const Json refused =
          host.ask("prompts/get", fmt::format(R"({{"name":"answer_with_citations","arguments":{}}})", arguments));
      EXPECT_EQ(error_code(refused), invalid_params) << arguments;
      EXPECT_NE(error_text(refused).find("question"), std::string::npos);
    }
    const Json got = host.ask("prompts/get", R"({"name":"answer_with_citations","arguments":{"question":"why?"}})");
    EXPECT_NE(prompt_text(got).find("why?"), std::string::npos) << "the corpus may be left out";
  });
}

TEST(McpPrompts, AnUnknownPromptIsRefused) {
  for_both([](Host& host, bool) {
    EXPECT_EQ(error_code(host.ask("prompts/get", R"({"name":"nonsense"})")), invalid_params);
    EXPECT_EQ(error_code(host.ask("prompts/get")), invalid_params);
  });
}

std::string completing(std::string_view argument, std::string_view begun) {
  return fmt::format(R"({{"ref":{{"type":"ref/prompt","name":"audit_run"}},"argument":{{"name":"{}","value":"{}"}}}})",
                     argument, begun);
}

TEST(McpCompletion, RunsAndCorporaAreCompleted) {
  for_both([](Host& host, bool) {
    host.ask("completion/complete", completing("run", "a"));
    host.native.answer("run.list", R"({"runs":[{"run_id":"ab"},{"run_id":"b"},{"run_id":"a"}]})");
    const Json runs = host.answer(host.last_id());
    EXPECT_EQ(runs["result"]["completion"].source(), R"({"values":["ab","a"],"total":2,"hasMore":false})");
    host.ask("completion/complete", completing("corpus", ""));
    host.native.answer("corpus.list", R"({"corpora":[{"corpus":"memory"}]})");
    const Json corpora = host.answer(host.last_id());
    EXPECT_EQ(corpora["result"]["completion"]["values"].source(), R"(["memory"])");
  });
}

TEST(McpCompletion, AtMostAHundredValuesAreAnswered) {
  Host host;
  host.open();
  host.ask("completion/complete", completing("run", ""));
  std::string runs;
  for (int i = 0; i < 101; ++i) runs += fmt::format(R"({}{{"run_id":"r{}"}})", i == 0 ? "" : ",", i);
  host.native.answer("run.list", fmt::format(R"({{"runs":[{}]}})", runs));
  const Json answer = host.answer(host.last_id());
  const json::Value completion = answer["result"]["completion"];
  EXPECT_EQ(completion["values"].size(), 100U);
  EXPECT_EQ(completion["total"].as_int(), 101);
  EXPECT_EQ(completion["hasMore"].as_bool(), true);
}

TEST(McpCompletion, AnArgumentWithoutValuesIsAnsweredWithNone) {
  Host host;
  host.open();
  EXPECT_EQ(host.ask("completion/complete", completing("question", "w"))["result"]["completion"]["values"].size(), 0U);
  EXPECT_TRUE(host.native.requests.empty());
}

TEST(McpCompletion, ARequestOfAnotherShapeIsRefused) {
  Host host;
  host.open();
  for (const char* params : {"{}", R"({"ref":{}})", R"({"ref":{},"argument":{}})",
                             R"({"ref":1,"argument":{"name":"run"}})", R"({"ref":{},"argument":{"name":7}})"})
    EXPECT_EQ(error_code(host.ask("completion/complete", params)), invalid_params) << params;
}

TEST(McpCompletion, AnErrorIsNotAnEmptyList) {
  Host host;
  host.open();
  host.ask("completion/complete", completing("run", ""));
  host.native.refuse("run.list", "unavailable", "the database is down.", true);
  EXPECT_EQ(error_code(host.answer(host.last_id())), internal_error);
  EXPECT_EQ(error_text(host.answer(host.last_id())), "the database is down.");
}

TEST(McpResources, TheFixedOnesAreListedBeforeTheRuns) {
  for_both([](Host& host, bool) {
    host.ask("resources/list");
    EXPECT_FALSE(host.native.params("run.list")["cursor"].present());
    host.native.answer("run.list",
                       R"({"runs":[{"run_id":"r1","agent":"a","status":"open"},{"run_id":"r2"}],"cursor":"c1"})");
    const Json page = host.answer(host.last_id());
    std::vector<std::string> uris;
    for (const json::Value resource : page["result"]["resources"]) uris.push_back(resource["uri"].string_or(""));
    EXPECT_EQ(uris, (std::vector<std::string>{"log://validation", "log://metrics", "run://r1", "run://r2"}));
    EXPECT_EQ(page["result"]["nextCursor"].string_or(""), "c1");

    host.ask("resources/list", R"({"cursor":"c1"})");
    EXPECT_EQ(host.native.params("run.list")["cursor"].string_or(""), "c1");
    host.native.answer("run.list", R"({"runs":[{"run_id":"r3"}]})");
    const Json second = host.answer(host.last_id());
    EXPECT_EQ(second["result"]["resources"].size(), 1U) << "the fixed ones are on the first page";
    EXPECT_FALSE(second["result"]["nextCursor"].present());
  });
}

TEST(McpResources, ACursorThatWasTamperedWithIsRefused) {
  for_both([](Host& host, bool) {
    host.ask("resources/list", R"({"cursor":"x"})");
    host.native.refuse("run.list", "invalid_argument", "cursor: not one of ours.");
    EXPECT_EQ(error_code(host.answer(host.last_id())), invalid_params);
  });
}

TEST(McpResources, ADaemonThatCannotAnswerIsNoFaultOfTheRequest) {
  for_both([](Host& host, bool) {
    for (const auto& [method, native] :
         {std::pair{"resources/list", "run.list"}, {"resources/read", "pointer.resolve"}}) {
      host.ask(method, uri_param("log://validation"));
      host.native.refuse(native, "unavailable", "the database is down.", true);
      EXPECT_EQ(error_code(host.answer(host.last_id())), internal_error) << method;
    }
    host.ask("resources/read", uri_param("run://r"));
    host.native.refuse("run.get", "unavailable", "the database is down.", true);
    EXPECT_EQ(error_code(host.answer(host.last_id())), internal_error);
  });
}

TEST(McpResources, TheTemplatesAreListed) {
  for_both([](Host& host, bool) {
    const Json list = host.ask("resources/templates/list");
    std::vector<std::string> uris;
    for (const json::Value one : list["result"]["resourceTemplates"]) uris.push_back(one["uriTemplate"].string_or(""));
    EXPECT_EQ(uris,
              (std::vector<std::string>{"log://runs/{run}/events", "run://{run}", "ev://{corpus}/{+document}",
                                        "artifact://{run}/{artifact}", "snap://{run}/{seq}", "manifest://{manifest}"}));
  });
}

TEST(McpResources, ARunIsReadAsItsRow) {
  for_both([](Host& host, bool) {
    host.ask("resources/read", uri_param("run://r1"));
    EXPECT_EQ(host.native.params("run.get").text(), R"({"run_id":"r1"})");
    host.native.answer("run.get", R"({"run":{"run_id":"r1","status":"open"}})");
    const Json answer = host.answer(host.last_id());
    const json::Value contents = *answer["result"]["contents"].begin();
    EXPECT_EQ(contents["uri"].string_or(""), "run://r1");
    EXPECT_EQ(contents["mimeType"].string_or(""), "application/json");
    EXPECT_EQ(contents["text"].string_or(""), R"({"run_id":"r1","status":"open"})");
  });
}

TEST(McpResources, APointerIsReadWithItsHashChecked) {
  for_both([](Host& host, bool) {
    for (const char* uri : {"ev://memory/a#p1", "artifact://r/a", "snap://r/3", "manifest://m", "log://runs/r/events",
                            "log://validation", "log://metrics"}) {
      host.ask("resources/read", uri_param(uri));
      EXPECT_EQ(host.native.params("pointer.resolve")["pointers"].source(), fmt::format("[\"{}\"]", uri));
      host.native.answer("pointer.resolve",
                         fmt::format(R"({{"results":[{{"pointer":"{}","ok":true,"text":"the text"}}]}})", uri));
      const Json answer = host.answer(host.last_id());
      EXPECT_EQ((*answer["result"]["contents"].begin())["text"].string_or(""), "the text") << uri;
    }
  });
}

TEST(McpResources, WhatIsLongIsDescribed) {
  for_both([](Host& host, bool) {
    host.ask("resources/read", uri_param("artifact://r/a"));
    host.native.answer("pointer.resolve",
                       R"({"results":[{"pointer":"artifact://r/a","ok":true,"size_bytes":9000000}]})");
    const Json answer = host.answer(host.last_id());
    const json::Value contents = *answer["result"]["contents"].begin();
    EXPECT_EQ(contents["mimeType"].string_or(""), "application/json");
    EXPECT_NE(contents["text"].string_or("").find("9000000"), std::string::npos);
  });
}

TEST(McpResources, WhatIsNotFoundHasTheCodeOfItsRevision) {
  for_both([](Host& host, bool stateless) {
    const int expected = stateless ? invalid_params : resource_not_found;
    const auto check = [&](const char* uri) {
      const Json answer = host.answer(host.last_id());
      EXPECT_EQ(error_code(answer), expected) << uri;
      EXPECT_EQ(answer["error"]["data"]["uri"].string_or(""), uri);
    };
    host.ask("resources/read", uri_param("run://none"));
    host.native.refuse("run.get", "not_found", "no run none.");
    check("run://none");
    host.ask("resources/read", uri_param("ev://memory/none"));
    host.native.answer(
        "pointer.resolve",
        R"({"results":[{"pointer":"ev://memory/none","ok":false,"reason":"NOT_FOUND","detail":"gone"}]})");
    EXPECT_NE(error_text(host.answer(host.last_id())).find("NOT_FOUND gone"), std::string::npos);
    check("ev://memory/none");
    for (const char* uri : {"nonsense", "http://a", "log://other", "run://", "log://runs/"}) {
      host.ask("resources/read", uri_param(uri));
      check(uri);
    }
    EXPECT_EQ(error_code(host.ask("resources/read")), invalid_params);
  });
}

TEST(McpResources, AReplyWithoutAResultIsNotFound) {
  for_both([](Host& host, bool stateless) {
    for (const char* reply : {"{}", R"({"results":[]})", R"({"results":7})"}) {
      host.ask("resources/read", uri_param("artifact://r/a"));
      host.native.answer("pointer.resolve", reply);
      EXPECT_EQ(error_code(host.answer(host.last_id())), stateless ? invalid_params : resource_not_found) << reply;
    }
  });
}

TEST(McpResources, APointerIsReadForTheSessionsRun) {
  Host host({.record = true, .run_id = "r1"});
  host.native.at_once = {{"run.start", "{}"}};
  host.open();
  host.call_tool("status");
  host.ask("resources/read", uri_param("artifact://r/a"));
  EXPECT_EQ(host.native.params("pointer.resolve")["run_id"].string_or(""), "r1");
}

TEST(McpArguments, AreReadByTheSchema) {
  const auto schema = json::parse(R"({"type":"object","required":["must"],"properties":{
    "must":{"type":"string"},"text":{"type":"string"},"count":{"type":"integer"},"share":{"type":"number"},
    "flag":{"type":"boolean"},"names":{"type":"array","items":{"type":"string"}},"either":{"type":["integer","string"]},
    "counts":{"type":"array","items":{"type":"integer"}},"none":{"type":["string","null"]},"any":{"description":"any value"},
    "object":{"type":"object","properties":{"count":{"type":"integer"}}},
    "queries":{"type":"array","items":{"type":"object","required":["query"],"properties":{"query":{"type":"string"}}}}}})");
  ASSERT_TRUE(schema);
  const std::pair<const char*, const char*> cases[] = {
      {R"({"text":"[1]","must":"{\"a\":1}","either":"3"})", R"({"text":"[1]","must":"{\"a\":1}","either":"3"})"},
      {R"({"count":"3","share":"0.5","flag":"true"})", R"({"count":3,"share":0.5,"flag":true})"},
      {R"({"count":3.0,"share":3.0,"counts":["1",2.0,"x"]})", R"({"count":3,"share":3.0,"counts":[1,2,"x"]})"},
      {R"({"count":"3.0","counts":7,"names":"a"})", R"({"count":3,"counts":[7],"names":["a"]})"},
      {R"({"count":null,"none":null,"must":null,"any":null})", R"({"none":null,"must":null,"any":null})"},
      {R"({"names":"[\"a\",\"b\"]","counts":"[1]"})", R"({"names":["a","b"],"counts":[1]})"},
      {R"({"object":"{\"count\":\"5\"}","any":"[1]"})", R"({"object":{"count":5},"any":"[1]"})"},
      {R"({"queries":"who?"})", R"({"queries":[{"query":"who?"}]})"},
      {R"({"queries":["who?",{"query":"7"},"{\"query\":\"x\"}"]})",
       R"({"queries":[{"query":"who?"},{"query":"7"},{"query":"x"}]})"},
      {R"({"queries":{"query":"[1]"}})", R"({"queries":[{"query":"[1]"}]})"},
      {R"({"count":"three","flag":"yes","object":[1],"names":[["a"]],"queries":5})",
       R"({"count":"three","flag":"yes","object":[1],"names":[["a"]],"queries":5})"},
      {R"({"count":1.5,"other":{"a":null}})", R"({"count":1.5,"other":{"a":null}})"},
      {R"("{\"count\":\"3\"}")", R"({"count":3})"},
      {R"("no object")", R"("no object")"},
      {"null", "{}"}};
  for (const auto& [given, wanted] : cases) {
    const auto arguments = json::parse(given);
    ASSERT_TRUE(arguments) << given;
    EXPECT_EQ(typed_arguments(schema->root(), arguments->root()), wanted) << given;
  }
  EXPECT_EQ(typed_arguments(schema->root(), {}), "{}");
}

}  // namespace
}  // namespace muniment::mcp
