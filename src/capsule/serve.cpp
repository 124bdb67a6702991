// Reads requests from a socket and writes the replies.
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/limits.hpp"
#include "base/text.hpp"
#include "capsule/rpc.hpp"

namespace muniment::capsule {
namespace {

class Lines {
 public:
  explicit Lines(int socket) : socket_(socket) {}

  // Returns nullopt at the end of the stream, or for a line that exceeds the limit.
  std::optional<std::string> line() {
    for (;;) {
      if (const std::size_t end = buffer_.find('\n'); end != std::string::npos) {
        std::string out = buffer_.substr(0, end);
        buffer_.erase(0, end + 1);
        return out;
      }
      if (buffer_.size() > limits::request_line_bytes_max || !fill()) return std::nullopt;
    }
  }
  std::optional<std::string> bytes(std::size_t count) {
    while (buffer_.size() < count) {
      if (!fill()) return std::nullopt;
    }
    std::string out = buffer_.substr(0, count);
    buffer_.erase(0, count);
    return out;
  }
  bool write(std::string_view text) const {
    while (!text.empty()) {
      const ssize_t sent = ::send(socket_, text.data(), text.size(), MSG_NOSIGNAL);
      if (sent < 0 && errno == EINTR) continue;
      if (sent < 0) return false;
      text.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }

 private:
  bool fill() {
    constexpr std::size_t piece = 64 * 1024;
    const std::size_t before = buffer_.size();
    buffer_.resize(before + piece);
    ssize_t got = 0;
    do {
      got = ::recv(socket_, buffer_.data() + before, piece, 0);
    } while (got < 0 && errno == EINTR);
    buffer_.resize(before + (got > 0 ? static_cast<std::size_t>(got) : 0));
    return got > 0;
  }

  const int socket_;
  std::string buffer_;
};

std::string reply_line(const json::Value& id, const Result<std::string>& result) {
  json::Writer out;
  out.begin_object().member("jsonrpc", "2.0").raw_member("id", id ? id.source() : "null");
  if (result) {
    out.raw_member("result", *result);
  } else {
    const Error& error = result.error();
    out.key("error").begin_object().member("code", rpc_code_of(error.code)).member("message", error.message);
    out.key("data").begin_object().member("code", name_of(error.code));
    if (error.limit) out.member("limit", *error.limit);
    out.end_object().end_object();
  }
  return std::move(out.end_object()).text() + "\n";
}

}  // namespace

int serve(int socket, Server& server) {
  Lines lines(socket);
  if (server.lost_bytes() > 0)
    fmt::print(stderr, "muniment: the capsule ends {} bytes before its newest commit; the last complete one is used\n",
               server.lost_bytes());
  while (const auto line = lines.line()) {
    const auto request = json::parse(*line);
    if (!request) {
      if (!lines.write(reply_line({}, Result<std::string>(request.error())))) break;
      continue;
    }
    const json::Value root = request->root(), params = root["params"];
    std::string raw;
    if (const auto size = params["body_bytes"].as_int()) {
      if (*size < 0 || *size > limits::document_bytes_max) {
        const Error error(Errc::too_large, "body_bytes: the file exceeds the limit of a document");
        (void)lines.write(reply_line(root["id"], Result<std::string>(error)));
        break;
      }
      auto bytes = lines.bytes(static_cast<std::size_t>(*size));
      if (!bytes) break;
      raw = *std::move(bytes);
    }
    if (!lines.write(reply_line(root["id"], server.call(root["method"].string_or(""), params, std::move(raw))))) break;
  }
  const Status finished = server.finish();
  if (!finished) fmt::print(stderr, "muniment: {}\n", escape_for_terminal(finished.error().message));
  return finished ? 0 : 1;
}

}  // namespace muniment::capsule
