#include "adapters/receive/otlp_receiver.hpp"

#include <fmt/format.h>

#include "base/files/gzip.hpp"
#include "base/json/json.hpp"
#include "base/limits.hpp"

namespace muniment::cli {
namespace {

constexpr std::string_view json_type = "application/json";
constexpr std::string_view protobuf_type = "application/x-protobuf";
constexpr const char* retry_after_seconds = "5";

// Codes of google.rpc.Status.
constexpr int invalid_code = 3, denied_code = 7, exhausted_code = 8, unimplemented_code = 12, unavailable_code = 14,
              unauthenticated_code = 16;

std::string media_type(const http::Request& request) {
  const std::string type = request.header("Content-Type").value_or("");
  std::string name = type.substr(0, type.find_first_of("; \t"));
  for (char& c : name) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return name;
}

std::optional<OtlpSignal> signal_of(std::string_view path) {
  if (path == "/v1/traces") return OtlpSignal::traces;
  if (path == "/v1/logs") return OtlpSignal::logs;
  return std::nullopt;
}

// An answer has the content type of its request, as OTLP requires.
http::Answer answer_of(const http::Request& request, int status, std::string json, std::string protobuf) {
  const bool is_protobuf = media_type(request) == protobuf_type;
  return {status,
          {{"Content-Type", std::string(is_protobuf ? protobuf_type : json_type)}},
          is_protobuf ? std::move(protobuf) : std::move(json)};
}

http::Answer failure(const http::Request& request, int status, int code, const std::string& text) {
  json::Writer body;
  body.begin_object().member("code", code).member("message", text).end_object();
  return answer_of(request, status, std::move(body).text(), otlp_status_protobuf(code, text));
}

http::Answer failure_of(const http::Request& request, const Error& error) {
  if (error.code == Errc::invalid_argument) return failure(request, 400, invalid_code, error.message);
  if (error.code == Errc::too_large) return failure(request, 413, invalid_code, error.message);
  http::Answer answer =
      failure(request, 503, error.code == Errc::over_budget ? exhausted_code : unavailable_code, error.message);
  answer.headers.push_back({"Retry-After", retry_after_seconds});
  return answer;
}

}  // namespace

OtlpReceiver::OtlpReceiver(TraceSpool& spool, ReceiverOptions options) : spool_(spool), options_(std::move(options)) {}

Status OtlpReceiver::listen(uv_loop_t* loop) {
  http::Options options = options_.server;
  options.body_bytes_max = limits::otlp_body_bytes_max;
  options.refuse = [this](const http::Request& request) { return refuse(request); };
  ASSIGN_OR_RETURN(server_,
                   http::Server::listen(loop, std::move(options), [this](const std::shared_ptr<http::Exchange>& one) {
                     one->reply(serve(one->request()));
                   }));
  hosts_ = {server_->port(), options_.hosts, "http_hosts"};
  return success();
}

std::optional<http::Answer> OtlpReceiver::refuse(const http::Request& request) const {
  for (const Status& allowed : {check_host(request, hosts_), check_origin(request, hosts_)}) {
    if (!allowed) return failure(request, 403, denied_code, allowed.error().message);
  }
  if (!options_.token.empty() && !http::bearer_token_matches(request, options_.token)) {
    http::Answer answer =
        failure(request, 401, unauthenticated_code,
                "a bearer token is required: set OTEL_EXPORTER_OTLP_HEADERS as `muniment otlp` shows");
    answer.headers.push_back({"WWW-Authenticate", "Bearer"});
    return answer;
  }
  if (!signal_of(request.path)) {
    return failure(request, 404, unimplemented_code,
                   request.path == "/v1/metrics" ? "metrics are not recorded: set OTEL_METRICS_EXPORTER=none"
                                                 : "not found. The endpoints are /v1/traces and /v1/logs.");
  }
  if (request.method != "POST") {
    http::Answer answer = failure(request, 405, unimplemented_code, "use POST.");
    answer.headers.push_back({"Allow", "POST"});
    return answer;
  }
  const std::string type = media_type(request);
  if (type != json_type && type != protobuf_type)
    return failure(request, 415, invalid_code,
                   fmt::format("Content-Type: expected {} or {}.", json_type, protobuf_type));
  const std::string encoding = request.header("Content-Encoding").value_or("identity");
  if (!http::equal_ignoring_case(encoding, "gzip") && !http::equal_ignoring_case(encoding, "identity"))
    return failure(request, 415, invalid_code, "Content-Encoding: expected gzip or none.");
  return std::nullopt;
}

http::Answer OtlpReceiver::serve(const http::Request& request) {
  const auto refused = take(request, signal_of(request.path).value_or(OtlpSignal::traces));
  if (!refused) return failure_of(request, refused.error());
  json::Writer body;
  body.begin_object();
  if (refused->items > 0) {
    const bool is_traces = signal_of(request.path) == OtlpSignal::traces;
    body.key("partialSuccess").begin_object();
    body.member(is_traces ? "rejectedSpans" : "rejectedLogRecords", std::to_string(refused->items));
    body.member("errorMessage", refused->why).end_object();
  }
  return answer_of(request, 200, std::move(body.end_object()).text(), otlp_response_protobuf(*refused));
}

Result<OtlpRefused> OtlpReceiver::take(const http::Request& request, OtlpSignal signal) {
  std::string unpacked;
  std::string_view body = request.body;
  if (http::equal_ignoring_case(request.header("Content-Encoding").value_or(""), "gzip")) {
    ASSIGN_OR_RETURN(unpacked, gunzip(body, limits::otlp_request_bytes_max));
    body = unpacked;
  }
  if (media_type(request) == json_type) return spool_.add(signal, body);
  ASSIGN_OR_RETURN(const std::string json, otlp_json_of(signal, body, limits::otlp_request_bytes_max));
  return spool_.add(signal, json);
}

}  // namespace muniment::cli
