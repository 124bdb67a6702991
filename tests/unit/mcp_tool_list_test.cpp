// Tests of tools/list. The list that hosts receive is a golden file, because a changed description or schema is a
// change for every model that reads it. MUNIMENT_ACCEPT=1 rewrites it.
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#include "mcp/offer/tools.hpp"
#include "unit/mcp_fixture.hpp"

namespace muniment::mcp {
namespace {

constexpr const char* golden_path = MUNIMENT_GOLDEN "/mcp/tools_list.json";

bool is_flat(const json::Value& value) {
  for (const json::Value item : value) {
    if (item.is(json::Kind::object) || item.is(json::Kind::array)) return false;
  }
  return true;
}

// Writes one member or item a line; a container of plain values stays on one line.
void write_indented(std::string& out, const json::Value& value, std::size_t depth) {
  const bool object = value.is(json::Kind::object);
  if ((!object && !value.is(json::Kind::array)) || is_flat(value)) {
    out += value.source();
    return;
  }
  out += object ? '{' : '[';
  bool first = true;
  for (const json::Value item : value) {
    if (!std::exchange(first, false)) out += ',';
    out += '\n' + std::string(depth + 1, ' ');
    if (object) out += json::quote(item.key()) + ": ";
    write_indented(out, item, depth + 1);
  }
  out += '\n' + std::string(depth, ' ');
  out += object ? '}' : ']';
}

Json listed(std::vector<std::string> toolsets = {}) {
  Host host({.toolsets = std::move(toolsets)});
  host.open();
  return host.ask("tools/list");
}

std::vector<std::string> names(const Json& list) {
  std::vector<std::string> all;
  for (const json::Value tool : list["result"]["tools"]) all.push_back(tool["name"].string_or(""));
  return all;
}

const std::vector<std::string> all_toolsets{"runs", "ledger", "tasks", "documents"};

TEST(McpToolList, TheListIsTheGoldenOne) {
  std::string text;
  write_indented(text, listed(all_toolsets)["result"]["tools"], 0);
  text += '\n';
  if (std::getenv("MUNIMENT_ACCEPT") != nullptr) std::ofstream(golden_path) << text;
  std::stringstream golden;
  golden << std::ifstream(golden_path).rdbuf();
  EXPECT_EQ(text, golden.str());
}

TEST(McpToolList, FifteenToolsAreOfferedByDefaultInTheirOrder) {
  EXPECT_EQ(names(listed()),
            (std::vector<std::string>{"remember", "recall", "forget", "memories", "history", "retrieve_evidence",
                                      "resolve_pointer", "render_with_pointers", "record_event", "record_claim",
                                      "run_start", "run_end", "rehydrate", "feedback", "status"}));
}

// Each conversation of a model begins with the list.
TEST(McpToolList, TheDefaultListHasAtMostTenKilobytes) { EXPECT_LE(listed()["result"].source().size(), 10'000U); }

TEST(McpToolList, AnArgumentThatIsShownExists) {
  for (const Tool& tool : tool_table()) {
    const std::string schema = shown_schema(tool);
    const auto parsed = json::parse(std::string_view(schema));
    ASSERT_TRUE(parsed.ok()) << tool.name;
    for (const json::Value property : parsed->root()["properties"])
      EXPECT_TRUE(property["type"].present()) << tool.name << " " << property.key();
    EXPECT_EQ(tool.shown.empty(), !tool.toolset.empty()) << tool.name;
  }
}

TEST(McpToolList, AToolsetAddsItsTools) {
  const std::vector<std::string> usual = names(listed());
  std::set<std::string> seen(usual.begin(), usual.end());
  for (const std::string& toolset : all_toolsets) {
    const std::vector<std::string> more = names(listed({toolset}));
    ASSERT_EQ(more.size(), usual.size() + (toolset == "documents" ? 4 : 3)) << toolset;
    EXPECT_TRUE(std::equal(usual.begin(), usual.end(), more.begin())) << "the default tools stay where they are";
    for (std::size_t i = usual.size(); i < more.size(); ++i) EXPECT_TRUE(seen.insert(more[i]).second) << more[i];
  }
  EXPECT_EQ(names(listed(all_toolsets)).size(), seen.size());
}

TEST(McpToolList, AToolOfAToolsetThatIsNotOfferedCannotBeCalled) {
  Host host;
  host.open();
  EXPECT_EQ(error_code(host.call_tool("list_runs")), invalid_params);
  EXPECT_TRUE(host.native.requests.empty());
}

// Models read each schema on its own: it contains no references, and only keywords that the hosts' validators support.
void check_schema(const json::Value& schema, const std::string& where) {
  static const std::set<std::string> known{"type",          "properties",    "required", "additionalProperties",
                                           "minProperties", "maxProperties", "items",    "minItems",
                                           "maxItems",      "enum",          "const",    "minLength",
                                           "maxLength",     "minimum",       "maximum",  "oneOf",
                                           "anyOf",         "description",   "format",   "title"};
  ASSERT_TRUE(schema.is(json::Kind::object) || schema.is(json::Kind::boolean)) << where;
  for (const json::Value member : schema) {
    const std::string key = member.key();
    EXPECT_TRUE(known.contains(key)) << where << ": " << key;
    if (key == "format") {
      EXPECT_TRUE(member.string_or("") == "uuid" || member.string_or("") == "date-time") << where;
    }
    if (key == "properties") {
      for (const json::Value property : member) check_schema(property, where + "." + property.key());
    } else if (key == "oneOf" || key == "anyOf") {
      for (const json::Value one : member) check_schema(one, where + "." + key);
    } else if (key == "items" || key == "additionalProperties") {
      check_schema(member, where + "." + key);
    }
  }
  if (!schema["properties"]) return;
  for (const json::Value name : schema["required"])
    EXPECT_TRUE(schema["properties"][name.string_or("")].present()) << where << ": " << name.string_or("");
}

TEST(McpToolList, EverySchemaStandsAlone) {
  const Json list = listed(all_toolsets);
  EXPECT_EQ(list.text().find("$ref"), std::string::npos);
  for (const json::Value tool : list["result"]["tools"]) {
    const std::string name = tool["name"].string_or("");
    EXPECT_EQ(tool["inputSchema"]["type"].string_or(""), "object") << name;
    check_schema(tool["inputSchema"], name + " input");
    EXPECT_FALSE(tool["inputSchema"]["properties"]["_meta"].present()) << name;
    if (!tool["outputSchema"]) continue;
    EXPECT_EQ(tool["outputSchema"]["type"].string_or(""), "object") << name;
    check_schema(tool["outputSchema"], name + " output");
  }
}

TEST(McpToolList, OnlyTheRunThatASessionFillsInIsNotRequired) {
  const Json list = listed(all_toolsets);
  for (const json::Value tool : list["result"]["tools"]) {
    for (const json::Value name : tool["inputSchema"]["required"])
      EXPECT_NE(name.string_or(""), "run_id") << tool["name"].string_or("");
  }
  const Tool* const start = std::ranges::find(tool_table(), "run_start", &Tool::name).operator->();
  EXPECT_EQ(input_schema(*start)["properties"]["parent"]["required"].source(), R"(["run_id"])")
      << "the parent is not the session's run";
  EXPECT_NE(plain_schema("run.start", "result").find("run_id"), std::string::npos) << "a result has it";
}

TEST(McpToolList, HintsAreConsistent) {
  for (const Tool& tool : tool_table()) {
    EXPECT_FALSE(tool.hints.read_only && tool.hints.destructive) << tool.name;
    EXPECT_LE(tool.description.size(), 300U) << tool.name << ": each model reads it each time";
    EXPECT_NE(plain_schema(tool.method, "params"), R"({"type":"object"})") << tool.name << ": the method has a schema";
  }
}

TEST(McpToolList, ThereIsOnePage) {
  Host host;
  host.open();
  EXPECT_EQ(error_code(host.ask("tools/list", R"({"cursor":"x"})")), invalid_params);
}

TEST(McpToolList, AClientMayKeepItForAnHour) {
  Host host({.stateless = true});
  const Json list = host.ask("tools/list");
  EXPECT_EQ(list["result"]["ttlMs"].as_int(), 3'600'000);
  EXPECT_EQ(list["result"]["cacheScope"].string_or(""), "public");
}

}  // namespace
}  // namespace muniment::mcp
