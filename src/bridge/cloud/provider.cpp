// Calls a cloud service through a child process.
#include "bridge/cloud/provider.hpp"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/json/json.hpp"
#include "base/limits.hpp"
#include "base/text.hpp"

namespace muniment::bridge {
namespace {

using std::chrono::milliseconds;

constexpr std::int64_t child_memory_max = std::int64_t{512} << 20;
constexpr std::int64_t child_cpu_seconds_max = 20;
// After the time of the request, until the child has reported its end.
constexpr milliseconds child_patience{1'000};

milliseconds left_until(Deadline deadline) {
  const auto left = std::chrono::ceil<milliseconds>(deadline - std::chrono::steady_clock::now());
  return std::clamp(left, milliseconds(0), milliseconds(limits::cloud_ms_max));
}

Error channel_error(std::string_view doing) {
  return Error(Errc::unavailable,
               fmt::format("the channel to the cloud child: {}: {}", doing, std::generic_category().message(errno)));
}

Status await(int socket, short events, Deadline deadline) {
  for (;;) {
    pollfd one{socket, events, 0};
    const milliseconds left = left_until(deadline);
    const int ready = ::poll(&one, 1, static_cast<int>(left.count()));
    if (ready > 0) return success();
    if (ready < 0 && errno != EINTR) return channel_error("poll");
    if (left.count() == 0) return Error(Errc::deadline_exceeded, "no answer within the time of the call");
  }
}

Status send_all(int socket, std::string_view bytes, Deadline deadline) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      RETURN_IF_ERROR(await(socket, POLLOUT, deadline));
    } else if (errno != EINTR) {
      return channel_error("send");
    }
  }
  return success();
}

// Reads until the other end closes its side.
Result<std::string> receive_all(int socket, std::size_t bytes_max, Deadline deadline) {
  std::string bytes;
  std::string piece(64 * 1024, '\0');
  for (;;) {
    RETURN_IF_ERROR(await(socket, POLLIN, deadline));
    const ssize_t got = ::recv(socket, piece.data(), piece.size(), MSG_DONTWAIT);
    if (got == 0) return bytes;
    if (got < 0 && errno != EINTR && errno != EAGAIN) return channel_error("recv");
    if (got < 0) continue;
    bytes.append(piece, 0, static_cast<std::size_t>(got));
    ::explicit_bzero(piece.data(), static_cast<std::size_t>(got));
    if (bytes.size() > bytes_max) return Error(Errc::too_large, "the cloud child sends too much");
  }
}

// A message to the child: a line of JSON, then the key; from it: a line of JSON, then the reply's body.
std::pair<std::string_view, std::string_view> parts_of(std::string_view message) {
  const std::size_t line = std::min(message.find('\n'), message.size());
  return {message.substr(0, line), message.substr(std::min(line + 1, message.size()))};
}

Result<HttpAnswer> answer_of(const std::string& message) {
  const auto [line, body] = parts_of(message);
  const auto parsed = json::parse(line);
  if (!parsed) return Error(Errc::unavailable, "the cloud child ended without an answer");
  const json::Value root = parsed->root();
  if (const auto status = root["status"].as_int()) return HttpAnswer{static_cast<int>(*status), std::string(body)};
  const std::string code = root["code"].string_or("");
  for (const Errc known : {Errc::deadline_exceeded, Errc::denied, Errc::too_large}) {
    if (code == name_of(known)) return Error(known, root["message"].string_or(""));
  }
  return Error(Errc::unavailable, root["message"].string_or("the cloud child failed"));
}

Result<HttpAnswer> perform(std::string& message, int connection) {
  const auto [line, key] = parts_of(message);
  const auto parsed = json::parse(line);
  if (!parsed) return Error(Errc::unavailable, "no request");
  const json::Value root = parsed->root();
  HttpRequest request;
  request.method = "POST";
  request.url = root["url"].string_or("");
  request.body = root["body"].string_or("");
  request.content_type = "application/json";
  request.timeout = milliseconds(root["timeout_ms"].as_int().value_or(1));
  request.ca_pem = root["ca"].string_or("");
  request.bearer = key;
  request.answer_bytes_max = limits::cloud_reply_bytes_max;
  request.connected = connection;
  ::explicit_bzero(message.data(), message.size());
  RETURN_IF_ERROR(enter_sandbox(cloud_policy()));
  Result<HttpAnswer> answer = send_http(request);
  ::explicit_bzero(request.bearer.data(), request.bearer.size());
  return answer;
}

