// A reranker behind TEI's /rerank: how well each text answers a query, by a model that reads both at once.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace muniment::retrieval {

class HttpService;

struct HttpRerankerOptions {
  std::string url;       // the base, or …/rerank itself
  std::string key_file;  // holds a bearer token; may be empty
  std::int64_t timeout_ms = 10'000;
  std::size_t batch_texts_max = 32;
};

class HttpReranker {
 public:
  // Errors: invalid_argument; those of reading the key.
  static Result<HttpReranker> open(const HttpRerankerOptions& options);
  HttpReranker(HttpReranker&&) noexcept;
  ~HttpReranker();

  // One score a text, higher is better. May be called from several threads. Errors: as of http embedders.
  Result<std::vector<double>> scores(std::string_view query, std::span<const std::string_view> texts) const;

 private:
  HttpReranker();
  std::unique_ptr<HttpService> service_;
  std::size_t batch_texts_max_ = 0;
};

}  // namespace muniment::retrieval
