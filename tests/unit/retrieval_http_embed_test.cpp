// Tests of embedding servers: the requests to them, and all kinds of invalid answers.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <future>

#include "base/json/json.hpp"
#include "retrieval/embed/embedder.hpp"
#include "retrieval/embed/http_answers.hpp"
#include "retrieval/embed/http_reranker.hpp"
#include "support/canned_server.hpp"
#include "support/temporary_folder.hpp"

namespace muniment::retrieval {
namespace {

using test::CannedServer;
using test::http_answer;
using test::SeenRequest;

// Returns a vector of three numbers that identifies the text: its length, and its first and last byte.
std::string vector_for(const std::string& text) {
  return "[" + std::to_string(text.size()) + "," + std::to_string(static_cast<int>(text.front())) + "," +
         std::to_string(static_cast<int>(text.back())) + "]";
}

std::vector<std::string> texts_of(const SeenRequest& request) {
  const auto document = json::parse(request.body);
  std::vector<std::string> texts;
  if (!document) return texts;
  const json::Value root = document->root();
  for (const json::Value text : root["input"] ? root["input"] : root["inputs"] ? root["inputs"] : root["texts"])
    texts.push_back(text.string_or(""));
  return texts;
}

// Answers correctly, in the format of the requested path.
void answer_well(const SeenRequest& request, int socket) {
  std::string items;
  std::size_t index = 0;
  const bool openai = request.head.starts_with("POST /v1/embeddings "),
             ollama = request.head.starts_with("POST /api/embed ");
  for (const std::string& text : texts_of(request)) {
    const std::string vector = vector_for(text);
    std::string item =
        openai ? R"({"object":"embedding","index":)" + std::to_string(index) + R"(,"embedding":)" + vector + "}"
               : vector;
    // OpenAI's items carry their index: their order is not guaranteed.
    items = items.empty() ? item : openai ? item + "," + items : items + "," + item;
    ++index;
  }
  CannedServer::send_all(socket, http_answer(openai   ? R"({"object":"list","data":[)" + items + "]}"
                                             : ollama ? R"({"embeddings":[)" + items + "]}"
                                                      : "[" + items + "]"));
}

HttpEmbedderOptions options_for(const std::string& url, const std::string& api = "openai") {
  HttpEmbedderOptions options;
  options.url = url;
  options.api = api;
  options.model = "bge-small-en-v1.5";
  options.dimension = 3;
  options.timeout_ms = 2'000;
  return options;
}

std::unique_ptr<Embedder> opened(const HttpEmbedderOptions& options) {
  auto embedder = open_http(options);
  EXPECT_TRUE(embedder) << embedder.error().message;
  return std::move(embedder).value();
}

Result<Vectors> embed(Embedder& embedder, const std::vector<std::string>& texts, TextKind kind = TextKind::document) {
  const std::vector<std::string_view> views(texts.begin(), texts.end());
  return embedder.embed(views, kind);
}

void expect_vector(const std::vector<float>& found, const std::string& text) {
  const double x = static_cast<double>(text.size()), y = text.front(), z = text.back(),
               length = std::sqrt(x * x + y * y + z * z);
  ASSERT_EQ(found.size(), 3U);
  EXPECT_NEAR(static_cast<double>(found[0]), x / length, 1e-6);
  EXPECT_NEAR(static_cast<double>(found[1]), y / length, 1e-6);
  EXPECT_NEAR(static_cast<double>(found[2]), z / length, 1e-6);
}

TEST(HttpEmbedder, EachApiIsAskedInItsWay) {
  const CannedServer server(answer_well);
  const struct {
    std::string api, path, request;
  } cases[] = {
      {"openai", "/v1/embeddings", R"({"model":"bge-small-en-v1.5","input":["one","three"]})"},
      {"ollama", "/api/embed", R"({"model":"bge-small-en-v1.5","input":["one","three"],"truncate":false})"},
      {"tei", "/embed", R"({"inputs":["one","three"],"truncate":false})"},
  };
  for (const auto& [api, path, request] : cases) {
    const auto vectors = embed(*opened(options_for(server.url(), api)), {"one", "three"});
    ASSERT_TRUE(vectors) << vectors.error().message;
    expect_vector(vectors->at(0), "one");
    expect_vector(vectors->at(1), "three");
    EXPECT_EQ(server.seen().back().head.substr(0, 6 + path.size()), "POST " + path + " ");
    EXPECT_EQ(server.seen().back().body, request);
  }
}

TEST(HttpEmbedder, TheApiIsToldFromTheUrl) {
  const CannedServer server(answer_well);
  const std::pair<std::string, std::string> cases[] = {
      {"", "/v1/embeddings"},       {"/", "/v1/embeddings"},
      {"/v1", "/v1/embeddings"},    {"/v1/embeddings", "/v1/embeddings"},
      {"/api/embed", "/api/embed"}, {"/embed", "/embed"}};
  for (const auto& [given, asked] : cases) {
    EXPECT_TRUE(embed(*opened(options_for(server.url() + given, "")), {"one"}));
    EXPECT_EQ(server.seen().back().head.substr(0, 6 + asked.size()), "POST " + asked + " ") << given;
  }
}

TEST(HttpEmbedder, ItsDimensionIsAskedForWhereItIsNotGiven) {
  const CannedServer server(answer_well);
  HttpEmbedderOptions options = options_for(server.url());
  options.dimension = 0;
  const auto embedder = opened(options);
  EXPECT_EQ(embedder->identity().dimension, 3U);
  EXPECT_EQ(embedder->identity().name, "http");
  EXPECT_EQ(embedder->identity().hash,
            opened(options_for("http://127.0.0.1:1"))->identity().hash);  // independent of the server's address
  options = options_for(server.url());
  options.model = "another";
  EXPECT_NE(embedder->identity().hash, opened(options)->identity().hash);
}

TEST(HttpEmbedder, BatchesAreBoundedAndTheirOrderIsKept) {
  const CannedServer server(answer_well);
  HttpEmbedderOptions options = options_for(server.url());
  options.batch_texts_max = 7;
  const auto embedder = opened(options);
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < 30; ++i) texts.push_back("t" + std::string(i, 'x'));
  texts[5] = " \n ";
  texts[20] = "";
  const auto vectors = embed(*embedder, texts);
  ASSERT_TRUE(vectors) << vectors.error().message;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (i == 5 || i == 20) {
      EXPECT_EQ(vectors->at(i), std::vector<float>(3));  // an empty text is not sent
    } else {
      expect_vector(vectors->at(i), texts[i]);
    }
  }
  EXPECT_EQ(server.seen().size(), 4U);
  for (const SeenRequest& request : server.seen()) EXPECT_EQ(texts_of(request).size(), 7U);
}

