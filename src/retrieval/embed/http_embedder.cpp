// Embedders and rerankers over HTTP: OpenAI's /v1/embeddings (also llama.cpp, Ollama, TEI, vLLM), Ollama's /api/embed,
// TEI's /embed and /rerank. Texts are sent in bounded batches; nothing is cut silently, neither here nor, if it can be
// configured, by the server.
#include <algorithm>

#include <fmt/format.h>

#include "base/crypto/sha256.hpp"
#include "base/json/json.hpp"
#include "base/limits.hpp"
#include "retrieval/embed/embedder.hpp"
#include "retrieval/embed/http_answers.hpp"
#include "retrieval/embed/http_reranker.hpp"
#include "retrieval/embed/http_service.hpp"

namespace muniment::retrieval {
namespace {

struct Api {
  std::string_view name;
  std::string_view path;
  bool names_model;
  Result<Vectors> (*read)(std::string_view json, const Expected& expected);
};

// Matched by the end of the path; /v1/embeddings precedes /embed.
constexpr Api apis[] = {
    {"openai", "/v1/embeddings", true, read_openai_answer},
    {"ollama", "/api/embed", true, read_ollama_answer},
    {"tei", "/embed", false, read_tei_answer},
};

std::string without_slashes(std::string url) {
  while (url.ends_with('/')) url.pop_back();
  return url;
}

Result<const Api*> api_of(const HttpEmbedderOptions& options, const std::string& url) {
  for (const Api& api : apis) {
    if (options.api.empty() ? url.ends_with(api.path) : options.api == api.name) return &api;
  }
  if (options.api.empty()) return &apis[0];
  return Error(Errc::invalid_argument, fmt::format("{} is not an api: give openai, ollama or tei", options.api));
}

// "http://host/v1" + "/v1/embeddings" is "http://host/v1/embeddings".
std::string endpoint(const std::string& url, std::string_view path) {
  if (url.ends_with(path)) return url;
  if (path.starts_with("/v1/") && url.ends_with("/v1")) return url + std::string(path.substr(3));
  return url + std::string(path);
}

// The number of texts from `begin` on that form a batch: at most `texts_max`, and limited in bytes unless it is a
// single text.
std::size_t batch_size(std::span<const std::string_view> texts, std::size_t begin, std::size_t texts_max) {
  std::size_t bytes = 0, count = 0;
  while (begin + count < texts.size() && count < texts_max) {
    bytes += texts[begin + count].size();
    if (count > 0 && bytes > limits::http_embed_batch_bytes_max) break;
    ++count;
  }
  return count;
}

Status check_sizes(std::span<const std::string_view> texts) {
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (texts[i].size() > limits::http_embed_batch_bytes_max) {
      return Error(Errc::invalid_argument, fmt::format("text {} has {} bytes; a server is sent at most {}", i,
                                                       texts[i].size(), limits::http_embed_batch_bytes_max));
    }
  }
  return success();
}

bool is_blank(std::string_view text) { return text.find_first_not_of(" \t\r\n\v\f") == std::string_view::npos; }

class HttpEmbedder : public Embedder {
 public:
  HttpEmbedder(const Api& api, const HttpEmbedderOptions& options, HttpService service)
      : api_(api), options_(options), service_(std::move(service)) {}

  // Asks the server for its dimension if it is not known.
  Status settle_identity() {
    std::size_t dimension = options_.dimension;
    if (dimension == 0) {
      const std::string text = "dimension";
      ASSIGN_OR_RETURN(const Vectors vectors, ask({text}));
      dimension = vectors[0].size();
    }
    // A model keeps its identity on another server; without a name, the URL identifies it.
    const std::string& what = options_.model.empty() ? service_.url() : options_.model;
    identity_ = {"http", "1", dimension, to_hex(sha256({"http/1\n", what}))};
    return success();
  }

  const EmbedderIdentity& identity() const override { return identity_; }

  Result<Vectors> embed(std::span<const std::string_view> texts, TextKind kind) override {
    RETURN_IF_ERROR(check_sizes(texts));
    Vectors vectors(texts.size(), std::vector<float>(identity_.dimension, 0.0F));
    std::vector<std::string_view> asked;  // servers treat empty texts differently
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < texts.size(); ++i) {
      if (is_blank(texts[i])) continue;
      asked.push_back(texts[i]);
      places.push_back(i);
    }
    for (std::size_t begin = 0; begin < asked.size();) {
      const std::size_t count = batch_size(asked, begin, options_.batch_texts_max);
      std::vector<std::string> batch;
      for (std::size_t i = 0; i < count; ++i) {
        batch.push_back((kind == TextKind::query ? options_.query_prefix : "") + std::string(asked[begin + i]));
      }
      ASSIGN_OR_RETURN(Vectors answered, ask(batch));
      for (std::size_t i = 0; i < count; ++i) vectors[places[begin + i]] = std::move(answered[i]);
      begin += count;
    }
    return vectors;
  }

