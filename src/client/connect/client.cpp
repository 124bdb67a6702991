#include "client/connect/client.hpp"

#include <fmt/format.h>
#include <grp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/crypto/sha256.hpp"
#include "base/limits.hpp"
#include "client/hints.hpp"

namespace muniment::cli {
namespace {

using SteadyTime = std::chrono::steady_clock::time_point;

constexpr std::size_t line_bytes_sane_max = 64U << 20;

Error connection_lost(std::string_view doing) {
  return Error(Errc::unavailable, fmt::format("the daemon closed the connection while {}. See: "
                                              "muniment status",
                                              doing));
}

Errc code_named(std::string_view name) {
  for (int i = 0; i <= static_cast<int>(Errc::system_error); ++i) {
    if (name_of(static_cast<Errc>(i)) == name) return static_cast<Errc>(i);
  }
  return Errc::system_error;
}

// Errors defined by JSON-RPC (unknown method, parse error) carry no data.code; they are errors of the request.
Error error_of(const json::Value& reply) {
  const json::Value data = reply["data"];
  Error error(data["code"] ? code_named(data["code"].string_or("")) : Errc::invalid_argument,
              with_commands(reply["message"].string_or("the daemon returned an error without a message")));
  error.run_id = data["run_id"].string_or("");
  error.pointer = data["pointer"].string_or("");
  error.outcome = data["outcome"].string_or("");
  error.limit = data["limit"].as_int();
  error.retry_after_ms = data["retry_after_ms"].as_int();
  for (const json::Value id : data["event_ids"]) error.event_ids.push_back(id.string_or(""));
  return error;
}

// The daemon may execute a sent request even if the reply is lost.
Error unanswered(Error error) {
  error.outcome = "unknown";
  error.message += ". outcome: unknown; the request may still be executed";
  return error;
}

std::string request_line(std::int64_t id, std::string_view method, std::string_view params) {
  json::Writer writer;
  writer.begin_object().member("jsonrpc", "2.0").member("id", id).member("method", method);
  writer.raw_member("params", params.empty() ? "{}" : params).end_object();
  return std::move(writer).text() + "\n";
}

// Returns a hint if membership in a group allows the connection.
std::string way_in(const std::string& socket_path) {
  struct stat about {};
  if (::stat(socket_path.c_str(), &about) != 0 || about.st_gid == 0 || (about.st_mode & S_IWGRP) == 0) return {};
  const group* const entry = ::getgrgid(about.st_gid);
  return entry == nullptr ? std::string()
                          : fmt::format(" Members of the group {0} may connect: adduser USER {0}, then log in again",
                                        entry->gr_name);
}

int milliseconds_until(SteadyTime until) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
  return left.count() < 0 ? 0 : static_cast<int>(left.count());
}

}  // namespace

Result<Message> Message::parse(std::string line) {
  Message message;
  message.line_ = std::make_unique<const std::string>(std::move(line));
  auto document = json::parse(*message.line_, limits::reply_depth_max);
  if (!document) return std::move(document).error().within("the daemon's reply cannot be parsed");
  message.document_ = std::move(*document);
  return message;
}

Result<Client> Client::connect(const std::string& socket_path, std::chrono::milliseconds patience) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket_path.size() >= sizeof address.sun_path) {
    return Error(Errc::invalid_argument, fmt::format("the socket path has {} bytes, limit {}: {}", socket_path.size(),
                                                     sizeof address.sun_path - 1, socket_path));
  }
  std::memcpy(address.sun_path, socket_path.c_str(), socket_path.size());
  const int descriptor = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (descriptor < 0) {
    return Error(Errc::unavailable, fmt::format("cannot create a socket: {}", std::strerror(errno)));
  }
  Client client(descriptor);
  const timeval bound{patience.count() / 1000, patience.count() % 1000 * 1000};
  ::setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &bound, sizeof bound);
  if (::connect(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    const int why = errno;
    if (why == EACCES)
      return Error(Errc::denied, fmt::format("no permission to connect to {}: {}.{}", socket_path, std::strerror(why),
                                             way_in(socket_path)));
    return Error(Errc::unavailable, fmt::format("no daemon answers at {}: {}", socket_path, std::strerror(why)));
  }
  return client;
}

Client::Client(Client&& other) noexcept { *this = std::move(other); }

Client& Client::operator=(Client&& other) noexcept {
  std::swap(socket_, other.socket_);
  std::swap(patience_, other.patience_);
  std::swap(next_id_, other.next_id_);
  std::swap(buffer_, other.buffer_);
  std::swap(taken_, other.taken_);
  std::swap(notifications_, other.notifications_);
  return *this;
}

Client::~Client() {
  if (socket_ >= 0) ::close(socket_);
}

Result<Message> Client::call(std::string_view method, std::string_view params) {
  const std::int64_t id = next_id_++;
  const Status sent = send_all(request_line(id, method, params));
  // A daemon that refuses this user sends an error and closes, possibly before it receives a request.
  Result<Message> reply = await_reply(id);
  if (!sent && !reply && reply.error().code == Errc::unavailable) return sent.error();
  return reply;
}

Result<Message> Client::call(std::string_view method, std::string_view params, const BodySource& body) {
  const std::int64_t id = next_id_++;
  RETURN_IF_ERROR(send_all(request_line(id, method, params)));
  const Status sent = send_body(body);
  if (!sent && sent.error().code != Errc::unavailable) return sent.error();
  // If sending failed, the daemon has usually sent the reason before it closed the connection.
  Result<Message> reply = await_reply(id);
  if (!sent && !reply && reply.error().code == Errc::unavailable) return sent.error();
  return reply;
}

