// Tests of the embedders' word boundaries.
#include <gtest/gtest.h>

#include "base/text.hpp"
#include "base/utf8.hpp"
#include "retrieval/embed/words.hpp"

namespace muniment::retrieval {
namespace {

std::string words_of(std::string_view text) {
  WordReader reader;
  std::vector<std::string> shown;
  for (const WordReader::Word& word : reader.read(text)) {
    const std::string_view mark = word.kind == WordReader::Word::Kind::whole  ? "="
                                  : word.kind == WordReader::Word::Kind::pair ? "~"
                                                                              : "";
    shown.push_back(std::string(mark) + std::string(word.text));
  }
  return joined(shown, " ");
}

TEST(Words, CaseAndAccentsAndWidthAreFolded) {
  EXPECT_EQ(words_of("Crème BRÛLÉE, Straße; ﬁle ＡＢＣ１２"), "creme brulee strasse file abc12");
  EXPECT_EQ(words_of("cafe\u0301"), "cafe");
  EXPECT_EQ(words_of("İstanbul ΣΊΣΥΦΟΣ Ёлка"), "istanbul σισυφοσ елка");
}

TEST(Words, AnIdentifierIsItsPartsAndTheWhole) {
  EXPECT_EQ(words_of("read_config_file"), "read config file =read_config_file");
  EXPECT_EQ(words_of("parseHTTPHeader2"), "parse http header2 =parsehttpheader2");
  EXPECT_EQ(words_of("HttpServer"), "http server =httpserver");
  EXPECT_EQ(words_of("SHA256Sum sha256"), "sha256 sum =sha256sum sha256");
  EXPECT_EQ(words_of("src/base/file.hpp:12"), "src base file hpp 12 =src/base/file.hpp:12");
  EXPECT_EQ(words_of("std::vector<int>"), "std vector =std::vector int");
  EXPECT_EQ(words_of("state-of-the-art"), "state of the art =state-of-the-art");
}

TEST(Words, PunctuationEndsAWord) {
  EXPECT_EQ(words_of("It ended. Then: a-- b...c __init__ \"x\" don't"), "it ended then a b c init x don t");
  EXPECT_EQ(words_of(" ._-/: "), "");
  EXPECT_EQ(words_of(""), "");
}

TEST(Words, ScriptsWithoutSpacesGivePairs) {
  EXPECT_EQ(words_of("東京都 に"), "~東京 ~京都 ~に");
  EXPECT_EQ(words_of("が in C++"), "~が in c");
  EXPECT_EQ(words_of("abc日本def"), "abc ~日本 def");
  EXPECT_EQ(words_of("한국어"), "~한국 ~국어");
}

TEST(Words, AWordHasAtMost64BytesAndWholeCharacters) {
  EXPECT_EQ(words_of(std::string(100'000, 'x')), std::string(64, 'x'));
  std::string greek;
  for (int i = 0; i < 100; ++i) greek += "ω";
  EXPECT_EQ(words_of("x" + greek), "x" + greek.substr(0, 62));
}

TEST(Words, WhatIsNotUtf8SeparatesWords) {
  EXPECT_EQ(words_of("a\xFF"
                     "b\xC3"),
            "a b");
  EXPECT_EQ(words_of(std::string_view("a\0b", 3)), "a b");
  WordReader reader;
  std::string bytes;
  for (unsigned i = 0; i < 20'000; ++i) bytes += static_cast<char>((i * 2'654'435'761U) >> 24);
  for (const WordReader::Word& word : reader.read(bytes)) {
    EXPECT_EQ(first_invalid_utf8(word.text), std::string::npos);
    EXPECT_LE(word.text.size(), word_bytes_max);
    EXPECT_FALSE(word.text.empty());
  }
}

TEST(Words, AReaderForgetsTheTextBefore) {
  WordReader reader;
  reader.read("someName ab");
  const auto& words = reader.read("Other");
  ASSERT_EQ(words.size(), 1U);
  EXPECT_EQ(words[0].text, "other");
}

}  // namespace
}  // namespace muniment::retrieval