 private:
  Result<Vectors> ask(const std::vector<std::string>& texts) const {
    json::Writer request;
    request.begin_object();
    if (api_.names_model) request.member("model", options_.model);
    request.key(api_.names_model ? "input" : "inputs").begin_array();
    for (const std::string& text : texts) request.string(text);
    request.end_array();
    if (api_.name != std::string_view("openai")) request.member("truncate", false);
    request.end_object();
    ASSIGN_OR_RETURN(const std::string answer, service_.post(request.text()));
    const std::size_t dimension = identity_.dimension == 0 ? options_.dimension : identity_.dimension;
    auto vectors = api_.read(answer, {texts.size(), dimension});
    if (!vectors) return std::move(vectors).error().within(service_.url());
    return vectors;
  }

  const Api& api_;
  HttpEmbedderOptions options_;
  HttpService service_;
  EmbedderIdentity identity_;
};

Status check_batch(std::size_t texts_max) {
  if (texts_max >= 1 && texts_max <= limits::http_embed_batch_texts_max) return success();
  return Error(Errc::invalid_argument, fmt::format("a batch has 1 to {} texts", limits::http_embed_batch_texts_max));
}

}  // namespace

Result<std::unique_ptr<Embedder>> open_http(const HttpEmbedderOptions& options) {
  const std::string url = without_slashes(options.url);
  ASSIGN_OR_RETURN(const Api* api, api_of(options, url));
  RETURN_IF_ERROR(check_batch(options.batch_texts_max));
  if (api->names_model && options.model.empty()) return Error(Errc::invalid_argument, url + ": the model is not set");
  if (options.dimension > limits::embedding_dimension_max) {
    return Error(Errc::invalid_argument,
                 fmt::format("a vector has at most {} dimensions", limits::embedding_dimension_max));
  }
  const std::chrono::milliseconds timeout(options.timeout_ms);
  ASSIGN_OR_RETURN(HttpService service,
                   HttpService::open(endpoint(url, api->path), options.key_file, timeout, options.given_up));
  auto embedder = std::make_unique<HttpEmbedder>(*api, options, std::move(service));
  RETURN_IF_ERROR(embedder->settle_identity());
  return std::unique_ptr<Embedder>(std::move(embedder));
}

HttpReranker::HttpReranker() = default;
HttpReranker::HttpReranker(HttpReranker&&) noexcept = default;
HttpReranker::~HttpReranker() = default;

Result<HttpReranker> HttpReranker::open(const HttpRerankerOptions& options) {
  RETURN_IF_ERROR(check_batch(options.batch_texts_max));
  const std::string url = endpoint(without_slashes(options.url), "/rerank");
  ASSIGN_OR_RETURN(HttpService service,
                   HttpService::open(url, options.key_file, std::chrono::milliseconds(options.timeout_ms)));
  HttpReranker reranker;
  reranker.service_ = std::make_unique<HttpService>(std::move(service));
  reranker.batch_texts_max_ = options.batch_texts_max;
  return reranker;
}

Result<std::vector<double>> HttpReranker::scores(std::string_view query,
                                                 std::span<const std::string_view> texts) const {
  RETURN_IF_ERROR(check_sizes(texts));
  std::vector<double> scores;
  while (scores.size() < texts.size()) {
    const std::size_t begin = scores.size(), count = batch_size(texts, begin, batch_texts_max_);
    json::Writer request;
    request.begin_object().member("query", query).key("texts").begin_array();
    for (const std::string_view text : texts.subspan(begin, count)) request.string(text);
    request.end_array().member("raw_scores", false).member("truncate", false).end_object();
    ASSIGN_OR_RETURN(const std::string answer, service_->post(request.text()));
    auto read = read_rerank_answer(answer, count);
    if (!read) return std::move(read).error().within(service_->url());
    scores.insert(scores.end(), read->begin(), read->end());
  }
  return scores;
}

}  // namespace muniment::retrieval
