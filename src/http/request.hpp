// A request as the server hands it to its handler, and an answer to one, as plain values.
//
// Nothing of a request is decoded: the path and the query are as the client sent them, percent-encodings included.
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
  std::string path;    // the target up to its first '?'
  std::string query;   // what follows it
  std::vector<Header> headers;
  std::string body;
  std::string peer;  // "127.0.0.1:40312", "[::1]:40312"

  // The first header of this name, in any case. nullopt: there is none.
  std::optional<std::string> header(std::string_view name) const;
  // The values of every header of this name, in the order in which the client sent them.
  std::vector<std::string_view> headers_named(std::string_view name) const;
};

struct Answer {
  int status = 200;
  std::vector<Header> headers;
  std::string body;
};

// ASCII letters of both cases are equal.
bool equal_ignoring_case(std::string_view a, std::string_view b);

}  // namespace muniment::http
