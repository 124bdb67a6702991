// Sends one HTTP request at a time over TCP or a Unix socket (libcurl): checkpoints to witnesses and buckets, texts to
// embedding servers, and messages to webhooks.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace muniment {

struct HttpRequest {
  std::string method = "GET";  // GET, POST, PUT
  std::string url;             // http:// or https://
  std::string unix_socket;     // connects to this socket instead of the URL's host; empty: the host
  std::string body;
  std::string content_type;
  std::chrono::milliseconds timeout{10'000};
  // Signs the request for S3 (AWS Signature Version 4) if a key is set.
  std::string access_key, secret_key, region;
  std::string bearer;                // bearer token; empty: none
  std::vector<std::string> headers;  // further ones, "name: value"
  std::size_t answer_bytes_max = 1 << 20;
  std::function<bool()> given_up;  // called about once a second; true aborts the request
};

struct HttpAnswer {
  int status = 0;
  std::string body;
};

// Returns the server's answer with any status. Follows no redirect. Errors: unavailable; too_large for an answer beyond
// answer_bytes_max, whose rest is not read.
Result<HttpAnswer> send_http(const HttpRequest& request);

}  // namespace muniment
