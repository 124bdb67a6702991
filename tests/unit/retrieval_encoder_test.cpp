// Tests of the tokenizer and the sentence encoder against results of the original tokenizer and the runtime's Python
// package (tests/golden/make_encoder.py) if a model is installed (scripts/fetch_models), and of the encoder's rules
// with a test model.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <thread>

#include "base/files/file.hpp"
#include "base/json/json.hpp"
#include "base/limits.hpp"
#include "retrieval/embed/encoder/sentence_encoder.hpp"
#include "support/temporary_folder.hpp"

namespace muniment::retrieval {
namespace {

using Ids = std::vector<std::int64_t>;

std::string golden(const std::string& name) {
  return read_file(MUNIMENT_GOLDEN_FOLDER "/retrieval/" + name, 1 << 20).value();
}

// The tokenizer with a test vocabulary.

constexpr const char* head = R"({"normalizer":{"type":"BertNormalizer","lowercase":true},"model":{)";

std::string tokenizer_of(const std::string& pieces) {
  return std::string(head) + R"("continuing_subword_prefix":"##","vocab":{"[UNK]":0,"[CLS]":1,"[SEP]":2,)" + pieces +
         "}}}";
}

WordPiece pieces_of(const std::string& pieces) { return WordPiece::read(tokenizer_of(pieces)).value(); }

TEST(WordPieces, TheLongestPieceWinsAndAWordThatCannotBeSpeltIsUnknown) {
  const WordPiece pieces = pieces_of(R"("un":3,"##aff":4,"##able":5,"##a":6,"una":7)");
  EXPECT_EQ(pieces.split("unaffable", 100).ids, (Ids{0}));  // the rest, "ffable", has no piece
  EXPECT_EQ(pieces.split("unable UN", 100).ids, (Ids{0, 3}));
  EXPECT_EQ(pieces_of(R"("un":3,"##aff":4,"##able":5)").split("unaffable", 100).ids, (Ids{3, 4, 5}));
}

TEST(WordPieces, WordsThatAreUnknownAreCounted) {
  const auto split = pieces_of(R"("a":3,"b":4)").split("a x b\xFF\xFE y", 100);
  EXPECT_EQ(split.ids, (Ids{3, 0, 4, 0}));
  EXPECT_EQ(std::pair(split.words, split.unknown), std::pair(std::size_t{4}, std::size_t{2}));
}

TEST(WordPieces, ALongTextIsReadUpToTheLimit) {
  const WordPiece pieces = pieces_of(R"("a":3,"##b":4)");
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += "ab ";
  const auto split = pieces.split(text, 7);
  EXPECT_EQ(split.ids, (Ids{3, 4, 3, 4, 3, 4, 3}));
  EXPECT_EQ(split.begins_word, (std::vector<bool>{true, false, true, false, true, false, true}));
  EXPECT_EQ(pieces.split(std::string(10'000'000, 'a'), 7).ids, Ids{0});
  EXPECT_EQ(pieces_of(R"("a":3,",":4)").split("a,a", 1).ids, Ids{3});  // punctuation ends a word and is a word itself
}

TEST(WordPieces, NamesOfSpecialTokensInATextAreText) {
  EXPECT_EQ(pieces_of(R"("[":3,"]":4,"sep":5)").split("[SEP]", 100).ids, (Ids{3, 5, 4}));
  EXPECT_EQ(pieces_of(R"("ab":3)").split(std::string_view("a\0b", 3), 100).ids, Ids{3});
}

TEST(WordPieces, AFileThatIsNoTokenizerIsCorrupt) {
  for (const std::string& text : {std::string(), std::string("{}"), std::string("[]"), std::string(head) + "}}",
                                  std::string(head) + R"("continuing_subword_prefix":"##","vocab":{"a":1}}})",
                                  tokenizer_of(R"("a":"b")"), tokenizer_of(R"("a":-1)")}) {
    const auto pieces = WordPiece::read(text);
    ASSERT_FALSE(pieces) << text;
    EXPECT_EQ(pieces.error().code, Errc::corrupt);
  }
}

// The encoder with a test model.

// Computes the vector of [CLS] from the sum of the ids and their number. An id in `not_finite` gives NaN.
class CountingModel : public TokenModel {
 public:
  explicit CountingModel(std::int64_t not_finite) : not_finite_(not_finite) {}
  std::size_t dimension() const override { return 2; }
  Result<std::vector<float>> run(std::span<const std::int64_t> ids) const override {
    if (ids.size() > 256) return Error(Errc::unavailable, "more than 256 tokens");
    std::vector<float> vectors(ids.size() * 2);
    for (const std::int64_t id : ids) {
      vectors[0] += static_cast<float>(id);
      if (id == not_finite_) vectors[1] = std::numeric_limits<float>::quiet_NaN();
    }
    vectors[1] += static_cast<float>(ids.size());
    return vectors;
  }

 private:
  const std::int64_t not_finite_;
};

SentenceEncoder counting_encoder() {
  const ModelSpec spec{"counting", 2, "aa", "bb", "q "};
  return {spec, pieces_of(R"("a":10,"##b":11,"q":20,"nan":30)"), std::make_unique<CountingModel>(30), nullptr};
}

// Returns the unit vector that CountingModel's vector becomes.
std::vector<float> direction(double sum, double count) {
  const double length = std::hypot(sum, count);
  return {static_cast<float>(sum / length), static_cast<float>(count / length)};
}

Vectors parts_of(SentenceEncoder& encoder, std::string_view text) {
  return encoder.embed_parts({&text, 1}).value().at(0);
}

TEST(Encoder, TheVectorOfTheFirstTokenIsScaled) {
  SentenceEncoder encoder = counting_encoder();
  EXPECT_EQ(parts_of(encoder, "ab"), Vectors{direction(1 + 10 + 11 + 2, 4)});
  const std::string_view query = "a";
  EXPECT_EQ(encoder.embed({&query, 1}, TextKind::query).value(), Vectors{direction(1 + 20 + 10 + 2, 4)});  // "q a"
  EXPECT_EQ(encoder.identity().text(), "encoder/1-counting/2/aa");
}

TEST(Encoder, ALongTextHasAVectorForEachPart) {
  SentenceEncoder encoder = counting_encoder();
  std::string text;
  for (int i = 0; i < 255; ++i) text += "ab ";  // 510 pieces: three parts of 170
  const std::vector<float> part = direction(3 + 85 * 21, 172);
  EXPECT_EQ(parts_of(encoder, text), (Vectors{part, part, part}));
  EXPECT_EQ(parts_of(encoder, text.substr(0, 3 * 127)).size(), 1U);  // 254 pieces
  // The text is cut before a word: 256 pieces give parts of 127 and 129, not 128, which would split a word.
  const Vectors two = parts_of(encoder, "a " + text.substr(0, 3 * 127) + "a");
  ASSERT_EQ(two.size(), 2U);
  EXPECT_EQ(two[0], direction(3 + 10 + 63 * 21, 129));
  EXPECT_EQ(two[1], direction(3 + 64 * 21 + 10, 131));
}

TEST(Encoder, APassageOfManyTokensOfOneWordHasABoundedNumberOfVectors) {
  SentenceEncoder encoder = counting_encoder();
  std::string text = "a";
  for (int i = 0; i < 100'000; ++i) text += " a";
  EXPECT_EQ(parts_of(encoder, text).size(), limits::encoder_parts_max);
  EXPECT_EQ(parts_of(encoder, std::string(100'000, 'a')), (Vectors{{0, 0}}));  // one unknown word
}

TEST(Encoder, ATextWithoutReadableWordsHasNoFeatures) {
  SentenceEncoder encoder = counting_encoder();
  for (const std::string_view text : {"", " \n", "x", "a x", "\xFF"}) {
    EXPECT_EQ(parts_of(encoder, text), (Vectors{{0, 0}})) << text;
    EXPECT_EQ(encoder.embed({&text, 1}, TextKind::query).value(), (Vectors{{0, 0}})) << text;
  }
}

TEST(WordPieces, LettersOfOtherScriptsAreCounted) {
  const WordPiece::Pieces pieces = pieces_of(R"("a":3)").split("Aß9, ﻿ж 字 हि", 100);
  EXPECT_EQ(pieces.letters, 5U);
  EXPECT_EQ(pieces.latin, 2U);
}

TEST(Encoder, ANumberThatIsNotFiniteLeavesAPassageWithoutAVectorAndAQueryWithoutTheLane) {
  SentenceEncoder encoder = counting_encoder();
  const std::string_view texts[] = {"a", "nan"};
  const auto parts = encoder.embed_parts(texts).value();
  EXPECT_EQ(parts[0], Vectors{direction(13, 3)});
  EXPECT_EQ(parts[1], (Vectors{{0, 0}}));
  const auto query = encoder.embed({&texts[1], 1}, TextKind::query);
  ASSERT_FALSE(query);
  EXPECT_EQ(query.error().code, Errc::unavailable);
}

// The runtime.

TEST(Runtime, AFileThatIsMissingOrNoRuntimeIsRefused) {
  EXPECT_EQ(OnnxRuntime::load("/nonexistent/libonnxruntime.so").error().code, Errc::not_found);
  const test::TemporaryFolder folder;
  const std::string text = folder.path() + "/text.so";
  ASSERT_TRUE(write_file_durably(text, "no library"));
  EXPECT_EQ(OnnxRuntime::load(text).error().code, Errc::unavailable);
  const auto other = OnnxRuntime::load("libm.so.6");  // a path is required: library folders are not searched
  EXPECT_EQ(other.error().code, Errc::not_found);
}

TEST(Runtime, ARuntimeOfAnotherVersionIsRefused) {
  const auto other = OnnxRuntime::load(OTHER_RUNTIME);
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, Errc::unavailable);
  EXPECT_NE(other.error().message.find("its version is 1.20.1, not 1.32.0"), std::string::npos)
      << other.error().message;
}

// The installed model.

class InstalledEncoder : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto opened = open_encoder(default_models_folder());
    if (opened) encoder_ = std::move(opened).value();
  }
  static void TearDownTestSuite() { encoder_.reset(); }
  void SetUp() override {
    if (!encoder_) GTEST_SKIP() << "no model is in " << default_models_folder() << ": run scripts/fetch_models";
  }
  static std::vector<float> vector_of(std::string_view text, TextKind kind = TextKind::document) {
    return encoder_->embed({&text, 1}, kind).value().at(0);
  }
  static double cosine(const std::vector<float>& a, const std::vector<float>& b) {
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
    return sum;
  }
  static void copy_installed(const test::TemporaryFolder& copy) {
    std::filesystem::copy(default_models_folder(), copy.path(),
                          std::filesystem::copy_options::recursive | std::filesystem::copy_options::overwrite_existing);
  }

  static std::unique_ptr<Embedder> encoder_;
};
std::unique_ptr<Embedder> InstalledEncoder::encoder_;

TEST_F(InstalledEncoder, ItsPiecesAreThoseOfTheOriginalTokenizer) {
  const ModelFiles files = read_model(default_models_folder(), default_model()).value();
  const WordPiece pieces = WordPiece::read(files.tokenizer).value();
  const std::string text = golden("wordpiece.json");
  const json::Document document = json::parse(text).value();
  std::size_t count = 0;
  for (const json::Value one : document.root()) {
    Ids expected;
    for (const json::Value id : one["ids"]) expected.push_back(id.as_int().value());
    EXPECT_EQ(pieces.split(one["text"].as_string().value(), 10'000).ids, expected) << one["text"].source();
    ++count;
  }
  EXPECT_GT(count, 40U);
}

// Int8 instructions round differently on other processors, so that only the direction is compared.
TEST_F(InstalledEncoder, ItsVectorsAreThoseOfTheReference) {
  const std::string text = golden("encoder.json");
  const json::Document document = json::parse(text).value();
  std::size_t unread = 0;
  for (const json::Value one : document.root()) {
    std::vector<float> expected;
    for (const json::Value x : one["vector"]) expected.push_back(static_cast<float>(x.as_double().value()));
    const bool query = one["kind"].string_or("") == "query";
    const auto vector = vector_of(one["text"].as_string().value(), query ? TextKind::query : TextKind::document);
    ASSERT_EQ(vector.size(), expected.size());
    if (vector == std::vector<float>(vector.size(), 0)) {
      ++unread;
      continue;
    }
    EXPECT_GT(cosine(vector, expected), 0.99) << one["text"].source();
  }
  EXPECT_EQ(unread, 1U) << "only the Japanese text is not read";
}

TEST_F(InstalledEncoder, PassagesWithTheSameMeaningAreNear) {
  const std::vector<float> query = vector_of("How old are you?", TextKind::query);
  EXPECT_GT(cosine(query, vector_of("My age is twenty years.")),
            cosine(query, vector_of("The mountain railway was built in 1912.")) + 0.1);
}

TEST_F(InstalledEncoder, BatchesAndThreadsChangeNothing) {
  std::vector<std::string> texts = {"", "one", "How old are you?", std::string(5'000, 'w') + " tail"};
  for (int i = 0; i < 20; ++i) texts.push_back("a sentence of some words, number " + std::to_string(i));
  const std::vector<std::string_view> views(texts.begin(), texts.end());
  const Vectors together = encoder_->embed(views, TextKind::document).value();
  std::vector<std::thread> threads;
  std::vector<std::size_t> equal(2);
  for (std::size_t t = 0; t < equal.size(); ++t) {
    threads.emplace_back([&, t] {
      for (std::size_t i = 0; i < views.size(); ++i) equal[t] += vector_of(views[i]) == together[i] ? 1U : 0U;
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::size_t count : equal) EXPECT_EQ(count, texts.size());
}

TEST_F(InstalledEncoder, FilesThatAreDamagedOrMissingAreRefused) {
  const test::TemporaryFolder copy;
  copy_installed(copy);
  const std::string model = copy.path() + "/bge-small-en-v1.5/model.onnx";
  ASSERT_TRUE(open_encoder(copy.path()));
  const std::string bytes = read_file(model, limits::model_file_bytes_max).value();
  const auto refused = [&](const std::string& content) {
    EXPECT_TRUE(write_file_durably(model, content));
    const auto opened = open_encoder(copy.path());
    EXPECT_FALSE(opened);
    return opened ? Errc::conflict : opened.error().code;
  };
  EXPECT_EQ(refused(bytes.substr(0, bytes.size() / 2)), Errc::corrupt);
  std::string flipped = bytes;
  flipped[20'000'000] = static_cast<char>(flipped[20'000'000] ^ 1);
  EXPECT_EQ(refused(flipped), Errc::corrupt);
  std::filesystem::remove(model);
  EXPECT_EQ(open_encoder(copy.path()).error().message, "bge-small-en-v1.5 is not installed");
  ASSERT_TRUE(write_file_durably(model, bytes));
  std::filesystem::remove(runtime_library(copy.path()));
  EXPECT_EQ(open_encoder(copy.path()).error().message, "ONNX Runtime 1.32.0 is not installed");
}

TEST_F(InstalledEncoder, AModelThatIsReplacedWhileItIsAskedChangesNothing) {
  const test::TemporaryFolder copy;
  copy_installed(copy);
  const auto opened = open_encoder(copy.path()).value();
  ASSERT_TRUE(write_file_durably(copy.path() + "/bge-small-en-v1.5/model.onnx", "another model"));
  const std::string_view text = "How old are you?";
  EXPECT_EQ(opened->embed({&text, 1}, TextKind::document).value().at(0), vector_of(text));
}

// Builds a model in ONNX's format (protocol buffers): y = Identity(x), both int64 tensors with one dimension of any
// size.
std::string field(int number, const std::string& bytes) {
  return std::string(1, static_cast<char>(number << 3 | 2)) + static_cast<char>(bytes.size()) + bytes;
}
std::string number_field(int number, int value) {
  return std::string(1, static_cast<char>(number << 3)) + static_cast<char>(value);
}
std::string identity_model() {
  const auto value = [](const std::string& name) {
    const std::string shape = field(2, field(1, number_field(1, 2)));
    return field(1, name) + field(2, field(1, number_field(1, 7) + shape));
  };
  const std::string node = field(1, field(1, "x") + field(2, "y") + field(4, "Identity"));
  const std::string graph = node + field(2, "g") + field(11, value("x")) + field(12, value("y"));
  return number_field(1, 8) + field(7, graph) + field(8, number_field(2, 13));
}

TEST_F(InstalledEncoder, AModelOfAnotherShapeIsRefused) {
  const auto runtime = OnnxRuntime::load(runtime_library(default_models_folder())).value();
  const auto message = [&](std::string_view bytes, std::size_t dimension) {
    const auto opened = runtime->open(bytes, dimension);
    EXPECT_FALSE(opened);
    if (opened) return std::string();
    EXPECT_EQ(opened.error().code, Errc::corrupt) << opened.error().message;
    return opened.error().message;
  };
  EXPECT_EQ(message(identity_model(), 384), "the model does not have the inputs of a sentence encoder");
  const ModelFiles files = read_model(default_models_folder(), default_model()).value();
  EXPECT_EQ(message(files.model, 512), "the model's output is not 512 numbers for each token");
  EXPECT_TRUE(message("no model", 384).starts_with("ONNX Runtime: "));
  EXPECT_TRUE(message("", 384).starts_with("ONNX Runtime: "));
}

}  // namespace
}  // namespace muniment::retrieval
