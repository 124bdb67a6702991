#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/json/json_tree.hpp"
#include "base/limits.hpp"

namespace muniment::json {
namespace {

Tree tree_of(std::string_view text) {
  const auto document = parse(text);
  EXPECT_TRUE(document) << text;
  return document ? Tree(document->root()) : Tree();
}

void expect_counted_right(const Tree& tree) {
  EXPECT_EQ(tree.bytes(), tree.canonical().size()) << tree.canonical();
  EXPECT_EQ(tree.levels(), tree_of(tree.canonical()).levels()) << tree.canonical();
}

std::string merged(std::string_view target, std::string_view patch) {
  Tree tree = tree_of(target);
  const Tree before = tree;
  const auto document = parse(patch);
  merge_patch(tree, document->root());
  expect_counted_right(tree);
  EXPECT_EQ(before, tree_of(target));  // the shared copy did not change
  return tree.canonical();
}

// Returns the patched text, or "! " and the error; after an error, the target must be unchanged.
std::string patched(std::string_view target, std::string_view patch) {
  Tree tree = tree_of(target);
  const Tree before = tree;
  const auto document = parse(patch);
  EXPECT_TRUE(document) << patch;
  const Status status = json_patch(tree, document->root());
  expect_counted_right(tree);
  EXPECT_EQ(before, tree_of(target));
  if (status) return tree.canonical();
  EXPECT_EQ(tree, before);
  return "! " + status.error().message;
}

TEST(MergePatch, TheExamplesOfRfc7386Hold) {
  EXPECT_EQ(merged(R"({"a":"b"})", R"({"a":"c"})"), R"({"a":"c"})");
  EXPECT_EQ(merged(R"({"a":"b"})", R"({"b":"c"})"), R"({"a":"b","b":"c"})");
  EXPECT_EQ(merged(R"({"a":"b"})", R"({"a":null})"), "{}");
  EXPECT_EQ(merged(R"({"a":"b","b":"c"})", R"({"a":null})"), R"({"b":"c"})");
  EXPECT_EQ(merged(R"({"a":["b"]})", R"({"a":"c"})"), R"({"a":"c"})");
  EXPECT_EQ(merged(R"({"a":"c"})", R"({"a":["b"]})"), R"({"a":["b"]})");
  EXPECT_EQ(merged(R"({"a":{"b":"c"}})", R"({"a":{"b":"d","c":null}})"), R"({"a":{"b":"d"}})");
  EXPECT_EQ(merged(R"({"a":[{"b":"c"}]})", R"({"a":[1]})"), R"({"a":[1]})");
  EXPECT_EQ(merged(R"(["a","b"])", R"(["c","d"])"), R"(["c","d"])");
  EXPECT_EQ(merged(R"({"a":"b"})", R"(["c"])"), R"(["c"])");
  EXPECT_EQ(merged(R"({"a":"foo"})", "null"), "null");
  EXPECT_EQ(merged(R"({"a":"foo"})", R"("bar")"), R"("bar")");
  EXPECT_EQ(merged(R"({"e":null})", R"({"a":1})"), R"({"a":1,"e":null})");
  EXPECT_EQ(merged("[1,2]", R"({"a":"b","c":null})"), R"({"a":"b"})");
  EXPECT_EQ(merged("{}", R"({"a":{"bb":{"ccc":null}}})"), R"({"a":{"bb":{}}})");
}

TEST(JsonPatch, EveryOperationDoesWhatRfc6902Says) {
  EXPECT_EQ(patched(R"({"foo":"bar"})", R"([{"op":"add","path":"/baz","value":"qux"}])"),
            R"({"baz":"qux","foo":"bar"})");
  EXPECT_EQ(patched(R"({"foo":["bar","baz"]})", R"([{"op":"add","path":"/foo/1","value":"qux"}])"),
            R"({"foo":["bar","qux","baz"]})");
  EXPECT_EQ(patched(R"({"foo":["bar"]})", R"([{"op":"add","path":"/foo/-","value":["abc"]}])"),
            R"({"foo":["bar",["abc"]]})");
  EXPECT_EQ(patched(R"({"foo":1})", R"([{"op":"add","path":"/foo","value":null}])"), R"({"foo":null})");
  EXPECT_EQ(patched(R"({"baz":"qux","foo":"bar"})", R"([{"op":"remove","path":"/baz"}])"), R"({"foo":"bar"})");
  EXPECT_EQ(patched(R"({"foo":["a","b","c"]})", R"([{"op":"remove","path":"/foo/1"}])"), R"({"foo":["a","c"]})");
  EXPECT_EQ(patched(R"({"baz":"qux"})", R"([{"op":"replace","path":"/baz","value":"boo"}])"), R"({"baz":"boo"})");
  EXPECT_EQ(patched(R"([[1],2])", R"([{"op":"replace","path":"/0","value":2}])"), "[2,2]");
  EXPECT_EQ(patched(R"({"foo":{"bar":"baz","waldo":"fred"},"qux":{"corge":"grault"}})",
                    R"([{"op":"move","from":"/foo/waldo","path":"/qux/thud"}])"),
            R"({"foo":{"bar":"baz"},"qux":{"corge":"grault","thud":"fred"}})");
  EXPECT_EQ(patched(R"({"foo":["all","grass","cows","eat"]})", R"([{"op":"move","from":"/foo/1","path":"/foo/3"}])"),
            R"({"foo":["all","cows","eat","grass"]})");
  EXPECT_EQ(patched(R"({"a":{"b":1}})", R"([{"op":"copy","from":"/a","path":"/a/c"}])"),
            R"({"a":{"b":1,"c":{"b":1}}})");
  EXPECT_EQ(patched(R"({"baz":"qux","foo":["a",2,"c"]})",
                    R"([{"op":"test","path":"/baz","value":"qux"},{"op":"test","path":"/foo/1","value":2}])"),
            R"({"baz":"qux","foo":["a",2,"c"]})");
  EXPECT_EQ(patched(R"({"~1":10,"/":9})", R"([{"op":"test","path":"/~01","value":10}])"), R"({"/":9,"~1":10})");
  EXPECT_EQ(patched(R"({"a":1})", R"([{"op":"replace","path":"","value":{"b":2}},
                                      {"op":"add","path":"/c","value":3,"unknown":1}])"),
            R"({"b":2,"c":3})");
  EXPECT_EQ(patched(R"({"a":1})", R"([{"op":"move","from":"/a","path":"/a"}])"), R"({"a":1})");
  EXPECT_EQ(patched("{}", "[]"), "{}");
}

TEST(JsonPatch, OneFailingOperationUndoesAll) {
  EXPECT_EQ(patched(R"({"a":{"b":[1,2]}})",
                    R"([{"op":"remove","path":"/a/b/0"},{"op":"add","path":"/x","value":1},
                        {"op":"test","path":"/a/b/0","value":1}])"),
            "! operation 2: the value at that place differs");
}

