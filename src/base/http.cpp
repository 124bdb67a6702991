#include "base/http.hpp"

#include <curl/curl.h>

#include <memory>
#include <mutex>

namespace muniment {
namespace {

constexpr std::size_t answer_bytes_max = 1 << 20;

struct EasyFree {
  void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
};
struct ListFree {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};

std::size_t take(char* bytes, std::size_t size, std::size_t count, void* into) {
  auto& body = *static_cast<std::string*>(into);
  if (body.size() + size * count > answer_bytes_max) return 0;  // fails the request
  body.append(bytes, size * count);
  return size * count;
}

}  // namespace

Result<HttpAnswer> http(const HttpRequest& request) {
  static std::once_flag once;
  std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
  const std::unique_ptr<CURL, EasyFree> easy(curl_easy_init());
  if (!easy) return Error(Errc::unavailable, "libcurl does not start");
  const std::unique_ptr<curl_slist, ListFree> headers(
      request.content_type.empty() ? nullptr : curl_slist_append(nullptr, ("Content-Type: " + request.content_type).c_str()));
  HttpAnswer answer;
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
  curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, take);
  curl_easy_setopt(c, CURLOPT_WRITEDATA, &answer.body);
  if (const CURLcode failed = curl_easy_perform(c); failed != CURLE_OK) {
    return Error(Errc::unavailable, request.url + ": " + curl_easy_strerror(failed));
  }
  long status = 0;
  curl_easy_getinfo(c, CURLINFO_RESPONSE_CODE, &status);
  answer.status = static_cast<int>(status);
  return answer;
}

}  // namespace muniment
