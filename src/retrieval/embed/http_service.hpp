// A JSON service that embeds, reranks or drafts, with handling of slow, unreachable and faulty servers.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>

#include "base/limits.hpp"
#include "base/result.hpp"

namespace muniment::retrieval {

class HttpService {
 public:
  // `key_file` holds a bearer token, or is empty. Errors: those of reading it; invalid_argument for a URL that is not
  // http:// or https://, and for a token that contains white space.
  static Result<HttpService> open(const std::string& url, const std::string& key_file,
                                  std::chrono::milliseconds timeout, std::function<bool()> given_up = {},
                                  std::size_t answer_bytes_max = limits::http_embed_answer_bytes_max);

  const std::string& url() const { return url_; }
  // Returns the body of a successful answer. Retries once if the server was unreachable or busy and time is left of the
  // timeout, which covers both attempts. Errors: unavailable; denied if the server refuses the key; invalid_argument if
  // it refuses the request, with its message.
  Result<std::string> post(const std::string& json) const;

 private:
  std::string url_;
  std::string key_;
  std::chrono::milliseconds timeout_{};
  std::function<bool()> given_up_;
  std::size_t answer_bytes_max_ = 0;
};

}  // namespace muniment::retrieval
