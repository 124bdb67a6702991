#include "base/http.hpp"

#include <curl/curl.h>

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

}  // namespace

Result<HttpAnswer> send_http(const HttpRequest& request) {
  static std::once_flag once;
  std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
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
    return Error(Errc::unavailable, request.url + ": " + curl_easy_strerror(failed));
  }
  long status = 0;
  curl_easy_getinfo(c, CURLINFO_RESPONSE_CODE, &status);
  return HttpAnswer{static_cast<int>(status), std::move(taken.body)};
}

}  // namespace muniment
