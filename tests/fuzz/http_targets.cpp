// Targets of the HTTP server's own checks: Host, Origin, Authorization, and the length of a body.
#include <algorithm>

#include "base/text.hpp"
#include "fuzz/target.hpp"
#include "http/access.hpp"
#include "http/framing.hpp"

namespace muniment::fuzz {
namespace {

std::string lower(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return text;
}

// Returns whether `text` is empty, or ":" and a number from 1 to 65535 without leading zeros.
bool is_port(std::string_view text) {
  if (text.empty()) return true;
  if (text.size() < 2 || text.size() > 6 || text[0] != ':' || text[1] == '0') return false;
  const bool digits = std::all_of(text.begin() + 1, text.end(), [](char c) { return c >= '0' && c <= '9'; });
  return digits && std::stoi(std::string(text.substr(1))) <= 65'535;
}

bool is_at_a_port(std::string_view text, std::string_view name) {
  return text.starts_with(name) && is_port(text.substr(name.size()));
}

// Repeats the rules of access.hpp as a list of the allowed hosts.
bool host_is_allowed(const std::string& host) {
  for (const std::string name : {"localhost", "127.0.0.1", "[::1]"}) {
    if (host == name || host == name + ":8080") return true;
  }
  return is_at_a_port(host, "memory.example.org") || host == "proxy.example.org:8443";
}

bool origin_is_allowed(const std::string& origin) {
  for (const std::string scheme : {"http://", "https://"}) {
    for (const char* name : {"localhost", "127.0.0.1", "[::1]", "memory.example.org", "proxy.example.org"}) {
      if (is_at_a_port(origin, scheme + name)) return true;
    }
  }
  return false;
}

// The first line is the Host, the second the Origin, the third the Authorization.
void try_access(const std::string& text) {
  static const http::AllowedHosts hosts{8080, {"memory.example.org", "proxy.example.org:8443"}};
  std::string_view rest = text;
  const auto next = [&rest] {
    const auto line = take_line(rest);
    return std::string(line ? *line : std::exchange(rest, {}));
  };
  const std::string host = next(), origin = next(), authorization = next();
  http::Request request;
  request.headers = {{"Host", host}, {"Origin", origin}, {"Authorization", authorization}};
  require(check_host(request, hosts).ok() == host_is_allowed(lower(host)), "a host is judged wrongly");
  require(check_origin(request, hosts).ok() == origin_is_allowed(lower(origin)), "an origin is judged wrongly");
  const bool matches = bearer_token_matches(request, "token");
  require(!matches || (authorization.ends_with(" token") && lower(authorization).starts_with("bearer ")),
          "another token matches");
}

// Each line is a header.
void try_framing(const std::string& text) {
  http::Request request;
  request.method = "POST";
  request.target = "/";
  int lengths = 0;
  for (std::string_view rest = text; !rest.empty();) {
    const auto line = take_line(rest);
    const std::string header(line ? *line : std::exchange(rest, {}));
    const std::size_t colon = std::min(header.find(':'), header.size());
    request.headers.push_back({header.substr(0, colon), header.substr(std::min(colon + 1, header.size()))});
    const std::string name = lower(request.headers.back().name);
    lengths += name == "content-length" || name == "transfer-encoding" ? 1 : 0;
  }
  if (malformed(request)) return;
  require(lengths <= 1, "a body has two lengths");
  const auto announced = announced_bytes(request);
  require(announced || request.header("Transfer-Encoding"), "a body has no length");
  if (lengths == 0) require(announced == 0U, "a body comes from nowhere");
}

}  // namespace

std::vector<Target> http_targets() {
  return {
      {"http_access",
       try_access,
       {"localhost:8080\nhttp://localhost:3000\nBearer token", "[::1]\nhttps://[::1]:1\nbearer  token",
        "memory.example.org:443\nhttps://memory.example.org\nBasic token",
        "proxy.example.org:8443\nhttp://proxy.example.org:9\n", "127.0.0.1\nnull\n"}},
      {"http_framing",
       try_framing,
       {"Host:a\nContent-Length:18446744073709551\n", "transfer-encoding:Chunked\nX:\n",
        "Content-Length:1\nTransfer-Encoding:chunked\n"}},
  };
}

}  // namespace muniment::fuzz