Result<Message> Client::call(std::string_view method, std::string_view params, std::string_view body) {
  return call(method, params,
              [&body]() -> Result<std::string_view> { return std::exchange(body, std::string_view()); });
}

Status Client::notify(std::string_view method, std::string_view params) {
  json::Writer writer;
  writer.begin_object().member("jsonrpc", "2.0").member("method", method).raw_member("params", params).end_object();
  return send_all(std::move(writer).text() + "\n");
}

Result<Message> Client::next_notification(std::chrono::milliseconds at_most) {
  const SteadyTime until = std::chrono::steady_clock::now() + at_most;
  while (notifications_.empty()) {
    ASSIGN_OR_RETURN(Message message, read_message(until));
    if (message.root()["method"]) notifications_.push_back(std::move(message));
  }
  Message first = std::move(notifications_.front());
  notifications_.pop_front();
  return first;
}

// Opens a new connection, because a connection made before socket activation reports the process that listened at that
// time.
std::int32_t Client::daemon_pid() const {
  sockaddr_un address{};
  socklen_t length = sizeof address;
  if (::getpeername(socket_, reinterpret_cast<sockaddr*>(&address), &length) != 0) return 0;
  const Client now(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (::connect(now.socket_, reinterpret_cast<const sockaddr*>(&address), length) != 0) return 0;
  ucred credentials{};
  socklen_t size = sizeof credentials;
  if (::getsockopt(now.socket_, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) return 0;
  return credentials.pid;
}

Status Client::send_all(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return connection_lost("a request was sent");
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return success();
}

// The announced number of bytes must follow even if the daemon refuses the request; only a closed connection ends the
// transfer early.
Status Client::send_body(const BodySource& body) {
  for (;;) {
    ASSIGN_OR_RETURN(const std::string_view piece, body());
    if (piece.empty()) return success();
    RETURN_IF_ERROR(send_all(piece));
  }
}

Status Client::fill(SteadyTime until) {
  if (taken_ > 0 && taken_ == buffer_.size()) {
    buffer_.clear();
    taken_ = 0;
  }
  pollfd wait{socket_, POLLIN, 0};
  const int ready = ::poll(&wait, 1, milliseconds_until(until));
  if (ready < 0 && errno == EINTR) return success();
  if (ready == 0) {
    return Error(Errc::deadline_exceeded, "the daemon did not answer in time. See: muniment status");
  }
  constexpr std::size_t piece = 64 * 1024;
  const std::size_t before = buffer_.size();
  buffer_.resize(before + piece);
  const ssize_t got = ::recv(socket_, buffer_.data() + before, piece, 0);
  buffer_.resize(before + (got > 0 ? static_cast<std::size_t>(got) : 0));
  if (got == 0 || (got < 0 && errno != EINTR)) return connection_lost("a reply was awaited");
  return success();
}

Result<std::string> Client::read_line(SteadyTime until) {
  std::size_t searched = taken_;
  for (;;) {
    const std::size_t end = buffer_.find('\n', searched);
    if (end != std::string::npos) {
      std::string line = buffer_.substr(taken_, end - taken_);
      taken_ = end + 1;
      return line;
    }
    if (buffer_.size() - taken_ > line_bytes_sane_max) return connection_lost("it sent an overlong line");
    buffer_.erase(0, taken_);
    taken_ = 0;
    searched = buffer_.size();
    RETURN_IF_ERROR(fill(until));
  }
}

Result<std::string> Client::read_bytes(std::size_t count, SteadyTime until) {
  while (buffer_.size() - taken_ < count) RETURN_IF_ERROR(fill(until));
  std::string bytes = buffer_.substr(taken_, count);
  taken_ += count;
  return bytes;
}

Result<Message> Client::read_message(SteadyTime until) {
  ASSIGN_OR_RETURN(std::string line, read_line(until));
  ASSIGN_OR_RETURN(Message message, Message::parse(std::move(line)));
  if (const auto raw = message.result()["body_bytes"].as_int(); raw && *raw > 0) {
    ASSIGN_OR_RETURN(message.raw, read_bytes(static_cast<std::size_t>(*raw), until));
  }
  return message;
}

Result<Message> Client::await_reply(std::int64_t id) {
  const SteadyTime until = std::chrono::steady_clock::now() + patience_;
  for (;;) {
    auto read = read_message(until);
    if (!read) return unanswered(std::move(read).error());
    Message message = *std::move(read);
    const json::Value root = message.root();
    if (root["method"]) {
      notifications_.push_back(std::move(message));
    } else if (root["error"] && (root["id"].as_int() == id || root["id"].kind() == json::Kind::null)) {
      return error_of(root["error"]);
    } else if (root["id"].as_int() == id) {
      return message;
    }
  }
}

Result<std::string> default_spool_folder(const std::string& socket_path) {
  const char* const state = std::getenv("XDG_STATE_HOME");
  const char* const home = std::getenv("HOME");
  std::string base = state != nullptr && *state == '/' ? state : "";
  if (base.empty()) {
    if (home == nullptr || *home != '/')
      return Error(Errc::invalid_argument, "neither XDG_STATE_HOME nor HOME is set: pass --spool");
    base = std::string(home) + "/.local/state";
  }
  return base + "/muniment/spool/" + to_hex(sha256(socket_path)).substr(0, 16);
}

}  // namespace muniment::cli