// Marks of an answer: [1], [cloud 1], [older than 1], [unsupported]; also [1, 2] and [ 1 ].
bool is_marker(std::string_view text) {
  if (text == "unsupported") return true;
  for (const std::string_view words : {"cloud", "older than"}) {
    if (text.starts_with(words)) text.remove_prefix(words.size());
  }
  return text.find_first_of("0123456789") != std::string_view::npos &&
         text.find_first_not_of("0123456789 \t\n,;-") == std::string_view::npos;
}

// Writes "[1]" as "(1)": in an answer it would look like a citation.
void replace_markers(std::string& text) {
  for (std::size_t begin = text.find('['); begin != std::string::npos; begin = text.find('[', begin + 1)) {
    const std::size_t end = text.find(']', begin);
    if (end == std::string::npos) return;
    if (!is_marker(std::string_view(text).substr(begin + 1, end - begin - 1))) continue;
    text[begin] = '(';
    text[end] = ')';
  }
}

// Removes pointers: only the daemon states what the log holds.
std::size_t remove_pointers(std::string& text) {
  std::size_t removed = 0;
  for (std::size_t at = text.find("://"); at != std::string::npos; at = text.find("://", at)) {
    std::size_t begin = at;
    while (begin > 0 && std::isalpha(static_cast<unsigned char>(text[begin - 1])) != 0) --begin;
    std::string scheme = text.substr(begin, at - begin);
    std::ranges::transform(scheme, scheme.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    constexpr std::string_view ours[] = {"artifact", "cloud", "ev", "log", "manifest", "muniment", "run", "snap"};
    at += 3;
    if (std::ranges::find(ours, scheme) == std::end(ours)) continue;
    const std::size_t end = std::min(text.find_first_of(" \t\n\"'<>`", at), text.size());
    text.replace(begin, end - begin, "[pointer removed]");
    at = begin;
    ++removed;
  }
  return removed;
}

}  // namespace

ApiKey::~ApiKey() { ::explicit_bzero(text_.data(), text_.size()); }

Result<ApiKey> read_key(const std::string& folder, const char* from_environment) {
  std::string text = from_environment != nullptr ? from_environment : "";
  const std::string path = folder + "/.env";
  if (text.empty()) {
    struct stat about {};
    if (::stat(path.c_str(), &about) != 0)
      return Error(Errc::not_found,
                   fmt::format("no key: set {} in the daemon's environment, or in {}", key_name, path));
    if ((about.st_mode & 077) != 0 || (about.st_uid != 0 && about.st_uid != ::geteuid()))
      return Error(Errc::denied, fmt::format("{} may be read by other users. Run: chmod 600 {}", path, path));
    ASSIGN_OR_RETURN(std::string file, read_trusted(path, limits::cloud_env_bytes_max));
    for (std::size_t begin = 0; begin < file.size();) {
      const std::size_t end = std::min(file.find('\n', begin), file.size());
      std::string_view line = std::string_view(file).substr(begin, end - begin);
      begin = end + 1;
      if (line.starts_with("export ")) line.remove_prefix(7);
      if (!line.starts_with(std::string(key_name) + "=")) continue;
      line.remove_prefix(key_name.size() + 1);
      if (line.ends_with('\r')) line.remove_suffix(1);
      if (line.size() >= 2 && line.front() == line.back() && (line.front() == '"' || line.front() == '\'')) {
        line.remove_prefix(1);
        line.remove_suffix(1);
      }
      text = line;
    }
    ::explicit_bzero(file.data(), file.size());
  }
  ApiKey key(std::move(text));
  if (key.text().empty()) return Error(Errc::not_found, fmt::format("{} has no {}", path, key_name));
  const bool well = std::ranges::all_of(key.text(), [](char c) { return c > ' ' && c < 0x7f; });
  if (!well || key.text().size() > limits::cloud_key_bytes_max) {
    return Error(Errc::invalid_argument, fmt::format("{} must have 1 to {} printable ASCII characters without spaces",
                                                     key_name, limits::cloud_key_bytes_max));
  }
  return key;
}

