// A reranker behind TEI's /rerank: scores how well each text answers a query, with a model that reads both together.
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

  // Returns one score per text, higher is better. Any thread. Errors: those of http embedders.
  Result<std::vector<double>> scores(std::string_view query, std::span<const std::string_view> texts) const;

 private:
  HttpReranker();
  std::unique_ptr<HttpService> service_;
  std::size_t batch_texts_max_ = 0;
};

}  // namespace muniment::retrieval
