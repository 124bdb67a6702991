// Tests of documents and models that are processed in a child process of their own: this program, started again.
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <random>

#include "base/text.hpp"
#include "retrieval/child/search/search_child.hpp"
#include "retrieval/child/tool_child.hpp"

namespace muniment::retrieval {
namespace {

using namespace std::chrono_literals;

Deadline within(std::chrono::milliseconds time) { return std::chrono::steady_clock::now() + time; }

TEST(ToolChild, ADocumentReadApartIsTheOneReadHere) {
  for (const auto& [name, bytes] : std::vector<std::pair<std::string, std::string>>{
           {"a.md", "# Title\n\nA paragraph of text.\n\n## Part\n\nAnother one.\n"},
           {"a.html", "<html><head><title>T</title></head><body><h1>Head</h1><p>Text &amp; more</p></body></html>"},
           {"latin.txt", "Caf\xe9 und M\xfcller, gr\xfc\xdf Gott an alle, die da kommen."}}) {
    SCOPED_TRACE(name);
    const auto here = read_document(bytes, name, "");
    const auto apart = read_document_apart(bytes, name, "", within(20s));
    ASSERT_TRUE(here) << here.error().message;
    ASSERT_TRUE(apart) << apart.error().message;
    EXPECT_EQ(here->format, apart->format);
    EXPECT_EQ(here->language, apart->language);
    EXPECT_EQ(here->title, apart->title);
    EXPECT_EQ(here->text, apart->text);
    EXPECT_EQ(here->encoding, apart->encoding);
    ASSERT_EQ(here->chunks.size(), apart->chunks.size());
    for (std::size_t i = 0; i < here->chunks.size(); ++i) {
      EXPECT_EQ(here->chunks[i].start, apart->chunks[i].start);
      EXPECT_EQ(here->chunks[i].end, apart->chunks[i].end);
      EXPECT_EQ(here->chunks[i].heading, apart->chunks[i].heading);
    }
  }
}

TEST(ToolChild, WhatTheReaderRefusesIsRefusedApartAsWell) {
  const std::string binary(
      "\x7f"
      "ELF\0\0\0\0\1\2\3",
      11);
  EXPECT_EQ(Errc::invalid_argument, read_document_apart(binary, "a", "", within(20s)).error().code);
  const auto broken = read_document_apart("%PDF-1.7\nnothing of the kind", "a.pdf", "", within(20s));
  ASSERT_FALSE(broken);
  EXPECT_EQ(Errc::corrupt, broken.error().code);
}

TEST(ToolChild, AModelTrainedApartIsTheOneTrainedHere) {
  std::mt19937 random(7);
  std::vector<std::string> texts;
  for (int i = 0; i < 60; ++i) {
    std::string& text = texts.emplace_back();
    for (int word = 0; word < 30; ++word) text += "w" + std::to_string(random() % 40) + " ";
  }
  const LsaOptions options{16, 1};
  const std::vector<std::string_view> views(texts.begin(), texts.end());
  const auto here = train_lsa(views, options);
  const auto apart = train_lsa_apart(texts, options, within(60s));
  ASSERT_TRUE(here) << here.error().message;
  ASSERT_TRUE(apart) << apart.error().message;
  EXPECT_EQ(here->bytes, apart->bytes);
  EXPECT_EQ(here->vocabulary_hash, apart->vocabulary_hash);
}

TEST(ToolChild, TheDeadlineHolds) {
  const std::vector<std::string> texts(200, std::string(20'000, 'x'));
  const auto late = train_lsa_apart(texts, {}, within(5ms));
  ASSERT_FALSE(late);
  EXPECT_EQ(Errc::deadline_exceeded, late.error().code);
}

TEST(ToolChild, OneThatDiesOrSaysNothingIsCorrupt) {
  ToolChildOptions options;
  options.command = {"/bin/false"};
  EXPECT_EQ(Errc::corrupt, read_document_apart("text", "a.txt", "", within(5s), options).error().code);
  options.command = {"/nowhere/at/all"};
  EXPECT_EQ(Errc::unavailable, read_document_apart("text", "a.txt", "", within(5s), options).error().code);
}

// Answers of a child that was compromised by its input.
TEST(ToolChild, AnAnswerThatCannotBeIsNotBelieved) {
  DocumentText good;
  good.text = "caf\xc3\xa9 text";
  good.chunks = {{0, 5, "h"}, {6, 10, ""}};
  ASSERT_TRUE(check_document(good, good.text));
  const auto refused = [&](const std::function<void(DocumentText&)>& spoil) {
    DocumentText bad = good;
    spoil(bad);
    return !check_document(bad, good.text);
  };
  EXPECT_TRUE(refused([](DocumentText& it) { it.chunks[1].end = 11; }));
  EXPECT_TRUE(refused([](DocumentText& it) { it.chunks[0].start = -1; }));
  EXPECT_TRUE(refused([](DocumentText& it) { it.chunks[1].start = 4; }));
  EXPECT_TRUE(refused([](DocumentText& it) { it.chunks[0].end = 0; }));
  EXPECT_TRUE(refused([](DocumentText& it) { it.chunks[0].end = 4; }));  // ends within a character
  EXPECT_TRUE(refused([](DocumentText& it) { it.chunks[0].heading = "\xff"; }));
  EXPECT_TRUE(refused([](DocumentText& it) { it.title = "\xff"; }));
  EXPECT_TRUE(refused([](DocumentText& it) { it.text = "other text"; }));  // although as_is is set
  EXPECT_TRUE(refused([](DocumentText& it) { it.as_is = false, it.text = "\xff"; }));
}

}  // namespace
}  // namespace muniment::retrieval

int main(int argc, char** argv) {
  const std::string_view child = argc == 2 ? argv[1] : "";
  if (child == "--text-child") std::_Exit(muniment::retrieval::serve_tool(muniment::first_handed_over));
  if (child == "--search-child") std::_Exit(muniment::retrieval::serve_search({}, muniment::first_handed_over));
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