TEST(JsonPatch, WhatCannotBeDoneIsRefused) {
  const auto refused = [](std::string_view operation) {
    return patched(R"({"a":[1],"o":{"p":{}},"s":"x"})", "[" + std::string(operation) + "]");
  };
  const std::string nothing = "! operation 0: there is no value at that place";
  EXPECT_EQ(refused(R"({"op":"remove","path":"/x"})"), nothing);
  EXPECT_EQ(refused(R"({"op":"remove","path":"/a/1"})"), nothing);
  EXPECT_EQ(refused(R"({"op":"remove","path":"/a/-"})"), nothing);
  EXPECT_EQ(refused(R"({"op":"replace","path":"/x","value":1})"), nothing);
  EXPECT_EQ(refused(R"({"op":"replace","path":"/a/-","value":1})"), nothing);
  EXPECT_EQ(refused(R"({"op":"test","path":"/x","value":null})"), nothing);
  EXPECT_EQ(refused(R"({"op":"copy","from":"/x","path":"/y"})"), nothing);
  EXPECT_EQ(refused(R"({"op":"move","from":"/s/0","path":"/y"})"), nothing);
  for (const char* path : {"/a/2", "/a/01", "/a/x", "/x/y", "/s/y"}) {
    EXPECT_EQ(refused(R"({"op":"add","value":1,"path":")" + std::string(path) + "\"}"),
              "! operation 0: there is no object or array to add to at that place, or the index is "
              "beyond its end");
  }
  EXPECT_EQ(refused(R"({"op":"test","path":"/a/0","value":1.0})"), "! operation 0: the value at that place differs");
  EXPECT_EQ(refused(R"({"op":"move","from":"/o","path":"/o/p/q"})"),
            "! operation 0: a value cannot be moved into itself");
  EXPECT_EQ(refused(R"({"op":"remove","path":""})"), "! operation 0: the whole value cannot be removed. Replace it");
  EXPECT_EQ(refused(R"({"op":"ad","path":"/y","value":1})"),
            "! operation 0: unknown op \"ad\". Known are add, remove, replace, move, copy, test");
  EXPECT_EQ(refused(R"({"op":"add","path":"/y"})"), "! operation 0: \"value\" is missing");
  EXPECT_EQ(refused(R"({"op":"add","value":1})"), "! operation 0: \"path\" must be a string");
  EXPECT_EQ(refused(R"({"op":"copy","path":"/y"})"), "! operation 0: \"from\" must be a string");
  EXPECT_EQ(refused("7"), "! operation 0: \"path\" must be a string");
  EXPECT_EQ(refused(R"({"op":"add","path":"y","value":1})"),
            "! operation 0: \"path\" is not a JSON pointer: it starts with \"/\", and \"~\" is written "
            "as \"~0\"");
  EXPECT_EQ(patched("{}", R"({"op":"add"})"), "! a JSON patch must be an array of operations");
}

TEST(JsonPatch, NoValueIsPutDeeperThanSixtyLevels) {
  const auto nested = [](std::size_t levels) { return std::string(levels, '[') + std::string(levels, ']'); };
  const auto put = [&](std::size_t levels) {
    return patched(R"({"a":{}})", R"([{"op":"add","path":"/a/b","value":)" + nested(levels) + "}]");
  };
  EXPECT_EQ(put(limits::working_state_levels_max - 2),
            R"({"a":{"b":)" + nested(limits::working_state_levels_max - 2) + "}}");
  EXPECT_EQ(put(limits::working_state_levels_max - 1), "! operation 0: puts a value 61 levels deep, limit 60");
}

TEST(JsonPatch, DoublingBySmallCopiesMeetsTheLimit) {
  std::string patch = "[";
  for (int i = 0; i < 40; ++i) {
    patch += fmt::format(R"({}{{"op":"copy","from":"","path":"/k{}"}})", i == 0 ? "" : ",", i);
  }
  EXPECT_NE(patched(R"({"a":"some text"})", patch + "]").find(": copies more than 4,194,304 bytes"), std::string::npos);
}

}  // namespace
}  // namespace muniment::json
