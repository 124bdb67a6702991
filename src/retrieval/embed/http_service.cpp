// Posts JSON to an embedding service, with one retry.
#include "retrieval/embed/http_service.hpp"

#include <algorithm>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/files/file.hpp"
#include "base/http.hpp"
#include "base/limits.hpp"
#include "base/text.hpp"

namespace muniment::retrieval {
namespace {

constexpr std::chrono::milliseconds pause_before_retry{100};

Error refusal(const std::string& url, const HttpAnswer& answer) {
  // llama.cpp's answer to a text beyond its batch size: a retry would fail too.
  const bool too_long = answer.status == 500 && answer.body.find("too large to process") != std::string::npos;
  const bool busy = !too_long && (answer.status >= 500 || answer.status == 429 || answer.status == 408);
  const bool key = answer.status == 401 || answer.status == 403;
  const Errc code = busy ? Errc::unavailable : key ? Errc::denied : Errc::invalid_argument;
  return Error(code, fmt::format("{}: status {}: {}", url, answer.status,
                                 escape_for_terminal(preview(answer.body, limits::preview_bytes_max))));
}

}  // namespace

Result<HttpService> HttpService::open(const std::string& url, const std::string& key_file,
                                      std::chrono::milliseconds timeout, std::function<bool()> given_up,
                                      std::size_t answer_bytes_max) {
  if (!url.starts_with("http://") && !url.starts_with("https://"))
    return Error(Errc::invalid_argument, url + ": give http://… or https://…");
  if (timeout.count() <= 0) return Error(Errc::invalid_argument, url + ": the time limit has to be above 0 ms");
  HttpService service;
  service.url_ = url;
  service.timeout_ = timeout;
  service.given_up_ = std::move(given_up);
  service.answer_bytes_max_ = answer_bytes_max;
  if (key_file.empty()) return service;
  ASSIGN_OR_RETURN(service.key_, read_file(key_file, limits::key_file_bytes_max));
  while (!service.key_.empty() && (service.key_.back() == '\n' || service.key_.back() == '\r')) service.key_.pop_back();
  const bool plain = std::all_of(service.key_.begin(), service.key_.end(), [](char c) { return c > ' ' && c < 127; });
  if (service.key_.empty() || !plain)
    return Error(Errc::invalid_argument, key_file + ": expected one line of printable ASCII without spaces");
  return service;
}

Result<std::string> HttpService::post(const std::string& json) const {
  const auto deadline = std::chrono::steady_clock::now() + timeout_;
  HttpRequest request;
  request.method = "POST";
  request.url = url_;
  request.body = json;
  request.content_type = "application/json";
  request.bearer = key_;
  request.answer_bytes_max = answer_bytes_max_;
  request.given_up = given_up_;
  for (bool again = false;; again = true) {
    request.timeout =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    auto answer = send_http(request);
    if (answer && answer->status == 200) return std::move(answer->body);
    Error error = answer ? refusal(url_, *answer) : std::move(answer).error();
    // An answer over the limit is a fault of the server, and would be as long the next time.
    if (error.code == Errc::too_large) error.code = Errc::unavailable;
    const bool wanted = !given_up_ || !given_up_();
    const bool time_left = wanted && std::chrono::steady_clock::now() + 2 * pause_before_retry < deadline;
    if (again || error.code != Errc::unavailable || !time_left) return error;
    std::this_thread::sleep_for(pause_before_retry);
  }
}

}  // namespace muniment::retrieval
