// Tests of answers: sentences of texts, the extractive drafter, and the confidence.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cmath>
#include <string>
#include <vector>

#include "base/limits.hpp"
#include "retrieval/answer/confidence.hpp"
#include "retrieval/answer/extractive.hpp"
#include "retrieval/answer/model_drafter.hpp"
#include "retrieval/answer/question_words.hpp"
#include "retrieval/answer/statement.hpp"
#include "retrieval/answer/support.hpp"
#include "retrieval/text/document_text.hpp"

namespace muniment::retrieval {
namespace {

std::vector<std::string> texts_of(std::string_view text) {
  std::vector<std::string> out;
  for (const Span span : sentences_of(text)) out.emplace_back(piece_of(text, span));
  return out;
}

using Texts = std::vector<std::string>;

TEST(Sentences, EndAtTheirMarksAndNotAtAbbreviations) {
  EXPECT_EQ(texts_of("Dr. Who came at 3.15 p.m. on Monday. He left! \"Why?\" asked J. Doe.\nNobody knew."),
            (Texts{"Dr. Who came at 3.15 p.m. on Monday.", "He left!", "\"Why?\" asked J. Doe.", "Nobody knew."}));
  EXPECT_EQ(texts_of("灯塔建于1892年。守塔人叫李明。「点灯。」他说。"),
            (Texts{"灯塔建于1892年。", "守塔人叫李明。", "「点灯。」", "他说。"}));
  EXPECT_EQ(texts_of("बंदरगाह की स्थापना 1850 में हुई थी। बंदरगाह का प्रमुख रमेश है।"),
            (Texts{"बंदरगाह की स्थापना 1850 में हुई थी।", "बंदरगाह का प्रमुख रमेश है।"}));
  EXPECT_EQ(texts_of("هل المدرسة مفتوحة؟ نعم."), (Texts{"هل المدرسة مفتوحة؟", "نعم."}));
  EXPECT_EQ(texts_of("Kims Geburtstag ist am 4. Mai. Das 2. Haus steht."),
            (Texts{"Kims Geburtstag ist am 4. Mai.", "Das 2. Haus steht."}));
  EXPECT_EQ(texts_of("1. Open the door. 2. Wait."), (Texts{"1. Open the door.", "2. Wait."}));
  EXPECT_EQ(texts_of("He is 42. She came in 1984. It rains."), (Texts{"He is 42.", "She came in 1984.", "It rains."}));
  EXPECT_EQ(texts_of(""), Texts{});
  EXPECT_EQ(texts_of(" \n\n "), Texts{});
}

TEST(Sentences, ALineEndsASentenceUnlessItIsWrapped) {
  EXPECT_EQ(texts_of("# Ports\n\n- proxy: 8080\n- backup: 8443"),
            (Texts{"# Ports", "- proxy: 8080", "- backup: 8443"}));
  const std::string wrapped =
      "The proxy of the harbour office listens on the port of the\nEastern basin, which is 8080.";
  EXPECT_EQ(texts_of(wrapped), Texts{wrapped});
}

TEST(Sentences, AreDisjointInOrderAndCoverTheText) {
  rc::check("sentences_of", [](const std::vector<std::uint8_t>& choices) {
    static const std::vector<std::string> parts = {"a",    "Word ", "The end. ", "\n", "\n\n", "。",
                                                   "守塔", "؟ ",    "é",         "\"", ") ",   "e.g. "};
    std::string text;
    for (const std::uint8_t choice : choices) text += parts[choice % parts.size()];
    std::size_t at = 0;
    for (const Span span : sentences_of(text)) {
      RC_ASSERT(span.start >= at);
      RC_ASSERT(span.end > span.start);
      RC_ASSERT(trimmed(std::string_view(text).substr(at, span.start - at)).empty());
      RC_ASSERT(span.size() <= limits::sentence_bytes_max * 14 / 10);
      at = span.end;
    }
    RC_ASSERT(trimmed(std::string_view(text).substr(at)).empty());
  });
}

TEST(Sentences, ATextWithoutMarksIsCut) {
  std::string thai;
  for (int i = 0; i < 200; ++i) thai += "ท่าเรือเปิดเวลาแปดโมงเช้า ";
  const auto found = sentences_of(thai);
  EXPECT_GT(found.size(), 5U);
  for (const Span span : found) EXPECT_LE(span.size(), limits::sentence_bytes_max * 14 / 10);
}

AnswerSource source(std::string_view text, double score = 1, std::string_view language = "en") {
  return {text, "", "", language, score};
}

Draft drafted(std::string_view question, const std::vector<AnswerSource>& sources) {
  auto draft = ExtractiveDrafter().draft({question, sources, {}}, {});
  EXPECT_TRUE(draft);
  return draft ? *std::move(draft) : Draft{};
}

Texts sentences_of_draft(const Draft& draft) {
  Texts out;
  for (const AnswerSentence& sentence : draft.sentences) out.push_back(sentence.text);
  return out;
}

TEST(Extractive, CitesTheSentenceWithTheWordsOfTheQuestion) {
  const std::vector<AnswerSource> sources = {
      source("The tide turns at six. The keeper of the eastern basin is called Ada. She writes down every ship."),
      source("The keeper of the western basin left in May.", .8)};
  const Draft draft = drafted("Who is the keeper of the eastern basin?", sources);
  ASSERT_FALSE(draft.sentences.empty());
  EXPECT_EQ(draft.sentences.front().text, "The keeper of the eastern basin is called Ada.");
  const SentenceCitation& citation = draft.sentences.front().citations.front();
  EXPECT_EQ(piece_of(sources[citation.source].text, citation.span), draft.sentences.front().text);
  EXPECT_DOUBLE_EQ(draft.coverage, 1);
}

TEST(Extractive, StemsLikeTheSearch) {
  EXPECT_EQ(
      sentences_of_draft(drafted("which ships were repaired", {source("He slept. Repairing the ship took a year.")})),
      Texts{"Repairing the ship took a year."});
  EXPECT_EQ(sentences_of_draft(drafted("Wer bedient die Schleusen?",
                                       {source("Es regnet. Die Schleuse wird von Herrn Brandt bedient.", 1, "de")})),
            Texts{"Die Schleuse wird von Herrn Brandt bedient."});
  EXPECT_EQ(sentences_of_draft(
                drafted("守塔人叫什么名字？", {source("灯塔建于1892年。守塔人叫李明。他每天晚上点灯。", 1, "zh")})),
            Texts{"守塔人叫李明。"});
}

TEST(Extractive, HasNoAnswerWithoutAWordOfTheQuestion) {
  EXPECT_TRUE(drafted("zygomorphic xylophones", {source("The tide turns at six.")}).sentences.empty());
  EXPECT_TRUE(drafted("keeper", {}).sentences.empty());
  EXPECT_TRUE(drafted("", {source("The tide turns at six.")}).sentences.empty());
  EXPECT_TRUE(drafted("keeper", {source("# Keeper")}).sentences.empty()) << "a heading states nothing";
  EXPECT_TRUE(drafted("keeper", {source("Who is the keeper?")}).sentences.empty()) << "a question is no answer";
}

TEST(Extractive, PrefersTheBetterPassageAndUsesItsTitle) {
  const std::vector<AnswerSource> equal = {source("It opens at nine.", .4), source("It opens at eight.", .9)};
  EXPECT_EQ(sentences_of_draft(drafted("When does it open?", equal)), Texts{"It opens at eight."});
  const std::vector<AnswerSource> titled = {{"It opens at nine.", "Museum", "", "en", 1},
                                            {"It opens at eight.", "Lighthouse", "", "en", 1}};
  EXPECT_EQ(sentences_of_draft(drafted("When does the lighthouse open?", titled)), Texts{"It opens at eight."});
}

TEST(Extractive, ANewerFactAnswersBeforeTheOneThatItMayReplace) {
  std::vector<AnswerSource> sources = {source("Production was moved to Postgres 16 in June.", .2),
                                       source("Production uses Postgres 13.", 1), source("It rains in June.", .1)};
  EXPECT_EQ(sentences_of_draft(drafted("Which Postgres does production use?", sources)),
            Texts{"Production uses Postgres 13."});
  sources[1].newer = 0;
  EXPECT_EQ(sentences_of_draft(drafted("Which Postgres does production use?", sources)),
            (Texts{"Production was moved to Postgres 16 in June.", "Production uses Postgres 13."}));
  sources[0].score = 0;
  EXPECT_EQ(sentences_of_draft(drafted("Which Postgres does production use?", sources)).size(), 2U);
  sources[0] = source("Is production moved to Postgres 16?", .2);
  EXPECT_EQ(sentences_of_draft(drafted("Which Postgres does production use?", sources)),
            Texts{"Production uses Postgres 13."})
      << "a question is no answer";
}

TEST(Extractive, EverySentenceIsVerbatimInOrderAndOnce) {
  rc::check("extractive", [](const std::vector<std::uint8_t>& choices) {
    static const std::vector<std::string> words = {"keeper ", "basin ", "ship. ",   "The ",  "Ada! ",
                                                   "\n",      "灯塔。", "harbour ", "port? "};
    std::vector<std::string> texts(4);
    for (std::size_t i = 0; i < choices.size(); ++i) texts[i % texts.size()] += words[choices[i] % words.size()];
    std::vector<AnswerSource> sources;
    for (const std::string& text : texts) sources.push_back(source(text, 1 - .1 * static_cast<double>(sources.size())));
    const auto draft = ExtractiveDrafter().draft({"the keeper of the harbour basin 灯塔", sources, {}}, {});
    RC_ASSERT(draft.ok());
    RC_ASSERT(draft->sentences.size() <= limits::answer_sentences_max);
    std::pair<std::size_t, std::size_t> last{0, 0};
    for (const AnswerSentence& sentence : draft->sentences) {
      RC_ASSERT(sentence.citations.size() == 1U);
      const SentenceCitation& citation = sentence.citations.front();
      RC_ASSERT(piece_of(sources[citation.source].text, citation.span) == sentence.text);
      RC_ASSERT(std::pair(citation.source, citation.span.end) > last);
      last = {citation.source, citation.span.end};
    }
    RC_ASSERT(draft->coverage >= 0 && draft->coverage <= 1);
  });
}

TEST(Support, NeedsTheWordsAndTheNumbersOfTheClaim) {
  const AnswerSource ports = source("It rains. The proxy listens on port 8080. Its backup listens on port 8443.");
  const auto span = carried_by("The proxy is listening on port 8080.", ports);
  ASSERT_TRUE(span);
  EXPECT_EQ(piece_of(ports.text, *span), "The proxy listens on port 8080.");
  EXPECT_FALSE(carried_by("The proxy listens on port 9090.", ports)) << "another number";
  EXPECT_FALSE(carried_by("The lighthouse keeper lives in Porto.", ports)) << "other words";
  EXPECT_FALSE(carried_by("", ports));
}

using Cited = std::vector<std::pair<std::string, std::vector<std::size_t>>>;

TEST(ModelDraft, CitationsBelongToTheirSentence) {
  EXPECT_EQ(cited_sentences("Ada is the keeper [1][2]. The tide turns at six. [3] It rains.", 3),
            (Cited{{"Ada is the keeper.", {0, 1}}, {"The tide turns at six.", {2}}, {"It rains.", {}}}));
  EXPECT_EQ(cited_sentences("Ada [1] is the keeper [1], of [x] the basin [9].", 3),
            (Cited{{"Ada is the keeper, of [x] the basin.", {0}}}))
      << "a number without a passage is no citation";
  EXPECT_EQ(cited_sentences("[1][2][3]", 3), Cited{});
  EXPECT_EQ(cited_sentences("", 3), Cited{});
}

TEST(Confidence, SignalsFollowFromTheScores) {
  const std::vector<std::pair<std::string, double>> both = {{"lexical", 9}, {"encoder", .8}}, words = {{"lexical", 11}},
                                                    meaning = {{"encoder", .9}};
  const std::vector<RankedScore> candidates = {{.9, both}, {.5, words}, {.3, meaning}};
  const Signals signals = signals_of(candidates, 2'713);
  EXPECT_DOUBLE_EQ(signals.spread, .5);
  EXPECT_DOUBLE_EQ(signals.lexical, std::log1p(11));
  EXPECT_GT(signals_of(candidates, 2).lexical, signals_of(candidates, 200).lexical) << "few passages: low scores";
  EXPECT_DOUBLE_EQ(signals_of(candidates, 0).lexical, signals_of(candidates, 4).lexical);
  EXPECT_DOUBLE_EQ(signals_of(std::span(candidates).first(1), 2'713).spread, .9);
  EXPECT_DOUBLE_EQ(signals_of({}, 0).spread, 0);
  EXPECT_EQ(values_of({.1, .2, .3, .4}), (std::array<double, signal_count>{.1, .2, .3, .4}));
}

TEST(Confidence, RisesWithItsEvidence) {
  const Signals weak{.1, .1, 1, 1.6}, strong{1, .7, 3.4, 1.6};
  EXPECT_LT(answer_confidence(weak), .1);
  EXPECT_GT(answer_confidence(strong), .9);
  EXPECT_LT(answer_confidence(strong), 1);
  double last = 0;
  for (int i = 0; i <= 10; ++i) {
    const double now = answer_confidence({.1 * i, .3, 2.5, 1.6});
    EXPECT_GT(now, last);
    last = now;
  }
}

TEST(Statement, TextsThatSayTheSameAreEqual) {
  const auto key = [](std::string_view text) { return statement_of(text, "en").key; };
  EXPECT_EQ(key("Kim lives in Porto."), key("kim is living in Porto"));
  EXPECT_NE(key("Kim lives in Porto."), key("Kim lives in Faro."));
  EXPECT_NE(key("Production uses Postgres 13."), key("Production uses Postgres 16."));
  EXPECT_NE(key("The deploy runs on Tuesdays."), key("The deploy runs not on Tuesdays."));
  EXPECT_NE(key("The deploy runs."), key("The deploy doesn't run."));
  EXPECT_NE(key("Alice manages Bob."), key("Bob manages Alice."));
  EXPECT_EQ(statement_of("Kim lives in Porto.", "none").key, key("Kim lives in Porto.")) << "as English";
  EXPECT_TRUE(key("").empty());
}

// Statements of one corpus, a day apart in their order.
std::vector<PlacedStatement> placed(std::string_view question, const std::vector<std::string>& texts,
                                    std::vector<std::string> times = {}) {
  std::vector<DatedStatement> statements;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (times.size() == i) times.push_back("2026-01-0" + std::to_string(i + 1) + "T00:00:00Z");
    statements.push_back({statement_of(texts[i], "en"), statement_of(question, "en").words, "memory", {}});
  }
  for (std::size_t i = 0; i < texts.size(); ++i) statements[i].time = times[i];
  return newer_first(statements, statement_of(question, "en").names);
}

TEST(Statement, ANewerOnePrecedesTheOlderOneThatItMayReplace) {
  const auto found =
      placed("Which Postgres version does production use?",
             {"Production uses Postgres 13.", "Kim likes tea.", "Production was moved to Postgres 16 in June."});
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].index, 2u);
  EXPECT_EQ(found[1].index, 0u);
  EXPECT_EQ(found[1].newer, std::optional<std::size_t>(2));
  EXPECT_EQ(found[2].index, 1u);
  EXPECT_FALSE(found[0].newer || found[2].newer);
}

TEST(Statement, AStatementAboutSomethingElseStaysWhereItIs) {
  struct Case {
    std::string question;
    std::vector<std::string> texts;
    std::vector<std::string> times{};
  };
  for (const Case& one : std::vector<Case>{
           {"where does Kim live", {"Kim lives in Porto.", "Ann works in Lisbon."}},  // shares no word of the question
           {"where does Kim live", {"Kim eats vegetarian food only.", "Kim lives in Porto."}},  // shares one
           {"When are Ann's piano lessons",
            {"Ann has piano lessons.", "The piano lessons of Bob moved."}},  // another name
           {"when are ann's piano lessons", {"The piano lessons of Ann are long.", "Bob has piano lessons."}},
           {"where does Kim live",
            {"Kim lives in Porto.", "Kim lives in Faro."},
            {"2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z"}}}) {  // of the same time
    const auto found = placed(one.question, one.texts, one.times);
    EXPECT_EQ(found[0].index, 0u) << one.texts[0];
    EXPECT_FALSE(found[0].newer) << one.texts[0];
  }
}

}  // namespace
}  // namespace muniment::retrieval
