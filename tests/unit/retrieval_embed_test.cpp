// Tests of the embedders that need no model: hash and lsa.
#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "base/crypto/sha256.hpp"
#include "retrieval/embed/embedder.hpp"
#include "retrieval/embed/lsa_model.hpp"

namespace muniment::retrieval {
namespace {

using Texts = std::vector<std::string_view>;

Vectors embedded(Embedder& embedder, const Texts& texts, TextKind kind = TextKind::document) {
  auto vectors = embedder.embed(texts, kind);
  EXPECT_TRUE(vectors) << vectors.error().message;
  return std::move(vectors).value();
}

double cosine(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return sum;
}

double similarity(Embedder& embedder, std::string_view a, std::string_view b) {
  const Vectors vectors = embedded(embedder, {a, b});
  return cosine(vectors[0], vectors[1]);
}

// Two subjects whose only common word is "engine".
const Texts& corpus() {
  static const Texts texts = {
      "The pilot lands the aircraft on the runway",
      "An aircraft needs a long runway to land",
      "The pilot checks the engine before the flight",
      "A flight engineer watches the engine of the aircraft",
      "Wing flaps slow the aircraft before the runway",
      "The pilot and the flight engineer board",
      "The query planner chooses an index scan",
      "A database index makes a query fast",
      "The storage engine writes pages to the table",
      "Rows of a table live in pages of the database",
      "A planner estimates rows of a query",
      "The storage engine keeps the index of a table",
  };
  return texts;
}

LsaModel trained(const Texts& texts, std::size_t dimension = 128, std::uint64_t seed = 1) {
  auto model = train_lsa(texts, {dimension, seed});
  EXPECT_TRUE(model) << model.error().message;
  return std::move(model).value();
}

std::unique_ptr<Embedder> opened(std::string_view bytes) {
  auto embedder = open_lsa(bytes);
  EXPECT_TRUE(embedder) << embedder.error().message;
  return std::move(embedder).value();
}

TEST(Identity, ItsTextIsNameVersionDimensionAndHash) {
  EXPECT_EQ((EmbedderIdentity{"lsa", "1", 128, "0123456789abcdef0123"}).text(), "lsa/1/128/0123456789abcdef");
}

class Promises : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (GetParam() == std::string_view("hash")) {
      embedder_ = make_hash_embedder();
    } else {
      embedder_ = opened(trained(corpus(), 6).bytes);
    }
  }
  std::unique_ptr<Embedder> embedder_;
};
INSTANTIATE_TEST_SUITE_P(Embedders, Promises, testing::Values("hash", "lsa"));

TEST_P(Promises, AVectorHasTheIdentitysDimensionAndUnitLength) {
  EXPECT_EQ(embedder_->identity().name, GetParam());
  for (const auto& vector : embedded(*embedder_, corpus())) {
    EXPECT_EQ(vector.size(), embedder_->identity().dimension);
    EXPECT_NEAR(cosine(vector, vector), 1, 1e-6);
  }
}

TEST_P(Promises, ATextWithoutWordsIsTheZeroVector) {
  for (const std::string_view text : {"", "   ", "\n.,;!", "\xFF\xFE"}) {
    EXPECT_EQ(embedded(*embedder_, {text})[0], std::vector<float>(embedder_->identity().dimension));
  }
}

TEST_P(Promises, BatchesChangeNothing) {
  const Vectors together = embedded(*embedder_, corpus());
  for (std::size_t i = 0; i < corpus().size(); ++i) EXPECT_EQ(embedded(*embedder_, {corpus()[i]})[0], together[i]);
  EXPECT_TRUE(embedded(*embedder_, {}).empty());
  EXPECT_EQ(embedded(*embedder_, corpus(), TextKind::query), together);
}

TEST_P(Promises, TheOrderOfWordsChangesNothing) {
  EXPECT_EQ(embedded(*embedder_, {"pilot engine aircraft"}), embedded(*embedder_, {"aircraft pilot engine"}));
}

TEST_P(Promises, ThreadsGetTheSameVectors) {
  const Vectors expected = embedded(*embedder_, corpus());
  std::vector<std::thread> threads;
  std::vector<int> equal(4);
  for (std::size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) equal[t] += embedder_->embed(corpus(), TextKind::query).value() == expected ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const int count : equal) EXPECT_EQ(count, 50);
}

