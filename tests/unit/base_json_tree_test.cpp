#include "base/json/json_tree.hpp"

#include <gtest/gtest.h>

namespace muniment::json {
namespace {

Tree parsed_tree(std::string_view text) {
  const auto document = parse(text);
  EXPECT_TRUE(document) << text;
  return document ? Tree(document->root()) : Tree();
}

void expect_counts(const Tree& tree) {
  EXPECT_EQ(tree.bytes(), tree.canonical().size()) << tree.canonical();
  EXPECT_EQ(tree.levels(), parsed_tree(tree.canonical()).levels()) << tree.canonical();
}

TEST(JsonTree, WritesTheCanonicalTextOfWhatItWasMadeFrom) {
  for (const char* text : {"null", "true", "false", "-0", "1.50e2", "\"\"", R"("\u0041\n\u001f\"\\ä")", "[]", "{}",
                           R"([1,[2,[]],{"a":{}}])", R"({"b":1,"a":[true,null],"":"x","\u00e4\n":{"z":0,"y":0}})"}) {
    const auto document = parse(text);
    ASSERT_TRUE(document) << text;
    const Tree tree(document->root());
    EXPECT_EQ(tree.canonical(), canonical(document->root()));
    EXPECT_EQ(tree.bytes(), tree.canonical().size()) << text;
  }
}

TEST(JsonTree, LevelsAreThoseOfTheDeepestPart) {
  EXPECT_EQ(parsed_tree("7").levels(), 0U);
  EXPECT_EQ(parsed_tree("{}").levels(), 1U);
  EXPECT_EQ(parsed_tree("[1,2]").levels(), 1U);
  EXPECT_EQ(parsed_tree(R"({"a":[],"b":{"c":[1]},"d":1})").levels(), 3U);
}

TEST(JsonTree, ACopyDoesNotSeeLaterChanges) {
  Tree tree = parsed_tree(R"({"a":1})");
  const Tree before = tree;
  tree.set("a", Tree::string("x"));
  tree.set("b", Tree::array());
  EXPECT_EQ(before.canonical(), R"({"a":1})");
  EXPECT_EQ(tree.canonical(), R"({"a":"x","b":[]})");
  Tree items = parsed_tree("[1,2]");
  const Tree items_before = items;
  items.erase(std::size_t{0});
  EXPECT_EQ(items_before.canonical(), "[1,2]");
  EXPECT_EQ(items.canonical(), "[2]");
}

TEST(JsonTree, EveryChangeKeepsTheCounts) {
  Tree object = Tree::object();
  object.set("a\n", Tree::number(7));
  expect_counts(object);
  object.set("deep", parsed_tree("[[[1]]]"));
  expect_counts(object);
  object.set("deep", parsed_tree("[[]]"));
  expect_counts(object);
  EXPECT_FALSE(object.erase("absent"));
  EXPECT_TRUE(object.erase("deep"));
  expect_counts(object);
  EXPECT_TRUE(object.erase("a\n"));
  expect_counts(object);
  Tree array = Tree::array();
  array.push_back(Tree::boolean(false));
  expect_counts(array);
  array.insert(0, parsed_tree("{\"a\":[]}"));
  array.insert(1, parsed_tree("{\"b\":[]}"));
  expect_counts(array);
  array.erase(std::size_t{0});
  expect_counts(array);
  array.replace(0, Tree());
  expect_counts(array);
  EXPECT_EQ(array.canonical(), "[null,false]");
  array.erase(std::size_t{1});
  array.erase(std::size_t{0});
  expect_counts(array);
}

TEST(JsonTree, EqualityIsThatOfTheCanonicalText) {
  EXPECT_EQ(parsed_tree(R"({"a":1,"b":["\u0041"]})"), parsed_tree(R"({"b":["A"],"a":1})"));
  EXPECT_FALSE(parsed_tree("1") == parsed_tree("1.0"));
  EXPECT_FALSE(parsed_tree("12") == parsed_tree("13"));
  EXPECT_FALSE(parsed_tree("\"1\"") == parsed_tree("100"));
  EXPECT_FALSE(parsed_tree("[1,2]") == parsed_tree("[2,1]"));
  EXPECT_FALSE(parsed_tree(R"({"a":1})") == parsed_tree(R"({"b":1})"));
  EXPECT_FALSE(parsed_tree("null") == parsed_tree("true"));
}

TEST(JsonTree, WhatIsOfAnotherKindAnswersEmpty) {
  const Tree tree = parsed_tree("7");
  EXPECT_TRUE(tree.items().empty());
  EXPECT_TRUE(tree.members().empty());
  EXPECT_EQ(tree.member("a"), nullptr);
  EXPECT_FALSE(tree.as_bool());
  EXPECT_EQ(tree.text(), "7");
  EXPECT_EQ(parsed_tree("[]").text(), "");
}

TEST(JsonPointer, FindsAsRfc6901Says) {
  const Tree tree =
      parsed_tree(R"({"foo":["bar","baz"],"":0,"a/b":1,"c%d":2,"e^f":3,"g|h":4,"i\\j":5,"k\"l":6," ":7,"m~n":8})");
  const auto at = [&](std::string_view pointer) {
    const Tree* found = find(tree, pointer);
    return found == nullptr ? "nothing" : found->canonical();
  };
  EXPECT_EQ(at(""), tree.canonical());
  EXPECT_EQ(at("/foo"), R"(["bar","baz"])");
  EXPECT_EQ(at("/foo/0"), "\"bar\"");
  EXPECT_EQ(at("/"), "0");
  EXPECT_EQ(at("/a~1b"), "1");
  EXPECT_EQ(at("/c%d"), "2");
  EXPECT_EQ(at("/k\"l"), "6");
  EXPECT_EQ(at("/ "), "7");
  EXPECT_EQ(at("/m~0n"), "8");
  for (const char* absent : {"foo", "/foo/2", "/foo/-", "/foo/00", "/foo/+1", "/foo/", "/foo/0/x", "/m~n", "/m~",
                             "/m~2n", "/absent", "/foo/18446744073709551616"}) {
    EXPECT_EQ(at(absent), "nothing") << absent;
  }
}

TEST(JsonPointer, EscapesAreUndoneOnce) {
  EXPECT_EQ(split_pointer("/~01/~10"), (std::vector<std::string>{"~1", "/0"}));
  EXPECT_EQ(split_pointer(""), std::vector<std::string>{});
  EXPECT_EQ(split_pointer("//"), (std::vector<std::string>{"", ""}));
}

}  // namespace
}  // namespace muniment::json
