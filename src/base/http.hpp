// One HTTP request at a time, over TCP or a Unix socket (libcurl): how checkpoints reach witnesses
// and buckets, and texts the servers that embed them.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "base/result.hpp"

namespace muniment {

struct HttpRequest {
  std::string method = "GET";  // GET, POST, PUT
  std::string url;             // http:// or https://
  std::string unix_socket;     // connects there, whatever the URL's host; empty: the host
  std::string body;
  std::string content_type;
  std::chrono::milliseconds timeout{10'000};
  // Signs the request for S3 (AWS Signature Version 4) where a key is given.
  std::string access_key, secret_key, region;
  std::string bearer;  // a token to authorise with, where one is given
  std::size_t answer_bytes_max = 1 << 20;
  std::function<bool()> given_up;  // asked about once a second: true ends the request
};

struct HttpAnswer {
  int status = 0;
  std::string body;
};

// Whatever the server says, with its status. No redirect is followed. Errors: unavailable, too_large for an answer
// beyond answer_bytes_max, which is not read on.
Result<HttpAnswer> send_http(const HttpRequest& request);

}  // namespace muniment