// A vector's identity is its embedder's: a computed vector may change only together with the embedder's version.
TEST(Goldens, VectorsAndModelsAreWhatTheyWere) {
  const auto hash_of = [](const std::vector<float>& vector) {
    return to_hex(sha256(std::string_view(reinterpret_cast<const char*>(vector.data()), vector.size() * sizeof(float))))
        .substr(0, 16);
  };
  const LsaModel model = trained(corpus(), 6);
  EXPECT_EQ(hash_of(embedded(*make_hash_embedder(), {"readConfigFile: Crème brûlée, 東京都, the the pilots"})[0]),
            "83e1be8b4b064a8c");
  EXPECT_EQ(to_hex(sha256(model.bytes)).substr(0, 16), "dd4688b3727e9bc0");
  EXPECT_EQ(hash_of(embedded(*opened(model.bytes), {"The pilots land; a database engine's tables"})[0]),
            "9eb25022cdaa86ff");
}

TEST(HashEmbedder, ATypoStaysNear) {
  const auto hash = make_hash_embedder();
  EXPECT_GT(similarity(*hash, "configuration", "confguration"), 0.4);
  EXPECT_GT(similarity(*hash, "retrieval", "retreival"), 0.2);
  EXPECT_LT(similarity(*hash, "configuration", "aerodynamics"), 0.2);
}

TEST(HashEmbedder, AnIdentifierIsNearItsWordsAndItsOtherSpelling) {
  const auto hash = make_hash_embedder();
  EXPECT_GT(similarity(*hash, "readConfigFile", "read_config_file"), 0.8);
  EXPECT_GT(similarity(*hash, "read_config_file", "read config file"), 0.8);
  EXPECT_GT(similarity(*hash, "src/base/http.cpp", "http.cpp"), 0.4);
}

TEST(HashEmbedder, CaseAndAccentsDoNotMatter) {
  const auto hash = make_hash_embedder();
  EXPECT_EQ(embedded(*hash, {"Déjà VU"}), embedded(*hash, {"deja vu"}));
}

TEST(HashEmbedder, ScriptsWithoutSpacesHaveVectors) {
  const auto hash = make_hash_embedder();
  EXPECT_GT(similarity(*hash, "東京都の天気", "東京の天気"), 0.5);
  EXPECT_LT(similarity(*hash, "東京都の天気", "量子力学入門"), 0.2);
}

TEST(Lsa, TheSameTextsGiveTheSameBytes) {
  const LsaModel model = trained(corpus());
  EXPECT_EQ(trained(corpus()).bytes, model.bytes);
  EXPECT_EQ(trained(corpus()).vocabulary_hash, model.vocabulary_hash);
  EXPECT_NE(trained(corpus(), 128, 2).bytes, model.bytes);  // the seed is stored in the model
  EXPECT_EQ(opened(model.bytes)->identity().hash, to_hex(sha256(model.bytes)));
}

TEST(Lsa, WordsThatKeepTheSameCompanyAreNear) {
  const auto lsa = opened(trained(corpus(), 2).bytes);
  EXPECT_GT(similarity(*lsa, "pilot", "runway"), 0.9);  // one subject, although "pilot" and "wing" never occur together
  EXPECT_GT(similarity(*lsa, "pilot", "wing"), 0.9);
  EXPECT_LT(similarity(*lsa, "pilot", "database"), 0.2);
  EXPECT_GT(similarity(*lsa, "query planner", "table"), 0.9);
}

TEST(Lsa, PluralsMeetTheirSingular) {
  const auto lsa = opened(trained(corpus(), 6).bytes);
  for (const auto& [one, many] :
       {std::pair("pilot", "pilots"), {"query", "queries"}, {"index", "indexes"}, {"Pages", "page"}}) {
    EXPECT_NEAR(similarity(*lsa, one, many), 1, 1e-6) << one;
  }
}

TEST(Lsa, ASmallCorpusHasFewerDimensions) {
  const auto lsa = opened(trained({"one aircraft", "two databases"}).bytes);
  EXPECT_EQ(lsa->identity().dimension, 2U);
  EXPECT_NEAR(similarity(*lsa, "aircraft", "aircraft one"), 1, 0.02);
  EXPECT_NEAR(similarity(*lsa, "aircraft", "databases"), 0, 0.02);
}

