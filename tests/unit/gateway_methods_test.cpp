// Tests that every method of the method table has a contract in schema/rpc/, and every contract a method.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/json/schema.hpp"
#include "gateway/method_table.hpp"

namespace muniment::gateway {
namespace {

const SchemaSet& schemas() {
  static const auto set = SchemaSet::embedded();
  EXPECT_TRUE(set.ok()) << set.error().message;
  return *set;
}

TEST(MethodTable, EveryMethodHasParamsAndAResult) {
  for (const MethodInfo& method : method_table()) {
    EXPECT_TRUE(schemas().find("rpc/" + std::string(method.name) + "#params")) << method.name;
    EXPECT_TRUE(schemas().find("rpc/" + std::string(method.name) + "#result")) << method.name;
  }
}

TEST(MethodTable, EverySchemaHasItsMethod) {
  std::size_t seen = 0;
  for (std::string_view path : schemas().paths("rpc/")) {
    path.remove_prefix(4);
    if (path == "common") continue;
    EXPECT_NE(find_method(path.substr(0, path.find('#'))), nullptr) << path;
    ++seen;
  }
  EXPECT_EQ(seen, method_table().size() * 2);
}

TEST(MethodTable, IsSortedSoThatANameIsFound) {
  for (const MethodInfo& method : method_table()) EXPECT_EQ(find_method(method.name), &method);
  EXPECT_EQ(find_method("event.appen"), nullptr);
  EXPECT_EQ(find_method("z"), nullptr);
  EXPECT_EQ(find_method(""), nullptr);
}

TEST(MethodTable, OnlySubscriptionsAreServedByTheSession) {
  std::set<std::string_view> by_session;
  for (const MethodInfo& method : method_table()) {
    if (!method.function) by_session.insert(method.name);
  }
  EXPECT_EQ(by_session, (std::set<std::string_view>{"event.subscribe", "event.unsubscribe"}));
}

TEST(MethodTable, ParamsTakeMetaAndRefuseWhatIsUnknown) {
  std::size_t seen = 0;
  for (const SchemaText& schema : embedded_schema_texts()) {
    if (!schema.path.starts_with("rpc/") || schema.path == "rpc/common") continue;
    const auto document = json::parse(schema.text);
    ASSERT_TRUE(document.ok()) << schema.path;
    const json::Value params = document->root()["params"];
    EXPECT_EQ(params["properties"]["_meta"]["$ref"].string_or(""), "rpc/common.json#/$defs/meta") << schema.path;
    EXPECT_EQ(params["additionalProperties"].as_bool(), false) << schema.path;
    ++seen;
  }
  EXPECT_EQ(seen, method_table().size());
}

}  // namespace
}  // namespace muniment::gateway
