// A JSON service that embeds or reranks, and what is done about one that is slow, gone or wrong.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace muniment::retrieval {

class HttpService {
 public:
  // `key_file` holds a bearer token, or is empty. Errors: those of reading it; invalid_argument for a URL that is not
  // http:// or https://, and for a token with white space in it.
  static Result<HttpService> open(const std::string& url, const std::string& key_file,
                                  std::chrono::milliseconds timeout, std::function<bool()> given_up = {});

  const std::string& url() const { return url_; }
  // The body of a good answer. Once more where the server was gone or busy, if time is left of the timeout, which is
  // for both. Errors: unavailable; denied where the key does not do; invalid_argument where the server refuses what was
  // sent, in its words.
  Result<std::string> post(const std::string& json) const;

 private:
  std::string url_;
  std::string key_;
  std::chrono::milliseconds timeout_{};
  std::function<bool()> given_up_;
};

}  // namespace muniment::retrieval
