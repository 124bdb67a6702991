// Sends one HTTP request at a time over TCP or a Unix socket (libcurl): checkpoints to witnesses and buckets, texts to
// embedding servers, messages to webhooks, and questions to cloud services.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "base/files/file.hpp"
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
  // A socket that is connected to the URL's host, from connect_http. The request then opens no socket, resolves no name
  // and reads no file, and closes this one.
  int connected = -1;
  std::string ca_pem;  // with `connected`: certificates that may sign the server's
};

struct HttpAnswer {
  int status = 0;
  std::string body;
};

// Returns the server's answer with any status. Follows no redirect. Errors: unavailable; too_large for an answer beyond
// answer_bytes_max, whose rest is not read. With `connected` also deadline_exceeded, and denied for a certificate that
// does not match.
Result<HttpAnswer> send_http(const HttpRequest& request);

// Resolves the host of the URL and connects to it, without a proxy; sends nothing, also for https. Errors: unavailable.
Result<Fd> connect_http(const std::string& url, std::chrono::milliseconds timeout);

// Initialises libcurl and its TLS library, which read files. Called by send_http; a sandboxed process calls it before.
void load_http();

}  // namespace muniment