TEST(Lsa, WhatHasNoWordsCannotBeTrainedOn) {
  for (const Texts& texts : {Texts{}, Texts{"", "..."}, Texts{"the of and"}}) {
    const auto model = train_lsa(texts, {});
    ASSERT_FALSE(model);
    EXPECT_EQ(model.error().code, Errc::invalid_argument);
  }
  EXPECT_FALSE(train_lsa(corpus(), {0, 1}));
  EXPECT_FALSE(train_lsa(corpus(), {1'025, 1}));
}

TEST(Lsa, WordsThatTheModelDoesNotKnowAreTheZeroVector) {
  const auto lsa = opened(trained(corpus()).bytes);
  EXPECT_EQ(embedded(*lsa, {"xylophone"})[0], std::vector<float>(lsa->identity().dimension));
}

// Returns the bytes with a correct checksum, so that the other defects must be detected.
std::string resealed(std::string bytes) {
  bytes.resize(bytes.size() - 32);
  return bytes += std::string(view(sha256(bytes)));
}

TEST(LsaModelBytes, TheyReadBackAsTheyWereWritten) {
  const std::string bytes = trained(corpus(), 5).bytes;
  const auto model = decode_lsa(bytes);
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ(encode_lsa(*model), bytes);
  EXPECT_EQ(model->dimension, 5U);
  EXPECT_EQ(model->documents, corpus().size());
}

TEST(LsaModelBytes, EveryFlippedByteIsNoticed) {
  const std::string bytes = trained({"some aircraft", "some database"}, 2).bytes;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    std::string other = bytes;
    other[i] = static_cast<char>(other[i] ^ 0x40);
    const auto opened = open_lsa(other);
    ASSERT_FALSE(opened) << i;
    EXPECT_EQ(opened.error().code, Errc::corrupt);
  }
}

TEST(LsaModelBytes, EveryTruncationIsNoticed) {
  const std::string bytes = trained({"some aircraft", "some database"}, 2).bytes;
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(open_lsa(std::string_view(bytes).substr(0, size))) << size;
  for (std::size_t size = 48; size < bytes.size(); ++size)
    EXPECT_FALSE(open_lsa(resealed(bytes.substr(0, size)))) << size;
  EXPECT_FALSE(open_lsa(bytes + "x"));
}

TEST(LsaModelBytes, WhatAWriterWouldNeverWriteIsCorrupt) {
  const std::string good = encode_lsa({2, 1, 1, {"ab", "cd"}, {1, 1}, {1, 2, 3, 4}});
  ASSERT_TRUE(open_lsa(good));
  const auto refused = [](const LsaContents& model) {
    const auto opened = open_lsa(encode_lsa(model));
    return !opened && opened.error().code == Errc::corrupt;
  };
  EXPECT_TRUE(refused({2, 1, 1, {"cd", "ab"}, {1, 1}, {1, 2, 3, 4}}));          // not sorted
  EXPECT_TRUE(refused({2, 1, 1, {"ab", "ab"}, {1, 1}, {1, 2, 3, 4}}));          // a duplicate
  EXPECT_TRUE(refused({2, 1, 1, {"", "ab"}, {1, 1}, {1, 2, 3, 4}}));            // an empty term
  EXPECT_TRUE(refused({2, 1, 1, {"\xFF", "\xFF\xFF"}, {1, 1}, {1, 2, 3, 4}}));  // not UTF-8
  EXPECT_TRUE(refused({2, 1, 1, {"ab", "cd"}, {1, -1}, {1, 2, 3, 4}}));         // a negative scale
  EXPECT_TRUE(refused({2, 1, 1, {"ab", "cd"}, {1, -0.0F}, {1, 2, 3, 4}}));
  EXPECT_TRUE(refused({2, 1, 1, {"ab", "cd"}, {1, std::nanf("")}, {1, 2, 3, 4}}));
  EXPECT_TRUE(refused({2, 1, 1, {"ab", "cd"}, {1, HUGE_VALF}, {1, 2, 3, 4}}));
  EXPECT_TRUE(refused({2, 1, 1, {"ab", "cd"}, {1, 1}, {1, 2, -128, 4}}));
  EXPECT_TRUE(refused({0, 1, 1, {"ab"}, {1}, {}}));  // no dimensions
  EXPECT_TRUE(refused({2, 1, 1, {}, {}, {}}));       // no terms
  // A header that announces 4 billion rows allocates no memory.
  std::string huge = good;
  huge.replace(15, 8, std::string("\x00\x00\x04\x00\xFF\xFF\xFF\xFF", 8));
  EXPECT_FALSE(open_lsa(resealed(huge)));
}

}  // namespace
}  // namespace muniment::retrieval