TEST(HttpEmbedder, ABatchIsAlsoBoundedByItsBytes) {
  const CannedServer server(answer_well);
  const auto embedder = opened(options_for(server.url()));
  EXPECT_TRUE(embed(*embedder, {std::string(200'000, 'a'), std::string(100'000, 'b'), "c"}));
  EXPECT_EQ(server.seen().size(), 2U);
  const auto refused = embed(*embedder, {std::string(300'000, 'a')});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::invalid_argument);
}

TEST(HttpEmbedder, QueriesHaveTheirPrefixAndTheKeyGoesAlong) {
  const CannedServer server(answer_well);
  const test::TemporaryFolder folder;
  std::ofstream(folder.path() + "/key") << "s3cret\n";
  HttpEmbedderOptions options = options_for(server.url());
  options.query_prefix = "Represent this sentence: ";
  options.key_file = folder.path() + "/key";
  const auto embedder = opened(options);
  EXPECT_TRUE(embed(*embedder, {"one"}, TextKind::query));
  EXPECT_EQ(texts_of(server.seen().back()), std::vector<std::string>{"Represent this sentence: one"});
  EXPECT_NE(server.seen().back().head.find("Authorization: Bearer s3cret\r\n"), std::string::npos);
  EXPECT_TRUE(embed(*embedder, {"one"}, TextKind::document));
  EXPECT_EQ(texts_of(server.seen().back()), std::vector<std::string>{"one"});
}

TEST(HttpEmbedder, OptionsThatMakeNoSenseAreRefused) {
  const test::TemporaryFolder folder;
  std::ofstream(folder.path() + "/key") << "two\nlines\n";
  const auto refused = [](auto change) {
    HttpEmbedderOptions options = options_for("http://127.0.0.1:1");
    change(options);
    const auto embedder = open_http(options);
    return embedder ? "" : std::string(name_of(embedder.error().code));
  };
  EXPECT_EQ(refused([](auto&) {}), "");
  EXPECT_EQ(refused([](auto& o) { o.url = "file:///etc/passwd"; }), "invalid_argument");
  EXPECT_EQ(refused([](auto& o) { o.url = ""; }), "invalid_argument");
  EXPECT_EQ(refused([](auto& o) { o.api = "cohere"; }), "invalid_argument");
  EXPECT_EQ(refused([](auto& o) { o.model = ""; }), "invalid_argument");
  EXPECT_EQ(refused([](auto& o) { o.timeout_ms = 0; }), "invalid_argument");
  EXPECT_EQ(refused([](auto& o) { o.batch_texts_max = 0; }), "invalid_argument");
  EXPECT_EQ(refused([](auto& o) { o.batch_texts_max = 1'025; }), "invalid_argument");
  EXPECT_EQ(refused([](auto& o) { o.dimension = 4'097; }), "invalid_argument");
  EXPECT_EQ(refused([&](auto& o) { o.key_file = folder.path() + "/key"; }), "invalid_argument");
  EXPECT_EQ(refused([&](auto& o) { o.key_file = folder.path() + "/none"; }), "not_found");
}

struct Wrong {
  const char* name;
  std::string answer;  // the complete response
  Errc code;
  std::string says;   // part of the expected message
  std::size_t asked;  // the expected number of requests
};

class WrongServer : public testing::TestWithParam<Wrong> {};
INSTANTIATE_TEST_SUITE_P(
    Http, WrongServer,
    testing::Values(
        Wrong{"garbage", "\x16\x03\x01 what", Errc::unavailable, "127.0.0.1", 2},
        Wrong{"nothing", "", Errc::unavailable, "127.0.0.1", 2},
        Wrong{"html", http_answer("<html>nginx</html>"), Errc::unavailable, "answer", 1},
        Wrong{"nan", http_answer(R"({"data":[{"index":0,"embedding":[1,NaN,1]},{"index":1,"embedding":[1,1,1]}]})"),
              Errc::unavailable, "answer", 1},
        Wrong{"null", http_answer(R"({"data":[{"index":0,"embedding":[1,null,1]},{"index":1,"embedding":[1,1,1]}]})"),
              Errc::unavailable, "null is not", 1},
        Wrong{"beyond_float",
              http_answer(R"({"data":[{"index":0,"embedding":[1,1e39,1]},{"index":1,"embedding":[1,1,1]}]})"),
              Errc::unavailable, "1e39 is not", 1},
        Wrong{"zeros", http_answer(R"({"data":[{"index":0,"embedding":[0,0,0]},{"index":1,"embedding":[1,1,1]}]})"),
              Errc::unavailable, "no direction", 1},
        Wrong{"too_few", http_answer(R"({"data":[{"index":0,"embedding":[1,1,1]}]})"), Errc::unavailable,
              "1 embeddings for 2 texts", 1},
        Wrong{"narrow", http_answer(R"({"data":[{"index":0,"embedding":[1,1]},{"index":1,"embedding":[1,1]}]})"),
              Errc::unavailable, "2 dimensions, expected 3", 1},
        Wrong{"twice", http_answer(R"({"data":[{"index":1,"embedding":[1,1,1]},{"index":1,"embedding":[1,1,1]}]})"),
              Errc::unavailable, "text 1 occurs twice", 1},
        Wrong{"outside", http_answer(R"({"data":[{"index":0,"embedding":[1,1,1]},{"index":2,"embedding":[1,1,1]}]})"),
              Errc::unavailable, "index 2 is out of range", 1},
        Wrong{"error_500", http_answer("out of memory", "500 Internal Server Error"), Errc::unavailable,
              "status 500: out of memory", 2},
        Wrong{"busy", http_answer("model is overloaded", "429 Too Many Requests"), Errc::unavailable, "status 429", 2},
        Wrong{"too_long", http_answer("input is too long", "413 Payload Too Large"), Errc::invalid_argument,
              "status 413: input is too long", 1},
        Wrong{"key", http_answer("who are you?", "401 Unauthorized"), Errc::denied, "status 401", 1},
        Wrong{"redirect",
              "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
              Errc::invalid_argument, "status 302", 1},
        Wrong{"half", "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\nConnection: close\r\n\r\n{\"data\":",
              Errc::unavailable, "127.0.0.1", 2},
        Wrong{"escapes", http_answer("\x1b[2Jbad", "503 Service Unavailable"), Errc::unavailable, "\\x1b[2Jbad", 2}),
    [](const auto& wrong) { return std::string(wrong.param.name); });

TEST_P(WrongServer, IsAnErrorThatSaysWhatIsWrong) {
  const Wrong& wrong = GetParam();
  const CannedServer server([&](const SeenRequest&, int socket) { CannedServer::send_all(socket, wrong.answer); });
  const auto vectors = embed(*opened(options_for(server.url())), {"one", "two"});
  ASSERT_FALSE(vectors);
  EXPECT_EQ(vectors.error().code, wrong.code) << vectors.error().message;
  EXPECT_NE(vectors.error().message.find(wrong.says), std::string::npos) << vectors.error().message;
  EXPECT_NE(vectors.error().message.find("/v1/embeddings"), std::string::npos) << vectors.error().message;
  EXPECT_EQ(server.seen().size(), wrong.asked);
}

TEST(HttpEmbedder, ASilentServerIsGivenUp) {
  std::promise<void> release;
  const CannedServer server([released = release.get_future().share()](const SeenRequest&, int) { released.wait(); });
  HttpEmbedderOptions options = options_for(server.url());
  options.timeout_ms = 250;
  const auto embedder = opened(options);
  const auto vectors = embed(*embedder, {"one"});  // returns while the server holds the request
  release.set_value();
  ASSERT_FALSE(vectors);
  EXPECT_EQ(vectors.error().code, Errc::unavailable);
}

TEST(HttpEmbedder, AServerThatIsGoneIsUnavailable) {
  std::string url;
  {
    const CannedServer server(answer_well);
    url = server.url();
  }
  const auto vectors = embed(*opened(options_for(url)), {"one"});
  ASSERT_FALSE(vectors);
  EXPECT_EQ(vectors.error().code, Errc::unavailable);
  HttpEmbedderOptions unknown = options_for(url);
  unknown.dimension = 0;
  EXPECT_EQ(open_http(unknown).error().code, Errc::unavailable);
}

TEST(HttpEmbedder, AHundredMegabytesAreNotRead) {
  std::atomic<std::size_t> sent = 0;
  const CannedServer server([&](const SeenRequest&, int socket) {
    CannedServer::send_all(socket, "HTTP/1.1 200 OK\r\nContent-Length: 104857600\r\nConnection: close\r\n\r\n[");
    const std::string block(1 << 20, ' ');
    for (int i = 0; i < 100 && CannedServer::send_all(socket, block); ++i) sent += block.size();
  });
  HttpEmbedderOptions options = options_for(server.url());
  options.timeout_ms = 20'000;
  const auto vectors = embed(*opened(options), {"one"});
  ASSERT_FALSE(vectors);
  EXPECT_EQ(vectors.error().code, Errc::unavailable);
  EXPECT_NE(vectors.error().message.find("more than 33554432 bytes"), std::string::npos) << vectors.error().message;
}

TEST(HttpEmbedder, AServerThatFailsOnceIsAskedAgain) {
  std::atomic<int> asked = 0;
  const CannedServer server([&](const SeenRequest& request, int socket) {
    if (++asked > 1) answer_well(request, socket);
  });
  EXPECT_TRUE(embed(*opened(options_for(server.url())), {"one"}));
  EXPECT_EQ(asked, 2);
}

TEST(HttpReranker, ScoresComeInTheOrderOfTheTexts) {
  const CannedServer server([](const SeenRequest& request, int socket) {
    std::string items;
    std::size_t index = 0;
    for (const std::string& text : texts_of(request)) {
      const std::string item =
          R"({"index":)" + std::to_string(index++) + R"(,"score":0.)" + std::to_string(text.size()) + "}";
      items = items.empty() ? item : item + "," + items;
    }
    CannedServer::send_all(socket, http_answer("[" + items + "]"));
  });
  HttpRerankerOptions options;
  options.url = server.url();
  options.batch_texts_max = 2;
  auto reranker = HttpReranker::open(options);
  ASSERT_TRUE(reranker) << reranker.error().message;
  const std::vector<std::string_view> texts = {"1", "333", "22"};
  const auto scores = reranker->scores("which?", texts);
  ASSERT_TRUE(scores) << scores.error().message;
  EXPECT_EQ(*scores, (std::vector<double>{0.1, 0.3, 0.2}));
  EXPECT_EQ(server.seen().size(), 2U);
  EXPECT_EQ(server.seen().front().head.substr(0, 13), "POST /rerank ");
  EXPECT_EQ(server.seen().front().body,
            R"({"query":"which?","texts":["1","333"],"raw_scores":false,"truncate":false})");
  EXPECT_TRUE(reranker->scores("which?", {})->empty());
}

TEST(HttpReranker, AnswersThatDoNotFitAreRefused) {
  EXPECT_TRUE(read_rerank_answer(R"([{"index":0,"score":-1.5}])", 1));
  for (const std::string_view answer :
       {"", "{}", "[]", R"([{"index":0}])", R"([{"score":1}])", R"([{"index":1,"score":1}])",
        R"([{"index":0,"score":null}])", R"([{"index":0,"score":1},{"index":0,"score":1}])", R"([1])"}) {
    const auto scores = read_rerank_answer(answer, 1);
    ASSERT_FALSE(scores) << answer;
    EXPECT_EQ(scores.error().code, Errc::unavailable);
  }
}

}  // namespace
}  // namespace muniment::retrieval
