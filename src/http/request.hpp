// A request and an answer as plain values, as the server passes them to and from its handler.
//
// Nothing in a request is decoded: path and query are as the client sent them, including percent-encodings.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muniment::http {

struct Header {
  std::string name, value;
};

struct Request {
  std::string method;  // as the client wrote it
  std::string target;  // begins with '/'
  std::string path;    // target up to its first '?'
  std::string query;   // target after it
  std::vector<Header> headers;
  std::string body;
  std::string peer;  // "127.0.0.1:40312", "[::1]:40312"

  // Returns the first header of this name, ignoring case; nullopt if there is none.
  std::optional<std::string> header(std::string_view name) const;
  // Returns the values of every header of this name, in the order in which the client sent them.
  std::vector<std::string_view> headers_named(std::string_view name) const;
};

struct Answer {
  int status = 200;
  std::vector<Header> headers;
  std::string body;
};

// Compares without regard to the case of ASCII letters.
bool equal_ignoring_case(std::string_view a, std::string_view b);

}  // namespace muniment::http
