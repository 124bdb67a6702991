// Tests of the lexical lane: matches, languages and times.
#include "retrieval/lexical/lexical_index.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "retrieval/lexical/words.hpp"
#include "support/temporary_folder.hpp"

namespace muniment::retrieval {
namespace {

std::string spelled(std::string_view text) {
  std::string out;
  for (const Word& word : words_of(text, 1'000)) {
    if (!out.empty()) out += ' ';
    if (word.kind == Word::Kind::whole || word.kind == Word::Kind::run) out += '=';
    if (word.kind == Word::Kind::pair) out += '~';
    out += word.text;
  }
  return out;
}

TEST(Words, CompoundsAreSplitAndKeptWhole) {
  EXPECT_EQ(spelled("get_user_name"), "get user name =getusername");
  EXPECT_EQ(spelled("getUserName"), "get user name =getusername");
  EXPECT_EQ(spelled("HTTPServer2Go"), "http server2 go =httpserver2go");
  EXPECT_EQ(spelled("time-sharing system"), "time sharing =timesharing system");
  EXPECT_EQ(spelled("std::vector<int>"), "std vector =stdvector int");
  EXPECT_EQ(spelled("src/base/file_reader.cpp"),
            "src base file reader =filereader cpp =filereadercpp =srcbasefilereadercpp");
  EXPECT_EQ(spelled("a.b.c"), "a b c =abc");
  EXPECT_EQ(spelled("ev://run/r1#e5"), "ev run r1 =evrunr1 e5");
}

TEST(Words, WhatOnlyLooksLikeACompoundIsNone) {
  EXPECT_EQ(spelled("the end. Start"), "the end start");
  EXPECT_EQ(spelled("wait...what"), "wait what");
  EXPECT_EQ(spelled("__init__"), "init");
  EXPECT_EQ(spelled("3.14 1,5"), "3.14 1,5");
  EXPECT_EQ(spelled("AT&T's don't O\u2019Brien"), "at&t don't o'brien =obrien");
  EXPECT_EQ(spelled("C++ and C#, a+b"), "c++ and c# a b");
}

TEST(Words, NumbersAreAlsoKeptByTheirBeginnings) {
  EXPECT_EQ(spelled("v2.1.0"), "v2.1.0 =2.1.0 =2.1");
  EXPECT_EQ(spelled("2.10"), "2.10");
  EXPECT_EQ(spelled("192.168.1.10"), "192.168.1.10 =192.168.1 =192.168");
  EXPECT_EQ(spelled("1,234,567 12,34"), "1,234,567 =1234567 12,34");
}

TEST(Words, NamesWithADotInFrontAreKeptWithIt) {
  EXPECT_EQ(spelled("uses .NET and (.env)"), "uses net =dotnet and env =dotenv");
  EXPECT_EQ(spelled("wait ...what a.b"), "wait what a b =ab");
}

TEST(Words, ElidedArticlesAndSuffixesAreParted) {
  EXPECT_EQ(spelled("L'avion qu\u2019il"), "l avion =lavion qu il =quil");
  EXPECT_EQ(spelled("\u0130stanbul'daki don't we'll"), "istanbul'daki =istanbul =istanbuldaki don't we'll");
}

TEST(Words, CapitalsAreNotedAmongOtherWords) {
  const auto capitals = [](std::string_view text) {
    std::string out;
    for (const Word& word : words_of(text, 1'000)) out += word.capitals ? word.text + " " : "";
    return out;
  };
  EXPECT_EQ(capitals("Ask IT and the US office, I said"), "it us ");
  EXPECT_EQ(capitals("WHAT IS THE PORT"), "");
}

TEST(Words, AccentsWidthsAndMarksAreFolded) {
  EXPECT_EQ(spelled("Häuser STRAẞE café"), "hauser strasse cafe");
  EXPECT_EQ(spelled("Ｆｕｌｌ ﬁne"), "full fine");
  EXPECT_EQ(spelled("مُحَمَّد أحمد"), "محمد احمد");
  EXPECT_EQ(spelled("Ёлка"), "елка");
  EXPECT_EQ(spelled("Łódź smørrebrød ısıtıcı"), "lodz smorrebrod isitici");
  EXPECT_EQ(spelled("की का"), "की का");  // vowel signs are letters
}

TEST(Words, ScriptsWithoutSpacesBecomeCharactersAndPairs) {
  EXPECT_EQ(spelled("東京都 a"), "東 ~東京 京 ~京都 都 =東京都 a");
  EXPECT_EQ(spelled("京都の"), "京 ~京都 都 =京都 ~都の の");
  EXPECT_EQ(spelled("がか"), "が ~がか か");  // without its mark, it is a different letter
  EXPECT_EQ(spelled("ｶﾞ"), "ガ");
  EXPECT_EQ(spelled("🎉 x"), "🎉 x");
}

TEST(Words, BytesThatAreNotTextSeparate) {
  EXPECT_EQ(spelled("a\xff\xfe"
                    "b\xc3"),
            "a b");
  EXPECT_EQ(spelled(""), "");
  EXPECT_EQ(spelled(std::string(100'000, 'x') + " y"), "y");
  EXPECT_EQ(words_of(std::string(5'000, '/'), 1'000).size(), 0u);
}

struct Text {
  ChunkId id;
  std::string text;
  std::string language = "en";
  std::vector<std::string> labels = {};
};

class Lexical : public testing::Test {
 protected:
  void SetUp() override { reopen(); }

  void reopen() {
    index_.reset();
    auto opened = LexicalIndex::open(folder_.path() + "/lexical");
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    index_ = std::move(*opened);
    auto reader = index_->reader();
    ASSERT_TRUE(reader.ok()) << reader.error().message;
    reader_ = std::move(*reader);
  }

  void add(const Text& text, std::int64_t valid_from = 1, std::int64_t time_us = 0) {
    LexicalChunk chunk;
    chunk.id = text.id;
    chunk.text = text.text;
    chunk.language = text.language;
    chunk.facts.labels = text.labels;
    chunk.facts.valid_from = valid_from;
    chunk.facts.time_us = time_us;
    const Status added = index_->add(chunk);
    ASSERT_TRUE(added.ok()) << added.error().message;
  }

  void commit(std::int64_t next_seq = 1) {
    const Status done = index_->commit(next_seq);
    ASSERT_TRUE(done.ok()) << done.error().message;
  }

  void fill(const std::vector<Text>& texts) {
    for (const Text& text : texts) add(text);
    commit();
  }

  std::vector<ChunkId> found(const LexicalQuery& query, const Filter& filter = {}) {
    const auto hits = reader_->search(query, filter, 100);
    EXPECT_TRUE(hits.ok()) << hits.error().message;
    std::vector<ChunkId> ids;
    if (hits) {
      for (const Hit& hit : *hits) ids.push_back(hit.chunk);
    }
    return ids;
  }
  std::vector<ChunkId> found(const std::string& text, const Filter& filter = {}) {
    LexicalQuery query;
    query.text = text;
    return found(query, filter);
  }
  std::vector<ChunkId> found_phrase(const std::string& phrase) {
    LexicalQuery query;
    query.phrases = {phrase};
    return found(query);
  }

  test::TemporaryFolder folder_;
  std::unique_ptr<LexicalIndex> index_;
  std::unique_ptr<LexicalReader> reader_;
};

using Ids = std::vector<ChunkId>;

TEST_F(Lexical, FindsByStemsAndRanksTheNearerTextFirst) {
  fill({{1, "running a database on a small machine with very many other things beside it"},
        {2, "databases run"},
        {3, "nothing of the kind"}});
  EXPECT_EQ(found("run databases"), (Ids{2, 1}));
  EXPECT_EQ(found("unheard"), Ids{});
  EXPECT_EQ(found(""), Ids{});
}

TEST_F(Lexical, AnIdentifierIsFoundHoweverItIsSpelled) {
  fill({{1, "call get_user_name()", "none"},
        {2, "obj.getUserName", "none"},
        {3, "the user has a name", "en"},
        {4, "see src/base/file_reader.cpp", "none"}});
  EXPECT_EQ(found("getusername"), (Ids{1, 2}));
  const Ids camel = found("getUserName");
  ASSERT_EQ(camel.size(), 3u);
  EXPECT_EQ(camel.back(), 3u);
  EXPECT_EQ(found("file_reader.cpp"), Ids{4});
  EXPECT_EQ(found("FileReader"), Ids{4});
}

// Returns whether a file of the index contains these bytes.
bool holds(const std::string& folder, const std::string& word) {
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(file)), {});
    if (bytes.find(word) != std::string::npos) return true;
  }
  return false;
}

TEST_F(Lexical, OfWhatIsRemovedNoWordIsLeftInTheFiles) {
  const std::string folder = folder_.path() + "/lexical";
  fill({{1, "the zyxwvut of the heron"}, {2, "a heron beside the qponmlk"}, {3, "the kjihgfe and a heron"}});
  ASSERT_TRUE(index_->close(3, 5).ok());
  commit(6);
  ASSERT_TRUE(holds(folder, "zyxwvut") && holds(folder, "kjihgfe"));
  EXPECT_EQ(found("heron"), (Ids{1, 2}));
  ASSERT_TRUE(index_->remove(1).ok());
  ASSERT_TRUE(index_->remove(3).ok());
  commit(7);
  EXPECT_FALSE(holds(folder, "zyxwvut"));
  EXPECT_FALSE(holds(folder, "kjihgfe"));
  EXPECT_TRUE(holds(folder, "qponmlk"));
  EXPECT_EQ(found("heron"), Ids{2});  // the reader that was opened earlier
  EXPECT_EQ(found("zyxwvut"), Ids{});
  EXPECT_EQ(index_->watermark(), 7);
  add({4, "another heron"}, 8);
  commit(9);
  EXPECT_EQ(found("heron"), (Ids{4, 2}));
  reopen();
  EXPECT_EQ(index_->watermark(), 9);
  EXPECT_EQ(index_->chunks(), 2);
  EXPECT_EQ(found("qponmlk"), Ids{2});
}

TEST_F(Lexical, NothingInAQueryIsAnOperator) {
  fill({{1, "alpha"}, {2, "beta"}, {3, "not and or near xor title"}});
  EXPECT_EQ(found("alpha AND beta"), (Ids{1, 2}));
  EXPECT_EQ(found("alpha NEAR beta"), (Ids{1, 2, 3}));
  EXPECT_EQ(found("alpha -beta"), (Ids{1, 2}));
  EXPECT_EQ(found("NOT alpha"), Ids{1});
  EXPECT_EQ(found("al*"), Ids{});
  EXPECT_EQ(found("Lcorpus:secret Gen Zalphabet1"), Ids{});  // the prefixes of terms cannot be searched
  EXPECT_EQ(found("Zalpha2 Walpha2"), Ids{});
  EXPECT_EQ(found("alpha..beta ((("), (Ids{1, 2}));
}

TEST_F(Lexical, AWordThatIsNowhereStandsForThoseAtOneEdit) {
  fill({{1, "the scheduler of the warehouse"},
        {2, "a regression of the commit"},
        {3, "rule A002"},
        {4, "расписание поездов", "ru"}});
  EXPECT_EQ(found("shceduler"), Ids{1});  // transposed letters
  EXPECT_EQ(found("warehose"), Ids{1});   // a missing letter
  EXPECT_EQ(found("regresssion"), Ids{2});
  EXPECT_EQ(found("comnit"), Ids{2});
  EXPECT_EQ(found("росписание"), Ids{4});
  EXPECT_EQ(found("warhose"), Ids{});  // two edits
  EXPECT_EQ(found("A003"), Ids{});     // a name, not a typo
}

TEST_F(Lexical, AWordThatIsNowhereIsJoinedWithTheNext) {
  fill({{1, "the dco-signoff failed"}, {2, "check the tag"}, {3, "E_ACCESSDENIED"}});
  EXPECT_EQ(found("sign off"), Ids{1});
  EXPECT_EQ(found("access denied"), Ids{3});
}

TEST_F(Lexical, AFunctionWordOfTheQuerysLanguageScoresInNoOther) {
  for (ChunkId id = 1; id <= 100; id++) add({id, "a gauge of the river and the harbour number " + std::to_string(id)});
  add({101, "the name of the owner is on the door", "no"});
  commit();
  const Ids ids = found("what is the name of a gauge in the harbour");
  ASSERT_EQ(ids.size(), 100u);
  EXPECT_EQ(std::count(ids.begin(), ids.end(), 101u), 1);  // found only by "name"
  EXPECT_EQ(found("the gauge of").size(), 100u);
}

TEST_F(Lexical, WordsInCapitalsAreNotFunctionWords) {
  fill({{1, "Ask IT for a laptop"}, {2, "it is late"}, {3, "The US office"}, {4, "ask us"}});
  EXPECT_EQ(found("IT"), Ids{1});
  EXPECT_EQ(found("US office").front(), 3u);
  EXPECT_EQ(found("who asks us"), (Ids{4, 1}));
}

TEST_F(Lexical, PhrasesMustOccurWordForWord) {
  fill(
      {{1, "the quick brown fox"}, {2, "the brown quick fox"}, {3, "quick browns"}, {4, "call quick_brown()", "none"}});
  EXPECT_EQ(found_phrase("quick brown"), (Ids{1, 4}));
  EXPECT_EQ(found_phrase("QUICK-brown"), (Ids{4, 1}));  // the compound ranks higher
  LexicalQuery query;
  query.text = "fox";
  query.phrases = {"brown quick"};
  EXPECT_EQ(found(query), Ids{2});
  query.phrases.push_back("no such thing");
  EXPECT_EQ(found(query), Ids{});
}

TEST_F(Lexical, FunctionWordsAloneAreAPhrase) {
  fill({{1, "to be or not to be, that is the question"},
        {2, "not to be confused"},
        {3, "War and peace"},
        {4, "es war einmal", "de"}});
  EXPECT_EQ(found("to be or not to be"), Ids{1});
  EXPECT_EQ(found("of the"), Ids{});
  EXPECT_EQ(found("war"), Ids{3});  // a word in English, a stop word in German
}

TEST_F(Lexical, NoPhraseReachesFromTheTitleIntoTheText) {
  LexicalChunk chunk;
  chunk.id = 1;
  chunk.title = "Steam engines";
  chunk.heading = "Boilers › Pressure";
  chunk.text = "are described here";
  chunk.language = "en";
  ASSERT_TRUE(index_->add(chunk).ok());
  add({2, "engines and boilers"});
  commit();
  EXPECT_EQ(found_phrase("boilers pressure"), Ids{1});
  EXPECT_EQ(found_phrase("engines are"), Ids{});
  EXPECT_EQ(found("steam"), Ids{1});
}

TEST_F(Lexical, EveryLanguageIsStemmedByItsOwnRules) {
  fill({{1, "Die Häuser stehen am Fluss.", "de"},
        {2, "The houses stand near the river.", "en"},
        {3, "私は東京都に住んでいます。", "ja"},
        {4, "قرأت الكتب الجديدة في المكتبات", "ar"},
        {5, "Las informaciones son buenas", "es"},
        {6, "for (auto& houses : stands)", "none"}});
  EXPECT_EQ(found("Haus"), Ids{1});
  EXPECT_EQ(found("hauser"), Ids{1});
  EXPECT_EQ(found("house").front(), 2u);
  EXPECT_EQ(found("東京"), Ids{3});
  EXPECT_EQ(found("住"), Ids{3});
  EXPECT_EQ(found("京東"), Ids{});
  LexicalQuery query;
  query.language = "ar";
  query.text = "كتب";
  EXPECT_EQ(found(query), Ids{4});
  query.language = "es";
  query.text = "información";
  EXPECT_EQ(found(query), Ids{5});
  EXPECT_EQ(found_phrase("東京都に"), Ids{3});
}

TEST_F(Lexical, FiltersByLabelsAndTimes) {
  const std::string long_label = "document:notes/" + std::string(500, 'x');
  add({1, "alpha", "en", {"corpus:notes", "tag:a", long_label}}, 1, 100);
  add({2, "alpha", "en", {"corpus:notes", "tag:b", "trust:quarantined"}}, 1, 200);
  add({3, "alpha", "en", {"corpus:other", "tag:a"}}, 1, -300);
  commit();
  const auto with = [](auto change) {
    Filter filter;
    change(filter);
    return filter;
  };
  EXPECT_EQ(found("alpha", with([](Filter& f) { f.all_of = {{"corpus:notes"}}; })), (Ids{1, 2}));
  EXPECT_EQ(found("alpha", with([](Filter& f) {
                    f.all_of = {{"corpus:notes", "corpus:other"}, {"tag:a"}};
                  })),
            (Ids{1, 3}));
  EXPECT_EQ(found("alpha", with([](Filter& f) { f.none_of = {"trust:quarantined", "tag:none"}; })), (Ids{1, 3}));
  EXPECT_EQ(found("alpha", with([&](Filter& f) { f.all_of = {{long_label}}; })), Ids{1});
  EXPECT_EQ(found("alpha", with([](Filter& f) { f.after_us = 100; })), Ids{2});
  EXPECT_EQ(found("alpha", with([](Filter& f) { f.before_us = 200; })), (Ids{1, 3}));
  EXPECT_EQ(found("alpha", with([](Filter& f) { f.before_us = -300; })), Ids{});
  EXPECT_EQ(found("alpha", with([](Filter& f) { f.after_us = INT64_MAX; })), Ids{});
  EXPECT_EQ(found("alpha", with([](Filter& f) { f.before_us = INT64_MIN; })), Ids{});
  EXPECT_EQ(found("alpha", with([](Filter& f) { f.all_of = {{}}; })), Ids{});
}

TEST_F(Lexical, AsOfBeforeAnUpdateFindsWhatWasCurrentThen) {
  add({1, "the port is 8080"}, 10);
  commit(11);
  add({2, "the port is 9090"}, 20);
  ASSERT_TRUE(index_->close(1, 20).ok());
  commit(21);
  const auto at = [](std::int64_t seq) {
    Filter filter;
    filter.as_of = seq;
    return filter;
  };
  EXPECT_EQ(found("port"), Ids{2});
  EXPECT_EQ(found("8080"), Ids{});
  EXPECT_EQ(found("port", at(9)), Ids{});
  EXPECT_EQ(found("port", at(10)), Ids{1});
  EXPECT_EQ(found("port", at(19)), Ids{1});
  EXPECT_EQ(found("port", at(20)), Ids{2});
  EXPECT_EQ(index_->chunks(), 1);

  ASSERT_TRUE(index_->remove(1).ok());
  ASSERT_TRUE(index_->remove(77).ok());  // removing an absent chunk leaves nothing behind
  commit(22);
  EXPECT_EQ(found("port", at(19)), Ids{});
}

TEST_F(Lexical, APositionIsDurableWithItsChunksOrNotAtAll) {
  add({1, "alpha"});
  commit(5);
  add({2, "alpha"});
  EXPECT_EQ(found("alpha"), Ids{1});  // not committed, so not visible
  reopen();                           // and discarded
  EXPECT_EQ(index_->watermark(), 5);
  EXPECT_EQ(index_->chunks(), 1);
  EXPECT_EQ(found("alpha"), Ids{1});
  EXPECT_EQ(reader_->watermark(), 5);
  add({2, "alpha"});
  commit(6);
  EXPECT_EQ(found("alpha"), (Ids{1, 2}));  // the reader refreshes itself
  EXPECT_EQ(reader_->watermark(), 6);
}

TEST_F(Lexical, AReplayOfWhatWasDoneChangesNothing) {
  const auto step = [&] {
    add({1, "alpha one"}, 1);
    add({2, "alpha two"}, 2);
    ASSERT_TRUE(index_->close(1, 2).ok());
    commit(3);
  };
  step();
  Filter before;
  before.as_of = 1;
  const Ids was = found("alpha", before);
  step();
  EXPECT_EQ(found("alpha", before), was);
  EXPECT_EQ(found("alpha"), Ids{2});
}

TEST_F(Lexical, TiesAreOrderedById) {
  fill({{7, "same words"}, {3, "same words"}, {5, "same words"}});
  EXPECT_EQ(found("same"), (Ids{3, 5, 7}));
}

TEST_F(Lexical, AMegabyteOfQueryIsAnswered) {
  std::vector<Text> texts;
  for (ChunkId id = 1; id <= 200; id++) texts.push_back({id, "word" + std::to_string(id) + " common text"});
  fill(texts);
  std::string query;
  while (query.size() < (1u << 20)) query += "word" + std::to_string(query.size() % 977) + " common ";
  EXPECT_FALSE(found(query).empty());
  found(std::string(1 << 20, 'a'));
  found(std::string(1 << 20, '"'));
}

TEST_F(Lexical, CountsWhatAFilterHid) {
  fill({{1, "alpha", "en", {"corpus:a"}}, {2, "alpha", "en", {"corpus:a"}}});
  LexicalQuery query;
  query.text = "alpha";
  EXPECT_EQ(reader_->count_unfiltered(query).value(), 2);
  query.text = "beta";
  EXPECT_EQ(reader_->count_unfiltered(query).value(), 0);
}

TEST_F(Lexical, TellsHowMuchAChunkSays) {
  add({1, "the port of the proxy"});
  add({2, "one two three"});
  ASSERT_TRUE(index_->close(2, 5).ok());
  commit();
  const std::vector<Hit> hits = {{1, 0}, {2, 0}, {3, 0}};
  EXPECT_EQ(reader_->words_of(hits).value(), (std::vector<std::uint32_t>{2, 3, unknown_words}));
}

TEST_F(Lexical, AReaderOutlivesManyCommits) {
  add({1, "alpha"});
  commit();
  EXPECT_EQ(found("alpha"), Ids{1});
  for (ChunkId id = 2; id <= 30; id++) {
    add({id, "alpha " + std::to_string(id)});
    commit(id);
  }
  EXPECT_EQ(found("alpha").size(), 30u);
}

}  // namespace
}  // namespace muniment::retrieval