std::string api_url(const std::string& url) {
  const std::size_t slash = url.find('/', url.find("://") + 3);
  if (slash != std::string::npos && slash + 1 < url.size()) return url;
  return url.substr(0, slash) + "/v1/chat/completions";
}

std::string request_body(const std::string& model, std::string_view prompt) {
  json::Writer out;
  out.begin_object().member("model", model).key("messages").begin_array();
  out.begin_object().member("role", "user").member("content", prompt).end_object();
  out.end_array().member("stream", false).member("max_tokens", limits::answer_model_tokens_max);
  return std::move(out.end_object()).text();
}

Result<HttpAnswer> call_provider(const ProviderCall& call, const ApiKey& key, Deadline deadline,
                                 const std::vector<std::string>& command) {
  ASSIGN_OR_RETURN(Fd connection, connect_http(call.url, std::max(left_until(deadline), milliseconds(1))));
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return channel_error("socketpair");
  const Fd own(ends[0]);
  Fd childs(ends[1]);
  ASSIGN_OR_RETURN(const Child child, spawn({command, {childs.get(), connection.get()}}));
  childs.reset();
  connection.reset();
  json::Writer out;
  out.begin_object().member("url", call.url).member("body", call.body).member("ca", call.ca_pem);
  out.member("timeout_ms", std::max<std::int64_t>(left_until(deadline).count(), 1));
  RETURN_IF_ERROR(send_all(own.get(), std::move(out.end_object()).text() + "\n", deadline));
  RETURN_IF_ERROR(send_all(own.get(), key.text(), deadline));
  ::shutdown(own.get(), SHUT_WR);
  constexpr std::size_t line_max = 64 * 1024;
  ASSIGN_OR_RETURN(const std::string message,
                   receive_all(own.get(), limits::cloud_reply_bytes_max + line_max, deadline + child_patience));
  return answer_of(message);
}

Result<std::string> text_of_reply(const std::string& body) {
  const auto parsed = json::parse(std::string_view(body));
  if (!parsed) return Error(Errc::corrupt, "the reply is not JSON");
  std::optional<std::string> text;
  for (const json::Value choice : parsed->root()["choices"]) {
    if (!text) text = choice["message"]["content"].as_string();
  }
  if (!text || text->find_first_not_of(" \t\r\n") == std::string::npos)
    return Error(Errc::corrupt, "the reply has no text");
  if (text->size() > limits::cloud_text_bytes_max) {
    return Error(Errc::too_large,
                 fmt::format("the reply's text has {} bytes, limit {}", text->size(), limits::cloud_text_bytes_max));
  }
  return *std::move(text);
}

SafeReply safe_reply(std::string text, Sanitiser& sanitiser) {
  SafeReply safe;
  safe.redactions = redact(text, sanitiser.find(text), [](const Finding& f) { return fmt::format("[{}]", f.rule); });
  safe.redactions += remove_pointers(text);
  replace_markers(text);
  text.erase(text.find_last_not_of(" \t\r\n") + 1);
  safe.text = escape_for_terminal(text);
  return safe;
}

SandboxPolicy cloud_policy() {
  SandboxPolicy policy;
  policy.paths = false;
  policy.address_space_bytes_max = child_memory_max;
  policy.cpu_seconds_max = child_cpu_seconds_max;
  policy.open_files_max = 16;
  policy.needs_call_filter = true;
  return policy;
}

int serve_cloud(int channel, int connection) {
  ::prctl(PR_SET_DUMPABLE, 0);
  close_descriptors_from(connection + 1);
  load_http();
  Result<std::string> message =
      receive_all(channel, limits::cloud_request_bytes_max, std::chrono::steady_clock::now() + std::chrono::minutes(1));
  if (!message) return 2;
  const Result<HttpAnswer> answer = perform(*message, connection);
  json::Writer out;
  out.begin_object();
  if (answer) {
    out.member("status", answer->status);
  } else {
    out.member("code", name_of(answer.error().code)).member("message", preview(answer.error().message, 500));
  }
  const std::string line = std::move(out.end_object()).text() + "\n" + (answer ? answer->body : "");
  return send_all(channel, line, std::chrono::steady_clock::now() + std::chrono::minutes(1)) ? 0 : 1;
}

}  // namespace muniment::bridge
