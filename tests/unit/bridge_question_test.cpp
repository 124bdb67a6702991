// Tests of the questions that may leave this machine: what becomes of honest questions, and what is refused.
#include "bridge/question.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <random>
#include <set>
#include <string>

#include "base/limits.hpp"
#include "bridge/question/general_language.hpp"
#include "bridge/question/templates.hpp"
#include "support/question_canaries.hpp"

namespace muniment::bridge {
namespace {

// The corpora hold these words.
CorpusFrequency corpora_with(std::set<std::string, std::less<>> words) {
  return [words = std::move(words)](std::string_view word) -> Result<std::size_t> {
    return std::size_t{words.count(word) > 0 ? 3U : 0U};
  };
}

std::variant<Question, QuestionRefusal> ask(std::string_view query, PrivateTerms terms = PrivateTerms::refuse,
                                            const CorpusFrequency& corpora = corpora_with({"falcon", "apple",
                                                                                           "mutex"})) {
  static Sanitiser sanitiser(Scope::outbound);
  return make_question(query, sanitiser, corpora, terms);
}

std::string sent(std::string_view query, PrivateTerms terms = PrivateTerms::refuse) {
  const auto made = ask(query, terms);
  if (const auto* refusal = std::get_if<QuestionRefusal>(&made)) return "refused: " + refusal->detail;
  return std::get<Question>(made).text;
}

TEST(Question, IsTheTemplateWithTermsOfGeneralLanguage) {
  EXPECT_EQ(sent("What's the difference between tcp and UDP?"), "What are the differences between TCP and UDP?");
  EXPECT_EQ(sent("please tell me what a mutex is"), "refused: form");
  EXPECT_EQ(sent("can you explain idempotency?"), "What is meant by idempotency?");
  EXPECT_EQ(sent("How do I sort a list in Python"), "How does one sort a list in Python?");
  EXPECT_EQ(sent("why do leaves change colour"), "Why do leaves change colour?");
  EXPECT_EQ(sent("Why doesn\u2019t ice sink?"), "Why does not ice sink?");
  EXPECT_EQ(sent("list of prime numbers"), "What are the kinds and examples of prime numbers?");
  EXPECT_EQ(sent("history of the Roman Empire"), "What is the history of the Roman Empire?");
  EXPECT_EQ(sent("how is compound interest calculated"), "How is compound interest calculated?");
  EXPECT_EQ(std::get<Question>(ask("best practices for backups")).template_id, "best-practice");
}

TEST(Question, RefusesWhatIsNotGeneral) {
  for (const auto& [query, detail] : std::initializer_list<std::pair<std::string, std::string>>{
           {"", "empty"},
           {" ?! ", "empty"},
           {"What is the password ghp_a8Kd02mXq7Zt4Lw9Rb1Vc6Ny3Ej5Hs0Pu2Fi?", "secret"},
           {"ghp_a8Kd02mXq7Zt4Lw9Rb1Vc6Ny3Ej5Hs0Pu2Fi", "secret"},
           {"Who is ann.lee@example.com?", "private"},
           {"What is in /srv/ledger/data.db?", "private"},
           {"why does 10.20.30.40 not answer", "private"},
           {"how do I run rm -rf build", "unknown_term"},
           {"what does git rebase --onto do", "unknown_term"},
           {"what is user_id", "code"},
           {"what is the meaning of x = y + 1", "code"},
           {"what is HandlerFactory", "unknown_term"},
           {"what is kqzrt", "unknown_term"},
           {"who is Frank", "unknown_term"},
           {"what is the salary of grace", "unknown_term"},
           {"what is Northern Light", "name"},
           {"how does the Harbor work", "name"},
           {"what is falcon", "corpus"},
           {"how do I eat an apple", "corpus"},
           {"what is the status of our order", "own"},
           {"why is my computer slow", "own"},
           {"how does this work", "own"},
           {"what is four one five five two six seven", "number"},
           {"Was ist ein Mutex?", "unknown_term"},
           {"¿Qué es la inflación?", "language"},
           {"какова столица", "language"},
           {"I work at a bank. What is a mutex?", "form"},
           {"the system is slow", "form"},
           {std::string(limits::question_bytes_max, 'a'), "unknown_term"},
           {std::string(limits::question_bytes_max + 1, 'a'), "too_long"}}) {
    EXPECT_EQ(sent(query), "refused: " + detail) << query;
  }
}

TEST(Question, HasLimitsOnItsWords) {
  std::string words = "what is";
  for (std::size_t i = 0; i < limits::question_slot_terms_max; ++i) words += " water";
  EXPECT_TRUE(sent(words).starts_with("What is water"));
  EXPECT_EQ(sent(words + " water"), "refused: too_long");
  std::string longer = "what is";
  for (std::size_t i = 2; i < limits::question_words_max; ++i) longer += " a";
  EXPECT_EQ(sent(longer), "refused: too_long");
  EXPECT_NE(std::get<QuestionRefusal>(ask(longer)).message, std::get<QuestionRefusal>(ask(longer + " a")).message);
}

TEST(Question, ARareWordIsRefusedIfTheCorporaCannotBeSearched) {
  const auto made = ask("what is a falcon", PrivateTerms::refuse,
                        [](std::string_view) -> Result<std::size_t> { return Error(Errc::unavailable, "no index"); });
  EXPECT_EQ(std::get<QuestionRefusal>(made).detail, "corpus_unknown");
}

TEST(Question, ReplacesPrivateTermsBySettingButNeverSecrets) {
  EXPECT_EQ(sent("why does a backup of /srv/ledger/data.db fail", PrivateTerms::replace),
            "Why does a backup of a file fail?");
  EXPECT_EQ(sent("how do I connect kqzrt to a printer", PrivateTerms::replace),
            "How does one connect something to a printer?");
  EXPECT_EQ(sent("what is kqzrt", PrivateTerms::replace), "refused: private");
  EXPECT_EQ(sent("how do kqzrt mqzrt and pqzrt work with a printer", PrivateTerms::replace), "refused: unknown_term");
  EXPECT_EQ(sent("why does ghp_a8Kd02mXq7Zt4Lw9Rb1Vc6Ny3Ej5Hs0Pu2Fi fail", PrivateTerms::replace), "refused: secret");
  const auto made = ask("why does a backup of /srv/ledger/data.db fail", PrivateTerms::replace);
  EXPECT_EQ(std::get<Question>(made).rules, (std::vector<std::string>{"path-unix", "path-absolute"}));
}

TEST(Question, ARefusalHoldsNoPartOfTheQuestion) {
  for (const std::string query : {"what is kqzrtmark", "kqzrtmark", "who is kqzrtmark@example.com", "Kqzrtmark!"}) {
    const auto made = ask(query);
    EXPECT_EQ(std::get<QuestionRefusal>(made).message.find("qzrtmark"), std::string::npos) << query;
  }
}

std::vector<std::string> questions(const std::string& name) {
  std::vector<std::string> lines;
  std::ifstream file(MUNIMENT_QUESTIONS "/" + name);
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

// `scripts/bench sanitiser canaries` tries 10,000.
TEST(Question, NoCanaryLeaves) {
  const auto ordinary = questions("general.txt");
  ASSERT_GE(ordinary.size(), 200U);
  std::mt19937_64 random(1);
  std::set<std::string> kinds;
  for (int i = 0; i < 600; ++i) {
    const testing::CanaryQuestion canary = testing::make_canary(random, ordinary);
    kinds.insert(canary.kind);
    for (const PrivateTerms terms : {PrivateTerms::refuse, PrivateTerms::replace}) {
      const auto made = ask(canary.query, terms, corpora_with({canary.words.begin(), canary.words.end()}));
      if (const auto* question = std::get_if<Question>(&made)) {
        EXPECT_FALSE(testing::leaks(canary, question->text)) << canary.query << " -> " << question->text;
      }
    }
  }
  EXPECT_GE(kinds.size(), 30U);
}

// A check that finds nothing would pass the test above.
TEST(Question, ALeakIsSeen) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 200; ++i) {
    const testing::CanaryQuestion canary = testing::make_canary(random, {"what is water"});
    EXPECT_TRUE(canary.how != "none" || testing::leaks(canary, canary.query)) << canary.query;
  }
}

TEST(Question, MostHonestQuestionsLeave) {
  for (const std::string name : {"general.txt", "held_out.txt"}) {
    const auto all = questions(name);
    const auto leaving = std::count_if(all.begin(), all.end(),
                                       [](const std::string& query) { return !sent(query).starts_with("refused"); });
    EXPECT_GE(leaving * 10, static_cast<std::ptrdiff_t>(all.size()) * 8) << name << ": " << leaving;
  }
}

TEST(Question, EveryTemplateCanBeAsked) {
  for (const QuestionTemplate& one : question_templates()) {
    EXPECT_FALSE(one.id.empty());
    EXPECT_NE(one.form.find("{x}"), std::string_view::npos) << one.form;
    EXPECT_EQ(one.form.find("{y}") == std::string_view::npos, one.question.find("{y}") == std::string_view::npos);
    EXPECT_EQ(one.form.find('=') == std::string_view::npos, one.question.find("{=}") == std::string_view::npos);
    EXPECT_NE(one.question.find("{x}"), std::string_view::npos) << one.question;
  }
}

TEST(GeneralLanguage, KnowsWordsTheirFormsAndTerms) {
  EXPECT_EQ(general_word("water")->rank, WordClass::common);
  EXPECT_EQ(general_word("carried")->rank, WordClass::common);
  EXPECT_EQ(general_word("falcon")->rank, WordClass::rare);
  EXPECT_EQ(general_word("falcons")->rank, WordClass::rare);
  EXPECT_EQ(general_word("postgresql")->text, "PostgreSQL");
  EXPECT_EQ(general_word("REST")->rank, WordClass::term);
  EXPECT_EQ(general_word("rest")->rank, WordClass::common);
  EXPECT_EQ(general_word("falcon-water")->rank, WordClass::rare);
  for (const std::string_view word : {"frank", "grace", "", "-", "s", "ing", "kqzrt", "water-", "-water", "=common"})
    EXPECT_FALSE(general_word(word).has_value()) << word;
}

}  // namespace
}  // namespace muniment::bridge
