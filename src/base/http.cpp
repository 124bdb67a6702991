#include "base/http.hpp"

#include <curl/curl.h>
#include <fcntl.h>

#include <cerrno>
#include <memory>
#include <mutex>

namespace muniment {
namespace {

struct EasyFree {
  void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
};
struct ListFree {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};

struct UrlFree {
  void operator()(CURLU* url) const { curl_url_cleanup(url); }
};

struct Taken {
  std::string body;
  std::size_t bytes_max = 0;
  bool too_large = false;
};

std::size_t take(char* bytes, std::size_t size, std::size_t count, void* into) {
  auto& taken = *static_cast<Taken*>(into);
  taken.too_large = taken.body.size() + size * count > taken.bytes_max;
  if (taken.too_large) return 0;  // aborts the request
  taken.body.append(bytes, size * count);
  return size * count;
}

// Returns 1 to abort the request.
int look_up(void* given_up, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return (*static_cast<const std::function<bool()>*>(given_up))() ? 1 : 0;
}

using Headers = std::unique_ptr<curl_slist, ListFree>;

void add(Headers& headers, const std::string& line) {
  curl_slist* const longer = curl_slist_append(headers.get(), line.c_str());
  if (longer == nullptr) return;
  headers.release();
  headers.reset(longer);
}

curl_socket_t give(void* connected, curlsocktype, curl_sockaddr*) { return *static_cast<const int*>(connected); }
int is_connected(void*, curl_socket_t, curlsocktype) { return CURL_SOCKOPT_ALREADY_CONNECTED; }

// The URL's host is not resolved: a numeric address takes its place, except in TLS and in the request.
const curl_slist numeric_address{const_cast<char*>("::127.0.0.1:"), nullptr};

void use_connected(CURL* c, const HttpRequest& request) {
  curl_easy_setopt(c, CURLOPT_OPENSOCKETFUNCTION, give);
  curl_easy_setopt(c, CURLOPT_OPENSOCKETDATA, &request.connected);
  curl_easy_setopt(c, CURLOPT_SOCKOPTFUNCTION, is_connected);
  curl_easy_setopt(c, CURLOPT_CONNECT_TO, &numeric_address);
  curl_easy_setopt(c, CURLOPT_PROXY, "");
  curl_easy_setopt(c, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
  curl_easy_setopt(c, CURLOPT_SSLVERSION, CURL_SSLVERSION_TLSv1_2);
  curl_easy_setopt(c, CURLOPT_CAPATH, nullptr);
  curl_blob certificates{const_cast<char*>(request.ca_pem.data()), request.ca_pem.size(), CURL_BLOB_COPY};
  curl_easy_setopt(c, CURLOPT_CAINFO_BLOB, &certificates);
}

Error failure_of(const HttpRequest& request, CURLcode failed, std::string_view reason) {
  const Errc code = request.connected < 0                      ? Errc::unavailable
                    : failed == CURLE_OPERATION_TIMEDOUT       ? Errc::deadline_exceeded
                    : failed == CURLE_PEER_FAILED_VERIFICATION ? Errc::denied
                                                               : Errc::unavailable;
  return Error(code, request.url + ": " + (reason.empty() ? curl_easy_strerror(failed) : std::string(reason)));
}

}  // namespace

void load_http() {
  static std::once_flag once;
  std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
}

Result<Fd> connect_http(const std::string& url, std::chrono::milliseconds timeout) {
  load_http();
  // With http, libcurl sends nothing by itself.
  const std::unique_ptr<CURLU, UrlFree> plain(curl_url());  // outlives the handle
  const std::unique_ptr<CURL, EasyFree> easy(curl_easy_init());
  CURL* const c = easy.get();
  if (c == nullptr || !plain) return Error(Errc::unavailable, "libcurl does not start");
  char* port = nullptr;
  const bool known = curl_url_set(plain.get(), CURLUPART_URL, url.c_str(), 0) == CURLUE_OK &&
                     curl_url_get(plain.get(), CURLUPART_PORT, &port, CURLU_DEFAULT_PORT) == CURLUE_OK;
  if (!known) return Error(Errc::unavailable, url + ": not a URL of a server");
  curl_url_set(plain.get(), CURLUPART_SCHEME, "http", 0);
  curl_url_set(plain.get(), CURLUPART_PORT, port, 0);
  curl_free(port);
  curl_easy_setopt(c, CURLOPT_CURLU, plain.get());
  curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http");
  curl_easy_setopt(c, CURLOPT_PROXY, "");
  curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(c, CURLOPT_QUICK_EXIT, 1L);
  curl_easy_setopt(c, CURLOPT_CONNECT_ONLY, 1L);
  curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, static_cast<long>(timeout.count()));
  if (const CURLcode failed = curl_easy_perform(c); failed != CURLE_OK)
    return Error(Errc::unavailable, url + ": " + curl_easy_strerror(failed));
  curl_socket_t socket = CURL_SOCKET_BAD;
  curl_easy_getinfo(c, CURLINFO_ACTIVESOCKET, &socket);
  Fd own(socket == CURL_SOCKET_BAD ? -1 : ::fcntl(socket, F_DUPFD_CLOEXEC, 3));  // libcurl closes its own
  if (!own.open()) return Error(Errc::unavailable, url + ": the connection ended at once");
  return own;
}

Result<HttpAnswer> send_http(const HttpRequest& request) {
  load_http();
  const std::unique_ptr<CURL, EasyFree> easy(curl_easy_init());
  if (!easy) return Error(Errc::unavailable, "libcurl does not start");
  Headers headers;
  if (!request.content_type.empty()) add(headers, "Content-Type: " + request.content_type);
  if (!request.bearer.empty()) add(headers, "Authorization: Bearer " + request.bearer);
  for (const std::string& header : request.headers) add(headers, header);
  Taken taken;
  taken.bytes_max = request.answer_bytes_max;
  CURL* const c = easy.get();
  curl_easy_setopt(c, CURLOPT_URL, request.url.c_str());
  curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, static_cast<long>(request.timeout.count()));
  if (!request.unix_socket.empty()) curl_easy_setopt(c, CURLOPT_UNIX_SOCKET_PATH, request.unix_socket.c_str());
  if (request.method != "GET") {
    curl_easy_setopt(c, CURLOPT_CUSTOMREQUEST, request.method.c_str());
    curl_easy_setopt(c, CURLOPT_POSTFIELDS, request.body.data());
    curl_easy_setopt(c, CURLOPT_POSTFIELDSIZE, static_cast<long>(request.body.size()));
  }
  if (headers) curl_easy_setopt(c, CURLOPT_HTTPHEADER, headers.get());
  const std::string key = request.access_key + ":" + request.secret_key;
  const std::string scope = "aws:amz:" + request.region + ":s3";
  if (!request.access_key.empty()) {
    curl_easy_setopt(c, CURLOPT_USERPWD, key.c_str());
    curl_easy_setopt(c, CURLOPT_AWS_SIGV4, scope.c_str());
  }
  if (request.connected >= 0) use_connected(c, request);
  char reason[CURL_ERROR_SIZE] = "";
  curl_easy_setopt(c, CURLOPT_ERRORBUFFER, reason);
  curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, take);
  curl_easy_setopt(c, CURLOPT_WRITEDATA, &taken);
  if (request.given_up) {
    curl_easy_setopt(c, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(c, CURLOPT_QUICK_EXIT, 1L);  // an abort does not wait for the name server
    curl_easy_setopt(c, CURLOPT_XFERINFOFUNCTION, look_up);
    curl_easy_setopt(c, CURLOPT_XFERINFODATA, &request.given_up);
  }
  if (const CURLcode failed = curl_easy_perform(c); failed != CURLE_OK) {
    if (taken.too_large)
      return Error(Errc::too_large,
                   request.url + ": the answer has more than " + std::to_string(taken.bytes_max) + " bytes");
    return failure_of(request, failed, reason);
  }
  long status = 0;
  curl_easy_getinfo(c, CURLINFO_RESPONSE_CODE, &status);
  return HttpAnswer{static_cast<int>(status), std::move(taken.body)};
}

}  // namespace muniment
