// Tests of text extraction and chunks: formats, encodings, languages, excerpts, and the invariants of spans for
// arbitrary bytes.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <unicode/brkiter.h>

#include <chrono>

#include "base/limits.hpp"
#include "base/utf8.hpp"
#include "retrieval/text/unicode.hpp"
#include "support/retrieval_documents.hpp"

namespace muniment::retrieval {
namespace {

// Returns the violated invariant: chunks are ordered, disjoint, within the text, on character boundaries, at most of
// the maximum size, and cover all but white space.
std::string broken_promise(const DocumentText& document) {
  std::size_t at = 0;
  const auto blank = [&](std::size_t start, std::size_t end) {
    return trimmed(std::string_view(document.text).substr(start, end - start)).empty();
  };
  for (const Chunk& chunk : document.chunks) {
    const auto start = static_cast<std::size_t>(chunk.start), end = static_cast<std::size_t>(chunk.end);
    if (chunk.start < 0 || end > document.text.size()) return "a chunk is outside the text";
    if (start >= end) return "a chunk is empty";
    if (start < at) return "chunks overlap";
    if (end - start > limits::chunk_bytes_max) return "a chunk is too long";
    if (!blank(at, start)) return "text lies between chunks";
    for (const std::size_t edge : {start, end}) {
      if (edge < document.text.size() && (static_cast<unsigned char>(document.text[edge]) & 0xC0) == 0x80)
        return "a chunk begins or ends inside a character";
    }
    if (chunk.heading.size() > limits::chunk_heading_bytes_max) return "a heading is too long";
    if (first_invalid_utf8(chunk.heading) != std::string::npos) return "a heading is not UTF-8";
    at = end;
  }
  if (!blank(at, document.text.size())) return "text lies after the last chunk";
  if (first_invalid_utf8(document.text) != std::string::npos) return "the text is not UTF-8";
  if (document.title.size() > limits::document_title_bytes_max) return "the title is too long";
  return {};
}

std::vector<std::size_t> graphemes_by_icu(const std::string& text) {
  UErrorCode error = U_ZERO_ERROR;
  const std::unique_ptr<icu::BreakIterator> breaks(
      icu::BreakIterator::createCharacterInstance(icu::Locale::getRoot(), error));
  UText* source = utext_openUTF8(nullptr, text.data(), static_cast<std::int64_t>(text.size()), &error);
  breaks->setText(source, error);
  std::vector<std::size_t> edges;
  for (std::int32_t at = breaks->first(); at != icu::BreakIterator::DONE; at = breaks->next())
    edges.push_back(static_cast<std::size_t>(at));
  utext_close(source);
  return edges;
}

// Combining characters, mixed with others.
const std::vector<std::string> pieces = {"a",       "b. C",
                                         " ",       "\n",
                                         "\r\n",    "é",
                                         "e\u0301", "👩‍👩‍👧",
                                         "🇩🇪",      "🇯",
                                         "\u200D",  "👍🏽",
                                         "한",      "\u1100\u1161\u11A8",
                                         "नि",      "क्षि",
                                         "日本",    "。",
                                         "ا\u0651", "\u0600",
                                         "\u0301",  "\u00A0",
                                         "\t",      "\u0E33",
                                         "ก",       "❤️",
                                         "\uFE0F",  "\"",
                                         "\\",      "{",
                                         "}",       "[",
                                         "]",       ",",
                                         ":",       "<",
                                         ">",       "#",
                                         "`",       "|"};

rc::Gen<std::string> joining_text() {
  return rc::gen::map(rc::gen::container<std::vector<std::size_t>>(rc::gen::inRange<std::size_t>(0, pieces.size())),
                      [](const std::vector<std::size_t>& parts) {
                        std::string text;
                        for (const std::size_t part : parts) text += pieces[part];
                        return text;
                      });
}

const std::vector<std::string> names = {"a.txt",   "a.md",   "a.py",  "a.cpp", "a.html", "a.json",
                                        "a.jsonl", "a.yaml", "a.sql", "a",     "a.pdf"};

}  // namespace

RC_GTEST_PROP(DocumentText, ArbitraryBytesKeepEveryPromiseOrAreRefused, (const std::string& bytes)) {
  for (const std::string& name : names) {
    const auto document = read_document(bytes, name, "");
    if (!document) continue;
    RC_ASSERT(broken_promise(*document) == "");
    if (document->as_is) RC_ASSERT(document->text == bytes);
  }
}

RC_GTEST_PROP(DocumentText, LongTextsOfAnyKindKeepEveryPromiseTwiceInTheSameWay, ()) {
  const std::string part = *joining_text();
  const std::string text = repeated(part, *rc::gen::inRange<std::size_t>(1, 400));
  for (const std::string& name : names) {
    const auto document = read_document(text, name, "");
    if (!document) continue;
    RC_ASSERT(broken_promise(*document) == "");
    const auto again = read_document(text, name, "");
    RC_ASSERT(again.ok() && again->chunks.size() == document->chunks.size() && again->language == document->language &&
              again->title == document->title);
    for (std::size_t i = 0; i < document->chunks.size(); ++i) {
      RC_ASSERT(again->chunks[i].start == document->chunks[i].start &&
                again->chunks[i].end == document->chunks[i].end &&
                again->chunks[i].heading == document->chunks[i].heading);
    }
  }
}

RC_GTEST_PROP(DocumentText, ChunksAreCutBetweenGraphemes, ()) {
  const std::string part = *joining_text();
  const std::string text = repeated(part, *rc::gen::inRange<std::size_t>(1, 200));
  const auto edges = graphemes_by_icu(text);
  for (const char* const name : {"a.txt", "a.md", "a.py"}) {
    const auto document = read_document(text, name, "");
    if (!document || !document->as_is || document->format == Format::html) continue;
    for (const Chunk& chunk : document->chunks) {
      // A long run of combining characters, which no real text has, may be split to keep the limit.
      if (edges.size() < text.size() / 256) continue;
      RC_ASSERT(std::binary_search(edges.begin(), edges.end(), static_cast<std::size_t>(chunk.start)));
      RC_ASSERT(std::binary_search(edges.begin(), edges.end(), static_cast<std::size_t>(chunk.end)));
    }
  }
}

RC_GTEST_PROP(Graphemes, AreThoseOfIcu, ()) {
  const std::string text = *joining_text();
  std::vector<std::size_t> edges = {0};
  while (edges.back() < text.size()) edges.push_back(next_grapheme(text, edges.back()));
  RC_ASSERT(edges == graphemes_by_icu(text));
  for (std::size_t at = 0; at <= text.size(); ++at)
    RC_ASSERT(grapheme_edge(text, at) == *std::prev(std::upper_bound(edges.begin(), edges.end(), at)));
}

RC_GTEST_PROP(Excerpts, AreShortEnoughWholeCharactersWithoutControls, ()) {
  const std::string text = *joining_text() + *rc::gen::arbitrary<std::string>();
  const auto bytes_max = *rc::gen::inRange<std::size_t>(0, 80);
  for (const std::string& excerpt :
       {summary_of(text, bytes_max), snippet_of(text, {"a", "日本", "b", "é"}, bytes_max)}) {
    RC_ASSERT(excerpt.size() <= bytes_max);
    RC_ASSERT(first_invalid_utf8(excerpt) == std::string::npos);
    for (const char c : excerpt) RC_ASSERT(static_cast<unsigned char>(c) >= 0x20 && c != 0x7F);
  }
}

TEST(DocumentText, APassageOfTwoThousandBytesIsOneChunk) {
  const std::string sentence = "The boundary layer thickens behind the shock. ";
  const std::string passage = "An abstract\n\n" + repeated(sentence, 20) + "\n\n" + repeated(sentence, 22);
  ASSERT_LE(passage.size(), 2'000U);
  for (const char* const name : {"a.txt", "a.md", "a"}) EXPECT_EQ(read(passage, name).chunks.size(), 1U) << name;
  EXPECT_EQ(read(passage + repeated(sentence, 10), "a.txt").chunks.size(), 2U);
}

TEST(DocumentText, WhatIsEmptyOrBlankHasNoChunks) {
  for (const char* const name : {"a.txt", "a.md", "a.py", "a.html", "a.json", "a.jsonl"}) {
    EXPECT_TRUE(read("", name).chunks.empty()) << name;
    EXPECT_TRUE(read("\xEF\xBB\xBF \n\t\u3000\n", name).chunks.empty()) << name;
  }
  EXPECT_EQ(read("", "notes/today.md").title, "today.md");
}

TEST(DocumentText, ALongParagraphIsCutBetweenSentences) {
  const std::string text = repeated("Dr. Brown measured 3.5 m, e.g. at the bow. He went home! ", 120);
  const DocumentText document = read(text, "a.txt");
  ASSERT_GT(document.chunks.size(), 3U);
  for (std::size_t i = 0; i < document.chunks.size(); ++i) {
    EXPECT_TRUE(text_of(document, document.chunks[i]).starts_with("Dr.") ||
                text_of(document, document.chunks[i]).starts_with("He"))
        << text_of(document, document.chunks[i]).substr(0, 30);
    EXPECT_GT(text_of(document, document.chunks[i]).size(), 800U);
  }
  EXPECT_EQ(broken_promise(document), "");
}

TEST(DocumentText, JapaneseIsCutBehindItsFullStopsThoughItHasNoSpaces) {
  const std::string text =
      repeated("東京都は日本の首都である。人口は約一千四百万人で、世界最大の都市圏を形成している。", 60);
  const DocumentText document = read(text, "tokyo.txt");
  EXPECT_EQ(document.language, "ja");
  ASSERT_GT(document.chunks.size(), 2U);
  for (std::size_t i = 0; i < document.chunks.size(); ++i)
    EXPECT_TRUE(text_of(document, document.chunks[i]).ends_with("。"));
}

TEST(DocumentText, EmojiAndFlagsAreNotCutThough) {
  const std::string family = "👩‍👩‍👧‍👦", flag = "🇯🇵";
  const DocumentText document = read(repeated(family + flag, 400), "a.txt");
  ASSERT_GT(document.chunks.size(), 3U);
  for (std::size_t i = 0; i < document.chunks.size(); ++i) {
    EXPECT_TRUE(text_of(document, document.chunks[i]).starts_with(family) ||
                text_of(document, document.chunks[i]).starts_with(flag));
    EXPECT_TRUE(text_of(document, document.chunks[i]).ends_with("👦") ||
                text_of(document, document.chunks[i]).ends_with(flag));
  }
}

// Between two of these no edge is certain without the text before them.
TEST(DocumentText, ALongRunOfFlagsOrConjunctsIsCutBetweenGraphemes) {
  for (const std::string part : {"🇯🇵", "\u200D\u0915\u094D\u0937\u093F"}) {
    const std::string text = repeated(part, 1000);
    const auto edges = graphemes_by_icu(text);
    const DocumentText document = read(text, "a.txt");
    ASSERT_GT(document.chunks.size(), 3U);
    for (const Chunk& chunk : document.chunks)
      EXPECT_TRUE(std::binary_search(edges.begin(), edges.end(), static_cast<std::size_t>(chunk.end))) << chunk.end;
  }
}

TEST(Language, IsToldForDocumentsAndForTurns) {
  const std::vector<std::pair<std::string, std::string>> known = {
      {"The committee met on Tuesday and agreed on the budget for the coming year.", "en"},
      {"Die Donaudampfschifffahrtsgesellschaft stellte den Betrieb vorübergehend ein.", "de"},
      {"اجتمعت اللجنة يوم الثلاثاء ووافقت على ميزانية العام المقبل.", "ar"},
      {"委員会は火曜日に開かれ、来年度の予算案を承認した。", "ja"},
      {"委员会周二开会，同意了明年的预算。", "zh"},
      {"위원회는 화요일에 모여 내년 예산안에 동의했다.", "ko"},
      {"Комитет собрался во вторник и согласовал бюджет на следующий год.", "ru"},
      {"Le comité s'est réuni mardi et a approuvé le budget de l'année prochaine.", "fr"},
      {"Bye Joanna! Good luck!", "en"},
      {"Yup, ttyl!", "en"},
      {"12:30 — 14.50", "none"},
      {"😀 🎉", "none"},
  };
  for (const auto& [text, language] : known) EXPECT_EQ(read(text, "turn").language, language) << text;
  EXPECT_EQ(read("def main():\n    return the_answer\n", "a.py").language, "none");
  EXPECT_EQ(read(R"({"name": "the value of the thing that is here"})", "a.json").language, "none");
  EXPECT_EQ(read(R"({"role": "user", "content": "Wo ist der Bahnhof, und wann f\u00e4hrt der n\u00e4chste Zug?"})"
                 "\n",
                 "chat.jsonl")
                .language,
            "de");
}

TEST(Excerpts, SummariesEndAtASentenceOrAWord) {
  EXPECT_EQ(summary_of("  First\n sentence.\tSecond one is longer than that. ", 30), "First sentence.");
  EXPECT_EQ(summary_of("No end of a sentence anywhere in here", 20), "No end of a…");
  EXPECT_EQ(summary_of("short", 5), "short");
  EXPECT_EQ(summary_of("日本語の文章。次の文章はとても長い。", 30), "日本語の文章。");
  EXPECT_EQ(summary_of("👩‍👩‍👧👩‍👩‍👧", 17), "");
  EXPECT_EQ(summary_of("e\u0301e\u0301e\u0301", 7), "e\u0301…");
}

TEST(Excerpts, NothingInThemReordersOrHidesText) {
  EXPECT_EQ(summary_of("safe \u202Eevil\u202C \u2066x\u2069\x1b[31m red\x07\u200B!", 100), "safe evil x[31m red!");
  EXPECT_EQ(summary_of("می\u200Cخواهم 👩‍💻", 100), "می\u200Cخواهم 👩‍💻");
}

TEST(Excerpts, ASnippetIsWhereMostOfTheWordsAre) {
  const std::string filler = repeated("Nothing to see in this sentence at all. ", 20);
  const std::string text =
      filler + "A walk by the river. " + filler + "The Café by the river serves Käsekuchen on Sundays. " + filler;
  const std::string snippet = snippet_of(text, {"cafe", "river", "kasekuchen"}, 120);
  EXPECT_NE(snippet.find("Café by the river serves Käsekuchen"), std::string::npos) << snippet;
  EXPECT_LE(snippet.size(), 120U);
  EXPECT_TRUE(snippet.starts_with("…"));
  EXPECT_NE(
      snippet_of(repeated("天気がいい。", 30) + "大阪城は大阪にある。" + repeated("天気がいい。", 30), {"大阪"}, 90)
          .find("大阪城"),
      std::string::npos);
  EXPECT_EQ(snippet_of(text, {"absent"}, 60), summary_of(text, 60));
}

TEST(IndexText, JsonIsNamesAndValuesWithoutEscapes) {
  EXPECT_EQ(index_text_of(Format::jsonl, R"({"role": "user", "content": [{"text": "caf\u00e9\nnext"}], "n": 3})"),
            "role: user\ntext: café\nnext\nn: 3");
  EXPECT_EQ(index_text_of(Format::json, R"(tail of a string\nnext \ud83d\ude00", "k": "v"},)"),
            "tail of a string\nnext 😀, k: v},");
  EXPECT_EQ(index_text_of(Format::json, "cut \\u12é \\ud83dé \\u"),
            "cut é é ");  // the byte after a broken escape begins a character
  EXPECT_EQ(index_text_of(Format::markdown, "a\\nb"), "a\\nb");
}

}  // namespace muniment::retrieval
